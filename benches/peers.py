"""Times other tools on the array of the bench `peers`, and prints JSON.

    python3 benches/peers.py DIR --runs N

DIR holds `t.parquet` (time, station, value) and `t.f32`, the same values as raw bytes in row-major order. The script writes them as
uncompressed Zarr in chunks of 4096 hours. Times are median milliseconds, warm, with two threads. A tool that is not installed is
left out; exit status 3 means that none is.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")

SQL = {
    "by_station": "SELECT station, avg(value) FROM t GROUP BY station",
    "by_time": "SELECT time, avg(value) FROM t GROUP BY time",
    "by_month": "SELECT station, date_trunc('month', time), avg(value) FROM t GROUP BY 1, 2",
    "half": "SELECT station, avg(value) FROM t WHERE value > 280 GROUP BY station",
    "one_day": "SELECT time, value FROM t WHERE station = 'ST00007' "
               "AND time >= '1990-02-01' AND time < '1990-02-02'",
}
# Statements that write files.
COPIES = {
    "csv": "COPY (SELECT * FROM t WHERE time < '1991-01-01') TO '{folder}/duckdb.csv'",
}


def duckdb_queries(directory):
    import duckdb
    con = duckdb.connect()
    con.execute("SET threads = 2")
    con.execute(f"CREATE VIEW t AS SELECT * FROM '{directory / 't.parquet'}'")
    queries = {name: lambda sql=sql: con.execute(sql).fetchnumpy() for name, sql in SQL.items()}
    copies = {name: sql.replace("{folder}", str(directory)) for name, sql in COPIES.items()}
    return queries | {name: lambda sql=sql: con.execute(sql) for name, sql in copies.items()}


def open_zarr(directory, chunks):
    import numpy as np
    import xarray as xr
    path = directory / "t.zarr"
    if not path.exists():
        stations = directory.joinpath("stations.txt").read_text().split()
        values = np.fromfile(directory / "t.f32", dtype="<f4").reshape(-1, len(stations))
        hours = np.datetime64("1990-01-01T00", "ns") + np.arange(len(values)) * np.timedelta64(1, "h")
        made = xr.Dataset({"value": (("time", "station"), values)},
                          coords={"time": hours, "station": stations})
        encoding = {"value": {"chunks": (min(4096, len(values)), len(stations)), "compressors": None}}
        made.to_zarr(path, encoding=encoding, consolidated=False)
    return xr.open_zarr(path, chunks=chunks, consolidated=False)


def xarray_queries(directory):
    import dask
    dask.config.set(scheduler="threads", num_workers=2)

    def value():
        return open_zarr(directory, {}).value

    return {
        "by_station": lambda: value().mean("time").compute(),
        "by_time": lambda: value().mean("station").compute(),
        "by_month": lambda: value().resample(time="MS").mean().compute(),
        "half": lambda: (lambda v: v.where(v > 280).mean("time").compute())(value()),
        "one_day": lambda: value().sel(station="ST00007", time="1990-02-01").compute(),
        "csv": lambda: value().sel(time="1990").to_dataframe().to_csv(directory / "xarray.csv"),
    }


def xarray_sql_queries(directory):
    import xarray_sql
    ctx = xarray_sql.XarrayContext()
    ctx.from_dataset("t", open_zarr(directory, {"time": 4096}), chunks={"time": 4096})
    return {name: lambda sql=sql: ctx.sql(sql).collect() for name, sql in SQL.items()}


# The name of each tool, its module, what it reads, and its queries.
TOOLS = [
    ("DuckDB", "duckdb", "Parquet", duckdb_queries),
    ("xarray", "xarray", "Zarr", xarray_queries),
    ("xarray-sql", "xarray_sql", "Zarr", xarray_sql_queries),
]


def milliseconds(run, runs):
    run()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        taken.append((time.perf_counter() - start) * 1e3)
    return statistics.median(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path, metavar="DIR", help="the folder with the data")
    parser.add_argument("--runs", type=int, default=5, help="runs of each query (5)")
    options = parser.parse_args()
    measured = {}
    for tool, module, source, make in TOOLS:
        try:
            version = getattr(__import__(module), "__version__", "")
            queries = make(options.dir)
        except ImportError as error:
            print(f"peers: {tool} is left out: {error}", file=sys.stderr)
            continue
        times = {name: milliseconds(run, options.runs) for name, run in queries.items()}
        measured[" ".join(f"{tool} {version} over {source}".split())] = times
    if not measured:
        sys.exit(3)
    print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
