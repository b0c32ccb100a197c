"""Compares the cells of polygons and of points with those of exactextract, shapely and xarray.

    python3 tests/data/foreign/regions.py PROGRAM FOLDER [--seed 1]

FOLDER gets grids of many kinds with a random variable `v`, random polygons and random points. The program answers with
`grid_coverage` and `grid_points`, and with joins of their cells with `v`:

    coverage    the part of each cell that is inside, by exactextract and shapely; areas on the sphere and on planes
    rules       the cells of `centre` and `touched`, by predicates of shapely
    means       weighted means, sums, extremes and counts of each polygon and time, by numpy
    points      the nearest labels and linear interpolation, by xarray; curvilinear grids, by distances to all cells
    forms       the same polygons as GeoJSON, GeoParquet, WKB and text have identical cells

Fails if an answer differs.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import shapely  # noqa: E402
import xarray as xr  # noqa: E402
from exactextract import exact_extract  # noqa: E402
from exactextract.raster import NumPyRasterSource  # noqa: E402

from compare_tables import answers, quoted  # noqa: E402
from coverage_exactextract import star  # noqa: E402
from region_grids import EAST, NORTH, RADIUS, TIMES, around, grids  # noqa: E402

# The greatest differences of fractions. exactextract keeps them in single precision.
BY_SHAPELY, BY_EXACTEXTRACT = 1e-9, 2e-7

POLYGONS, POINTS = 40, 4000

# The grids whose polygons are also asked for in other forms.
FORMED = ("gaussian", "metres")


# ---------------------------------------------------------------------------------------------------- polygons


def polygons(grid, random):
    """Returns valid polygons of all kinds, also beyond the grid, and in any turn of longitudes."""
    is_geographic = grid.metres is None
    limits = shapely.box(-360, -90, 720, 90) if is_geographic else shapely.box(-1e9, -1e9, 1e9, 1e9)
    shapes = []
    while len(shapes) < POLYGONS:
        shape = polygon(KINDS[len(shapes) % len(KINDS)], grid, random)
        if is_geographic:
            shape = moved(shape, random.choice([-360, 0, 0, 360]))
        if not shape.within(limits):
            shape = shape.intersection(limits)
        is_wide = is_geographic and shape.bounds[2] - shape.bounds[0] > 360
        if "Polygon" in shape.geom_type and not shape.is_empty and shape.is_valid and not is_wide:
            shapes.append(shape)
    return shapes


def moved(shape, x, y=0):
    return shapely.transform(shape, lambda it: it + [x, y])


KINDS = ("concave", "holed", "several", "tiny", "sliver", "aligned", "cornered", "seam", "whole", "beyond")


def polygon(kind, grid, random):
    (south, north), (west, east) = grid.y.ends, grid.x.ends
    place = [random.uniform(*axis.ends) for axis in grid.axes]

    def ring(least, most, place=place):
        """Returns a concave polygon, whose radius is a random number of cells."""
        size = grid.cell_size * np.exp(random.uniform(np.log(least), np.log(most)))
        size = min(size, min(np.ptp(axis.edges) for axis in grid.axes) / 3 if grid.metres else 40)
        return shapely.Polygon(star(random, *place[::-1], (size * 0.4, size), random.integers(5, 200)))

    match kind:
        case "concave":
            return ring(0.3, 15)
        case "holed":
            # The hole has an island.
            return ring(8, 8).difference(ring(3, 3).difference(ring(0.3, 0.3)))
        case "several":
            return shapely.union_all([ring(0.3, 4, place + random.uniform(0, 8, 2) * grid.cell_size) for _ in range(3)])
        case "tiny":
            return ring(0.01, 0.3)
        case "sliver":
            line = np.array([(0, 0), (1, 0.5), (0.5, 0.25 * (1 + 1e-5))])
            return shapely.Polygon(place[::-1] + line * grid.cell_size * random.uniform(0.5, 5))
        case "aligned":
            # Two boxes whose edges are those of cells.
            pairs = [[np.sort(random.choice(axis.edges, 2, False)) for axis in grid.axes] for _ in range(2)]
            return shapely.union_all([shapely.box(*x[:1], *y[:1], *x[1:], *y[1:]) for y, x in pairs])
        case "cornered":
            # A triangle between corners of cells.
            return shapely.Polygon(np.c_[random.choice(grid.x.edges, 3, False), random.choice(grid.y.edges, 3, False)])
        case "seam":
            # Across an outer edge of the grid.
            way = random.integers(2)
            place[way] = random.choice(grid.axes[way].ends)
            return ring(0.3, 15)
        case "whole" if grid.x.is_circle:
            start = round(random.uniform(-180, 180), 3)
            return shapely.box(start, -90, start + 360, 90)
        case "whole":
            return shapely.box(west, south, east, north).buffer(grid.cell_size * random.uniform(0, 2), join_style="mitre")
        case "beyond":
            # North of the grid, or at a pole.
            shape = ring(0.5, 3, [north, place[1]])
            height = north - shape.bounds[1]
            return moved(shape, 0, height) if grid.metres or north + height < 90 else shape


def fractions(grid, shapes):
    """Returns the part of each cell that is inside, by shapely: a row per polygon."""
    parts = np.zeros((len(shapes), *grid.shape))
    for part, shape in zip(parts, shapes, strict=True):
        for turn in grid.turns:
            here = moved(shape, turn)
            west, south, east, north = here.bounds
            rows = np.flatnonzero((grid.y.lows < north) & (grid.y.highs > south))
            columns = np.flatnonzero((grid.x.lows < east) & (grid.x.highs > west))
            row, column = np.meshgrid(rows, columns, indexing="ij")
            boxes = shapely.box(grid.x.lows[column], grid.y.lows[row], grid.x.highs[column], grid.y.highs[row])
            shapely.prepare(here)
            is_inside = shapely.covers(here, boxes)
            inside = is_inside.astype("f8")
            is_crossed = shapely.intersects(here, boxes) & ~is_inside
            crossed = boxes[is_crossed]
            inside[is_crossed] = shapely.area(shapely.intersection(here, crossed)) / shapely.area(crossed)
            part[row, column] += inside
    return parts.reshape(len(shapes), -1)


def fractions_of_exactextract(grid, shapes):
    """Returns the part of each cell that is inside, by exactextract: a row per polygon."""
    (south, north), (west, east) = grid.y.ends, grid.x.ends
    source = NumPyRasterSource(np.zeros(grid.shape), west, south, east, north)
    box = shapely.box(west, south, east, north)
    turned = [(number, moved(shape, turn)) for number, shape in enumerate(shapes) for turn in grid.turns]
    turned = [it for it in turned if it[1].intersects(box)]
    features = [{"type": "Feature", "geometry": shapely.geometry.mapping(shape)} for _, shape in turned]
    parts = np.zeros((len(shapes), *grid.shape))
    for (number, _), answer in zip(turned, exact_extract(source, features, ["cell_id", "coverage"]), strict=True):
        parts[number].flat[answer["properties"]["cell_id"]] += answer["properties"]["coverage"]
    # exactextract's rows begin in the north.
    is_ascending = grid.y.edges[0] < grid.y.edges[-1]
    return (parts[:, ::-1] if is_ascending else parts).reshape(len(shapes), -1)


def centres(grid, shapes):
    """Returns which labels are inside, and which are too near an edge to tell: a row per polygon.

    A label at an edge of its cell, such as a pole, stands for the middle.
    """
    places = []
    for axis in grid.axes:
        is_within = (axis.lows < axis.places) & (axis.places < axis.highs)
        places.append(np.where(is_within, axis.places, (axis.lows + axis.highs) / 2))
    y, x = (it.ravel() for it in np.meshgrid(*places, indexing="ij"))
    inside, near = np.zeros((2, len(shapes), y.size), bool)
    points = shapely.points(x, y)
    for number, shape in enumerate(shapes):
        for turn in grid.turns:
            here = moved(shape, turn)
            shapely.prepare(here)
            inside[number] |= shapely.contains_properly(here, points)
            near[number] |= shapely.dwithin(here.boundary, points, 1e-9 * grid.cell_size)
    return inside, near


def points(grid, random):
    """Returns points in and around a grid, of any turn of longitudes, some at labels, and times around those of `v`."""
    coordinates = []
    for axis in grid.axes:
        margin = 0.05 * np.ptp(axis.edges)
        found = random.uniform(axis.ends[0] - margin, axis.ends[1] + margin, POINTS)
        coordinates.append(np.where(np.arange(POINTS) % 20 == 0, random.choice(axis.places, POINTS), found))
    y, x = coordinates
    if grid.metres is None:
        x += random.choice([-360, 0, 0, 360, 720], POINTS)
    y[::101], x[::103] = np.nan, np.nan
    # Never in the middle between two of `TIMES`.
    seconds = random.integers(-86_400, 6 * 86_400, POINTS) + 0.5
    times = TIMES[0].to_datetime64() + (seconds * 1e6).astype("timedelta64[us]")
    names = ("y", "x") if grid.metres else ("lat", "lon")
    return {"id": np.arange(POINTS), names[0]: y, names[1]: x, "time": times.astype("datetime64[us]")}


class Selected:
    """The cells of points that xarray selects, and the values that it interpolates. Beyond the grid, they are NaN."""

    def __init__(self, grid, v, points):
        _, y, x, times = points.values()
        if grid.metres is None:
            x = np.where((x < -360) | (x > 720), np.nan, x - 360 * np.floor((x - grid.x.ends[0]) / 360))
        outside, near, between = np.zeros(POINTS, bool), np.zeros(POINTS, bool), np.ones(POINTS, bool)
        extended = [axis.extended() for axis in grid.axes]
        for at, axis, (places, _) in zip((y, x), grid.axes, extended, strict=True):
            outside |= ~((at >= axis.ends[0]) & (at <= axis.ends[1]))
            edges = np.r_[(places[1:] + places[:-1]) / 2, [] if axis.is_circle else axis.ends]
            near |= np.abs(at[:, None] - edges).min(axis=1) < 1e-9 * grid.cell_size
            # At a label, xarray needs the neighbours, too.
            between &= (at > places.min()) & (at < places.max()) & ~np.isin(at, places)
        # Tolerances: some points are too near an edge to tell, and others have no cells on all sides.
        self.of_cells = np.where(near, np.inf, 0)
        self.of_linear = np.where(between | outside, 1e-12, np.inf)
        (places_y, rows), (places_x, columns) = extended
        variables = {"v": (("time", "y", "x"), v[:, rows][:, :, columns]), "row": ("y", rows), "column": ("x", columns)}
        data = xr.Dataset(variables, {"time": TIMES, "y": places_y, "x": places_x})
        y, x = (np.where(outside, axis.places[0], it) for it, axis in ((y, grid.y), (x, grid.x)))
        wanted = {"y": xr.DataArray(y, dims="point"), "x": xr.DataArray(x, dims="point")}
        found = data.sel(wanted, method="nearest")
        self.row, self.column = np.where(outside, -1, found["row"]), np.where(outside, -1, found["column"])
        labels = grid.y.places[found["row"]], grid.x.places[found["column"]]
        distance = haversine(y, x, *labels) if grid.metres is None else grid.metres * np.hypot(y - labels[0], x - labels[1])
        self.distance = np.where(outside, np.nan, distance)
        first, times = TIMES[0].to_datetime64(), xr.DataArray(times, dims="point")
        self.time = xr.DataArray(np.arange(len(TIMES)), {"time": TIMES}).sel(time=times, method="nearest").values
        self.nearest = np.where(outside, np.nan, found["v"].sel(time=times, method="nearest"))
        linear = data["v"].interp(wanted).sel(time=np.maximum(times, first), method="ffill")
        self.linear = np.where(outside | (times.values < first), np.nan, linear)


def haversine(lat1, lon1, lat2, lon2):
    """Returns distances in metres."""
    lat1, lon1, lat2, lon2 = map(np.deg2rad, (lat1, lon1, lat2, lon2))
    part = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * RADIUS * np.arcsin(np.sqrt(part.clip(0, 1)))


class Report:
    """Counts of comparisons, and the first differences."""

    def __init__(self):
        self.counts, self.wrong = Counter(), Counter()

    def compare(self, subject, of, found, wanted, tolerance, place):
        """Compares numbers, where NaN stands for NULL. `place` names an index in messages."""
        found, wanted, tolerance = np.broadcast_arrays(np.asarray(found, "f8"), wanted, tolerance)
        is_same = (np.abs(found - wanted) <= tolerance) | (np.isnan(found) & np.isnan(wanted)) | np.isinf(tolerance)
        self.counts[subject] += int(np.isfinite(tolerance).sum())
        for index in map(tuple, np.argwhere(~is_same)):
            self.wrong[subject] += 1
            if self.wrong[subject] <= 5:
                numbers = f"{float(found[index])!r}, expected {float(wanted[index])!r}"
                print(f"WRONG: {subject}, {of}: {numbers}, {place(*index)}")


def shortened(shape):
    text = shapely.to_wkt(shape, rounding_precision=17)
    return text if len(text) < 300 else f"{text[:300]}… ({len(text)} characters)"


class Case:
    """A grid with its files, and the statements that ask for its cells."""

    def __init__(self, folder, grid, random):
        self.folder, self.grid = folder, grid
        self.path, self.v = grid.write(folder, random)
        self.shapes, self.points = polygons(grid, random), points(grid, random)
        self.y, self.x = grid.y.name, grid.x.name
        self.write_wkb("polygons")
        self.forms = list(self.write_forms()) if grid.name in FORMED else []
        pq.write_table(pa.table(self.points), self.file("points"))

    def file(self, name):
        return self.folder / f"{self.grid.name}_{name}.parquet"

    def write_wkb(self, name, column="geometry", byte_order=1, metadata=None, **columns):
        wkb = pa.array(shapely.to_wkb(self.shapes, byte_order=byte_order), pa.binary())
        table = pa.table({"id": np.arange(POLYGONS), **columns, column: wkb})
        pq.write_table(table.replace_schema_metadata(metadata), self.file(name))

    def cells(self, function, rows, options=""):
        return f"{function}({text_of(self.path)}, {text_of(rows)}, dataset => 'v'{options})"

    def coverage(self, rows, options=""):
        return f"SELECT id, {self.y}, {self.x}, coverage, area_m2 FROM {self.cells('grid_coverage', rows, options)}"

    def statements(self):
        """Yields the name of each result and its query."""
        shapes, points = self.file("polygons"), self.file("points")
        y, x, array = self.y, self.x, f"read_array({text_of(self.path)}, 'v')"
        for name, rule in (("coverage", ""), ("centre", ", rule => 'centre'"), ("touched", ", rule => 'touched'")):
            yield name, self.coverage(shapes, rule)
        yield (
            "means",
            "SELECT p.id, a.time, weighted_avg(a.value, p.coverage) AS mean, weighted_avg(a.value, p.area_m2) AS mean_by_area, "
            "sum(a.value * p.coverage) AS weighted_sum, sum(a.value) AS sum, avg(a.value) AS avg, min(a.value) AS min, "
            f"max(a.value) AS max, count(a.value) AS count FROM {self.cells('grid_coverage', shapes)} p "
            f"JOIN {array} a ON a.{y} = p.{y} AND a.{x} = p.{x} GROUP BY p.id, a.time",
        )
        join = f"JOIN {array} a ON a.time = p.cell_time AND a.{y} = p.cell_{y} AND a.{x} = p.cell_{x}"
        yield (
            "nearest",
            f"SELECT p.id, p.cell_time, p.cell_{y}, p.cell_{x}, p.distance_m, a.value "
            f"FROM {self.cells('grid_points', points)} p LEFT {join}",
        )
        linear = self.cells("grid_points", points, ", method => 'linear', time_method => 'last'")
        yield (
            "linear",
            f"SELECT p.id, weighted_avg(a.value, p.weight) AS value, sum(p.weight) AS weight FROM {linear} p {join} "
            "GROUP BY p.id HAVING count(a.value) = count(*)",
        )
        for form, path, options in self.forms:
            yield form, self.coverage(path, options)

    def write_forms(self):
        """Writes the polygons in all forms, and yields the name and the file of each, and the options that it needs."""
        geometries = [shapely.geometry.mapping(shape) for shape in self.shapes]
        features = [{"type": "Feature", "properties": {"id": at}, "geometry": it} for at, it in enumerate(geometries)]
        collection = {"type": "FeatureCollection", "features": features}
        outline = {"encoding": "WKB", "geometry_types": []}
        if self.grid.metres:
            collection["crs"] = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3035"}}
            outline["crs"] = {"type": "ProjectedCRS", "name": "LAEA", "id": {"authority": "EPSG", "code": 3035}}
        path = self.folder / f"{self.grid.name}.geojson"
        path.write_text(json.dumps(collection))
        yield "geojson", path, ""
        geo = json.dumps({"version": "1.1.0", "primary_column": "outline", "columns": {"outline": outline}})
        # Only the metadata name the column: another one has bytes, and another one a usual name.
        others = {"code": pa.array([b"x"] * POLYGONS), "geometry": pa.array(["x"] * POLYGONS)}
        self.write_wkb("geo", "outline", metadata={"geo": geo}, **others)
        yield "geoparquet", self.file("geo"), ""
        self.write_wkb("big", "shape", byte_order=0)
        yield "big_endian", self.file("big"), ""
        wkt = [shapely.to_wkt(it, rounding_precision=25) for it in self.shapes]
        texts = {"wkt": wkt, "json": [json.dumps(it) for it in geometries]}
        pq.write_table(pa.table({"id": np.arange(POLYGONS), **texts}), self.file("texts"))
        yield "wkt", self.file("texts"), ""
        yield "geojson_text", self.file("texts"), ", geometry => 'json'"

    def polygon(self, number, cell):
        row, column = divmod(int(cell), self.grid.shape[1])
        labels = f"{self.y} {self.grid.y.labels[row]}, {self.x} {self.grid.x.labels[column]}"
        return f"{labels}, {shortened(self.shapes[number])}"

    def matrix(self, report, name, measure="coverage"):
        """Returns a measure of each cell, a row per polygon. A cell that occurs twice has the sum."""
        rows = pd.read_parquet(self.file(name))
        row, column = self.grid.y.index(rows[self.y]), self.grid.x.index(rows[self.x])
        is_known = (row >= 0) & (column >= 0)
        is_right = is_known & (rows[measure] > 0)
        report.compare("rows", f"{self.grid.name} ({name})", is_right, 1, 0, lambda at: dict(rows.iloc[at]))
        found = np.zeros((POLYGONS, *self.grid.shape))
        np.add.at(found, (rows["id"][is_known], row[is_known], column[is_known]), rows[measure][is_known])
        return found.reshape(POLYGONS, -1)

    def check(self, report):
        self.check_points(report)
        grid, name, shapes = self.grid, self.grid.name, self.shapes
        found, wanted = self.matrix(report, "coverage"), fractions(grid, shapes)
        report.compare("coverage by shapely", name, found, wanted, BY_SHAPELY, self.polygon)
        self.check_means(report, "means by shapely", found > 0, wanted, 1e-12)
        if grid.is_regular:
            other = fractions_of_exactextract(grid, shapes)
            report.compare("coverage by exactextract", name, found, other, BY_EXACTEXTRACT, self.polygon)
            self.check_means(report, "means by exactextract", found > 0, other, BY_EXACTEXTRACT)
        area = self.matrix(report, "coverage", "area_m2")
        report.compare("areas", name, area, found * grid.areas, 1e-12 * grid.areas, self.polygon)
        if grid.is_globe:
            is_whole, sphere = wanted.min(axis=1) == 1, 4 * np.pi * RADIUS**2
            report.compare("areas of the globe", name, area[is_whole].sum(axis=1), sphere, 1e-12 * sphere, str)
        is_rounding = (wanted > 0) & (wanted <= BY_SHAPELY)
        touched = self.matrix(report, "touched")
        report.compare("rule touched", name, touched, wanted > 0, np.where(is_rounding, np.inf, 0), self.polygon)
        inside, near = centres(grid, shapes)
        centre = self.matrix(report, "centre")
        report.compare("rule centre", name, centre, inside, np.where(near, np.inf, 0), self.polygon)
        for form, _, _ in self.forms:
            for measure, same in (("coverage", found), ("area_m2", area)):
                report.compare("forms", f"{name} ({form})", self.matrix(report, form, measure), same, 0, self.polygon)

    def check_means(self, report, subject, is_covered, weights, tolerance):
        """Compares the answers by polygon and time. Without a row or a value, they are NaN."""
        rows = pd.read_parquet(self.file("means"))
        v = self.v.reshape(len(TIMES), -1)
        values, present = np.nan_to_num(v), (~np.isnan(v)).astype("f8")
        cells, areas, total = is_covered.astype("f8"), weights * self.grid.areas, weights @ present.T
        count = np.where(is_covered.any(axis=1)[:, None], cells @ present.T, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            wanted = {
                "mean": weights @ values.T / total,
                "mean_by_area": areas @ values.T / (areas @ present.T),
                "weighted_sum": weights @ values.T,
                "sum": cells @ values.T,
                "avg": cells @ values.T / count,
            }
        # The weights of small polygons are differences of nearly equal coordinates.
        tolerances = {it: np.abs(wanted[it]) * tolerance / total.clip(1e-300, 1) for it in wanted}
        wanted = {it: np.where(count > 0, wanted[it], np.nan) for it in wanted} | {"count": count}
        for name, extreme in (("min", np.fmin), ("max", np.fmax)):
            wanted[name] = np.array([[extreme.reduce(it[cells], initial=np.nan) for it in v] for cells in is_covered])
        for name, numbers in wanted.items():
            found = np.full(count.shape, np.nan)
            found[rows["id"], pd.Index(TIMES).get_indexer(rows["time"])] = rows[name]
            of, slack = f"{self.grid.name} ({name})", tolerances.get(name, 0)
            report.compare(subject, of, found, numbers, slack, lambda at, time: f"{TIMES[time]}, {shortened(self.shapes[at])}")

    def check_points(self, report):
        grid, name, selected = self.grid, self.grid.name, Selected(self.grid, self.v, self.points)

        def compare(subject, found, wanted, tolerance):
            report.compare(subject, name, found, wanted, tolerance, lambda at: point_text(self.points, at))

        rows, count = rows_by_point(self.file("nearest"))
        compare("points", count, 1, 0)
        compare("nearest cells", grid.y.index(rows[f"cell_{self.y}"]), selected.row, selected.of_cells)
        compare("nearest cells", grid.x.index(rows[f"cell_{self.x}"]), selected.column, selected.of_cells)
        compare("nearest times", pd.Index(TIMES).get_indexer(rows["cell_time"]), selected.time, 0)
        compare("nearest values", rows["value"], selected.nearest, selected.of_cells)
        compare("distances", rows["distance_m"], selected.distance, selected.of_cells + 1e-6)
        rows, count = rows_by_point(self.file("linear"))
        compare("points", count > 1, 0, 0)
        compare("linear", rows["value"], selected.linear, 280 * selected.of_linear)
        compare("weights", rows["weight"], np.where(np.isnan(selected.linear), np.nan, 1), selected.of_linear)


def rows_by_point(path):
    """Returns a row per point, with NULL for a point without one, and how many rows each point has."""
    rows = pd.read_parquet(path)
    return rows.drop_duplicates("id").set_index("id").reindex(np.arange(POINTS)), np.bincount(rows["id"], minlength=POINTS)


def point_text(points, at):
    return ", ".join(f"{name} {values[at]}" for name, values in points.items())


class Curve:
    """A curvilinear grid around a place, with a latitude and a longitude per cell, and points."""

    def __init__(self, folder, name, centre, has_labels, random):
        self.name, self.path = name, folder / f"{name}.nc"
        self.rows, self.answer = (folder / f"{name}_{it}.parquet" for it in ("points", "nearest"))
        y, x = np.arange(-27, 28, 1.5), np.arange(30, -31, -1.2)
        self.lat, self.lon = places_around(centre, *np.meshgrid(y, x, indexing="ij"))
        coordinates = {"lat": (("y", "x"), self.lat, NORTH), "lon": (("y", "x"), self.lon, EAST)}
        self.labels = (y, x) if has_labels else (np.arange(len(y)), np.arange(len(x)))
        labels = {"y": y, "x": x} if has_labels else {}
        xr.Dataset({"v": (("y", "x"), self.lat)}, coordinates | labels).to_netcdf(self.path)
        # Half of the points are well inside, and the others beyond the border by many cells.
        half = POINTS // 2
        inside = places_around(centre, random.uniform(-25, 25, half), random.uniform(-28, 28, half))
        angle, distance = random.uniform(0, 2 * np.pi, half), random.uniform(60, 180, half)
        outside = places_around(centre, distance * np.sin(angle), distance * np.cos(angle))
        lat, lon = np.concatenate([inside, outside], axis=1)
        self.points = {"id": np.arange(POINTS), "lat": lat, "lon": lon + random.choice([0, 360], POINTS)}
        pq.write_table(pa.table(self.points), self.rows)

    def statement(self):
        cells = f"grid_points({text_of(self.path)}, {text_of(self.rows)}, dataset => 'v')"
        return f"SELECT id, cell_y, cell_x, distance_m FROM {cells}"

    def check(self, report):
        rows, count = rows_by_point(self.answer)
        report.compare("points", self.name, count, 1, 0, lambda at: point_text(self.points, at))
        lat, lon = (self.points[it][: POINTS // 2, None] for it in ("lat", "lon"))
        distances = haversine(lat, lon, self.lat.ravel(), self.lon.ravel())
        first, second = np.partition(distances, 1, axis=1)[:, :2].T
        cells = np.unravel_index(distances.argmin(axis=1), self.lat.shape)
        missing = np.full(POINTS - len(lat), np.nan)
        slack = np.r_[np.where(second - first < 1e-3, np.inf, 0), np.zeros(len(missing))]
        wanted = {f"cell_{it}": labels[at] for it, labels, at in zip("yx", self.labels, cells, strict=True)}
        for column, inside in (wanted | {"distance_m": first}).items():
            near = 1e-4 if column == "distance_m" else slack
            of, numbers = f"{self.name} ({column})", np.r_[inside, missing]
            report.compare("curvilinear cells", of, rows[column], numbers, near, lambda at: point_text(self.points, at))


def places_around(centre, y, x):
    """Returns the latitudes and longitudes of places, whose distances north and east of the centre are in degrees of arc."""
    away = np.deg2rad(np.hypot(y, x))
    north, east = y / np.rad2deg(away), x / np.rad2deg(away)
    lat, lon = np.deg2rad(centre)
    height = np.cos(away) * np.sin(lat) + north * np.sin(away) * np.cos(lat)
    turn = np.arctan2(east * np.sin(away), np.cos(lat) * np.cos(away) - north * np.sin(lat) * np.sin(away))
    return np.rad2deg(np.arcsin(height.clip(-1, 1))), (np.rad2deg(lon + turn) + 180) % 360 - 180


# --------------------------------------------------------------------------------------------------------- main


def text_of(path):
    return quoted(str(path), "'")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = time.time()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(arguments.seed)
    cases = [Case(folder, grid, random) for grid in grids(random)]
    curves = [
        Curve(folder, "around_pole", (90, 0), False, random),
        Curve(folder, "across_date_line", (-50, 178), True, random),
    ]
    queries = {case.file(name): sql for case in cases for name, sql in case.statements()}
    queries |= {curve.answer: curve.statement() for curve in curves}
    statements = [f"COPY ({sql}) TO {text_of(path)}" for path, sql in queries.items()]
    asked = time.time()
    outcomes = zip(answers(arguments.program, statements), statements, strict=True)
    failed = [f"WRONG: {outcome}\n  {sql}" for outcome, sql in outcomes if isinstance(outcome, str)]
    answered = time.time()
    if failed:
        sys.exit("\n".join(failed))
    report = Report()
    for it in [*cases, *curves]:
        it.check(report)
    print("compared:", ", ".join(f"{subject} {count}" for subject, count in report.counts.items()))
    print(
        f"{len(cases) + len(curves)} grids, {len(cases) * POLYGONS} polygons, {len(statements)} queries in "
        f"{answered - asked:.0f} s; {time.time() - began:.0f} s in total"
    )
    if report.wrong:
        sys.exit(f"WRONG: {dict(report.wrong)}")


if __name__ == "__main__":
    main()
