"""Writes files for the bench `formats`, times zarr-python and netCDF4 on them, and prints JSON.

    python3 benches/formats_peer.py DIR --make     writes the variants that need Python
    python3 benches/formats_peer.py DIR            times the stores of DIR/stores.json

DIR holds `value.f32`, the field as raw bytes in row-major order, and `field.json` with its shape, its chunks and its labels. `--make`
writes Zarr 2 with shuffled Blosc-LZ4, and NetCDF-4 with shuffled zlib. It prints the places of their chunks.

Times are the best of `--runs`, in milliseconds, after one run that warms up. Each run opens the store, reads the variable and takes
means with numpy, on two threads. Tools that are not installed are left out; exit status 3 means that none is.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")

SQL = "SELECT lat, avg(value) FROM t GROUP BY lat"


def imported(name):
    try:
        return __import__(name)
    except ImportError as error:
        print(f"formats_peer: {error}", file=sys.stderr)
        return None


np = imported("numpy")
zarr = imported("zarr")
netcdf = imported("netCDF4")


def field(directory):
    """The values, and what is known about them."""
    about = json.loads((directory / "field.json").read_text())
    values = np.fromfile(directory / "value.f32", dtype="<f4").reshape(about["shape"])
    return values, about


def make_blosc(directory):
    import numcodecs
    values, about = field(directory)
    path = directory / "blosc.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    compressor = numcodecs.Blosc(cname="lz4", clevel=5, shuffle=numcodecs.Blosc.SHUFFLE)
    dims = ("time", "lat", "lon")
    made = group.create_array("value", shape=values.shape, dtype="f4", chunks=about["chunk"], compressors=compressor,
                              fill_value=float("nan"), attributes={"_ARRAY_DIMENSIONS": list(dims)})
    made[:] = values
    for name in dims:
        labels = np.array(about["labels"][name], dtype="i4" if name == "time" else "f8")
        attributes = {"_ARRAY_DIMENSIONS": [name]}
        if name == "time":
            attributes["units"] = about["units"]
        axis = group.create_array(name, shape=labels.shape, dtype=labels.dtype, chunks=labels.shape, compressors=None,
                                  fill_value=None, attributes=attributes)
        axis[:] = labels
    zarr.consolidate_metadata(path, zarr_format=2)
    files = sorted(file for file in (path / "value").iterdir() if not file.name.startswith("."))
    return {"path": str(path), "chunks": [[str(file), 0, file.stat().st_size] for file in files]}


def make_netcdf4(directory):
    import h5py
    values, about = field(directory)
    path = directory / "zlib.nc"
    with netcdf.Dataset(path, "w", format="NETCDF4") as file:
        for name, length in zip(("time", "lat", "lon"), values.shape):
            file.createDimension(name, length)
            axis = file.createVariable(name, "i4" if name == "time" else "f8", (name,))
            axis[:] = about["labels"][name]
            if name == "time":
                axis.units = about["units"]
        made = file.createVariable("value", "f4", ("time", "lat", "lon"), compression="zlib", complevel=4,
                                   shuffle=True, chunksizes=about["chunk"])
        made[:] = values
    with h5py.File(path) as file:
        chunks = file["value"].id
        infos = [chunks.get_chunk_info(number) for number in range(chunks.get_num_chunks())]
    return {"path": str(path), "chunks": [[str(path), info.byte_offset, info.size] for info in infos]}


def make(directory):
    made = {}
    for name, module, function in (("blosc", zarr, make_blosc), ("netcdf4", netcdf, make_netcdf4)):
        if module is None:
            continue
        try:
            made[name] = function(directory)
        except ImportError as error:
            print(f"formats_peer: {name} is left out: {error}", file=sys.stderr)
    return made


def read_zarr(path):
    return zarr.open_group(path, mode="r")["value"][:]


def read_netcdf(path):
    with netcdf.Dataset(path) as file:
        file.set_auto_mask(False)
        return file["value"][:]


def best(run, runs):
    run()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        taken.append((time.perf_counter() - start) * 1e3)
    return min(taken)


def times(store, runs):
    """The name of the tool, and its times by query."""
    module, read, tool = ((netcdf, read_netcdf, "netCDF4") if store["path"].endswith(".nc")
                          else (zarr, read_zarr, "zarr-python"))
    if module is None:
        return None
    queries = {"by_lat": (0, 2), "map": 0}
    means = {name: best(lambda: read(store["path"]).mean(axis=axes, dtype=np.float64), runs)
             for name, axes in queries.items()}
    return {"tool": f"{tool} {module.__version__}", "ms": means}


def xarray_ms(path, runs):
    """The time in which xarray opens a store."""
    xarray = imported("xarray")
    return xarray and best(lambda: xarray.open_zarr(path, consolidated=True, chunks=None), runs)


def xarray_sql_ms(path, chunk):
    """The time of xarray-sql's mean by latitude."""
    xarray, xarray_sql = imported("xarray"), imported("xarray_sql")
    if not (xarray and xarray_sql):
        return None
    chunks = {"time": chunk}
    ctx = xarray_sql.XarrayContext()
    ctx.from_dataset("t", xarray.open_zarr(path, chunks=chunks), chunks=chunks)
    return best(lambda: ctx.sql(SQL).collect(), 1)


def measured(directory, runs):
    if zarr:
        from numcodecs import blosc
        blosc.set_nthreads(2)
        zarr.config.set({"threading.max_workers": 2})
    about = json.loads((directory / "field.json").read_text())
    asked = json.loads((directory / "stores.json").read_text())
    stores = {store["name"]: times(store, runs) for store in asked["stores"]}
    return {
        "stores": {name: it for name, it in stores.items() if it},
        "xarray_open": xarray_ms(asked["many"], runs),
        "xarray_sql": xarray_sql_ms(asked["xarray_sql"], about["chunk"][0]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path, metavar="DIR", help="the folder with the field")
    parser.add_argument("--make", action="store_true", help="write the variants and stop")
    parser.add_argument("--runs", type=int, default=5, help="runs of each query (5)")
    options = parser.parse_args()
    if np is None or (zarr is None and netcdf is None):
        sys.exit(3)
    print(json.dumps(make(options.dir) if options.make else measured(options.dir, options.runs), indent=2))


if __name__ == "__main__":
    main()
