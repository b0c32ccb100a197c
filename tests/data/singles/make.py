"""Writes the files of this folder: labels and attributes of single precision. Needs numpy, xarray, netCDF4 and zarr.

`packed.json` has the values that netCDF4 and xarray compute. Where the two differ in precision, it has the doubles.
"""

import json
import shutil

import netCDF4
import numpy as np
import xarray as xr

LAT = np.arange(50, 50.45, 0.1).astype("f4")
LON = np.array([5.0, 5.1, 5.25], "f4")


def grid():
    cells = np.arange(15, dtype="f4").reshape(5, 3)
    alt = (np.arange(15, dtype="f4") / 10).reshape(5, 3)
    dims = ("lat", "lon")
    coords = {"lat": LAT, "lon": LON, "alt": (dims, alt)}
    return xr.Dataset({"t": (dims, cells)}, coords)


def write_grids():
    data = grid()
    data.to_netcdf("grid_cdf2.nc", format="NETCDF3_64BIT")
    data.to_netcdf("grid_nc4.nc", encoding={"t": {"chunksizes": (2, 2)}})
    # The same decimals as doubles, and a file of doubles that continues the first one.
    doubles = data.drop_vars("alt").assign_coords(
        lat=np.array([float(str(it)) for it in LAT]), lon=np.array([float(str(it)) for it in LON])
    )
    doubles.to_netcdf("doubles_cdf2.nc", format="NETCDF3_64BIT")
    north = doubles.isel(lat=[0, 1]).assign_coords(lat=[50.5, 50.6])
    north.to_netcdf("north_cdf2.nc", format="NETCDF3_64BIT")
    for version in (2, 3):
        name = f"grid_v{version}.zarr"
        shutil.rmtree(name, ignore_errors=True)
        data.to_zarr(name, zarr_format=version, encoding={"t": {"chunks": (3, 3)}})


def packings():
    stored = [-100, 3, 7, 101]
    for kind in ("i1", "i2", "i4", "f4", "f8"):
        for scale in ("f4", "f8", None):
            for offset in ("f4", "f8", None):
                if scale or offset:
                    yield f"{kind}_{scale}_{offset}", np.array(stored, kind), scale, offset


def write_packed(name, form):
    file = netCDF4.Dataset(name, "w", format=form)
    file.createDimension("x", 4)
    for name, stored, scale, offset in packings():
        variable = file.createVariable(name, stored.dtype, ("x",))
        variable.set_auto_maskandscale(False)
        if scale:
            variable.scale_factor = np.dtype(scale).type(0.1)
        if offset:
            variable.add_offset = np.dtype(offset).type(273.15)
        variable[:] = stored
    # 1e20 and 0.1 of single precision are other numbers than the doubles.
    limit = file.createVariable("limit", "f4", ("x",))
    limit.set_auto_maskandscale(False)
    limit.valid_max = np.float32(0.1)
    limit[:] = np.array([0.1, 0.05, 0.2, -1], "f4")
    missing = file.createVariable("missing", "f8", ("x",))
    missing.set_auto_maskandscale(False)
    missing.missing_value = np.float32(1e20)
    missing[:] = [np.float32(1e20), 1e20, 1, 2]
    file.close()


def expected(name):
    by_xarray, by_netcdf4 = xr.open_dataset(name), netCDF4.Dataset(name)
    answers = {}
    for name, stored, scale, offset in packings():
        arrays = by_xarray[name].values, np.asarray(by_netcdf4[name][:])
        factor = float(np.dtype(scale).type(0.1)) if scale else 1.0
        term = float(np.dtype(offset).type(273.15)) if offset else 0.0
        doubles = stored.astype("f8") * factor + term
        both = {array.dtype.name for array in arrays}
        if both == {"float32"}:
            assert (arrays[0] == arrays[1]).all()
            values, data_type = [str(it) for it in arrays[0]], "Float32"
        else:
            for array in arrays:
                assert np.allclose(array, doubles, rtol=1e-6)
            # netCDF4 computes doubles in two steps, of which the first may be in singles.
            assert arrays[0].dtype.name == "float32" or (arrays[0] == doubles).all()
            values, data_type = [repr(float(it)) for it in doubles], "Float64"
        answers[name] = {"type": data_type, "values": values}
    return answers


if __name__ == "__main__":
    write_grids()
    write_packed("packed_cdf2.nc", "NETCDF3_64BIT_OFFSET")
    write_packed("packed_nc4.nc", "NETCDF4")
    answers = expected("packed_cdf2.nc")
    assert answers == expected("packed_nc4.nc")
    with open("packed.json", "w") as file:
        json.dump(answers, file, indent=1)
        file.write("\n")
