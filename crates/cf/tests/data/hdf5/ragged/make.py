"""Writes ragged arrays (CF, chapter 9) with netCDF4, and the rows that they mean, expanded with numpy.

    python make.py

- contiguous.nc: counts per station, one of them zero. Missing texts and times.
- indexed.nc: an index per sample, of which one is missing.
- nested.nc: levels of profiles, and profiles of trajectories.
- floats_1.nc, floats_2.nc: profiles of one dimension each, of other lengths.
- padded_1.nc, padded_2.nc: profiles by levels, with fewer levels in the first file.
- sum.nc, beyond.nc: counts and an index that contradict the dimensions.
"""

import json
import os

import netCDF4
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def text(dataset, name, dim, values, width=8):
    """Writes a variable of characters."""
    if "width" not in dataset.dimensions:
        dataset.createDimension("width", width)
    variable = dataset.createVariable(name, "S1", (dim, "width"))
    variable[:] = np.array(values, f"S{width}").view("S1").reshape(len(values), width)
    variable._Encoding = "utf-8"
    return variable


def times(values):
    """ISO texts of days since 2020."""
    return [None if it is None else str(np.datetime64("2020-01-01") + it) + "T00:00:00" for it in values]


def dump(name, columns):
    columns = {name: [None if it is None else it for it in values] for name, values in columns.items()}
    lens = {len(values) for values in columns.values()}
    assert len(lens) == 1, lens
    with open(f"{name}.json", "w") as file:
        json.dump(columns, file, indent=None, separators=(",", ":"))
        file.write("\n")


def contiguous():
    counts = np.array([5, 0, 12, 1, 6])
    obs = counts.sum()
    names = ["Oslo", "nobody", "Bergen", "Ås", "Tromsø"]
    lat = np.array([59.9, 1.0, 60.4, 59.7, 69.6])
    since = [1, 2, None, 4, 5]
    temperature = np.round(np.arange(obs) * 0.5 - 3, 2)
    hours = np.arange(obs) * 24
    with netCDF4.Dataset("contiguous.nc", "w") as dataset:
        dataset.featureType = "timeSeries"
        dataset.createDimension("station", len(counts))
        dataset.createDimension("obs", obs)
        size = dataset.createVariable("row_size", "i4", "station")
        size.sample_dimension = "obs"
        size[:] = counts
        text(dataset, "station_name", "station", [it.encode() for it in names]).cf_role = "timeseries_id"
        dataset.createVariable("lat", "f8", "station", chunksizes=[2])[:] = lat
        begin = dataset.createVariable("since", "i2", "station", fill_value=-1)
        begin.units = "days since 2020-01-01"
        begin[:] = [-1 if it is None else it for it in since]
        time = dataset.createVariable("time", "f8", "obs", chunksizes=[4])
        time.units = "hours since 2020-01-01"
        time[:] = hours
        values = dataset.createVariable("temperature", "f4", "obs", chunksizes=[4])
        values.coordinates = "time lat station_name"
        values[:] = temperature
    of = np.repeat(np.arange(len(counts)), counts)
    dump("contiguous", {
        "obs": list(range(obs)), "temperature": temperature.tolist(), "time": times((hours // 24).tolist()),
        "station": of.tolist(), "station_name": [names[it] for it in of], "lat": lat[of].tolist(),
        "since": times([since[it] for it in of]),
    })


def indexed():
    index = np.array([2, 0, 0, -9, 1, 2, 2, 0])
    names, height = ["a", "bb", ""], np.array([10, -99, 30])
    values = np.arange(len(index)) * 10
    with netCDF4.Dataset("indexed.nc", "w") as dataset:
        dataset.createDimension("station", 3)
        dataset.createDimension("obs", None)
        of = dataset.createVariable("station_index", "i4", "obs", chunksizes=[3], fill_value=-9)
        of.instance_dimension = "station"
        of[:] = index
        name = dataset.createVariable("name", str, "station")
        for at, it in enumerate(names):
            name[at] = it
        dataset.createVariable("height", "i2", "station", fill_value=-99)[:] = height
        value = dataset.createVariable("value_of", "i4", "obs", chunksizes=[3])
        value[:] = values
    dump("indexed", {
        "obs": list(range(len(index))), "value_of": values.tolist(),
        "station": [None if it < 0 else int(it) for it in index],
        "name": [None if it < 0 else names[it] for it in index],
        "height": [None if it < 0 or height[it] == -99 else int(height[it]) for it in index],
    })


def nested():
    counts, of_profile = np.array([2, 3, 0, 2]), np.array([1, 0, 0, 1])
    ships, lat = ["Fram", "Vema"], np.array([1.5, 2.5, 3.5, 4.5])
    obs = counts.sum()
    z, salt = np.tile([0.0, 10.0, 20.0], 3)[:obs], np.arange(obs) + 30.0
    with netCDF4.Dataset("nested.nc", "w") as dataset:
        dataset.featureType = "trajectoryProfile"
        for name, length in [("trajectory", 2), ("profile", 4), ("obs", obs)]:
            dataset.createDimension(name, length)
        text(dataset, "trajectory", "trajectory", [it.encode() for it in ships]).cf_role = "trajectory_id"
        index = dataset.createVariable("trajectory_index", "i4", "profile")
        index.instance_dimension = "trajectory"
        index[:] = of_profile
        size = dataset.createVariable("row_size", "i2", "profile")
        size.sample_dimension = "obs"
        size[:] = counts
        dataset.createVariable("lat", "f4", "profile")[:] = lat
        dataset.createVariable("z", "f4", "obs")[:] = z
        values = dataset.createVariable("salt", "f4", "obs")
        values.coordinates = "lat z"
        values[:] = salt
    of = np.repeat(np.arange(4), counts)
    dump("nested", {
        "obs": list(range(obs)), "salt": salt.tolist(), "z": z.tolist(), "profile": of.tolist(),
        "lat": lat[of].tolist(), "trajectory": [ships[of_profile[it]] for it in of],
    })


def floats():
    columns = {name: [] for name in ["obs", "depth", "wmo", "profile"]}
    for number, counts in enumerate([[3, 2], [1, 4, 0, 3]], 1):
        counts = np.array(counts)
        wmo = [f"{number}90{at}" for at in range(len(counts))]
        obs = counts.sum()
        depth = np.arange(obs) * 2.0 + number
        with netCDF4.Dataset(f"floats_{number}.nc", "w") as dataset:
            dataset.createDimension("profile", len(counts))
            dataset.createDimension("obs", obs)
            size = dataset.createVariable("row_size", "i4", "profile")
            size.sample_dimension = "obs"
            size[:] = counts
            text(dataset, "wmo", "profile", [it.encode() for it in wmo], 4 + number)
            dataset.createVariable("depth", "f4", "obs", chunksizes=[2])[:] = depth
        of = np.repeat(np.arange(len(counts)), counts)
        columns["depth"] += depth.tolist()
        columns["wmo"] += [wmo[it] for it in of]
        columns["profile"] += of.tolist()
    columns["obs"] = list(range(len(columns["depth"])))
    dump("floats", columns)


def padded():
    columns = {name: [] for name in ["N_PROF", "N_LEVELS", "PRES", "TEMP"]}
    before = 0
    for number, (profiles, levels) in enumerate([(2, 3), (3, 5)], 1):
        pres = np.arange(profiles * levels).reshape(profiles, levels) + number * 100.0
        temp = pres / 2
        pres[0, levels - 1] = np.nan
        with netCDF4.Dataset(f"padded_{number}.nc", "w") as dataset:
            dataset.createDimension("N_PROF", profiles)
            dataset.createDimension("N_LEVELS", levels)
            for name, values in [("PRES", pres), ("TEMP", temp)]:
                variable = dataset.createVariable(name, "f4", ("N_PROF", "N_LEVELS"), fill_value=99999.0,
                                                  chunksizes=[1, 2])
                variable[:] = np.where(np.isnan(values), 99999.0, values)
        for profile in range(profiles):
            for level in range(5):
                columns["N_PROF"].append(before + profile)
                columns["N_LEVELS"].append(level)
                inside = level < levels
                value = float(pres[profile, level]) if inside else np.nan
                columns["PRES"].append(None if np.isnan(value) else value)
                columns["TEMP"].append(float(temp[profile, level]) if inside else None)
        before += profiles
    dump("padded", columns)


def wrong():
    with netCDF4.Dataset("sum.nc", "w") as dataset:
        dataset.createDimension("station", 2)
        dataset.createDimension("obs", 5)
        size = dataset.createVariable("row_size", "i4", "station")
        size.sample_dimension = "obs"
        size[:] = [2, 2]
        dataset.createVariable("value_of", "f4", "obs")[:] = np.arange(5)
    with netCDF4.Dataset("beyond.nc", "w") as dataset:
        dataset.createDimension("station", 2)
        dataset.createDimension("obs", 3)
        of = dataset.createVariable("station_index", "i4", "obs")
        of.instance_dimension = "station"
        of[:] = [0, 1, 2]
        dataset.createVariable("lat", "f4", "station")[:] = [1, 2]
        dataset.createVariable("value_of", "f4", "obs")[:] = np.arange(3)


contiguous()
indexed()
nested()
floats()
padded()
wrong()
