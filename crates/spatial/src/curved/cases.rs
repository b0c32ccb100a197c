//! Cells of all shapes, by hand.

use crate::{CoverageRule, CurvilinearCells, Region, cell_area};

type Found = Vec<(usize, usize, f64)>;

fn found(cells: &CurvilinearCells, wkt: &str, rule: CoverageRule) -> Found {
    let region = Region::from_wkt(wkt).unwrap();
    cells.coverage(&region, rule).unwrap().map(|it| (it.row, it.column, it.fraction)).collect()
}

fn covered(cells: &CurvilinearCells, wkt: &str) -> Found {
    found(cells, wkt, CoverageRule::Coverage)
}

/// Cells in one row, from corners as longitude and latitude.
fn row(cells: &[[[f64; 2]; 4]]) -> CurvilinearCells {
    let [lon, lat] = [0, 1].map(|it| cells.iter().flatten().map(|at| at[it]).collect::<Vec<_>>());
    CurvilinearCells::try_new(&lat, &lon, cells.len(), None).unwrap()
}

fn planar_area(cells: &CurvilinearCells, found: &(usize, usize, f64)) -> f64 {
    cells.mesh.cell(found.0, found.1).unwrap().area()
}

const ALL: &str = "POLYGON ((-180 -90, 180 -90, 180 90, -180 90, -180 -90))";

#[test]
fn concave_cells() {
    // An arrow head of area 2, whose notch reaches up to (1, 1), from each corner and either way around.
    let arrow = [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [1.0, 3.0]];
    for first in 0..8 {
        let mut corners = arrow;
        corners.rotate_left(first % 4);
        if first >= 4 {
            corners.reverse();
        }
        let cells = row(&[corners]);
        assert_eq!(covered(&cells, "POLYGON ((-5 -5, 1 -5, 1 5, -5 5, -5 -5))"), [(0, 0, 0.5)]);
        assert_eq!(covered(&cells, "POLYGON ((0.5 0, 1.5 0, 1 0.5, 0.5 0))"), []);
        let tip = covered(&cells, "POLYGON ((-5 1.5, 5 1.5, 5 5, -5 5, -5 1.5))");
        assert!((tip[0].2 - 0.375).abs() < 1e-15, "{tip:?}");
        assert_eq!(
            found(
                &cells,
                "POLYGON ((0.9 0, 1.1 0, 1.1 0.9, 0.9 0.9, 0.9 0))",
                CoverageRule::Touched
            ),
            []
        );
    }
}

#[test]
fn cells_without_an_area_or_a_place() {
    let square = |west: f64| [[west, 0.0], [west + 1.0, 0.0], [west + 1.0, 1.0], [west, 1.0]];
    let nan = |axis: usize| {
        let mut corners = square(2.0);
        corners[1][axis] = f64::NAN;
        corners
    };
    let cells = row(&[
        square(0.0),
        nan(0),
        nan(1),
        // A bow-tie, a line, a point and a triangle.
        [[3.0, 0.0], [4.0, 1.0], [4.0, 0.0], [3.0, 1.0]],
        [[5.0, 0.0], [6.0, 1.0], [6.0, 1.0], [5.0, 0.0]],
        [[7.0, 0.0]; 4],
        [[8.0, 0.0], [9.0, 0.0], [9.0, 0.0], [8.0, 1.0]],
    ]);
    for rule in [CoverageRule::Coverage, CoverageRule::Centre, CoverageRule::Touched] {
        assert_eq!(found(&cells, ALL, rule), [(0, 0, 1.0), (0, 6, 1.0)], "{rule:?}");
    }
    let areas: Vec<bool> = (0..7).map(|it| cells.cell_area(0, it).is_nan()).collect();
    assert_eq!(areas, [false, true, true, true, true, true, false]);
}

#[test]
fn cells_around_a_pole() {
    // Four corners on the parallel of 80°, and a hexagon's half that a pole is a corner of.
    let around = [[45.0, 80.0], [135.0, 80.0], [-135.0, 80.0], [-45.0, 80.0]];
    for (pole, sign) in [(90.0, 1.0), (-90.0, -1.0)] {
        let corners = around.map(|[lon, lat]| [lon, sign * lat]);
        let mut reversed = corners;
        reversed.reverse();
        for corners in [corners, reversed] {
            let cells = row(&[corners]);
            assert_eq!(covered(&cells, ALL), [(0, 0, 1.0)]);
            assert_eq!(found(&cells, ALL, CoverageRule::Centre), [(0, 0, 1.0)]);
            let (south, north) =
                (f64::min(pole, pole - 5.0 * sign), f64::max(pole, pole - 5.0 * sign));
            let quarter = format!(
                "POLYGON ((170 {south}, 260 {south}, 260 {north}, 170 {north}, 170 {south}))"
            );
            let part = covered(&cells, &quarter);
            assert!((part[0].2 - 0.125).abs() < 1e-12, "{part:?}");
            let area = cell_area([80.0, 90.0], [0.0, 360.0]);
            assert!((cells.cell_area(0, 0) / area - 1.0).abs() < 1e-12);
        }
    }
    // Edges to the pole follow meridians, whatever longitude the pole has.
    for lon in [-360.0, 0.0, 10.0, 77.0, 200.0, 720.0] {
        let cells = row(&[[[20.0, 80.0], [40.0, 80.0], [lon, 90.0], [lon, 90.0]]]);
        let half = covered(&cells, "POLYGON ((0 85, 90 85, 90 90, 0 90, 0 85))");
        assert!((half[0].2 - 0.5).abs() < 1e-12);
        let cells = row(&[[[lon, -90.0], [170.0, -80.0], [180.0, -79.0], [-170.0, -80.0]]]);
        let west = covered(&cells, "POLYGON ((160 -90, 180 -90, 180 -60, 160 -60, 160 -90))");
        assert!((west[0].2 - 0.5).abs() < 1e-12, "{west:?}");
        let expected = cell_area([-90.0, -80.0], [0.0, 20.0]);
        assert!(cells.cell_area(0, 0) > expected && cells.cell_area(0, 0) < 1.2 * expected);
    }
}

/// A polar stereographic grid, in whose middle the pole is: at a corner, in a cell or on an edge.
fn polar(size: usize, shift: [f64; 2]) -> [Vec<f64>; 2] {
    let places = (0..size * size).map(|it| {
        let at = |index: usize, shift: f64| index as f64 - (size as f64 - 1.0) / 2.0 + shift;
        let (x, y) = (at(it % size, shift[0]), at(it / size, shift[1]));
        [90.0 - 2.0 * (x.hypot(y) / 100.0).atan().to_degrees(), y.atan2(x).to_degrees()]
    });
    let places: Vec<[f64; 2]> = places.collect();
    [0, 1].map(|axis| places.iter().map(|it| it[axis]).collect())
}

#[test]
fn polar_grids_have_no_gap() {
    for size in [20, 21] {
        for shift in [[0.0, 0.0], [0.5, 0.0], [0.2, 0.3], [0.499, 0.5]] {
            let [lat, lon] = polar(size, shift);
            let cells = CurvilinearCells::from_centres(&lat, &lon, size).unwrap();
            assert_eq!(covered(&cells, ALL).len(), size * size, "{size} {shift:?}");
            // The cap north of 81°, which is within the grid.
            let cap = "POLYGON ((-180 81, 180 81, 180 90, -180 90, -180 81))";
            let area: f64 =
                covered(&cells, cap).iter().map(|it| it.2 * planar_area(&cells, it)).sum();
            assert!((area / (360.0 * 9.0) - 1.0).abs() < 1e-9, "{size} {shift:?} {area}");
        }
    }
}

#[test]
fn the_fold_of_a_tripolar_grid() {
    // On a map around the pole, rows are ellipses that become flatter. The last one is a segment, from
    // (100, 60) over the pole to (280, 60), on which the grid meets itself.
    let (rows, columns) = (12, 40);
    let place = |row: f64, column: f64| {
        let turn = column / columns as f64 * std::f64::consts::TAU;
        let (x, y) = (30.0 * turn.cos(), 30.0 * (1.0 - row / rows as f64) * turn.sin());
        [90.0 - x.hypot(y), y.atan2(x).to_degrees() + 100.0]
    };
    let at = |cell: usize, corner: [f64; 2]| {
        place((cell / columns) as f64 + corner[0], (cell % columns) as f64 + corner[1])
    };
    let around = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]];
    let corners: Vec<_> =
        (0..rows * columns).flat_map(|it| around.map(|corner| at(it, corner))).collect();
    let centres: Vec<_> = (0..rows * columns).map(|it| at(it, [0.5, 0.5])).collect();
    let split = |places: &[[f64; 2]]| {
        [0, 1].map(|axis| places.iter().map(|it| it[axis]).collect::<Vec<_>>())
    };
    let ([lat, lon], [lat_centres, lon_centres]) = (split(&corners), split(&centres));
    let given =
        CurvilinearCells::try_new(&lat, &lon, columns, Some([&lat_centres, &lon_centres])).unwrap();
    let cap = "POLYGON ((-80 70, 280 70, 280 90, -80 90, -80 70))";
    let area: f64 = covered(&given, cap).iter().map(|it| it.2 * planar_area(&given, it)).sum();
    assert!((area / (360.0 * 20.0) - 1.0).abs() < 1e-9, "{area}");
    // Corners from centres are near those.
    let inferred = CurvilinearCells::from_centres(&lat_centres, &lon_centres, columns).unwrap();
    let square = "POLYGON ((25 74, 35 74, 35 78, 25 78, 25 74))";
    let [given, inferred] = [&given, &inferred].map(|it| covered(it, square));
    let sum = |found: &Found| found.iter().map(|it| it.2).sum::<f64>();
    assert!((sum(&given) / sum(&inferred) - 1.0).abs() < 0.05, "{given:?} {inferred:?}");
}

#[test]
fn the_date_line() {
    let lon = [178.5, 179.5, -179.5, -178.5, 178.5, 179.5, -179.5, -178.5];
    let cells =
        CurvilinearCells::from_centres(&[0.5, 0.5, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5], &lon, 4).unwrap();
    let expected = [(0, 1, 0.5), (0, 2, 0.25)];
    for part in [
        "POLYGON ((179.5 0, 180.25 0, 180.25 1, 179.5 1, 179.5 0))",
        "POLYGON ((-180.5 0, -179.75 0, -179.75 1, -180.5 1, -180.5 0))",
        "POLYGON ((539.5 0, 540.25 0, 540.25 1, 539.5 1, 539.5 0))",
        "MULTIPOLYGON (((179.5 0, 180 0, 180 1, 179.5 1, 179.5 0)), \
         ((-180 0, -179.75 0, -179.75 1, -180 1, -180 0)))",
    ] {
        assert_eq!(covered(&cells, part), expected, "{part}");
        assert_eq!(found(&cells, part, CoverageRule::Touched).len(), 2);
        assert_eq!(found(&cells, part, CoverageRule::Centre), [(0, 1, 1.0)]);
    }
}

#[test]
fn missing_centres() {
    // A plane of 5 × 6 cells; without one in the middle, one at a corner, and a strip of one cell.
    let (mut lat, mut lon) = (Vec::new(), Vec::new());
    for cell in 0..30 {
        lat.push(f64::from(cell / 6) + 0.2 * f64::from(cell % 6));
        lon.push(f64::from(cell % 6) - 0.1 * f64::from(cell / 6));
    }
    let whole = CurvilinearCells::from_centres(&lat, &lon, 6).unwrap();
    for gone in [14, 0, 29, 6] {
        let mut lat = lat.clone();
        lat[gone] = f64::NAN;
        let cells = CurvilinearCells::from_centres(&lat, &lon, 6).unwrap();
        let expected: Found =
            covered(&whole, ALL).into_iter().filter(|it| it.0 * 6 + it.1 != gone).collect();
        assert_eq!(covered(&cells, ALL), expected);
        for cell in (0..30).filter(|it| *it != gone) {
            let [a, b] = [&whole, &cells].map(|it| it.cell_area(cell / 6, cell % 6));
            assert!((a / b - 1.0).abs() < 1e-12, "{gone} {cell}");
        }
    }
    let alone = f64::NAN;
    let error =
        CurvilinearCells::from_centres(&[0.0, alone, alone, alone, 5.0, alone], &[0.0; 6], 3);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("none of the grid's 6 cells has an area"), "{error}");
    let none = CurvilinearCells::from_centres(&[alone; 4], &[alone; 4], 2).unwrap();
    assert_eq!(covered(&none, ALL), []);
    let empty = CurvilinearCells::try_new(&[], &[], 7, None).unwrap();
    assert_eq!(covered(&empty, ALL), []);
}

#[test]
fn halos_do_not_close_a_circle() {
    // The last two columns repeat the first two, as in NEMO; so do the cells.
    let lon: Vec<f64> = (0..38).map(|it| f64::from(it % 36) * 10.0).collect();
    let lons: Vec<f64> = lon.iter().chain(&lon).copied().collect();
    let lats: Vec<f64> = (0..76).map(|it| f64::from(it / 38) * 10.0).collect();
    let cells = CurvilinearCells::from_centres(&lats, &lons, 38).unwrap();
    let expected = cell_area([-5.0, 5.0], [0.0, 10.0]);
    for column in 0..38 {
        assert!((cells.cell_area(0, column) / expected - 1.0).abs() < 1e-12, "{column}");
    }
    let first = covered(&cells, "POLYGON ((-5 -5, 5 -5, 5 5, -5 5, -5 -5))");
    assert_eq!(first, [(0, 0, 1.0), (0, 36, 1.0)]);
}

#[test]
fn many_rings_around_a_cell_cost_nothing() {
    // 2000 frames, one in another, around 400 cells.
    let frame = |size: f64| {
        let ring = |size: f64| {
            format!(
                "({} {}, {} {}, {} {}, {} {}, {} {})",
                -size, -size, size, -size, size, size, -size, size, -size, -size
            )
        };
        format!("({}, {})", ring(size + 0.005), ring(size))
    };
    let frames: Vec<String> = (0..2000).map(|it| frame(12.0 + 0.01 * f64::from(it))).collect();
    let region = Region::from_wkt(&format!("MULTIPOLYGON ({})", frames.join(", "))).unwrap();
    let lon: Vec<f64> = (0..400).map(|it| f64::from(it % 20) - 9.5).collect();
    let lat: Vec<f64> = (0..400).map(|it| f64::from(it / 20) - 9.5).collect();
    let cells = CurvilinearCells::from_centres(&lat, &lon, 20).unwrap();
    let mut coverage = cells.coverage(&region, CoverageRule::Coverage).unwrap();
    assert_eq!(coverage.largest_window(), 0);
    assert_eq!(coverage.next(), None);
}

#[test]
fn errors() {
    let error = |it: gridfusion_core::Result<CurvilinearCells>| it.unwrap_err().to_string();
    let centres = |lat: &[f64], lon: &[f64], columns| {
        error(CurvilinearCells::from_centres(lat, lon, columns))
    };
    assert_eq!(
        centres(&[0.0; 3], &[0.0; 3], 2),
        "3 latitudes and 3 longitudes do not fill rows of 2 cells"
    );
    assert_eq!(
        centres(&[0.0; 4], &[0.0; 3], 2),
        "4 latitudes and 3 longitudes do not fill rows of 2 cells"
    );
    assert!(centres(&[0.0; 4], &[0.0; 4], 0).ends_with("rows of 0 cells"));
    assert_eq!(
        centres(&[0.0; 3], &[0.0; 3], 3),
        "the grid has 1 rows and 3 columns: without neighbours on both axes, the corners of its cells need a variable of bounds"
    );
    assert!(centres(&[0.0; 3], &[0.0; 3], 1).starts_with("the grid has 3 rows and 1 columns"));
    assert_eq!(
        centres(&[0.0, 0.0, 0.0, 91.0], &[0.0; 4], 2),
        "the latitude of the cell in row 1 and column 1 is 91, outside -90 to 90"
    );
    assert_eq!(
        centres(&[0.0; 4], &[0.0, f64::INFINITY, 0.0, 0.0], 2),
        "the longitude of the cell in row 0 and column 1 is inf, outside -360 to 720"
    );
    let corners = |lat: &[f64], lon: &[f64], columns, centres| {
        error(CurvilinearCells::try_new(lat, lon, columns, centres))
    };
    let (lat, lon) = ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]);
    assert_eq!(
        corners(&lat[1..], &lon[1..], 1, None),
        "3 latitudes and 3 longitudes of corners are not four of each for every cell"
    );
    assert_eq!(
        corners(&[0.0, 0.0, -90.1, 0.0], &lon, 1, None),
        "the latitude of corner 2 of the cell in row 0 and column 0 is -90.1, outside -90 to 90"
    );
    assert_eq!(
        corners(&lat, &lon, 3, None),
        "1 latitudes and 1 longitudes do not fill rows of 3 cells"
    );
    assert_eq!(
        corners(&lat, &lon, 1, Some([&[0.5], &[]])),
        "1 latitudes and 0 longitudes of centres are not one of each for the 1 cells with corners"
    );
    assert!(
        corners(&lat, &lon, 1, Some([&[99.0], &[0.5]]))
            .starts_with("the latitude of the centre of the cell")
    );
    assert_eq!(
        corners(&lat, &[0.0, 1.0, 0.0, 1.0], 1, None),
        "the edges of 1 of the grid's 1 cells cross: give the four corners of each cell one after another around it"
    );
    let cells =
        CurvilinearCells::try_new(&[80.0, 80.0, 90.000_002, 90.000_002], &lon, 1, None).unwrap();
    assert_eq!(covered(&cells, ALL).len(), 1);
    let region = |text: &str| {
        let region = Region::from_wkt(text).unwrap();
        cells.coverage(&region, CoverageRule::Coverage).unwrap_err().to_string()
    };
    assert!(region("POLYGON ((0 0, 1 0, 1 100, 0 0))").starts_with("(1, 100) of the outer ring"));
    assert!(
        region("POLYGON ((-100 0, 300 0, 300 1, -100 1, -100 0))").contains("covers places twice")
    );
}
