"""Makes the two TileDB groups: `weather`, with odd names, and `stations`, with the data of the example.

The datasets of examples/data/stations.tet become arrays. The dimensions of a dense array have one
type, so times and stations cannot both be coordinates. The dimensions are indices instead, named like
the index columns of the `.tet` tables, and two more arrays have the labels.

    stations.tet                         stations/
    temperature(time, station)    ->     temperature(time_idx, station_idx)    value f32 or NaN
    precipitation(time, station)  ->     precipitation(time_idx, station_idx)  value f32
    elevation(station)            ->     elevation(station_idx)                value f32
    time(time)                    ->     time(time_idx)                        time, value i32
    labels of station             ->     station(station_idx)                  station
"""

import math

import numpy as np
import tiledb
from tiledb import Attr

from cells import create, dates, describe, dim, write

def forecast(uri):
    dims = [dates("2024-02-28T00", "2024-02-29T23", 24, "h", name) for name in ("run", "valid")]
    create(uri, dims, [Attr("temperature", dtype="f4")])
    run = raw_hours("2024-02-28T12")
    values = [5 - 0.5 * run + 0.25 * hour for run in range(3) for hour in range(8)]
    values[5] = math.nan
    write(uri, [(run, run + 2), (run, run + 7)], {"temperature": values})
    box = [[run, run + 2], [run - 1, run + 7]]
    return {"boxes": [box]}


def raw_hours(text):
    return int(np.datetime64(text, "h").astype("i8"))


def station(uri):
    attrs = [Attr("name", dtype="U0"), Attr("elevation", dtype="f4")]
    create(uri, [dim(0, 2, 3, "station_idx")], attrs)
    write(uri, [(0, 2)], {"name": ["Bergen", "Oslo", "Tromsø"], "elevation": [12, 94, 10]})


# The arrays of `stations` hold the values that examples/make_stations.rs writes to examples/data/stations.tet.
STATIONS = [
    ("Bergen", 12.0, 8.0, 7.0, 1.5), ("Helsinki", 51.0, 6.5, 12.0, 3.0),
    ("Oslo", 94.0, 7.0, 11.0, 3.5), ("Reykjavik", 52.0, 5.5, 6.0, 1.0),
    ("Torshavn", 54.0, 7.2, 4.0, 0.8), ("Tromso", 10.0, 3.5, 8.5, 1.2),
]
HOURS = 60 * 24
WORD = 2**64 - 1


def noise(hour, station, salt):
    x = (hour * 0x9E3779B97F4A7C15 & WORD) ^ ((station + 1) * (salt | 1) & WORD)
    for shift in (30, 27, 31):
        x = (x ^ (x >> shift)) * 0xBF58476D1CE4E5B9 & WORD
    return (x >> 11) / 2**53


def tenths(value):
    """Rounded half away from zero, in the f32 that the example stores."""
    rounded = math.copysign(math.floor(abs(value * 10.0) + 0.5), value)
    return np.float32(rounded) / np.float32(10.0)


def degrees(hour, station):
    _, _, mean, yearly, daily = STATIONS[station]
    if noise(hour, station, 3) < 0.01:
        return np.float32(math.nan)
    year = (hour / 8766.0 - 0.55) * math.tau
    day = (hour % 24 / 24.0 - 0.6) * math.tau
    weather = 2.0 * noise(hour // 36, station, 5) + noise(hour, station, 7) - 1.5
    return tenths(mean + yearly * math.cos(year) + daily * math.cos(day) + weather)


def millimetres(hour, station):
    wet = noise(hour // 12, station, 11)
    return tenths(0.0 if wet < 0.7 else (wet - 0.7) * 10.0 * noise(hour, station, 13))


def index(name, length, tile):
    return dim(0, length - 1, tile, f"{name}_idx", "i8")


def station_grid(stations_per_tile, value, filters, **meta):
    def make(uri):
        dims = [index("time", HOURS, 240), index("station", 6, stations_per_tile)]
        create(uri, dims, [Attr("value", dtype="f4", filters=filters)])
        cells = [value(hour, station) for hour in range(HOURS) for station in range(6)]
        write(uri, [(0, HOURS - 1), (0, 5)], {"value": cells})
        with tiledb.open(str(uri), "w", timestamp=10) as opened:
            opened.meta.update(meta)
    return make


def elevation(uri):
    create(uri, [index("station", 6, 6)], [Attr("value", dtype="f4")])
    write(uri, [(0, 5)], {"value": [row[1] for row in STATIONS]})


def station_names(uri):
    create(uri, [index("station", 6, 6)], [Attr("station", dtype="U0")])
    write(uri, [(0, 5)], {"station": [row[0] for row in STATIONS]})


def hours(uri):
    packed = [tiledb.DoubleDeltaFilter(), tiledb.ZstdFilter()]
    attrs = [Attr("time", dtype="M8[us]", filters=packed),
             Attr("value", dtype="i4", filters=packed)]
    create(uri, [index("time", HOURS, HOURS)], attrs)
    first = raw_hours("2024-01-01T00")
    times = [(first + hour) * 3_600_000_000 for hour in range(HOURS)]
    write(uri, [(0, HOURS - 1)], {"time": times, "value": range(HOURS)})

SMALL = tiledb.ZstdFilter(level=19)
WEATHER = {
    "forecast": ("temperature", "two dimensions of hours: run of the model, valid time", forecast),
    "station": (None, "a table of stations", station),
}
STATION_DATASETS = {
    "temperature": station_grid(
        6, degrees, [SMALL], units="degC", long_name="air temperature at 2 m"),
    "precipitation": station_grid(
        3, millimetres, [tiledb.ByteShuffleFilter(), SMALL], units="mm h-1", _FillValue="-9999"),
    "elevation": elevation,
    "time": hours,
    "station": station_names,
}


def make_group(uri, what, members):
    """A group and its members: {directory: (name in the group or None, what, maker)}.

    Members without a `what` get no expected JSON: tests compare them with the `.tet` file.
    """
    tiledb.Group.create(str(uri))
    expected = {"name": uri.name, "what": what, "metadata": {"source": uri.name}, "members": []}
    with tiledb.Group(str(uri), "w") as group:
        for path, (member, about, make) in members.items():
            extra = make(uri / path) or {}
            group.add(uri=path, name=member, relative=True)
            entry = {"name": member, "path": path, "type": "array"}
            if about:
                entry["array"] = describe(uri / path, path, about, **extra)
            expected["members"].append(entry)
        group.meta["source"] = uri.name
    return uri.name, expected


def groups(root):
    """Makes the groups below `root`; yields their names and expected JSON."""
    yield make_group(root / "weather", "one member under another name, one without a name", WEATHER)
    datasets = {name: (name, None, make) for name, make in STATION_DATASETS.items()}
    yield make_group(root / "stations", "the datasets of examples/data/stations.tet", datasets)
