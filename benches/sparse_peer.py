"""Times TileDB-Py on the sparse arrays of the bench `sparse`, and prints JSON.

    python3 benches/sparse_peer.py DIR --make     makes the arrays that DIR lacks
    python3 benches/sparse_peer.py DIR            makes them too, and times the queries

    hilbert, row_major    10 million points in one fragment; x and y are float64
    four                  the points of `hilbert` in four fragments, which repeat a tenth of each other
    deleted               `hilbert` after a deletion of 1 % of the points, by an attribute
    ships, ships_four     10 million reports of ships, by name and time, in one and in four fragments
    many, many_dense      the same cells in 1000 fragments, sparse and dense

Tiles have 10000 cells, and all filters are zstd. `GRIDFUSION_BENCH_SMALL=1` shrinks the arrays for a smoke
run. Times are median seconds, warm, with two threads; each run opens the array anew. Exit status 3: TileDB-Py is
not installed.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from functools import cache
from pathlib import Path

try:
    import numpy as np
    import tiledb
except ImportError as error:
    print(f"sparse_peer: {error}; needs TileDB-Py (pip install tiledb)", file=sys.stderr)
    sys.exit(3)

IS_SMALL = "GRIDFUSION_BENCH_SMALL" in os.environ
POINTS = 200_000 if IS_SMALL else 10_000_000
REPORTS = 2_000  # of each ship
FRAGMENTS, FRAGMENT_CELLS = (20 if IS_SMALL else 1_000), 100
CAPACITY = 10_000
THREADS = 2
# The same constants are in sparse.rs. The box has 0.1 % of the area.
BOX = (slice(10.0, 21.384), slice(10.0, 15.692))
SHIP = "S00042"
ZSTD = tiledb.FilterList([tiledb.ZstdFilter()])


@cache
def points():
    """Positions in millionths of a degree; values with noise, so that all tiles have about the same range."""
    rng = np.random.default_rng(0)
    x, y = (np.round(rng.uniform(-end, end, POINTS), 6) for end in (180, 90))
    value = np.round(280 + 15 * np.cos(np.radians(y)) + rng.normal(0, 6, POINTS), 2)
    return {"x": x, "y": y, "value": value, "code": rng.integers(0, 100, POINTS, dtype=np.int32)}


@cache
def reports():
    """Reports of each ship, about one per minute."""
    rng = np.random.default_rng(1)
    ship, number = np.divmod(np.arange(POINTS), REPORTS)
    names = np.array([f"S{ship:05}" for ship in range(POINTS // REPORTS)], dtype="S6")
    seconds = 60 * number + rng.integers(0, 60, POINTS)
    value = np.round(12 + rng.normal(0, 4, POINTS), 2)
    codes = rng.integers(0, 100, POINTS, dtype=np.int32)
    return {"ship": names[ship], "time": seconds, "value": value, "code": codes}


def dims_of_points():
    return [tiledb.Dim(name, domain=(-end, end), tile=None, dtype=np.float64, filters=ZSTD)
            for name, end in (("x", 180), ("y", 90))]


def dims_of_reports():
    return [tiledb.Dim("ship", domain=(None, None), tile=None, dtype="ascii", filters=ZSTD),
            tiledb.Dim("time", domain=(0, 60 * REPORTS), tile=None, dtype=np.int64, filters=ZSTD)]


def create(uri, dims, order):
    attrs = [tiledb.Attr("value", dtype=np.float64, filters=ZSTD),
             tiledb.Attr("code", dtype=np.int32, filters=ZSTD)]
    schema = tiledb.ArraySchema(
        tiledb.Domain(*dims), attrs, sparse=True, cell_order=order, tile_order="row-major",
        capacity=CAPACITY, coords_filters=ZSTD, offsets_filters=ZSTD)
    tiledb.Array.create(str(uri), schema)


def write(uri, cells, timestamp):
    """Writes the first two columns as coordinates, and the others as attributes."""
    (_, first), (_, second), *values = cells.items()
    with tiledb.open(str(uri), "w", timestamp=timestamp) as array:
        array[first, second] = dict(values)


def sorted_rows(cells):
    """Row-major order, in which TileDB need not sort."""
    first, second, *_ = cells.values()
    order = np.lexsort((second, first))
    return {name: values[order] for name, values in cells.items()}


def one(uri, dims, order, cells):
    create(uri, dims, order)
    write(uri, cells if order == "hilbert" else sorted_rows(cells), 10)


def four(uri, dims, order, cells):
    """Writes random quarters. The first three fragments hold old values for a tenth of the next quarter, and the
    last one repeats a tenth of the first."""
    create(uri, dims, order)
    quarters = np.array_split(np.random.default_rng(2).permutation(POINTS), 4)
    for number, quarter in enumerate(quarters):
        repeated = quarters[(number + 1) % 4][:len(quarter) // 10]
        chosen = np.concatenate([quarter, repeated])
        part = {name: values[chosen] for name, values in cells.items()}
        if number < 3:
            part["value"][len(quarter):] -= 1
        write(uri, part if order == "hilbert" else sorted_rows(part), 10 * (number + 1))


def deleted(uri):
    """Links the files of `hilbert`, which no process changes."""
    shutil.copytree(uri.with_name("hilbert"), uri, copy_function=os.link)
    with tiledb.open(str(uri), "d", timestamp=20) as array:
        array.query(cond="code == 7").submit()


def many(uri, is_sparse):
    """Writes a fragment for each hour."""
    dims = [tiledb.Dim("hour", domain=(0, FRAGMENTS - 1), tile=1, dtype=np.int64, filters=ZSTD),
            tiledb.Dim("station", domain=(0, FRAGMENT_CELLS - 1), tile=FRAGMENT_CELLS,
                       dtype=np.int64, filters=ZSTD)]
    attr = tiledb.Attr("value", dtype=np.float64, filters=ZSTD)
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), [attr], sparse=is_sparse)
    tiledb.Array.create(str(uri), schema)
    stations = np.arange(FRAGMENT_CELLS)
    for hour in range(FRAGMENTS):
        value = hour + stations / FRAGMENT_CELLS
        with tiledb.open(str(uri), "w", timestamp=10 + hour) as array:
            if is_sparse:
                array[np.full(FRAGMENT_CELLS, hour), stations] = value
            else:
                array[hour:hour + 1, :] = value[None]


ARRAYS = {
    "hilbert": lambda uri: one(uri, dims_of_points(), "hilbert", points()),
    "row_major": lambda uri: one(uri, dims_of_points(), "row-major", points()),
    "four": lambda uri: four(uri, dims_of_points(), "hilbert", points()),
    "deleted": deleted,
    "ships": lambda uri: one(uri, dims_of_reports(), "row-major", reports()),
    "ships_four": lambda uri: four(uri, dims_of_reports(), "row-major", reports()),
    "many": lambda uri: many(uri, True),
    "many_dense": lambda uri: many(uri, False),
}


def make(directory):
    """Makes the missing arrays. Each gets its name when it is complete."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, write_array in ARRAYS.items():
        uri, begun = directory / name, directory / f"{name}.part"
        if uri.exists():
            continue
        shutil.rmtree(begun, ignore_errors=True)
        write_array(begun)
        begun.rename(uri)


def values_of(array, dims=False, attrs=("value",)):
    return array.query(attrs=attrs, dims=dims, order="U").multi_index[:]


def aggregated(array, *operations, condition=None):
    """Aggregates of `value` that TileDB computes: one as a number, several by their names."""
    return array.query(attrs=("value",), cond=condition).agg({"value": list(operations)})[:]


def selected(array, *ranges):
    """The number of points of a box, which are read with all columns."""
    return len(array.query(dims=True, order="U").multi_index[ranges]["value"])


# The queries by name; each returns a number for comparison.
QUERIES = {
    "box": lambda array: selected(array, *BOX),
    "ship": lambda array: selected(array, SHIP),
    "count": lambda array: aggregated(array, "count"),
    "aggregate": lambda array: aggregated(array, "sum", "min", "max", "count")["sum"],
    "avg": lambda array: values_of(array)["value"].mean(),
    "avg_inside": lambda array: aggregated(array, "mean"),
    "count_warm": lambda array: np.count_nonzero(values_of(array)["value"] > 290),
    "count_warm_inside": lambda array: aggregated(array, "count", condition="value > 290.0"),
    "all": lambda array: len(values_of(array, True, ("value", "code"))["value"]),
    "ship_value": lambda array: len(values_of(array, ["ship"])["value"]),
    "open": lambda array: FRAGMENTS * FRAGMENT_CELLS,
}

SCANS = ["avg", "avg_inside", "count_warm", "count_warm_inside", "all"]

# The queries of each array.
TIMED = {
    "hilbert": ["box", *SCANS],
    "row_major": ["box", "count", "aggregate", *SCANS],
    "four": ["avg", "all"],
    "deleted": ["avg"],
    "ships": ["ship", "ship_value"],
    "ships_four": ["ship", "avg"],
    "many": ["open", "avg"],
}


def timed(uri, query, ctx, runs):
    """The median seconds of a query, and its result."""
    def run():
        with tiledb.open(str(uri), ctx=ctx) as array:
            return float(query(array))

    result = run()  # warms the page cache and starts threads
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return {"seconds": statistics.median(seconds), "result": result}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path, metavar="DIR", help="the directory of the arrays")
    parser.add_argument("--make", action="store_true", help="make the arrays and stop")
    parser.add_argument("--runs", type=int, default=5, help="runs of each query (5)")
    options = parser.parse_args()
    make(options.dir)
    if options.make:
        return
    ctx = tiledb.Ctx({
        "sm.compute_concurrency_level": THREADS, "sm.io_concurrency_level": THREADS,
        "py.init_buffer_bytes": 10 * POINTS,  # a column fits, which is faster than to grow buffers
    })
    measured = {
        array: {name: timed(options.dir / array, QUERIES[name], ctx, options.runs) for name in names}
        for array, names in TIMED.items()
    }
    print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
