"""Writes files whose times are in calendars that SQL lacks. Needs netCDF4 (1.7)."""

import netCDF4
import numpy as np

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
