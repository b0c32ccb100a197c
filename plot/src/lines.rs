//! Lines, points and bars: values by x.

use crate::axis::widened;
use crate::calendar::DAY;
use crate::colors::of_line;
use crate::column::{Column, Values};
use crate::error::{Result, refuse};
use crate::frame::Frame;
use crate::points::radius;
use crate::scene::{Color, Scene};
use crate::segments::inside;
use crate::settings::Scale;
use crate::spec::PlotKind;
use crate::thinned::thinned;

/// The most lines that a reader can tell apart.
const MOST: usize = 20;

/// The name of a line and its points.
type NamedLine = (String, Vec<(f64, f64)>);

/// The order in which a line goes through its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// From left to right.
    X,
    /// By the upright axis, for profiles.
    Y,
    /// As the rows come, for ways on a map.
    Rows,
}

/// A series of values by x, with its colour.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Pairs of x and value in order; NaN for NULL values.
    points: Vec<(f64, f64)>,
    pub(crate) color: Color,
}

/// The lines of a plot, and the label of their values.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) lines: Vec<Line>,
    pub(crate) label: String,
}

impl Lines {
    /// Returns the lines of the columns after the first. A column of text before a single column of values names the lines.
    ///
    /// # Errors
    /// `Usage` if the values are not numbers, or there are too many lines.
    pub(crate) fn new(columns: &[Column], order: Order) -> Result<Self> {
        let Some((x, values)) = columns.split_first() else {
            return refuse("there are no columns");
        };
        let (named, label): (Vec<NamedLine>, String) = match values {
            [Column { values: Values::Names(names), data: of, .. }, value] => {
                value.need_numbers()?;
                (by_name(x, names, of, value), value.label())
            }
            _ => {
                values.iter().try_for_each(Column::need_numbers)?;
                let points =
                    |y: &Column| x.data.iter().copied().zip(y.data.iter().copied()).collect();
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
            match order {
                Order::X => points.sort_by(|one, other| one.0.total_cmp(&other.0)),
                Order::Y => points.sort_by(|one, other| one.1.total_cmp(&other.1)),
                Order::Rows => {}
            }
            Line { name, points, color: of_line(number, count) }
        };
        Ok(Self { lines: named.into_iter().enumerate().map(line).collect(), label })
    }

    /// Returns the values of all lines.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().flat_map(|line| line.points.iter().map(|at| at.1))
    }

    /// Draws lines, points or bars, and returns the number of values. Bars have `room` at each x.
    pub(crate) fn draw(
        &self,
        scene: &mut Scene,
        frame: &Frame,
        kind: PlotKind,
        order: Order,
        room: f64,
    ) -> usize {
        let count = self.lines.len();
        let points: usize = self.lines.iter().map(|line| line.points.len()).sum();
        for (number, line) in self.lines.iter().enumerate() {
            match kind {
                PlotKind::Bars => draw_bars(scene, frame, line, (number, count), room),
                PlotKind::Scatter => draw_points(scene, frame, line, points),
                PlotKind::Line | PlotKind::Heatmap => draw_line(scene, frame, line, order),
            }
        }
        self.values().filter(|value| value.is_finite()).count()
    }
}

/// Returns the range of the axis of x. Bars have `room` there.
pub(crate) fn across_of(
    kind: PlotKind,
    values: &Values,
    (low, high): (f64, f64),
    scale: Scale,
    room: f64,
) -> (f64, f64) {
    match (values, kind) {
        (Values::Names(names), _) => (-0.5, names.len() as f64 - 0.5),
        (_, PlotKind::Bars) if scale == Scale::Linear => (low - room / 2.0, high + room / 2.0),
        (Values::Times(_), _) if low == high => (low - DAY as f64 / 2.0, high + DAY as f64 / 2.0),
        (_, PlotKind::Scatter | PlotKind::Bars) => widened((low, high), 0.02, scale),
        _ if low < high => (low, high),
        _ => widened((low, high), 0.0, scale),
    }
}

/// Returns the range of the axis of values.
pub(crate) fn up_of(kind: PlotKind, (low, high): (f64, f64), scale: Scale) -> (f64, f64) {
    if kind != PlotKind::Bars || scale == Scale::Log {
        return widened((low, high), 0.05, scale);
    }
    // Bars stand on zero.
    let (low, high) = (low.min(0.0), high.max(0.0));
    if low == high {
        return (0.0, 1.0);
    }
    let (below, above) = widened((low, high), 0.05, scale);
    (if low < 0.0 { below } else { 0.0 }, if high > 0.0 { above } else { 0.0 })
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

/// Draws a line with gaps at NULL values, and where an axis has no place for a value. A value without neighbours becomes a point.
fn draw_line(scene: &mut Scene, frame: &Frame, line: &Line, order: Order) {
    let width = 1.8 * scene.scale;
    let clip = frame.clip();
    let places: Vec<_> = line.points.iter().map(|(x, y)| frame.at(*x, *y)).collect();
    for part in places.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
        let points = match order {
            Order::X => thinned(part.to_vec(), frame.width()),
            Order::Y | Order::Rows => part.to_vec(),
        };
        match points[..] {
            [] => {}
            [lonely] if clip.holds(lonely) => scene.dot(lonely, width, line.color),
            [_] => {}
            _ if points.iter().all(|at| clip.holds(*at)) => {
                scene.path(points, width, line.color, clip);
            }
            _ => {
                for part in inside(&points, clip) {
                    scene.path(part, width, line.color, clip);
                }
            }
        }
    }
}

/// Draws the points of a line, where all lines have `count` points.
fn draw_points(scene: &mut Scene, frame: &Frame, line: &Line, count: usize) {
    let radius = radius(frame, count, scene.scale);
    for (x, y) in line.points.iter().filter(|(x, y)| frame.holds(*x, *y)) {
        scene.dot(frame.at(*x, *y), radius, line.color);
    }
}

/// Draws the bars of line `number` of `count`. The bars of all lines share the room at each x.
fn draw_bars(
    scene: &mut Scene,
    frame: &Frame,
    line: &Line,
    (number, count): (usize, usize),
    room: f64,
) {
    let width = room * 0.76 / count as f64;
    let ((start, end), (upper, lower)) = (frame.width(), frame.height());
    // A logarithmic axis has no zero, so bars stand on its lower end.
    let base = Some(frame.y.at(0.0)).filter(|base| !base.is_nan()).unwrap_or(lower);
    for (x, y) in
        line.points.iter().filter(|(x, y)| frame.y.share(*y).is_finite() && frame.x.holds(*x))
    {
        let from = x - room * 0.38 + number as f64 * width;
        let (left, right) = (frame.x.at(from), frame.x.at(from + width));
        let (left, right) = (left.min(right).max(start), left.max(right).min(end));
        if left.is_finite() && right.is_finite() {
            let up = [frame.y.at(*y), base].map(|it| it.clamp(upper, lower));
            scene.rect((left, right.max(left + 1.0)), (up[0], up[1]), line.color);
        }
    }
}

/// Returns the room for the bars at each x: the least distance between two different x, or 1.
pub(crate) fn bar_width(x: &Column) -> f64 {
    let mut places: Vec<f64> = x.data.iter().copied().filter(|at| at.is_finite()).collect();
    places.sort_by(f64::total_cmp);
    let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
    let least = gaps.fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::title::Title;

    fn column(values: Values, data: &[f64], unit: Option<&str>) -> Column {
        let title = Title { unit: unit.map(str::to_owned), ..Title::new("v") };
        Column::new(title, values, data.to_vec())
    }

    #[test]
    fn axes_hold_what_is_drawn() {
        let x = column(Values::Numbers, &[4.0, 1.0, 2.0, f64::NAN], None);
        let across = |kind, range| across_of(kind, &x.values, range, Scale::Linear, bar_width(&x));
        assert_eq!(across(PlotKind::Line, (1.0, 4.0)), (1.0, 4.0));
        assert_eq!(across(PlotKind::Bars, (1.0, 4.0)), (0.5, 4.5));
        let (low, high) = across(PlotKind::Line, (3.0, 3.0));
        assert!(low < 3.0 && 3.0 < high);
        let up = |kind, range| up_of(kind, range, Scale::Linear);
        assert_eq!(up(PlotKind::Bars, (2.0, 4.0)).0, 0.0);
        assert_eq!(up(PlotKind::Bars, (-4.0, -2.0)).1, 0.0);
        assert_eq!(up(PlotKind::Bars, (0.0, 0.0)), (0.0, 1.0));
        for kind in [PlotKind::Line, PlotKind::Scatter, PlotKind::Bars] {
            let (low, high) = up(kind, (f64::MIN, f64::MAX));
            assert!(low.is_finite() && high.is_finite() && low < high, "{kind:?}");
        }
    }

    #[test]
    fn only_a_unit_that_all_share_is_shown() {
        let of_unit = |unit| column(Values::Numbers, &[1.0], unit);
        assert_eq!(common_label(&[of_unit(Some("K")), of_unit(Some("K"))]), "[K]");
        assert_eq!(common_label(&[of_unit(Some("K")), of_unit(None)]), "");
        assert_eq!(common_label(&[of_unit(Some("K"))]), "v [K]");
        assert_eq!(
            column(
                Values::Times(crate::calendar::Calendar::Gregorian),
                &[1.0],
                Some("days since then")
            )
            .label(),
            "v"
        );
    }
}
