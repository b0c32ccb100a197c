"""Writes `virtual.h5`, whose datasets grow with their sources: virtual datasets with unlimited selections, or with numbered
sources. What h5py reads from it is in `virtual.json`: the shape of each dataset, and its cells.

    python make.py [FOLDER]

The sources grow after the virtual file is written, so its extents are out of date. Needs h5py.
"""

import json
import os
import sys

import h5py
import numpy as np

EVER = h5py.h5s.UNLIMITED


def space(shape, start=None, stride=None, count=None, block=None):
    """A dataspace of which some cells are selected; all of them without `start`."""
    space = h5py.h5s.create_simple(shape, (EVER,) * len(shape))
    if start is not None:
        ones = (1,) * len(shape)
        space.select_hyperslab(start, count or ones, stride or ones, block or ones)
    return space


def add(file, name, shape, *mappings, dtype="i4", fill=-1):
    """Adds a virtual dataset; a mapping is (cells of it, name of a file, name of a dataset, its cells)."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_fill_value(np.array(fill, dtype))
    for to, other, dataset, of in mappings:
        plist.set_virtual(to, other.encode(), dataset.encode(), of)
    kind = h5py.h5t.py_create(np.dtype(dtype))
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    h5py.h5d.create(file.id, name.encode(), kind, space(shape), dcpl=plist, lcpl=links)


def sources():
    os.makedirs("parts", exist_ok=True)
    with h5py.File("parts/lines.h5", "w") as f:
        for name, len in [("a", 3), ("b", 4), ("none", 0)]:
            f.create_dataset(name, data=np.arange(len, dtype="i4"), maxshape=(None,), chunks=(2,))
        f.create_dataset("grid", data=np.arange(6, dtype="i4").reshape(2, 3), maxshape=(None, None), chunks=(2, 2))
        f.create_dataset("shorts", data=np.arange(5, dtype="i2"), maxshape=(None,), chunks=(4,))
    # Number 3 is missing, and number 4 is behind it.
    for number in [0, 1, 2, 4]:
        part(number)
    with h5py.File("parts/blocks.h5", "w") as f:
        for number in range(12):
            f[f"block_{number}"] = 10 * number + np.arange(2, dtype="i4")
        f["100%"] = np.arange(5, dtype="i4")
        for number in range(3):
            f[f"{number}%{number}"] = np.arange(2, dtype="i4") + number


def part(number):
    with h5py.File(f"parts/part_{number}.h5", "w") as f:
        f["frame"] = 100 * number + np.arange(6, dtype="i4").reshape(2, 3)
        f[f"frame_{number}"] = 100 * number + np.arange(6, dtype="i4").reshape(2, 3)


def grow():
    with h5py.File("parts/lines.h5", "a") as f:
        for name, len in [("a", 7), ("b", 11), ("grid", 5), ("shorts", 2)]:
            f[name].resize(len, 0)
            f[name][...] = np.arange(f[name].size).reshape(f[name].shape)


def virtual(f):
    lines, every = "parts/lines.h5", (EVER,)
    ever = lambda start=0, stride=1, block=1: space((1,), (start,), (stride,), every, (block,))
    add(f, "line", (3,), (ever(), lines, "a", ever()))
    add(f, "endless_block", (3,), (space((1,), (0,), None, None, every), lines, "a", space((1,), (0,), None, None, every)))
    add(f, "behind", (3,), (ever(4), lines, "a", ever(2)))
    add(f, "shrunk", (5,), (ever(), lines, "shorts", ever()))
    add(f, "doubles", (5,), (ever(), lines, "b", ever()), dtype="f8")
    add(f, "interleaved", (2,), (ever(0, 2), lines, "a", ever()), (ever(1, 2), lines, "b", ever()))
    add(f, "blocks", (2,), (ever(1, 5, 2), lines, "b", ever(1, 4, 3)))
    add(f, "cut_block", (2,), (ever(0, 5, 4), lines, "a", ever()))
    add(f, "cut_source", (2,), (ever(), lines, "b", ever(1, 6, 5)))
    add(f, "no_file", (3,), (ever(), "parts/nothing.h5", "a", ever()))
    add(f, "no_dataset", (3,), (ever(), lines, "nothing", ever()))
    add(f, "no_cells", (3,), (ever(2), lines, "none", ever()))
    add(f, "longest", (3, 1), *[
        (space((3, 1), (row, 0), None, (1, EVER)), lines, name, ever()) for row, name in [(0, "a"), (1, "nothing"), (2, "b")]
    ])
    add(f, "least", (20,), (ever(), lines, "a", ever()), (space((20,), (14,), None, (4,)), "parts/blocks.h5", "100%%", space((5,), (0,), None, (4,))))
    add(f, "rows", (2, 3), (space((2, 3), (0, 0), None, (EVER, 1), (1, 3)), lines, "grid", space((2, 3), (0, 0), None, (EVER, 1), (1, 3))))
    add(f, "columns", (3, 4), (space((3, 4), (0, 0), (1, 2), (1, EVER), (2, 1)), lines, "grid", space((2, 3), (1, 0), None, (1, EVER), (2, 1))))
    add(f, "row_of_column", (2, 1), (space((2, 1), (1, 0), None, (1, EVER)), lines, "grid", space((2, 3), (0, 1), None, (EVER, 1))))
    # Numbered sources.
    frame = space((2, 3))
    add(f, "stack", (1, 2, 3), (space((1, 2, 3), (0, 0, 0), None, (EVER, 1, 1), (1, 2, 3)), "parts/part_%b.h5", "frame", frame))
    add(f, "both_numbers", (1, 3), (space((1, 3), (0, 0), (2, 1), (EVER, 1), (2, 3)), "parts/part_%b.h5", "frame_%b", frame))
    add(f, "spread", (1, 3), (space((1, 3), (1, 0), (3, 1), (EVER, 1), (2, 3)), "parts/part_%b.h5", "/frame", frame))
    add(f, "part_of_each", (1,), (ever(0, 3, 2), "parts/part_%b.h5", "frame", space((2, 3), (1, 0), (1, 2), (1, 2))))
    add(f, "datasets", (5,), (ever(0, 2, 2), "parts/blocks.h5", "block_%b", space((2,))))
    add(f, "odd_names", (5,), (ever(0, 2, 2), "parts/blocks.h5", "%b%%%b", space((2,))))
    add(f, "one_percent", (5,), (space((5,)), "parts/blocks.h5", "100%%", space((5,))))
    add(f, "here", (1,), (ever(0, 2, 2), ".", "own_%b", space((2,))))
    add(f, "no_blocks", (4,), (ever(0, 2, 2), "parts/blocks.h5", "nothing_%b", space((2,))))
    add(f, "mixed", (9, 3), (space((9, 3), (0, 0), (3, 1), (EVER, 1), (2, 3)), "parts/part_%b.h5", "frame", frame), (space((9, 3), (2, 0), (3, 1), (EVER, 1), (1, 3)), lines, "grid", space((2, 3), (0, 0), None, (EVER, 1), (1, 3))))
    for number in range(2):
        f[f"own_{number}"] = np.arange(2, dtype="i4") + 5 * number
    # The library cannot read this one.
    add(f, "cut_first", (2,), (ever(), lines, "shorts", ever(0, 4, 3)))
    # Of other virtual datasets, which are refused: what h5py reads depends on whether the other is open.
    add(f, "twice", (3,), (ever(), ".", "line", ever()))
    add(f, "fixed_of_line", (3,), (space((3,), (0,), None, (3,)), ".", "line", space((3,), (0,), None, (3,))))
    add(f, "more_of_line", (6,), (space((6,), (0,), None, (6,)), ".", "line", space((7,), (1,), None, (6,))))


def labels(f):
    """A dimension that grows with its labels."""
    ever, lines = space((1,), (0,), None, (EVER,), (1,)), "parts/lines.h5"
    add(f, "hours", (3,), (ever, lines, "a", ever))
    add(f, "warmth", (3,), (ever, lines, "a", ever), dtype="f4")
    f["hours"].make_scale("hours")
    f["warmth"].dims[0].attach_scale(f["hours"])


if __name__ == "__main__":
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
    sources()
    for name, versions in [("virtual.h5", ("earliest", "latest")), ("latest.h5", "latest")]:
        with h5py.File(name, "w", libver=versions) as f:
            virtual(f)
    with h5py.File("labels.h5", "w", libver="latest") as f:
        labels(f)
    grow()
    shown = {}
    with h5py.File("virtual.h5") as f:
        for name in f:
            if f[name].is_virtual and name != "cut_first":
                shown[name] = [list(f[name].shape), f[name][...].ravel().tolist()]
    with open("virtual.json", "w") as out:
        json.dump(shown, out)
        out.write("\n")
