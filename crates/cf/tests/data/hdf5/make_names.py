"""Writes files in which few objects have many names: names*.h5.gz, diamonds.h5, soft.h5.

python3 make_names.py
"""

import gzip
import os

import h5py
import numpy as np


def many_names(libver, block):
    """One dataset of 100 attributes under 400 names, and one group of 100 attributes under 100."""
    with h5py.File("names.h5", "w", libver=libver, userblock_size=block) as file:
        variable = file.create_dataset("v", data=np.arange(5))
        links, deep = file.create_group("links"), file.create_group("deep")
        deep["v"] = variable
        for at in range(399):
            links[f"link_{at:03d}"] = variable if at % 2 else h5py.SoftLink("/v")
        for at in range(99):
            links[f"group_{at:02d}"] = deep if at % 2 else h5py.SoftLink("/deep")
        for owner in [variable, deep]:
            for at in range(100):
                owner.attrs[f"attribute_{at:02d}"] = "x" * 200
    with open("names.h5", "rb") as file:
        return file.read()


for name, libver, block in [("names", "latest", 0), ("names_1", "earliest", 512)]:
    with gzip.GzipFile(f"{name}.h5.gz", "wb", mtime=0) as file:
        file.write(many_names(libver, block))
os.remove("names.h5")

# 2^30 paths lead to the innermost group, and each is in itself.
with h5py.File("diamonds.h5", "w", libver="latest") as file:
    group = file
    for at in range(30):
        inner = group.create_group("a")
        group["b"] = inner
        inner["root"] = file["/"]
        group = inner
    group["x"] = 7

# Each link names the one before 20 times.
with h5py.File("soft.h5", "w", libver="latest") as file:
    file["x"] = 7
    file["l00"] = h5py.SoftLink("/")
    for at in range(1, 15):
        file[f"l{at:02d}"] = h5py.SoftLink("/".join([f"l{at - 1:02d}"] * 20))
    file["y"] = h5py.SoftLink("l14/x")
