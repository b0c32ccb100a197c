"""Random datasets of xarray, and its writers: Zarr 2 and 3, netCDF4, h5netcdf and SciPy."""

import shutil

import netCDF4
import numpy as np
import xarray as xr
import zarr

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
DIMENSIONS = ["time", "z", "lat", "lon", "station", "member"]
WORDS = ["", "a", "b c", "Ü", "x,y", 'q"', "日本", "long enough for two", "NA", "nan", "0"]
BUDGET = 2000


def remove(path):
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)


def chance(random, probability):
    return random.random() < probability


def pick(random, choices):
    return choices[int(random.integers(len(choices)))]


def lengths_of(random, names):
    """Chooses lengths such that three dimensions have some hundred cells at most. One in thirty is 0."""
    return {name: 0 if chance(random, 0.03) else int(random.integers(1, 9)) for name in names}


def shapes(random, lengths, count):
    """Yields the dimensions of variables of rank 0 to 5, whose cells are at most BUDGET together."""
    left = BUDGET - sum(lengths.values())
    for _ in range(count):
        rank = min(len(lengths), int(pick(random, [0, 1, 1, 2, 2, 3, 3, 4, 5])))
        dims = [str(name) for name in random.permutation(list(lengths))[:rank]]
        while np.prod([lengths[dim] for dim in dims], dtype=int) > left:
            dims.pop()
        left -= int(np.prod([lengths[dim] for dim in dims], dtype=int))
        yield dims


def chunk_of(random, length):
    """Chooses a chunk's length: often one that does not divide `length`, sometimes a longer one."""
    return int(random.integers(1, max(2, length + 3)))


def integers(random, dtype, shape):
    """Random integers: all of the range, or near its ends, or small."""
    info = np.iinfo(dtype)
    spread = pick(random, ["all", "small", "ends"])
    if spread == "all":
        return random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    small = random.integers(0, 100, shape).astype(dtype)
    if spread == "small":
        return small
    return np.where(random.random(shape) < 0.5, info.max - small, info.min + small).astype(dtype)


def floats(random, dtype, shape):
    data = random.normal(0, 10.0 ** random.integers(-2, 4), shape)
    if chance(random, 0.3):
        data = np.round(data, 1)
    data = np.asarray(data, dtype)
    odd = random.random(shape)
    data = np.where(odd < 0.1, np.nan, data)
    data = np.where(odd > 0.98, np.inf, data)
    return np.where((odd > 0.96) & (odd < 0.98), -0.0, data).astype(dtype)


def texts(random, shape):
    words = np.array(
        [WORDS[i] for i in random.integers(0, len(WORDS), int(np.prod(shape, dtype=int)))], dtype=object
    )
    return words.reshape(shape)


def times(random, shape, whole="s"):
    step = {"s": 1, "h": 3600, "D": 86400}[whole]
    seconds = random.integers(-(10**9), 2 * 10**9, shape) // step * step
    data = np.asarray(seconds, "M8[s]").astype("M8[ns]")
    return data


# ------------------------------------------------------------------------------------- coordinates


def coordinate(random, length):
    """Returns the labels of a dimension and their encoding; None if it has no labels."""
    kind = pick(
        random,
        [
            "float",
            "float",
            "integer",
            "integer",
            "text",
            "time",
            "time",
            "time",
            "noleap",
            "none",
            "none",
            "loose",
            "bool",
        ],
    )
    if length == 0 and kind in ("time", "noleap", "text"):
        kind = "none"
    if kind == "none":
        return None
    if kind == "float":
        start, step = np.round(random.normal(0, 100), 2), np.round(random.uniform(0.1, 5), 2)
        labels = (start + step * np.arange(length)).astype(pick(random, ["f4", "f8"]))
        return (labels[::-1].copy() if chance(random, 0.5) else labels), {}
    if kind == "integer":
        labels = np.arange(length) * int(random.integers(1, 5)) + int(random.integers(0, 20))
        return (labels[::-1].copy() if chance(random, 0.3) else labels).astype(pick(random, INTEGERS)), {}
    if kind == "text":
        labels = np.array([f"{pick(random, WORDS)}{i}" for i in range(length)], dtype=object)
        return (labels.astype(str) if chance(random, 0.5) else labels), {}
    if kind == "loose":
        # Neither in order nor without repeats.
        return random.integers(0, 4, length).astype("f8"), {}
    if kind == "bool":
        return random.random(length) < 0.5, {}
    if kind == "noleap":
        steps = xr.date_range(
            "2001-02-26",
            periods=length,
            freq="D",
            calendar=pick(random, ["noleap", "360_day", "julian"]),
            use_cftime=True,
        )
        return steps, {}
    return time_axis(random, length)


def time_axis(random, length):
    unit = pick(random, ["days", "hours", "minutes", "seconds", "milliseconds"])
    step = {"days": "D", "hours": "h", "minutes": "m", "seconds": "s", "milliseconds": "ms"}[unit]
    start = np.datetime64(
        pick(random, ["1990-01-01T06:00", "2000-02-28", "1969-12-31T23:00", "2024-06-01T00:30"]), "ns"
    )
    labels = start + np.arange(length) * np.timedelta64(int(random.integers(1, 9)), step).astype("m8[ns]")
    reference = pick(
        random,
        [
            "1970-01-01",
            "1990-01-01 00:30:00",
            "2000-1-1 6:0:0",
            "1900-01-01T00:00:00",
            str(start.astype("M8[s]")),
        ],
    )
    encoding = {"units": f"{unit} since {reference}", "dtype": pick(random, ["f8", "f8", "i8", "i4"])}
    encoding["calendar"] = pick(random, ["standard", "gregorian", "proleptic_gregorian"])
    return labels, encoding


# ------------------------------------------------------------------------------------- variables


def variable(random, shape, kinds):
    """Returns an array and its encoding."""
    kind = pick(random, kinds)
    if kind == "float":
        return floats(random, pick(random, ["f4", "f8"]), shape), pick(
            random, [{}, {}, {"_FillValue": -999.0}, {"_FillValue": None}, {"missing_value": 1e20}]
        )
    if kind == "half":
        return floats(random, "f2", shape), {}
    if kind == "integer":
        return integers(random, pick(random, INTEGERS), shape), {}
    if kind == "masked":
        dtype = pick(random, INTEGERS[:6])
        data = integers(random, dtype, shape)
        fill = int(pick(random, [np.iinfo(dtype).min, np.iinfo(dtype).max, 7]))
        if chance(random, 0.5):
            data = np.where(random.random(shape) < 0.2, np.asarray(fill, dtype), data)
        return data, {"_FillValue": fill}
    if kind == "packed":
        return packed(random, shape)
    if kind == "bool":
        return random.random(shape) < 0.5, {}
    if kind == "text":
        data = texts(random, shape)
        return (data.astype(str) if chance(random, 0.4) else data), {}
    if kind == "bytes":
        return texts(random, shape).astype(str).astype(object), {"dtype": "S1"}
    if kind == "time":
        data = times(random, shape, pick(random, ["s", "h", "D"]))
        if chance(random, 0.5):
            data = np.where(random.random(shape) < 0.2, np.datetime64("NaT", "ns"), data)
        return data, pick(random, [{}, {"units": "seconds since 1970-01-01", "dtype": "f8"}])
    if kind == "span":
        data = random.integers(-(10**6), 10**6, shape).astype("m8[s]").astype("m8[ns]")
        return np.asarray(data), {}
    data = floats(random, "f8", shape) + 1j * random.normal(size=shape)
    return np.asarray(data, pick(random, ["c8", "c16"])), {}


def packed(random, shape):
    dtype = pick(random, INTEGERS)
    info = np.iinfo(dtype)
    scale = float(pick(random, [0.01, 0.5, 2.0, 0.1, 1e-3]))
    offset = float(pick(random, [0.0, 273.15, -90.0, 1000.0]))
    low, high = max(info.min + 1, -30_000), min(info.max - 1, 30_000)
    data = random.integers(low, high, shape) * scale + offset
    data = np.where(random.random(shape) < 0.15, np.nan, data)
    encoding = {
        "dtype": dtype,
        "scale_factor": scale,
        "_FillValue": int(pick(random, [info.min, info.max])),
    }
    if offset or chance(random, 0.5):
        encoding["add_offset"] = offset
    return np.asarray(data), encoding


COMMON = [
    "float",
    "float",
    "float",
    "integer",
    "integer",
    "masked",
    "packed",
    "packed",
    "bool",
    "text",
    "time",
    "span",
]


def dataset(random, kinds, names=DIMENSIONS):
    """Returns a dataset and its encodings, without any of chunks."""
    lengths = lengths_of(
        random, [str(name) for name in random.permutation(names)[: int(random.integers(1, 6))]]
    )
    coords, data, encodings = {}, {}, {}
    for name, length in lengths.items():
        made = coordinate(random, length)
        if made is not None:
            coords[name] = (name, made[0])
            encodings[name] = made[1]
    for place, dims in enumerate(shapes(random, lengths, int(random.integers(1, 5)))):
        shape = [lengths[dim] for dim in dims]
        made, encoding = variable(random, shape, kinds)
        name = f"v{place}" if chance(random, 0.9) else f"v {place}-é"
        data[name] = (dims, made)
        encodings[name] = encoding
    if chance(random, 0.3):
        first = next(iter(lengths))
        coords["height"] = 2.0
        coords["nearby"] = (first, floats(random, "f4", lengths[first]))
    attributes = {"title": "random", "numbers": [1, 2, 3]}
    return xr.Dataset(data, coords, attributes), encodings


def write_zarr(random, path, version):
    kinds = [*COMMON, "complex", "half"]
    data, encodings = dataset(random, kinds)
    encodings = chunked(random, data, encodings, "chunks")
    if version == 3:
        add_shards(random, data, encodings)
    consolidated = chance(random, 0.7)
    data.to_zarr(path, zarr_format=version, consolidated=consolidated, encoding=encodings)
    if chance(random, 0.3):
        child, encodings = dataset(random, kinds, names=["step", "level"])
        group = pick(random, ["forecast", "a/b"])
        child.to_zarr(
            path, group=group, mode="a", zarr_format=version, consolidated=False, encoding=encodings
        )
        if consolidated:
            zarr.consolidate_metadata(str(path))


def chunked(random, data, encodings, key):
    for name in data.variables:
        shape = data[name].shape
        if shape and 0 not in shape and chance(random, 0.7):
            encodings.setdefault(name, {})
            limit = shape if key == "chunksizes" else [length + 9 for length in shape]
            encodings[name][key] = tuple(
                min(chunk_of(random, n), m) for n, m in zip(shape, limit, strict=True)
            )
    return encodings


def add_shards(random, data, encodings):
    for name, encoding in encodings.items():
        is_text = data[name].dtype.kind in "OUT"
        if "chunks" in encoding and not is_text and chance(random, 0.3):
            encoding["shards"] = tuple(chunk * int(random.integers(1, 4)) for chunk in encoding["chunks"])


def xarray_zarr_v2(random, path):
    write_zarr(random, path, 2)


def xarray_zarr_v3(random, path):
    write_zarr(random, path, 3)


def write_netcdf4(random, path, engine, kinds, **options):
    data, encodings = dataset(random, kinds)
    encodings = chunked(random, data, encodings, "chunksizes")
    for name, encoding in encodings.items():
        if data[name].dtype.kind not in "OU" and "chunksizes" in encoding and chance(random, 0.6):
            encoding |= {
                "zlib": True,
                "complevel": int(random.integers(1, 9)),
                "shuffle": chance(random, 0.7),
            }
            encoding["fletcher32"] = chance(random, 0.2)
    unlimited = [name for name in data.dims if chance(random, 0.3)]
    for name in data.variables:
        # Chunks of two unlimited dimensions are 64 MB of text if nobody chooses their shape.
        if len(set(unlimited) & set(data[name].dims)) > 1 and "chunksizes" not in encodings.get(name, {}):
            encodings.setdefault(name, {})["chunksizes"] = tuple(max(1, n) for n in data[name].shape)
    options |= {"engine": engine, "unlimited_dims": unlimited}
    data.to_netcdf(path, encoding=encodings, **options)
    if chance(random, 0.3):
        child, encodings = dataset(random, kinds, names=["step", "level"])
        child.to_netcdf(
            path,
            mode="a",
            group=pick(random, ["forecast", "a/b"]),
            encoding=encodings,
            **{**options, "unlimited_dims": []},
        )


def xarray_netcdf4(random, path):
    write_netcdf4(random, path, "netcdf4", [*COMMON, "bytes"])


def xarray_h5netcdf(random, path):
    write_netcdf4(random, path, "h5netcdf", [*COMMON, "half", "complex"], invalid_netcdf=True)


def classic_dataset(random):
    """Returns a dataset without types that NetCDF-3 lacks."""
    data, encodings = dataset(
        random, ["float", "float", "bool", "text", "time", "packed", "masked", "integer"]
    )
    for name in list(data.variables):
        unsigned_or_long = (
            str(encodings.get(name, {}).get("dtype", data[name].dtype))
            .lstrip("<")
            .replace("uint", "u")
            .replace("int", "i")
        )
        if (
            unsigned_or_long in ("u1", "u2", "u4", "u8", "i8", "u16", "u32", "u64", "i64")
            and data[name].dtype.kind not in "M"
        ):
            data = data.drop_vars(name)
            encodings.pop(name, None)
    return data, encodings


def with_records(random, data):
    """Makes the first dimension unlimited, mostly. Only that one may have length 0 in NetCDF-3."""
    empty = [name for name, length in data.sizes.items() if length == 0]
    unlimited = (
        empty[:1] if empty else [pick(random, list(data.dims))] if data.dims and chance(random, 0.6) else []
    )
    data = data.drop_vars([name for name in data.variables if set(data[name].dims) & set(empty[1:])])
    unlimited = [name for name in unlimited if name in data.dims]
    return data.transpose(*unlimited, ...), unlimited


def of(data, encodings):
    return {name: encoding for name, encoding in encodings.items() if name in data.variables}


def xarray_scipy(random, path):
    data, encodings = classic_dataset(random)
    # SciPy writes names in Latin-1, which no other library reads.
    data = data.rename({name: name.rstrip("é") for name in data.variables})
    encodings = {name.rstrip("é"): encoding for name, encoding in encodings.items()}
    data, unlimited = with_records(random, data)
    if unlimited:
        # SciPy overlaps scalars with records.
        data = data.drop_vars([name for name in data.variables if data[name].ndim == 0])
    version = pick(random, ["NETCDF3_CLASSIC", "NETCDF3_64BIT"])
    options = {"unlimited_dims": unlimited, "encoding": of(data, encodings)}
    data.to_netcdf(path, engine="scipy", format=version, **options)
    # netcdf-c refuses some files of SciPy without records.
    netCDF4.Dataset(path).close()


def xarray_classic(random, path):
    data, encodings = classic_dataset(random)
    data, unlimited = with_records(random, data)
    version = pick(random, ["NETCDF3_CLASSIC", "NETCDF3_64BIT"])
    options = {"unlimited_dims": unlimited, "encoding": of(data, encodings)}
    data.to_netcdf(path, engine="netcdf4", format=version, **options)


WRITERS = [
    (xarray_zarr_v2, ".zarr"),
    (xarray_zarr_v3, ".zarr"),
    (xarray_netcdf4, ".nc"),
    (xarray_h5netcdf, ".nc"),
    (xarray_scipy, ".nc"),
    (xarray_classic, ".nc"),
]
