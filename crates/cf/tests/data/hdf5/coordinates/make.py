"""Writes the files of this folder, whose variables name coordinates in all ways of the CF conventions.

    python3 crates/cf/tests/data/hdf5/coordinates/make.py
"""

from pathlib import Path

import netCDF4
import numpy as np

HERE = Path(__file__).parent


def put(group, name, kind, dims, values, **attributes):
    it = group.createVariable(name, kind, dims)
    it.setncatts(attributes)
    it[...] = values


def stations(path):
    """Scalars, names of stations, flags, cell measures, terms of a formula, and coordinates of two dimensions."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as data:
        for name, length in (("time", 4), ("station", 3), ("width", 6), ("lev", 2)):
            data.createDimension(name, length)
        data.coordinates = "campaign"
        put(data, "time", "i4", ("time",), [0, 6, 12, 18], units="hours since 2024-01-01")
        names = netCDF4.stringtochar(np.array(["Oslo", "Bergen", "Bodø"], "U6"), encoding="utf-8")
        put(data, "station_name", "S1", ("station", "width"), names[:, :6])
        put(data, "lat", "f4", ("station",), [59.9, 60.4, 67.3], units="degrees_north")
        put(data, "lon", "f4", ("station",), [10.7, 5.3, 14.4], units="degrees_east")
        put(data, "height", "f8", (), 2.0, units="m")
        put(data, "campaign", "i4", (), 7)
        put(data, "reference", "i4", ("time",), [0, 0, 12, 12], units="hours since 2024-01-01")
        put(data, "slope", "f4", ("time", "station"), np.arange(12).reshape(4, 3))
        put(data, "area", "f4", ("station",), [1, 2, 3])
        names = {"coordinates": "lat lon station_name height slope nowhere"}
        put(
            data,
            "temp",
            "f4",
            ("time", "station"),
            np.arange(12).reshape(4, 3),
            **names,
            ancillary_variables="temp_flag",
            cell_measures="area: area",
        )
        put(data, "temp_flag", "i1", ("time", "station"), np.arange(12).reshape(4, 3) % 2)
        put(data, "wind", "f4", ("time", "station"), np.arange(12).reshape(4, 3) * 2, coordinates="reference lat")


def year(path, first, height, issued):
    """A file of a table of many. Some have a height; each has a time of issue in its own units."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as data:
        for name, length in (("time", 2), ("x", 2)):
            data.createDimension(name, length)
        put(data, "time", "i4", ("time",), [first, first + 1], units="days since 2024-01-01")
        if height is not None:
            put(data, "height", "f8", (), height, units="m")
        put(data, "issued", "i4", (), 1, units=f"days since {issued}")
        put(data, "place", "i2", ("x",), [first, first + 10])
        put(data, "t", "i2", ("time", "x"), [[first, 1], [2, 3]], coordinates="height issued place")


def nested(path):
    """Groups, whose variables name coordinates of other groups."""
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("station", 3)
        put(data, "station", "i4", ("station",), [10, 20, 30])
        put(data, "lat", "f4", ("station",), [59.9, 60.4, 67.3])
        put(data, "height", "f8", (), 2.0)
        upper = data.createGroup("upper")
        upper.createDimension("level", 2)
        put(upper, "level", "i4", ("level",), [850, 500])
        put(upper, "pressure", "f4", ("level",), [85000, 50000])
        put(upper, "lon", "f4", ("station",), [10.7, 5.3, 14.4])
        put(upper, "height", "f8", (), 100.0)
        deep = upper.createGroup("deep")
        names = {"coordinates": "lat ../lon pressure /height"}
        put(deep, "temp", "f4", ("level", "station"), np.arange(6).reshape(2, 3), **names)


stations(HERE / "stations.nc")
year(HERE / "year_1.nc", 0, 2.0, "2023-12-30")
year(HERE / "year_2.nc", 2, 2.0, "2024-01-01")
year(HERE / "year_3.nc", 4, None, "2024-01-03")
nested(HERE / "nested.nc")
