"""Writes the files beside this script: `b` is numbers in one, and references, which cannot be read, in the other."""

from pathlib import Path

import h5py
import numpy as np

folder = Path(__file__).parent
for name, first in (("numbers.h5", 0), ("references.h5", 3)):
    with h5py.File(folder / name, "w", libver="latest") as file:
        time = file.create_dataset("time", data=np.arange(first, first + 3, dtype="i4"))
        time.make_scale("time")
        file.create_dataset("a", data=np.arange(first, first + 3, dtype="i4"))
        if first == 0:
            file.create_dataset("b", data=np.arange(3, dtype="i4"))
        else:
            cells = np.array([file["a"].ref] * 3, dtype=h5py.ref_dtype)
            file.create_dataset("b", data=cells, dtype=h5py.ref_dtype)
        for variable in ("a", "b"):
            file[variable].dims[0].attach_scale(time)
