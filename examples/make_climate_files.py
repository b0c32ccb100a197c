"""Writes `examples/data/air.nc` and `examples/data/sea.zarr`, whose numbers look like weather and are invented.

Needs numpy, xarray, netCDF4 and zarr. Run it from the repository's folder. It writes the same values each time.
"""

import pathlib
import shutil

import numpy as np
import xarray as xr

DATA = pathlib.Path(__file__).parent / "data"


def land(lat, lon):
    """Whether a point is land: two invented continents."""
    north = np.hypot((lat - 48) / 28, (((lon - 40) + 180) % 360 - 180) / 65) < 1
    south = np.hypot((lat + 20) / 24, (((lon - 290) + 180) % 360 - 180) / 30) < 1
    return north | south


def write_air(path):
    """Two years of monthly means over a coarse grid: NetCDF-4 with packed integers, and bounds of months."""
    rng = np.random.default_rng(7)
    months = np.arange("2023-01", "2025-01", dtype="datetime64[M]")
    starts, ends = months.astype("datetime64[ns]"), (months + 1).astype("datetime64[ns]")
    lat, lon = np.arange(84.0, -85.0, -12.0), np.arange(0.0, 360.0, 15.0)
    season = np.cos(2 * np.pi * (np.arange(24) - 0.5) / 12)[:, None, None]
    north = np.sin(np.deg2rad(lat))[None, :, None]
    is_land = land(*np.meshgrid(lat, lon, indexing="ij"))[None]
    warmth = 45 * np.cos(np.deg2rad(lat))[None, :, None] ** 1.3 - 17
    t2m = warmth - north * season * np.where(is_land, 18, 6) + rng.normal(0, 1.2, (24, 15, 24))
    rain = np.exp(rng.normal(0.6, 0.7, t2m.shape)) * np.where(is_land, 0.8, 1.2)
    # The southernmost station ring was not observed in the first winter.
    t2m[:3, -1], rain[:3, -1] = np.nan, np.nan
    dims = ("time", "lat", "lon")
    ds = xr.Dataset(
        {
            "t2m": (dims, 273.15 + t2m, {"units": "K", "long_name": "air temperature at 2 m", "cell_methods": "time: mean"}),
            "tp": (dims, rain, {"units": "mm d-1", "long_name": "total precipitation", "cell_methods": "time: mean"}),
        },
        coords={
            "time": ("time", starts, {"standard_name": "time", "bounds": "time_bnds"}),
            "lat": ("lat", lat.astype("f4"), {"units": "degrees_north", "standard_name": "latitude"}),
            "lon": ("lon", lon.astype("f4"), {"units": "degrees_east", "standard_name": "longitude"}),
            "time_bnds": (("time", "bnds"), np.stack([starts, ends], axis=1)),
        },
        attrs={"Conventions": "CF-1.11", "title": "monthly means of an invented climate"},
    )
    packed = {"dtype": "i2", "_FillValue": np.int16(-32767), "zlib": True, "shuffle": True, "chunksizes": (12, 15, 24)}
    encoding = {
        "t2m": packed | {"scale_factor": 0.01, "add_offset": 273.15},
        "tp": packed | {"scale_factor": 0.01},
        "time": {"units": "days since 2023-01-01", "dtype": "i4", "chunksizes": (24,), "_FillValue": None},
        "time_bnds": {"dtype": "i4", "chunksizes": (24, 2), "_FillValue": None},
        "lat": {"_FillValue": None},
        "lon": {"_FillValue": None},
    }
    ds.to_netcdf(path, engine="netcdf4", format="NETCDF4", encoding=encoding, unlimited_dims=["time"])


def write_sea(path):
    """Sixty days of the sea's surface, without values over land: xarray's Zarr v3 with consolidated metadata."""
    rng = np.random.default_rng(11)
    time = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]").astype("datetime64[ns]")
    lat, lon = np.arange(70.0, -71.0, -20.0), np.arange(0.0, 360.0, 30.0)
    is_sea = ~land(*np.meshgrid(lat, lon, indexing="ij"))[None]
    shape = (len(time), len(lat), len(lon))
    warmth = 31 * np.cos(np.deg2rad(lat))[None, :, None] ** 1.5 - 1.5
    sst = np.round(warmth + rng.normal(0, 0.4, shape), 1)
    ssh = np.round(np.cumsum(rng.normal(0, 0.02, shape), axis=0), 2)
    dims = ("time", "lat", "lon")
    ds = xr.Dataset(
        {
            "sst": (dims, np.where(is_sea, sst, np.nan).astype("f4"), {"units": "degC", "long_name": "sea surface temperature"}),
            "ssh": (dims, np.where(is_sea, ssh, np.nan).astype("f4"), {"units": "m", "long_name": "sea surface height"}),
        },
        coords={
            "time": ("time", time, {"standard_name": "time"}),
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "lon": ("lon", lon, {"units": "degrees_east"}),
        },
        attrs={"title": "the surface of an invented sea"},
    )
    chunks = {"chunks": (30, len(lat), len(lon))}
    encoding = {"sst": chunks, "ssh": chunks, "time": {"units": "days since 2024-01-01", "dtype": "i8"}}
    shutil.rmtree(path, ignore_errors=True)
    ds.to_zarr(path, zarr_format=3, consolidated=True, encoding=encoding)


if __name__ == "__main__":
    write_air(DATA / "air.nc")
    write_sea(DATA / "sea.zarr")
