"""Writes files with rarely used parts of HDF5, and beside each what h5py reads from it, as JSON.

    python make_rare.py [FOLDER]

Needs the modules of make.py. Functions that h5py does not have are called in the HDF5 library that it brings.
"""

import ctypes
import glob
import gzip
import os
import sys

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

from make import describe

LIBRARY = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(h5py.__file__), "../h5py.libs/libhdf5-*"))[0])


def legal(path):
    """Links of all classes, committed types, and null dataspaces."""
    with h5py.File(path, "w") as f:
        f["kelvin"] = np.dtype("f4")
        f["names"] = h5py.string_dtype()
        f["a"] = np.arange(4.0)
        for of in (f, f["a"]):
            of.attrs.create("reference", 273.15, dtype=f["kelvin"])
            of.attrs.create("levels", [1.5, 2.5], dtype=f["kelvin"])
            of.attrs.create("by", ["one", "two"], dtype=f["names"])
        f.create_dataset("b", data=np.arange(3.0), dtype=f["kelvin"])
        f["b"].attrs["units"] = "m"
        f["a"].attrs["empty"] = h5py.Empty("S5")
        f["nothing"] = h5py.Empty("f8")
        f["no_text"] = h5py.Empty(h5py.string_dtype())
        order = h5p.create(h5p.GROUP_CREATE)
        order.set_link_creation_order(h5p.CRT_ORDER_TRACKED)
        run = h5py.Group(h5py.h5g.create(f.id, b"run42", gcpl=order))
        run["x"] = np.arange(3)
        run["inner/y"] = np.arange(2)
        run["up"] = h5py.SoftLink("/")
        run["zzlink"] = h5py.SoftLink("/nowhere")
        f["latest"] = h5py.SoftLink("/run42")
        f["same"] = run
        f["far"] = h5py.ExternalLink("other.h5", "/x")
    # A link of a class that a program defined: the byte before the order of creation, the length and the name.
    content = bytearray(open(path, "rb").read())
    content[content.index(b"zzlink") - 10] = 187
    open(path, "wb").write(content)


def deep(path):
    """Groups within groups."""
    with h5py.File(path, "w", libver="latest") as f:
        for _ in range(70):
            f = f.create_group("g")
        f["x"] = np.arange(5)


def bits(path):
    """Integers that use some of their bits, with and without the n-bit filter."""
    kinds = {
        "i12": (h5t.STD_I16LE, 12, 0),
        "i12_high": (h5t.STD_I16LE, 12, 3),
        "u20": (h5t.STD_U32LE, 20, 5),
        "i12be": (h5t.STD_I32BE, 12, 7),
        "i40": (h5t.STD_I64LE, 40, 0),
        "u3": (h5t.STD_U8LE, 3, 1),
    }
    with h5py.File(path, "w") as f:
        for name, (base, precision, offset) in kinds.items():
            kind = base.copy()
            kind.set_precision(precision)
            kind.set_offset(offset)
            values = np.arange(7) - (0 if name.startswith("u") else 3)
            for layout in ("contiguous", "chunked", "nbit"):
                plist = h5p.create(h5p.DATASET_CREATE)
                if layout != "contiguous":
                    plist.set_chunk((4,))
                    plist.set_fill_value(np.array(5, "i8"))
                if layout == "nbit":
                    plist.set_filter(h5py.h5z.FILTER_NBIT, 0, ())
                # The dataset has a place for a chunk that was never written.
                space = h5s.create_simple((12 if layout != "contiguous" else 7,))
                dataset = h5d.create(f.id, f"{name}_{layout}".encode(), kind, space, plist)
                part = space.copy()
                part.select_hyperslab((0,), (7,))
                dataset.write(h5s.create_simple((7,)), part, values.astype("i8"))
        kind = h5t.STD_I16LE.copy()
        kind.set_precision(12)
        attribute = h5py.h5a.create(f["i12_nbit"].id, b"least", kind, h5s.create_simple((2,)))
        attribute.write(np.array([-7, 7], "i8"), mtype=h5t.NATIVE_INT64)


def sizes(address, length):
    def write(path):
        create, access = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.FILE_ACCESS)
        create.set_sizes(address, length)
        f = h5py.File(h5f.create(path.encode(), h5f.ACC_TRUNC, create, access))
        f["a"] = np.arange(5.0)
        f.create_dataset("b", data=np.arange(30, dtype="i4"), chunks=(4,))
        f["a"].attrs["units"] = "m"
        f["group/text"] = ["one", "two"]
        f["group/link"] = h5py.SoftLink("/a")
        f.close()

    return write


def shared(kinds):
    """Messages that datasets share, in one index per kind."""

    def write(path):
        create = h5p.create(h5p.FILE_CREATE)
        file = ctypes.c_int64(create.id)
        number = ctypes.c_uint
        assert LIBRARY.H5Pset_shared_mesg_nindexes(file, number(len(kinds))) >= 0
        for at, kind in enumerate(kinds):
            assert LIBRARY.H5Pset_shared_mesg_index(file, number(at), number(kind), number(10)) >= 0
        f = h5py.File(h5f.create(path.encode(), h5f.ACC_TRUNC, create, h5p.create(h5p.FILE_ACCESS)))
        for k in range(3):
            data = np.arange(6).reshape(2, 3) + k
            dataset = f.create_dataset(f"d{k}", data=data, maxshape=(None, 3), chunks=(1, 3), compression="gzip", fillvalue=-1)
            dataset.attrs["units"] = "m"
            dataset.attrs["long_name"] = "a long name, the same in each dataset"
        for k in range(12):
            dataset.attrs[f"note {k}"] = f"one of three texts, {k % 3}"
        f.close()

    return write


def image(path):
    """Metadata that is only in the image of the cache; the rest of the file has an older version."""

    class Config(ctypes.Structure):
        _fields_ = [("version", ctypes.c_int), ("image", ctypes.c_bool), ("resize", ctypes.c_bool), ("age", ctypes.c_int)]

    with h5py.File(path, "w", libver="latest", userblock_size=512) as f:
        f["old"] = np.arange(3)
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
    config = Config(1, True, False, -1)
    assert LIBRARY.H5Pset_mdc_image_config(ctypes.c_int64(access.id), ctypes.byref(config)) >= 0
    f = h5py.File(h5f.open(path.encode(), h5f.ACC_RDWR, access))
    f["a"] = np.arange(5.0)
    f.create_dataset("b", data=np.arange(20), chunks=(4,))
    f.attrs["title"] = "image"
    f["group/x"] = np.arange(3)
    compact = h5p.create(h5p.DATASET_CREATE)
    compact.set_layout(h5d.COMPACT)
    space = h5s.create_simple((7,))
    h5d.create(f.id, b"compact", h5t.STD_I32LE, space, dcpl=compact).write(space, space, np.arange(7, 14, dtype="i4"))
    f.close()


def many(path, compressed):
    """More than 512 KiB of links and of attributes."""
    with h5py.File(path, "w", libver="latest") as f:
        plist = h5p.create(h5p.GROUP_CREATE)
        if compressed:
            assert LIBRARY.H5Pset_deflate(ctypes.c_int64(plist.id), ctypes.c_uint(6)) >= 0
        group = h5py.Group(h5py.h5g.create(f.id, b"links", gcpl=plist))
        group["first"] = np.arange(3)
        count = 40 if compressed else 260
        for i in range(count):
            group[f"link {i:03d} " + "x" * 3000] = group["first"]
        for i in range(0 if compressed else 260):
            group["first"].attrs[f"attribute {i:03d} " + "x" * 3000] = i
        for name, length in [("long", 5_000), ("longer", 100_000)]:
            group["first"].attrs[name] = "y" * length


FILES = {
    "legal.h5": legal,
    "deep.h5": deep,
    "bits.h5": bits,
    "sizes_2_4.h5": sizes(2, 4),
    "sizes_4_8.h5": sizes(4, 8),
    "sizes_8_2.h5": sizes(8, 2),
    "shared_once.h5": shared([0x182A]),
    "shared.h5": shared([2, 8, 32, 0x800, 0x1000]),
    "image.h5": image,
}

if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name, write in FILES.items():
        path = os.path.join(folder, name)
        write(path)
        describe(path)
    for name in ("many", "many_compressed"):
        path = os.path.join(folder, name + ".h5")
        many(path, name == "many_compressed")
        with gzip.GzipFile(path + ".gz", "wb", 9, mtime=0) as out:
            out.write(open(path, "rb").read())
        os.remove(path)
