"""Writes files with virtual datasets: `old.h5` and `latest.h5`, whose lists of mappings differ in version.

    python make.py [FOLDER]

Cell (y, x) of part i is 100 i + 5 y + x. Part 3 does not exist. Needs h5py.
"""

import os
import sys

import h5py
import numpy as np


def part(path, number):
    with h5py.File(path, "w") as f:
        cells = 100 * number + np.arange(20, dtype="i4").reshape(4, 5)
        f.create_dataset("group/frame", data=cells, chunks=(2, 3), compression="gzip")
        f.create_dataset("cube", data=np.stack([cells, cells + 50]), chunks=(1, 2, 5))
        f.create_dataset("text", data=[f"{number} {i}" for i in range(3)], dtype=h5py.string_dtype())


def source(number, name, shape, dtype="i4"):
    return h5py.VirtualSource(f"parts/part_{number}.h5", name, shape, dtype)


def whole(path, versions):
    with h5py.File(path, "w", libver=versions) as f:
        f["own"] = np.arange(6, dtype="i4")
        frame = lambda number: source(number, "group/frame", (4, 5))

        def add(name, shape, fill=-1, dtype="i4", **parts):
            layout = h5py.VirtualLayout(shape, dtype)
            for at, of in parts.pop("parts"):
                layout[at] = of
            f.create_virtual_dataset(name, layout, fillvalue=fill)

        add("stack", (4, 4, 5), parts=[(i, frame(i)) for i in range(4)])
        add("rows", (12, 5), parts=[(slice(4 * i, 4 * i + 4), frame(i)) for i in range(3)])
        add("every_second", (12,), parts=[(slice(0, 12, 2), h5py.VirtualSource(".", "own", (6,)))])
        add("strided", (2, 3), parts=[(slice(None), frame(1)[1:4:2, 0:5:2])])
        add("inner", (6, 6), parts=[((slice(1, 3), slice(2, 5)), frame(2)[2:4, 1:4])])
        add("second", (4, 5), parts=[(slice(None), source(0, "cube", (2, 4, 5))[1])])
        add("texts", (2, 3), None, h5py.string_dtype(), parts=[(i, source(i, "text", (3,), h5py.string_dtype())) for i in range(2)])
        # These are refused.
        add("column", (4,), parts=[(slice(None), frame(0)[:, 3])])
        add("wide", (20,), parts=[(slice(None), frame(0))])
        add("float", (4, 5), dtype="f4", parts=[(slice(None), frame(0))])
        for name, file in [("above", "../legal.h5"), ("root", "/etc/passwd"), ("through", "parts/../../legal.h5")]:
            add(name, (4,), parts=[(slice(None), h5py.VirtualSource(file, "a", (4,)))])


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for number in range(3):
        part(os.path.join(folder, f"parts/part_{number}.h5"), number)
    whole(os.path.join(folder, "old.h5"), ("earliest", "latest"))
    whole(os.path.join(folder, "latest.h5"), "latest")
