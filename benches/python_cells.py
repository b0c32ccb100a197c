"""The array of the bench `python.py`, as files, and the right answers to its questions."""

import os
import warnings

import numpy as np

from python_engines import stations

#: Whether this is a smoke run, which fails if an answer of gridfusion is wrong.
IS_SMALL = "GRIDFUSION_BENCH_SMALL" in os.environ
SHAPE = (146 if IS_SMALL else 1460, 73, 144)


def cells():
    """Temperatures of a year, with 21 % of the cells missing, and their labels."""
    rng = np.random.default_rng(5)
    times = np.datetime64("2024-01-01T00", "ns") + np.arange(SHAPE[0]) * np.timedelta64(8760 // SHAPE[0], "h")
    lat, lon = np.linspace(90, -90, SHAPE[1]), np.arange(SHAPE[2]) * 2.5
    season = np.cos(np.arange(SHAPE[0]) * 2 * np.pi / SHAPE[0])[:, None, None]
    values = 250 + 50 * np.cos(np.deg2rad(lat))[None, :, None] - 15 * season * np.sin(np.deg2rad(lat))[None, :, None]
    values = (values + rng.normal(0, 3, SHAPE)).astype("f4")
    values[rng.random(SHAPE) < 0.21] = np.nan
    return values, times, lat, lon


def write(folder, data, kind):
    """Write the cells in the format that a table is about, and as Parquet."""
    import gridfusion as gf
    import xarray as xr

    values, times, lat, lon = data
    dataset = xr.Dataset({"t2m": (("time", "lat", "lon"), values)}, coords={"time": times, "lat": lat, "lon": lon})
    chunks = (146, SHAPE[1], SHAPE[2])
    if kind == "zarr":
        path = folder / "t.zarr"
        dataset.to_zarr(path, encoding={"t2m": {"chunks": chunks}}, consolidated=False)
    else:
        path = folder / "t.nc"
        dataset.to_netcdf(path, encoding={"t2m": {"chunksizes": chunks, "zlib": True, "complevel": 1, "shuffle": True}})
    gf.read(path).to_parquet(folder / "t.parquet", compression="zstd(3)")
    return path


def truth(data):
    """The answers, as loops of numpy give them in 64 bits: rows of keys and a value, sorted."""
    values, times, lat, lon = data
    values = values.astype("f8")
    months = times.astype("datetime64[M]").astype(int) % 12 + 1
    seconds = times.astype("datetime64[s]").astype("f8")
    mean = np.nanmean
    climate = {month: mean(values[months == month], axis=0) for month in range(1, 13)}
    weights = np.broadcast_to(np.cos(np.deg2rad(lat))[:, None], values.shape[1:])
    places = stations()
    # The mean of missing cells is missing.
    warnings.simplefilter("ignore", RuntimeWarning)
    rows = {
        "by_lat": [(it, mean(values[:, at])) for at, it in enumerate(lat)],
        "by_time": [(it, mean(values[at])) for at, it in enumerate(seconds)],
        "point": [(it, values[at, lat == 50, lon == 10][0]) for at, it in enumerate(seconds)],
        "median": [(it, np.nanmedian(values[:, at])) for at, it in enumerate(lat)],
        "climatology": [
            (month, lat[y], lon[x], climate[month][y, x]) for month in climate for y in range(len(lat)) for x in range(len(lon))
        ],
        "anomaly": [(it, mean(values[at] - climate[months[at]])) for at, it in enumerate(seconds)],
        "weighted": [
            (it, np.nansum(values[at] * weights) / np.sum(weights[~np.isnan(values[at])])) for at, it in enumerate(seconds)
        ],
        "map": [(y, x, mean(values[:, j, i])) for j, y in enumerate(lat) for i, x in enumerate(lon)],
        "exceedance": [(y, x, np.mean(values[:, j, i] > 290)) for j, y in enumerate(lat) for i, x in enumerate(lon)],
    }
    inside = values[:, (lat >= 40) & (lat <= 60)][:, :, lon <= 30]
    rows["box"] = [(it, mean(inside[at])) for at, it in enumerate(seconds)]
    wide = values[:, (lat >= 30) & (lat <= 60)][:, :, lon <= 60]
    rows["rolling"] = [(np.nanmax([mean(wide[max(0, at - 11) : at + 1], axis=0) for at in range(len(wide))]),)]
    rows["stations"] = []
    for region in range(5):
        chosen = places["region"] == region
        series = [values[:, lat == y, lon == x] for y, x in zip(places["lat"][chosen], places["lon"][chosen])]
        rows["stations"].append((region, mean(np.concatenate(series))))
    return {task: np.array(sorted(answer), "f8") for task, answer in rows.items()}
