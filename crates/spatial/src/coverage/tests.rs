//! Coverage against an oracle that clips each ring with each cell, and against cases by hand.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{Axis, AxisKind, CoverageRule, Grid, Region};

pub(crate) type Polygons = Vec<Vec<Vec<[f64; 2]>>>;
pub(crate) type Fractions = BTreeMap<(usize, usize), f64>;

fn fractions(grid: &Grid, region: &Region, rule: CoverageRule) -> Fractions {
    let cells: Vec<_> = grid.coverage(region, rule).unwrap().collect();
    assert!(
        cells.is_sorted_by(|a, b| (a.row, a.column) < (b.row, b.column)),
        "each cell once, in order"
    );
    assert!(cells.iter().all(|it| it.fraction > 0.0 && it.fraction <= 1.0));
    cells.into_iter().map(|it| ((it.row, it.column), it.fraction)).collect()
}

/// The part of a ring below, above, left or right of a line, by Sutherland and Hodgman (1974).
fn clip(ring: &[[f64; 2]], axis: usize, limit: f64, keep_below: bool) -> Vec<[f64; 2]> {
    let inside = |it: &[f64; 2]| if keep_below { it[axis] <= limit } else { it[axis] >= limit };
    let mut clipped = Vec::new();
    for (index, end) in ring.iter().enumerate() {
        let start = &ring[(index + ring.len() - 1) % ring.len()];
        if inside(start) != inside(end) {
            let part = (limit - start[axis]) / (end[axis] - start[axis]);
            let mut point = [0, 1].map(|it| start[it] + part * (end[it] - start[it]));
            point[axis] = limit;
            clipped.push(point);
        }
        if inside(end) {
            clipped.push(*end);
        }
    }
    clipped
}

fn area(ring: &[[f64; 2]]) -> f64 {
    let next = |index: usize| ring[(index + 1) % ring.len()];
    let cross = |(index, it): (usize, &[f64; 2])| {
        let ([x, y], [next_x, next_y]) = (*it, next(index));
        (x - ring[0][0]) * (next_y - ring[0][1]) - (next_x - ring[0][0]) * (y - ring[0][1])
    };
    ring.iter().enumerate().map(cross).sum::<f64>().abs() / 2.0
}

/// The area of polygons within a box, whose longitudes may be of another turn.
fn clipped_area(polygons: &Polygons, y: [f64; 2], x: [f64; 2]) -> f64 {
    let of_ring = |ring: &Vec<[f64; 2]>| {
        let ring = clip(&clip(&ring[..ring.len() - 1], 0, x[0], false), 0, x[1], true);
        area(&clip(&clip(&ring, 1, y[0], false), 1, y[1], true))
    };
    let of_polygon = |rings: &Vec<Vec<[f64; 2]>>| {
        of_ring(&rings[0]) - rings[1..].iter().map(of_ring).sum::<f64>()
    };
    polygons.iter().map(of_polygon).sum()
}

/// Compares all cells of a grid with the oracle.
fn compare(grid: &Grid, polygons: &Polygons) -> Fractions {
    let region = Region::from_polygons(polygons).unwrap_or_else(|it| panic!("{it}: {polygons:?}"));
    let found = fractions(grid, &region, CoverageRule::Coverage);
    let turns: &[f64] = if grid.is_geographic() { &[-360.0, 0.0, 360.0] } else { &[0.0] };
    for row in 0..grid.y().len() {
        for column in 0..grid.x().len() {
            let (y, x) = (grid.y().cell(row), grid.x().cell(column));
            let areas = turns.iter().map(|turn| clipped_area(polygons, y, x.map(|it| it + turn)));
            let expected = areas.sum::<f64>() / ((y[1] - y[0]) * (x[1] - x[0]));
            let fraction = found.get(&(row, column)).copied().unwrap_or(0.0);
            assert!(
                (fraction - expected).abs() < 1e-11,
                "{row} {column}: {fraction} {expected} {polygons:?}"
            );
        }
    }
    let touched = fractions(grid, &region, CoverageRule::Touched);
    assert!(touched.keys().eq(found.keys()) && touched.values().all(|it| *it == 1.0));
    compare_centres(grid, polygons, &fractions(grid, &region, CoverageRule::Centre));
    found
}

/// Compares the rule `centre` with the number of times that a ring winds around each centre.
fn compare_centres(grid: &Grid, polygons: &Polygons, found: &Fractions) {
    let turns: &[f64] = if grid.is_geographic() { &[-360.0, 0.0, 360.0] } else { &[0.0] };
    for row in 0..grid.y().len() {
        for column in 0..grid.x().len() {
            let y = grid.y().centre(grid.y().position(row));
            let x = grid.x().centre(grid.x().position(column));
            let mut edge_near = false;
            let mut inside = false;
            for (turn, ring) in
                turns.iter().flat_map(|turn| polygons.iter().flatten().map(move |it| (turn, it)))
            {
                let angles = ring.windows(2).map(|pair| {
                    let [a, b] = [pair[0], pair[1]].map(|it| [it[0] - x - turn, it[1] - y]);
                    let (cross, dot) = (a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1]);
                    edge_near |= cross.abs() < 1e-9 && dot < 1e-9;
                    cross.atan2(dot)
                });
                inside ^= angles.sum::<f64>().abs() > TAU / 2.0;
            }
            assert!(
                edge_near || inside == found.contains_key(&(row, column)),
                "{row} {column} {polygons:?}"
            );
        }
    }
}

pub(crate) fn plane(y: &[f64], x: &[f64]) -> Grid {
    let axis = |labels: &[f64]| Axis::new(AxisKind::Plane, labels, None).unwrap();
    Grid::new(axis(y), axis(x)).unwrap()
}

pub(crate) fn globe(lat: &[f64], lon: &[f64]) -> Grid {
    let lat = Axis::new(AxisKind::Latitude, lat, None).unwrap();
    Grid::new(lat, Axis::new(AxisKind::Longitude, lon, None).unwrap()).unwrap()
}

pub(crate) fn steps(first: f64, step: f64, count: usize) -> Vec<f64> {
    (0..count).map(|it| first + step * it as f64).collect()
}

/// A ring around a centre, concave, with a point per random angle. It keeps to `size[0]..size[1]` away.
fn star(random: &mut StdRng, centre: [f64; 2], size: [f64; 2], points: usize) -> Vec<[f64; 2]> {
    let mut angles: Vec<f64> = (0..points)
        .map(|it| (it as f64 + random.random_range(0.0..0.9)) * TAU / points as f64)
        .collect();
    if random.random() {
        angles.reverse();
    }
    let mut point = |angle: f64| {
        let radius = random.random_range(size[0]..size[1]);
        [centre[0] + radius * angle.cos(), centre[1] + radius * angle.sin()]
    };
    let mut ring: Vec<_> = angles.into_iter().map(&mut point).collect();
    ring.push(ring[0]);
    ring
}

/// Parts in the tiles of a chessboard, with a hole each, which holds an island.
pub(crate) fn archipelago(random: &mut StdRng, centre: [f64; 2], size: f64) -> Polygons {
    let mut polygons = Vec::new();
    for part in 0..random.random_range(1..4) {
        let centre = [centre[0] + 2.0 * size * f64::from(part), centre[1]];
        let points = random.random_range(5..60);
        let mut rings = vec![star(random, centre, [size * 0.5, size], points)];
        if random.random() {
            let points = random.random_range(7..20);
            rings.push(star(random, centre, [size * 0.2, size * 0.3], points));
            if random.random() {
                polygons.push(vec![star(random, centre, [size * 0.01, size * 0.1], 4)]);
            }
        }
        polygons.push(rings);
    }
    polygons
}

/// Irregular labels, ascending or descending.
pub(crate) fn labels(random: &mut StdRng, low: f64, high: f64, count: usize) -> Vec<f64> {
    let mut steps: Vec<f64> = (0..count).map(|_| random.random_range(0.2..1.0)).collect();
    let sum: f64 = steps.iter().sum();
    let mut at = low;
    for step in &mut steps {
        at += *step / sum * (high - low);
        *step = at;
    }
    if random.random() {
        steps.reverse();
    }
    steps
}

#[test]
fn random_polygons_of_a_plane() {
    let mut random = StdRng::seed_from_u64(1);
    for _ in 0..300 {
        let (rows, columns) = (random.random_range(2..12), random.random_range(2..12));
        let grid = plane(
            &labels(&mut random, -10.0, 10.0, rows),
            &labels(&mut random, -10.0, 10.0, columns),
        );
        let centre = [random.random_range(-9.0..9.0), random.random_range(-9.0..9.0)];
        // From far smaller than a cell to larger than the grid.
        let size = 10f64.powf(random.random_range(-4.0..1.3));
        let polygons = archipelago(&mut random, centre, size);
        compare(&grid, &polygons);
    }
}

#[test]
fn random_polygons_of_the_globe() {
    let mut random = StdRng::seed_from_u64(2);
    let mut in_two_turns = 0;
    for _ in 0..300 {
        let columns = random.random_range(3..14);
        let first = [0.0, -180.0, 0.5 * 360.0 / columns as f64, -7.3][random.random_range(0..4)];
        let mut lon = steps(first, 360.0 / columns as f64, columns);
        // A third are regional grids.
        if random.random_ratio(1, 3) {
            lon.truncate(columns / 2 + 1);
        }
        let rows = random.random_range(2..9);
        let grid = globe(&labels(&mut random, -89.0, 89.0, rows), &lon);
        let size = 10f64.powf(random.random_range(-2.0..1.4));
        let centre = [random.random_range(-190.0..370.0), random.random_range(-60.0..60.0)];
        let polygons = archipelago(&mut random, centre, size);
        in_two_turns += usize::from(polygons.iter().flatten().flatten().any(|it| it[0] > 180.0));
        compare(&grid, &polygons);
    }
    assert!(in_two_turns > 50);
}

/// Corners on the edges of cells, where walks along edges and through corners are decided.
#[test]
fn random_polygons_on_edges() {
    let mut random = StdRng::seed_from_u64(3);
    let grid = plane(&steps(0.5, 1.0, 8), &steps(7.5, -1.0, 8));
    let mut valid = 0;
    for _ in 0..4000 {
        let count = random.random_range(3..8);
        let mut ring: Vec<[f64; 2]> = (0..count)
            .map(|_| [0, 1].map(|_| f64::from(random.random_range(-2..20)) / 2.0))
            .collect();
        ring.push(ring[0]);
        let polygons = vec![vec![ring]];
        if Region::from_polygons(&polygons).is_ok() {
            let found = compare(&grid, &polygons);
            // All numbers are short binary fractions, or parts of slanted edges.
            assert!(found.values().all(|it| *it > 1e-4));
            valid += 1;
        }
    }
    assert!(valid > 500, "{valid}");
}

/// Rectangles of tiles: every fraction is exactly 0, a half, a quarter or 1.
#[test]
fn walks_along_edges_are_exact() {
    let grid = plane(&steps(0.5, 1.0, 6), &steps(0.5, 1.0, 6));
    for (west, east, south, north) in
        [(1.0, 4.0, 1.0, 3.0), (0.0, 6.0, 0.0, 6.0), (-3.0, 9.0, 2.0, 3.0), (1.5, 2.0, 0.0, 7.0)]
    {
        // With many points on each edge.
        let side = |from: [f64; 2], to: [f64; 2]| {
            (0..100).map(move |it| {
                [0, 1].map(|axis| from[axis] + (to[axis] - from[axis]) * f64::from(it) / 100.0)
            })
        };
        let corners = [[west, south], [east, south], [east, north], [west, north], [west, south]];
        let mut ring: Vec<_> = corners.windows(2).flat_map(|it| side(it[0], it[1])).collect();
        ring.push(ring[0]);
        let found = compare(&grid, &vec![vec![ring]]);
        assert!(found.values().all(|it| *it == 1.0 || (west == 1.5 && *it == 0.5)), "{found:?}");
    }
}

#[test]
fn fractions_add_up_to_the_area() {
    let mut random = StdRng::seed_from_u64(4);
    for _ in 0..20 {
        let grid = globe(&steps(-89.75, 0.5, 360), &steps(0.0, 0.5, 720));
        let centre = [random.random_range(-170.0..300.0), random.random_range(-40.0..40.0)];
        let size = random.random_range(0.001..20.0);
        let region = Region::from_polygons(&archipelago(&mut random, centre, size)).unwrap();
        let sum: f64 = fractions(&grid, &region, CoverageRule::Coverage).values().sum();
        assert!(
            (sum * 0.25 / region.area() - 1.0).abs() < 1e-12,
            "{} {}",
            sum * 0.25,
            region.area()
        );
    }
}

#[test]
fn the_date_line_in_both_conventions() {
    let beyond = Region::from_wkt("POLYGON ((170 -10, 190 -10, 190 10, 170 10, 170 -10))").unwrap();
    let split = Region::from_wkt(
        "MULTIPOLYGON (((170 -10, 180 -10, 180 10, 170 10, 170 -10)), \
         ((-180 -10, -170 -10, -170 10, -180 10, -180 -10)))",
    )
    .unwrap();
    let west =
        Region::from_wkt("POLYGON ((-190 -10, -170 -10, -170 10, -190 10, -190 -10))").unwrap();
    for first in [0.0, -180.0, -177.5, 2.5, 100.0] {
        let grid = globe(&steps(-87.5, 5.0, 36), &steps(first, 5.0, 72));
        let expected = fractions(&grid, &beyond, CoverageRule::Coverage);
        assert_eq!(expected.len(), if first % 5.0 == 0.0 { 20 } else { 16 }, "{first}");
        for rule in [CoverageRule::Coverage, CoverageRule::Centre, CoverageRule::Touched] {
            let expected = fractions(&grid, &beyond, rule);
            assert_eq!(fractions(&grid, &split, rule), expected);
            assert_eq!(fractions(&grid, &west, rule), expected);
        }
    }
}

#[test]
fn the_whole_globe() {
    let region =
        Region::from_wkt("POLYGON ((-180 -90, 180 -90, 180 90, -180 90, -180 -90))").unwrap();
    let poles = globe(&steps(90.0, -2.5, 73), &steps(0.0, 2.5, 144));
    for rule in [CoverageRule::Coverage, CoverageRule::Centre, CoverageRule::Touched] {
        let found = fractions(&poles, &region, rule);
        assert_eq!(found.len(), 73 * 144);
        assert!(found.values().all(|it| *it == 1.0));
    }
    let area: f64 = poles
        .coverage(&region, CoverageRule::Coverage)
        .unwrap()
        .map(|it| it.fraction * poles.cell_area(it.row, it.column))
        .sum();
    assert!((area / crate::cell_area([-90.0, 90.0], [0.0, 360.0]) - 1.0).abs() < 1e-13);
}

#[test]
fn polygons_at_the_pole() {
    let grid = globe(&[90.0, 60.0, 30.0], &steps(0.0, 90.0, 4));
    let cap =
        Region::from_wkt("POLYGON ((-180 82.5, 180 82.5, 180 90, -180 90, -180 82.5))").unwrap();
    let expected: Fractions = (0..4).map(|it| ((0, it), 0.5)).collect();
    assert_eq!(fractions(&grid, &cap, CoverageRule::Coverage), expected);
    // The label 90 stands for the middle of the cell, 82.5.
    assert_eq!(fractions(&grid, &cap, CoverageRule::Centre).len(), 4);
}

#[test]
fn neighbours_share_no_centre() {
    let grid = plane(&steps(0.0, 1.0, 5), &steps(0.0, 1.0, 5));
    // The common edge runs through centres.
    let parts = ["POLYGON ((-1 -1, 5 5, 5 -1, -1 -1))", "POLYGON ((-1 -1, -1 5, 5 5, -1 -1))"];
    let found =
        parts.map(|it| fractions(&grid, &Region::from_wkt(it).unwrap(), CoverageRule::Centre));
    assert_eq!(found[0].len() + found[1].len(), 25);
    assert!(found[0].keys().all(|it| !found[1].contains_key(it)));
}

#[test]
fn nothing_is_covered() {
    let grid = plane(&steps(0.0, 1.0, 3), &steps(0.0, 1.0, 3));
    let empty = plane(&[], &[]);
    let square = "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))";
    for (grid, wkt) in [
        (&grid, "POLYGON EMPTY"),
        (&grid, "POLYGON ((10 0, 11 0, 11 2, 10 2, 10 0))"),
        (&grid, "POLYGON ((-9 0, -8 0, -8 2, -9 2, -9 0))"),
        (&grid, "POLYGON ((0 10, 2 10, 2 12, 0 12, 0 10))"),
        (&grid, "POLYGON ((-9 2.5, 9 2.5, 9 9, -9 9, -9 2.5))"),
        (&grid, "POLYGON ((2.5 0, 3 0, 3 2, 2.5 2, 2.5 0))"),
        (&empty, square),
    ] {
        let region = Region::from_wkt(wkt).unwrap();
        for rule in [CoverageRule::Coverage, CoverageRule::Centre, CoverageRule::Touched] {
            assert_eq!(fractions(grid, &region, rule), Fractions::new(), "{wkt}");
        }
    }
}

#[test]
fn wrong_degrees_are_errors() {
    let grid = globe(&steps(-87.5, 5.0, 36), &steps(0.0, 5.0, 72));
    let error = |wkt: &str| {
        let region = Region::from_wkt(wkt).unwrap();
        grid.coverage(&region, CoverageRule::Coverage).unwrap_err().to_string()
    };
    assert_eq!(
        error("POLYGON ((50 100, 51 100, 51 101, 50 101, 50 100))"),
        "(50, 100) of the outer ring is no longitude from -360 to 720 and latitude from -90 to 90: \
         the grid is one of degrees; is the region in other units, or are its coordinates swapped?"
    );
    assert!(error("POLYGON ((900 0, 901 0, 901 1, 900 1, 900 0))").starts_with("(900, 0)"));
    let twice = error(
        "MULTIPOLYGON (((-170 0, -160 0, -160 5, -170 5, -170 0)), ((195 1, 210 1, 210 2, 195 2, 195 1)))",
    );
    assert!(twice.starts_with("the region covers places twice, because it is 380 wide"), "{twice}");
    let apart = "MULTIPOLYGON (((-170 0, -160 0, -160 5, -170 5, -170 0)), ((200 1, 210 1, 210 2, 200 2, 200 1)))";
    let region = Region::from_wkt(apart).unwrap();
    let sum: f64 = fractions(&grid, &region, CoverageRule::Coverage).values().sum();
    assert!((sum * 25.0 - 60.0).abs() < 1e-12);
    // A turn, but for rounding.
    let parts = "MULTIPOLYGON (((170 0, 180.00000000000003 0, 180 5, 170 5, 170 0)), ((-180 0, -170 0, -170 5, -180.00000000000003 5, -180 0)))";
    let region = Region::from_wkt(parts).unwrap();
    assert_eq!(fractions(&grid, &region, CoverageRule::Centre).len(), 4);
    // A band that winds around the globe without meeting itself.
    let winding = "POLYGON ((-180 -80, 300 70, 300 75, -180 -75, -180 -80))";
    let sum: f64 = fractions(&grid, &Region::from_wkt(winding).unwrap(), CoverageRule::Coverage)
        .values()
        .sum();
    assert!((sum * 25.0 - 2400.0).abs() < 1e-9);
}

/// Edges of cells and polygons whose coordinates are not short binary fractions.
#[test]
fn rounding_makes_no_cells() {
    let labels: Vec<f64> = (0..100).map(|it| f64::from(it) * 0.1 + 0.05).collect();
    let bounds: Vec<[f64; 2]> =
        (0..100).map(|it| [f64::from(it) * 0.1, f64::from(it + 1) * 0.1]).collect();
    let axis = Axis::new(AxisKind::Plane, &labels, Some(&bounds)).unwrap();
    let grid = Grid::new(axis.clone(), axis).unwrap();
    let edge = |index: usize| grid.x().cell(index)[0];
    let comb: Vec<[f64; 2]> = (0..40)
        .flat_map(|it| {
            [
                [edge(2 * it), edge(3)],
                [edge(2 * it), edge(77)],
                [edge(2 * it + 1), edge(77)],
                [edge(2 * it + 1), edge(3)],
            ]
        })
        .chain([[edge(79), edge(1)], [edge(0), edge(1)], [edge(0), edge(3)]])
        .collect();
    let found =
        fractions(&grid, &Region::from_polygons(&[vec![comb]]).unwrap(), CoverageRule::Coverage);
    assert_eq!(found.len(), 40 * 74 + 2 * 79);
    assert!(found.values().all(|it| *it == 1.0));
}
