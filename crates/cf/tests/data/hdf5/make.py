"""Writes the test files of this folder, and beside each what h5py or netCDF4 reads from it, as JSON.

    python make.py [FOLDER [FILE …]]

Needs h5py, hdf5plugin, netCDF4 and h5netcdf. `describe` is of use for other files, too.
"""

import ctypes
import glob
import itertools
import json
import os
import sys

import h5netcdf
import h5py
import hdf5plugin
import netCDF4
import numpy as np


def cells(array):
    """Texts as a list, other cells as hexadecimal little-endian bytes."""
    array = np.asarray(array)
    if array.dtype.kind in "OUT":
        texts = [t if isinstance(t, str) else (t or b"").decode("utf-8", "replace") for t in array.ravel().tolist()]
        return {"texts": texts}
    if array.dtype.kind == "S":
        # NumPy drops zeros at the end.
        return {"texts": [t.decode("utf-8", "replace") for t in array.ravel().tolist()]}
    if array.dtype.kind == "b":
        array = array.astype("u1")
    if array.dtype.kind != "V":
        array = array.astype(array.dtype.newbyteorder("<"))
    return {"bytes": np.ascontiguousarray(array).tobytes().hex()}


def attribute(value):
    if isinstance(value, h5py.Empty):
        return [""] if value.dtype.kind in "SO" else []
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, np.ndarray) and value.dtype.kind == "S":
        return [v.decode("utf-8", "replace") for v in value.ravel().tolist()]
    flat = np.asarray(value).ravel().tolist()
    return [v.decode() if isinstance(v, bytes) else int(v) if isinstance(v, bool) else plain(v) for v in flat]


def plain(value):
    """JSON has no NaN and no infinity."""
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


# Datasets that are not read.
NOT_READ = ["compound", "list", "inner", "brain", "virtual", "external", "not_known"]

INTERNAL = ("DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "CLASS", "NAME", "_NCProperties", "_nc3_strict")


def attributes_of_h5(of):
    named = {}
    for name in of.attrs:
        if name in INTERNAL or name.startswith("_Netcdf4"):
            continue
        value = of.attrs[name]
        if isinstance(value, np.ndarray) and value.dtype.kind in "V":
            continue
        if isinstance(value, h5py.Reference):
            continue
        named[name] = attribute(value)
    return named


def read_h5(of):
    if of.shape is None:
        return np.empty(0, of.dtype)
    if of.dtype.kind != "V" or of.dtype.names:
        return of[()]
    # h5py does not convert tagged bytes.
    array = np.empty(of.shape, of.dtype)
    of.id.read(h5py.h5s.ALL, h5py.h5s.ALL, array, of.id.get_type())
    return array


def dimensions(of):
    """The names of axes that have a dimension scale."""
    if of.is_scale:
        return [of.name.strip("/")]
    return [axis[0].name.strip("/") if len(axis) else None for axis in of.dims]


def chunks(of):
    """The number of stored chunks. The library counts those of an implicit index only up to the shape."""
    if of.chunks is None or of.id.get_create_plist().get_alloc_time() == h5py.h5d.ALLOC_TIME_EARLY:
        return {}
    return {"chunks": of.id.get_num_chunks()}


def describe_h5(path):
    """What h5py reads from a file."""
    variables = {}

    def visit(name, of):
        if not isinstance(of, h5py.Dataset) or name in NOT_READ:
            return
        # A null dataspace has no cells, as an axis without elements.
        shape = [0] if of.shape is None else list(of.shape)
        variables[name] = {
            "shape": shape,
            "dims": dimensions(of) if of.shape is not None else [None],
            "attributes": attributes_of_h5(of),
            **chunks(of),
            **cells(read_h5(of)),
        }

    with h5py.File(path) as file:
        file.visititems(visit)
        return {"variables": variables, "attributes": attributes_of_h5(file)}


def padded(dataset, shape, values):
    """NetCDF-C mixes up the cells of a variable that is shorter than one of several unlimited dimensions."""
    if not isinstance(dataset, h5py.Dataset) or list(dataset.shape) == list(shape):
        return values
    array = np.full(shape, dataset.fillvalue, dataset.dtype)
    array[tuple(slice(0, n) for n in dataset.shape)] = dataset[...]
    return array


def describe_nc(path):
    """What netCDF4 reads from a file."""
    variables = {}

    def visit(group, prefix):
        for name, of in group.variables.items():
            if isinstance(of.datatype, (netCDF4.VLType, netCDF4.CompoundType)):
                continue
            of.set_auto_maskandscale(False)
            of.set_auto_chartostring(False)
            values, dims, shape = of[...], list(of.dimensions), list(of.shape)
            if of.dtype != np.dtype("S1") and of.dtype is not str:
                other = f"{prefix}_nc4_non_coord_{name}"
                values = padded(h5[other if other in h5 else prefix + name], shape, values)
            if of.dtype == np.dtype("S1") and shape and shape[-1]:
                values = np.ascontiguousarray(values).view(f"S{shape[-1]}").reshape(shape[:-1])
                dims, shape = dims[:-1], shape[:-1]
            named = {k: attribute(of.getncattr(k)) for k in of.ncattrs()}
            variables[prefix + name] = {"shape": shape, "dims": dims, "attributes": named, **cells(values)}
        for name, child in group.groups.items():
            visit(child, f"{prefix}{name}/")

    with netCDF4.Dataset(path) as file, h5py.File(path) as h5:
        visit(file, "")
        return {"variables": variables, "attributes": {k: attribute(file.getncattr(k)) for k in file.ncattrs()}}


def describe(path):
    described = describe_nc(path) if path.endswith(".nc") else describe_h5(path)
    with open(path.rsplit(".", 1)[0] + ".json", "w") as out:
        json.dump(described, out, separators=(",", ":"))
        out.write("\n")


# Deterministic bytes, that no compressor shrinks to nothing.
def numbers(count, dtype):
    array = (np.arange(count, dtype="u8") * 2654435761 >> 7) % 1000
    return array.astype(dtype)


def types(path):
    with h5py.File(path, "w") as f:
        for order in "<>":
            for kind in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]:
                f[f"{kind}{'le' if order == '<' else 'be'}"] = numbers(6, order + kind).reshape(2, 3)
        f["negative"] = np.array([-1, -128, 127], "i1")
        f["c8"] = np.array([1 + 2j, -3.5j], "c8")
        f["c16be"] = np.array([1 + 2j, -3.5j], ">c16")
        f["bool"] = np.array([[True, False], [False, True]])
        enum = h5py.enum_dtype({"clear": 0, "cloudy": 7, "none": -1}, basetype=">i2")
        f.create_dataset("enum", data=np.array([0, 7, -1], ">i2"), dtype=enum)
        f["fixed"] = np.array([b"abc", b"", b"abcde"], "S5")
        space = h5py.h5t.C_S1.copy()
        space.set_size(6)
        space.set_strpad(h5py.h5t.STR_SPACEPAD)
        dataset = h5py.h5d.create(f.id, b"space", space, h5py.h5s.create_simple((3,)))
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab    ", b"      ", b" b c d"], "S6"), mtype=space)
        f.create_dataset("text", data=["", "é", "longer text"], dtype=h5py.string_dtype())
        f.create_dataset("scalar", data=3.25)
        f.create_dataset("scalar_text", data="one text")
        f.create_dataset("unwritten_text", shape=(4,), dtype=h5py.string_dtype())
        opaque = h5py.h5t.create(h5py.h5t.OPAQUE, 3)
        opaque.set_tag(b"colour")
        dataset = h5py.h5d.create(f.id, b"opaque", opaque, h5py.h5s.create_simple((2,)))
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"\1\2\3", b"\4\5\6"], "V3"), mtype=opaque)
        for name, dtype in [("when", "<M8[s]"), ("span", "<m8[ms]")]:
            times = np.array([0, 86400, -1], "<i8").view(dtype)
            f[name] = times.astype(h5py.opaque_dtype(times.dtype))
        # Types that are not read.
        f["compound"] = np.zeros(2, [("a", "f4"), ("b", "i4")])
        f.create_dataset("list", shape=(2,), dtype=h5py.vlen_dtype("i4"))
        f.create_dataset("inner", shape=(2,), dtype=np.dtype(("f4", (3,))))
        twelve = h5py.h5t.NATIVE_INT16.copy()
        twelve.set_precision(12)
        h5py.h5d.create(f.id, b"twelve", twelve, h5py.h5s.create_simple((2,)))
        brain = h5py.h5t.IEEE_F32LE.copy()
        brain.set_fields(15, 7, 8, 0, 7)
        brain.set_size(2)
        brain.set_precision(16)
        h5py.h5d.create(f.id, b"brain", brain, h5py.h5s.create_simple((2,)))
        f["point"] = h5py.SoftLink("/f4le")
        f["gone"] = h5py.SoftLink("/nowhere")
        f["far"] = h5py.ExternalLink("other.h5", "/x")
        f["again"] = f["i2le"]
        group = f.create_group("a").create_group("b")
        group["c"] = numbers(3, "f4")
        group["loop"] = f["a"]
        layout = h5py.VirtualLayout((4,), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
        f.create_virtual_dataset("virtual", layout)
        f.create_dataset("external", shape=(2,), dtype="f4", external=[("other.bin", 0, 8)])



def filters(path):
    data = numbers(10 * 14, "f4").reshape(10, 14)
    plugins = {
        "zstd": hdf5plugin.Zstd(),
        "lz4": hdf5plugin.LZ4(),
        "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
        "bitshuffle_lz4": hdf5plugin.Bitshuffle(cname="lz4"),
        "bitshuffle_zstd": hdf5plugin.Bitshuffle(cname="zstd"),
        "bzip2": hdf5plugin.BZip2(),
        "blosc_lz4": hdf5plugin.Blosc(cname="lz4"),
        "blosc_zlib": hdf5plugin.Blosc(cname="zlib", shuffle=hdf5plugin.Blosc.BITSHUFFLE),
    }
    own = {
        "deflate": dict(compression="gzip"),
        "shuffle": dict(shuffle=True, compression="gzip", compression_opts=9),
        "all": dict(shuffle=True, compression="gzip", fletcher32=True),
        "fletcher32": dict(fletcher32=True),
        "lzf": dict(compression="lzf", shuffle=True),
        "szip": dict(compression="szip"),
    }
    with h5py.File(path, "w", libver="latest") as f:
        for name, options in own.items():
            f.create_dataset(name, data=data, chunks=(4, 8), **options)
        for name, plugin in plugins.items():
            f.create_dataset(name, data=data, chunks=(4, 8), **plugin)
        f.create_dataset("scaleoffset", data=numbers(140, "i4").reshape(10, 14), chunks=(4, 8), scaleoffset=0)
        nbit = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        nbit.set_chunk((4, 8))
        nbit.set_filter(h5py.h5z.FILTER_NBIT, 0, ())
        space = h5py.h5s.create_simple(data.shape)
        h5py.Dataset(h5py.h5d.create(f.id, b"nbit", h5py.h5t.STD_I32LE, space, nbit))[...] = data
        f.create_dataset("not_known", data=data, chunks=(4, 8), **hdf5plugin.Zfp())
        skipped = f.create_dataset("skipped", shape=(4, 4), chunks=(2, 4), dtype="i2", shuffle=True, compression="gzip")
        skipped[:2] = np.arange(8).reshape(2, 4)
        # The second chunk without filters.
        skipped.id.write_direct_chunk((2, 0), np.arange(8, 16, dtype="<i2").tobytes(), 3)
        texts = np.array([f"text {i}" * (i % 4) for i in range(30)], dtype=object).reshape(5, 6)
        f.create_dataset("texts", data=texts, chunks=(2, 4), compression="gzip", shuffle=True, dtype=h5py.string_dtype())


def indexes(path):
    """All indexes of chunks of the latest format, with holes."""
    with h5py.File(path, "w", libver="latest") as f:
        data = numbers(13 * 9, "i4").reshape(13, 9)

        def add(name, **options):
            of = f.create_dataset(name, shape=data.shape, dtype="i4", fillvalue=-7, **options)
            of[:5] = data[:5]
            of[11:, 5:] = data[11:, 5:]

        add("single", chunks=(13, 9))
        add("single_filtered", chunks=(13, 9), compression="gzip")
        add("fixed", chunks=(3, 2))
        add("fixed_filtered", chunks=(3, 2), compression="gzip")
        add("fixed_may_grow", chunks=(3, 2), maxshape=(30, 20))
        add("extensible", chunks=(3, 2), maxshape=(None, 9))
        add("extensible_second", chunks=(3, 2), maxshape=(13, None), compression="gzip")
        add("extensible_both_grow", chunks=(3, 2), maxshape=(90, None))
        add("tree", chunks=(3, 2), maxshape=(None, None))
        add("tree_filtered", chunks=(3, 2), maxshape=(None, None), compression="gzip", shuffle=True)
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_chunk((3, 2))
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        for name, most in [(b"implicit", None), (b"implicit_may_grow", (30, 20))]:
            space = h5py.h5s.create_simple(data.shape, most)
            dataset = h5py.Dataset(h5py.h5d.create(f.id, name, h5py.h5t.STD_I32LE, space, early))
            dataset[:5] = data[:5]
        one = f.create_dataset("line", shape=(200,), chunks=(3,), maxshape=(None,), dtype="i2")
        one[50:150] = numbers(100, "i2")


def library():
    """The HDF5 library that h5py has loaded."""
    beside = os.path.join(os.path.dirname(os.path.dirname(h5py.__file__)), "h5py.libs", "libhdf5-*")
    return ctypes.CDLL(glob.glob(beside)[0])


def trees(path):
    """Version 1 B-trees of several levels: their nodes have up to four entries, in place of 64."""
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    set_node = library().H5Pset_istore_k
    set_node.argtypes = [ctypes.c_int64, ctypes.c_uint]
    assert set_node(plist.id, 2) >= 0
    with h5py.File(h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, plist)) as f:

        def add(name, shape, chunks, order=lambda all: all, **options):
            of = f.create_dataset(name, shape=shape, chunks=chunks, dtype="i2", fillvalue=-1, **options)
            values = np.arange(1, np.prod(shape) + 1, dtype="i2").reshape(shape)
            firsts = itertools.product(*(range(0, n, c) for n, c in zip(shape, chunks)))
            for first in order(list(firsts)):
                part = tuple(slice(at, at + n) for at, n in zip(first, chunks))
                of[part] = values[part]
            return of

        for count in [1, 4, 5, 6, 13, 20]:
            add(f"ordered{count}", (count,), (1,))
        add("backwards", (20,), (1,), lambda all: all[::-1])
        add("shuffled", (9, 8), (2, 3), lambda all: all[1::2] + all[::2], maxshape=(None, None))
        add("cut_chunks", (5, 4, 3), (2, 3, 1), compression="gzip")
        add("four_axes", (2, 3, 2, 2), (1, 1, 1, 1))
        add("holes", (20,), (1,), lambda all: all[::3] + all[1::3])
        shrunk = add("shrunk", (20,), (1,), maxshape=(None,))
        shrunk.resize((11,))
        grown = add("grown", (6, 6), (1, 2), maxshape=(None, None))
        grown.resize((4, 5))
        grown.resize((8, 7))
        grown[7] = 7
        f.create_dataset("t", data=np.arange(20), chunks=(1,)).make_scale("t")
        names = [f"station {at}" for at in range(6)]
        f.create_dataset("names", data=names, chunks=(1,), dtype=h5py.string_dtype()).make_scale("names")
        v = add("labelled", (20, 6), (4, 6))
        v.dims[0].attach_scale(f["t"])
        v.dims[1].attach_scale(f["names"])


def dense(path):
    """Attributes and links in heaps."""
    with h5py.File(path, "w", libver="latest") as f:
        for i in range(9):
            f.attrs[f"attribute {i}"] = f"value {i}"
        many = f.create_group("many")
        for i in range(9):
            many.create_group(f"group {i}")


def compact(path):
    with h5py.File(path, "w", userblock_size=512) as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((2, 3))
        dataset = h5py.Dataset(h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I16BE, space, plist))
        dataset[...] = np.arange(6).reshape(2, 3) - 2
        f.create_dataset("tree", data=numbers(300, "u2").reshape(10, 30), chunks=(3, 7))
        f.create_dataset("never", shape=(3, 4), dtype="f8", fillvalue=2.5)
        f.create_dataset("never_chunked", shape=(3, 4), chunks=(2, 2), dtype=">i4", fillvalue=258)
        f.create_dataset("empty", shape=(0, 4), dtype="f8")
        f.create_dataset("empty_chunked", shape=(0, 4), maxshape=(None, 4), chunks=(2, 4), dtype="f8")
        f["texts"] = np.array(["a", "bc"], dtype=object)
        f["texts"].attrs["list"] = ["x", "yé"]
        f["texts"].attrs["numbers"] = np.array([1, -2], ">i8")
        f["texts"].attrs["floats"] = np.array([0.1, np.inf], "f4")
        f["texts"].attrs["half"] = np.float16(0.5)
        f["texts"].attrs["yes"] = True
        f["texts"].attrs["fixed"] = np.bytes_(b"fixed")
        f["texts"].attrs["nothing"] = h5py.Empty("S1")
        f.attrs["title"] = "compact"


def netcdf(path):
    with netCDF4.Dataset(path, "w") as f:
        f.title = "NetCDF-4"
        f.createDimension("time", None)
        f.createDimension("lat", 5)
        f.createDimension("lon", 7)
        f.createDimension("string4", 4)
        f.createDimension("nothing", 3)
        f.createVariable("time", "f8", ("time",), chunksizes=(8,)).units = "days since 2000-01-01"
        f["time"][:] = np.arange(6)
        for name, count in [("lat", 5), ("lon", 7)]:
            f.createVariable(name, "f4", (name,))[:] = np.arange(count)
        t2m = f.createVariable("t2m", "i2", ("time", "lat", "lon"), zlib=True, fletcher32=True, fill_value=-999, chunksizes=(2, 3, 4))
        t2m.set_auto_maskandscale(False)
        t2m.scale_factor, t2m.add_offset, t2m.valid_range = 0.01, np.float32(273.15), np.array([-5, 1000], "i2")
        for i in range(10):
            t2m.setncattr(f"note {i}", f"text {i}")
        t2m[:] = numbers(6 * 35, "i2").reshape(6, 5, 7)
        f.createVariable("unwritten_fixed", "i8", ("lat", "lon"))
        f.createVariable("characters", "S1", ("lat", "string4"))[:] = np.array([b"ab", b"abcd", b"", b"x", b"yz"], "S4").view("S1").reshape(5, 4)
        f.createVariable("cut_characters", "S1", ("lat", "string4"), chunksizes=(5, 2))
        f.createVariable("one_text", "S1", ("string4",))[:] = np.array([b"w", b"x", b"y", b""], "S1")
        strings = f.createVariable("strings", str, ("time",), chunksizes=(4,))
        strings[:] = np.array(["", "é", "three", "4", "55", "six"], dtype=object)
        f.createVariable("scalar", "i4", ())[...] = 7
        cloud = f.createEnumType(np.uint8, "cloud_t", {"clear": 0, "cloudy": 3})
        f.createVariable("cloud", cloud, ("lat",))[:] = np.array([0, 3, 3, 0, 0], "u1")
        big = f.createVariable("big", "f8", ("lat", "lon"), endian="big")
        big[:] = numbers(35, "f8").reshape(5, 7)
        g = f.createGroup("forecast")
        g.purpose = "groups"
        g.createDimension("step", 2)
        g.createVariable("t2m", "f4", ("step", "lat"))[:] = numbers(10, "f4").reshape(2, 5)
        h = g.createGroup("inner")
        # A variable of the name of a dimension, which is not its coordinate.
        h.createDimension("x", 3)
        h.createVariable("x", "f4", ("lat",))[:] = np.arange(5)
        # A coordinate of two axes.
        h.createDimension("y", 3)
        h.createVariable("y", "f4", ("y", "lat"))[:] = numbers(15, "f4").reshape(3, 5)


def unlimited(path):
    """Variables that are shorter than their dimension."""
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", None)
        f.createDimension("lat", 5)
        f.createDimension("string4", 4)
        f.createVariable("time", "f8", ("time",), chunksizes=(8,))[:] = np.arange(6)
        short = f.createVariable("short", "f4", ("time", "lat"), chunksizes=(4, 5))
        short[:3] = numbers(15, "f4").reshape(3, 5)
        f.createVariable("unwritten", "f4", ("time", "lat"))
        packed = f.createVariable("packed_characters", "S1", ("time", "string4"), zlib=True, chunksizes=(4, 4))
        packed[:] = np.array([b"ab", b"abcd", b"", b"x", b"yz", b"u"], "S4").view("S1").reshape(6, 4)


def h5net(path):
    with h5netcdf.File(path, "w") as f:
        f.dimensions = {"time": None, "x": 4}
        f.resize_dimension("time", 5)
        t = f.create_variable("time", ("time",), "i8", chunks=(3,))
        t[:] = np.arange(5)
        t.attrs["units"] = "hours since 2000-01-01"
        v = f.create_variable("v", ("time", "x"), "f4", chunks=(2, 3), compression="gzip", shuffle=True, fletcher32=True, fillvalue=np.float32("nan"))
        v[:] = numbers(20, "f4").reshape(5, 4)
        v.attrs["_FillValue"] = np.float32("nan")
        f.create_variable("g/flag", ("x",), "i1")[:] = np.array([0, 1, 1, 0], "i1")


FILES = {
    "types.h5": types,
    "filters.h5": filters,
    "indexes.h5": indexes,
    "trees.h5": trees,
    "dense.h5": dense,
    "compact.h5": compact,
    "netcdf.nc": netcdf,
    "unlimited.nc": unlimited,
    "h5netcdf.nc": h5net,
}

if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    chosen = sys.argv[2:] or FILES
    for name, write in FILES.items():
        if name not in chosen:
            continue
        path = os.path.join(folder, name)
        write(path)
        describe(path)
