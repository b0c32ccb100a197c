"""Writes small files with text in ISO 8859-1, for tests/it/sql/character_sets.rs.

    python make.py

Needs h5py, netCDF4, zarr and numpy. `undeclared.h5` says UTF-8 of texts that are not; the others have the
attribute `_Encoding` of the NetCDF conventions.
"""

import os

import h5py
import netCDF4
import numpy as np
import zarr

os.chdir(os.path.dirname(os.path.abspath(__file__)))
NAMES = [text.encode("latin-1") for text in ("Zürich", "Zörich", "Oslo")]

with h5py.File("undeclared.h5", "w", track_order=True) as file:
    station = file.create_dataset("station", (3,), dtype=h5py.string_dtype("utf-8"))
    station[...] = np.array(NAMES, dtype=object)
    station.make_scale("station")
    value = file.create_dataset("v", data=np.array([1.0, 2, 3]))
    value.dims[0].attach_scale(station)
    value.attrs["units"] = np.bytes_("°C".encode("latin-1"))
    fixed = file.create_dataset("fixed", data=np.array(NAMES, "S8"))
    fixed.dims[0].attach_scale(station)
    station.attrs["other"] = "text"

with netCDF4.Dataset("declared_classic.nc", "w", format="NETCDF3_CLASSIC") as file:
    file.createDimension("s", 3)
    file.createDimension("w", 6)
    name = file.createVariable("name", "S1", ("s", "w"))
    name._Encoding = "ISO-8859-1"
    name.set_auto_chartostring(False)
    name[:] = np.array(NAMES, "S6").view("S1").reshape(3, 6)

with h5py.File("declared.h5", "w") as file:
    names = file.create_dataset("name", (3,), dtype=h5py.string_dtype("utf-8"))
    names[...] = np.array(NAMES, dtype=object)
    names.attrs["_Encoding"] = "latin_1"

store = zarr.open_group("declared.zarr", mode="w", zarr_format=2)
array = store.create_array("name", shape=(3,), chunks=(3,), dtype="S6", compressors=None)
array[:] = np.array(NAMES, "S6")
array.attrs["_Encoding"] = "ISO-8859-1"
array.attrs["_ARRAY_DIMENSIONS"] = ["s"]
