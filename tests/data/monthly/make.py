"""Makes monthly files that differ as downloads do. Needs numpy and netCDF4."""

import os

import numpy as np
from netCDF4 import Dataset

HERE = os.path.dirname(os.path.abspath(__file__))


def month(name, first, scale=0.01, fill=-32768, units="K", lat=(60.0, 50.0), calendar="standard"):
    with Dataset(os.path.join(HERE, name), "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", 2)
        file.createDimension("lat", len(lat))
        file.createDimension("nv", 2)
        time = file.createVariable("time", "i4", ("time",))
        time.units, time.calendar, time.bounds = "days since 2000-01-01", calendar, "time_bnds"
        time[:] = [first, first + 1]
        bounds = file.createVariable("time_bnds", "i4", ("time", "nv"))
        bounds[:] = [[first, first + 1], [first + 1, first + 2]]
        label = file.createVariable("lat", "f4", ("lat",))
        label.units = "degrees_north"
        label[:] = lat
        crs = file.createVariable("crs", "i4", ())
        crs.grid_mapping_name = "latitude_longitude"
        t2m = file.createVariable("t2m", "i2", ("time", "lat"), fill_value=fill)
        t2m.set_auto_maskandscale(False)
        t2m.scale_factor, t2m.add_offset = np.float64(scale), np.float64(273.0)
        t2m.units, t2m.grid_mapping = units, "crs"
        t2m[:] = np.arange(2 * len(lat)).reshape(2, -1) + first


month("2000-01.nc", 0)
month("2000-02.nc", 31)
month("2000-03.nc", 60, scale=0.02)
month("2000-04.nc", 91, scale=0.03, fill=-999)
month("2000-05.nc", 121, units="degC")
month("noleap.nc", 0, units="degC", lat=(60.0, 50.0, 40.0), calendar="noleap")
