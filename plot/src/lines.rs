//! Lines, points and bars: values by x.

use crate::calendar::DAY;
use crate::colors::of_line;
use crate::column::{Column, Values, range};
use crate::error::{Result, refuse};
use crate::frame::{Frame, Span, draw_title, label_font, widened};
use crate::scene::{Anchor, Color, Scene};
use crate::spec::PlotKind;
use crate::thinned::thinned;

/// The most lines that a reader can tell apart.
const MOST: usize = 20;

/// The name of a line and its points.
type NamedLine = (String, Vec<(f64, f64)>);

/// A series of values by x, with its colour.
#[derive(Debug)]
struct Line {
    name: String,
    /// Pairs of x and value, in the order of x; NaN for NULL values.
    points: Vec<(f64, f64)>,
    color: Color,
}

/// Draws values by the first column as lines, points or bars, and returns the number of values.
///
/// # Errors
/// `Usage` if the values are not numbers, all of them are NULL, or there are too many lines.
pub(crate) fn draw(
    scene: &mut Scene,
    title: Option<&str>,
    kind: PlotKind,
    columns: &[Column],
) -> Result<usize> {
    let (x, lines, label) = lines(columns)?;
    let values: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().map(|at| at.1)).collect();
    let (Some(across), Some(up)) = (x.range(), range(&values)) else {
        return refuse("there is nothing to plot: all values are NULL");
    };
    let (low, high) = across_of(kind, x, across);
    let across = Span { label: x.label(), values: &x.values, low, high };
    let (low, high) = up_of(kind, up);
    let upwards = Span { label, values: &Values::Numbers, low, high };
    let mut above = draw_title(scene, title);
    if lines.len() > 1 {
        above += draw_legend(scene, &lines, above);
    }
    let frame = Frame::new(scene, across, upwards, above, 0.0);
    scene.clip = frame.clip();
    frame.draw_grid(scene, kind != PlotKind::Bars);
    for (number, line) in lines.iter().enumerate() {
        match kind {
            PlotKind::Bars => draw_bars(scene, &frame, line, number, lines.len(), bar_width(x)),
            PlotKind::Scatter => draw_points(scene, &frame, line),
            PlotKind::Line | PlotKind::Heatmap => draw_line(scene, &frame, line),
        }
    }
    frame.draw_axes(scene, false);
    Ok(values.iter().filter(|value| value.is_finite()).count())
}

/// Returns the range of the axis of x.
fn across_of(kind: PlotKind, x: &Column, (low, high): (f64, f64)) -> (f64, f64) {
    match (&x.values, kind) {
        (Values::Names(names), _) => (-0.5, names.len() as f64 - 0.5),
        (_, PlotKind::Bars) => (low - bar_width(x) / 2.0, high + bar_width(x) / 2.0),
        (Values::Times, _) if low == high => (low - DAY as f64 / 2.0, high + DAY as f64 / 2.0),
        (_, PlotKind::Scatter) => widened((low, high), 0.02),
        _ if low < high => (low, high),
        _ => widened((low, high), 0.0),
    }
}

/// Returns the range of the axis of values.
fn up_of(kind: PlotKind, (low, high): (f64, f64)) -> (f64, f64) {
    if kind != PlotKind::Bars {
        return widened((low, high), 0.05);
    }
    // Bars stand on zero.
    let (low, high) = (low.min(0.0), high.max(0.0));
    if low == high {
        return (0.0, 1.0);
    }
    let (below, above) = widened((low, high), 0.05);
    (if low < 0.0 { below } else { 0.0 }, if high > 0.0 { above } else { 0.0 })
}

/// Returns the first column, the lines of the other columns, and the label of the axis of values.
fn lines(columns: &[Column]) -> Result<(&Column, Vec<Line>, String)> {
    let Some((x, values)) = columns.split_first() else { return refuse("there are no columns") };
    let (named, label): (Vec<NamedLine>, String) = match values {
        [Column { values: Values::Names(names), data: of, .. }, value] => {
            value.need_numbers()?;
            (by_name(x, names, of, value), value.label())
        }
        _ => {
            values.iter().try_for_each(Column::need_numbers)?;
            let points = |y: &Column| x.data.iter().copied().zip(y.data.iter().copied()).collect();
            let lines = values.iter().map(|y| (y.title.name.clone(), points(y))).collect();
            (lines, common_label(values))
        }
    };
    let count = named.len();
    if count > MOST {
        return refuse(format!(
            "{count} lines cannot be told apart; choose at most {MOST} of them"
        ));
    }
    let line = |(number, (name, mut points)): (usize, NamedLine)| {
        points.retain(|(x, _)| x.is_finite());
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Line { name, points, color: of_line(number, count) }
    };
    Ok((x, named.into_iter().enumerate().map(line).collect(), label))
}

/// Returns a line per name in `names`; `of` has the index of the name of each row.
fn by_name(x: &Column, names: &[String], of: &[f64], value: &Column) -> Vec<NamedLine> {
    let mut lines: Vec<_> = names.iter().map(|name| (name.clone(), vec![])).collect();
    for (row, name) in of.iter().enumerate().filter(|(_, name)| name.is_finite()) {
        if let Some((_, points)) = lines.get_mut(*name as usize) {
            points.push((x.data[row], value.data[row]));
        }
    }
    lines
}

/// Returns the label of a single column, or the unit that several columns share.
fn common_label(values: &[Column]) -> String {
    match values {
        [] => String::new(),
        [one] => one.label(),
        [first, rest @ ..] => {
            let unit = first.title.unit.as_ref();
            let shared =
                unit.filter(|_| rest.iter().all(|column| column.title.unit.as_ref() == unit));
            shared.map(|unit| format!("[{unit}]")).unwrap_or_default()
        }
    }
}

/// Draws a line with gaps at NULL values. A value without neighbours becomes a point.
fn draw_line(scene: &mut Scene, frame: &Frame, line: &Line) {
    let width = 1.8 * scene.scale();
    for part in line.points.split(|(_, y)| !y.is_finite()) {
        let points = part.iter().map(|(x, y)| frame.at(*x, *y)).collect();
        let points = thinned(points, frame.width());
        match points[..] {
            [] => {}
            [lonely] => scene.dot(lonely, width, line.color),
            _ => scene.path(points, width, line.color),
        }
    }
}

fn draw_points(scene: &mut Scene, frame: &Frame, line: &Line) {
    let radius = if line.points.len() > 2000 { 1.5 } else { 3.0 } * scene.scale();
    for (x, y) in line.points.iter().filter(|(_, y)| y.is_finite()) {
        scene.dot(frame.at(*x, *y), radius, line.color);
    }
}

/// Draws the bars of line `number` of `count`. The bars of all lines share the room at each x.
fn draw_bars(
    scene: &mut Scene,
    frame: &Frame,
    line: &Line,
    number: usize,
    count: usize,
    room: f64,
) {
    let width = room * 0.76 / count as f64;
    for (x, y) in line.points.iter().filter(|(_, y)| y.is_finite()) {
        let from = x - room * 0.38 + number as f64 * width;
        let ((left, top), (right, bottom)) = (frame.at(from, *y), frame.at(from + width, 0.0));
        scene.rect((left, right.max(left + 1.0)), (top, bottom), line.color);
    }
}

/// Returns the room for the bars at each x: the least distance between two different x, or 1.
fn bar_width(x: &Column) -> f64 {
    let mut places: Vec<f64> = x.data.iter().copied().filter(|at| at.is_finite()).collect();
    places.sort_by(f64::total_cmp);
    let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
    let least = gaps.fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 1.0 }
}

/// Draws the names of the lines in rows above the plot, and returns the height of the rows in pixels.
fn draw_legend(scene: &mut Scene, lines: &[Line], above: f64) -> f64 {
    let scale = scene.scale();
    let (font, swatch, gap, height) = (label_font(scale), 20.0 * scale, 7.0 * scale, 22.0 * scale);
    let (left, right) = (40.0 * scale, f64::from(scene.width) - 24.0 * scale);
    let (mut x, mut row) = (left, 0.0);
    for line in lines {
        let width = swatch + gap + font.width(&line.name) + 3.0 * gap;
        if x > left && x + width > right {
            (x, row) = (left, row + 1.0);
        }
        let y = above + (14.0 * scale) + row * height;
        scene.rect((x, x + swatch), (y - 2.0 * scale, y + 2.0 * scale), line.color);
        scene.text(&line.name, (x + swatch + gap, y), font, Anchor::Left);
        x += width;
    }
    (row + 1.0) * height
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Title;

    fn column(values: Values, data: &[f64], unit: Option<&str>) -> Column {
        let title = Title { name: "v".to_owned(), unit: unit.map(str::to_owned) };
        Column { title, values, data: data.to_vec() }
    }

    #[test]
    fn axes_hold_what_is_drawn() {
        let x = column(Values::Numbers, &[4.0, 1.0, 2.0, f64::NAN], None);
        assert_eq!(across_of(PlotKind::Line, &x, (1.0, 4.0)), (1.0, 4.0));
        assert_eq!(across_of(PlotKind::Bars, &x, (1.0, 4.0)), (0.5, 4.5));
        let (low, high) = across_of(PlotKind::Line, &x, (3.0, 3.0));
        assert!(low < 3.0 && 3.0 < high);
        assert_eq!(up_of(PlotKind::Bars, (2.0, 4.0)).0, 0.0);
        assert_eq!(up_of(PlotKind::Bars, (-4.0, -2.0)).1, 0.0);
        assert_eq!(up_of(PlotKind::Bars, (0.0, 0.0)), (0.0, 1.0));
        for kind in [PlotKind::Line, PlotKind::Scatter, PlotKind::Bars] {
            let (low, high) = up_of(kind, (f64::MIN, f64::MAX));
            assert!(low.is_finite() && high.is_finite() && low < high, "{kind:?}");
        }
    }

    #[test]
    fn only_a_unit_that_all_share_is_shown() {
        let of_unit = |unit| column(Values::Numbers, &[1.0], unit);
        assert_eq!(common_label(&[of_unit(Some("K")), of_unit(Some("K"))]), "[K]");
        assert_eq!(common_label(&[of_unit(Some("K")), of_unit(None)]), "");
        assert_eq!(common_label(&[of_unit(Some("K"))]), "v [K]");
        assert_eq!(column(Values::Times, &[1.0], Some("days since then")).label(), "v");
    }
}
