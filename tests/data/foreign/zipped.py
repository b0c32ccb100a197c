"""Compares Zarr stores in archives of the format zip with the same stores in folders.

    python3 tests/data/foreign/zipped.py PROGRAM FOLDER [--seed 1] [--stores 30]

FOLDER gets random stores of zarr-python, and archives of each:

    zarr        written by zarr-python's ZipStore, which writes some members twice
    stored      by Python's zipfile, as they are; with ZIP64, with a comment, behind other bytes, in one folder
    deflated    by Python's zipfile; also as a stream, whose headers have no lengths
    infozip     by Info-ZIP, if it is installed

The program answers with the rows of all arrays of an archive and of its store. For archives of ZipStore, zarr-python itself
reads the archive and writes the store in the folder. One archive has more than 65,535 members. FOLDER/archives.json lists all
archives with their stores. The program `-` only writes them.

Fails if rows differ.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import zarr  # noqa: E402
from zarr.storage import ZipStore  # noqa: E402

from compare_tables import answers, quoted  # noqa: E402
from random_xarray import chance, pick  # noqa: E402
from random_zarr import write_store  # noqa: E402

# More members than a directory without ZIP64 can count.
MANY = 66_000


# --------------------------------------------------------------------------------------------------- archives


class Stream:
    """A file that cannot seek, so that headers have no lengths."""

    def __init__(self, path):
        self.file = path.open("wb")

    def write(self, some):
        return self.file.write(some)

    def flush(self):
        self.file.flush()


def members(random, store, top):
    """Yields the files of a store in random order, with their names in the archive. Some are there twice."""
    paths = [path for path in store.rglob("*") if path.is_file() or chance(random, 0.3)]
    for at in random.permutation(len(paths)):
        path = paths[int(at)]
        name = top + path.relative_to(store).as_posix()
        if path.is_dir():
            yield f"{name}/", b""
            continue
        if chance(random, 0.1):
            yield name, b"an older version"
        yield name, path.read_bytes()


def pack(random, store, path, deflates=False, is_stream=False, is_zip64=False, before=b"", comment=b"", top=""):
    """Packs a store. Most members are deflated, or none."""
    if before:
        path.write_bytes(before)
    with zipfile.ZipFile(Stream(path) if is_stream else path, "a" if before else "w") as archive:
        archive.comment = comment
        for name, content in members(random, store, top):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED if deflates and chance(random, 0.8) else zipfile.ZIP_STORED
            with archive.open(entry, "w", force_zip64=is_zip64) as member:
                member.write(content)


def archives(random, store):
    """Yields archives of a store."""

    def at(kind, ending):
        return store.with_name(f"{store.stem}_{kind}{ending}")

    before = bytes(random.integers(0, 256, int(random.integers(1, 300)), "u1"))
    ways = {
        "stored": {},
        "zip64": {"is_zip64": True, "top": pick(random, ["", "product.zarr/"])},
        "comment": {"comment": b"PK\x05\x06 and more"},
        "before": {"before": before, "top": pick(random, ["", "a/b/"])},
        "deflated": {"deflates": True, "top": pick(random, ["", "product.zarr/"])},
        "stream": {"deflates": True, "is_stream": True, "is_zip64": chance(random, 0.5)},
    }
    for kind, options in ways.items():
        # Other bytes in front hide what an archive is, so that only its name tells.
        endings = [".zarr.zip"] if kind == "before" else [".zarr.zip", ".zip"]
        path = at(kind, pick(random, endings))
        pack(random, store, path, **options)
        yield path
    if zip_program := shutil.which("zip"):
        path = at("infozip", ".zarr.zip")
        here, what = pick(random, [(store, "."), (store.parent, store.name)])
        level = pick(random, ["-0", "-6", "-9"])
        subprocess.run([zip_program, "-q", "-r", level, path.resolve(), what], cwd=here, check=True)
        yield path


def zip_store(random, path, version):
    """Writes an archive by ZipStore. Returns the store that zarr-python reads in it, in a folder."""
    store = ZipStore(path, mode="w")
    group = zarr.create_group(store, zarr_format=version)
    for number in range(int(random.integers(1, 4))):
        shape = tuple(int(length) for length in random.integers(1, 30, int(random.integers(1, 4))))
        chunks = tuple(int(random.integers(1, length + 1)) for length in shape)
        options = {"compressors": None} if chance(random, 0.5) else {}
        if version == 3 and chance(random, 0.5):
            options["shards"] = tuple(length * int(random.integers(1, 4)) for length in chunks)
        dtype = pick(random, ["u1", "i4", "f8"])
        array = group.create_array(f"v{number}", shape=shape, chunks=chunks, dtype=dtype, fill_value=7, **options)
        # Each chunk or shard is written once. Chunks that are all fill are left out.
        array[...] = random.integers(7, pick(random, [8, 100]), shape)
    if chance(random, 0.6):
        zarr.consolidate_metadata(store, zarr_format=version)
    store.close()
    folder = path.with_name(path.name.removesuffix(".zip"))
    plain = zarr.create_group(str(folder), zarr_format=version)
    with ZipStore(path, mode="r") as store:
        for name, array in zarr.open_group(store, mode="r").arrays():
            options = {"shape": array.shape, "chunks": array.chunks, "dtype": array.dtype}
            copy = plain.create_array(name, fill_value=7, **options)
            copy[...] = array[...]
    return folder


def many(path):
    """Writes an archive with more members than a directory without ZIP64 can count, and the store."""
    cells = (np.arange(MANY) % 251).astype("u1")
    folder = path.with_name(path.name.removesuffix(".zip"))
    options = {"name": "v", "shape": cells.shape, "dtype": "u1", "compressors": None, "fill_value": 251}
    zarr.create_group(str(folder)).create_array(chunks=cells.shape, **options)[...] = cells
    store = ZipStore(path, mode="w")
    zarr.create_group(store).create_array(chunks=(1,), **options)
    store.close()
    with zipfile.ZipFile(path, "a") as archive:
        for number, cell in enumerate(cells):
            archive.writestr(f"v/c/{number}", bytes([cell]))
    with ZipStore(path, mode="r") as store:
        assert (zarr.open_group(store, mode="r")["v"][-500:] == cells[-500:]).all()
    return folder


def write_all(folder, random, stores):
    """Writes all archives. Returns pairs of an archive and its store."""
    pairs = []
    for number in range(stores):
        store = folder / f"s{number}.zarr"
        write_store(random, store, pick(random, [2, 3]))
        pairs += [(path, store) for path in archives(random, store)]
        path = folder / f"z{number}.zarr.zip"
        pairs.append((path, zip_store(random, path, pick(random, [2, 3]))))
    path = folder / "many.zarr.zip"
    pairs.append((path, many(path)))
    return pairs


# -------------------------------------------------------------------------------------------------- comparison


def datasets(store):
    """Returns the paths of the arrays of a store."""
    nodes = zarr.open_group(str(store), mode="r").members(max_depth=None)
    return [path for path, node in nodes if isinstance(node, zarr.Array)]


def statement(path, dataset):
    source = f"read_array({quoted(str(path), chr(39))}, {quoted(dataset, chr(39))}, index_columns => 'true')"
    return f"SELECT * FROM {source}"


def rows(answer, path):
    """Returns the rows of an answer in some order, or an error without its place."""
    if isinstance(answer, str):
        return answer.split(": ")[-1].replace(str(path), "")
    return sorted(json.dumps(row, sort_keys=True) for row in answer)


def compare(program, pairs):
    stores = {store: datasets(store) for _, store in pairs}
    places = [*((store, store) for store in stores), *pairs]
    asked = [(path, name) for path, store in places for name in stores[store]]
    answered = answers(program, [statement(path, name) for path, name in asked])
    found = {(path, name): rows(it, path) for (path, name), it in zip(asked, answered, strict=True)}
    counts, wrong = Counter(), []
    for archive, store in pairs:
        for name in stores[store]:
            expected, answer = found[store, name], found[archive, name]
            counts["refused" if isinstance(expected, str) else "equal"] += 1
            if answer != expected:
                wrong.append(f"WRONG: {archive}, {name}: {str(answer)[:300]}, expected {str(expected)[:300]}")
    return counts, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stores", type=int, default=30)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    began = time.time()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    pairs = write_all(folder, np.random.default_rng(arguments.seed), arguments.stores)
    listed = {archive.name: store.name for archive, store in pairs}
    (folder / "archives.json").write_text(json.dumps(listed, indent=1))
    if arguments.program == "-":
        return
    counts, wrong = compare(arguments.program, pairs)
    print(f"{len(pairs)} archives: {dict(counts)}; {time.time() - began:.0f} s in total")
    if wrong:
        sys.exit("\n".join([*wrong[:20], f"WRONG: {len(wrong)} arrays"]))


if __name__ == "__main__":
    main()
