//! Points on a rectilinear grid, by binary search along both axes.

use super::NearestCell;
use crate::axis::{Axis, AxisKind, LONGITUDES};
use crate::grid::Grid;
use crate::sphere::haversine;

/// The labels on both sides of a value, by ascending position, and the way from the first to the second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Between {
    positions: [usize; 2],
    /// 0 at the first label, 1 at the second.
    part: f64,
}

/// Up to four cells around a point, with weights of bilinear interpolation, which sum up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbours {
    cells: [(usize, usize, f64); 4],
    len: usize,
}

impl Neighbours {
    /// Returns the row, the column and the weight of each neighbour; all weights are above 0.
    pub fn cells(&self) -> &[(usize, usize, f64)] {
        &self.cells[..self.len]
    }
}

impl Grid {
    /// Returns the cell whose labels are nearest along each axis, as xarray's `sel(method="nearest")`.
    ///
    /// Between two labels, the greater wins, also as in xarray. `None` beyond the outer edges of the
    /// grid, for a point that is farther away than `within`, and for coordinates that are no numbers.
    /// Longitudes go from -360 to 720.
    ///
    /// ```
    /// use gridfusion_spatial::{Axis, AxisKind, Grid};
    ///
    /// let lat = Axis::new(AxisKind::Latitude, &[60.0, 57.5, 55.0], None)?;
    /// let lon = Axis::new(AxisKind::Longitude, &[0.0, 90.0, 180.0, 270.0], None)?;
    /// let grid = Grid::new(lat, lon)?;
    /// let cell = grid.nearest(58.0, -5.0, f64::INFINITY).unwrap();
    /// assert_eq!((cell.row, cell.column), (1, 0));
    /// assert_eq!(cell.distance.round(), 301_767.0);
    /// assert_eq!(grid.nearest(58.0, -5.0, 1000.0), None);
    /// assert_eq!(grid.nearest(50.0, -5.0, f64::INFINITY), None);
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn nearest(&self, y: f64, x: f64, within: f64) -> Option<NearestCell> {
        let [row, column] = [between(&self.y, y)?, between(&self.x, x)?]
            .map(|it| it.positions[usize::from(it.part >= 0.5)]);
        let labels = (self.y.labels()[row], self.x.labels()[column]);
        let distance = if self.is_geographic() {
            haversine(y, x, labels.0, labels.1)
        } else {
            (y - labels.0).hypot(x - labels.1)
        };
        (distance <= within).then(|| NearestCell {
            row: self.y.position(row),
            column: self.x.position(column),
            distance,
        })
    }

    /// Returns the cells around a point with the weights of bilinear interpolation.
    ///
    /// Between the outermost labels and the edge of the grid, the outermost labels count alone. `None`
    /// beyond the edge, and for coordinates that are no numbers.
    ///
    /// ```
    /// use gridfusion_spatial::{Axis, AxisKind, Grid};
    ///
    /// let y = Axis::new(AxisKind::Plane, &[0.0, 10.0], None)?;
    /// let x = Axis::new(AxisKind::Plane, &[0.0, 10.0, 20.0], None)?;
    /// let grid = Grid::new(y, x)?;
    /// let neighbours = grid.neighbours(5.0, 12.5).unwrap();
    /// assert_eq!(neighbours.cells(), [(0, 1, 0.375), (0, 2, 0.125), (1, 1, 0.375), (1, 2, 0.125)]);
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn neighbours(&self, y: f64, x: f64) -> Option<Neighbours> {
        let (rows, columns) = (between(&self.y, y)?, between(&self.x, x)?);
        let mut neighbours = Neighbours { cells: [(0, 0, 0.0); 4], len: 0 };
        for (row, row_weight) in rows.weights() {
            for (column, column_weight) in columns.weights() {
                let weight = row_weight * column_weight;
                if weight > 0.0 {
                    let cell = (self.y.position(row), self.x.position(column), weight);
                    neighbours.cells[neighbours.len] = cell;
                    neighbours.len += 1;
                }
            }
        }
        Some(neighbours)
    }
}

impl Between {
    fn weights(self) -> [(usize, f64); 2] {
        [(self.positions[0], 1.0 - self.part), (self.positions[1], self.part)]
    }
}

/// Returns the labels around a value; `None` beyond the outer edges.
fn between(axis: &Axis, value: f64) -> Option<Between> {
    let (first, last) = (*axis.edges().first()?, *axis.edges().last()?);
    let value = match axis.kind() {
        AxisKind::Longitude if (LONGITUDES[0]..=LONGITUDES[1]).contains(&value) => {
            turned(value, first)
        }
        AxisKind::Longitude => return None,
        AxisKind::Plane | AxisKind::Latitude => value,
    };
    if !(first <= value && value <= last) {
        return None;
    }
    let labels = axis.labels();
    let above = labels.partition_point(|it| *it <= value);
    let end = labels.len() - 1;
    let (positions, [low, high]) = match above {
        0 if axis.is_circle() => ([end, 0], [labels[end] - 360.0, labels[0]]),
        0 => ([0, 0], [value; 2]),
        _ if above <= end => ([above - 1, above], [labels[above - 1], labels[above]]),
        _ if axis.is_circle() => ([end, 0], [labels[end], labels[0] + 360.0]),
        _ => ([end, end], [value; 2]),
    };
    let part = if low < high { (value - low) / (high - low) } else { 0.0 };
    Some(Between { positions, part })
}

/// Returns a longitude in the turn that begins at `first`.
fn turned(value: f64, first: f64) -> f64 {
    let turned = value - 360.0 * ((value - first) / 360.0).floor();
    // Rounding may end just below the beginning.
    if turned < first { first } else { turned }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    fn globe(lat: &[f64], lon: &[f64]) -> Grid {
        let lat = Axis::new(AxisKind::Latitude, lat, None).unwrap();
        Grid::new(lat, Axis::new(AxisKind::Longitude, lon, None).unwrap()).unwrap()
    }

    fn cell(grid: &Grid, y: f64, x: f64) -> Option<(usize, usize)> {
        grid.nearest(y, x, f64::INFINITY).map(|it| (it.row, it.column))
    }

    #[test]
    fn nearest_cells_of_the_globe() {
        let grid = globe(&[90.0, 0.0, -90.0], &[0.0, 90.0, 180.0, 270.0]);
        for x in [-40.0, 320.0, 680.0, -358.0, 300.0] {
            assert_eq!(cell(&grid, 90.0, x), Some((0, if x == 300.0 { 3 } else { 0 })), "{x}");
        }
        assert_eq!(cell(&grid, -90.0, 180.0), Some((2, 2)));
        assert_eq!(cell(&grid, 10.0, 359.9), Some((1, 0)));
        // The greater of two labels, also on a descending axis, and across the seam.
        assert_eq!(cell(&grid, 45.0, 45.0), Some((0, 1)));
        assert_eq!(cell(&grid, 45.0, 315.0), Some((0, 0)));
        assert_eq!(cell(&grid, 90.1, 0.0), None);
        assert_eq!(cell(&grid, f64::NAN, 0.0), None);
        assert_eq!(cell(&grid, 0.0, f64::NAN), None);
        assert_eq!(cell(&grid, 0.0, f64::INFINITY), None);
        for x in [-1e300, -360.5, 720.5, 9999.0] {
            assert_eq!(cell(&grid, 0.0, x), None, "{x}");
        }
        assert_eq!(cell(&grid, 0.0, 720.0), Some((1, 0)));
    }

    #[test]
    fn regions_end_at_their_edges() {
        let grid = globe(&[50.0, 51.0], &[-1.0, 0.0, 1.0]);
        assert_eq!(cell(&grid, 49.5, 358.5), Some((0, 0)));
        assert_eq!(cell(&grid, 49.49, 0.0), None);
        assert_eq!(cell(&grid, 50.0, 358.4), None);
        assert_eq!(cell(&grid, 50.0, 1.5), Some((0, 2)));
        assert_eq!(grid.neighbours(49.6, 1.4).unwrap().cells(), [(0, 2, 1.0)]);
        assert_eq!(grid.neighbours(50.0, 1.6), None);
    }

    #[test]
    fn labels_beside_the_middle_of_their_cell() {
        let x =
            Axis::new(AxisKind::Plane, &[0.0, 10.0], Some(&[[0.0, 10.0], [10.0, 20.0]])).unwrap();
        let grid = Grid::new(x.clone(), x).unwrap();
        assert_eq!(cell(&grid, 19.0, 4.0), Some((1, 0)));
        assert_eq!(cell(&grid, 20.0, 6.0), Some((1, 1)));
        assert_eq!(cell(&grid, 20.0, -0.1), None);
    }

    #[test]
    fn neighbours_across_the_seam() {
        let grid = globe(&[10.0, 0.0, -10.0], &[350.0, 250.0, 150.0, 50.0]);
        let found = grid.neighbours(-2.0, 5.0).unwrap();
        let expected = [(2, 0, 0.15), (2, 3, 0.05), (1, 0, 0.6), (1, 3, 0.2)];
        for (found, expected) in found.cells().iter().zip(expected) {
            assert_eq!((found.0, found.1), (expected.0, expected.1));
            assert!((found.2 - expected.2).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(found.cells().len(), 4);
    }

    #[test]
    fn interpolation_of_a_plane_is_exact() {
        let mut random = StdRng::seed_from_u64(11);
        let mut axis = || {
            let mut labels = vec![random.random_range(-5.0..5.0)];
            for _ in 0..9 {
                labels.push(labels[labels.len() - 1] + random.random_range(0.1..3.0));
            }
            if random.random() {
                labels.reverse();
            }
            labels
        };
        for _ in 0..50 {
            let (ys, xs) = (axis(), axis());
            let plane = |labels: &[f64]| Axis::new(AxisKind::Plane, labels, None).unwrap();
            let grid = Grid::new(plane(&ys), plane(&xs)).unwrap();
            let ends = |it: &[f64]| (it[0].min(it[9]), it[0].max(it[9]));
            let ((south, north), (west, east)) = (ends(&ys), ends(&xs));
            let mut points = StdRng::seed_from_u64(12);
            for _ in 0..50 {
                let (y, x) = (points.random_range(south..north), points.random_range(west..east));
                let found = grid.neighbours(y, x).unwrap();
                let mean = |of: &dyn Fn(usize, usize) -> f64| {
                    found.cells().iter().map(|it| of(it.0, it.1) * it.2).sum::<f64>()
                };
                assert!((mean(&|row, _| ys[row]) - y).abs() < 1e-12);
                assert!((mean(&|_, column| xs[column]) - x).abs() < 1e-12);
                let nearest = grid.nearest(y, x, f64::INFINITY).unwrap();
                let least = |labels: &[f64], at: f64| {
                    labels.iter().map(|it| (it - at).abs()).fold(f64::INFINITY, f64::min)
                };
                assert_eq!((ys[nearest.row] - y).abs(), least(&ys, y));
                assert_eq!((xs[nearest.column] - x).abs(), least(&xs, x));
            }
        }
    }
}
