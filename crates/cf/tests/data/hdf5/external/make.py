"""Writes `cells.h5`, whose cells are in files of the folder `raw`, and what h5py reads from it as `cells.json`.

    python make.py

The file `raw/big.raw` is not there: tests write it. Needs h5py.
"""

import json
import os

import h5py
import numpy as np

UNLIMITED = h5py.h5f.UNLIMITED

# Each dataset: shape, type, and parts of files. h5py reads these.
READ = {
    "whole": ((10,), "<i4", [("raw/a.raw", 0, 40)]),
    "longer": ((5,), "<i4", [("raw/a.raw", 8, 40)]),
    "table": ((3, 4), ">i2", [("raw/a.raw", 2, 6), ("raw/b.raw", 4, 10), ("raw/a.raw", 0, 100)]),
    "cube": ((2, 3, 4), "<i2", [("raw/b.raw", 10, 2), ("raw/a.raw", 0, 38), ("./raw/b.raw", 0, UNLIMITED)]),
    "open_end": ((10,), "<f4", [("raw/a.raw", 0, UNLIMITED)]),
    "number": ((1,), "<i8", [("raw/a.raw", 8, 8)]),
    "text": ((4,), "S5", [("raw/text.raw", 0, 20)]),
    # The files end before the cells do.
    "short": ((12,), "<i4", [("raw/a.raw", 20, 32), ("raw/b.raw", 8, 16)]),
    "short_end": ((4, 5), "<i4", [("raw/a.raw", 0, UNLIMITED)]),
    "beyond": ((3,), "<i4", [("raw/b.raw", 4000, 12)]),
}
# These are refused, or their files are missing.
NOT_READ = {
    "split": ((5,), "<i4", [("raw/a.raw", 0, 6), ("raw/b.raw", 0, 14)]),
    "cut": ((10,), "<i4", [("raw/text.raw", 1, 40)]),
    "above": ((4,), "u1", [("../legal.h5", 0, 4)]),
    "root": ((4,), "u1", [("/etc/passwd", 0, 4)]),
    "through": ((4,), "u1", [("raw/../../legal.h5", 0, 4)]),
    "escaped": ((4,), "u1", [("raw/%2e%2e/%2e%2e/legal.h5", 0, 4)]),
    "missing": ((4,), "u1", [("raw/a.raw", 0, 2), ("raw/none.raw", 0, 2)]),
    "big": ((700, 500), "<i4", [("raw/big.raw", 800, 100_000), ("raw/big.raw", 200_000, 1_200_004), ("raw/big.raw", 0, UNLIMITED)]),
}


def main():
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    np.arange(10, dtype="<i4").tofile("raw/a.raw")
    np.arange(100, 105, dtype="<i4").tofile("raw/b.raw")
    with open("raw/text.raw", "wb") as f:
        f.write(b"one\0\0two\0\0threefour\0\0\0")
    np.array([10.0, 20.0, 30.0], "<f4").tofile("raw/lat.raw")
    with h5py.File("cells.h5", "w") as f:
        for name, (shape, dtype, parts) in (READ | NOT_READ).items():
            most = (None, *shape[1:]) if name == "short_end" else None
            f.create_dataset(name, shape, dtype, maxshape=most, external=parts, fillvalue=None if dtype == "S5" else 7)
        lat = f.create_dataset("lat", (3,), "<f4", external=[("raw/lat.raw", 0, 12)])
        lat.make_scale("lat")
        temperature = f.create_dataset("temperature", (3, 2), "<i4", external=[("raw/a.raw", 4, 24)])
        temperature.dims[0].attach_scale(lat)
    with h5py.File("cells.h5") as f, open("cells.json", "w") as out:
        read = lambda name: [it.decode() if isinstance(it, bytes) else it for it in f[name][...].ravel().tolist()]
        json.dump({name: read(name) for name in [*READ, "lat", "temperature"]}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
