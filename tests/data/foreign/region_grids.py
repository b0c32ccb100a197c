"""Grids of many kinds for `regions.py`: latitudes and longitudes, or the axes of a plane, with edges that are known."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

# The mean radius of the Earth in metres.
RADIUS = 6_371_008.8

# Longitudes of polygons and points go from -360 to 720, and those of grids from -180 to 360.
TURNS = range(-720, 721, 360)

# Instants in irregular steps.
TIMES = pd.to_datetime(["2024-01-01T00", "2024-01-01T06", "2024-01-01T07", "2024-01-02T00", "2024-01-05T12"])

# The attributes of coordinates by their names.
NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
COORDINATES = {"lat": NORTH, "latitude": NORTH, "lon": EAST, "longitude": EAST}
for name, way, units in (("y", "y", "m"), ("x", "x", "m"), ("northing", "y", "km"), ("easting", "x", "km")):
    COORDINATES[name] = {"units": units, "standard_name": f"projection_{way}_coordinate"}


@dataclass
class Axis:
    """Labels along a dimension, and the edges of their cells in the same order.

    `labels` are those of the file. `places` are the same in double precision, without jumps of longitudes, and without a
    last label that repeats the first.
    """

    name: str
    labels: np.ndarray
    places: np.ndarray
    edges: np.ndarray
    has_bounds: bool = False

    def __post_init__(self):
        self.lows, self.highs = np.sort([self.edges[:-1], self.edges[1:]], axis=0)
        self.ends = self.lows.min(), self.highs.max()
        self.is_circle = COORDINATES[self.name] is EAST and abs(np.ptp(self.edges) - 360) < 1e-9

    def extended(self):
        """Returns places and their indices. Those of a circle have one more at each end."""
        indices = np.arange(len(self.places))
        if not self.is_circle:
            return self.places, indices
        turn = np.copysign(360, self.places[1] - self.places[0])
        places = np.r_[self.places[-1] - turn, self.places, self.places[0] + turn]
        return places, np.r_[indices[-1], indices, 0]

    def index(self, labels):
        """Returns the indices of labels that are equal bit by bit; -1 for NULL, and -2 for a label of another axis."""
        missing = pd.isna(labels)
        known = pd.Index(self.labels[: len(self.places)])
        if labels.dtype != known.dtype:
            return np.where(missing, -1, -2)
        found = known.get_indexer(labels)
        return np.where(missing, -1, np.where(found < 0, -2, found))


@dataclass
class Grid:
    """A grid, the order of its variable's dimensions and the ending of its file."""

    name: str
    y: Axis
    x: Axis
    order: str = "tyx"
    suffix: str = ".nc"
    # exactextract takes regular grids only.
    is_regular: bool = False
    # The metres of a unit; `None` in degrees.
    metres: float | None = None

    def __post_init__(self):
        self.axes = [self.y, self.x]
        self.shape = len(self.y.places), len(self.x.places)
        self.cell_size = min(np.median(axis.highs - axis.lows) for axis in self.axes)
        self.turns = [0] if self.metres else TURNS
        self.is_globe = self.x.is_circle and self.y.ends == (-90, 90)
        # The square metres of each cell, in the order of the matrices below.
        heights, widths = (axis.highs - axis.lows for axis in self.axes)
        if self.metres is None:
            heights, widths = np.abs(np.diff(np.sin(np.deg2rad(self.y.edges)))), np.deg2rad(widths)
        self.areas = ((self.metres or RADIUS) ** 2 * np.outer(heights, widths)).ravel()

    def write(self, folder, random):
        """Writes the grid with a variable, a fifth of which is missing, and returns its path and `v (time, y, x)`."""
        v = 280 + 10 * random.standard_normal((len(TIMES), *self.shape))
        v[random.random(v.shape) < 0.2] = np.nan
        repeated = len(self.x.labels) - len(self.x.places)
        names = {"t": "time", "y": self.y.name, "x": self.x.name}
        data = xr.DataArray(np.concatenate([v, v[..., :repeated]], axis=-1), dims=list(names.values()))
        variables = {"v": data.transpose(*(names[letter] for letter in self.order)).variable}
        coordinates = {"time": TIMES}
        for axis in self.axes:
            attributes = dict(COORDINATES[axis.name])
            if axis.has_bounds:
                attributes["bounds"] = f"{axis.name}_bnds"
                variables[attributes["bounds"]] = ((axis.name, "nv"), np.c_[axis.edges[:-1], axis.edges[1:]])
            coordinates[axis.name] = (axis.name, axis.labels, attributes)
        path = folder / f"{self.name}{self.suffix}"
        data = xr.Dataset(variables, coordinates)
        if self.suffix == ".zarr":
            data.to_zarr(path, mode="w", consolidated=False)
        else:
            data.to_netcdf(path)
        return path, v


def spaced(name, labels, ends=(None, None), stored=None):
    """Returns an axis whose edges lie in the middle between labels. The outermost are `ends`, or as far as the next ones."""
    labels = np.asarray(labels)
    places = labels.astype("f8")
    outer = [places[0] + (places[0] - places[1]) / 2, places[-1] + (places[-1] - places[-2]) / 2]
    outer = [it if given is None else given for it, given in zip(outer, ends, strict=True)]
    edges = np.r_[outer[0], (places[:-1] + places[1:]) / 2, outer[1]]
    edges = edges.clip(-90, 90) if COORDINATES[name] is NORTH else edges
    return Axis(name, labels if stored is None else stored, places, edges)


def around(labels, name="lon", stored=None):
    """Returns an axis of longitudes around the globe."""
    first, last = float(labels[0]), float(labels[-1])
    turn = np.copysign(360, last - first)
    start = (first + last - turn) / 2
    return spaced(name, labels, (start, start + turn), stored)


def bounded(name, edges, random):
    """Returns an axis with bounds, whose labels are anywhere in the cells."""
    places = edges[:-1] + np.diff(edges) * random.uniform(0.1, 0.9, len(edges) - 1)
    return Axis(name, places, places, edges, has_bounds=True)


def steps(start, end, count, random):
    """Returns the ends of irregular steps from `start` to `end`."""
    lengths = random.uniform(0.5, 1.5, count)
    return start + (end - start) * np.r_[0, np.cumsum(lengths) / lengths.sum()]


def grids(random):
    zarr = {"suffix": ".zarr"}
    y, x = np.arange(89.0, -90, -2), np.arange(1.0, 360, 2)
    yield Grid("regular", spaced("lat", y), around(x), is_regular=True)
    y, x = np.arange(-88.75, 90, 2.5), np.arange(-178.75, 180, 2.5)
    yield Grid("ascending", spaced("latitude", y), around(x, "longitude"), "yxt", **zarr, is_regular=True)
    yield Grid("poles", spaced("lat", np.arange(90, -91, -2.5)), around(np.arange(0, 360, 2.5)), "xty", **zarr)
    x = np.arange(-180, 181, 5.0)
    yield Grid("repeating", spaced("lat", np.arange(-90, 91, 5.0)), around(x[:-1], stored=x))
    gaussian = np.rad2deg(np.arcsin(np.polynomial.legendre.leggauss(48)[0]))
    yield Grid("gaussian", spaced("lat", gaussian[::-1], (90, -90)), around(np.arange(0, 360, 3.75)))
    y, x = steps(-70, 80, 50, random), steps(-180, 180, 60, random)
    yield Grid("irregular", spaced("lat", y), around(x[:-1]), "txy", **zarr)
    y, x = steps(71, 30, 45, random), steps(-20, 45, 40, random)
    yield Grid("bounds", bounded("lat", y, random), bounded("lon", x, random))
    y, x = steps(-90, 90, 30, random), steps(0, 360, 40, random)
    yield Grid("bounds_around", bounded("lat", y, random), bounded("lon", x, random), "xty", **zarr)
    y, x = np.arange(60, -61, -1.25), np.arange(160, 200, 1.25)
    stored = np.where(x >= 180, x - 360, x)
    yield Grid("date_line", spaced("lat", y), spaced("lon", x, stored=stored), is_regular=True)
    y, x = (np.arange(450, 650) * 0.1).astype("f4"), (np.arange(-250, 250) * 0.1).astype("f4")
    yield Grid("single", spaced("lat", y), spaced("lon", x))
    y, x = (np.arange(-897, 900, 12) * 0.1).astype("f4"), (np.arange(0, 3600, 12) * 0.1).astype("f4")
    yield Grid("single_around", spaced("lat", y), around(x), **zarr)
    x = np.arange(40.0, -320, -4)
    yield Grid("falling", spaced("lat", np.arange(30, 80, 1.0)), around(x, stored=x % 360))
    y, x = np.arange(-50, -20, 0.75), np.arange(30.25, -20, -0.75)
    yield Grid("falling_region", spaced("lat", y), spaced("lon", x), **zarr)
    yield Grid("coarse", spaced("lat", [60.0, 0, -60]), around([0.0, 90, 180, 270]), is_regular=True)
    y, x = np.arange(5_400_000.0, 900_000, -50_000), np.arange(2_500_000.0, 7_000_000, 50_000)
    yield Grid("metres", spaced("y", y), spaced("x", x), is_regular=True, metres=1)
    y, x = steps(-900, 800, 40, random), steps(1000, -700, 50, random)
    yield Grid("kilometres", bounded("northing", y, random), spaced("easting", x), "xyt", **zarr, metres=1000)
