//! Heat maps: a coloured cell per pair of x and y.

use crate::colors::of_value;
use crate::column::{Column, Values};
use crate::error::{Result, refuse};
use crate::frame::{Axis, Frame, Span, draw_title, draw_upright, fits_above, label_font, widened};
use crate::scene::{AXIS, Anchor, NOTHING, Scene};
use crate::ticks::Tick;

/// The number of shades in the colour bar.
const SHADES: u32 = 128;

/// Draws a cell per row that has x and y, and returns the number of cells. Where there is no value,
/// the plot is grey.
///
/// # Errors
/// `Usage` if the values are not numbers, all of them are NULL, no row has x and y, or a cell has
/// two values.
pub(crate) fn draw(
    scene: &mut Scene,
    title: Option<&str>,
    [x, y, value]: [&Column; 3],
) -> Result<usize> {
    value.need_numbers()?;
    let (columns, rows) = (CellEdges::from_column(x), CellEdges::from_column(y));
    let cells = places(&columns, &rows, [x, y])?;
    let Some(range) = value.range() else {
        return refuse("there is nothing to plot: all values are NULL");
    };
    let scale = scene.scale();
    let (low, high) = if range.0 < range.1 { range } else { widened(range, 0.0) };
    let span = Span { label: String::new(), values: &Values::Numbers, low, high };
    let above = draw_title(scene, title);
    // The width of the labels decides where the colour bar is, so this axis has no final pixels yet.
    // Only its ticks and shares are used.
    let bar =
        Axis::new(span, 0.0, f64::from(scene.height) * 0.8, fits_above(scale, &Values::Numbers));
    let labels = bar.ticks.iter().map(|tick| label_font(scale).width(&tick.label));
    let room = (18.0 + 18.0 + 10.0 + 28.0) * scale + labels.fold(0.0, f64::max);
    let frame = Frame::new(scene, columns.span(x, false), rows.span(y, true), above, room);

    scene.rect(frame.width(), frame.height(), NOTHING);
    for (row, column, line) in &cells {
        let number = value.data[*row];
        if number.is_finite() {
            let (from, to) = (columns.edges[*column], columns.edges[column + 1]);
            let (below, over) = (rows.edges[*line], rows.edges[line + 1]);
            let ((left, bottom), (right, top)) = (frame.at(from, below), frame.at(to, over));
            scene.rect((left, right), (bottom, top), of_value(bar.share(number)));
        }
    }
    frame.draw_axes(scene, true);
    draw_bar(scene, &frame, &bar, &value.label());
    Ok(cells.len())
}

/// Draws the colour bar with its values to the right of the plot.
fn draw_bar(scene: &mut Scene, frame: &Frame, values: &Axis, label: &str) {
    let scale = scene.scale();
    let (top, bottom) = frame.height();
    let left = frame.width().1 + 18.0 * scale;
    let right = left + 18.0 * scale;
    let at = |share: f64| bottom + share * (top - bottom);
    scene.rect((left - 1.0, right + 1.0), (top - 1.0, bottom + 1.0), AXIS);
    for shade in 0..SHADES {
        let share = |shade: u32| f64::from(shade) / f64::from(SHADES);
        let color = of_value((share(shade) + share(shade + 1)) / 2.0);
        scene.rect((left, right), (at(share(shade)), at(share(shade + 1))), color);
    }
    for Tick { at: value, label } in &values.ticks {
        let y = at(values.share(*value)).round();
        scene.rect((right, right + 5.0 * scale), (y, y + 1.0), AXIS);
        let beside = (right + 9.0 * scale, y);
        scene.text(label, beside, label_font(scale), Anchor::Left);
    }
    let edge = f64::from(scene.width) - 18.0 * scale;
    draw_upright(scene, label, (edge, f64::midpoint(top, bottom)));
}

/// The cells along an axis.
#[derive(Debug)]
struct CellEdges {
    /// The distinct keys in ascending order.
    centers: Vec<f64>,
    /// The ends of cells, half way between neighbouring keys.
    edges: Vec<f64>,
}

impl CellEdges {
    fn from_column(column: &Column) -> Self {
        /// The width of a cell without neighbours on a time axis: a day in microseconds.
        const LONELY_TIME: f64 = 86_400e6;
        let mut centers: Vec<f64> =
            column.data.iter().copied().filter(|key| key.is_finite()).collect();
        centers.sort_by(f64::total_cmp);
        centers.dedup();
        let width = match column.values {
            Values::Times => LONELY_TIME,
            Values::Numbers | Values::Names(_) => 1.0,
        };
        Self { edges: edges(&centers, width), centers }
    }

    /// Returns the index of the cell with this key.
    fn place(&self, key: f64) -> Option<usize> {
        self.centers
            .binary_search_by(|center| center.partial_cmp(&key).unwrap_or(std::cmp::Ordering::Less))
            .ok()
    }

    /// Returns the axis of the cells. Names on an upright axis run from top to bottom.
    fn span<'a>(&self, column: &'a Column, is_upright: bool) -> Span<'a> {
        let first = self.edges.first().copied().unwrap_or(0.0);
        let last = self.edges.last().copied().unwrap_or(1.0);
        let is_turned = is_upright && matches!(column.values, Values::Names(_));
        let (low, high) = if is_turned { (last, first) } else { (first, last) };
        Span { label: column.label(), values: &column.values, low, high }
    }
}

fn edges(centers: &[f64], lonely: f64) -> Vec<f64> {
    let between = centers.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
    let between: Vec<f64> = between.collect();
    let (Some(first), Some(last)) = (centers.first(), centers.last()) else { return vec![] };
    let half =
        |center: &f64, edge: Option<&f64>| edge.map_or(lonely / 2.0, |edge| (edge - center).abs());
    let start = first - half(first, between.first());
    let end = last + half(last, between.last());
    [&[start][..], &between, &[end]].concat()
}

/// Returns the cell of each row that has x and y, as the row, the column and the line.
fn places(
    columns: &CellEdges,
    rows: &CellEdges,
    [x, y]: [&Column; 2],
) -> Result<Vec<(usize, usize, usize)>> {
    let mut cells: Vec<(usize, usize, usize)> = (0..x.data.len())
        .filter_map(|row| Some((row, columns.place(x.data[row])?, rows.place(y.data[row])?)))
        .collect();
    if cells.is_empty() {
        return refuse("there is nothing to plot: no row has both x and y");
    }
    cells.sort_by_key(|(row, column, line)| (*column, *line, *row));
    let twice = cells.windows(2).find(|pair| (pair[0].1, pair[0].2) == (pair[1].1, pair[1].2));
    if twice.is_some() {
        let (x, y) = (&x.title.name, &y.title.name);
        return refuse(format!(
            "a cell of the heat map has two values; aggregate them, by GROUP BY of the first two columns \
             (\"{x}\", \"{y}\"), or draw points with --kind scatter"
        ));
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_end_half_way_to_their_neighbours() {
        assert_eq!(edges(&[0.0, 1.0, 4.0], 1.0), [-0.5, 0.5, 2.5, 5.5]);
        assert_eq!(edges(&[7.0], 2.0), [6.0, 8.0]);
        assert_eq!(edges(&[], 2.0), Vec::<f64>::new());
    }
}
