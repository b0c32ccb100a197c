"""Times xarray with Dask for the bench `writing`, and prints JSON.

    python3 benches/writing_peer.py DIR --chunks 50,55,48

DIR holds the stores `raw.zarr` and `zstd.zarr`, which are written again with chunks of these lengths, and to a copy of which a day is appended.
Times are the best of `--runs`, in milliseconds, on two threads. Exit status 3 means that a tool is not installed.
"""

import argparse
import json
import shutil
import sys
import time
from pathlib import Path

try:
    import dask
    import numpy as np
    import xarray as xr
    import zarr
except ImportError as error:
    print(f"writing_peer: {error}", file=sys.stderr)
    sys.exit(3)

DIMS = ("time", "lat", "lon")


def milliseconds(run):
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def rechunk(source, target, lengths, compressors):
    """Writes a store with other chunks. Dask reads blocks that have whole chunks of both."""
    shutil.rmtree(target, ignore_errors=True)
    field = xr.open_zarr(source, chunks=None)[["value"]].chunk({"time": lengths[0], "lat": -1, "lon": -1})
    field.value.encoding.clear()
    field.chunk(dict(zip(DIMS, lengths))).to_zarr(
        target, mode="w", zarr_format=3, consolidated=True,
        encoding={"value": {"chunks": lengths, "compressors": compressors}})


def append(target, number):
    """Appends a day to a store."""
    first = xr.open_zarr(target, chunks=None)[["value"]].isel(time=[0]).load()
    day = first.assign_coords(time=first.time + np.timedelta64(number, "D"))
    for variable in day.variables.values():
        variable.encoding.clear()
    day.to_zarr(target, append_dim="time", consolidated=True)


def measured(directory, lengths, runs):
    dask.config.set(scheduler="threads", num_workers=2)
    zarr.config.set({"threading.max_workers": 2})
    times = {}
    for name, compressors in [("raw.zarr", None), ("zstd.zarr", [zarr.codecs.ZstdCodec(level=3)])]:
        def run():
            rechunk(directory / name, directory / "peer.zarr", lengths, compressors)
        run()
        times[name] = min(milliseconds(run) for _ in range(runs))
    grows = directory / "peer_grows.zarr"
    days = xr.open_zarr(directory / "zstd.zarr", chunks=None)[["value"]].load()
    days.value.encoding.clear()
    days.to_zarr(grows, mode="w", zarr_format=3, consolidated=True,
                 encoding={"value": {"chunks": (1, *days.value.shape[1:])}})
    count = days.sizes["time"]
    append(grows, count)
    times["append"] = min(milliseconds(lambda: append(grows, count + 1 + run)) for run in range(runs))
    shutil.rmtree(directory / "peer.zarr")
    shutil.rmtree(grows)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path, metavar="DIR", help="the folder with the stores")
    parser.add_argument("--chunks", required=True, help="lengths of the new chunks")
    parser.add_argument("--runs", type=int, default=5, help="runs of each task (5)")
    options = parser.parse_args()
    lengths = tuple(int(length) for length in options.chunks.split(","))
    print(json.dumps(measured(options.dir, lengths, options.runs), indent=2))


if __name__ == "__main__":
    main()
