//! Whole pictures: where marks are, what axes and colours they have, and that no input stops the program.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};

use crate::lattice::tests::bent;
use crate::scene::{Color, NOTHING};
use crate::*;

/// A column of numbers, and what is known of them.
fn numbers(name: &str, role: Role, values: impl IntoIterator<Item = f64>) -> (Title, ArrayRef) {
    let title = Title { role, ..Title::new(name) };
    (title, Arc::new(Float64Array::from_iter_values(values)))
}

fn text(name: &str, values: Vec<&str>) -> (Title, ArrayRef) {
    (Title::new(name), Arc::new(StringArray::from(values)))
}

fn draw(columns: Vec<(Title, ArrayRef)>, spec: &Spec) -> Result<Picture> {
    let names =
        columns.iter().enumerate().map(|(at, (_, array))| (at.to_string(), Arc::clone(array)));
    let rows = RecordBatch::try_from_iter(names).unwrap();
    let titles = columns.into_iter().map(|(title, _)| title);
    let mut builder = ColumnsBuilder::new(&rows.schema(), titles, Format::Svg)?;
    builder.append(&rows)?;
    Picture::draw(&builder.finish()?, spec)
}

fn svg(columns: Vec<(Title, ArrayRef)>, spec: &Spec) -> String {
    String::from_utf8(draw(columns, spec).unwrap().encode(Format::Svg).unwrap()).unwrap()
}

fn attribute(mark: &str, key: &str) -> f64 {
    let start = format!(" {key}=\"");
    mark.split(start.as_str()).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
}

fn marks<'a>(svg: &'a str, tag: &str) -> Vec<&'a str> {
    svg.split(&format!("<{tag}")).skip(1).map(|mark| mark.split("/>").next().unwrap()).collect()
}

fn hex(Color(red, green, blue): Color) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Returns left, top, width and height of the area of the plot.
fn ground(svg: &str) -> [f64; 4] {
    let fill = format!("fill=\"{}\"", hex(NOTHING));
    let rect = marks(svg, "rect").into_iter().find(|it| it.contains(&fill)).unwrap();
    ["x", "y", "width", "height"].map(|key| attribute(rect, key))
}

/// The pixels of a PNG, and its width.
fn pixels(png: &[u8]) -> (Vec<u8>, usize) {
    let mut reader = png::Decoder::new(png).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (pixels, info.width as usize)
}

/// Each cell of a bent grid has its colour where its centre is, and the cells leave no gap.
#[test]
fn curvilinear_grids_are_filled() {
    let points = bent(30, 40);
    let column = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).collect::<Vec<_>>();
    let values: Vec<f64> = (0..points.len()).map(|at| (at / 40 % 2) as f64).collect();
    let columns = vec![
        numbers("x", Role::Other, column(|at| at.0)),
        numbers("y", Role::Other, column(|at| at.1)),
        numbers("v", Role::Other, values.clone()),
    ];
    let picture = draw(columns.clone(), &Spec::new(1000, 620)).unwrap();
    assert_eq!((picture.kind(), picture.values()), (PlotKind::Heatmap, 1200));
    let svg = svg(columns, &Spec::new(1000, 620));
    assert_eq!(marks(&svg, "polygon").len(), 1200);
    let [left, top, width, height] = ground(&svg);
    let (pixels, across) = pixels(&picture.encode(Format::Png).unwrap());
    let color = |x: f64, y: f64| {
        let start = (y as usize * across + x as usize) * 3;
        Color(pixels[start], pixels[start + 1], pixels[start + 2])
    };
    // The axes end at the outermost corners, so the mean of the centres tells the place of the axes less well than two cells do.
    let metric = crate::lattice::Metric::new(&points, false);
    let corners = crate::quads::quads(&points, 40, &metric);
    let all = || corners.iter().flatten().flatten();
    let (west, east) = (
        all().map(|it| it.0).fold(f64::MAX, f64::min),
        all().map(|it| it.0).fold(f64::MIN, f64::max),
    );
    let (south, north) = (
        all().map(|it| it.1).fold(f64::MAX, f64::min),
        all().map(|it| it.1).fold(f64::MIN, f64::max),
    );
    for ((x, y), value) in points.iter().zip(values) {
        let place = (
            left + (x - west) / (east - west) * width,
            top + (north - y) / (north - south) * height,
        );
        assert_eq!(color(place.0, place.1), ColorMap::Viridis.at(value), "{x}, {y}");
    }
}

#[test]
fn points_are_coloured_by_the_third_column() {
    let random = |seed: u64, count: u64| (0..count).map(move |at| ((at * seed) % 9973) as f64);
    let columns = |count: u64| {
        vec![
            numbers("x", Role::Other, random(7919, count)),
            numbers("y", Role::Other, random(104_729, count)),
            numbers("v", Role::Other, (0..count).map(|at| at as f64)),
        ]
    };
    let spec = Spec { kind: Some(PlotKind::Scatter), ..Spec::new(1000, 620) };
    let few = svg(columns(50), &spec);
    let circles = marks(&few, "circle");
    assert_eq!(circles.len(), 50);
    assert!(circles[0].contains("#440154") && circles[49].contains("#FDE725"), "{circles:?}");
    let many = svg(columns(30_000), &spec);
    let (few, many) = (attribute(circles[0], "r"), attribute(marks(&many, "circle")[0], "r"));
    assert!(many < few, "{many} {few}");
    let named = vec![
        numbers("x", Role::Other, [1.0, 2.0, 3.0]),
        numbers("y", Role::Other, [1.0, 2.0, 1.0]),
        text("kind", vec!["a", "b", "a"]),
    ];
    let named = svg(named, &spec);
    let fills = ["#0072B2", "#D55E00", "#0072B2"];
    let circles = marks(&named, "circle");
    assert!(circles.len() == 3 && circles.iter().zip(fills).all(|(it, fill)| it.contains(fill)));
}

fn world(from: f64) -> Vec<(Title, ArrayRef)> {
    let places = || (0..18).flat_map(|y| (0..36).map(move |x| (f64::from(x), f64::from(y))));
    vec![
        numbers("lon", Role::Longitude, places().map(|at| from + at.0 * 10.0)),
        numbers("lat", Role::Latitude, places().map(|at| at.1 * 10.0 - 85.0)),
        numbers("v", Role::Other, places().map(|at| at.0 + at.1)),
    ]
}

#[test]
fn maps_have_the_right_aspect_and_coasts() {
    for from in [-175.0, 5.0] {
        let spec = Spec { fits_map: true, ..Spec::new(1000, 620) };
        let map = svg(world(from), &spec);
        let [_, _, width, height] = ground(&map);
        assert!((width / height - 2.0).abs() < 0.02, "{width} {height}");
        assert!(attribute(&map, "height") < 600.0);
        assert!(marks(&map, "polyline").len() > 400);
        let off = Spec { coastlines: Some(false), ..spec };
        assert_eq!(marks(&svg(world(from), &off), "polyline").len(), 0);
    }
    let mut plain = world(5.0);
    plain[0].0.role = Role::Other;
    assert_eq!(marks(&svg(plain.clone(), &Spec::new(1000, 620)), "polyline").len(), 0);
    let on = Spec { coastlines: Some(true), ..Spec::new(1000, 620) };
    assert!(marks(&svg(plain, &on), "polyline").len() > 400);
}

/// Lines of a latitude and of another value have no map, because the other value is no latitude.
#[test]
fn only_places_are_a_map() {
    let way = || {
        vec![
            numbers("lon", Role::Longitude, [5.0, 9.0, 7.0]),
            numbers("lat", Role::Latitude, [50.0, 55.0, 60.0]),
        ]
    };
    let line = Spec { kind: Some(PlotKind::Line), ..Spec::new(1000, 620) };
    assert!(marks(&svg(way(), &line), "polyline").len() > 3);
    let picture = draw(way(), &Spec::new(1000, 620)).unwrap();
    assert_eq!(picture.kind(), PlotKind::Scatter);
    let value = numbers("v", Role::Other, [200.0, 300.0, 400.0]);
    let two = svg([way(), vec![value]].concat(), &line);
    assert_eq!(marks(&two, "polyline").len(), 2);
}

/// Returns the upper edge of the cell of the least value, and the area of the plot.
fn first_cell(role: Role, spec: &Spec) -> (f64, [f64; 4]) {
    let columns = vec![
        numbers("t", Role::Other, [1.0, 1.0, 2.0, 2.0]),
        numbers("z", role, [0.0, 10.0, 0.0, 10.0]),
        numbers("v", Role::Other, [0.0, 1.0, 1.0, 1.0]),
    ];
    let svg = svg(columns, spec);
    let cell = marks(&svg, "rect").into_iter().find(|it| it.contains("#440154")).unwrap();
    (attribute(cell, "y"), ground(&svg))
}

#[test]
fn depths_grow_downwards() {
    let plain = Spec::new(500, 400);
    let mut inverted = plain.clone();
    inverted.y.is_inverted = true;
    for (role, spec, is_above) in [
        (Role::Other, &plain, false),
        (Role::Other, &inverted, true),
        (Role::Down, &plain, true),
        (Role::Vertical, &plain, true),
        (Role::Down, &inverted, false),
    ] {
        let (top, [_, upper, _, height]) = first_cell(role, spec);
        let expected = if is_above { upper } else { upper + height / 2.0 };
        assert!((top - expected).abs() <= 1.0, "{role:?}: {top}");
    }
    // The line of a profile goes from depth to depth, not from left to right.
    let profile = vec![
        numbers("t", Role::Other, [5.0, 9.0, 7.0]),
        numbers("z", Role::Down, [0.0, 10.0, 20.0]),
    ];
    let svg = svg(profile, &plain);
    let points = marks(&svg, "polyline")[0].split("points=\"").nth(1).unwrap();
    let points = points.split('"').next().unwrap().split_whitespace();
    let places: Vec<(f64, f64)> = points
        .map(|it| {
            it.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).unwrap()
        })
        .collect();
    assert!(places.len() == 3 && places.is_sorted_by(|one, next| one.1 < next.1), "{places:?}");
}

#[test]
fn marks_beyond_the_limits_are_cut() {
    let mut spec = Spec::new(500, 400);
    spec.x.limits = Limits::parse("2..4").unwrap();
    spec.y.limits = Limits::parse("1..3").unwrap();
    for kind in [PlotKind::Line, PlotKind::Scatter, PlotKind::Bars] {
        let values = || (0..10).map(f64::from);
        let columns =
            vec![numbers("x", Role::Other, values()), numbers("y", Role::Other, values())];
        let svg = svg(columns, &Spec { kind: Some(kind), ..spec.clone() });
        let circles = marks(&svg, "circle").len();
        assert_eq!(circles, if kind == PlotKind::Scatter { 2 } else { 0 });
        for mark in marks(&svg, "rect").into_iter().filter(|it| it.contains("#0072B2")) {
            let (x, y) = (attribute(mark, "x"), attribute(mark, "y"));
            assert!(x + attribute(mark, "width") <= 500.0 && y >= 0.0 && x >= 0.0, "{mark}");
        }
        for line in marks(&svg, "polyline") {
            let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
            let xs = points.split_whitespace().map(|it| it.split(',').next().unwrap());
            let xs: Vec<f64> = xs.map(|x| x.parse().unwrap()).collect();
            assert!(xs.iter().all(|x| (0.0..=500.0).contains(x)), "{xs:?}");
        }
    }
    let columns = vec![
        numbers("x", Role::Other, [1.0, 1.0, 3.0, 3.0]),
        numbers("y", Role::Other, [0.0, 2.0, 0.0, 2.0]),
        numbers("v", Role::Other, [0.0, 1.0, 2.0, 3.0]),
    ];
    let svg = svg(columns, &spec);
    let [left, top, width, height] = ground(&svg);
    let cell = marks(&svg, "rect").into_iter().find(|it| it.contains("#FDE725")).unwrap();
    assert_eq!(
        ["x", "y", "width", "height"].map(|key| attribute(cell, key)),
        [left, top, width, height]
    );
}

#[test]
fn panels_share_their_scales() {
    let columns = vec![
        text("season", vec!["winter", "winter", "winter", "winter", "summer"]),
        numbers("x", Role::Other, [1.0, 1.0, 2.0, 2.0, 1.0]),
        numbers("y", Role::Other, [1.0, 2.0, 1.0, 2.0, 1.0]),
        numbers("v", Role::Other, [0.0, 1.0, 2.0, 3.0, 3.0]),
    ];
    let svg = svg(columns, &Spec { facet: Some(0), ..Spec::new(1000, 620) });
    assert!(svg.contains("winter") && svg.contains("summer"));
    let cells: Vec<_> =
        marks(&svg, "rect").into_iter().filter(|it| it.contains("#FDE725")).collect();
    let size = |cell: &str| (attribute(cell, "width"), attribute(cell, "height"));
    let [one, other] = [size(cells[0]), size(cells[1])];
    assert!((one.0 - other.0).abs() <= 1.0 && (one.1 - other.1).abs() <= 1.0, "{cells:?}");
}

/// Contour lines of a picture: the points of each polyline.
fn polylines(svg: &str) -> Vec<Vec<(f64, f64)>> {
    let points = |mark: &str| {
        let points = mark.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        let pair = |it: &str| {
            it.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).unwrap()
        };
        points.split_whitespace().map(pair).collect()
    };
    marks(svg, "polyline").into_iter().map(points).collect()
}

/// A grid of 21 × 11 values `x + shift * y`, whose y may descend.
fn slope(shift: f64, up: f64) -> Vec<(Title, ArrayRef)> {
    let places = || (0..11).flat_map(|y| (0..21).map(move |x| (f64::from(x), f64::from(y))));
    vec![
        numbers("x", Role::Other, places().map(|at| at.0)),
        numbers(
            "y",
            Role::Other,
            places().map(move |at| if up > 0.0 { at.1 } else { 10.0 - at.1 }),
        ),
        numbers(
            "v",
            Role::Other,
            places().map(move |at| at.0 + shift * if up > 0.0 { at.1 } else { 10.0 - at.1 }),
        ),
    ]
}

#[test]
fn contours_are_where_the_values_are() {
    let levels = Contours::parse("4.5,12").unwrap();
    let spec = Spec { contours: Some(levels), ..Spec::new(1000, 620) };
    let upright = svg(slope(0.0, 1.0), &spec);
    let [left, top, width, height] = ground(&upright);
    let lines = polylines(&upright);
    for (line, level) in lines.iter().zip([4.5, 12.0]) {
        let x = left + (level + 0.5) / 21.0 * width;
        assert!(line.iter().all(|at| (at.0 - x).abs() <= 1.0), "{line:?}");
        // Between the centres of the first and the last row.
        let ends = [line[0].1, line[line.len() - 1].1];
        let (high, low) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let half = height / 22.0;
        assert!((high - top - half).abs() <= 1.0 && (top + height - half - low).abs() <= 1.0);
    }
    assert_eq!(lines.len(), 2);
    // Both lines have their value as a label.
    assert!([">\n4.5\n<", ">\n12\n<"].iter().all(|it| upright.contains(it)), "{upright}");
    // The order of the rows changes no line.
    let one = polylines(&svg(slope(0.7, 1.0), &spec));
    let mut other = polylines(&svg(slope(0.7, -1.0), &spec));
    assert_eq!(one.len(), 2);
    for line in &mut other {
        if !one.contains(line) {
            line.reverse();
        }
    }
    assert_eq!(one, other);
}

#[test]
fn automatic_contours_are_those_of_the_bar() {
    let spec = Spec { contours: Some(Contours::Auto), ..Spec::new(1000, 620) };
    let slope_svg = svg(slope(0.0, 1.0), &spec);
    // 2, 4, … 18; the ends of the bar have none.
    assert_eq!(polylines(&slope_svg).len(), 9);
    let mut same = slope(0.0, 1.0);
    same[2] = numbers("v", Role::Other, [7.0; 231]);
    assert_eq!(polylines(&svg(same, &spec)).len(), 0);
    // A logarithmic bar has levels at powers of ten, which are halfway between powers of 100.
    let mut log = Spec { contours: Some(Contours::At(vec![10.0, 1000.0])), ..Spec::new(1000, 620) };
    log.color.scale = Scale::Log;
    let mut powers = slope(0.0, 1.0);
    let values = (0..231).map(|at| 100_f64.powi(at % 21 / 4));
    powers[2] = numbers("v", Role::Other, values);
    let powers = svg(powers, &log);
    let [left, _, width, _] = ground(&powers);
    for (line, x) in polylines(&powers).iter().zip([3.5, 7.5]) {
        let x = left + (x + 0.5) / 21.0 * width;
        assert!(line.iter().all(|at| (at.0 - x).abs() <= 1.0), "{line:?}");
    }
}

#[test]
fn contours_of_bent_grids_and_of_the_globe_are_whole() {
    let points = bent(30, 40);
    let columns = vec![
        numbers("x", Role::Other, points.iter().map(|at| at.0)),
        numbers("y", Role::Other, points.iter().map(|at| at.1)),
        numbers("v", Role::Other, points.iter().map(|at| at.0 + at.1)),
    ];
    let spec = Spec { contours: Some(Contours::At(vec![30.0])), ..Spec::new(1000, 620) };
    let bent = svg(columns, &spec);
    let [line] = &polylines(&bent)[..] else { panic!() };
    let slope = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
    let whole = slope(&[line[0], line[line.len() - 1]]);
    assert!(
        line.len() > 20
            && line.windows(9).all(|it| (slope(&[it[0], it[8]]) / whole - 1.0).abs() < 0.2)
    );
    // From edge to edge of the map, for both kinds of longitudes.
    for from in [5.0, -175.0] {
        let mut columns = world(from);
        let (_, latitudes) = &columns[1];
        columns[2] = (Title::new("v"), Arc::clone(latitudes));
        let off = Spec {
            coastlines: Some(false),
            contours: Some(Contours::At(vec![0.0])),
            ..Spec::new(1000, 620)
        };
        let map = svg(columns, &off);
        let [left, _, width, _] = ground(&map);
        let lines = polylines(&map);
        let least = lines.iter().flatten().map(|at| at.0).fold(f64::MAX, f64::min);
        let most = lines.iter().flatten().map(|at| at.0).fold(f64::MIN, f64::max);
        assert!((least - left).abs() <= 1.0 && (most - left - width).abs() <= 1.0, "{lines:?}");
    }
}

#[test]
fn contours_need_numbers_on_a_grid() {
    let auto = Spec { contours: Some(Contours::Auto), ..Spec::new(1000, 620) };
    let refused = |columns: Vec<(Title, ArrayRef)>, spec: &Spec| {
        draw(columns, spec).map_or_else(|error| error.to_string(), |_| String::new())
    };
    let line = vec![numbers("x", Role::Other, [1.0, 2.0]), numbers("y", Role::Other, [1.0, 2.0])];
    assert!(refused(line, &auto).starts_with("contour lines need the cells of a heat map"));
    let scatter = Spec { kind: Some(PlotKind::Scatter), ..auto.clone() };
    assert!(refused(slope(0.0, 1.0), &scatter).starts_with("contour lines need the cells"));
    let mut named = slope(0.0, 1.0);
    named[0] = text("station", ["Oslo", "Bergen", "Tromso"].repeat(77));
    named[1] = numbers("y", Role::Other, (0..231).map(|at| f64::from(at / 3)));
    assert!(refused(named, &auto).contains("\"station\" is text"));
    let mut kinds = slope(0.0, 1.0);
    kinds[2] = text("kind", ["sea", "land", "ice"].repeat(77));
    assert!(refused(kinds, &auto).starts_with("contour lines need values that are numbers"));
    let mut log = Spec { contours: Some(Contours::At(vec![-1.0, 3.0])), ..auto };
    log.color.scale = Scale::Log;
    assert!(refused(slope(0.0, 1.0), &log).starts_with("contour line -1 has no place"));
}

/// Values that computations handle badly.
const HOSTILE: [f64; 12] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e15,
];

#[test]
fn no_input_stops_the_program() {
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let roles =
        [Role::Other, Role::Longitude, Role::Latitude, Role::Down, Role::Vertical, Role::Anomaly];
    let kinds = [PlotKind::Line, PlotKind::Scatter, PlotKind::Bars, PlotKind::Heatmap];
    let maps = [ColorMap::Diverging, ColorMap::Categories, ColorMap::Magma];
    let limits = ["", "1..", "..1", "-5..5", "0.1..1e300"];
    let scales = [Scale::Linear, Scale::Log];
    let mut drawn = 0;
    for round in 0..120 {
        let count = [1, 2, 9, 30, 144][random(5)];
        let columns = (0..2 + random(4)).map(|at| {
            let style = random(4);
            let values: Vec<f64> = (0..count)
                .map(|row| match style {
                    0 => HOSTILE[random(HOSTILE.len())],
                    1 => (row % 12) as f64,
                    2 => (row / 12) as f64,
                    _ => random(100) as f64 - 50.0,
                })
                .collect();
            numbers(&format!("c{at}"), roles[random(roles.len())], values)
        });
        let columns: Vec<_> = columns.collect();
        let mut spec = Spec::new(200 + random(300) as u32, 200 + random(300) as u32);
        spec.kind = kinds.get(random(7)).copied();
        spec.fits_map = random(2) == 0;
        spec.coastlines = [None, None, Some(true), Some(false)][random(4)];
        let levels = vec![-10.0, 0.5, 1e15];
        spec.contours = match random(6) {
            0 => Some(Contours::Auto),
            1 => Some(Contours::At(levels)),
            _ => None,
        };
        spec.facet = Some(random(6)).filter(|at| *at < columns.len() && random(3) == 0);
        spec.color.map = maps.get(random(9)).copied();
        spec.color.scale = scales[usize::from(random(5) == 0)];
        spec.color.limits = Limits::parse(limits[random(5)]).unwrap_or_default();
        for axis in [&mut spec.x, &mut spec.y] {
            axis.scale = scales[usize::from(random(5) == 0)];
            axis.limits = Limits::parse(limits[random(9).min(4) % 5]).unwrap_or_default();
            axis.is_inverted = random(4) == 0;
        }
        if let Ok(picture) = draw(columns, &spec) {
            let (width, height) = picture.size();
            assert!(width <= spec.width && height <= spec.height);
            let svg = String::from_utf8(picture.encode(Format::Svg).unwrap()).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
            if round % 4 == 0 {
                drop(picture.encode(Format::Png).unwrap());
            }
            drawn += 1;
        }
    }
    assert!(drawn > 20, "{drawn}");
}
