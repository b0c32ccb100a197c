//! The cells of a heat map: a rectangle per pair of x and y.

use std::cmp::Ordering;

use crate::column::{Column, Values};
use crate::error::{Result, refuse};
use crate::frame::Frame;
use crate::key::Key;
use crate::scene::Scene;
use crate::settings::Scale;

/// The cells along an axis.
#[derive(Debug)]
pub(crate) struct CellEdges {
    /// The distinct keys in ascending order.
    centers: Vec<f64>,
    /// The lower and the upper end of each cell: those that a file declares, or half way between neighbouring keys.
    ends: Vec<(f64, f64)>,
}

impl CellEdges {
    pub(crate) fn new(column: &Column, scale: Scale) -> Self {
        /// The width of a cell without neighbours on a time axis: a day in microseconds.
        const LONELY_TIME: f64 = 86_400e6;
        let keys = column.data.iter().copied();
        let mut centers: Vec<f64> =
            keys.filter(|key| key.is_finite() && scale.place(*key).is_finite()).collect();
        centers.sort_by(f64::total_cmp);
        centers.dedup();
        let width = match column.values {
            Values::Times(_) => LONELY_TIME,
            Values::Numbers | Values::Names(_) => 1.0,
        };
        let half_way = || {
            let places: Vec<f64> = centers.iter().map(|center| scale.place(*center)).collect();
            let edges: Vec<f64> =
                edges(&places, width).into_iter().map(|edge| scale.value(edge)).collect();
            edges.windows(2).map(|pair| (pair[0], pair[1])).collect()
        };
        let declared = column.bounds.as_ref().and_then(|bounds| bounds.ends(&centers, scale));
        Self { ends: declared.unwrap_or_else(half_way), centers }
    }

    /// The number of cells.
    pub(crate) fn len(&self) -> usize {
        self.centers.len()
    }

    /// Returns the first and the last edge.
    pub(crate) fn range(&self) -> (f64, f64) {
        let first = self.ends.first().map_or(0.0, |it| it.0);
        (first, self.ends.last().map_or(1.0, |it| it.1))
    }

    /// Returns the places of the values of the cells on a scale: their keys, or the middle of cells whose key is at an end, such as
    /// months with the label of their first day.
    pub(crate) fn places(&self, scale: Scale) -> Vec<f64> {
        let place = |(key, (low, high)): (&f64, &(f64, f64))| match *low < *key && *key < *high {
            true => scale.place(*key),
            false => f64::midpoint(scale.place(*low), scale.place(*high)),
        };
        self.centers.iter().zip(&self.ends).map(place).collect()
    }

    /// Returns the number of the cell with this key.
    pub(crate) fn place(&self, key: f64) -> Option<usize> {
        let order = |center: &f64| center.partial_cmp(&key).unwrap_or(Ordering::Less);
        self.centers.binary_search_by(order).ok()
    }

    /// Returns the ends of the cell with this key.
    fn cell(&self, key: f64) -> Option<(f64, f64)> {
        self.ends.get(self.place(key)?).copied()
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

/// Fails if a pair of x and y has two values. Pairs without x or y do not count.
///
/// # Errors
/// `Usage` with the advice to aggregate.
pub(crate) fn refuse_twice([x, y]: [&Column; 2]) -> Result<()> {
    let pairs = x.data.iter().copied().zip(y.data.iter().copied());
    let mut pairs: Vec<(f64, f64)> =
        pairs.filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    if pairs.windows(2).any(|pair| pair[0] == pair[1]) {
        let (x, y) = (&x.title.name, &y.title.name);
        return refuse(format!(
            "a cell of the heat map has two values; aggregate them, by GROUP BY of the first two columns \
             (\"{x}\", \"{y}\"), or draw points with --kind scatter"
        ));
    }
    Ok(())
}

/// Draws a cell per row that has x and y, and returns the number of cells. Where there is no value,
/// the plot is grey.
pub(crate) fn draw(
    scene: &mut Scene,
    frame: &Frame,
    key: &Key,
    [columns, rows]: [&CellEdges; 2],
    [x, y, value]: [&Column; 3],
) -> usize {
    scene.rect(frame.width(), frame.height(), key.nothing());
    let ((start, end), (top, bottom)) = (frame.width(), frame.height());
    let mut cells: Vec<_> = (0..x.data.len())
        .filter_map(|row| Some((columns.cell(x.data[row])?, rows.cell(y.data[row])?, row)))
        .collect();
    cells.sort_by(|one, other| one.0.0.total_cmp(&other.0.0).then(one.1.0.total_cmp(&other.1.0)));
    for ((from, to), (below, over), row) in &cells {
        let Some(color) = key.color(value.data[*row]) else { continue };
        let (one, other) = (frame.at(*from, *below), frame.at(*to, *over));
        let across = (one.0.clamp(start, end), other.0.clamp(start, end));
        let up = (one.1.clamp(top, bottom), other.1.clamp(top, bottom));
        if across.0 != across.1 && up.0 != up.1 {
            scene.rect(across, up, color);
        }
    }
    cells.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;
    use crate::title::Title;

    #[test]
    fn cells_end_half_way_to_their_neighbours() {
        assert_eq!(edges(&[0.0, 1.0, 4.0], 1.0), [-0.5, 0.5, 2.5, 5.5]);
        assert_eq!(edges(&[7.0], 2.0), [6.0, 8.0]);
        assert_eq!(edges(&[], 2.0), Vec::<f64>::new());
    }

    #[test]
    fn cells_of_a_logarithmic_axis_end_at_the_geometric_mean() {
        let data = vec![100.0, 1.0, 0.0, -3.0, f64::NAN, 1.0];
        let column = Column::new(Title::new("x"), Values::Numbers, data);
        let cells = CellEdges::new(&column, Scale::Log);
        assert_eq!(cells.len(), 2);
        let (low, high) = cells.cell(1.0).unwrap();
        assert!((low - 0.1).abs() < 1e-12 && (high - 10.0).abs() < 1e-9);
        assert_eq!(cells.cell(0.0), None);
    }

    #[test]
    fn values_of_months_are_in_their_middle() {
        let mut column = Column::new(Title::new("x"), Values::Numbers, vec![0.0, 31.0, 59.0]);
        assert_eq!(CellEdges::new(&column, Scale::Linear).places(Scale::Linear), [0.0, 31.0, 59.0]);
        let months = [[0.0, 0.0, 31.0], [31.0, 31.0, 59.0], [59.0, 59.0, 90.0]];
        column.bounds = Some(Bounds::new(months, false));
        let cells = CellEdges::new(&column, Scale::Linear);
        assert_eq!((cells.range(), cells.cell(31.0)), ((0.0, 90.0), Some((31.0, 59.0))));
        assert_eq!(cells.places(Scale::Linear), [15.5, 45.0, 74.5]);
    }
}
