//! Coverage of curvilinear cells against that of rectilinear grids, and against cases by hand.
//!
//! A grid that is sheared and turned in the plane has an exact oracle: the plane is mapped back, where
//! cells are squares, and polygons go with it.

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::coverage::tests::{Fractions, Polygons, archipelago, globe, labels, plane, steps};
use crate::{Axis, AxisKind, CoverageRule, CurvilinearCells, Grid, Region, cell_area};

const RULES: [CoverageRule; 3] =
    [CoverageRule::Coverage, CoverageRule::Centre, CoverageRule::Touched];

fn fractions(cells: &CurvilinearCells, region: &Region, rule: CoverageRule) -> Fractions {
    let found: Vec<_> = cells.coverage(region, rule).unwrap().collect();
    let in_order = found.is_sorted_by(|a, b| (a.row, a.column) < (b.row, b.column));
    assert!(in_order, "each cell once, in order");
    assert!(found.iter().all(|it| it.fraction > 0.0 && it.fraction <= 1.0));
    found.into_iter().map(|it| ((it.row, it.column), it.fraction)).collect()
}

fn of_grid(grid: &Grid, region: &Region, rule: CoverageRule) -> Fractions {
    let found = grid.coverage(region, rule).unwrap();
    found.map(|it| ((it.row, it.column), it.fraction)).collect()
}

fn wkt(text: &str) -> Region {
    Region::from_wkt(text).unwrap()
}

/// Returns random polygons with holes.
fn islands(random: &mut StdRng, centre: [f64; 2], size: f64) -> Region {
    // A star of few points may cross its hole.
    (0..100).find_map(|_| Region::from_polygons(&archipelago(random, centre, size)).ok()).unwrap()
}

/// Asserts that two results differ by rounding only. `Touched` may differ in cells of tiny fractions.
fn assert_close(found: &Fractions, expected: &Fractions, what: &str) {
    for key in found.keys().chain(expected.keys()) {
        let [a, b] = [found, expected].map(|it| it.get(key).copied().unwrap_or(0.0));
        assert!((a - b).abs() < 1e-9, "{key:?}: {a} instead of {b}, {what}");
    }
}

/// Compares all rules. Cells that are touched are those covered, up to fractions near rounding.
fn compare(cells: &CurvilinearCells, region: &Region, grid: &Grid, of_grid_region: &Region) {
    let covered = fractions(cells, region, CoverageRule::Coverage);
    assert_close(&covered, &of_grid(grid, of_grid_region, CoverageRule::Coverage), "coverage");
    let touched = fractions(cells, region, CoverageRule::Touched);
    assert!(touched.keys().eq(covered.keys()) && touched.values().all(|it| *it == 1.0));
    let centres = [
        fractions(cells, region, CoverageRule::Centre),
        of_grid(grid, of_grid_region, CoverageRule::Centre),
    ];
    assert_eq!(centres[0], centres[1], "centres");
}

/// The corners of a rectilinear grid, as CF bounds, and its labels.
fn corners_of(grid: &Grid, random: &mut StdRng) -> [Vec<f64>; 2] {
    let [mut lat, mut lon] = [Vec::new(), Vec::new()];
    for row in 0..grid.y().len() {
        for column in 0..grid.x().len() {
            let ([south, north], [west, east]) = (grid.y().cell(row), grid.x().cell(column));
            let mut corners = [[south, west], [south, east], [north, east], [north, west]];
            // From any corner, either way around, each in some turn.
            corners.rotate_left(random.random_range(0..4));
            if random.random() {
                corners.reverse();
            }
            for [y, x] in corners {
                lat.push(y);
                lon.push(if x < 300.0 && random.random_ratio(1, 5) { x + 360.0 } else { x });
            }
        }
    }
    [lat, lon]
}

fn every<'a>(lat: &'a [f64], lon: &'a [f64]) -> [Vec<f64>; 2] {
    [
        lat.iter().flat_map(|it| lon.iter().map(|_| *it)).collect(),
        lat.iter().flat_map(|_| lon.iter().copied()).collect(),
    ]
}

#[test]
fn equals_rectilinear_grids() {
    let mut random = StdRng::seed_from_u64(21);
    for _ in 0..200 {
        let columns = random.random_range(3..40);
        let first = [0.0, -180.0, 0.5 * 360.0 / columns as f64, -7.3][random.random_range(0..4)];
        let mut lon = steps(first, 360.0 / columns as f64, columns);
        if random.random_ratio(1, 3) {
            lon.truncate(columns / 2 + 1);
        }
        let rows = random.random_range(2..30);
        let lat = labels(&mut random, -89.0, 89.0, rows);
        let grid = globe(&lat, &lon);
        let [lat_corners, lon_corners] = corners_of(&grid, &mut random);
        let [lat, lon] = every(&lat, &lon);
        let cells = CurvilinearCells::try_new(
            &lat_corners,
            &lon_corners,
            columns.min(grid.x().len()),
            Some([&lat, &lon]),
        )
        .unwrap();
        let size = 10f64.powf(random.random_range(-2.0..1.4));
        let centre = [random.random_range(-190.0..370.0), random.random_range(-60.0..60.0)];
        let region = islands(&mut random, centre, size);
        compare(&cells, &region, &grid, &region);
        for (row, column) in [(0, 0), (rows - 1, grid.x().len() - 1), (rows / 2, 1)] {
            let expected = grid.cell_area(row, column);
            assert!((cells.cell_area(row, column) / expected - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn inferred_corners_equal_those_of_axes() {
    let mut random = StdRng::seed_from_u64(22);
    for (first, count, lat) in [
        (0.25, 144, steps(-88.75, 2.5, 72)),
        (-180.0, 144, steps(90.0, -2.5, 73)),
        (181.25, 144, steps(88.75, -2.5, 72)),
        (170.0, 20, steps(-10.0, 0.75, 30)),
        (-5.0, 5, steps(40.0, 0.75, 2)),
        (0.0, 4, steps(-60.0, 30.0, 5)),
    ] {
        let step = if count < 144 { 0.75 } else { 2.5 };
        let step = if count == 4 { 90.0 } else { step };
        let mut lon = steps(first, step, count);
        let grid = globe(&lat, &lon);
        lon.iter_mut().for_each(|it| *it = if *it > 180.0 { *it - 360.0 } else { *it });
        let [lats, lons] = every(&lat, &lon);
        let cells = CurvilinearCells::from_centres(&lats, &lons, count).unwrap();
        for _ in 0..20 {
            let centre = [first + random.random_range(0.0..20.0), lat[0].clamp(-55.0, 55.0)];
            let size = 10f64.powf(random.random_range(-1.0..1.4));
            let region = islands(&mut random, centre, size);
            compare(&cells, &region, &grid, &region);
        }
        let all = wkt("POLYGON ((-180 -90, 180 -90, 180 90, -180 90, -180 -90))");
        compare(&cells, &all, &grid, &all);
    }
}

/// A map of the plane: `(u, v)` to `origin + u * a + v * b`.
struct Affine {
    origin: [f64; 2],
    a: [f64; 2],
    b: [f64; 2],
}

impl Affine {
    fn new(random: &mut StdRng) -> Self {
        loop {
            let mut vector = || [random.random_range(-1.0..1.0), random.random_range(-1.0..1.0)];
            let (a, b) = (vector(), vector());
            if f64::abs(a[0] * b[1] - a[1] * b[0]) > 0.2 {
                let origin = [random.random_range(-200.0..400.0), random.random_range(-20.0..20.0)];
                return Self { origin, a, b };
            }
        }
    }

    fn at(&self, u: f64, v: f64) -> [f64; 2] {
        [0, 1].map(|it| self.origin[it] + u * self.a[it] + v * self.b[it])
    }

    fn back(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let (x, y) = (x - self.origin[0], y - self.origin[1]);
        let size = self.a[0] * self.b[1] - self.a[1] * self.b[0];
        [(x * self.b[1] - y * self.b[0]) / size, (y * self.a[0] - x * self.a[1]) / size]
    }
}

fn wrapped(lon: f64, random: &mut StdRng) -> f64 {
    let turn = 360.0 * f64::from(random.random_range(-1..=1));
    if (-360.0..=720.0).contains(&(lon + turn)) { lon + turn } else { lon }
}

#[test]
fn sheared_grids_equal_planes() {
    let mut random = StdRng::seed_from_u64(23);
    let mut partial = 0;
    for round in 0..300 {
        let map = Affine::new(&mut random);
        let (rows, columns) = (random.random_range(2..25), random.random_range(2..25));
        let grid = plane(&steps(0.5, 1.0, rows), &steps(0.5, 1.0, columns));
        let [mut lat, mut lon] = [Vec::new(), Vec::new()];
        let [mut lat_centres, mut lon_centres] = [Vec::new(), Vec::new()];
        for cell in 0..rows * columns {
            let (v, u) = ((cell / columns) as f64, (cell % columns) as f64);
            for (u, v) in [(u, v), (u + 1.0, v), (u + 1.0, v + 1.0), (u, v + 1.0)] {
                let [x, y] = map.at(u, v);
                lat.push(y);
                lon.push(wrapped(x, &mut random));
            }
            let [x, y] = map.at(u + 0.5, v + 0.5);
            lat_centres.push(y);
            lon_centres.push(wrapped(x, &mut random));
        }
        let cells = if round % 2 == 0 {
            CurvilinearCells::try_new(&lat, &lon, columns, None)
        } else {
            CurvilinearCells::from_centres(&lat_centres, &lon_centres, columns)
        };
        let cells = cells.unwrap();
        let centre = map
            .at(random.random_range(-1.0..columns as f64), random.random_range(-1.0..rows as f64));
        let size = 10f64.powf(random.random_range(-2.0..1.1));
        let mut polygons = archipelago(&mut random, centre, size);
        polygons
            .retain(|it| it[0].iter().all(|[x, y]| y.abs() < 90.0 && (-360.0..720.0).contains(x)));
        let back: Polygons = polygons
            .iter()
            .map(|it| it.iter().map(|it| it.iter().map(|it| map.back(*it)).collect()).collect())
            .collect();
        let region = Region::from_polygons(&polygons).unwrap();
        let back = Region::from_polygons(&back).unwrap();
        compare(&cells, &region, &grid, &back);
        let found = fractions(&cells, &region, CoverageRule::Coverage);
        partial += found.values().filter(|it| **it < 1.0).count();
    }
    assert!(partial > 3000, "{partial}");
}

/// Edges of cells that are edges of the region, too, in neither direction of an axis.
#[test]
fn common_edges_touch_nothing() {
    let mut random = StdRng::seed_from_u64(24);
    for _ in 0..100 {
        let map = Affine::new(&mut random);
        let centres: Vec<[f64; 2]> =
            (0..400).map(|it| map.at(f64::from(it % 20), f64::from(it / 20))).collect();
        let [lon, lat] = [0, 1].map(|axis| centres.iter().map(|it| it[axis]).collect::<Vec<_>>());
        let cells = CurvilinearCells::from_centres(&lat, &lon, 20).unwrap();
        let ring =
            [[2.5, 3.5], [9.5, 3.5], [9.5, 11.5], [6.5, 11.5], [6.5, 8.5], [2.5, 8.5], [2.5, 3.5]];
        let ring = ring.map(|[u, v]| map.at(u, v)).to_vec();
        let region = Region::from_polygons(&[vec![ring]]).unwrap();
        for rule in RULES {
            let found = fractions(&cells, &region, rule);
            assert_eq!(found.len(), 7 * 8 - 4 * 3, "{rule:?}");
            assert!(found.values().all(|it| *it == 1.0));
        }
    }
}

/// A grid of the globe whose poles are elsewhere. Its cells tile the plane, with a pole in two of them.
fn turned_globe(rows: usize, columns: usize, tilt: f64) -> [Vec<f64>; 2] {
    let (sin, cos) = tilt.to_radians().sin_cos();
    let [mut lat, mut lon] = [Vec::new(), Vec::new()];
    for cell in 0..rows * columns {
        let phi = ((cell / columns) as f64 + 0.5) * 180.0 / rows as f64 - 90.0;
        let lambda = ((cell % columns) as f64 + 0.5) * 360.0 / columns as f64;
        let [x, y, z] = crate::sphere::unit_vector(phi, lambda);
        let [x, z] = [x * cos - z * sin, x * sin + z * cos];
        lat.push(z.atan2(x.hypot(y)).to_degrees());
        lon.push(y.atan2(x).to_degrees());
    }
    [lat, lon]
}

/// The corners of a turned globe, without those at the poles of the grid, where cells are triangles.
fn turned_corners(rows: usize, columns: usize, tilt: f64) -> [Vec<f64>; 2] {
    let (sin, cos) = tilt.to_radians().sin_cos();
    let [mut lat, mut lon] = [Vec::new(), Vec::new()];
    for cell in 0..rows * columns {
        let (row, column) = (cell / columns, cell % columns);
        for (row, column) in
            [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
        {
            let phi = row as f64 * 180.0 / rows as f64 - 90.0;
            let lambda = (column % columns) as f64 * 360.0 / columns as f64;
            let [x, y, z] = crate::sphere::unit_vector(phi, lambda);
            let [x, z] = if row == 0 || row == rows {
                [-z * sin, z * cos]
            } else {
                [x * cos - z * sin, x * sin + z * cos]
            };
            let y = if row == 0 || row == rows { 0.0 } else { y };
            lat.push(z.atan2(x.hypot(y)).to_degrees());
            lon.push(y.atan2(x).to_degrees());
        }
    }
    [lat, lon]
}

#[test]
fn turned_globes_cover_all() {
    let all = wkt("POLYGON ((-180 -90, 180 -90, 180 90, -180 90, -180 -90))");
    let globe = cell_area([-90.0, 90.0], [0.0, 360.0]);
    let mut random = StdRng::seed_from_u64(25);
    for (rows, columns, tilt) in
        [(18, 36, 37.0), (36, 72, 52.5), (12, 30, 90.0), (20, 40, 1.0), (36, 72, 45.0)]
    {
        let [lat, lon] = turned_corners(rows, columns, tilt);
        let cells = CurvilinearCells::try_new(&lat, &lon, columns, None).unwrap();
        let found = fractions(&cells, &all, CoverageRule::Coverage);
        assert!(found.values().all(|it| *it == 1.0));
        let sum: f64 = found.keys().map(|it| cells.cell_area(it.0, it.1)).sum();
        assert!((sum / globe - 1.0).abs() < 1e-9, "{tilt} {} {}", sum / globe, found.len());
        for _ in 0..20 {
            let centre = [random.random_range(-170.0..330.0), random.random_range(-60.0..60.0)];
            let size = random.random_range(0.1..25.0);
            let region = islands(&mut random, centre, size);
            let found = fractions(&cells, &region, CoverageRule::Coverage);
            let sum: f64 =
                found.iter().map(|(it, part)| part * planar_area(&cells, it.0, it.1)).sum();
            assert!((sum / region.area() - 1.0).abs() < 1e-9, "{sum} {}", region.area());
        }
    }
}

fn planar_area(cells: &CurvilinearCells, row: usize, column: usize) -> f64 {
    cells.mesh.cell(row, column).unwrap().area()
}

#[test]
fn inferred_corners_of_turned_globes() {
    let globe = cell_area([-90.0, 90.0], [0.0, 360.0]);
    for (rows, columns, tilt) in [(60, 120, 37.0), (90, 180, 90.0), (90, 180, 52.25)] {
        let [lat, lon] = turned_globe(rows, columns, tilt);
        let cells = CurvilinearCells::from_centres(&lat, &lon, columns).unwrap();
        let missing = (0..rows * columns)
            .filter(|it| cells.cell_area(it / columns, it % columns).is_nan())
            .count();
        let areas: f64 = (0..rows * columns)
            .map(|it| cells.cell_area(it / columns, it % columns))
            .filter(|it| !it.is_nan())
            .sum();
        // At the poles of the grid, what remains of the extrapolated border is small.
        assert!((areas / globe - 1.0).abs() < 2e-3, "{tilt}: {} {missing}", areas / globe);
        assert!(missing <= columns, "{missing}");
    }
}

/// A rectangle as the region of a cell, and the cell as the region of a rectangle, share the same area.
#[test]
fn random_quadrilaterals() {
    let mut random = StdRng::seed_from_u64(26);
    let (mut concave, mut shared) = (0, 0);
    while shared < 2000 {
        let corners = [(); 4].map(|()| [(); 2].map(|()| random.random_range(-5.0..5.0)));
        let ring = corners.into_iter().chain([corners[0]]).collect();
        // A bow-tie is no polygon.
        let Ok(polygon) = Region::from_polygons(&[vec![ring]]) else { continue };
        let [lon, lat] = [0, 1].map(|axis| corners.map(|it: [f64; 2]| it[axis]));
        let cells = CurvilinearCells::try_new(&lat, &lon, 1, None).unwrap();
        concave += usize::from(cells.mesh.cell(0, 0).unwrap().pieces().count() == 2);
        let [w, s] = [(); 2].map(|()| random.random_range(-5.0..4.0));
        let (e, n) = (random.random_range(w..5.0), random.random_range(s..5.0));
        let grid = globe_of(s, n, w, e);
        let rectangle = vec![[w, s], [e, s], [e, n], [w, n], [w, s]];
        let rectangle = Region::from_polygons(&[vec![rectangle]]).unwrap();
        let of_rectangle = of_grid(&grid, &polygon, CoverageRule::Coverage);
        let of_cell = fractions(&cells, &rectangle, CoverageRule::Coverage);
        let area = |it: &Fractions, size: f64| it.get(&(0, 0)).map_or(0.0, |part| part * size);
        let expected = area(&of_rectangle, (e - w) * (n - s));
        let found = area(&of_cell, polygon.area());
        assert!((found - expected).abs() < 1e-9, "{found} {expected} {corners:?}");
        shared += usize::from(expected > 0.0);
    }
    assert!(concave > 500, "{concave}");
}

fn globe_of(south: f64, north: f64, west: f64, east: f64) -> Grid {
    let axis = |kind, low: f64, high: f64| {
        Axis::new(kind, &[low + (high - low) / 2.0], Some(&[[low, high]])).unwrap()
    };
    let lat = axis(AxisKind::Latitude, south, north);
    Grid::new(lat, axis(AxisKind::Longitude, west, east)).unwrap()
}

/// Corners that are moved at random leave concave cells, which tile the plane all the same.
#[test]
fn shaken_grids_cover_all() {
    let mut random = StdRng::seed_from_u64(27);
    for _ in 0..50 {
        let size = 20;
        let mut shaken = |at: usize| {
            let edge = at.is_multiple_of(size + 1);
            at as f64 + if edge { 0.0 } else { random.random_range(-0.42..0.42) }
        };
        let points: Vec<[f64; 2]> = (0..(size + 1) * (size + 1))
            .map(|it| [shaken(it % (size + 1)) - 10.0, shaken(it / (size + 1)) - 10.0])
            .collect();
        let [mut lat, mut lon] = [Vec::new(), Vec::new()];
        for cell in 0..size * size {
            let first = cell / size * (size + 1) + cell % size;
            for point in [first, first + 1, first + size + 2, first + size + 1] {
                lon.push(points[point][0]);
                lat.push(points[point][1]);
            }
        }
        let cells = CurvilinearCells::try_new(&lat, &lon, size, None).unwrap();
        let crossed = (0..size * size).any(|it| cells.mesh.cell(it / size, it % size).is_err());
        let centre = [random.random_range(-6.0..0.0), random.random_range(-4.0..4.0)];
        let extent = random.random_range(0.05..1.2);
        let region = islands(&mut random, centre, extent);
        let found = fractions(&cells, &region, CoverageRule::Coverage);
        let sum: f64 = found.iter().map(|(it, part)| part * planar_area(&cells, it.0, it.1)).sum();
        assert!(!crossed && (sum / region.area() - 1.0).abs() < 1e-9, "{sum} {}", region.area());
    }
}
