"""The Zarr stores of the fixed set. Each function writes one; its docstring says what is special."""

import functools
import gzip
import json
import shutil
import types

import numcodecs
import numcodecs.gzip
import numpy as np
import pandas as pd
import xarray as xr
import zarr
from numcodecs import BZ2, CRC32, LZ4, LZMA, Blosc, Delta, FixedScaleOffset, GZip, Shuffle, Zlib, Zstd
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)

STORES = []
# The header of gzip has the time; files are the same in every run without it.
numcodecs.gzip._gzip = types.SimpleNamespace(GzipFile=functools.partial(gzip.GzipFile, mtime=0))


def store(make):
    STORES.append(make)
    return make


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    return str(path)


def compact(path):
    """Takes the spaces out of the metadata of a store, to save room."""
    for name in ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"):
        for document in path.rglob(name):
            document.write_text(json.dumps(json.loads(document.read_text()), separators=(",", ":")))


def put(group, name, data, dims, *, fill=None, attributes=None, absent=False, **options):
    """Creates an array with names of dimensions and writes it, chunk by chunk."""
    data = np.asarray(data)
    attributes = dict(attributes or {})
    if group.metadata.zarr_format == 2:
        attributes["_ARRAY_DIMENSIONS"] = list(dims)
    else:
        options["dimension_names"] = list(dims)
    options.setdefault("dtype", data.dtype)
    options.setdefault("chunks", data.shape)
    array = group.create_array(name, shape=data.shape, fill_value=fill, attributes=attributes, **options)
    if not absent:
        array[...] = data
    return array


# ---------------------------------------------------------------------------------------------- by xarray


def climate():
    """A dataset as most have it: a grid, a time axis, packed numbers, names of stations."""
    random = np.random.default_rng(20240101)
    shape = (4, 4, 5)
    t2m = random.normal(280, 10, shape).astype("f4")
    t2m[0, 0, :3] = np.nan
    # Chunks are (2, 3, 4): this one is all NaN, so it is not written.
    t2m[2:, 3:, 4:] = np.nan
    sst = 273.15 + np.round(random.uniform(0, 30, shape), 2)
    sst[:, 1, 2] = np.nan
    count = random.integers(0, 100, shape[1:]).astype("i4")
    updated = np.array(["2024-03-01T12:00", "NaT", "1969-12-31T23:59:59", "2024-02-29"], "M8[ns]")
    station = np.array(["Köln", "São Paulo", 'a "b", c'], dtype=object)
    coords = {
        "time": ("time", pd.date_range("2024-01-01", periods=4, freq="6h"), {"standard_name": "time"}),
        "lat": ("lat", np.linspace(90, -90, 4), {"units": "degrees_north"}),
        "lon": ("lon", np.arange(0, 360, 72, dtype="f4"), {"units": "degrees_east"}),
        "station": station,
        "height": 2.0,
        "updated": ("time", updated),
        "step": ("time", np.array([0, 6, 12, "NaT"], "m8[h]").astype("m8[ns]")),
    }
    data = {
        "t2m": (("time", "lat", "lon"), t2m, {"units": "K", "long_name": "air temperature"}),
        "sst": (("time", "lat", "lon"), sst, {"units": "K"}),
        "count": (("lat", "lon"), count),
        "is_land": (("lat", "lon"), random.integers(0, 2, shape[1:]).astype(bool)),
        "elevation": ("station", np.array([37, 760, -5], "i2")),
        "country": ("station", np.array(["DE", "", "BR"], "U2")),
        "note": ("station", np.array(["first\nsecond", "", "ü"], dtype=object)),
        "total": ((), np.float64(0.1)),
    }
    return xr.Dataset(data, coords, {"title": "made for tests", "Conventions": "CF-1.10"})


PACKED = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}


@store
def climate_v2(path):
    """xarray's defaults, version 2: Blosc with LZ4, consolidated, packed `sst`, an absent chunk of NaN"""
    encoding = {"t2m": {"chunks": (2, 3, 4)}, "sst": PACKED, "count": {"_FillValue": 7}}
    climate().to_zarr(fresh(path), zarr_format=2, consolidated=True, encoding=encoding)


@store
def climate_v3(path):
    """xarray's defaults, version 3: Zstandard, inline consolidated metadata, `_FillValue` in base64"""
    encoding = {
        "t2m": {"chunks": (2, 3, 4), "_FillValue": -999.0},
        "sst": PACKED,
        "count": {"_FillValue": 7},
    }
    climate().to_zarr(fresh(path), zarr_format=3, consolidated=True, encoding=encoding)


# --------------------------------------------------------------------------------------------- by version


@store
def sharded_v3(path):
    """shards: absent inner chunks, absent shards, shards that exceed the array, the index at either end"""
    group = zarr.create_group(fresh(path))
    random = np.random.default_rng(1)
    grid = random.integers(-50, 50, (7, 10)).astype("i4")
    grid[0:2, 3:6] = 0
    grid[4:, 6:] = 0
    dims = ("y", "x")
    put(group, "y", np.arange(70, 0, -10.0), ("y",), fill=0.0)
    put(group, "x", np.arange(10, dtype="i2") * 3, ("x",), fill=0, chunks=(3,), shards=(6,))
    put(group, "default", grid, dims, fill=0, chunks=(2, 3), shards=(4, 6))
    put(group, "none", grid, dims, fill=0, chunks=(2, 3), shards=(4, 6), compressors=None)
    put(group, "one_shard", grid, dims, fill=0, chunks=(2, 2), shards=(8, 12))
    put(group, "all_absent", np.zeros_like(grid), dims, fill=0, chunks=(2, 3), shards=(4, 6), absent=True)
    cube = random.normal(size=(3, 7, 10)).astype("f4")
    cube[1, 2:4, :5] = np.nan
    put(group, "cube", cube, ("z", *dims), fill=np.nan, chunks=(1, 2, 5), shards=(2, 4, 10))
    codecs = {
        "index_at_start": ShardingCodec(chunk_shape=(2, 3), index_location="start"),
        "gzip_crc32c": ShardingCodec(
            chunk_shape=(2, 3),
            codecs=[BytesCodec(), GzipCodec(), Crc32cCodec()],
            index_codecs=[BytesCodec()],
        ),
        "big_endian": ShardingCodec(
            chunk_shape=(2, 3),
            codecs=[
                TransposeCodec(order=(1, 0)),
                BytesCodec(endian="big"),
                BloscCodec(typesize=4, cname="zlib"),
            ],
        ),
        "nested": ShardingCodec(chunk_shape=(4, 6), codecs=[ShardingCodec(chunk_shape=(2, 3))]),
    }
    for name, codec in codecs.items():
        shape = (8, 12) if name == "nested" else (4, 6)
        put(group, name, grid, dims, fill=0, chunks=shape, serializer=codec, compressors=None)


NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
TIMES = ["M8[ns]", "M8[us]", "M8[s]", "M8[D]", "m8[ns]", "m8[h]"]


def extremes(dtype):
    """Returns six values: the least and the greatest of a type, and what is easily wrong."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 1, 2, 100, 0], dtype)
    if dtype.kind == "f":
        info = np.finfo(dtype)
        return np.array([info.min, info.max, np.nan, -np.inf, info.smallest_subnormal, -0.0], dtype)
    if dtype.kind == "c":
        return np.array([1 + 2j, -0.5j, complex(np.nan, 1), complex(np.inf, -1), 1e10, 0.1 + 0.2j], dtype)
    if dtype.kind == "b":
        return np.array([True, False, True, True, False, False])
    return np.array([0, -1, "NaT", 1_000_000_007, 19_000, 86_400], "i8" if dtype.kind == "i" else dtype)


TEXTS = ["abc", "", "a", "NA", "x,y", 'q"q']


def all_types(path, version):
    group = zarr.create_group(fresh(path), zarr_format=version)
    endian = {} if version == 2 else {"serializer": BytesCodec(endian="big")}
    for name in ["bool", *NUMBERS, "c8", "c16", *TIMES]:
        data = extremes(name)
        short = name.replace("[", "_").replace("]", "")
        fill = {"f": 9.0, "c": 9 + 9j, "M": np.datetime64("NaT"), "m": np.timedelta64("NaT")}.get(
            data.dtype.kind, 9
        )
        fill = False if name == "bool" else fill
        put(group, short, data, ("x",), fill=fill, compressors=None)
        if name in ("i2", "i8", "u4", "f4", "f8", "c8", "M8[ns]", "m8[h]"):
            dtype = data.dtype.newbyteorder(">") if version == 2 else data.dtype
            put(group, f"big_{short}", data, ("x",), fill=fill, dtype=dtype, compressors=None, **endian)
    put(group, "text", np.array(TEXTS, "U4"), ("x",), fill="?", compressors=None)
    put(group, "big_text", np.array(TEXTS, ">U4"), ("x",), fill="?", compressors=None, **endian)
    put(group, "bytes", np.array(TEXTS, "S3"), ("x",), fill=b"?", compressors=None)
    words = np.array(["a", "", "été", "日本語", "a\0b", "𝄞" * 3], dtype=object)
    put(group, "words", words, ("x",), fill="?", dtype=str)
    grid = np.arange(30, dtype="i4").reshape(5, 6)
    cube = np.arange(60, dtype="f4").reshape(3, 4, 5)
    if version == 2:
        put(group, "order_f", grid, ("y", "x"), fill=-1, chunks=(2, 4), order="F", compressors=None)
        put(group, "order_f_big", cube.astype(">f4"), ("z", "v", "w"), fill=-1, chunks=(2, 4, 3), order="F")
        raw = np.array([b"\0\1\2\3\4", b"", b"abcde"], "S5").view("V5")
        put(group, "raw", raw, ("n",), fill=None, compressors=None)
    else:
        put(
            group,
            "transposed",
            grid,
            ("y", "x"),
            fill=-1,
            chunks=(2, 4),
            filters=[TransposeCodec(order=(1, 0))],
        )
        put(
            group,
            "turned",
            cube,
            ("z", "v", "w"),
            fill=-1,
            chunks=(2, 4, 3),
            filters=[TransposeCodec(order=(2, 0, 1))],
        )
        put(
            group,
            "raw",
            np.array([b"\0\1\2\3\4", b"", b"abcde"], "S5").view("V5"),
            ("n",),
            fill=np.void(b"\0" * 5),
        )
        put(
            group,
            "blobs",
            np.array([b"a", b"", b"\0\1"], object),
            ("n",),
            fill=b"",
            dtype="variable_length_bytes",
        )


@store
def types_v2(path):
    """every type of version 2 in both byte orders, order F, variable-length text; fill values are NULL"""
    all_types(path, 2)


@store
def types_v3(path):
    """every type of version 3 in both byte orders, transposed chunks, variable-length text"""
    all_types(path, 3)


@store
def codecs_v2(path):
    """one array per compressor and filter of numcodecs"""
    group = zarr.create_group(fresh(path), zarr_format=2)
    random = np.random.default_rng(2)
    short = np.cumsum(random.integers(0, 4, 48)).astype("i4")
    # Blosc splits blocks and uses its codec only if there is something to compress.
    long = np.cumsum(random.integers(0, 3, 128)).astype("i4")
    plain = {
        "none": None,
        "zlib": Zlib(5),
        "gzip": GZip(5),
        "bz2": BZ2(),
        "lz4": LZ4(),
        "zstd": Zstd(3),
        "lzma": LZMA(),
    }
    for name, codec in plain.items():
        put(group, name, short, ("x",), fill=-1, chunks=(32,), compressors=codec)
    for codec in ("lz4", "zstd", "zlib", "blosclz"):
        for shuffle, name in enumerate(("noshuffle", "shuffle", "bitshuffle")):
            compressor = Blosc(codec, clevel=5, shuffle=shuffle)
            put(group, f"blosc_{codec}_{name}", long, ("n",), fill=-1, compressors=compressor)
    put(group, "blosc_blocks", long, ("n",), fill=-1, compressors=Blosc("lz4", 9, 1, blocksize=256))
    put(group, "blosc_stored", short, ("x",), fill=-1, compressors=Blosc("lz4", clevel=0))
    put(group, "blosc_double", random.normal(size=40), ("d",), fill=-1.0, compressors=Blosc("zstd", 5, 2))
    filters = {
        "shuffle": ([Shuffle(4)], short, Zlib()),
        "delta": ([Delta("<i4")], short, None),
        "delta_astype": ([Delta("<i4", astype="<i2")], short, Zstd()),
        "fixedscaleoffset": (
            [FixedScaleOffset(offset=10, scale=100, dtype="<f8", astype="<i4")],
            short / 100.0,
            Zlib(),
        ),
        "crc32": ([CRC32()], short, None),
        "adler32_zlib": ([numcodecs.Adler32()], short, Zlib()),
        "fletcher32": ([numcodecs.Fletcher32()], short, None),
        "delta_shuffle": ([Delta("<i4"), Shuffle(4)], short, LZ4()),
        "packbits": ([numcodecs.PackBits()], short % 3 == 0, None),
        "quantize": ([numcodecs.Quantize(digits=2, dtype="<f4")], (short / 7).astype("f4"), Zlib()),
        "bitround": ([numcodecs.BitRound(keepbits=8)], (short / 7).astype("f4"), Zlib()),
        "astype": ([numcodecs.AsType(encode_dtype="<i2", decode_dtype="<i4")], short, None),
    }
    try:
        filters["crc32c"] = ([numcodecs.CRC32C()], short, None)
    except AttributeError:
        from numcodecs.checksum32 import CRC32C

        filters["crc32c"] = ([CRC32C()], short, None)
    for name, (chain, data, compressor) in filters.items():
        fill = False if data.dtype == bool else -1
        put(group, name, data, ("x",), fill=fill, filters=chain, compressors=compressor)


@store
def codecs_v3(path):
    """the codecs of version 3 that are in the specification, and two of numcodecs"""
    group = zarr.create_group(fresh(path))
    data = np.cumsum(np.random.default_rng(3).integers(0, 4, (7, 8)), axis=1).astype("u2")
    chains = {
        "none": None,
        "gzip": GzipCodec(level=6),
        "zstd_checksum": ZstdCodec(level=3, checksum=True),
        "blosc_lz4_bitshuffle": BloscCodec(typesize=2, cname="lz4", shuffle="bitshuffle"),
        "blosc_zstd_shuffle": BloscCodec(typesize=2, cname="zstd", shuffle="shuffle"),
        "crc32c": Crc32cCodec(),
        "zstd_crc32c": [ZstdCodec(), Crc32cCodec()],
        "gzip_blosc": [GzipCodec(), BloscCodec(typesize=1, cname="lz4", shuffle="noshuffle")],
        "numcodecs_zlib": zarr.codecs.numcodecs.Zlib(level=5),
        "numcodecs_lz4": zarr.codecs.numcodecs.LZ4(),
    }
    for name, chain in chains.items():
        put(group, name, data, ("y", "x"), fill=65535, chunks=(4, 5), compressors=chain)
    keys = {"keys_dot": {"name": "default", "separator": "."}, "keys_v2": {"name": "v2", "separator": "/"}}
    for name, encoding in keys.items():
        put(group, name, data, ("y", "x"), fill=65535, chunks=(4, 5), chunk_key_encoding=encoding)


@store
def groups_v3(path):
    """nested groups with coordinates in parents, scalars, auxiliary coordinates, bounds, odd names"""
    lat, lon = np.meshgrid([10.0, 20.0, 30.0], [1.0, 2.0], indexing="ij")
    root = xr.Dataset(
        {
            "temperature": (
                ("time", "y", "x"),
                np.arange(12, dtype="f4").reshape(2, 3, 2),
                {"cell_methods": "time: mean"},
            )
        },
        {
            "time": (
                "time",
                np.array(["2000-01-16T12:00", "2000-02-15T00:00"], "M8[ns]"),
                {"bounds": "time_bnds"},
            ),
            "time_bnds": (
                ("time", "nv"),
                np.array([["2000-01-01", "2000-02-01"], ["2000-02-01", "2000-03-01"]], "M8[ns]"),
            ),
            "latitude": (("y", "x"), lat),
            "longitude": (("y", "x"), lon),
            "height": 2.0,
            "name": "surface",
        },
    )
    forecast = xr.Dataset(
        {"temperature": (("time", "step"), np.arange(6.0).reshape(2, 3)), "run": ((), np.int32(5))},
        {"step": ("step", np.array([0, 6, 12]))},
    )
    # A dimension of the same name and another length: the labels of the root are not its labels.
    odd = xr.Dataset(
        {
            "wind speed": (("time",), np.array([1.5, 2.5, 3.5])),
            "no-dims": ((), "text"),
            "one": ("x", [7, 8]),
        }
    )
    xr.DataTree.from_dict({"/forecast": forecast}).to_zarr(fresh(path), zarr_format=3, consolidated=False)
    root.to_zarr(path, mode="a", consolidated=False)
    odd.to_zarr(path, group="forecast/odd names", mode="a", consolidated=False)
    zarr.open_group(str(path), mode="r+").create_group(
        "empty", attributes={"purpose": "a group without arrays"}
    )
    zarr.consolidate_metadata(str(path))


def bare(path, version):
    group = zarr.create_group(fresh(path), zarr_format=version, attributes={"title": "bare"})
    put(group, "x", np.array([0.5, 1.5, 2.5]), ("x",), fill=-1.0)
    put(group, "rain", np.arange(9, dtype="f4").reshape(3, 3), ("x", "level"), fill=-1.0, chunks=(2, 2))
    separator = {"name": "v2", "separator": "/"}
    put(
        group,
        "slashes",
        np.arange(9, dtype="i2").reshape(3, 3),
        ("x", "level"),
        fill=-1,
        chunks=(2, 2),
        chunk_key_encoding=separator,
    )
    put(group, "unused", np.zeros((0, 3)), ("none", "level"), fill=-1.0, chunks=(1, 1))
    put(group, "large_chunk", np.arange(3, dtype="u1"), ("x",), fill=255, chunks=(8,))
    put(group, "twice", np.arange(9, dtype="i2").reshape(3, 3), ("x", "x"), fill=-1, chunks=(2, 3))
    put(group, "value", np.array([3, 1, 2]), ("value",), fill=-1)
    put(group, "of_value", np.array([30, 10, 20]), ("value",), fill=-1)
    group.create_array("nameless", data=np.arange(6, dtype="i4").reshape(2, 3), fill_value=-1)
    child = group.create_group("deep").create_group("er")
    put(child, "rain", np.arange(3, dtype="f4"), ("x",), fill=-1.0)
    return group


def curvilinear():
    """Returns values over three dimensions, and coordinates over some of them, also in another order."""
    random = np.random.default_rng(19)
    lat = np.round(random.uniform(-90, 90, (4, 6)), 2).astype("f4")
    lat[1, 2] = np.nan
    return {
        "t": (("time", "y", "x"), np.arange(120, dtype="i4").reshape(5, 4, 6)),
        "lat": (("y", "x"), lat),
        "lon": (("x", "y"), np.round(random.uniform(0, 360, (6, 4)), 2)),
        "run": (("time",), np.arange(5, dtype="i2") * 10),
        "height": ((), np.float64(2)),
    }


@store
def curvilinear_v3(path):
    """coordinates of two dimensions, also in another order and with text, in chunks of their own"""
    group = zarr.create_group(fresh(path), zarr_format=3)
    for name, (dims, values) in curvilinear().items():
        attributes = {"coordinates": "lat lon run height name"} if name == "t" else {}
        chunks = {"t": (2, 3, 4), "lat": (3, 5), "lon": (4, 3)}.get(name, np.shape(values))
        put(group, name, values, dims, attributes=attributes, chunks=chunks)
    put(group, "name", np.array(["a", "bc", "", "def"], dtype="O"), ("y",), dtype="string", chunks=(3,))
    zarr.consolidate_metadata(str(path))


@store
def unconsolidated_v2(path):
    """no `.zmetadata`; an array without names of dimensions; `/` in the keys of chunks; an empty array"""
    bare(path, 2)


@store
def unconsolidated_v3(path):
    """metadata only in each node; arrays with some names of dimensions or none; an empty array"""
    group = bare(path, 3)
    group.create_array(
        "half_named", data=np.arange(6, dtype="i4").reshape(2, 3), dimension_names=("x", None)
    )
    # A folder that is not a node, and a file that nobody asked for.
    (path / "lost").mkdir()
    (path / "lost" / "README.txt").write_text("This folder is no part of the store.\n")


FILLS = {
    "i1": -7,
    "u2": 65535,
    "i4": 0,
    "i8": -(2**63),
    "u8": 2**64 - 1,
    "f4": np.nan,
    "f8": np.inf,
    "f2": -np.inf,
    "c8": complex(np.nan, 1),
    "bool": True,
    "M8[s]": np.datetime64("2000-01-01", "s"),
    "U3": "abc",
}


def fills(path, version):
    """Writes arrays without any chunk, and with some."""
    group = zarr.create_group(fresh(path), zarr_format=version)
    for name, fill in FILLS.items():
        short = name.replace("[", "_").replace("]", "")
        put(group, f"absent_{short}", np.zeros(3, name), ("x",), fill=fill, absent=True)
    partial = put(
        group, "partial", np.zeros((4, 5), "i2"), ("y", "x5"), fill=-5, chunks=(2, 2), absent=True
    )
    partial[0, 0] = 1
    partial[3, 4] = -5
    partial[2, 4] = 0
    zero = put(group, "zero", np.zeros((4, 5), "i4"), ("y", "x5"), fill=0, chunks=(2, 2), absent=True)
    zero[1, 1] = 1
    words = put(
        group, "words", np.array(["", "", ""], object), ("x",), fill="", dtype=str, chunks=(1,), absent=True
    )
    words[1] = "b"
    return group


@store
def fills_v2(path):
    """absent chunks of each type; `fill_value` is NULL; a `fill_value` of null"""
    group = fills(path, 2)
    undefined = put(group, "undefined", np.zeros(4, "i4"), ("x4",), fill=None, chunks=(2,), absent=True)
    undefined[0] = 3
    zarr.consolidate_metadata(group.store)


@store
def fills_v3(path):
    """absent chunks of each type; `fill_value` is a value, and `_FillValue` is NULL; NaN of other bits"""
    group = fills(path, 3)
    both = {"_FillValue": -5, "missing_value": 0}
    masked = put(
        group,
        "masked",
        np.zeros((4, 5), "i2"),
        ("y", "x5"),
        fill=-5,
        chunks=(2, 2),
        attributes=both,
        absent=True,
    )
    masked[0, 0] = 1
    masked[3, 4] = 3
    for name, dtype, bits in (("nan_bits", "f4", "0x7fc00123"), ("hex_float", "f8", "0x3ff8000000000000")):
        put(group, name, np.zeros(3, dtype), ("x",), fill=0.0, absent=True)
        document = path / name / "zarr.json"
        metadata = json.loads(document.read_text())
        metadata["fill_value"] = bits
        document.write_text(json.dumps(metadata, indent=2))


def month(number):
    """Returns a month of four days, which is one table with other months whatever their formats are."""
    time = pd.date_range(f"2024-{number:02}-01", periods=4)
    values = np.arange(12.0).reshape(4, 3) + 100 * number
    encoding = {"units": f"days since 2024-{number:02}-01", "dtype": "f8"}
    dataset = xr.Dataset({"level": (("time", "x"), values)}, {"time": time, "x": [1.0, 2.0, 3.0]})
    dataset.time.encoding = encoding
    return dataset


@store
def february(path):
    """the middle of three months, each in another format"""
    month(2).to_zarr(path, zarr_format=2, consolidated=True)
