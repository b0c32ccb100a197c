"""Random stores of zarr-python: codecs, shards, fill values, byte order, absent chunks, keys, groups."""

import numcodecs
import numpy as np
import zarr
from xarray.backends.zarr import FillValueCoder
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)

from random_xarray import (
    DIMENSIONS,
    INTEGERS,
    chance,
    chunk_of,
    floats,
    integers,
    lengths_of,
    pick,
    shapes,
    texts,
)
from zarr_stores import put

TYPES = [
    *INTEGERS,
    *INTEGERS,
    "f2",
    "f4",
    "f4",
    "f8",
    "f8",
    "bool",
    "c8",
    "c16",
    "M8[ns]",
    "M8[s]",
    "M8[D]",
    "m8[ms]",
    "m8[ns]",
    "U3",
    "S4",
    "str",
]


def values(random, dtype, shape):
    """Returns an array of a type; one in three has only two different values, so that chunks are all fill."""
    kind = "O" if dtype == "str" else np.dtype(dtype).kind
    if kind == "O":
        return texts(random, shape)
    if kind in "US":
        words = [word.encode("ascii", "replace").decode()[:3] for word in texts(random, shape).flat]
        return np.array(words, "U3").reshape(shape).astype(dtype)
    if kind == "b":
        return random.random(shape) < 0.5
    if kind == "f":
        return floats(random, dtype, shape)
    if kind == "c":
        return (floats(random, "f4", shape) + 1j * random.normal(size=shape)).astype(dtype)
    if kind in "Mm":
        data = random.integers(-(10**5), 10**5, shape)
        return np.where(random.random(shape) < 0.2, -(2**63), data).astype("i8").view(dtype)
    return integers(random, dtype, shape)


def fill_of(random, dtype, data):
    """Chooses a fill value: one that occurs among the cells, or 0, or none of them."""
    kind = "O" if dtype == "str" else np.dtype(dtype).kind
    if kind in "Mm":
        return np.datetime64("NaT") if kind == "M" else np.timedelta64("NaT")
    if data.size and chance(random, 0.5):
        value = data.flat[int(random.integers(data.size))]
        return value if kind in "OU" else value.item() if kind != "S" else bytes(value)
    return {"O": "", "U": "", "S": b"", "b": False}.get(
        kind, np.nan if kind == "f" and chance(random, 0.5) else 0
    )


def compressors_v2(random, itemsize):
    codecs = [
        None,
        numcodecs.Zlib(int(random.integers(0, 9))),
        numcodecs.GZip(5),
        numcodecs.BZ2(),
        numcodecs.LZ4(),
        numcodecs.Zstd(int(random.integers(-3, 9))),
        numcodecs.Blosc(
            pick(random, ["lz4", "lz4hc", "zstd", "zlib", "blosclz"]),
            clevel=int(random.integers(0, 10)),
            shuffle=int(random.integers(0, 3)),
            blocksize=int(pick(random, [0, 0, 64, 256])),
        ),
    ]
    return pick(random, [*codecs, codecs[-1], codecs[-1]])


def filters_v2(random, dtype):
    kind = np.dtype(dtype).kind
    if not chance(random, 0.3) or kind not in "iuf":
        return None
    width = np.dtype(dtype).itemsize
    choices = [
        [numcodecs.Shuffle(width)],
        [numcodecs.CRC32()],
        [numcodecs.Fletcher32()],
        [numcodecs.Adler32()],
    ]
    if kind in "iu":
        choices += [[numcodecs.Delta(dtype)], [numcodecs.Delta(dtype), numcodecs.Shuffle(width)]]
    return pick(random, choices)


def codecs_v3(random, width):
    blosc = BloscCodec(
        typesize=width,
        cname=pick(random, ["lz4", "zstd", "zlib", "blosclz", "lz4hc"]),
        shuffle=pick(random, ["noshuffle", "shuffle", "bitshuffle"]),
    )
    choices = [
        [],
        [ZstdCodec(level=int(random.integers(-3, 9)), checksum=chance(random, 0.5))],
        [GzipCodec(level=4)],
        [blosc],
        [Crc32cCodec()],
    ]
    chain = list(pick(random, choices))
    return [*chain, Crc32cCodec()] if chain and chance(random, 0.2) else chain


def options_v3(random, dtype, shape):
    """Chooses codecs of version 3, with or without shards."""
    if dtype == "str":
        return {}
    width = np.dtype(dtype).itemsize
    endian = (
        BytesCodec(endian=pick(random, ["little", "big"]))
        if width > 1 and dtype[0] not in "S"
        else BytesCodec(endian=None)
    )
    axes = tuple(int(axis) for axis in random.permutation(len(shape)))
    transpose = [TransposeCodec(order=axes)] if len(shape) > 1 and chance(random, 0.4) else []
    chain = codecs_v3(random, width)
    if len(shape) == 0 or 0 in shape or not chance(random, 0.5):
        return {"filters": transpose, "serializer": endian, "compressors": chain or None}
    inner = tuple(chunk_of(random, length) for length in shape)
    outer = tuple(length * int(random.integers(1, 4)) for length in inner)
    index = [
        [BytesCodec(endian="little"), Crc32cCodec()],
        [BytesCodec(endian="big")],
        [BytesCodec(), Crc32cCodec()],
    ]
    sharding = ShardingCodec(
        chunk_shape=inner,
        codecs=[*transpose, endian, *chain],
        index_codecs=pick(random, index),
        index_location=pick(random, ["start", "end", "end"]),
    )
    return {"serializer": sharding, "compressors": None, "chunks": outer}


def write_parts(random, array, data):
    """Writes some boxes of an array, so that chunks between them are absent."""
    for _ in range(int(random.integers(0, 4))):
        box = []
        for length in data.shape:
            start = int(random.integers(0, length + 1))
            box.append(slice(start, int(random.integers(start, length + 1))))
        array[tuple(box)] = data[tuple(box)]


def attributes_of(random, dtype, data, version):
    """Chooses attributes that hide or scale cells."""
    kind = "O" if dtype == "str" else np.dtype(dtype).kind
    attributes = {"units": "1", "long_name": "Größe"}
    if kind in "iuf" and data.size and chance(random, 0.3):
        value = data.flat[int(random.integers(data.size))].item()
        if np.isfinite(value):
            attributes["missing_value"] = value
    if kind in "iufb" and version == 3 and data.size and chance(random, 0.4):
        value = data.flat[int(random.integers(data.size))]
        attributes["_FillValue"] = FillValueCoder.encode(value.item(), np.dtype(dtype))
        attributes.pop("missing_value", None)
    if kind in "iu" and np.dtype(dtype).itemsize < 8 and chance(random, 0.2):
        attributes |= {"scale_factor": pick(random, [0.5, 0.01, 2]), "add_offset": pick(random, [0, 10.5])}
    return attributes


def fill_group(random, group, lengths, count, prefix):
    version = group.metadata.zarr_format
    for place, dims in enumerate(shapes(random, lengths, count)):
        dtype = pick(random, TYPES)
        shape = tuple(lengths[dim] for dim in dims)
        data = values(random, dtype, shape)
        options = {
            "fill": fill_of(random, dtype, data),
            "attributes": attributes_of(random, dtype, data, version),
        }
        options["chunks"] = tuple(chunk_of(random, length) for length in shape)
        if dtype == "str":
            options["dtype"] = str
        if version == 2:
            swapped = dtype != "str" and np.dtype(dtype).itemsize > 1 and chance(random, 0.4)
            options.setdefault("dtype", np.dtype(dtype).newbyteorder(">") if swapped else np.dtype(dtype))
            options["order"] = pick(random, ["C", "F"])
            if dtype != "str":
                filters = None if swapped else filters_v2(random, dtype)
                options |= {
                    "compressors": compressors_v2(random, np.dtype(dtype).itemsize),
                    "filters": filters,
                }
            options["chunk_key_encoding"] = {"name": "v2", "separator": pick(random, [".", ".", "/"])}
        else:
            options |= options_v3(random, dtype, shape)
            keys = [
                {"name": "default", "separator": "/"},
                {"name": "default", "separator": "."},
                {"name": "v2", "separator": "."},
            ]
            options["chunk_key_encoding"] = pick(random, [keys[0], *keys])
        partial = bool(shape) and chance(random, 0.4)
        array = put(group, f"{prefix}{place}", data, dims, absent=partial, **options)
        if partial:
            write_parts(random, array, data)


def write_store(random, path, version):
    group = zarr.create_group(str(path), zarr_format=version, attributes={"title": "random"})
    names = [str(name) for name in random.permutation(DIMENSIONS)[: int(random.integers(1, 6))]]
    lengths = lengths_of(random, names)
    for name, length in lengths.items():
        if chance(random, 0.5):
            dtype = pick(random, ["i2", "i8", "f4", "f8", "u1", "M8[s]", "U3"])
            data = np.sort(values(random, dtype, (length,)))[::-1]
            put(
                group,
                name,
                data,
                (name,),
                fill=fill_of(random, dtype, data[:0]),
                chunks=(chunk_of(random, length),),
            )
    fill_group(random, group, lengths, int(random.integers(1, 6)), "v")
    if chance(random, 0.4):
        child = group.create_group(pick(random, ["g", "g/h"]))
        fill_group(random, child, {**lengths, "own": 3}, 2, "w")
    if chance(random, 0.5):
        zarr.consolidate_metadata(str(path))


def zarr_python_v2(random, path):
    write_store(random, path, 2)


def zarr_python_v3(random, path):
    write_store(random, path, 3)


WRITERS = [(zarr_python_v2, ".zarr"), (zarr_python_v3, ".zarr")]
