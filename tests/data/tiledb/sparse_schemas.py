"""Random dimensions, attributes, enumerations and filters of sparse arrays, and values to write."""

import math

import numpy as np
import tiledb
from tiledb import Attr, Dim

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
ORDERS = ["row-major", "col-major"]
DATE_UNITS = ["D", "s", "ms", "us", "ns", "h", "m", "M", "W"]
TEXTS = ["", "a", "ab", "abc", "b", "ba", "c", "it's", "x y", "zz", "zzz"]
UTF8 = [*TEXTS, "é", "aé", "日本", "𝄞"]
BYTES = [b"", b"a", b"ab", b"\0", b"a\0b", b"\xff", b"abcdef"]
LABELS = [["red", "green", "blue"], ["s", "m", "l", "xl"], ["", "one", "two"]]
FLOATS = [i / 4 for i in range(-8, 9) if i] + [0.1, 1e20]

# libtiledb cannot read RLE of no bytes, as in a tile of empty lists.
LIST_FILTERS = [
    [], [tiledb.NoOpFilter()], [tiledb.GzipFilter()], [tiledb.ZstdFilter()], [tiledb.LZ4Filter()],
    [tiledb.Bzip2Filter()], [tiledb.ChecksumMD5Filter()],
    [tiledb.BitShuffleFilter(), tiledb.LZ4Filter()],
    [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter()],
    [tiledb.ZstdFilter(), tiledb.ChecksumSHA256Filter()],
]
BYTE_FILTERS = [*LIST_FILTERS, [tiledb.RleFilter()]]
NUMBER_FILTERS = [*BYTE_FILTERS, [tiledb.XORFilter(), tiledb.ZstdFilter()]]
INTEGER_FILTERS = [
    *NUMBER_FILTERS, [tiledb.DoubleDeltaFilter()], [tiledb.DeltaFilter(), tiledb.GzipFilter()],
    [tiledb.BitWidthReductionFilter()],
    [tiledb.BitWidthReductionFilter(), tiledb.BitShuffleFilter(), tiledb.ZstdFilter()],
]
FLOAT_FILTERS = [
    *NUMBER_FILTERS,
    [tiledb.FloatScaleFilter(factor=0.5, offset=1, bytewidth=4)],
    [tiledb.FloatScaleFilter(factor=0.25, offset=0, bytewidth=2), tiledb.ZstdFilter()],
]
TEXT_FILTERS = [
    *BYTE_FILTERS, [tiledb.DictionaryFilter()], [tiledb.DictionaryFilter(), tiledb.ZstdFilter()],
    [tiledb.RleFilter(), tiledb.GzipFilter()],
]
OFFSET_FILTERS = [
    [], [tiledb.ZstdFilter()], [tiledb.DoubleDeltaFilter()],
    [tiledb.PositiveDeltaFilter(), tiledb.BitWidthReductionFilter(), tiledb.ZstdFilter()],
]
COORDS_FILTERS = [[], [tiledb.GzipFilter()], [tiledb.ByteShuffleFilter(), tiledb.LZ4Filter()]]
VALIDITY_FILTERS = [
    [], [tiledb.RleFilter()], [tiledb.BitShuffleFilter(), tiledb.ZstdFilter()],
]


def filters(rng, pipelines):
    """A pipeline; `None` leaves the default."""
    return None if rng.random() < 0.3 else tiledb.FilterList(rng.choice(pipelines))


def integer_dimension(rng, name, count):
    dtype = rng.choice(INTEGERS)
    info = np.iinfo(dtype)
    starts = [info.min, max(info.min, -7), 0, info.max - 100]
    low, width = rng.choice(starts), count + rng.randint(0, 9)
    extent = rng.choice([None, 1, 3, rng.randint(1, width)])
    dim = Dim(name, domain=(low, low + width - 1), tile=extent, dtype=dtype,
              filters=filters(rng, INTEGER_FILTERS))
    return dim, rng.sample(range(low, low + width), count)


def float_dimension(rng, name, count):
    dtype = rng.choice(["f4", "f8"])
    values = rng.sample([i * 0.3 for i in range(-40, 41) if i], count)
    values = [float(np.dtype(dtype).type(value)) for value in values]
    extent = rng.choice([None, None, 0.7, 2.5])
    dim = Dim(name, domain=(-13.0, 13.0), tile=extent, dtype=dtype,
              filters=filters(rng, NUMBER_FILTERS))
    return dim, values


def date_dimension(rng, name, count):
    unit = rng.choice(DATE_UNITS)
    low, width = rng.choice([-20, 0, 10_000]), count + rng.randint(0, 9)
    bounds = tuple(np.datetime64(bound, unit) for bound in (low, low + width - 1))
    extent = rng.choice([None, np.timedelta64(rng.randint(1, width), unit)])
    dim = Dim(name, domain=bounds, tile=extent, dtype=f"M8[{unit}]",
              filters=filters(rng, INTEGER_FILTERS))
    return dim, rng.sample(range(low, low + width), count)


def text_dimension(rng, name, count):
    values = [*TEXTS, *(f"k{i}" * (1 + i % 3) for i in range(20))]
    dim = Dim(name, domain=(None, None), tile=None, dtype="ascii",
              filters=filters(rng, TEXT_FILTERS))
    return dim, rng.sample(values, count)


def dimensions(rng):
    """One to three dimensions, each with a few coordinates, so that writes overwrite one another."""
    count = rng.choice([1, 1, 2, 2, 3])
    makers = [integer_dimension, integer_dimension, float_dimension, date_dimension, text_dimension]
    sizes = {1: 24, 2: 7, 3: 4}
    names = rng.sample(["x", "y", "z", "Lat", "key 1"], count)
    return [rng.choice(makers)(rng, name, sizes[count]) for name in names]


def fill_of(rng, dtype):
    """A fill value for some attributes; without one, TileDB takes the type's default."""
    if dtype in INTEGERS and rng.random() < 0.4:
        return {"fill": rng.randint(0, 9)}
    return {}


def attribute(rng, name):
    """An attribute without enumeration."""
    nullable = rng.random() < 0.4
    way = rng.choice(["int"] * 5 + ["float"] * 3 + ["date"] * 2 + ["ascii"] * 3 + ["utf8"] * 2 +
                     ["bool", "time", "bytes", "fixed", "blob", "ints", "floats", "c8", "pair"])
    if way == "int":
        dtype = rng.choice(INTEGERS)
        return Attr(name, dtype=dtype, nullable=nullable, filters=filters(rng, INTEGER_FILTERS),
                    **fill_of(rng, dtype))
    if way == "float":
        return Attr(name, dtype=rng.choice(["f4", "f8"]), nullable=nullable,
                    filters=filters(rng, FLOAT_FILTERS))
    if way in ("date", "time"):
        unit = rng.choice(DATE_UNITS if way == "date" else ["s", "ms", "us", "ns"])
        return Attr(name, dtype=f"{'M8' if way == 'date' else 'm8'}[{unit}]", nullable=nullable,
                    filters=filters(rng, INTEGER_FILTERS))
    if way == "ascii":
        return Attr(name, dtype="ascii", var=True, nullable=nullable,
                    filters=filters(rng, TEXT_FILTERS))
    if way == "utf8":
        return Attr(name, dtype="U0", nullable=nullable, filters=filters(rng, TEXT_FILTERS))
    types = {"bool": "bool", "bytes": "S0", "fixed": "S3", "c8": "c8", "pair": [("", "i2")] * 2,
             "blob": "blob", "ints": "i4", "floats": "f8"}
    is_list = {"var": True} if way in ("blob", "ints", "floats") else {}
    pipelines = LIST_FILTERS if is_list or way == "bytes" else BYTE_FILTERS
    return Attr(name, dtype=types[way], nullable=nullable, filters=filters(rng, pipelines),
                **is_list)


def enumerated(rng, name):
    """An attribute of keys, and its enumeration."""
    is_ordered = rng.random() < 0.5
    values = rng.choice(LABELS) if rng.random() < 0.8 else np.array([10, 20, 40], dtype="i4")
    made = tiledb.Enumeration(f"labels of {name}", is_ordered, values)
    attr = Attr(name, dtype=rng.choice(["i1", "u1", "i2", "i4"]), enum_label=made.name,
                nullable=rng.random() < 0.4, filters=filters(rng, INTEGER_FILTERS))
    return attr, made


def one_of(rng, common, odd, share):
    return rng.choice(odd if rng.random() < share else common)


def scalar(rng, kind, is_tame):
    """A random value of a type that is neither text nor bytes; no extreme one if `is_tame`."""
    share = 0 if is_tame else 0.08
    if kind == "BOOL":
        return rng.random() < 0.5
    if kind.startswith("FLOAT"):
        return one_of(rng, FLOATS, [math.nan, math.inf, -math.inf, 0.0], share)
    if kind.startswith(("DATETIME_", "TIME_")):
        return one_of(rng, range(-20, 20), [-2**63], share)
    info = np.iinfo(kind.lower())
    return one_of(rng, range(max(info.min, -5), 10), [info.min, info.max], share)


def cell(rng, field):
    """A random value for a field of `sparse_cells`; None is null."""
    if field.isnullable and rng.random() < 0.25:
        return None
    if field.labels is not None:
        return one_of(rng, range(len(field.labels)), [100], 0.05)
    if field.kind == "STRING_ASCII":
        return rng.choice(TEXTS)
    if field.kind == "STRING_UTF8":
        return rng.choice(UTF8)
    if field.kind in ("CHAR", "BLOB"):
        return rng.choice(BYTES)[:None if field.isvar else field.ncells]
    count = rng.randint(0, 3) if field.isvar else field.ncells
    values = [scalar(rng, field.kind, field.is_tame) for _ in range(count)]
    return values if field.isvar or field.ncells > 1 else values[0]
