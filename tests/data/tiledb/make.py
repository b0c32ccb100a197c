"""Writes the TileDB arrays that the tests read, and the cells that libtiledb reads from them.

    python3 tests/data/tiledb/make.py

Needs numpy and TileDB-Py (`pip install tiledb`; version 0.36 wrote these files). The script
first removes the arrays of an earlier run. Contents are fixed, and so are most timestamps. The
timestamps of groups, `enums`, `evolved` and `readded` differ with every run, as do UUIDs and the times
in the names of schema files.

    <name>/                  an array        <name>.expected.json   its schema and cells
    weather/, stations/      groups          <name>.group.json      their members

Each function below makes one array. Its docstring gives the purpose, and is the `what` of its JSON.
"""

import json
import math
import os
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import tiledb
from tiledb import Attr, Dim

sys.dont_write_bytecode = True

from cells import KEY, create, dates, describe, dim, json_metadata, write
from groups import groups
from odd import odd

HERE = Path(__file__).resolve().parent
ARRAYS = {}
# Copies from a larger collection, which this script does not make.
COPIES = ("sparse_1d_string", "sparse_delete_consolidated", "sparse_enum")


def array(make):
    ARRAYS[make.__name__] = make
    return make


@array
def dtypes(uri):
    """every integer and float type and bool, with extremes; NaN, infinities, -0.0, denormals"""
    types = [f"{kind}{width}" for width in (1, 2, 4, 8) for kind in "iu"]
    attrs = [Attr(np.dtype(t).name, dtype=t) for t in types]
    attrs += [Attr("float32", dtype="f4"), Attr("float64", dtype="f8"), Attr("bool", dtype="bool")]
    create(uri, [dim(-3, 8, 5, dtype="i8")], attrs)
    columns = {np.dtype(t).name: [np.iinfo(t).min, np.iinfo(t).max, *range(10)] for t in types}
    odd = [math.nan, math.inf, -math.inf, -0.0]
    tiny = {"f4": struct.unpack("<f", b"\1\0\0\0")[0], "f8": 5e-324}
    for name, t in (("float32", "f4"), ("float64", "f8")):
        limits = [float(np.finfo(t).max), float(np.finfo(t).min), tiny[t]]
        columns[name] = [*odd, *limits, 0.1, 1.5, -2.25, 1e10, 0.0]
    columns["bool"] = [i % 3 == 0 for i in range(12)]
    write(uri, [(-3, 8)], columns)


def ordered(uri, tile_order, cell_order, dims, boxes):
    """Makes an array with these orders. Cells count up, each fragment from the next thousand."""
    create(uri, dims, [Attr("a", dtype="i4"), Attr("s", dtype="ascii")],
           tile_order=tile_order, cell_order=cell_order)
    for number, box in enumerate(boxes, 1):
        cells = math.prod(high - low + 1 for low, high in box)
        columns = {"a": range(1000 * number, 1000 * number + cells),
                   "s": ["abc"[:i % 4] for i in range(cells)]}
        write(uri, box, columns, timestamp=10 * number)


@array
def order_row_row(uri):
    """row-major tiles of row-major cells, 2-d; extents that do not divide; begins inside a tile"""
    ordered(uri, "row-major", "row-major",
            [dim(-4, 6, 3, "y", "i2"), dim(-7, 2, 4, "x", "i2")], [[(-2, 5), (-6, 1)]])


@array
def order_row_col(uri):
    """row-major tiles of col-major cells, 2-d; unsigned dimensions around 2^63; two fragments"""
    ordered(uri, "row-major", "col-major",
            [dim(2**63 - 5, 2**63 + 5, 4, "y", "u8"), dim(0, 6, 3, "x", "u8")],
            [[(2**63 - 4, 2**63 + 4), (0, 6)], [(2**63 - 1, 2**63 + 1), (2, 4)]])


@array
def order_col_row(uri):
    """col-major tiles of row-major cells, 2-d; signed bytes; begins inside a tile"""
    ordered(uri, "col-major", "row-major",
            [dim(-128, 5, 4, "y", "i1"), dim(-1, 8, 3, "x", "i1")], [[(-2, 5), (1, 7)]])
    return {"boxes": [[[-3, 5], [0, 8]]]}


@array
def order_col_col(uri):
    """col-major tiles of col-major cells, 3-d; unsigned bytes; begins inside a tile"""
    ordered(uri, "col-major", "col-major",
            [dim(0, 4, 2, "z", "u1"), dim(10, 14, 3, "y", "u1"), dim(0, 3, 4, "x", "u1")],
            [[(1, 4), (10, 13), (0, 2)]])


@array
def huge_domain(uri):
    """nearly all of int64 is domain; the cells written are few, far from its beginning"""
    low, high = -2**63, 2**63 - 11
    create(uri, [dim(low, high, 10, "y", "i8"), dim(low, high, 10, "x", "i8")],
           [Attr("a", dtype="u2")])
    write(uri, [(-3, 8), (2**40, 2**40 + 4)], {"a": range(60)})
    return {"boxes": [[[-3, 8], [2**40, 2**40 + 4]], [[-5, 1], [2**40 + 3, 2**40 + 6]]]}


@array
def empty(uri):
    """a schema and nothing else: every cell is fill"""
    create(uri, [dim(0, 2, 2, "y"), dim(0, 2, 2, "x")], [Attr("a", dtype="f4")])


@array
def anonymous(uri):
    """written by tiledb.from_numpy: an attribute without a name, dimensions __dim_0 and __dim_1"""
    values = np.arange(12, dtype="f4").reshape(3, 4) / 2
    tiledb.from_numpy(str(uri), values, timestamp=10).close()


@array
def overlap(uri):
    """three overlapping fragments at 10, 20 and 30, read as of many times and windows"""
    attrs = [Attr("a", dtype="i4"), Attr("s", dtype="ascii", nullable=True)]
    create(uri, [dim(0, 6, 3, "r"), dim(0, 6, 3, "c")], attrs)
    boxes = [(10, [(0, 4), (0, 4)]), (20, [(2, 4), (1, 5)]), (30, [(3, 6), (3, 4)])]
    for time, box in boxes:
        cells = range(math.prod(high - low + 1 for low, high in box))
        columns = {"a": [10 * time + i for i in cells],
                   "s": [None if i % 4 == 0 else f"t{time}"[:i % 4] for i in cells]}
        write(uri, box, columns, timestamp=time)
    windows = [(11, 20), (20, 30), (31, 40)]
    return {"timestamps": [None, 10, 25, *windows]}


@array
def fill(uri):
    """a few cells written; the others are default fill, fill of the schema's choice, or null"""
    kinds = ["i1", "f4", "bool", "M8[s]", "S3"]
    attrs = [Attr(f"default_{kind}", dtype=kind) for kind in kinds]
    attrs += [Attr("default_text", dtype="U0"), Attr("default_ints", dtype="i2", var=True)]
    attrs += [Attr("i64", dtype="i8", fill=-7), Attr("f32", dtype="f4", fill=-9999.0),
              Attr("text", dtype="U0", fill="né"),
              Attr("pair", dtype="c8", fill=1 - 2j)]
    attrs += [Attr("null_i32", dtype="i4", nullable=True, fill=5),
              Attr("null_text", dtype="U0", nullable=True)]
    create(uri, [dim(0, 19, 6)], attrs)
    columns = {attr.name: range(1, 6) for attr in attrs}
    columns |= {"default_bool": [True] * 5, "default_S3": [b"abc", b"de", b"f", b"", b"\0z"]}
    for name in ("default_text", "text"):
        columns[name] = ["", "a", "bb", "", "ccccc"]
    columns |= {"default_ints": [[i] * i for i in range(1, 6)],
                "pair": [[i, i + 0.5] for i in range(5)],
                "null_i32": [0, None, 2, None, 4], "null_text": ["", None, "x", None, "zz"]}
    write(uri, [(4, 8)], columns)


@array
def nullable(uri):
    """nullable numbers, booleans, dates, text, lists; a tile without nulls, one all null"""
    attrs = [Attr("i", dtype="i4", nullable=True), Attr("f", dtype="f8", nullable=True),
             Attr("b", dtype="bool", nullable=True), Attr("d", dtype="M8[D]", nullable=True),
             Attr("s", dtype="U0", nullable=True), Attr("l", dtype="i2", var=True, nullable=True),
             Attr("plain", dtype="i2")]
    validity = tiledb.FilterList([tiledb.BitShuffleFilter(), tiledb.ZstdFilter()])
    create(uri, [dim(0, 14, 5)], attrs, validity_filters=validity)
    # Tiles: some null, all null, none null.
    is_null = [i < 5 and i % 2 == 0 or 5 <= i < 10 for i in range(15)]

    def column(value):
        return [None if null else value(i) for i, null in enumerate(is_null)]

    write(uri, [(0, 14)], {
        "i": column(lambda i: i - 3), "f": column(lambda i: math.nan if i == 3 else i / 4),
        "b": column(lambda i: i % 3 == 0), "d": column(lambda i: 19_000 + i),
        "s": column(lambda i: "é" * (i % 3)), "l": column(lambda i: [i] * (1 + i % 3)),
        "plain": range(15),
    })


@array
def varlen(uri):
    """text, bytes and lists of any length, also empty; filtered offsets; tiles of zero bytes"""
    text = {"ascii": "ascii", "utf8": "U0", "bytes": "S0", "blob": "blob"}
    attrs = [Attr(name, dtype=dtype, var=True) for name, dtype in text.items()]
    attrs += [Attr(name, dtype=name, var=True) for name in ("int32", "float64")]
    attrs += [Attr("none", dtype="ascii", filters=[tiledb.ZstdFilter()]),
              Attr("none_rle", dtype="ascii", filters=[tiledb.RleFilter()]),
              Attr("none_dict", dtype="ascii", filters=[tiledb.DictionaryFilter()])]
    offsets = tiledb.FilterList([tiledb.PositiveDeltaFilter(), tiledb.BitWidthReductionFilter(),
                                 tiledb.ZstdFilter()])
    create(uri, [dim(0, 9, 4)], attrs, offsets_filters=offsets)
    lengths = [0, 1, 2, 0, 0, 7, 3, 0, 20, 0]
    columns = {"ascii": ["xyz"[i % 3] * n for i, n in enumerate(lengths)],
               "utf8": ["aé€𝄞"[i % 4] * n for i, n in enumerate(lengths)],
               "bytes": [bytes([0, 255, i])[:n] for i, n in enumerate(lengths)],
               "blob": [bytes([i]) * n for i, n in enumerate(lengths)],
               "int32": [[i - 5] * (n + 1) for i, n in enumerate(lengths)],
               "float64": [[i / (j + 1) for j in range(1 + n % 3)] for i, n in enumerate(lengths)]}
    columns |= {name: [""] * 10 for name in ("none", "none_rle", "none_dict")}
    write(uri, [(0, 9)], columns)


@array
def chunks(uri):
    """a tile of more than 64 KiB: several chunks of numbers, offsets and text; read around them"""
    pipelines = {"zstd": [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter()],
                 "delta": [tiledb.DoubleDeltaFilter()],
                 "bits": [tiledb.BitWidthReductionFilter(), tiledb.BitShuffleFilter(),
                          tiledb.LZ4Filter()]}
    attrs = [Attr(name, dtype="i8", filters=steps) for name, steps in pipelines.items()]
    attrs += [Attr("text", dtype="ascii", filters=[tiledb.ZstdFilter()])]
    offsets = tiledb.FilterList([tiledb.DeltaFilter(), tiledb.GzipFilter()])
    create(uri, [dim(0, 99, 100, "y"), dim(0, 99, 100, "x")], attrs, offsets_filters=offsets)
    cells = range(10_000)
    columns = {"zstd": [i // 7 for i in cells], "delta": [i - 5000 + i // 1000 for i in cells],
               "bits": [i // 2 for i in cells], "text": ["k" + str(i // 50) * 3 for i in cells]}
    write(uri, [(0, 99), (0, 99)], columns)
    # A chunk holds 8192 numbers: 81 rows of 100 and 92 cells. Text is cut elsewhere.
    return {"boxes": [[[80, 82], [89, 94]], [[80, 83], [91, 92]], [[98, 99], [97, 99]]]}


@array
def datetimes(uri):
    """a dimension of days and attributes of many units of date and duration; NaT"""
    units = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"]
    attrs = [Attr(f"date_{unit}", dtype=f"M8[{unit}]") for unit in units]
    attrs += [Attr(f"time_{unit}", dtype=f"m8[{unit}]") for unit in ("s", "ms", "ns")]
    create(uri, [dates("1969-12-28", "1970-01-09", 5, "D", "day")], attrs)
    nat = np.iinfo("i8").min
    columns = {}
    for attr in attrs:
        step = 1 if attr.name[5:] in ("Y", "M", "W", "D") else 1_000_003
        columns[attr.name] = [nat if i % 6 == 5 else (i - 4) * step for i in range(13)]
    write(uri, [(-4, 8)], columns)


@array
def multivalue(uri):
    """cells of two and more values: complex numbers, fixed strings, records of equal fields"""
    attrs = [Attr("c8", dtype="c8"), Attr("c16", dtype="c16"), Attr("S4", dtype="S4"),
             Attr("pair", dtype=[("", "f4"), ("", "f4")]),
             Attr("triple", dtype=[("", "i2")] * 3, filters=[tiledb.RleFilter()])]
    create(uri, [dim(1, 12, 5)], attrs)
    write(uri, [(1, 12)], {
        "c8": [[i, -i / 2] for i in range(12)], "c16": [[i / 3, math.nan] for i in range(12)],
        "S4": [b"abcd"[:i % 5] for i in range(12)], "pair": [[0.25 * i, i] for i in range(12)],
        "triple": [[i // 4, -1, 300] for i in range(12)],
    })


@array
def enums(uri):
    """enumerations: unordered, ordered, of integers, nullable, extended after the first fragment"""
    def enum(name, values, ordered=False, dtype=None):
        return tiledb.Enumeration(name, ordered, values, dtype=dtype)

    attrs = [Attr("color", dtype="i1", enum_label="colors"),
             Attr("size", dtype="u2", enum_label="sizes"),
             Attr("maybe", dtype="i4", enum_label="colors", nullable=True),
             Attr("wind", dtype="u1", enum_label="winds")]
    made = [enum("colors", ["red", "green", "blue"]), enum("winds", ["calm", "", "storm"], True),
            tiledb.Enumeration("sizes", True, np.array([10, 20, 40], dtype="i4"))]
    create(uri, [dim(0, 9, 4)], attrs, enums=made)
    columns = {"color": [0, 1, 2, 2, 1, 0], "size": [0, 1, 2, 0, 1, 2],
               "maybe": [0, None, 2, None, 1, 0], "wind": [0, 1, 2, 2, 1, 0]}
    write(uri, [(0, 5)], columns, timestamp=None)
    with tiledb.open(str(uri)) as opened:
        extended = opened.enum("colors").extend(["violet"])
    evolution = tiledb.ArraySchemaEvolution()
    evolution.extend_enumeration(extended)
    evolution.array_evolve(str(uri))
    later = {"color": [3, 0], "size": [1, 1], "maybe": [3, None], "wind": [1, 2]}
    write(uri, [(5, 6)], later, timestamp=None)


@array
def evolved(uri):
    """attributes added after the first fragment and one dropped after the second"""
    create(uri, [dim(0, 11, 5)], [Attr("a", dtype="i4"), Attr("gone", dtype="f8")])
    write(uri, [(0, 7)], {"a": range(8), "gone": range(8)}, timestamp=None)
    evolution = tiledb.ArraySchemaEvolution()
    for attr in (Attr("b", dtype="i8", fill=-1), Attr("s", dtype="ascii", nullable=True)):
        evolution.add_attribute(attr)
    evolution.array_evolve(str(uri))
    columns = {"a": range(50, 54), "gone": range(4), "b": range(500, 504),
               "s": ["p", None, "", "rrrr"]}
    write(uri, [(5, 8)], columns, timestamp=None)
    evolution = tiledb.ArraySchemaEvolution()
    evolution.drop_attribute("gone")
    evolution.array_evolve(str(uri))
    columns = {"a": [90, 91], "b": [900, 901], "s": ["last", None]}
    write(uri, [(8, 9)], columns, timestamp=None)


@array
def readded(uri):
    """an attribute dropped and added again; the fragment between covers parts of tiles, or less"""
    create(uri, [dim(0, 7, 4, "r"), dim(0, 8, 3, "c")], [Attr("a", dtype="i4"), Attr("b", dtype="i4")])
    boxes = [[(0, 7), (0, 5)], [(1, 2), (7, 8)]]
    for number, box in enumerate(boxes, 1):
        cells = math.prod(high - low + 1 for low, high in box)
        columns = {name: range(1000 * number, 1000 * number + cells) for name in "ab"}
        write(uri, box, columns, timestamp=None)
    evolution = tiledb.ArraySchemaEvolution()
    evolution.drop_attribute("b")
    evolution.array_evolve(str(uri))
    write(uri, [(0, 5), (1, 8)], {"a": range(3000, 3048)}, timestamp=None)
    evolution = tiledb.ArraySchemaEvolution()
    evolution.add_attribute(Attr("b", dtype="i4"))
    evolution.array_evolve(str(uri))
    write(uri, [(3, 4), (4, 7)], {name: range(4000, 4008) for name in "ab"}, timestamp=None)


@array
def encrypted(uri):
    """AES-256-GCM; the key is the 32 ASCII bytes of 'encryption_key'"""
    attrs = [Attr("a", dtype="i4", filters=[tiledb.ByteShuffleFilter(), tiledb.ZstdFilter()]),
             Attr("s", dtype="ascii", nullable=True)]
    create(uri, [dim(0, 24, 10)], attrs, key=KEY)
    columns = {"a": range(25), "s": [None if i % 4 == 0 else f"e{i}" for i in range(25)]}
    write(uri, [(0, 24)], columns, key=KEY)
    return {"key": KEY, "encryption_type": "AES_256_GCM", "encryption_key": KEY}


@array
def current_domain(uri):
    """a current domain of [0,8] x [0,6] in [0,99] x [0,99]; some of its cells were never written"""
    bounds = [[0, 8], [0, 6]]
    ctx = tiledb.default_ctx()
    dims = [dim(0, 99, 4, "r"), dim(0, 99, 4, "c")]
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), [Attr("a", dtype="i4")])
    rectangle = tiledb.NDRectangle(ctx, schema.domain)
    for number, (low, high) in enumerate(bounds):
        rectangle.set_range(number, low, high)
    current = tiledb.CurrentDomain(ctx)
    current.set_ndrectangle(rectangle)
    schema.set_current_domain(current)
    tiledb.Array.create(str(uri), schema)
    write(uri, [(0, 6), (0, 5)], {"a": range(42)}, timestamp=10)
    write(uri, [(5, 7), (2, 5)], {"a": range(1000, 1012)}, timestamp=20)
    return {"boxes": [bounds], "current_domain": bounds}


@array
def dim_label(uri):
    """a label of increasing floats on the dimension; it is an array of its own below __labels"""
    x = dim(1, 6, 3, dtype="i8")
    labels = {0: {"depth": x.create_label_schema("increasing", np.float64)}}
    create(uri, [x], [Attr("a", dtype="i4")], dim_labels=labels)
    with tiledb.open(str(uri), "w", timestamp=10) as opened:
        opened[:] = {"a": np.arange(6, dtype="i4"), "depth": np.arange(6) / 4}


def several_fragments(uri, times=(10, 20, 30)):
    create(uri, [dim(0, 29, 7)], [Attr("a", dtype="i4")])
    for time, (low, high) in zip(times, ((2, 15), (9, 12), (11, 24))):
        cells = range(10 * time, 10 * time + high - low + 1)
        write(uri, [(low, high)], {"a": cells}, timestamp=time)


def consolidate(uri, mode):
    config = tiledb.Config({"sm.consolidation.mode": mode})
    tiledb.consolidate(str(uri), config=config)


def vacuum(uri, mode):
    config = tiledb.Config({"sm.vacuum.mode": mode})
    tiledb.vacuum(str(uri), config=config)


@array
def consolidated(uri):
    """three fragments consolidated into one; the old ones are still there, and seen in the past"""
    several_fragments(uri)
    consolidate(uri, "fragments")
    return {"timestamps": [None, 10, 20, 29, (10, 30), (20, 30)]}


@array
def vacuumed(uri):
    """three fragments consolidated into one and vacuumed: nothing is left of the past"""
    several_fragments(uri)
    consolidate(uri, "fragments")
    vacuum(uri, "fragments")
    return {"timestamps": [None, 20, (10, 30)]}


@array
def commits(uri):
    """commits in one .con file and vacuumed, footers in one .meta file, then one more fragment"""
    several_fragments(uri, times=(10, 20))
    consolidate(uri, "commits")
    vacuum(uri, "commits")
    consolidate(uri, "fragment_meta")
    write(uri, [(5, 8)], {"a": range(4)}, timestamp=40)
    return {"timestamps": [None, 15, 35]}


@array
def metadata(uri):
    """metadata of every type; one key changed and one deleted later"""
    create(uri, [dim(0, 3, 2)], [Attr("a", dtype="i4")])
    write(uri, [(0, 3)], {"a": range(4)})
    with tiledb.open(str(uri), "w", timestamp=20) as opened:
        opened.meta.update({"int": 42, "negative": -1, "float": 3.5, "text": "héllo", "empty": "",
                            "bytes": b"\0\1\xff", "ints": (1, 2, 3), "floats": (0.5, 1.5),
                            "units": "K", "gone": "soon"})
    with tiledb.open(str(uri), "w", timestamp=30) as opened:
        opened.meta["int"] = 43
        del opened.meta["gone"]
    with tiledb.open(str(uri)) as opened:
        found = {key: json_metadata(value) for key, value in sorted(opened.meta.items())}
    return {"metadata": found}


NUMBERS = {
    "gzip": ("i4", [tiledb.GzipFilter(level=6)]),
    "zstd": ("f8", [tiledb.ZstdFilter(level=3)]),
    "lz4": ("i4", [tiledb.LZ4Filter()]),
    "bzip2": ("i4", [tiledb.Bzip2Filter(level=9)]),
    "rle": ("i2", [tiledb.RleFilter()]),
    "double_delta": ("i8", [tiledb.DoubleDeltaFilter()]),
    "delta": ("i4", [tiledb.DeltaFilter()]),
    "delta_as_uint8": ("i4", [tiledb.DeltaFilter(reinterp_dtype=np.uint8)]),
    "bit_width": ("i4", [tiledb.BitWidthReductionFilter(window=64)]),
    "bit_width_dates": ("M8[s]", [tiledb.BitWidthReductionFilter()]),
    "positive_delta": ("u4", [tiledb.PositiveDeltaFilter(window=64)]),
    "bit_shuffle": ("u2", [tiledb.BitShuffleFilter()]),
    "byte_shuffle": ("f4", [tiledb.ByteShuffleFilter()]),
    "xor": ("f8", [tiledb.XORFilter()]),
    "scale_float": ("f4", [tiledb.FloatScaleFilter(factor=0.25, offset=10.0, bytewidth=2)]),
    "md5": ("i4", [tiledb.ChecksumMD5Filter()]),
    "sha256": ("i4", [tiledb.ChecksumSHA256Filter()]),
    "scale_bits_zstd": ("f8", [tiledb.FloatScaleFilter(factor=0.5, offset=0.0, bytewidth=4),
                               tiledb.BitWidthReductionFilter(), tiledb.ZstdFilter()]),
    "delta_bits_bzip2": ("i8", [tiledb.DeltaFilter(), tiledb.BitWidthReductionFilter(),
                                tiledb.Bzip2Filter()]),
    "checked": ("i4", [tiledb.ByteShuffleFilter(), tiledb.ChecksumSHA256Filter(),
                       tiledb.ZstdFilter(), tiledb.ChecksumMD5Filter()]),
}
TEXTS = {
    "dictionary": ("ascii", [tiledb.DictionaryFilter()]),
    "dictionary_utf8": ("U0", [tiledb.DictionaryFilter()]),
    "dictionary_zstd": ("ascii", [tiledb.DictionaryFilter(), tiledb.ZstdFilter()]),
    "rle_text": ("ascii", [tiledb.RleFilter()]),
    "rle_text_utf8": ("U0", [tiledb.RleFilter()]),
    "rle_bytes": ("S0", [tiledb.RleFilter()]),
}


@array
def filters(uri):
    """an attribute for every filter, and some pipelines of several"""
    pipelines = NUMBERS | TEXTS
    create(uri, [dim(0, 59, 30)], [Attr(n, dtype=t, filters=f) for n, (t, f) in pipelines.items()])
    columns = {}
    for name, (dtype, _) in NUMBERS.items():
        kind = np.dtype(dtype).kind
        numbers = [i // 9 * 3 for i in range(60)] if name in ("rle", "positive_delta") else [
            (i * i * 7) % 251 - (100 if kind == "i" else 0) for i in range(60)]
        columns[name] = [n / 8 for n in numbers] if kind == "f" else numbers
    for name, (dtype, _) in TEXTS.items():
        tail = "é" if dtype == "U0" else "e"
        columns[name] = [("", "sunny", "rain" + tail, "fog")[i // 7 % 4] for i in range(60)]
    write(uri, [(0, 59)], columns)


@array
def sparse(uri):
    """a sparse array"""
    schema = tiledb.ArraySchema(tiledb.Domain(dim(0, 9, 5)), [Attr("a", dtype="i4")], sparse=True)
    tiledb.Array.create(str(uri), schema)
    with tiledb.open(str(uri), "w", timestamp=10) as opened:
        opened[np.array([1, 3, 8], dtype="i4")] = np.array([10, 30, 80], dtype="i4")
    read = {"timestamp": None, "nonempty_domain": [[1, 8]], "rows": 3,
            "order": "bag: rows sorted by the JSON text of each cell",
            "columns": {"x": [1, 3, 8], "a": [10, 30, 80]}}
    return {"timestamps": [], "reads": [read]}


def save(name, expected):
    text = json.dumps(expected, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    (HERE / name).write_text(text + "\n", encoding="utf-8")


def clear():
    for path in HERE.iterdir():
        if path.name.removesuffix(".expected.json") in COPIES:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix == ".json":
            path.unlink()


def drop_empty_directories():
    """Removes empty directories, which version control does not keep, so tests cannot depend on them."""
    for parent, _, _ in sorted(os.walk(HERE), reverse=True):
        if not os.listdir(parent):
            os.rmdir(parent)


def main():
    clear()
    for name, make in ARRAYS.items():
        extra = make(HERE / name) or {}
        save(f"{name}.expected.json", describe(HERE / name, name, make.__doc__, **extra))
    for name, expected in groups(HERE):
        save(f"{name}.group.json", expected)
    odd(HERE / "odd")
    drop_empty_directories()


if __name__ == "__main__":
    main()
