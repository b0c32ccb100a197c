"""Times TileDB-Py on the queries of the TileDB bench of this crate.

    python3 benches/tiledb_peer.py DIR --make     makes the array DIR/climate_524288x256, if absent
    python3 benches/tiledb_peer.py DIR            makes it, if absent, and times the queries; prints JSON

The array has 524288 hours x 256 stations of f32 (512 MiB), tiles of 1024 x 256, ByteShuffle and Zstd, and
one fragment. The dimensions of a dense array have one type, so time is the number of the hour.
`GRIDFUSION_BENCH_SMALL=1` shrinks the array for a smoke run. Times are seconds, warm, with two threads; each
run opens the array anew. Exit status 3: TileDB-Py is not installed.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

try:
    import numpy as np
    import tiledb
except ImportError as error:
    print(f"tiledb_peer: {error}; needs TileDB-Py (pip install tiledb)", file=sys.stderr)
    sys.exit(3)

IS_SMALL = "GRIDFUSION_BENCH_SMALL" in os.environ
HOURS, STATIONS = (8_192, 16) if IS_SMALL else (524_288, 256)
TILE = (1024, STATIONS)
THREADS = 2
BOX = (HOURS // 2, HOURS // 2 + 24, STATIONS // 2)


def values():
    """Seasons, days and noise in kelvins, rounded to hundredths."""
    rng = np.random.default_rng(0)
    cells = np.empty((HOURS, STATIONS), dtype=np.float32)
    station = np.arange(STATIONS) / STATIONS
    for first in range(0, HOURS, TILE[0]):
        hour = np.arange(first, first + TILE[0])[:, None]
        year = 10 * np.sin(hour / 8766 * 2 * np.pi) * (0.5 + station)
        day = 4 * np.sin(hour / 24 * 2 * np.pi + station)
        noise = rng.normal(0, 1.5, (TILE[0], STATIONS))
        cells[first:first + TILE[0]] = np.round(280 + year + day + noise, 2)
    return cells


def make(uri):
    """Writes the array next to `uri` and renames it, so that an array at `uri` is complete."""
    begun = uri.with_name(uri.name + ".part")
    if begun.exists():
        tiledb.remove(str(begun))
    dims = [tiledb.Dim(name, domain=(0, length - 1), tile=tile, dtype=np.int64)
            for name, length, tile in zip(("time", "station"), (HOURS, STATIONS), TILE)]
    packed = [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter()]
    attr = tiledb.Attr("value", dtype=np.float32, filters=packed)
    tiledb.Array.create(str(begun), tiledb.ArraySchema(tiledb.Domain(*dims), [attr]))
    with tiledb.open(str(begun), "w", timestamp=10) as array:
        array[:] = values()
    begun.rename(uri)


def queries(uri, ctx):
    """The timed queries: name and function."""
    def opened():
        return tiledb.open(str(uri), ctx=ctx)

    def full_read():
        with opened() as array:
            return array[:]["value"]

    def mean_by_station():
        return full_read().mean(axis=0, dtype=np.float64)

    def mean_by_time():
        return full_read().mean(axis=1, dtype=np.float64)

    def aggregate():
        with opened() as array:
            query = array.query(attrs=("value",))
            return query.agg({"value": ["sum", "min", "max", "count"]})[:]

    def box():
        with opened() as array:
            return array[BOX[0]:BOX[1], BOX[2]]["value"]

    return {run.__name__: run for run in (full_read, mean_by_station, mean_by_time, aggregate, box)}


def timed(run, runs):
    run()  # warms the page cache and starts threads
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return {"min": min(seconds), "median": statistics.median(seconds)}


def results(named):
    """The answers of the queries, to compare."""
    return {
        "mean_by_station": named["mean_by_station"]()[:3].tolist(),
        "mean_by_time": named["mean_by_time"]()[:3].tolist(),
        "aggregate": {name: float(value) for name, value in named["aggregate"]().items()},
        "box": named["box"]().tolist(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path, metavar="DIR", help="the directory of the array")
    parser.add_argument("--make", action="store_true", help="make the array and stop")
    parser.add_argument("--runs", type=int, default=7, help="runs of each query (7)")
    options = parser.parse_args()

    uri = options.dir / f"climate_{HOURS}x{STATIONS}"
    if not uri.exists():
        options.dir.mkdir(parents=True, exist_ok=True)
        make(uri)
    if options.make:
        print(uri)
        return
    ctx = tiledb.Ctx({"sm.compute_concurrency_level": THREADS, "sm.io_concurrency_level": THREADS})
    named = queries(uri, ctx)
    stored = sum(path.stat().st_size for path in uri.glob("__fragments/*/a0.tdb"))
    print(json.dumps({
        "array": str(uri),
        "tiledb_py": tiledb.__version__,
        "libtiledb": ".".join(map(str, tiledb.libtiledb.version())),
        "threads": THREADS,
        "runs": options.runs,
        "shape": [HOURS, STATIONS],
        "tile": list(TILE),
        "bytes": HOURS * STATIONS * 4,
        "stored_bytes": stored,
        "seconds": {name: timed(run, options.runs) for name, run in named.items()},
        "results": results(named),
    }, indent=2))


if __name__ == "__main__":
    main()
