"""The NetCDF and HDF5 files of the fixed set; the docstring of each says what is special."""

import base64
import json
import os

import h5py
import hdf5plugin
import netCDF4
import numpy as np

from zarr_stores import climate, curvilinear, extremes, month

FILES = []


def file(name):
    def add(make):
        FILES.append((name, make))
        return make

    return add


def variable(group, name, dtype, dims=(), data=None, fill=None, attributes=None, **options):
    """Creates a variable and writes it as it is, without scaling or masking."""
    made = group.createVariable(name, dtype, dims, fill_value=fill, **options)
    made.setncatts(attributes or {})
    made.set_auto_maskandscale(False)
    made.set_auto_chartostring(False)
    if data is not None:
        made[...] = data
    return made


def chars(texts, width):
    """Returns texts as rows of single characters, with NUL bytes after their ends."""
    return np.array([text.encode() for text in texts], f"S{width}").view("S1").reshape(len(texts), width)


# ------------------------------------------------------------------------------------- NetCDF-3


def classic(path, version, dtypes):
    """Writes fixed and record variables of each type, with text, packed and masked numbers."""
    with netCDF4.Dataset(path, "w", format=version) as data:
        data.setncatts({"title": "klassisch: ä", "numbers": np.array([1, 2, 3], "i2")})
        for name, length in (("time", None), ("y", 3), ("x", 5), ("width", 6), ("station", 4)):
            data.createDimension(name, length)
        # The length of a record of `flag` is 3 bytes, and 4 with its padding.
        variable(
            data,
            "time",
            "f8",
            ("time",),
            [0, 6, 12, 18.5],
            attributes={"units": "hours since 1999-12-31 18:00:00"},
        )
        variable(data, "y", "f4", ("y",), [30, 20, 10])
        variable(data, "flag", "i1", ("time", "y"), np.arange(-6, 6).reshape(4, 3))
        random = np.random.default_rng(4)
        grid = random.integers(-100, 100, (4, 3, 5))
        packed = {
            "scale_factor": np.float64(0.1),
            "add_offset": np.float64(10),
            "missing_value": np.int16(-99),
        }
        grid[0, 0, 0], grid[1, 1, 1] = -99, -32767
        variable(data, "packed", "i2", ("time", "y", "x"), grid, fill=np.int16(-32767), attributes=packed)
        single = {"scale_factor": np.float32(0.01), "add_offset": np.float32(1)}
        variable(data, "packed_single", "i2", ("y", "x"), grid[0], attributes=single)
        masked = random.normal(size=(4, 5)).astype("f4")
        masked[2, 3] = 1e20
        variable(
            data, "masked", "f4", ("time", "x"), masked, attributes={"missing_value": np.float32(1e20)}
        )
        # The second name of this station has the full width, and the last one is empty.
        variable(data, "station", "S1", ("station", "width"), chars(["Oslo", "Berlin", "Rio", ""], 6))
        variable(
            data,
            "code",
            "S1",
            ("time", "width"),
            chars(["a", "bb", "ccc", "dddddd"], 6),
            attributes={"_Encoding": "utf-8"},
        )
        variable(data, "letter", "S1", ("y",), np.array(["p", "q", "r"], "S1"))
        variable(data, "of_station", "f8", ("station",), [1.5, np.nan, -0.0, np.inf])
        variable(data, "scalar", "i4", (), 42)
        # Three records of four are written; the fourth has the fill value of its type.
        variable(data, "short", "i4", ("time",))[:3] = [1, 2, 3]
        variable(
            data,
            "unsigned",
            "i1",
            ("y",),
            np.array([1, -1, -128], "i1"),
            fill=np.int8(-1),
            attributes={"_Unsigned": "true"},
        )
        for name in dtypes:
            values = extremes(name)
            variable(data, f"all_{name}", name, ("x",), values[:5])
            variable(data, f"record_{name}", name, ("time",), values[:4])


@file("classic_cdf1.nc")
def cdf1(path):
    """CDF-1"""
    classic(path, "NETCDF3_CLASSIC", ["i1", "i2", "i4", "f4", "f8"])


@file("classic_cdf2.nc")
def cdf2(path):
    """CDF-2, with 64-bit offsets"""
    classic(path, "NETCDF3_64BIT_OFFSET", ["i2", "f8"])


@file("classic_cdf5.nc")
def cdf5(path):
    """CDF-5, with unsigned and 64-bit integers"""
    classic(path, "NETCDF3_64BIT_DATA", ["u1", "u2", "u4", "i8", "u8"])


@file("one_record_variable.nc")
def one_record_variable(path):
    """CDF-1 with one record variable of 3 bytes a record, whose records have no padding"""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as data:
        data.createDimension("time", None)
        data.createDimension("x", 3)
        variable(data, "x", "i2", ("x",), [7, 8, 9])
        variable(data, "only", "i1", ("time", "x"), np.arange(15).reshape(5, 3))


@file("by_scipy.nc")
def by_scipy(path):
    """CDF-2 by xarray with SciPy: `i4` for times, characters with `_Encoding`"""
    data = climate().drop_vars(["height", "total", "note"])
    data.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT", unlimited_dims=["time"])


@file("no_records.nc")
def no_records(path):
    """CDF-1 with an unlimited dimension of length 0"""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as data:
        data.createDimension("time", None)
        data.createDimension("x", 2)
        variable(data, "time", "f8", ("time",), attributes={"units": "days since 2000-01-01"})
        variable(data, "nothing", "f4", ("time", "x"))
        variable(data, "fixed", "f4", ("x",), [1, 2])


# ------------------------------------------------------------------------------------- NetCDF-4


@file("climate_nc4.nc")
def climate_nc4(path):
    """NetCDF-4: deflate and shuffle, unlimited time, packed numbers, bounds, text, an enumeration, groups"""
    with netCDF4.Dataset(path, "w") as data:
        data.setncatts({"Conventions": "CF-1.10", "title": "made for tests"})
        for name, length in (
            ("time", None),
            ("lat", 4),
            ("lon", 5),
            ("nv", 2),
            ("station", 3),
            ("width", 8),
        ):
            data.createDimension(name, length)
        random = np.random.default_rng(5)
        times = {"units": "days since 2024-01-01", "calendar": "standard", "bounds": "time_bnds"}
        variable(data, "time", "f8", ("time",), [0.5, 1.5, 2.5, 3.5], attributes=times)
        variable(data, "time_bnds", "f8", ("time", "nv"), [[i, i + 1] for i in range(4)])
        # Packed coordinates are usual in files of satellites.
        packed = {"scale_factor": np.float64(0.5), "add_offset": np.float64(-90)}
        variable(data, "lat", "u1", ("lat",), [0, 90, 180, 255], attributes=packed)
        variable(data, "lon", "f4", ("lon",), np.linspace(0, 300, 5), fill=np.float32(np.nan))
        squeezed = {"zlib": True, "complevel": 4, "shuffle": True}
        cube = ("time", "lat", "lon")
        grid = random.integers(-3000, 3000, (4, 4, 5))
        grid[0, :2, 0], grid[3] = -32768, -32768
        sst = {
            "scale_factor": np.float64(0.01),
            "add_offset": np.float64(273.15),
            "coordinates": "height",
            "units": "K",
        }
        variable(
            data,
            "sst",
            "i2",
            cube,
            grid,
            fill=np.int16(-32768),
            attributes=sst,
            chunksizes=(2, 3, 4),
            **squeezed,
        )
        rain = random.gamma(1, 2, (4, 4, 5)).astype("f4")
        variable(data, "rain", "f4", cube, rain, chunksizes=(1, 4, 5), **squeezed)
        variable(data, "height", "f8", (), 2.0)
        names = np.array(["Zürich", "", "two words"], dtype=object)
        variable(data, "station", str, ("station",), names)
        variable(data, "code", "S1", ("station", "width"), chars(["abc", "", "abcdefgh"], 8))
        variable(
            data,
            "label",
            "S1",
            ("station", "width"),
            chars(["é", "日", "x"], 8),
            attributes={"_Encoding": "utf-8"},
        )
        clouds = data.createEnumType(np.uint8, "cloud_t", {"clear": 0, "cloudy": 1, "missing": 255})
        variable(data, "cloud", clouds, ("lat",), [0, 1, 1, 255])
        forecast = data.createGroup("forecast")
        forecast.createDimension("step", 3)
        variable(forecast, "step", "i4", ("step",), [0, 6, 12], attributes={"units": "hours"})
        checked = {"chunksizes": (2, 2), "fletcher32": True, **squeezed}
        variable(forecast, "gust", "f4", ("time", "step"), np.arange(12).reshape(4, 3), **checked)
        inner = forecast.createGroup("größe")
        # A dimension of the same name, which hides the root's.
        inner.createDimension("lat", 2)
        variable(inner, "hidden", "f4", ("lat", "lon"), np.arange(10).reshape(2, 5))
        variable(inner, "seen", "f8", ("step", "nv"), np.arange(6).reshape(3, 2))


@file("attributes_nc4.nc")
def attributes_nc4(path):
    """NetCDF-4: several missing values, `valid_range`, `_Unsigned`, large integers, calendars, zones"""
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("x", 6)
        data.createDimension("t", 5)
        limits = {"valid_range": np.array([0, 10], "f4"), "missing_value": np.array([-9999, -8888], "f4")}
        variable(data, "several_missing", "f4", ("x",), [1, -9999, 50, 3, -8888, -1], attributes=limits)
        unsigned = {
            "_Unsigned": "true",
            "scale_factor": np.float32(2),
            "valid_range": np.array([0, -6], "i1"),
        }
        variable(
            data,
            "goes",
            "i1",
            ("x",),
            np.array([0, 1, 127, -128, -2, -1], "i1"),
            fill=np.int8(-1),
            attributes=unsigned,
        )
        variable(
            data,
            "masked_i8",
            "i8",
            ("x",),
            [2**63 - 1, -(2**63) + 1, 2**53 + 1, -1, 0, 1],
            fill=np.int64(-1),
        )
        variable(data, "months", "i4", ("t",), range(5), attributes={"units": "months since 2000-01-01"})
        noleap = {"units": "days since 2001-02-27", "calendar": "noleap"}
        variable(data, "model_time", "i4", ("t",), range(5), attributes=noleap)
        old = {"units": "days since 1582-10-04", "calendar": "standard"}
        variable(data, "reform", "i4", ("t",), range(5), attributes=old)
        zoned = {"units": "hours since 2000-01-01 00:00:00 +02:00", "_FillValue": np.int32(-1)}
        zoned_fill = zoned.pop("_FillValue")
        variable(data, "zoned", "i4", ("t",), [0, 1, -1, 3, 4], fill=zoned_fill, attributes=zoned)
        data.createDimension("u", None)
        variable(data, "u", "i2", ("u",), range(4), chunksizes=(4,))
        # Only the first chunk is written; netcdf-c fills the others with 9.96921e36.
        variable(data, "unwritten", "f4", ("u", "x"), chunksizes=(1, 6))[:1] = 1
        # The axis `u` has 4 steps, and this variable 2 of them.
        variable(data, "two_steps", "i4", ("u",), chunksizes=(2,), fill=np.int32(-1))[:2] = [5, 6]
        julian = {"units": "days since 2000-01-01", "calendar": "julian"}
        # A coordinate of two dimensions labels nothing, and neither does a variable of another dimension.
        data.createDimension("curved", 2)
        data.createDimension("other", 2)
        variable(data, "curved", "f4", ("curved", "x"), np.arange(12).reshape(2, 6))
        variable(data, "other", "f4", ("x",), np.arange(6))
        variable(data, "on_both", "i2", ("curved", "other"), [[1, 2], [3, 4]])
        # Labels that are not in order, that repeat, and that are missing.
        data.createDimension("loose", 4)
        variable(data, "loose", "f4", ("loose",), [2, np.nan, 2, -1])
        variable(data, "on_loose", "i2", ("loose",), [1, 2, 3, 4])
        variable(data, "julian", "i4", ("t",), range(5), attributes=julian)
        nat = {"units": "seconds since 1970-01-01", "calendar": "proleptic_gregorian"}
        variable(data, "nat", "i8", ("t",), [0, -(2**63), 86400, 1, -1], attributes=nat)
        far = {"units": "days since 0001-01-01", "calendar": "proleptic_gregorian"}
        variable(data, "far", "f8", ("t",), [0, 0.25, 1e6, 3e6, np.nan], attributes=far)
        tenths = {"units": "hours since 2000-01-01T00:00:00Z"}
        variable(data, "tenths", "f4", ("t",), [0.1, 0.2, 0.3, 1 / 3, 7.7], attributes=tenths)
        spans = {"units": "minutes", "dtype": "timedelta64[s]"}
        variable(data, "span", "i4", ("t",), [0, 1, -1, 60, 1440], attributes=spans)
        text_fill = {"missing_value": "-9", "scale_factor": np.float64(0.5)}
        variable(data, "text_missing", "i2", ("t",), [-9, 1, 2, 3, 4], attributes=text_fill)
        both = {
            "missing_value": np.float64(-1),
            "scale_factor": np.float64(0.5),
            "add_offset": np.float32(1),
        }
        variable(
            data, "double_missing", "i2", ("t",), [-1, -2, 2, 3, 4], fill=np.int16(-2), attributes=both
        )
        variable(data, "flags", "u1", ("t",), [0, 1, 2, 3, 255], attributes={"dtype": "bool"})
        offset = {"add_offset": np.float32(0.1)}
        variable(data, "offset_only", "i1", ("t",), [0, 1, 2, 3, -4], attributes=offset)
        variable(
            data,
            "scaled_float",
            "f4",
            ("t",),
            [0, 1, 2, 3, 4],
            attributes={"scale_factor": np.float32(0.1)},
        )
        scaled = {"scale_factor": np.int32(3), "add_offset": np.int32(1)}
        variable(data, "scaled_by_integer", "i4", ("t",), [0, 1, 2, 3, -4], attributes=scaled)


@file("types_nc4.nc")
def types_nc4(path):
    """NetCDF-4: every number type, in both byte orders, with 20 attributes (which HDF5 stores densely)"""
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("x", 6)
        many = {f"attribute_{i:02}": float(i) for i in range(20)}
        for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
            variable(data, name, name, ("x",), extremes(name), attributes=many if name == "i1" else {})
        for name in ("u4", "i8", "f8"):
            variable(data, f"big_{name}", name, ("x",), extremes(name), endian="big")
        words = variable(data, "words", str, ("x",))
        words[0], words[2] = "first", "a" * 300
        data.createDimension("n", 80)
        for codec in ("zstd", "bzip2", "blosc_lz4"):
            # Blosc fails if a chunk cannot be compressed.
            variable(data, codec, "i4", ("n",), np.arange(80) // 10, compression=codec, chunksizes=(60,))


@file("h5netcdf.nc")
def by_h5netcdf(path):
    """by xarray with h5netcdf: another order of filters, `lzf`, booleans as `i1` with an attribute `dtype`"""
    packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    encoding = {
        "sst": {
            **packed,
            "zlib": True,
            "complevel": 4,
            "shuffle": True,
            "fletcher32": True,
            "chunksizes": (2, 3, 4),
        },
        "t2m": {"compression": "lzf", "chunksizes": (3, 4, 5)},
    }
    data = climate().drop_vars(["note", "total", "country", "updated", "height", "count", "step"])
    data.to_netcdf(path, engine="h5netcdf", encoding=encoding, unlimited_dims=["time"])


# ------------------------------------------------------------------------------------- HDF5


def compressed(group, name, data, **options):
    group.create_dataset(name, data=data, chunks=(20,), **options)


@file("plain.h5")
def plain(path):
    """h5py without scales: groups, every kind of layout, text, booleans, an enumeration"""
    random = np.random.default_rng(6)
    with h5py.File(path, "w") as data:
        data["contiguous"] = random.normal(size=(4, 5))
        data["big"] = np.arange(6, dtype=">i4").reshape(2, 3)
        data["scalar"] = np.float32(1.25)
        data["half"] = extremes("f2")
        data["bool"] = np.array([True, False, True])
        data["empty"] = np.zeros((0, 3), "i2")
        data["words"] = np.array(["a", "", "Grüße", "x,y"], dtype=object)
        utf8 = np.array([text.encode() for text in ("é", "abc", "")], h5py.string_dtype("utf-8", 4))
        data["fixed_utf8"] = utf8
        data["fixed_bytes"] = np.array([b"ab", b"", b"abc"])
        data.create_dataset(
            "enum", data=[0, 1, 1, 5], dtype=h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 5}, "i2")
        )
        data.create_dataset("chunked", data=np.arange(35, dtype="u2").reshape(5, 7), chunks=(2, 3))
        data.create_dataset(
            "resizable", data=np.arange(12).reshape(3, 4), chunks=(2, 8), maxshape=(None, None)
        )
        sparse = data.create_dataset("sparse", (6, 6), "i4", chunks=(2, 2), fillvalue=-3)
        sparse[2:4, 2:4] = 1
        data.create_dataset("never_written", (4,), "f4", fillvalue=2.5)
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        compact.set_obj_track_times(False)
        space = h5py.h5s.create_simple((3,))
        small = h5py.h5d.create(data.id, b"compact", h5py.h5t.STD_I32LE, space, compact)
        small.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([7, 8, 9], "i4"))


@file("filters.h5")
def filters(path):
    """h5py: a dataset per filter of HDF5, and a chunk that skips the filters"""
    random = np.random.default_rng(7)
    with h5py.File(path, "w", libver="latest") as filters:
        numbers = np.cumsum(random.integers(0, 4, 44)).astype("i4")
        compressed(filters, "gzip", numbers, compression="gzip")
        compressed(
            filters, "gzip_shuffle_fletcher32", numbers, compression="gzip", shuffle=True, fletcher32=True
        )
        compressed(filters, "shuffle_7_bytes", numbers.astype("S7"), compression="gzip", shuffle=True)
        compressed(filters, "fletcher32", numbers.astype("u1"), fletcher32=True)
        compressed(filters, "lzf", numbers, compression="lzf", shuffle=True)
        compressed(filters, "szip", numbers, compression="szip")
        compressed(filters, "scaleoffset", numbers, scaleoffset=0)
        compressed(filters, "zstd", numbers, **hdf5plugin.Zstd())
        compressed(filters, "lz4", numbers, **hdf5plugin.LZ4())
        compressed(filters, "bitshuffle", numbers, **hdf5plugin.Bitshuffle())
        compressed(
            filters,
            "bitshuffle_lz4",
            random.integers(0, 5, 44).astype("i4"),
            **hdf5plugin.Bitshuffle(cname="lz4"),
        )
        masked = filters.create_dataset("some_raw", (40,), "i4", chunks=(20,), compression="gzip")
        masked[...] = numbers[:40]
        # The filter mask of this chunk says that its bytes are not compressed.
        masked.id.write_direct_chunk((20,), numbers[20:40].tobytes(), filter_mask=1)


@file("odd.h5")
def odd(path):
    """what no table can have, beside what one can: compounds, references, links, a cycle"""
    with h5py.File(path, "w") as data:
        data["good"] = np.arange(3)
        data["compound"] = np.zeros(2, [("a", "f4"), ("b", "i4")])
        data["complex"] = np.array([1 + 2j, -1j], "c8")
        data["opaque"] = np.array([b"abcde", b"12345"]).view("V5")
        data.create_dataset("array_cells", (2,), np.dtype(("i4", (3,))))
        lists = data.create_dataset("lists", (2,), h5py.vlen_dtype(np.int32))
        lists[0] = [1, 2]
        references = data.create_dataset("references", (1,), h5py.ref_dtype)
        references[0] = data["good"].ref
        data["null"] = h5py.Empty("f4")
        data["soft"] = h5py.SoftLink("/good")
        data["dangling"] = h5py.SoftLink("/nowhere")
        data["external"] = h5py.ExternalLink("plain.h5", "/scalar")
        data["hard"] = data["good"]
        group = data.create_group("group")
        group["inner"] = np.arange(2.0)
        group["cycle"] = data["/"]
        layout = h5py.VirtualLayout((3,), "i8")
        layout[:] = h5py.VirtualSource("odd.h5", "good", (3,))
        data.create_virtual_dataset("virtual", layout)


@file("latest.h5")
def latest(path):
    """h5py `libver=latest`: superblock 3, and each index of chunks; a user block of 512 bytes"""
    with h5py.File(path, "w", libver="latest", userblock_size=512) as data:
        cells = np.arange(40, dtype="f4").reshape(5, 8)
        data.create_dataset("single_chunk", data=cells, chunks=(5, 8))
        data.create_dataset("single_chunk_gzip", data=cells, chunks=(5, 8), compression="gzip")
        data.create_dataset("fixed_array", data=cells, chunks=(2, 3))
        data.create_dataset("fixed_array_gzip", data=cells, chunks=(2, 3), compression="gzip", shuffle=True)
        data.create_dataset("extensible_array", data=cells, chunks=(2, 8), maxshape=(None, 8))
        data.create_dataset(
            "extensible_array_gzip", data=cells, chunks=(1, 5), maxshape=(None, 8), compression="gzip"
        )
        data.create_dataset("btree", data=cells, chunks=(2, 3), maxshape=(None, None))
        data.create_dataset(
            "btree_gzip", data=cells, chunks=(2, 3), maxshape=(None, None), compression="gzip"
        )
        sparse = data.create_dataset("sparse", (8, 9), "i2", chunks=(2, 2), fillvalue=9)
        sparse[6:, 7:] = 1
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_chunk((2, 3))
        early.set_obj_track_times(False)
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple((5, 8))
        implicit = h5py.h5d.create(data.id, b"implicit", h5py.h5t.IEEE_F32LE, space, early)
        implicit.write(h5py.h5s.ALL, h5py.h5s.ALL, cells)
        many = data.create_group("many", track_order=True)
        for number in range(12):
            many.attrs[f"attribute {number}"] = number
            if number < 3:
                many[f"value_{number}"] = np.int8(number)
        many["value_0"].attrs["units"] = "K"


@file("scales.nc")
def scales(path):
    """h5py with dimension scales but without any mark of NetCDF"""
    with h5py.File(path, "w") as data:
        data["latitude"] = np.array([10.0, 20.0, 30.0])
        data["longitude"] = np.array([1.0, 2.0], "f4")
        for name in ("latitude", "longitude"):
            data[name].make_scale(name)
        data["depth"] = np.arange(6, dtype="i4").reshape(3, 2)
        for axis, name in enumerate(("latitude", "longitude")):
            data["depth"].dims[axis].attach_scale(data[name])


# ------------------------------------------------------------------------------------- references


def references_of(path, names):
    """Returns references of kerchunk to the chunks of some variables of `climate_nc4.nc`."""
    from kerchunk.hdf import SingleHdf5ToZarr

    here = os.getcwd()
    os.chdir(path.parent)
    try:
        made = SingleHdf5ToZarr("climate_nc4.nc", inline_threshold=0).translate()
    finally:
        os.chdir(here)
    chosen = {}
    for key, value in made["refs"].items():
        if "/" not in key or key.split("/")[0] in names:
            chosen[key] = value
    return chosen


@file("tiny.kerchunk.json")
def tiny(path):
    """references of kerchunk to chunks of `climate_nc4.nc`, and some inline values"""
    references = references_of(path, ("time", "lat", "lon", "sst", "rain", "cloud"))
    inline = np.array([1, 2, 3, 4], "<i4").tobytes()
    array = {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [4],
        "dtype": "<i4",
        "compressor": None,
        "filters": None,
    }
    array |= {"fill_value": -1, "order": "C"}
    references["inline/.zarray"] = json.dumps(array)
    references["inline/.zattrs"] = json.dumps({"_ARRAY_DIMENSIONS": ["time"]})
    references["inline/0"] = "base64:" + base64.b64encode(inline).decode()
    text = np.arange(65, 69, dtype="u1").tobytes().decode()
    references["text/.zarray"] = json.dumps({**array, "dtype": "|u1", "fill_value": None})
    references["text/.zattrs"] = json.dumps({"_ARRAY_DIMENSIONS": ["time"]})
    references["text/0"] = text
    path.write_text(json.dumps({"version": 1, "refs": references}, indent=0) + "\n")


@file("templates.kerchunk.json")
def templates(path):
    """the same references with templates for the URL, and without `version`'s neighbours"""
    references = references_of(path, ("time", "lat", "lon", "rain"))
    for value in references.values():
        if isinstance(value, list):
            value[0] = "{{file}}"
    document = {"version": 1, "templates": {"file": "climate_nc4.nc"}, "refs": references}
    path.write_text(json.dumps(document, indent=0) + "\n")


@file("january_nc4.nc")
def january(path):
    """the first of three months, each in another format"""
    month(1).to_netcdf(path, engine="netcdf4", encoding={"level": {"zlib": True}})


@file("march_cdf1.nc")
def march(path):
    """the last of three months, each in another format"""
    month(3).to_netcdf(path, engine="scipy", format="NETCDF3_CLASSIC")


# ------------------------------------------------------------------------------------- coordinates


def curvilinear_file(path, version, chunks):
    with netCDF4.Dataset(path, "w", format=version) as data:
        for name, length in (("time", None), ("y", 4), ("x", 6)):
            data.createDimension(name, length)
        for name, (dims, values) in curvilinear().items():
            attributes = {"coordinates": "lat lon run height nowhere"} if name == "t" else {}
            options = {"zlib": True, "chunksizes": chunks[: len(dims)]} if chunks and dims else {}
            variable(data, name, np.asarray(values).dtype, dims, values, attributes=attributes, **options)


@file("curvilinear_cdf1.nc")
def curvilinear_cdf1(path):
    """CDF-1: coordinates of two dimensions, of the record dimension, and of none"""
    curvilinear_file(path, "NETCDF3_CLASSIC", None)


@file("curvilinear_nc4.nc")
def curvilinear_nc4(path):
    """NetCDF-4: the same in chunks that do not divide the axes"""
    curvilinear_file(path, "NETCDF4", (2, 3, 4))
