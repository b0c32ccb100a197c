"""An engine of the bench `python.py`, in a process of its own: `PYTHON benches/python_engines.py ENGINE FILE`.

FILE is `t.nc` or `t.zarr`, with `t2m (time, lat, lon)`; DuckDB reads `t.parquet` beside it. Each line of input is a task of SQL below. The
engine opens the file and answers, prints the milliseconds that this took as JSON, and saves its first answer as `ENGINE.TASK.npy` beside FILE.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

BOX = "lat BETWEEN 40 AND 60 AND lon BETWEEN 0 AND 30"
WIDE = "lat BETWEEN 30 AND 60 AND lon BETWEEN 0 AND 60"
CLIMATOLOGY = "SELECT date_part('month', time) AS month, lat, lon, avg(t2m) AS mean FROM {t} AS t GROUP BY 1, 2, 3"
WEIGHT = "cos(radians(lat))"

# Keys come first, and the value last.
SQL = {
    "by_lat": "SELECT lat, avg(t2m) AS v FROM {t} AS t GROUP BY lat",
    "by_time": "SELECT time, avg(t2m) AS v FROM {t} AS t GROUP BY time",
    "map": "SELECT lat, lon, avg(t2m) AS v FROM {t} AS t GROUP BY lat, lon",
    "box": f"SELECT time, avg(t2m) AS v FROM {{t}} AS t WHERE {BOX} GROUP BY time",
    "point": "SELECT time, t2m FROM {t} AS t WHERE lat = 50 AND lon = 10",
    "climatology": CLIMATOLOGY,
    "anomaly": f"WITH c AS ({CLIMATOLOGY}) SELECT t.time, avg(t.t2m - c.mean) AS v FROM {{t}} AS t JOIN c "
    "ON c.lat = t.lat AND c.lon = t.lon AND c.month = date_part('month', t.time) GROUP BY t.time",
    "stations": "SELECT s.region, avg(t.t2m) AS v FROM {t} AS t JOIN stations AS s ON s.lat = t.lat AND s.lon = t.lon GROUP BY s.region",
    "rolling": "SELECT max(mean) AS v FROM (SELECT avg(t2m) OVER (PARTITION BY lat, lon ORDER BY time "
    f"ROWS BETWEEN 11 PRECEDING AND CURRENT ROW) AS mean FROM {{t}} AS t WHERE {WIDE}) AS means",
    "exceedance": "SELECT lat, lon, avg(CASE WHEN t2m > 290 THEN 1.0 ELSE 0.0 END) AS v FROM {t} AS t GROUP BY lat, lon",
    "weighted": f"SELECT time, sum(t2m * {WEIGHT}) / sum(CASE WHEN t2m IS NOT NULL THEN {WEIGHT} END) AS v FROM {{t}} AS t GROUP BY time",
    "median": "SELECT lat, median(t2m) AS v FROM {t} AS t GROUP BY lat",
}


def stations():
    """Forty places on the grid, in five regions."""
    numbers = np.arange(40)
    return {"region": numbers % 5, "lat": 80.0 - 2.5 * (numbers * 7 % 64), "lon": 2.5 * (numbers * 11 % 144)}


def gridfusion(path):
    import gridfusion as gf
    import pandas as pd

    con = gf.connect(threads=2)
    con.register("stations", pd.DataFrame(stations()))
    return f"gridfusion {gf.__version__}", lambda task: con.sql(SQL[task].format(t=f"'{path}'")).arrow()


def open_with_xarray(path, **options):
    import xarray as xr

    engine = {"engine": "zarr", "consolidated": False} if path.suffix == ".zarr" else {"engine": "netcdf4"}
    return xr.open_dataset(path, **engine, **options)


def xarray(path):
    import dask
    import xarray as xr

    dask.config.set(scheduler="threads", num_workers=2)
    at = {name: xr.DataArray(values, dims="station") for name, values in stations().items()}
    box = {"lat": slice(60, 40), "lon": slice(0, 30)}
    wide = {"lat": slice(60, 30), "lon": slice(0, 60)}

    def anomaly(v):
        months = v.groupby("time.month")
        return (months - months.mean()).mean(["lat", "lon"])

    tasks = {
        "by_lat": lambda v: v.mean(["time", "lon"]),
        "by_time": lambda v: v.mean(["lat", "lon"]),
        "map": lambda v: v.mean("time"),
        "box": lambda v: v.sel(box).mean(["lat", "lon"]),
        "point": lambda v: v.sel(lat=50, lon=10).drop_vars(["lat", "lon"]),
        "climatology": lambda v: v.groupby("time.month").mean(),
        "anomaly": anomaly,
        "stations": lambda v: v.sel(lat=at["lat"], lon=at["lon"]).assign_coords(region=at["region"]).groupby("region").mean(...),
        "rolling": lambda v: v.sel(wide).rolling(time=12, min_periods=1).mean().max(),
        "exceedance": lambda v: (v > 290).mean("time"),
        "weighted": lambda v: v.weighted(np.cos(np.deg2rad(v.lat))).mean(["lat", "lon"]),
        "median": lambda v: v.compute().median(["time", "lon"]),
    }
    return f"xarray {xr.__version__}", lambda task: tasks[task](open_with_xarray(path, chunks={}).t2m).compute()


def xarray_sql(path):
    from importlib.metadata import version

    import pyarrow as pa
    from xarray_sql import XarrayContext

    table = pa.table(stations())

    def run(task):
        context = XarrayContext()
        context.from_arrow(table, "stations")
        context.from_dataset("t", open_with_xarray(path, chunks={}))
        return context.sql(SQL[task].format(t="t")).to_arrow_table()

    return f"xarray-sql {version('xarray-sql')}", run


def beacondb(path):
    from importlib.metadata import version

    import beacondb as beacon
    import pyarrow as pa

    con = beacon.connect(cpu_limit=2)
    con.register("stations", pa.table(stations()))
    read = "read_zarr" if path.suffix == ".zarr" else "read_netcdf"
    return f"beacondb {version('beacondb')}", lambda task: con.sql(SQL[task].format(t=f"{read}('{path}')")).arrow()


def duckdb(path):
    import duckdb
    import pyarrow as pa

    con = duckdb.connect()
    con.execute("SET threads = 2")
    con.register("stations", pa.table(stations()))
    rows = path.with_name("t.parquet")
    return f"DuckDB {duckdb.__version__}", lambda task: con.sql(SQL[task].format(t=f"'{rows}'")).to_arrow_table()


ENGINES = {it.__name__: it for it in (gridfusion, xarray, xarray_sql, beacondb, duckdb)}


def numbers(answer):
    """An answer as rows of numbers, sorted by their keys; times are seconds, and NULL is NaN."""
    if hasattr(answer, "to_dataframe"):
        answer = answer.rename("v")
        columns = answer.to_dataframe().reset_index() if answer.dims else {"v": answer.values.reshape(1)}
        columns = [np.asarray(columns[name]) for name in [*answer.dims, "v"]]
    else:
        import pyarrow as pa

        answer = pa.table(answer)
        columns = [it.to_numpy() for it in answer.columns]
    columns = [it.astype("datetime64[s]").astype("f8") if it.dtype.kind == "M" else it.astype("f8") for it in columns]
    order = np.lexsort(columns[-2::-1]) if len(columns) > 1 else slice(None)
    return np.stack(columns, axis=1)[order]


def main():
    engine, path = sys.argv[1], Path(sys.argv[2]).resolve()
    try:
        name, run = ENGINES[engine](path)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    print(json.dumps({"name": name}), flush=True)
    for task in map(str.strip, sys.stdin):
        try:
            start = time.perf_counter()
            answer = run(task)
            taken = (time.perf_counter() - start) * 1e3
            file = path.with_name(f"{engine}.{task}.npy")
            if not file.exists():
                np.save(file, numbers(answer))
            print(json.dumps({"ms": taken}), flush=True)
        except Exception as error:
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)


if __name__ == "__main__":
    main()
