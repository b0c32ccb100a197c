"""Times exactextract, numpy and pandas for the bench `regions`, and prints JSON.

    python3 benches/regions_peer.py DIR --points 1000000

DIR holds the stores `hours.zarr` and `air.zarr`, and the polygons `stars.geojson` and `countries.geojson`. Times are the best of three, in
milliseconds. Exit status 3 means that a tool is not installed.
"""

import argparse
import json
import sys
import time
from pathlib import Path

try:
    import numpy as np
    import xarray as xr
    from exactextract import exact_extract
    from exactextract.raster import NumPyRasterSource
except ImportError as error:
    print(f"regions_peer: {error}", file=sys.stderr)
    sys.exit(3)


def best(run, times=3):
    """Returns the least time of some runs in milliseconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(1e3 * (time.perf_counter() - start))
    return min(found)


def raster(values, lat, lon):
    """Makes a raster of rows from north to south and longitudes from -180 on."""
    order = np.argsort((lon + 180) % 360)
    lon = (lon[order] + 180) % 360 - 180
    values = values[:, order] if lat[0] > lat[-1] else values[::-1, order]
    dx, dy = lon[1] - lon[0], abs(lat[1] - lat[0])
    north, south = max(lat[0], lat[-1]) + dy / 2, min(lat[0], lat[-1]) - dy / 2
    return NumPyRasterSource(values, xmin=lon[0] - dx / 2, xmax=lon[-1] + dx / 2, ymin=south, ymax=north)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=1_000_000)
    arguments = parser.parse_args()
    folder, found = arguments.folder, {}

    hours = xr.open_zarr(folder / "hours.zarr", consolidated=True)
    lat, lon = hours.lat.values, hours.lon.values
    grid = raster(np.zeros((len(lat), len(lon)), "f4"), lat, lon)

    def features(name):
        return json.loads((folder / name).read_text())["features"]

    found["cells"] = best(lambda: exact_extract(grid, features("stars.geojson"), ["cell_id", "coverage"]))

    air = xr.open_zarr(folder / "air.zarr", consolidated=True)
    values = air.value.values
    countries = features("countries.geojson")
    lat, lon = air.lat.values, air.lon.values

    def steps():
        for step in range(min(10, len(values))):
            exact_extract(raster(values[step], lat, lon), countries, ["mean"])

    found["steps"] = best(steps)
    cells = values.reshape(len(values), -1)
    weights = np.random.default_rng(0).random((50, cells.shape[1])) * (np.random.default_rng(1).random((50, cells.shape[1])) < 0.05)

    def dense():
        known = ~np.isnan(cells)
        filled = np.where(known, cells, 0).astype("f8")
        return (filled @ weights.T) / (known.astype("f8") @ weights.T)

    found["dense"] = best(dense)
    rng = np.random.default_rng(2)
    count = arguments.points
    track = {"lat": rng.uniform(-90, 90, count), "lon": rng.uniform(0, 359.8, count)}
    times = hours.time.values[rng.integers(0, len(hours.time), count)] + np.timedelta64(11, "m")

    def points():
        for name, values in [*track.items(), ("time", times)]:
            hours.indexes[name].get_indexer(values, method="nearest")

    found["points"] = best(points)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
