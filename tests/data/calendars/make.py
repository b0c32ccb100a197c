"""Writes files whose times are in the calendars of models. Needs netCDF4 (1.7), xarray and zarr (3)."""

import netCDF4
import numpy as np
import xarray as xr

FILES = [
    ("noleap.nc", "noleap", "days since 1850-01-01", 15.5 + 30.5 * np.arange(24)),
    ("360_day.nc", "360_day", "hours since 1859-12-01 00:00:00", 24 * (15.0 + 30 * np.arange(24))),
]

for name, calendar, units, times in FILES:
    with netCDF4.Dataset(name, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", len(times))
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = units, calendar
        time[:] = times
        dates = netCDF4.num2date(times, units, calendar)
        # The oracle: cftime's parts of each date.
        for part in ["year", "month"]:
            file.createVariable(part, "i4", ("time",))[:] = [getattr(it, part) for it in dates]

# Two files of one collection, which count from different days in different units.
for name, units, times in [
    ("part-1.nc", "days since 1999-12-31", 1 + np.arange(4) * 29.5),
    ("part-2.nc", "hours since 2000-03-01", 24 * (60.0 + np.arange(4) * 29.5)),
]:
    with netCDF4.Dataset(name, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", len(times))
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = units, "365_day"
        time[:] = times
        dates = netCDF4.num2date(times, units, "365_day")
        file.createVariable("month", "i4", ("time",))[:] = [it.month for it in dates]

# Times in values: bounds, packed times, and times that were never written.
with netCDF4.Dataset("values.nc", "w") as file:
    file.createDimension("time", 3)
    file.createDimension("x", 2)
    file.createDimension("obs", 3)
    time = file.createVariable("time", "f8", ("time",))
    time.units, time.calendar, time.bounds = "days since 2000-01-01", "noleap", "time_bnds"
    time[:] = [15.5, 45, 74.5]
    file.createVariable("time_bnds", "f8", ("time", "x"))[:] = [[0, 31], [31, 59], [59, 90]]
    packed = file.createVariable("packed", "i2", ("time", "x"))
    packed.units, packed.calendar, packed.scale_factor = "hours since 2000-02-28", "noleap", 0.5
    packed.set_auto_maskandscale(False)
    packed[:] = [[0, 1], [47, 48], [49, -1]]
    fine = file.createVariable("fine", "i8", ("time",))
    fine.units = "nanoseconds since 2000-01-01"
    fine[:] = [0, 1, 86_400_000_000_001]
    for name, kind in [("doubles", "f8"), ("singles", "f4"), ("integers", "i4"), ("longs", "i8")]:
        unwritten = file.createVariable(name, kind, ("obs",))
        unwritten.units = "seconds since 1970-01-01"
        unwritten[:2] = [0, 60]
    obs = file.createVariable("obs", "f8", ("obs",))
    obs.units = "days since 2000-01-01"
    obs[:2] = [0, 1.5]

# Values whose dates SQL has under other days, or lacks; and times of one calendar in different units.
with netCDF4.Dataset("old.nc", "w", format="NETCDF3_CLASSIC") as file:
    file.createDimension("obs", 4)
    for name, calendar, units, times in [
        ("reform", "gregorian", "days since 1582-10-03", [0, 1, 2, 3.25]),
        ("early", "standard", "days since 1500-02-27", [0, 1, 3, -400_000]),
        ("leap", "standard", "days since 1500-02-28", [0, 1, 2, 3]),
        ("a", "360_day", "days since 2000-02-30", [0, 1, 2, 3]),
        ("b", "360_day", "hours since 2000-02-30", [0, 24, 48, 72]),
        ("c", "366_day", "days since 2000-02-29", [0, 1, 2, 3]),
    ]:
        time = file.createVariable(name, "f8", ("obs",))
        time.units, time.calendar = units, calendar
        time[:] = times
        print(name, *netCDF4.num2date(times, units, calendar))

days = xr.date_range("2000-02-27", periods=4, calendar="noleap", use_cftime=True)
store = xr.Dataset({"v": ("time", np.arange(4.0))}, coords={"time": days})
store.to_zarr("noleap.zarr", zarr_format=2, consolidated=True, mode="w")
