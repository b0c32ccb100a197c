"""Random files of netCDF4 (all formats) and h5py: types, chunks, filters, unwritten cells, groups."""

import h5py
import hdf5plugin
import netCDF4
import numpy as np

from netcdf_files import variable
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
from random_zarr import write_parts

VERSIONS = {
    "NETCDF3_CLASSIC": ["i1", "i2", "i4", "f4", "f8", "S1"],
    "NETCDF3_64BIT_OFFSET": ["i1", "i2", "i4", "f4", "f8", "S1"],
    "NETCDF3_64BIT_DATA": [*INTEGERS, "f4", "f8", "S1"],
    "NETCDF4_CLASSIC": ["i1", "i2", "i4", "f4", "f8", "S1"],
    "NETCDF4": [*INTEGERS, "f4", "f8", "S1", "str", "enum"],
}


def numbers(random, dtype, shape):
    return floats(random, dtype, shape) if dtype[0] == "f" else integers(random, dtype, shape)


def attributes_of(random, dtype, data):
    """Chooses attributes that hide, scale or turn numbers, in the variable's type where CF asks for it."""
    attributes = {"long_name": "Größe"}
    if dtype[0] not in "iuf" or not data.size:
        return attributes
    if chance(random, 0.3):
        some = data.flat[int(random.integers(data.size))]
        attributes["missing_value"] = np.array([some, data.flat[0]]) if chance(random, 0.3) else some
    if dtype in ("i1", "i2", "u1", "u2", "i4") and chance(random, 0.3):
        kind = pick(random, [np.float32, np.float64])
        attributes |= {"scale_factor": kind(0.01), "add_offset": kind(5)}
    if dtype[0] == "i" and dtype != "i8" and chance(random, 0.15):
        attributes["_Unsigned"] = "true"
    if chance(random, 0.1):
        attributes["valid_min"] = np.asarray(1, dtype)
    if dtype in ("i4", "f8") and len(attributes) == 1 and chance(random, 0.3):
        unit = pick(random, ["days", "hours", "seconds", "minutes", "months", "d", "hr"])
        attributes["units"] = (
            f"{unit} since {pick(random, ['2000-01-01', '1970-01-01T00:00:00Z', '1999-12-31 12:00 +01:00'])}"
        )
        attributes["calendar"] = pick(random, ["standard", "proleptic_gregorian", "noleap", "360_day"])
    return attributes


def layout(random, version, dtype, shape, unlimited):
    """Chooses chunks and filters of NetCDF-4."""
    if not version.startswith("NETCDF4") or not shape:
        return {}
    options = {}
    # Chunks of two unlimited dimensions are 16 MB if nobody chooses their shape.
    if 0 not in shape and (chance(random, 0.6) or sum(unlimited) > 1):
        options["chunksizes"] = [
            chunk_of(random, n) if is_unlimited else min(n, chunk_of(random, n))
            for n, is_unlimited in zip(shape, unlimited, strict=True)
        ]
    if dtype != "str" and ("chunksizes" in options or any(unlimited)):
        codec = pick(random, [None, "zlib", "zlib", "zstd", "bzip2"])
        options |= {"compression": codec} if codec else {}
        options |= {"shuffle": chance(random, 0.6), "fletcher32": chance(random, 0.2)}
        options["endian"] = (
            pick(random, ["native", "big"]) if dtype[0] in "iuf" and dtype[1] != "1" else "native"
        )
    return options


def fill_group(random, data, group, lengths, unlimited, version, prefix, count):
    for place, dims in enumerate(shapes(random, lengths, count)):
        dtype = pick(random, VERSIONS[version])
        if version.startswith("NETCDF3") or version == "NETCDF4_CLASSIC":
            # Only the first dimension may be unlimited.
            dims = sorted(dims, key=lambda dim: dim not in unlimited)
        shape = tuple(lengths[dim] for dim in dims)
        name = f"{prefix}{place}"
        options = layout(random, version, dtype, shape, [dim in unlimited for dim in dims])
        if dtype == "str":
            made = variable(group, name, str, dims, **options)
            for cell in np.ndindex(shape):
                made[cell if cell else ...] = str(texts(random, ()).item())
            continue
        if dtype == "enum":
            colour = data.enumtypes.get("colour") or data.createEnumType(
                np.int16, "colour", {"red": -1, "green": 0, "blue": 300}
            )
            made = variable(group, name, colour, dims, **options)
            made[...] = random.choice(np.array([-1, 0, 300], "i2"), shape)
            continue
        if dtype == "S1":
            cells = random.integers(97, 123, shape).astype("u1").view("S1")
            variable(
                group,
                name,
                "S1",
                dims,
                cells,
                attributes=pick(random, [{}, {"_Encoding": "ascii"}]),
                **options,
            )
            continue
        cells = numbers(random, dtype, shape)
        fill = None
        if cells.size and chance(random, 0.4):
            fill = cells.flat[int(random.integers(cells.size))]
        attributes = attributes_of(random, dtype, cells)
        if "units" in attributes:
            # Times that timestamps can hold.
            cells = np.mod(cells, 5000).astype(dtype)
            fill = None if fill is None else np.asarray(7, dtype)
        made = variable(group, name, dtype, dims, fill=fill, attributes=attributes, **options)
        if shape and 0 not in shape and chance(random, 0.3):
            write_parts(random, made, cells)
        else:
            made[...] = cells


def write_netcdf(random, path, version):
    names = [str(name) for name in random.permutation(DIMENSIONS)[: int(random.integers(1, 6))]]
    lengths = lengths_of(random, names)
    many = version == "NETCDF4"
    # One at most: netcdf-c 4.10 returns wrong cells of a variable that is shorter than one of several.
    candidates = names if many else names[:1]
    unlimited = [str(random.choice(candidates))] if chance(random, 0.6) else []
    lengths = {name: max(length, 0 if name in unlimited else 1) for name, length in lengths.items()}
    with netCDF4.Dataset(path, "w", format=version) as data:
        data.title = "random"
        for name, length in lengths.items():
            data.createDimension(name, None if name in unlimited else length)
        for name in names:
            # The first write sets the length of an unlimited dimension.
            if name in unlimited or chance(random, 0.5):
                dtype = pick(random, ["i2", "i4", "f4", "f8"])
                labels = np.arange(lengths[name], 0, -1).astype(dtype)
                units = {"units": "hours since 2001-01-01"} if chance(random, 0.3) else {}
                variable(data, name, dtype, (name,), labels, attributes=units)
        fill_group(random, data, data, lengths, unlimited, version, "v", int(random.integers(1, 6)))
        if many and chance(random, 0.5):
            child = data.createGroup("g")
            child.createDimension("own", 3)
            if chance(random, 0.3):
                # Hides a dimension of the root.
                child.createDimension(names[0], 2)
                lengths = {**lengths, names[0]: 2}
                unlimited = unlimited[1:] if names[0] in unlimited else unlimited
            fill_group(random, data, child, {**lengths, "own": 3}, unlimited, version, "w", 3)


def netcdf4_python(random, path):
    write_netcdf(random, path, "NETCDF4")


def netcdf4_classic_model(random, path):
    write_netcdf(random, path, "NETCDF4_CLASSIC")


def netcdf3_python(random, path):
    write_netcdf(
        random, path, pick(random, ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
    )


def filters(random, dtype):
    choices = [
        {},
        {"compression": "gzip"},
        {"compression": "lzf"},
        hdf5plugin.Zstd(),
        hdf5plugin.LZ4(),
        hdf5plugin.Bitshuffle(cname=pick(random, ["none", "lz4"])),
    ]
    chosen = dict(pick(random, choices))
    chosen |= (
        {"shuffle": True}
        if chance(random, 0.4) and chosen.get("compression") in (None, "gzip", "lzf")
        else {}
    )
    chosen |= {"fletcher32": True} if chance(random, 0.2) else {}
    return chosen


def h5py_dataset(random, group, name, shape):
    dtype = pick(random, ["<", ">"]) + pick(random, [*INTEGERS, "f2", "f4", "f8", "f4", "f8"])
    cells = numbers(random, dtype[1:], shape).astype(dtype)
    kind = pick(random, ["number"] * 6 + ["text", "bool", "bytes"])
    if kind == "text":
        group.create_dataset(name, data=texts(random, shape), dtype=h5py.string_dtype())
        return
    if kind == "bool":
        cells = random.random(shape) < 0.5
    if kind == "bytes":
        cells = cells.astype("S6")
    options = {}
    if shape and 0 not in shape and chance(random, 0.7):
        options["maxshape"] = tuple(None if chance(random, 0.3) else n for n in shape)
        options["chunks"] = tuple(
            chunk_of(random, n) if m is None else min(n, chunk_of(random, n))
            for n, m in zip(shape, options["maxshape"], strict=True)
        )
        options |= filters(random, dtype)
    if cells.dtype.kind in "iuf" and chance(random, 0.5):
        options["fillvalue"] = cells.dtype.type(7)
    if not shape or 0 in shape or chance(random, 0.6):
        group.create_dataset(name, data=cells, **options)
    else:
        write_parts(random, group.create_dataset(name, shape, cells.dtype, **options), cells)


def h5py_plain(random, path):
    names = ["a", "b", "c", "d", "e"]
    lengths = lengths_of(random, names)
    version = pick(random, [None, "latest", "v108", "v110"])
    block = int(pick(random, [0, 0, 0, 512, 2048]))
    options = {"libver": (version, version)} if version in ("v108", "v110") else {"libver": version}
    with h5py.File(path, "w", userblock_size=block, **options) as data:
        for place, dims in enumerate(shapes(random, lengths, int(random.integers(1, 6)))):
            group = data.require_group(pick(random, ["g", "g/h", "/", "/"]))
            h5py_dataset(random, group, f"v{place}", tuple(lengths[dim] for dim in dims))


WRITERS = [
    (netcdf4_python, ".nc"),
    (netcdf4_classic_model, ".nc"),
    (netcdf3_python, ".nc"),
    (h5py_plain, ".h5"),
]
