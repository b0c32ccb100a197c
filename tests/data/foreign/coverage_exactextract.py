"""Coverage of grid cells by polygons, computed by exactextract and by shapely.

    python coverage_exactextract.py make FILE [SEED [COUNT]]  a regular grid and random polygons
    python coverage_exactextract.py cover FILE                their coverage by exactextract, to the standard output
    python coverage_exactextract.py check FILE COVERAGE       compares another program's coverage with both

FILE is {"lat": [...], "lon": [...], "polygons": [GeoJSON geometries]}. Coverage is a list per polygon of
[row, column, fraction]. `cargo run --release -p gridfusion-spatial --example coverage -- FILE` writes it as well.
"""

import json
import sys

import numpy as np
import shapely
from exactextract import exact_extract
from exactextract.raster import NumPyRasterSource

TURNS = (-360, 0, 360)


def star(rng, x, y, size, points):
    """A concave ring, whose points are `size[0]` to `size[1]` away from the centre."""
    angles = (np.arange(points) + rng.uniform(0, 0.9, points)) * 2 * np.pi / points
    radii = rng.uniform(*size, points)
    ring = np.c_[x + radii * np.cos(angles), y + radii * np.sin(angles)][:: rng.choice([-1, 1])]
    return np.vstack([ring, ring[:1]]).tolist()


def polygon(rng):
    """A polygon, a sliver or several polygons, with holes and islands in these, in some turn of longitudes."""
    size = 10 ** rng.uniform(-3, 1.3)
    x, y = rng.uniform(-185, 365), rng.uniform(-65, 65)
    if rng.random() < 0.1:
        ring = [[x, y], [x + size, y + size / 2], [x + size / 2, y + size / 4 * (1 + 1e-6)], [x, y]]
        return {"type": "Polygon", "coordinates": [ring]}
    parts = []
    for part in range(rng.integers(1, 4)):
        x_of_part = x + 2 * size * part
        rings = [star(rng, x_of_part, y, (size * 0.5, size), rng.integers(5, 400))]
        if rng.random() < 0.5:
            rings.append(star(rng, x_of_part, y, (size * 0.2, size * 0.3), rng.integers(7, 20)))
            parts.append([star(rng, x_of_part, y, (size * 0.01, size * 0.1), 4)])
        parts.append(rings)
    return {"type": "MultiPolygon", "coordinates": parts}


def make(file, seed=1, count=300):
    rng = np.random.default_rng(int(seed))
    step = rng.choice([0.25, 0.5, 1.0, 2.5])
    lat = np.arange(-90 + step / 2, 90, step)[:: rng.choice([-1, 1])]
    lon = rng.choice([-180, 0]) + step * (np.arange(round(360 / step)) + 0.5)
    request = {"lat": lat.tolist(), "lon": lon.tolist(), "polygons": [polygon(rng) for _ in range(int(count))]}
    with open(file, "w") as out:
        json.dump(request, out)


def edges(labels):
    """The edges of a regular axis."""
    step = np.diff(labels)
    assert np.allclose(step, step[0]), "exactextract needs a regular grid"
    return np.r_[labels[0] - step[0] / 2, np.asarray(labels) + step[0] / 2]


def cover(request):
    lat, lon = edges(request["lat"]), edges(request["lon"])
    grid = NumPyRasterSource(np.zeros((len(lat) - 1, len(lon) - 1)), xmin=lon[0], xmax=lon[-1], ymin=min(lat), ymax=max(lat))
    coverage = []
    for geometry in request["polygons"]:
        cells = {}
        # exactextract knows one turn of longitudes.
        for turn in TURNS:
            moved = shapely.transform(shapely.from_geojson(json.dumps(geometry)), lambda it: it + [turn, 0])
            if moved.bounds[2] <= lon[0] or moved.bounds[0] >= lon[-1]:
                continue
            feature = {"type": "Feature", "properties": {}, "geometry": json.loads(shapely.to_geojson(moved))}
            found = exact_extract(grid, feature, ["cell_id", "coverage"])[0]["properties"]
            for cell, fraction in zip(found["cell_id"], found["coverage"]):
                row, column = divmod(int(cell), len(lon) - 1)
                # exactextract's rows begin in the north.
                row = row if lat[0] > lat[-1] else len(lat) - 2 - row
                cells[row, column] = cells.get((row, column), 0.0) + float(fraction)
        coverage.append([[row, column, fraction] for (row, column), fraction in sorted(cells.items())])
    return coverage


def by_shapely(request, geometry, cells):
    """The coverage of some cells, by clipping."""
    lat, lon = edges(request["lat"]), edges(request["lon"])
    shape = shapely.from_geojson(json.dumps(geometry))
    fractions = []
    for row, column in cells:
        (south, north), (west, east) = sorted(lat[row : row + 2]), sorted(lon[column : column + 2])
        boxes = [shapely.box(west + turn, south, east + turn, north) for turn in TURNS]
        area = sum(shapely.intersection(shape, box).area for box in boxes)
        fractions.append(area / ((north - south) * (east - west)))
    return np.array(fractions)


def check(request, ours):
    rng = np.random.default_rng(0)
    worst = {"exactextract": 0.0, "shapely": 0.0}
    count = 0
    assert len(ours) == len(request["polygons"])
    for number, (geometry, mine, theirs) in enumerate(zip(request["polygons"], ours, cover(request))):
        mine, theirs = ({(row, column): part for row, column, part in it} for it in (mine, theirs))
        cells = sorted(mine | theirs)
        count += len(cells)
        found = np.array([mine.get(it, 0.0) for it in cells])
        expected = np.array([theirs.get(it, 0.0) for it in cells])
        worst["exactextract"] = max(worst["exactextract"], np.abs(found - expected).max(initial=0))
        some = rng.permutation(len(cells))[:50]
        expected = by_shapely(request, geometry, [cells[it] for it in some])
        worst["shapely"] = max(worst["shapely"], np.abs(found[some] - expected).max(initial=0))
        assert max(worst.values()) < 1e-6, f"polygon {number}: {worst}"
    print(f"{len(ours)} polygons, {count} cells; greatest differences: {worst}")
    # exactextract keeps fractions in single precision.
    assert worst["exactextract"] < 2e-7 and worst["shapely"] < 1e-9


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", *arguments]:
            make(*arguments)
        case ["cover", file]:
            json.dump(cover(json.load(open(file))), sys.stdout)
        case ["check", file, coverage]:
            check(json.load(open(file)), json.load(open(coverage)))
        case _:
            sys.exit(__doc__)
