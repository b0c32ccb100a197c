//! The cells of a heat map as a field: a point at the centre of each cell.

use super::field::Field;
use crate::cells::CellEdges;
use crate::column::Column;
use crate::key::Key;
use crate::lattice::Metric;
use crate::settings::Scale;

impl Field {
    /// A field of the cells of a grid. `scales` are those of x and y.
    pub(crate) fn from_cells(
        [columns, rows]: [&CellEdges; 2],
        [x, y, value]: [&Column; 3],
        key: &Key,
        scales: (Scale, Scale),
        is_map: bool,
    ) -> Self {
        let width = columns.len();
        let (across, up) = (columns.places(scales.0), rows.places(scales.1));
        let points = up.iter().flat_map(|y| across.iter().map(|x| (*x, *y)));
        let points: Vec<(f64, f64)> = points.collect();
        let mut values = vec![f64::NAN; points.len()];
        for (row, value) in value.data.iter().enumerate() {
            let place = columns.place(x.data[row]).zip(rows.place(y.data[row]));
            if let Some((column, row)) = place {
                values[row * width + column] = key.place(*value);
            }
        }
        let metric = Metric::new(&points, is_map && goes_around(&across));
        Self::new(points, values, width, metric)
    }

    /// A field of the rows of a curvilinear grid with rows of `width` cells.
    pub(crate) fn from_points(
        [x, y, value]: [&Column; 3],
        width: usize,
        key: &Key,
        scales: (Scale, Scale),
        is_map: bool,
    ) -> Self {
        let points = x.data.iter().zip(&y.data);
        let points = points.map(|(x, y)| (scales.0.place(*x), scales.1.place(*y)));
        let points: Vec<(f64, f64)> = points.collect();
        let values = value.data.iter().map(|value| key.place(*value)).collect();
        let metric = Metric::new(&points, is_map);
        Self::new(points, values, width, metric)
    }
}

/// Whether longitudes in ascending order go around the globe, without a gap that is wider than others.
fn goes_around(longitudes: &[f64]) -> bool {
    let widest = longitudes.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    match longitudes {
        [first, _, _, .., last] => {
            let gap = first + 360.0 - last;
            widest < 180.0 && (0.0..=1.5 * widest).contains(&gap)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longitudes_around_the_globe_are_closed() {
        let every =
            |step: usize, to: usize| (0..to).step_by(step).map(|at| at as f64).collect::<Vec<_>>();
        assert!(goes_around(&every(10, 360)) && goes_around(&every(10, 361)));
        assert!(!goes_around(&every(10, 340)) && !goes_around(&every(180, 360)));
        assert!(!goes_around(&[0.0, 5.0, 350.0, 355.0]) && !goes_around(&[]));
    }
}
