//! The pictures of `gridfusion plot`; `plot_files` has the files that it writes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Outcome, STATIONS, run};

/// A temporary directory for one picture.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

pub(crate) fn plot(sql: &str, file: &Path, more: &[&str]) -> Outcome {
    let args = ["plot", sql, STATIONS, "-o", file.to_str().unwrap()];
    run(&[&args[..], more].concat())
}

/// Plots a query as SVG.
fn svg(sql: &str, more: &[&str]) -> Svg {
    let folder = Folder::new();
    let file = folder.file("a.svg");
    let outcome = plot(sql, &file, &[more, &["-q"]].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{sql}: {outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert_eq!(folder.files(), ["a.svg"]);
    Svg(fs::read_to_string(file).unwrap())
}

struct Svg(String);

/// A rectangle of a picture, in pixels.
#[derive(Debug, Clone, PartialEq)]
struct Rect {
    x: i32,
    y: i32,
    width: i32,
    height: i32,
    fill: String,
}

impl Svg {
    fn marks(&self, tag: &str) -> Vec<&str> {
        let start = format!("<{tag} ");
        self.0.split(start.as_str()).skip(1).map(|rest| rest.split('>').next().unwrap()).collect()
    }

    fn texts(&self) -> Vec<&str> {
        let texts = self.0.split("<text ").skip(1);
        texts.map(|text| text.split(['>', '<']).nth(1).unwrap().trim()).collect()
    }

    fn rects(&self) -> Vec<Rect> {
        let number = |mark: &str, key: &str| attribute(mark, key).parse().unwrap();
        let rect = |mark: &str| Rect {
            x: number(mark, "x"),
            y: number(mark, "y"),
            width: number(mark, "width"),
            height: number(mark, "height"),
            fill: attribute(mark, "fill").to_owned(),
        };
        // The areas that clip lines have no colour.
        let marks = self.marks("rect").into_iter().filter(|mark| mark.contains("fill="));
        marks.map(rect).collect()
    }

    /// Returns the background of the plot, and the cells of the heat map.
    fn cells(&self) -> (Rect, Vec<Rect>) {
        let rects = self.rects();
        let ground = rects.iter().position(|rect| rect.fill == "#E1E1E4").unwrap();
        let is_cell = |rect: &&Rect| rect.fill != "#787880";
        let cells = rects[ground + 1..].iter().take_while(is_cell).cloned().collect();
        (rects[ground].clone(), cells)
    }
}

fn attribute<'a>(mark: &'a str, key: &str) -> &'a str {
    let start = format!("{key}=\"");
    let at = mark.find(&format!(" {start}")).map_or_else(|| mark.find(&start), |at| Some(at + 1));
    mark[at.unwrap() + start.len()..].split('"').next().unwrap()
}

#[test]
fn a_heat_map_has_a_cell_for_each_value() {
    let sql =
        "SELECT * FROM (VALUES (0, 10, 0.0), (1, 10, 1.0), (0, 20, NULL), (1, 20, 0.5)) t(x, y, v)";
    let svg = svg(sql, &["--title", "A <title>"]);
    let (ground, cells) = svg.cells();
    let [least, greatest, middle] = &cells[..] else { panic!("{cells:?}") };
    assert_eq!([&*least.fill, &*greatest.fill], ["#440154", "#FDE725"]);
    assert_eq!(middle.fill, "#22908B");
    // x increases to the right, and y upwards.
    assert_eq!((least.x, least.x + least.width), (ground.x, greatest.x));
    assert_eq!((least.y, least.y + least.height), (greatest.y, ground.y + ground.height));
    assert_eq!((middle.x, middle.y), (greatest.x, ground.y));
    let texts = svg.texts();
    for text in ["A &lt;title&gt;", "x", "y", "v", "0.0", "1.0", "10", "20"] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
}

#[test]
fn cells_end_half_way_and_axes_go_upwards() {
    let sql = "SELECT * FROM (VALUES (4, 90, 1), (1, 90, 2), (0, 90, 3), (4, -90, 4)) t(x, y, v)";
    let svg = svg(sql, &["--width", "700"]);
    let (ground, mut cells) = svg.cells();
    cells.sort_by_key(|cell| (cell.y, cell.x));
    let [zero, one, four, south] = &cells[..] else { panic!("{cells:?}") };
    let sixth = f64::from(ground.width) / 6.0;
    for (cell, times) in [(zero, 1.0), (one, 2.0), (four, 3.0), (south, 3.0)] {
        assert!((f64::from(cell.width) - times * sixth).abs() <= 1.0, "{cells:?}");
    }
    assert!(north_of(four, south) && four.x == south.x, "{cells:?}");
    assert!(svg.0.contains(r#"width="700""#));
}

fn north_of(cell: &Rect, other: &Rect) -> bool {
    cell.y + cell.height == other.y
}

#[test]
fn titles_and_units_come_from_attributes() {
    let sql = "SELECT time, station, value FROM temperature WHERE time < '2024-01-02'";
    let of_columns = svg(sql, &[]);
    let (_, cells) = of_columns.cells();
    // Two of 24 × 6 values are NULL.
    assert_eq!(cells.len(), 142);
    let texts = of_columns.texts();
    for text in ["time", "station", "air temperature at 2 m [degC]", "Bergen", "Tromso", "12:00"] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    let sql = "SELECT date_trunc('month', time) AS month, station, avg(value) FROM precipitation GROUP BY 1, 2";
    let texts = svg(sql, &[]).texts().join("|");
    assert!(
        texts.contains("|month|station|") && texts.contains("|avg(precipitation) [mm h-1]"),
        "{texts}"
    );
    let sql =
        "SELECT station, max(value) AS wettest, count(*) AS n FROM precipitation GROUP BY station";
    let texts = svg(sql, &[]).texts().join("|");
    assert!(texts.contains("wettest|n|") && !texts.contains("[mm"), "{texts}");
    // The columns of a semi join are those of one side.
    for (side, other, unit) in
        [("RIGHT", "temperature", "[mm h-1]"), ("LEFT", "elevation", "[degC]")]
    {
        let (left, right) = match side {
            "RIGHT" => (other, "precipitation"),
            _ => ("temperature", other),
        };
        let of = if side == "RIGHT" { "b" } else { "a" };
        let sql = format!(
            "SELECT {of}.time, {of}.value FROM {left} AS a {side} SEMI JOIN {right} AS b ON a.station = b.station WHERE {of}.station = 'Oslo'"
        );
        let texts = svg(&sql, &[]).texts().join("|");
        assert!(texts.contains(unit), "{sql}: {texts}");
    }
}

#[test]
fn names_are_categories_from_above() {
    let sql = "SELECT * FROM (VALUES (1, 'b', 0), (2, 'b', 1), (1, 'a', 2)) t(x, y, v)";
    let (ground, cells) = svg(sql, &[]).cells();
    assert_eq!((cells[0].fill.as_str(), cells[0].y), ("#440154", ground.y));
    assert_eq!(cells.last().unwrap().y, ground.y);
    assert!(cells[1].fill == "#FDE725" && north_of(&cells[0], &cells[1]), "{cells:?}");
}

#[test]
fn lines_are_broken_where_values_are_missing() {
    let sql = "SELECT * FROM (VALUES (3, 5, 3), (1, 4, 1), (2, NULL, 2), (4, 4, 4), (0, 7, 0)) t(x, y, z)";
    let svg = svg(sql, &[]);
    let lines = svg.marks("polyline");
    let fills: Vec<&str> = lines.iter().map(|line| attribute(line, "stroke")).collect();
    assert_eq!(fills, ["#0072B2", "#0072B2", "#D55E00"]);
    let points = |line: &str| -> Vec<(i32, i32)> {
        let points = attribute(line, "points").split_whitespace();
        let number = |text: &str| text.parse().unwrap();
        points
            .map(|point| point.split_once(',').map(|(x, y)| (number(x), number(y))).unwrap())
            .collect()
    };
    assert_eq!(lines.iter().map(|line| points(line).len()).collect::<Vec<_>>(), [2, 2, 5]);
    let rising = points(lines[2]);
    assert!(
        rising.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1),
        "{rising:?}"
    );
    // A legend has the names of both columns, and the y axis has no title.
    let texts = svg.texts();
    assert!(texts.contains(&"y") && texts.contains(&"z") && texts.contains(&"x"), "{texts:?}");
}

#[test]
fn columns_decide_the_kind_unless_it_is_given() {
    let table = "FROM (VALUES ('a', 1.5, 2), ('b', 3, 1), ('c', -1, 5)) t(name, v, w)";
    let bars = svg(&format!("SELECT name, v {table}"), &[]);
    let filled = bars.rects().into_iter().filter(|rect| rect.fill == "#0072B2").collect::<Vec<_>>();
    let [a, b, c] = &filled[..] else { panic!("{filled:?}") };
    assert!(
        a.y + a.height == b.y + b.height && b.height > a.height && c.y == a.y + a.height,
        "{filled:?}"
    );
    assert!(a.x + a.width < b.x && b.x + b.width < c.x, "{filled:?}");
    let points = svg(&format!("SELECT name, v {table}"), &["--kind", "scatter"]);
    assert_eq!((points.marks("circle").len(), points.marks("polyline").len()), (3, 0));
    let line = svg(&format!("SELECT v, w {table}"), &[]);
    assert_eq!(line.marks("polyline").len(), 1);
    let repeated = svg("SELECT * FROM (VALUES (1, 2), (1, 3), (2, 4)) t(x, y)", &[]);
    assert_eq!(repeated.marks("circle").len(), 3);
    let sql = "SELECT time, station, value FROM temperature WHERE time < '2024-01-02'";
    let by_station = svg(sql, &["--kind", "line"]);
    let mut colors: Vec<&str> =
        by_station.marks("polyline").iter().map(|line| attribute(line, "stroke")).collect();
    colors.dedup();
    assert_eq!(colors.len(), 6);
    assert!(by_station.texts().contains(&"Reykjavik"));
    let all = svg(&format!("SELECT v, w, w AS z {table}"), &["--kind", "heatmap"]);
    assert_eq!(all.cells().1.len(), 3);
}

/// A grid of 30 × 40 points whose rows and columns are bent, as of a regional model.
const BENT: &str = "SELECT 10 + i * 0.5 + j * 0.1 AS \"LON\", 45 + j * 0.3 - (i - 20) * (i - 20) * 0.01 AS \"LAT\", i + j AS v
    FROM (SELECT value AS i FROM generate_series(0, 39)), (SELECT value AS j FROM generate_series(0, 29)) ORDER BY j, i";

#[test]
fn curvilinear_grids_are_maps_of_cells() {
    let map = svg(BENT, &[]);
    assert_eq!(map.marks("polygon").len(), 1200);
    assert!(map.marks("polyline").len() > 5, "no coast");
    let (ground, _) = map.cells();
    // 24 degrees of longitude at 46.8° north, and 13 of latitude.
    let aspect = f64::from(ground.width) / f64::from(ground.height);
    assert!((aspect - 22.9 * 47.4_f64.to_radians().cos() / 13.0).abs() < 0.1, "{aspect}");
    let plain = svg(BENT, &["--coastlines", "off", "--height", "620"]);
    assert_eq!((plain.marks("polygon").len(), plain.marks("polyline").len()), (1200, 0));
    // Without a height, the picture is as narrow as the map.
    let width = "width=\"1000\"";
    assert!(plain.0.contains(width) && !map.0.contains(width));
    let points = svg(BENT, &["--kind", "scatter"]);
    assert_eq!(points.marks("circle").len(), 1200);
}

#[test]
fn axes_take_limits_scales_and_directions() {
    let table = "FROM (VALUES (1, 1), (10, 100), (100, 10000)) t(x, y)";
    let xs = |more: &[&str]| -> Vec<f64> {
        let more = [&["--kind", "scatter"], more].concat();
        let svg = svg(&format!("SELECT x, y {table}"), &more);
        svg.marks("circle").iter().map(|it| attribute(it, "cx").parse().unwrap()).collect()
    };
    let log = xs(&["--log", "x,y"]);
    assert!((log[1] - f64::midpoint(log[0], log[2])).abs() <= 1.0, "{log:?}");
    let linear = xs(&[]);
    assert!(linear[1] - linear[0] < (linear[2] - linear[0]) / 8.0, "{linear:?}");
    assert!(xs(&["--invert", "x"]).is_sorted_by(|one, next| one > next));
    assert_eq!(xs(&["--x-limits", "-5..50"]).len(), 2);
    assert_eq!(xs(&["--x-limits", "5.."]).len(), 2);
    let sql = "SELECT time, value FROM temperature WHERE station = 'Oslo'";
    let texts = svg(sql, &["--x-limits", "2024-01-05..2024-01-07 12:00"]).texts().join("|");
    assert!(texts.contains("2024-01-06") && !texts.contains("2024-01-09"), "{texts}");
    let folder = Folder::new();
    let refused = |more: &[&str]| plot(sql, &folder.file("a.svg"), more);
    for (more, code, reason) in [
        (&["--x-limits", "5"][..], 2, "LOW..HIGH"),
        (&["--x-limits", "a..b"], 1, "limit a is not a date or time"),
        (&["--y-limits", "0..9", "--log", "y"], 1, "limits are positive there"),
        (&["--coastlines", "on"], 1, "coastlines need longitudes and latitudes"),
        (&["--facet", "ship"], 1, "--facet needs the name of one column of the query: time, value"),
    ] {
        let outcome = refused(more);
        assert_eq!(outcome.code, Some(code), "{more:?}: {outcome:?}");
        assert!(outcome.stderr.contains(reason), "{more:?}: {outcome:?}");
    }
}

#[test]
fn colours_follow_the_options() {
    let sql = "SELECT * FROM (VALUES (0, 1, -1), (0, 2, 0), (1, 1, 3)) t(x, y, v)";
    let fills = |more: &[&str]| -> Vec<String> {
        svg(sql, more).cells().1.into_iter().map(|cell| cell.fill).collect()
    };
    let [least, _, greatest] = &fills(&[])[..] else { panic!() };
    assert_eq!([least.as_str(), greatest], ["#440154", "#FDE725"]);
    let [least, _, greatest] = &fills(&["--colors", "cividis", "--color-limits", "-1..1"])[..]
    else {
        panic!()
    };
    assert_eq!([least.as_str(), greatest], ["#00224E", "#FEE838"]);
    let categories = fills(&["--colors", "categories"]);
    assert_eq!(categories, ["#0072B2", "#D55E00", "#009E73"]);
    // Zero is grey, and the background has another colour.
    let diverging = svg(sql, &["--colors", "diverging"]);
    let fill = |fill: &str| diverging.rects().iter().any(|rect| rect.fill == fill);
    assert!(fill("#DDDDDD") && fill("#B40426") && !fill("#E1E1E4"), "{:?}", diverging.rects());
    assert_eq!(fills(&["--log", "color"]).len(), 1);
}

#[test]
fn panels_have_the_values_of_a_column() {
    let sql = "SELECT station, time, value FROM temperature WHERE time < '2024-01-03'";
    let panels = svg(sql, &["--facet", "station"]);
    let texts = panels.texts();
    for station in ["Bergen", "Oslo", "Reykjavik", "Tromso"] {
        assert_eq!(texts.iter().filter(|it| **it == station).count(), 1, "{texts:?}");
    }
    assert_eq!(panels.0.matches("<clipPath ").count(), 6);
}

/// The air temperature of the world by month, whose labels are the first days of months, with bounds.
fn air(sql: &str, more: &[&str]) -> Svg {
    let folder = Folder::new();
    let file = folder.file("a.svg");
    let air = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/air.nc");
    let args = [&["plot", sql, air, "-q", "-o", file.to_str().unwrap()], more].concat();
    let outcome = run(&args);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    Svg(fs::read_to_string(file).unwrap())
}

#[test]
fn contours_are_lines_over_cells() {
    let sql = "SELECT lon, lat, lat AS v FROM t2m WHERE time = '2023-01-01'";
    let lines = |more: &[&str]| {
        let map = air(sql, &[&["--coastlines", "off"], more].concat());
        (map.marks("polyline").len(), map.texts().join("|"))
    };
    assert_eq!(lines(&[]).0, 0);
    assert!(lines(&["--contours", "auto"]).0 >= 5);
    let (count, texts) = lines(&["--contours", "-30.5,41.25"]);
    assert!(count >= 2 && texts.contains("-30.5|41.25|"), "{texts}");
    let bent = svg(BENT, &["--contours", "34.5", "--coastlines", "off"]);
    assert_eq!(bent.marks("polyline").len(), 1);
    let folder = Folder::new();
    let refused = |sql: &str, more: &[&str]| plot(sql, &folder.file("a.svg"), more);
    let outcome = refused("SELECT 1 AS a, 2 AS b", &["--contours", "few"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("contour lines are auto, or numbers"), "{outcome:?}");
    let outcome = refused("SELECT 1 AS a, 2 AS b", &["--contours", "auto"]);
    assert!(outcome.stderr.contains("contour lines need the cells of a heat map"), "{outcome:?}");
}

#[test]
fn cells_end_where_the_bounds_of_the_file_are() {
    let months = |filter: &str, by: &str| {
        let sql = format!("SELECT {by}, lat, avg(value) FROM t2m WHERE {filter} GROUP BY 1, 2");
        let (ground, mut cells) = air(&sql, &[]).cells();
        cells.retain(|cell| cell.y == ground.y);
        cells.sort_by_key(|cell| cell.x);
        let left = f64::from(ground.x);
        let share = move |x: i32| (f64::from(x) - left) / f64::from(ground.width);
        cells.iter().map(|cell| (share(cell.x), share(cell.x + cell.width))).collect::<Vec<_>>()
    };
    let near = |cells: &[(f64, f64)], days: &[f64]| {
        let whole = days[days.len() - 1];
        cells.len() + 1 == days.len()
            && cells.iter().zip(days.windows(2)).all(|(cell, days)| {
                (cell.0 - days[0] / whole).abs() < 2e-3 && (cell.1 - days[1] / whole).abs() < 2e-3
            })
    };
    let quarter = "time BETWEEN '2023-01-01' AND '2023-03-01'";
    let cells = months(quarter, "time");
    assert!(near(&cells, &[0.0, 31.0, 59.0, 90.0]), "{cells:?}");
    let cells = months(quarter, "time AS month");
    assert!(near(&cells, &[0.0, 31.0, 59.0, 90.0]), "{cells:?}");
    // Another expression has no bounds: its cells end half way to their neighbours.
    let cells = months(quarter, "time + INTERVAL '0 days'");
    assert!(near(&cells, &[0.0, 31.0, 60.5, 88.5]), "{cells:?}");
    // A single month is a month long, so the axis has ticks within the month.
    let sql = "SELECT time, lat, avg(value) FROM t2m WHERE time = '2023-03-01' GROUP BY 1, 2";
    let texts = air(sql, &[]).texts().join("|");
    assert!(texts.starts_with("2023-03-06|2023-03-13|2023-03-20|2023-03-27|"), "{texts}");
}

#[test]
fn times_of_other_calendars_have_years() {
    let folder = Folder::new();
    let file = folder.file("a.svg");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/model.tet");
    let sql = "SELECT model_time, value FROM projection";
    let outcome = run(&["plot", sql, model, "-q", "-o", file.to_str().unwrap()]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let texts = Svg(fs::read_to_string(file).unwrap()).texts().join("|");
    assert!(texts.contains("2050-07") || texts.contains("2051"), "{texts}");
}

#[test]
fn clashing_names_become_different() {
    let sql = "SELECT station, min(value), min(value::DOUBLE) AS m, CAST(min(value) AS FLOAT)
               FROM elevation GROUP BY station";
    let texts = svg(sql, &[]).texts().join("|");
    assert!(texts.contains("|m|CAST(min(value) AS FLOAT)|"), "{texts}");
}
