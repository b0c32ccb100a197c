use super::Field;
use crate::lattice::Metric;
use crate::lattice::tests::bent;

type Point = (f64, f64);

fn square(rows: usize, width: usize) -> Vec<Point> {
    let points = (0..rows).flat_map(|y| (0..width).map(move |x| (x as f64, y as f64)));
    points.collect()
}

fn lines(points: &[Point], width: usize, values: &[f64], level: f64) -> Vec<Vec<Point>> {
    let metric = Metric::new(points, false);
    Field::new(points.to_vec(), values.to_vec(), width, metric).lines(level)
}

fn of(points: &[Point], value: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    points.iter().map(|(x, y)| value(*x, *y)).collect()
}

/// Numbers from 0 up to, but without, 1.
fn random() -> impl FnMut() -> f64 {
    let mut state = 7_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    }
}

#[test]
fn lines_of_a_cone_are_circles() {
    let points = square(41, 51);
    let values = of(&points, |x, y| (x - 25.0).hypot(y - 20.0));
    for radius in [3.5, 10.0, 18.25] {
        let [circle] = &lines(&points, 51, &values, radius)[..] else { panic!("{radius}") };
        assert_eq!(circle.first(), circle.last());
        assert!(circle.len() as f64 > 6.0 * radius);
        for (x, y) in circle {
            let away = (x - 25.0).hypot(y - 20.0);
            assert!((away - radius).abs() < 0.1 / radius + 0.01, "{radius}: {away}");
        }
        let turns = circle.windows(2).map(|pair| {
            let angle = |at: Point| (at.1 - 20.0).atan2(at.0 - 25.0);
            (angle(pair[1]) - angle(pair[0]) + 3.0 * std::f64::consts::PI)
                .rem_euclid(std::f64::consts::TAU)
                - std::f64::consts::PI
        });
        assert!((turns.sum::<f64>().abs() - std::f64::consts::TAU).abs() < 1e-9, "once around");
    }
    // A circle that leaves the grid is open, and is in four parts here.
    let parts = lines(&points, 51, &values, 27.0);
    assert_eq!(parts.len(), 4);
    let is_end = |at: &Point| at.0 == 0.0 || at.0 == 50.0 || at.1 == 0.0 || at.1 == 40.0;
    assert!(parts.iter().all(|it| is_end(&it[0]) && is_end(&it[it.len() - 1])), "{parts:?}");
}

/// The order of rows and columns changes nothing: latitudes may ascend or descend.
#[test]
fn lines_of_a_plane_are_straight() {
    let plane = |x: f64, y: f64| 2.0 * x + 3.0 * y + 1.0;
    for (across, up) in [(1.0, 1.0), (1.0, -1.0), (-2.5, 0.5)] {
        let points: Vec<Point> =
            square(9, 12).into_iter().map(|(x, y)| (x * across, y * up)).collect();
        let values = of(&points, plane);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        for level in [mean.round(), mean + 0.3] {
            let [line] = &lines(&points, 12, &values, level)[..] else { panic!("{level}") };
            assert!(line.iter().all(|(x, y)| (plane(*x, *y) - level).abs() < 1e-9), "{line:?}");
            let is_end = |(x, y): Point| {
                [x / across, y / up].iter().any(|at| [0.0, 8.0, 11.0].contains(&at.round()))
            };
            assert!(is_end(line[0]) && is_end(line[line.len() - 1]), "{line:?}");
        }
    }
}

/// Each point of a line is on an edge of the grid, where values that change evenly are those of the line.
#[test]
fn each_point_of_a_line_has_its_value() {
    let mut random = random();
    for points in [square(7, 9), bent(7, 9)] {
        for _ in 0..20 {
            let values: Vec<f64> = points.iter().map(|_| (random() * 8.0).round()).collect();
            let edges = (0..points.len()).flat_map(|at| {
                let right = (at % 9 < 8).then_some((at, at + 1));
                right.into_iter().chain((at + 9 < 63).then_some((at, at + 9)))
            });
            let edges: Vec<(usize, usize)> = edges.collect();
            for level in [0.5, 3.0, 4.7] {
                let lines = lines(&points, 9, &values, level);
                let mut crossed = 0;
                for (number, line) in lines.iter().enumerate() {
                    let is_closed = line[0] == line[line.len() - 1];
                    crossed += line.len() - usize::from(is_closed);
                    for at in line {
                        let has_value = |(from, to): &(usize, usize)| {
                            let (one, other) = (points[*from], points[*to]);
                            let length = (other.0 - one.0).hypot(other.1 - one.1);
                            let (here, there) = (
                                (at.0 - one.0).hypot(at.1 - one.1),
                                (at.0 - other.0).hypot(at.1 - other.1),
                            );
                            let value =
                                values[*from] + (values[*to] - values[*from]) * here / length;
                            (here + there - length).abs() < 1e-9 && (value - level).abs() < 1e-9
                        };
                        assert!(edges.iter().any(has_value), "{level}, line {number}: {at:?}");
                    }
                }
                // No crossing is left out, and none is met twice.
                let is_crossed = |(from, to): &&(usize, usize)| {
                    (values[*from] >= level) != (values[*to] >= level)
                };
                if level == 3.0 {
                    continue; // The ends of an open line may be at one point of the grid.
                }
                assert_eq!(crossed, edges.iter().filter(is_crossed).count(), "{level}: {lines:?}");
            }
        }
    }
}

#[test]
fn lines_break_where_a_value_is_missing() {
    let points = square(9, 9);
    let mut values = of(&points, |_, y| y);
    assert_eq!(lines(&points, 9, &values, 3.5).len(), 1);
    for missing in [f64::NAN, f64::INFINITY] {
        values[3 * 9 + 4] = missing;
        let parts = lines(&points, 9, &values, 3.5);
        let ends: Vec<_> = parts.iter().map(|it| (it[0].0, it[it.len() - 1].0)).collect();
        assert_eq!(ends, [(0.0, 3.0), (5.0, 8.0)]);
    }
    let mut holed = points.clone();
    holed[4] = (f64::NAN, 0.0);
    values[3 * 9 + 4] = 3.0;
    assert_eq!(lines(&holed, 9, &values, 0.5).len(), 2);
}

#[test]
fn the_mean_resolves_a_saddle() {
    let points = square(2, 2);
    let near = |line: &[Point], corner: Point| {
        line.iter().all(|at| (at.0 - corner.0).abs() + (at.1 - corner.1).abs() < 1.0)
    };
    for (values, corners) in [
        // The middle is high: lines are around the low corners.
        ([1.0, 0.0, 0.0, 1.0], [(1.0, 0.0), (0.0, 1.0)]),
        ([0.0, 0.9, 0.8, 0.0], [(1.0, 0.0), (0.0, 1.0)]),
        ([0.9, 0.0, 0.0, 0.8], [(0.0, 0.0), (1.0, 1.0)]),
        ([0.0, 1.0, 1.1, 0.0], [(0.0, 0.0), (1.0, 1.0)]),
    ] {
        let lines = lines(&points, 2, &values, 0.5);
        assert_eq!(lines.len(), 2);
        for corner in corners {
            assert_eq!(
                lines.iter().filter(|it| near(it, corner)).count(),
                1,
                "{values:?}: {lines:?}"
            );
        }
    }
}

#[test]
fn a_field_without_differences_has_no_line() {
    let points = square(5, 5);
    for level in [1.0, 2.0, 3.0] {
        assert!(lines(&points, 5, &[2.0; 25], level).is_empty());
    }
    for (rows, width) in [(1, 9), (9, 1), (0, 0), (1, 1)] {
        let points = square(rows, width);
        let values = of(&points, |x, y| x + y);
        assert!(lines(&points, width, &values, 0.5).is_empty());
    }
    let huge = lines(&square(2, 2), 2, &[f64::MIN, f64::MAX, f64::MIN, f64::MAX], 0.0);
    assert_eq!(huge, [[(0.5, 0.0), (0.5, 1.0)]]);
    let least = lines(&square(2, 2), 2, &[0.0, 5e-324, 0.0, 5e-324], 5e-324);
    assert!(least[0].iter().all(|at| (0.0..=1.0).contains(&at.0)), "{least:?}");
}

/// Lines around the globe have no gap between the last longitude and the first.
#[test]
fn lines_go_around_the_globe() {
    let points: Vec<Point> = (0..5)
        .flat_map(|y| (0..36).map(move |x| (f64::from(x) * 10.0, f64::from(y) * 20.0 - 40.0)))
        .collect();
    let values = of(&points, |_, y| y);
    let around = |wraps: bool, points: &[Point]| {
        let metric = Metric::new(points, wraps);
        Field::new(points.to_vec(), values.clone(), 36, metric).lines(10.0)
    };
    let [line] = &around(true, &points)[..] else { panic!() };
    assert_eq!(line.len(), 37);
    assert!(((line[36].0 - line[0].0).abs() - 360.0).abs() < 1e-9, "{line:?}");
    assert!(line.windows(2).all(|pair| (pair[1].0 - pair[0].0).abs() < 10.1), "{line:?}");
    let [line] = &around(false, &points)[..] else { panic!() };
    assert_eq!((line.len(), line[0].0, line[35].0), (36, 0.0, 350.0));
    // A part of the globe stays open, and may cross the edge of the map.
    let part: Vec<Point> = points
        .iter()
        .map(|(x, y)| ((x / 4.0 + 150.0 + 180.0).rem_euclid(360.0) - 180.0, *y))
        .collect();
    let [line] = &around(true, &part)[..] else { panic!() };
    assert_eq!(line.len(), 36);
    assert!(line.windows(2).all(|pair| (pair[1].0 - pair[0].0).abs() < 2.6), "{line:?}");
}
