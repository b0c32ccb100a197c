#!/usr/bin/env python3
"""Makes coastlines.bin from land-50m.json of the npm package world-atlas 2.0.2.

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz package/land-50m.json
    python3 coastlines.py package/land-50m.json coastlines.bin

The data is the land of Natural Earth 4.1 at 1:50 million, which is in the public domain
(https://www.naturalearthdata.com/about/terms-of-use/). This script simplifies it.

The file is a list of lines. A line is the number of its points, and for each point the difference of longitude and latitude from
the point before, in hundredths of a degree. The first point of a line counts from the last point of the line before, the very
first from 0, 0. All numbers are LEB128; differences are zigzag-coded.
"""
import json
import sys

TOLERANCE = 3.0  # hundredths of a degree, about 3 km
SMALLEST = 12.0  # islands with no longer side are left out


def decoded(atlas):
    """Returns the arcs of a TopoJSON as points in hundredths of a degree."""
    (kx, ky), (x0, y0) = atlas["transform"]["scale"], atlas["transform"]["translate"]
    for arc in atlas["arcs"]:
        x = y = 0
        points = []
        for dx, dy in arc:
            x, y = x + dx, y + dy
            points.append(((x * kx + x0) * 100, (y * ky + y0) * 100))
        yield points


def rings(atlas):
    """Returns the closed rings of all polygons."""
    arcs = list(decoded(atlas))

    def polygons(geometry):
        if geometry["type"] == "GeometryCollection":
            return [polygon for part in geometry["geometries"] for polygon in polygons(part)]
        return [geometry["arcs"]] if geometry["type"] == "Polygon" else geometry["arcs"]

    for polygon in polygons(atlas["objects"]["land"]):
        for ring in polygon:
            points = []
            for index in ring:
                arc = arcs[index] if index >= 0 else arcs[~index][::-1]
                points.extend(arc[1:] if points else arc)
            yield points


def is_edge(one, other):
    """Whether the line between two points is on the edge of the map, or across it. That is no coast."""
    if abs(one[0] - other[0]) > 18000:
        return True
    return (abs(one[0]) > 17999 and abs(other[0]) > 17999) or (one[1] < -8990 and other[1] < -8990)


def coasts(ring):
    """Cuts a ring where it follows the edge of the map."""
    line = ring[:1]
    for one, other in zip(ring, ring[1:]):
        if is_edge(one, other):
            yield line
            line = []
        line.append(other)
    yield line


def simplified(points):
    """Leaves out points that are near the line through the others (Douglas and Peucker)."""
    keep = {0, len(points) - 1}
    far = lambda at: (points[at][0] - points[0][0]) ** 2 + (points[at][1] - points[0][1]) ** 2
    cuts = [0, len(points) - 1]
    if points[0] == points[-1]:
        cuts.insert(1, max(range(len(points)), key=far))
    stack = list(zip(cuts, cuts[1:]))
    while stack:
        start, end = stack.pop()
        keep |= {start, end}
        (ax, ay), (bx, by) = points[start], points[end]
        length = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5
        away = lambda at: abs((bx - ax) * (ay - points[at][1]) - (ax - points[at][0]) * (by - ay)) / (length or 1)
        between = range(start + 1, end)
        farthest = max(between, key=away, default=None)
        if farthest is not None and away(farthest) > TOLERANCE:
            stack += [(start, farthest), (farthest, end)]
    return [points[at] for at in sorted(keep)]


def leb128(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number):
    return leb128(number * 2 if number >= 0 else -number * 2 - 1)


def main(source, target):
    with open(source, encoding="utf-8") as file:
        atlas = json.load(file)
    out, last, count = bytearray(), (0, 0), 0
    lines = [line for ring in rings(atlas) for line in coasts(ring) if len(line) > 1]
    for line in lines:
        sides = [max(axis) - min(axis) for axis in zip(*line)]
        if max(sides) < SMALLEST:
            continue
        whole = [(round(x), round(y)) for x, y in simplified(line)]
        whole = [at for number, at in enumerate(whole) if number == 0 or at != whole[number - 1]]
        out += leb128(len(whole))
        for x, y in whole:
            out += zigzag(x - last[0]) + zigzag(y - last[1])
            last = (x, y)
        count += len(whole)
    with open(target, "wb") as file:
        file.write(out)
    print(f"{count} points, {len(out)} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
