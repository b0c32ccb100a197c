//! The cells of a curvilinear grid: quadrilaterals whose corners are between the centres of neighbouring cells.

use crate::lattice::Metric;

/// Returns the corners of the cell around each point of a lattice, in turn. Points without x or y have no cell.
///
/// A corner is in the middle of four centres. Beyond the edges of the grid, and where points are missing, the steps to a
/// neighbour are continued.
pub(crate) fn quads(
    points: &[(f64, f64)],
    width: usize,
    metric: &Metric,
) -> Vec<Option<[(f64, f64); 4]>> {
    let rows = points.len() / width.max(1);
    let grid = Grid { points, width, rows, metric };
    let cells = (0..rows).flat_map(|row| (0..width).map(move |column| (row as i64, column as i64)));
    cells.map(|(row, column)| grid.quad(row, column)).collect()
}

struct Grid<'a> {
    points: &'a [(f64, f64)],
    width: usize,
    rows: usize,
    metric: &'a Metric,
}

impl Grid<'_> {
    /// Returns the point at a place; `None` if there is none.
    fn point(&self, row: i64, column: i64) -> Option<(f64, f64)> {
        let (row, column) = (usize::try_from(row).ok()?, usize::try_from(column).ok()?);
        let is_inside = row < self.rows && column < self.width;
        let point = *self.points.get(row * self.width + column).filter(|_| is_inside)?;
        (point.0.is_finite() && point.1.is_finite()).then_some(point)
    }

    /// Returns the step from a point to a place. Without a point there, the steps of the nearest points are continued.
    fn step(&self, from: (f64, f64), row: i64, column: i64) -> Option<(f64, f64)> {
        let straight = [(0, 1), (0, -1), (1, 0), (-1, 0)];
        let diagonal = [(1, 1), (1, -1), (-1, 1), (-1, -1)];
        if let Some(point) = self.point(row, column) {
            return Some(self.metric.step(from, point));
        }
        [straight, diagonal].into_iter().find_map(|directions| {
            let continued = directions.into_iter().filter_map(|(down, right)| {
                let near = self.point(row + down, column + right)?;
                let far = self.point(row + 2 * down, column + 2 * right)?;
                let (to, on) = (self.metric.step(from, near), self.metric.step(far, near));
                Some((to.0 + on.0, to.1 + on.1))
            });
            mean(continued)
        })
    }

    fn quad(&self, row: i64, column: i64) -> Option<[(f64, f64); 4]> {
        let center = self.point(row, column)?;
        let corner = |down: i64, right: i64| {
            let others =
                [(row, column + right), (row + down, column), (row + down, column + right)];
            let steps =
                others.into_iter().filter_map(|(row, column)| self.step(center, row, column));
            let (x, y) = mean(steps.chain([(0.0, 0.0)]))?;
            Some((center.0 + x, center.1 + y))
        };
        Some([corner(-1, -1)?, corner(-1, 1)?, corner(1, 1)?, corner(1, -1)?])
    }
}

fn mean(steps: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64)> {
    let (sum, count) = steps
        .fold(((0.0, 0.0), 0.0), |((x, y), count), step| ((x + step.0, y + step.1), count + 1.0));
    (count > 0.0).then(|| (sum.0 / count, sum.1 / count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_straight_grid_are_rectangles() {
        let points: Vec<_> =
            (0..12).map(|at| (f64::from(at % 4) * 2.0, f64::from(at / 4))).collect();
        let cells = quads(&points, 4, &Metric::new(&points, false));
        for (point, cell) in points.iter().zip(&cells) {
            let (x, y) = *point;
            let expected =
                [(x - 1.0, y - 0.5), (x + 1.0, y - 0.5), (x + 1.0, y + 0.5), (x - 1.0, y + 0.5)];
            assert_eq!(*cell, Some(expected));
        }
    }

    #[test]
    fn a_missing_point_leaves_its_neighbours_as_they_are() {
        let mut points: Vec<_> = (0..30).map(|at| (f64::from(at % 6), f64::from(at / 6))).collect();
        let whole = quads(&points, 6, &Metric::new(&points, false));
        points[14] = (f64::NAN, 2.0);
        let holed = quads(&points, 6, &Metric::new(&points, false));
        for (number, (one, other)) in whole.iter().zip(&holed).enumerate() {
            let expected = if number == 14 { &None } else { one };
            assert_eq!(other, expected, "{number}");
        }
    }

    #[test]
    fn cells_across_the_edge_of_the_map_are_small() {
        let points: Vec<_> = (0..20)
            .map(|at| {
                ((f64::from(at % 5) * 2.0 + 176.0 + 180.0) % 360.0 - 180.0, f64::from(at / 5))
            })
            .collect();
        for cell in quads(&points, 5, &Metric::new(&points, true)).into_iter().flatten() {
            let width = cell[1].0 - cell[0].0;
            assert!((width - 2.0).abs() < 1e-9, "{cell:?}");
        }
    }
}
