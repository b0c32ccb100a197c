"""Measures the Python package, alone and beside other libraries, and prints tables of `benches/FIGURES.md`.

    python benches/python.py zarr --xarray-sql PYTHON     twelve questions of a Zarr store
    python benches/python.py netcdf --xarray-sql PYTHON   the same of a NetCDF file
    python benches/python.py package [--cells N]          imports, small queries, and large arrays

`UPDATE_FIGURES=1` writes the tables into that page, and `GRIDFUSION_BENCH_SMALL=1` makes a smoke run. The Python that runs this script needs:

    pip install gridfusion numpy==2.4.6 pandas==3.1.1 pyarrow==26.0.1 xarray==2026.9.0 netCDF4==1.7.5.1.post1 zarr==3.1.6 \\
        dask==2026.8.0 beacondb==2.0.2 duckdb==2.0.1

`--xarray-sql` names another one, because that library needs an older DataFusion for Python:

    pip install xarray-sql==0.6.0 numpy==2.4.6 xarray==2026.9.0 netCDF4==1.7.5.1.post1 zarr==3.1.6 dask==2026.8.0

Engines take turns. Each is a process with two threads, which opens the file for every answer. Libraries that are missing are left out.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np

from python_cells import IS_SMALL, cells, truth, write
from python_engines import ENGINES

HERE = Path(__file__).resolve().parent
#: Seconds that the turns of a task may take, after one turn that fills caches; three turns are the least.
SECONDS = 6
TITLES = {
    "by_lat": "mean by latitude",
    "by_time": "mean by time",
    "map": "map of means",
    "box": "mean of a box by time",
    "point": "one place",
    "climatology": "climatology by month, `lat`, `lon`",
    "anomaly": "anomaly, mean by time",
    "stations": "stations by region, a join",
    "rolling": "greatest rolling mean of a box",
    "exceedance": "map of `avg(CASE WHEN t2m > 290 …)`",
    "weighted": "mean weighted by area, by time",
    "median": "median by latitude",
}


# Engines side by side


class Engine:
    """A process that answers tasks."""

    def __init__(self, engine, python, path):
        self.engine = engine
        self.path = path
        command = [python, HERE / "python_engines.py", engine, path]
        self.log = (path.parent / f"{engine}.log").open("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        hello = json.loads(self.process.stdout.readline() or '{"missing": "it did not start"}')
        self.name = hello.get("name")
        if self.name is None:
            print(f"{engine} is left out: {hello['missing']}", file=sys.stderr)

    def milliseconds(self, task):
        """The time of one answer, and `None` if there is none."""
        print(task, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        reply = json.loads(line) if line.startswith("{") else {"error": f"the process printed {line!r}"}
        if "error" in reply:
            print(f"{self.engine}, {task}: {reply['error'][:300]}", file=sys.stderr)
        return reply.get("ms")

    def is_right(self, task, expected):
        """Whether the first answer is right; means of 32 bits have six digits or so."""
        found = np.load(self.path.with_name(f"{self.engine}.{task}.npy"))
        return found.shape == expected.shape and np.allclose(found, expected, rtol=1e-5, atol=1e-4, equal_nan=True)

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


def side_by_side(kind, pythons):
    """The lines of the table of a format."""
    data = cells()
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), data, kind)
        expected = truth(data)
        engines = [Engine(engine, pythons.get(engine, sys.executable), path) for engine in ENGINES]
        engines = [engine for engine in engines if engine.name is not None]
        ours, *peers = engines
        lines = [f"| query | {ours.name.split()[0]}, ms | {' | '.join(it.name for it in peers)} |", "|---" * (len(peers) + 2) + "|"]
        for task, title in TITLES.items():
            times = take_turns(engines, task)
            if IS_SMALL and (times[ours.engine] is None or mark(ours, task, expected)):
                sys.exit(f"{task}: the answer of gridfusion is wrong")
            row = [title, f"{mark(ours, task, expected)}{figure(statistics.median(times[ours.engine]))}"]
            for peer in peers:
                theirs = times[peer.engine]
                row.append("no answer" if theirs is None else f"{mark(peer, task, expected)}{spread(times[ours.engine], theirs)}")
            lines.append(f"| {' | '.join(row)} |")
            print(lines[-1], file=sys.stderr)
        for engine in engines:
            engine.end()
    return lines


def take_turns(engines, task):
    """Milliseconds of each engine in every turn; `None` for one that has no answer."""
    first = {engine.engine: engine.milliseconds(task) for engine in engines}
    turns = int(SECONDS / (sum(ms or 0 for ms in first.values()) / 1e3))
    times = {engine: None if ms is None else [] for engine, ms in first.items()}
    for _ in range(1 if IS_SMALL else min(max(turns, 3), 11)):
        for engine in engines:
            if times[engine.engine] is not None:
                times[engine.engine].append(engine.milliseconds(task))
    return times


def mark(engine, task, expected):
    return "" if engine.is_right(task, expected[task]) else "**wrong**, "


# The package alone


def in_turns(turns, *runs):
    """Milliseconds of functions that take turns, after one turn that fills caches."""
    times = [[] for _ in runs]
    for turn in range(turns + 1):
        for run, taken in zip(runs, times):
            start = time.perf_counter()
            result = run()
            milliseconds = (time.perf_counter() - start) * 1e3
            del result
            if turn:
                taken.append(milliseconds)
    return times


def row(query, ours, baseline="", theirs=None):
    other = ["", ""] if theirs is None else [figure(statistics.median(theirs)), spread(ours, theirs)]
    return f"| {query} | {figure(statistics.median(ours))} | {baseline} | {' | '.join(other)} |"


def imported(module):
    """Milliseconds of an import in a new process."""
    code = f"import time; start = time.perf_counter(); import {module}; print((time.perf_counter() - start) * 1e3)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def package(count):
    """The lines of the table of the package."""
    lines = ["| query | ms | compared with | ms | ratio |", "|---|---|---|---|---|"]
    modules = ["gridfusion", "numpy", "xarray"]
    ours, *theirs = zip(*([imported(module) for module in modules] for _ in range(11)))
    lines += [row("`import gridfusion`", ours, f"`import {module}`", taken) for module, taken in zip(modules[1:], theirs)]
    with tempfile.TemporaryDirectory() as folder:
        lines += group_by(Path(folder)) + large(Path(folder), count)
    return lines


def group_by(folder):
    """Small queries of the package, and of the program, whose start is left out."""
    import gridfusion as gf

    path = write(folder, cells(), "zarr")
    con = gf.connect(threads=2)

    def program(sql, runs):
        statements = f"SET datafusion.execution.target_partitions = 2;\n{f'{sql};' * runs}"
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "gridfusion", "-q"], input=statements, text=True, check=True, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - start) * 1e3

    def package(sql, runs):
        start = time.perf_counter()
        for _ in range(runs):
            con.sql(sql).arrow()
        return (time.perf_counter() - start) * 1e3

    lines = []
    for title, where in [("15 million cells", ""), ("1.5 million cells", " WHERE time < '2024-02-06'")]:
        sql = f"SELECT lat, avg(t2m) AS t2m FROM '{path}'{where} GROUP BY lat"
        ours, theirs = zip(*(((package(sql, 41) - package(sql, 1)) / 40, (program(sql, 41) - program(sql, 1)) / 40) for _ in range(7)))
        lines.append(row(f"`sql(…).arrow()` of a `GROUP BY` of {title}", ours, "the program", theirs))
    return lines


def large(folder, count):
    """Many cells as an array of numpy."""
    import gridfusion as gf
    import xarray as xr

    shape = (count // 200_000, 400, 500)
    values = np.random.default_rng(6).normal(280, 10, shape).astype("f4")
    dims = ("time", "lat", "lon")
    labels = {"time": np.arange(shape[0]), "lat": np.linspace(50, -50, 400), "lon": np.arange(500) * 0.5}
    path = folder / "cells.zarr"
    encoding = {"t2m": {"chunks": (50, 400, 500), "compressors": None}}
    xr.Dataset({"t2m": (dims, values)}, coords=labels).to_zarr(path, encoding=encoding, consolidated=False)
    con = gf.connect(threads=2)
    whole = con.sql(f"SELECT * FROM '{path}'")
    computed = con.sql(f"SELECT time, lat, lon, t2m - 273.15 AS celsius FROM '{path}'")

    def opened(engine, **options):
        return lambda: xr.open_dataset(path, engine=engine, **options).load()

    def scan(relation):
        stream = relation._source.stream()
        while stream.next() is not None:
            pass

    found = whole.xarray()
    assert np.array_equal(found.t2m.values, values), "the cells are those that were written"
    del found
    cells = f"{count // 1_000_000} million cells"
    runs = [values.copy, whole.xarray, opened("gridfusion"), opened("zarr", consolidated=False), lambda: scan(computed), computed.xarray]
    copied, ours, engine, zarr, scanned, celsius = in_turns(3, *runs)
    return [
        row(f"{cells}, `xarray()` of the whole array", ours, "a copy of the bytes", copied),
        row(f'{cells}, `open_dataset(engine="gridfusion").load()`', engine, "a copy of the bytes", copied),
        row(f'{cells}, `open_dataset(engine="gridfusion").load()`', engine, "xarray's engine for Zarr", zarr),
        row(f"{cells}, `xarray()` of `t2m - 273.15`", celsius, "a scan of the rows", scanned),
    ]


# The page


def figure(ms):
    """A number of milliseconds with as many digits as mean something."""
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.2f}"


def ratio(value):
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def spread(ours, theirs):
    """The median ratio of the turns, and the middle half of them."""
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    low, middle, high = (ratio(ratios[(len(ratios) - 1) * quarter // 4]) for quarter in (1, 2, 3))
    return f"{middle} ({low} to {high})"


def machine():
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{found[1] if found else 'An unknown processor'}, {os.cpu_count()} virtual cores"


def publish(name, lines):
    """Print a table, and write it into its place of the page if `UPDATE_FIGURES` is set."""
    text = "\n".join([f"{machine()}, measured on {date.today()}.", "", *lines])
    print(text)
    if "UPDATE_FIGURES" in os.environ and not IS_SMALL:
        page = HERE / "FIGURES.md"
        before, rest = page.read_text().split(f"<!-- figures: {name} -->\n", 1)
        after = rest.split("<!-- end -->", 1)[1]
        page.write_text(f"{before}<!-- figures: {name} -->\n\n{text}\n\n<!-- end -->{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["zarr", "netcdf", "package"])
    parser.add_argument("--xarray-sql", metavar="PYTHON", default=sys.executable, help="the Python that has xarray-sql")
    parser.add_argument("--cells", type=int, default=100_000_000, help="the cells of the large array")
    options = parser.parse_args()
    if options.table == "package":
        publish("python_package", package(options.cells))
    else:
        publish(f"python_{options.table}", side_by_side(options.table, {"xarray_sql": options.xarray_sql}))


main()
