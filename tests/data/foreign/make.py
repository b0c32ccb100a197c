"""Writes the stores and files that the tests read, and the cells that xarray finds in them.

    python3 tests/data/foreign/make.py             writes all again
    python3 tests/data/foreign/make.py --check     compares `expected` with what xarray reads from them now

Needs numpy, xarray, zarr, netCDF4, h5netcdf, h5py, hdf5plugin, scipy and kerchunk; README.md has the
versions. Contents are fixed.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import expected  # noqa: E402
import netcdf_files  # noqa: E402
import zarr_stores  # noqa: E402


def made():
    """Yields the path of each store or file with the function that writes it."""
    for make in zarr_stores.STORES:
        yield HERE / f"{make.__name__}.zarr", make
    for name, make in netcdf_files.FILES:
        yield HERE / name, make


def expect(folder):
    """Writes what xarray reads into `folder`, and returns the entries of the manifest."""
    entries = []
    for path, _ in made():
        entries += expected.write_expected(folder, path.name, path)
    expected.write_manifest(Path(folder) / "manifest.json", entries)
    return entries


def check():
    """Returns the number of files that differ from those in this folder."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        expect(folder)
        names = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
        names |= {path.relative_to(HERE) for path in HERE.glob("expected/*/*.csv")}
        for name in sorted(names):
            new, old = folder / name, HERE / name
            if not new.exists() or not old.exists() or new.read_bytes() != old.read_bytes():
                print(f"differs: {name}")
                wrong += 1
    print(f"{len(names)} files, {wrong} differ")
    return wrong


def make_all():
    for path, make in made():
        if path.is_dir():
            shutil.rmtree(path)
        make(path)
        if path.suffix == ".zarr":
            zarr_stores.compact(path)
    for folder in HERE.glob("expected/*/"):
        shutil.rmtree(folder)
    for entry in expect(HERE):
        if "unreadable" in entry:
            print(entry["file"], entry["table"], "has no table:", entry["unreadable"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(1 if check() else 0)
    make_all()
