"""Writes HDF5 files with all kinds of indexes of chunks, and the cells that h5py finds in them.

    python3 tests/data/foreign/chunk_indexes.py FOLDER --files 40 --seed 1

    FOLDER/indexes/0007.h5    some datasets; each has another value in each cell
    FOLDER/manifest.json      an entry per dataset, after those that are there already

Indexes lose chunks where nodes begin or end. So the numbers of chunks are near powers of two and near full nodes, and
chunks are written in any order, appended, cut off and added again.
"""

import argparse
import ctypes
import glob
import itertools
import json
import os
import sys
from pathlib import Path

import h5py
import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import expected  # noqa: E402

# The kinds of indexes, and the version of the library that writes them.
KINDS = {
    "tree1": "earliest",
    "single": "latest",
    "implicit": "latest",
    "fixed": "latest",
    "extensible": "latest",
    "tree2": "latest",
}
WAYS = ["at once", "in order", "backwards", "shuffled", "some", "appended", "cut", "cut and grown"]


def library():
    """The HDF5 library that h5py has loaded; None if it is not beside it."""
    beside = os.path.join(os.path.dirname(os.path.dirname(h5py.__file__)), "h5py.libs", "libhdf5-*")
    found = glob.glob(beside)
    return ctypes.CDLL(found[0]) if found else None


def create(path, libver, node):
    """Creates a file whose nodes of version 1 B-trees have up to twice `node` entries."""
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    hdf5 = library()
    if hdf5 is not None:
        hdf5.H5Pset_istore_k.argtypes = [ctypes.c_int64, ctypes.c_uint]
        assert hdf5.H5Pset_istore_k(plist.id, node) >= 0
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    version = h5py.h5f.LIBVER_LATEST if libver == "latest" else h5py.h5f.LIBVER_EARLIEST
    access.set_libver_bounds(version, h5py.h5f.LIBVER_LATEST)
    return h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, plist, access))


def count_of(random, node):
    """A number of chunks at which something may begin or end."""
    # A tree of nodes with two entries may become as deep as it has chunks, and the library fails beyond 255 levels.
    most = 60 if node == 1 else 5000
    near = [1, *(1 << random.integers(13, size=4)), *(2 * node * random.integers(1, 40, size=4)), 4999]
    count = int(random.choice(near)) + int(random.integers(-1, 2))
    return min(max(count, 1), most)


def grid_of(random, count, rank):
    """About this number of chunks, along several axes."""
    grid = []
    for axis in range(rank - 1):
        most = round(count ** (1 / (rank - axis)) * 1.5)
        grid.append(int(random.integers(1, max(most, 1) + 1)))
        count = max(count // grid[-1], 1)
    return [int(at) for at in random.permutation([*grid, count])]


def properties(random, kind, shape, chunk):
    """The greatest shape, and the properties of a dataset with an index of this kind."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(tuple(chunk))
    plist.set_fill_value(np.array(-1, "<i4"))
    if kind == "implicit":
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    elif random.random() < 0.4:
        plist.set_deflate(1)
    unlimited, axes = h5py.h5s.UNLIMITED, len(shape)
    more = [max(n, c) + int(random.integers(0, 9)) for n, c in zip(shape, chunk)]
    one = int(random.integers(axes))
    most = {
        "single": shape,
        "tree1": [unlimited if random.random() < 0.6 else n for n in more],
        "extensible": [unlimited if axis == one else n for axis, n in enumerate(more)],
        "tree2": [unlimited] * axes,
    }.get(kind, more)
    return tuple(most), plist


def write(random, file, name, kind, node):
    """Writes a dataset, and returns what it is."""
    rank = int(random.integers(2 if kind == "tree2" else 1, 5))
    chunk = [int(n) for n in random.integers(1, 4, size=rank)]
    grid = [1] * rank if kind == "single" else grid_of(random, count_of(random, node), rank)
    # The last chunk may be cut, but not that of an index that has only one.
    cut = [0 if kind == "single" else int(random.integers(0, n)) for n in chunk]
    shape = [g * n - c for g, n, c in zip(grid, chunk, cut)]
    most, plist = properties(random, kind, shape, chunk)
    way = WAYS[int(random.integers(len(WAYS)))]
    values = (np.arange(np.prod(shape), dtype="i4") + 1).reshape(shape)
    grows = [axis for axis in range(rank) if most[axis] == h5py.h5s.UNLIMITED]
    start = list(shape)
    if way == "appended" and grows:
        start[grows[0]] = 0
    space = h5py.h5s.create_simple(tuple(start), most)
    dataset = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_I32LE, space, plist))
    firsts = list(itertools.product(*(range(0, n, c) for n, c in zip(shape, chunk))))
    if way in ("shuffled", "some", "cut", "cut and grown"):
        random.shuffle(firsts)
    if way == "backwards":
        firsts.reverse()
    if way == "some":
        firsts = firsts[: len(firsts) // 2]
    if way == "at once":
        dataset[...] = values
    elif way == "appended" and grows:
        axis = grows[0]
        for at in range(0, shape[axis], chunk[axis]):
            end = min(at + chunk[axis], shape[axis])
            dataset.resize(end, axis=axis)
            part = tuple(slice(at, end) if it == axis else slice(None) for it in range(rank))
            dataset[part] = values[part]
    else:
        for first in firsts:
            part = tuple(slice(at, at + n) for at, n in zip(first, chunk))
            dataset[part] = values[part]
    if way.startswith("cut"):
        dataset.resize([int(random.integers(0, n + 1)) for n in shape])
    if way == "cut and grown":
        longer = [n if m != h5py.h5s.UNLIMITED else n + int(random.integers(0, 5)) for n, m in zip(shape, most)]
        dataset.resize(longer)
        if random.random() < 0.5:
            dataset[tuple(slice(n // 2, None) for n in longer)] = -7
    return f"{name}: {kind}, grid {grid}, chunks {chunk}, {way}, nodes of {2 * node}"


def write_labels(random, file, libver):
    """Writes a table whose labels are chunked too: numbers and texts."""
    rows, columns = (count_of(random, 32) % 300 + 1 for _ in range(2))
    unlimited = (None,) if random.random() < 0.5 else None
    file.create_dataset("t", data=np.arange(rows) * 10, chunks=(1,), maxshape=unlimited)
    names = [f"station {at}" for at in range(columns)]
    file.create_dataset("names", data=names, dtype=h5py.string_dtype(), chunks=(1,), maxshape=unlimited)
    file["t"].make_scale("t")
    file["names"].make_scale("names")
    values = np.arange(rows * columns, dtype="i4").reshape(rows, columns)
    v = file.create_dataset("v", data=values, chunks=(1, columns))
    v.dims[0].attach_scale(file["t"])
    v.dims[1].attach_scale(file["names"])
    return f"labels: {libver}, {rows} times, {columns} texts"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    (arguments.folder / "indexes").mkdir(parents=True, exist_ok=True)
    manifest = arguments.folder / "manifest.json"
    entries = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else []
    for number in range(arguments.files):
        random = np.random.default_rng([arguments.seed, number])
        name = f"indexes/{number:04}.h5"
        node = int(random.choice([1, 2, 3, 4, 7, 8, 16, 31, 32]))
        libver = "earliest" if number % 2 else "latest"
        with create(arguments.folder / name, libver, node) as file:
            if number % 5 == 0:
                facts = [write_labels(random, file, libver)]
            else:
                kinds = [kind for kind, version in KINDS.items() if version == libver]
                facts = [write(random, file, f"d{at}", str(random.choice(kinds)), node) for at in range(6)]
        print(name, *facts, sep="\n    ")
        entries += expected.write_expected(arguments.folder, name, arguments.folder / name)
    expected.write_manifest(manifest, entries)


if __name__ == "__main__":
    main()
