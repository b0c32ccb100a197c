"""Writes files with virtual datasets: `old.h5` and `latest.h5`, whose lists of mappings differ in version, and `nested.h5`, whose
virtual datasets are those of virtual datasets. What h5py reads from the last is in `nested.json`.

    python make.py [FOLDER]

Cell (y, x) of part i is 100 i + 5 y + x. Part 3 does not exist. Needs h5py.
"""

import json
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
        add("column", (4,), parts=[(slice(None), frame(0)[:, 3])])
        add("float", (4, 5), dtype="f4", parts=[(slice(None), frame(0))])
        # These are refused.
        add("wide", (20,), parts=[(slice(None), frame(0))])
        for name, file in [("above", "../legal.h5"), ("root", "/etc/passwd"), ("through", "parts/../../legal.h5")]:
            add(name, (4,), parts=[(slice(None), h5py.VirtualSource(file, "a", (4,)))])


def nested(path):
    """Virtual datasets of virtual ones, with other types, and of cells that were never written."""
    whole = slice(None)
    with h5py.File(path, "w", libver=("earliest", "latest")) as f:
        numbers = np.array([-300.5, -1.9, 0.5, 127.9, 255.9, 256, 1e10, np.inf, -np.inf, 3.5e38])
        f["doubles"] = numbers
        f["words"] = np.array([-(2**63), -129, -1, 0, 128, 256, 2**24 + 1, 2**53 + 1, 2**62, 2**63 - 1])
        f["half"] = np.array([1.5], "f2")
        f["nan"] = np.array([1.0, np.nan])
        part = f.create_dataset("partial", (7, 4), "i2", maxshape=(None, 4), chunks=(2, 3), fillvalue=5)
        part[:3] = np.arange(12).reshape(3, 4)
        f.create_dataset("outside", (6,), "<i4", external=[("parts/cells.raw", 4, 24)])

        def add(name, shape, dtype, *parts, fill=-2):
            layout = h5py.VirtualLayout(shape, dtype)
            for at, of in parts:
                layout[at] = of
            f.create_virtual_dataset(name, layout, fillvalue=fill)

        of = lambda file, name, shape, dtype="i4": h5py.VirtualSource(file, name, shape, dtype)
        add("stack", (4, 4, 5), "f8", (whole, of("old.h5", "stack", (4, 4, 5))))
        add("turned", (5, 4, 4), "i4", (slice(0, 4), of("old.h5", "stack", (4, 4, 5))[:, :, 1:5]))
        add("steps", (4, 2), "i8", (whole, of("latest.h5", "rows", (12, 5))[2:10:2, 1:5:3]))
        add("column", (12,), "i4", (whole, of("old.h5", "rows", (12, 5))[:, 2]))
        add("corner", (2, 2), "f4", ((1, whole), of("old.h5", "stack", (4, 4, 5))[1:4:2, 3, 2]))
        add("gaps", (8, 6), "i4", ((slice(1, 8), slice(0, 4)), of(".", "partial", (7, 4), "i2")))
        add("gaps_twice", (8, 3), "f8", (whole, of(".", "gaps", (8, 6))[:, ::2]))
        add("texts", (3, 2), h5py.string_dtype(), *[((whole, i), of("old.h5", "texts", (2, 3), h5py.string_dtype())[i]) for i in range(2)], fill=None)
        add("from_outside", (2, 3), "i2", (0, of(".", "outside", (6,))[:3]), (1, of(".", "outside", (6,))[3:]))
        for dtype in ["i1", "u1", "i4", "u8", "f4"]:
            add(f"doubles_{dtype}", (10,), dtype, (whole, of(".", "doubles", (10,), "f8")), fill=1)
            add(f"words_{dtype}", (10,), dtype, (whole, of(".", "words", (10,), "i8")), fill=1)
        add("deep_0", (6,), "i4", (whole, of("old.h5", "own", (6,))))
        for at in range(1, 16):
            add(f"deep_{at}", (6,), "i4", (whole, of(".", f"deep_{at - 1}", (6,))))
    with h5py.File(path) as f, open(path.replace(".h5", ".json"), "w") as out:
        read = lambda name: [it.decode() if isinstance(it, bytes) else it for it in f[name][...].ravel().tolist()]
        shown = {name: [str(it) if isinstance(it, float) else it for it in read(name)] for name in f if f[name].is_virtual}
        json.dump(shown, out, indent=None)
        out.write("\n")
    with h5py.File(path, "a", libver="latest") as f:
        # These are refused. The library itself does not survive some of them.
        add("deep_16", (6,), "i4", (whole, of(".", "deep_15", (6,))))
        add("self", (6,), "i4", (whole, of(".", "self", (6,))))
        add("self_by_name", (6,), "i4", (whole, of("./nested.h5", "self_by_name", (6,))))
        add("here", (6,), "i4", (whole, of(".", "there", (6,))))
        add("there", (6,), "i4", (whole, of("nested.h5", "here", (6,))))
        add("of_half", (1,), "f4", (whole, of(".", "half", (1,), "f2")))
        add("of_nan", (2,), "i4", (whole, of(".", "nan", (2,), "f8")))
        f.create_dataset("unwritten", (140_000,), "u1", chunks=(100,))
        add("pieces", (70_000,), "u1", (whole, of(".", "unwritten", (140_000,), "u1")[::2]), fill=0)
        add("of_refused", (4,), "i4", (whole, of("old.h5", "above", (4,))))


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for number in range(3):
        part(os.path.join(folder, f"parts/part_{number}.h5"), number)
    whole(os.path.join(folder, "old.h5"), ("earliest", "latest"))
    whole(os.path.join(folder, "latest.h5"), "latest")
    os.chdir(folder)
    np.arange(40, 50, dtype="<i4").tofile("parts/cells.raw")
    nested("nested.h5")
