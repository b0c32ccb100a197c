"""Compares NetCDF files with the cells that they were written from.

    python read_netcdf.py FOLDER

FOLDER has pairs of N.nc and N.json: the cells of `v` and `w` as texts, row by row. xarray must read each file without a warning, and
netCDF4 and h5py all of its variables. Each cell must be equal, and each cell without a text must be missing.
"""

import json
import sys
import warnings
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import xarray as xr

warnings.simplefilter("error")

VERSIONS = {"Netcdf4": "NETCDF4", "Data64": "NETCDF3_64BIT_DATA", "Classic": "NETCDF3_CLASSIC", "Offset64": "NETCDF3_64BIT_OFFSET"}


def is_missing(value):
    return value is np.ma.masked or bool(np.asarray(value != value).any())


def is_equal(value, text, kind):
    if kind == "Boolean":
        return bool(value) == (text == "true") and value in (0, 1)
    if "Utf8" in kind:
        return (value.decode() if isinstance(value, bytes) else value) == text
    if isinstance(value, np.datetime64):
        return value == np.datetime64(text)
    if kind.startswith(("Timestamp", "Date")):
        # Numbers as they are stored: seconds, nanoseconds or days.
        unit = "D" if kind == "Date32" else "ns" if "ns" in kind or "Nano" in kind else "s"
        return value == np.datetime64(text, unit).astype("int64")
    return value == float(text)


def compare(place, found, expected, kind, missing):
    found = found.reshape(-1)
    assert len(found) == len(expected), place
    for value, text in zip(found, expected):
        fits = missing(value) if text is None else is_equal(value, text, kind) and not missing(value)
        assert fits, (place, kind, value, text)


def check(path):
    case = json.loads(path.with_suffix(".json").read_text())
    shape = tuple(case["shape"])
    dims = tuple(f"d{axis}" for axis in range(len(shape)))
    kinds = {"v": case["type"], "w": "Int16"}
    with xr.open_dataset(path) as data:
        assert set(data.variables) == {*dims, *kinds}, path
        assert data.attrs["Conventions"] == "CF-1.12", path
        for name, kind in kinds.items():
            assert data[name].dims == dims and data[name].shape == shape, path
            compare(("xarray", path), data[name].values, case[name], kind, is_missing)
        for axis, dim in enumerate(dims):
            assert (data[dim].values.astype(int) == 10 * np.arange(shape[axis])).all(), path
    with netCDF4.Dataset(path) as data:
        assert data.data_model == VERSIONS[case["version"]], path
        for name, kind in kinds.items():
            variable = data[name]
            assert variable.dimensions == dims, path
            # Texts are not masked.
            fill = getattr(variable, "missing_value", None) if variable.dtype is str else np.ma.masked
            is_fill = lambda value: is_missing(value) or (isinstance(value, str) and value == fill)
            compare(("netCDF4", path), np.ma.asarray(variable[...]), case[name], kind, is_fill)
    if case["version"] == "Netcdf4":
        with h5py.File(path) as data:
            for name, kind in kinds.items():
                dataset = data[name]
                fill = dataset.attrs.get("_FillValue", dataset.attrs.get("missing_value"))
                fill = fill.encode() if isinstance(fill, str) else fill
                is_fill = lambda value: is_missing(value) or (fill is not None and bool(np.all(value == fill)))
                compare(("h5py", path), dataset[...], case[name], kind, is_fill)
                scales = [dataset.dims[axis][0].name for axis in range(len(shape))]
                assert scales == [f"/{dim}" for dim in dims], path


def main(folder):
    paths = sorted(Path(folder).glob("*.nc"))
    for path in paths:
        check(path)
    print(len(paths), "files")


main(sys.argv[1])
