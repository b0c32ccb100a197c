"""Writes files with compounds, and beside each what h5py reads of them, as JSON: texts as gridfusion shows values.

    python make.py

Needs h5py, netCDF4 and numpy.
"""

import json
import os

import h5py
import netCDF4
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
QUALITY = h5py.enum_dtype({"bad": 0, "fair": 1, "good": 2}, basetype="i1")
TEXT = h5py.string_dtype()
LIST = h5py.vlen_dtype(np.dtype("<f8"))
POS = np.dtype([("x", "<f8"), ("y", "<f8")])


def shown(value):
    """Returns a value as text: lists, structs, and nothing for NaN."""
    if isinstance(value, bytes):
        return value.decode("utf-8").rstrip("\0")
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, np.ndarray):
        return "[" + ", ".join(shown(it) for it in value.ravel()) + "]"
    if isinstance(value, np.void) and value.dtype.names:
        return "{" + ", ".join(f"{name}: {shown(value[name])}" for name in value.dtype.names) + "}"
    if isinstance(value, np.void):
        return bytes(value).hex()
    if isinstance(value, np.complexfloating):
        return "{re: %s, im: %s}" % (shown(value.real), shown(value.imag))
    if isinstance(value, np.floating):
        return "" if np.isnan(value) else repr(float(value))
    return str(value)


def named(dtype, value):
    """Returns a field as text: h5py shows enumerations as numbers."""
    names = h5py.check_enum_dtype(dtype)
    if names:
        return {number: name for name, number in names.items()}[int(value)]
    return shown(value)


def rows(dataset, names):
    cells = dataset[()].ravel()
    return [[named(dataset.dtype[name], cell[name]) for name in names] for cell in cells]


def readings(count):
    dtype = np.dtype(
        [
            ("station", "S6"),
            ("temp", "<f4"),
            ("pos", POS),
            ("quality", QUALITY),
            ("ok", "?"),
            ("samples", LIST),
            ("note", TEXT),
            ("flags", "u1", (3,)),
            ("grid", "<i2", (2, 2)),
            ("corners", POS, (2,)),
            ("codes", "S3", (2,)),
            ("z", "<c8"),
        ]
    )
    data = np.zeros(count, dtype)
    for at in range(count):
        data[at]["station"] = f"st{at}".encode()
        data[at]["temp"] = np.nan if at % 7 == 3 else at * 0.5 - 2
        data[at]["pos"] = (at + 0.25, -at - 0.5)
        data[at]["quality"] = at % 3
        data[at]["ok"] = at % 2 == 0
        data[at]["samples"] = np.arange(at % 4) + 0.5
        data[at]["note"] = "é" * (at % 3)
        data[at]["flags"] = [at % 256, 1, 255]
        data[at]["grid"] = [[at, -at], [3, 4]]
        data[at]["corners"] = [(at + 0.5, 1.5), (2.5, -at - 0.5)]
        data[at]["codes"] = [b"ab", b"xyz"]
        data[at]["z"] = at + 0.5 - 1.5j
    return data


def big(count):
    """Big-endian fields in another order than their offsets, with gaps."""
    dtype = np.dtype(
        {
            "names": ["late", "early", "middle"],
            "formats": [">f8", ">i2", ">u4"],
            "offsets": [16, 1, 8],
            "itemsize": 29,
        }
    )
    data = np.zeros(count, dtype)
    data["late"] = np.arange(count) / 4
    data["early"] = -np.arange(count)
    data["middle"] = np.arange(count) + (1 << 31)
    return data


def compounds(path):
    expected = {}
    with h5py.File(path, "w") as f:
        data = readings(25)
        f.create_dataset("contiguous", data=data)
        f.create_dataset("chunked", data=data, chunks=(10,), shuffle=True, compression="gzip")
        plane = readings(12).reshape(3, 4)
        f.create_dataset("plane", data=plane, chunks=(2, 3), compression="gzip", fletcher32=True)
        simple = np.dtype([("a", "<i4"), ("b", "S2")])
        f.create_dataset("single", data=np.array((7, b"x"), simple))
        f.create_dataset("big", data=big(9), chunks=(4,), shuffle=True)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((3,))
        small = np.array([(1, b"p"), (2, b"q"), (3, b"rs")], simple)
        compact = h5py.h5d.create(f.id, b"compact", h5py.h5t.py_create(simple), space, plist)
        compact.write(h5py.h5s.ALL, h5py.h5s.ALL, small)
        f.create_dataset("unwritten", (4,), simple, fillvalue=np.array((5, b"zz"), simple), chunks=(2,))
        f["unwritten"][:1] = small[:1]
        with_ref = np.dtype([("to", h5py.ref_dtype), ("n", "<u2"), ("region", h5py.regionref_dtype)])
        refs = np.zeros(2, with_ref)
        for at in range(2):
            refs[at] = (f["big"].ref, at + 40, f["big"].regionref[:1])
        f.create_dataset("references", data=refs)
        complex_dtype = np.dtype([("real", "<f8"), ("imag", "<f8")])
        f.create_dataset("matlab", data=np.array([(1.5, -2.5), (0.5, 3.5)], complex_dtype))
        for name, dataset in f.items():
            if name == "matlab":
                cells = dataset[()]
                columns = ["matlab_re", "matlab_im"]
                values = [[shown(it["real"]), shown(it["imag"])] for it in cells]
            else:
                columns = [it for it in dataset.dtype.names if it not in ("to", "region")]
                values = rows(dataset, columns)
            expected[name] = {"columns": columns, "rows": values}
    return expected


def netcdf(path):
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("station", 3)
        wind = np.dtype([("speed", "f4"), ("direction", "i4")])
        obs = np.dtype([("id", "S1", (4,)), ("wind", wind), ("levels", "f8", (2,))])
        wind_type = f.createCompoundType(wind, "wind")
        obs_type = f.createCompoundType(obs, "obs")
        both = f.createVariable("both", obs_type, ("station",), zlib=True)
        data = np.zeros(3, obs)
        for at in range(3):
            data[at]["id"] = list(f"s{at}  ")
            data[at]["wind"] = (at + 0.5, 10 * at)
            data[at]["levels"] = [at, at + 0.25]
        both[:] = data
        one = f.createVariable("one", wind_type, ("station",))
        one[:] = data["wind"]
        one.long_name = "wind"
        f.createVariable("t", "f8", ("station",))[:] = [1.5, 2.5, 3.5]
    with h5py.File(path) as f:
        both = ((name, f[name]) for name in ("both", "one"))
        return {
            name: {"columns": list(it.dtype.names), "rows": rows(it, it.dtype.names)}
            for name, it in both
        }


def versions(path):
    """The newest version of types."""
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("latest", data=readings(5), chunks=(2,))
        dataset = f["latest"]
        return {"latest": {"columns": list(dataset.dtype.names), "rows": rows(dataset, dataset.dtype.names)}}


def nested(path):
    """Texts and lists within inner compounds and arrays."""
    item = np.dtype([("name", TEXT), ("n", ">i4"), ("values", LIST)])
    inner = np.dtype([("x", "<f4"), ("label", TEXT), ("deep", item), ("codes", "S3")])
    dtype = np.dtype([("id", "<i2"), ("inner", inner), ("items", item, (2,)), ("names", TEXT, (3,)), ("last", TEXT)])

    def one(at):
        return (f"n{at}" * (at % 3), at * 1000, np.arange(at % 4) - 0.5)

    def cell(at):
        of = (at + 0.5, "é" * (at % 4), one(at + 1), b"ab")
        return (at, of, [one(at), one(at + 2)], [f"a{at}", "", "ü"], "end" * (at % 2))

    data = np.array([cell(at) for at in range(25)], dtype)
    expected = {}
    with h5py.File(path, "w") as f:
        f.create_dataset("contiguous", data=data)
        f.create_dataset("chunked", data=data, chunks=(10,), shuffle=True, compression="gzip")
        f.create_dataset("plane", data=data[:12].reshape(3, 4), chunks=(2, 3), compression="gzip")
        f.create_dataset("unwritten", (5,), dtype, chunks=(2,))
        f["unwritten"][:1] = data[1:2]
        for name, dataset in f.items():
            expected[name] = {"columns": list(dtype.names), "rows": rows(dataset, dtype.names)}
    return expected


def elsewhere(path):
    """Compounds that are those of other datasets and files."""
    cells, folder = big(9), os.path.dirname(path)
    cells.tofile(os.path.join(folder, "cells.raw"))
    with h5py.File(path, "w") as f:
        f.create_dataset("own", data=big(9)[::-1], chunks=(4,), compression="gzip")
        layout = h5py.VirtualLayout((2, 10), cells.dtype)
        layout[0, :9] = h5py.VirtualSource("compounds.h5", "big", (9,))
        layout[1, :3] = h5py.VirtualSource(".", "own", (9,))[1:8:3]
        f.create_virtual_dataset("joined", layout)
        f.create_dataset("outside", (9,), cells.dtype, external=[("cells.raw", 0, cells.nbytes)])
        texts = h5py.VirtualLayout((2,), readings(2).dtype)
        texts[:] = h5py.VirtualSource("compounds.h5", "contiguous", (25,))[:2]
        f.create_virtual_dataset("texts", texts)
    with h5py.File(path) as f:
        read = {name: f[name] for name in ("own", "joined", "outside")}
        return {
            name: {"columns": list(it.dtype.names), "rows": rows(it, it.dtype.names)} for name, it in read.items()
        }


def lists_first(path):
    """Compounds whose first field is a list, beside a virtual dataset of the same file."""
    with h5py.File(path, "w") as f:
        f.create_dataset("part", data=np.arange(3, dtype="<i4"))
        data = np.zeros(2, np.dtype([("samples", LIST), ("n", "<i4")]))
        for at in range(2):
            data[at] = (np.arange(at + 1) + 0.5, at)
        f.create_dataset("lists", data=data)
        layout = h5py.VirtualLayout((3,), "<i4")
        layout[:] = h5py.VirtualSource(".", "part", (3,))
        f.create_virtual_dataset("virtual", layout)


lists_first(os.path.join(HERE, "lists_first.h5"))
for name, write in (("compounds.h5", compounds), ("compounds.nc", netcdf), ("latest.h5", versions), ("nested.h5", nested), ("elsewhere.h5", elsewhere)):
    expected = write(os.path.join(HERE, name))
    with open(os.path.join(HERE, os.path.splitext(name)[0] + name[-3:].replace(".", "_") + ".json"), "w") as f:
        json.dump(expected, f, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        f.write("\n")
