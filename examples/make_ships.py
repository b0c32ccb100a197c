"""Writes `examples/data/ships` with TileDB-Py: positions of twenty ships on one day, every ten minutes.

    python3 examples/make_ships.py examples/data/ships

Needs numpy and TileDB-Py (`pip install tiledb`; version 0.36 wrote the shipped array). The ships and their
routes are invented. Cells and timestamps are the same in each run. UUIDs and the time in the name of the
schema differ.

| time of writing  | what is written                                                              |
|------------------|------------------------------------------------------------------------------|
| 2024-03-02 00:00 | the positions of 16 ships in the North Sea                                   |
| 2024-03-03 00:00 | the same positions of two ships again, with other depths                     |
| 2024-03-04 00:00 | a delete: speeds above 50 knots, which are faults                            |
| 2024-03-05 00:00 | the positions of 4 ships in the Baltic Sea                                   |
"""

import math
import shutil
import sys

import numpy as np
import tiledb
from tiledb import Attr, Dim

# Each ship sails from the first place to the last and back: latitude and longitude in degrees.
NORTH_SEA = {
    "Aegir": [(60.42, 5.10), (59.90, 4.95), (59.20, 5.10), (58.95, 5.45)],
    "Balder": [(60.42, 5.00), (60.80, 3.60), (61.30, 2.20)],
    "Brage": [(58.95, 5.40), (57.80, 4.40), (56.50, 3.20)],
    "Dagny": [(57.15, -1.90), (57.70, 1.20), (58.40, 3.60), (58.95, 5.40)],
    "Eirin": [(57.15, -1.90), (58.60, -1.60), (60.10, -1.05)],
    "Frigg": [(62.45, 5.90), (61.90, 4.70), (61.00, 4.40), (60.42, 4.95)],
    "Gyda": [(57.62, 9.95), (57.90, 9.00), (58.10, 8.02)],
    "Heimdal": [(59.15, 10.60), (58.60, 10.50), (57.80, 10.75), (57.40, 10.70)],
    "Hod": [(57.62, 9.95), (57.80, 8.20), (57.90, 6.40), (58.90, 5.35)],
    "Idunn": [(55.48, 8.20), (55.60, 6.40), (55.20, 4.30), (54.90, 2.20)],
    "Jotun": [(53.58, 8.10), (54.20, 7.70), (54.90, 7.50), (55.80, 7.40)],
    "Oseberg": [(51.98, 3.90), (53.20, 4.20), (54.60, 4.30), (56.00, 4.60)],
    "Sleipner": [(58.37, 1.90), (58.50, 2.60), (58.30, 3.30)],
    "Tor": [(53.65, 0.40), (54.10, 1.60), (54.70, 2.40), (55.30, 2.30)],
    "Veslefrikk": [(60.30, 2.30), (60.70, 2.90), (60.90, 2.50), (60.60, 1.90)],
    "Yme": [(60.15, -1.00), (60.80, 0.60), (61.20, 2.10), (61.90, 3.90)],
}
BALTIC_SEA = {
    "Alva": [(59.35, 19.20), (59.45, 20.60), (59.70, 22.40), (60.05, 24.80)],
    "Birka": [(54.62, 18.70), (55.10, 17.60), (56.05, 15.70)],
    "Ebba": [(57.68, 18.20), (58.30, 18.10), (58.85, 17.98)],
    "Saga": [(59.50, 24.72), (59.80, 24.80), (60.10, 24.96)],
}
# Ships without an echo sounder.
NO_DEPTH = ["Dagny", "Gyda", "Saga"]
# Ships whose echo sounder counted from the keel at first.
CORRECTED = {"Balder": 6.5, "Frigg": 4.2}
STEPS = 144


def noise(*numbers):
    """A pseudo-random number in 0..1 that depends only on the arguments."""
    state = 0
    for number in numbers:
        state = (state ^ number) * 0x9E3779B97F4A7C15 % 2**64
        state = (state ^ (state >> 29)) * 0xBF58476D1CE4E5B9 % 2**64
    return (state >> 11) / 2**53


def nautical_miles(a, b):
    east = (b[1] - a[1]) * math.cos(math.radians((a[0] + b[0]) / 2))
    return 60 * math.hypot(b[0] - a[0], east)


def place(route, part):
    """The place after this part of a route, 0 to 1."""
    legs = [nautical_miles(a, b) for a, b in zip(route, route[1:])]
    left = part * sum(legs)
    for a, b, leg in zip(route, route[1:], legs):
        if left <= leg:
            return [a[i] + (b[i] - a[i]) * left / leg for i in (0, 1)]
        left -= leg
    return list(route[-1])


def depth_at(lat, lon):
    """Metres of water: a shelf that deepens to the north, and a trench along Norway."""
    shelf = 25 + 9 * max(lat - 53, 0)
    trench = 230 * math.exp(-(((lon - 4.2) / 1.1) ** 2)) * (1 / (1 + math.exp((58.5 - lat) * 2)))
    return shelf + trench if lon < 13 else 30 + 40 * math.exp(-(((lon - 19) / 2) ** 2))


def day(number, name, route):
    """The rows of one ship: latitude, longitude, ship, seconds since 1970, knots and metres."""
    start = np.datetime64("2024-03-01T00:00:00", "s").astype(int)
    phase, length = noise(number, 1), sum(nautical_miles(a, b) for a, b in zip(route, route[1:]))
    # Whole trips there and back, at about 8 to 20 knots.
    trips = max(1, round((8 + 7 * noise(number, 2)) * 24 / (2 * length)))
    rows, before = [], None
    for step in range(STEPS + 1):
        turn = (phase + trips * step / STEPS) % 1
        lat, lon = place(route, 1 - abs(2 * turn - 1))
        # A ship drifts off its route slowly.
        drift = [0.05 * math.sin(2 * math.pi * (1.7 * step / STEPS + noise(number, axis))) for axis in (3, 4)]
        at = (round(lat + drift[0], 4), round(lon + drift[1], 4))
        if before is not None:
            speed = round(nautical_miles(before, at) * 6, 1)
            if noise(number, step, 5) < 0.004:
                speed = 102.3  # "not available" in ship reports
            depth = depth_at(*before) + 4 * noise(number, step, 6)
            depth = None if name in NO_DEPTH else round(depth - CORRECTED.get(name, 0), 1)
            rows.append((*before, name, start + (step - 1) * 600, speed, depth))
        before = at
    return rows


def write(uri, timestamp, rows):
    """Writes one fragment, as of a time."""
    lat, lon, ship, seconds, speed, depth = (list(column) for column in zip(*rows))
    values = {
        "ship": np.array(ship, dtype="O"),
        "time": np.array(seconds, dtype="M8[s]"),
        "speed": np.array(speed, dtype="f4"),
        # TileDB-Py writes NaN into a nullable attribute as NULL.
        "depth": np.array([math.nan if it is None else it for it in depth], dtype="f4"),
    }
    with tiledb.open(uri, "w", timestamp=milliseconds(timestamp)) as array:
        array[np.array(lat), np.array(lon)] = values


def milliseconds(timestamp):
    return int(np.datetime64(timestamp, "ms").astype(int))


def main(uri):
    shutil.rmtree(uri, ignore_errors=True)
    zstd = tiledb.FilterList([tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(level=9)])
    text = tiledb.FilterList([tiledb.ZstdFilter(level=9)])
    domain = tiledb.Domain(
        Dim("lat", domain=(-90.0, 90.0), tile=1.0, dtype="f8", filters=zstd),
        Dim("lon", domain=(-180.0, 180.0), tile=2.0, dtype="f8", filters=zstd),
    )
    attributes = [
        Attr("ship", dtype="ascii", var=True, filters=text),
        Attr("time", dtype="M8[s]", filters=zstd),
        Attr("speed", dtype="f4", filters=zstd),
        Attr("depth", dtype="f4", nullable=True, filters=zstd),
    ]
    schema = tiledb.ArraySchema(domain, attributes, sparse=True, capacity=100)
    tiledb.Array.create(uri, schema)

    north = {name: day(number, name, route) for number, (name, route) in enumerate(NORTH_SEA.items())}
    baltic = {name: day(number, name, route) for number, (name, route) in enumerate(BALTIC_SEA.items(), 50)}
    rows = [row for ship in [*north.values(), *baltic.values()] for row in ship]
    assert len({row[:2] for row in rows}) == len(rows), "two ships at one place"

    write(uri, "2024-03-02", [row for ship in north.values() for row in ship])
    raised = [(*row[:5], round(row[5] + by, 1)) for name, by in CORRECTED.items() for row in north[name]]
    write(uri, "2024-03-03", raised)
    with tiledb.open(uri, "d", timestamp=milliseconds("2024-03-04")) as array:
        array.query(cond="speed > 50.0").submit()
    write(uri, "2024-03-05", [row for ship in baltic.values() for row in ship])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "examples/data/ships")
