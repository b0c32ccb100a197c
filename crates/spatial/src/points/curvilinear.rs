//! Grids whose rows and columns are curves: `lat (y, x)` and `lon (y, x)`.

use gridfusion_core::{Error, Result};

use super::NearestCell;
use super::tree::Tree;
use crate::axis::LONGITUDES;
use crate::curved::size;
use crate::sphere::{dot, haversine, minus, unit_vector};

/// How many steps a point may lie outside of the labels at the border: half a cell, and as much as a
/// skewed cell differs from a rectangle.
const REACH: f64 = 0.55;

/// The nearest cells of a grid with a latitude and a longitude per cell, such as those of ocean models.
///
/// ```
/// use gridfusion_spatial::CurvilinearGrid;
///
/// let lat = [50.0, 50.5, 51.0, 51.5]; // two rows and two columns, turned by 45°
/// let lon = [10.0, 11.0, 9.0, 10.0];
/// let grid = CurvilinearGrid::new(&lat, &lon, 2)?;
/// let cell = grid.nearest(50.4, 10.9, f64::INFINITY).unwrap();
/// assert_eq!((cell.row, cell.column), (0, 1));
/// assert_eq!(grid.nearest(60.0, 10.9, f64::INFINITY), None);
/// # Ok::<_, gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CurvilinearGrid {
    places: Vec<[f64; 2]>,
    columns: usize,
    tree: Tree,
}

impl CurvilinearGrid {
    /// Returns the grid of the cells in row-major order. Cells without a place, such as NaN over land, are
    /// never found.
    pub fn new(lat: &[f64], lon: &[f64], columns: usize) -> Result<Self> {
        size(lat.len(), lon.len(), columns)?;
        let places: Vec<[f64; 2]> = lat.iter().zip(lon).map(|(lat, lon)| [*lat, *lon]).collect();
        if let Some(cell) = places.iter().position(|[lat, _]| lat.abs() > 90.0) {
            return Err(Error::usage(format!(
                "the latitude of the cell in row {} and column {} is {}, outside -90 to 90",
                cell / columns,
                cell % columns,
                lat[cell]
            )));
        }
        let known =
            places.iter().zip(0..).filter(|([lat, lon], _)| lat.is_finite() && lon.is_finite());
        let tree = Tree::new(known.map(|([lat, lon], cell)| (unit_vector(*lat, *lon), cell)));
        Ok(Self { places, columns, tree })
    }

    /// Returns the latitude and the longitude of each cell, in row-major order.
    pub fn places(&self) -> &[[f64; 2]] {
        &self.places
    }

    /// Returns the cell whose place is nearest. Of equally near cells, the first wins.
    ///
    /// `None` for a point that is farther away than `within` metres, for coordinates that are no
    /// numbers, and for longitudes outside -360 to 720. Also `None` beyond the border of the grid by more than about half a cell.
    pub fn nearest(&self, lat: f64, lon: f64, within: f64) -> Option<NearestCell> {
        if !(lat.abs() <= 90.0 && (LONGITUDES[0]..=LONGITUDES[1]).contains(&lon)) {
            return None;
        }
        let point = unit_vector(lat, lon);
        let cell = self.tree.nearest(point)?.0 as usize;
        let distance = haversine(lat, lon, self.places[cell][0], self.places[cell][1]);
        let (row, column) = (cell / self.columns, cell % self.columns);
        (distance <= within && self.contains(row, column, point)).then_some(NearestCell {
            row,
            column,
            distance,
        })
    }

    /// Whether a point, of which this cell is the nearest, is within the grid.
    ///
    /// ```text
    ///   inside │ border │ outside      along `inwards`, a point outside is at -0.5 or less
    ///      ◀───┼── ●    │   ×
    /// ```
    fn contains(&self, row: usize, column: usize, point: [f64; 3]) -> bool {
        let Some(here) = self.vector(row, column) else { return false };
        let offset = minus(point, here);
        let rows = [row.checked_sub(1).map(|it| (it, column)), Some((row + 1, column))];
        let columns = [column.checked_sub(1).map(|it| (row, it)), Some((row, column + 1))];
        let steps = [rows, columns].map(|it| it.map(|it| Some(minus(self.vector_at(it?)?, here))));
        let steps = [steps[0], self.around(row, column, here, steps[1])];
        let along = steps.map(|[back, on]| on.or(back));
        match along {
            [Some(rows), Some(columns)] => {
                let parts = solve(offset, rows, columns);
                let within = |part: f64, [back, on]: [Option<[f64; 3]>; 2]| match (back, on) {
                    // `part` counts steps along `on`, or along `back` where the grid ends.
                    (Some(_), Some(_)) => true,
                    _ => part >= -REACH,
                };
                parts.is_none_or(|it| within(it[0], steps[0]) && within(it[1], steps[1]))
            }
            // One row or column: its width is unknown.
            [Some(step), None] | [None, Some(step)] => dot(offset, offset) <= dot(step, step),
            [None, None] => true,
        }
    }

    /// Replaces the missing step of a column at the border, if the grid goes around the globe.
    fn around(
        &self,
        row: usize,
        column: usize,
        here: [f64; 3],
        steps: [Option<[f64; 3]>; 2],
    ) -> [Option<[f64; 3]>; 2] {
        let beyond = match steps {
            [None, Some(_)] if column == 0 => self.columns - 1,
            [Some(_), None] if column + 1 == self.columns => 0,
            _ => return steps,
        };
        let inwards = steps[0].or(steps[1]).map_or(0.0, |it| dot(it, it));
        let near = |it: &[f64; 3]| self.columns > 2 && dot(*it, *it) <= 4.0 * inwards;
        let step = self.vector(row, beyond).map(|it| minus(it, here)).filter(near);
        [steps[0].or(step), steps[1].or(step)]
    }

    fn vector_at(&self, (row, column): (usize, usize)) -> Option<[f64; 3]> {
        self.vector(row, column)
    }

    /// Returns the unit vector of a cell; `None` outside the grid and for cells without a place.
    fn vector(&self, row: usize, column: usize) -> Option<[f64; 3]> {
        if column >= self.columns {
            return None;
        }
        let [lat, lon] = *self.places.get(row * self.columns + column)?;
        (lat.is_finite() && lon.is_finite()).then(|| unit_vector(lat, lon))
    }
}

/// Returns how many steps of `a` and of `b` lead nearest to `offset`; `None` if they have one direction.
fn solve(offset: [f64; 3], a: [f64; 3], b: [f64; 3]) -> Option<[f64; 2]> {
    let (aa, ab, bb) = (dot(a, a), dot(a, b), dot(b, b));
    let (oa, ob) = (dot(offset, a), dot(offset, b));
    let size = aa * bb - ab * ab;
    (size > 1e-6 * aa * bb).then(|| [(oa * bb - ob * ab) / size, (ob * aa - oa * ab) / size])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, AxisKind, Grid};
    use rand::{Rng, SeedableRng, rngs::StdRng};

    fn curved(lat: &[f64], lon: &[f64]) -> CurvilinearGrid {
        let lats: Vec<f64> = lat.iter().flat_map(|it| lon.iter().map(|_| *it)).collect();
        let lons: Vec<f64> = lat.iter().flat_map(|_| lon.iter().copied()).collect();
        CurvilinearGrid::new(&lats, &lons, lon.len()).unwrap()
    }

    #[test]
    fn equals_axes_where_rows_are_parallels() {
        let lat: Vec<f64> = (0..40).map(|it| -9.75 + 0.5 * f64::from(it)).collect();
        let lon: Vec<f64> = (0..30).map(|it| 170.25 + 0.5 * f64::from(it)).collect();
        let tree = curved(&lat, &lon);
        let axes = Grid::new(
            Axis::new(AxisKind::Latitude, &lat, None).unwrap(),
            Axis::new(AxisKind::Longitude, &lon, None).unwrap(),
        )
        .unwrap();
        let mut random = StdRng::seed_from_u64(2);
        let (mut found, mut none) = (0, 0);
        for _ in 0..5000 {
            let (y, x) = (random.random_range(-11.0..11.0), random.random_range(169.0..187.0));
            let cell = tree.nearest(y, x, f64::INFINITY);
            match (cell, axes.nearest(y, x - 360.0, f64::INFINITY)) {
                (Some(cell), Some(other)) => {
                    // On the sphere, the middle between two labels is not halfway between parallels.
                    assert!(cell.distance <= other.distance + 1e-6);
                    assert!(other.distance - cell.distance < 50.0);
                    found += 1;
                }
                (None, None) => none += 1,
                // Just outside the edge.
                (Some(_), None) => assert!(
                    axes.nearest(y.clamp(-9.99, 9.99), x.clamp(170.01, 184.99), 60_000.0).is_some()
                ),
                (None, Some(other)) => panic!("({y}, {x}) is in {other:?}"),
            }
        }
        assert!(found > 3500 && none > 800, "{found} {none}");
        assert_eq!(tree.nearest(11.0, 175.0, f64::INFINITY), None);
        assert_eq!(tree.nearest(0.0, 0.0, f64::INFINITY), None);
        assert_eq!(tree.nearest(0.1, 175.1, 1000.0), None);
    }

    #[test]
    fn the_globe_has_no_border_in_the_east() {
        let lon: Vec<f64> = (0..36).map(|it| 10.0 * f64::from(it)).collect();
        let tree = curved(&[-60.0, -30.0, 0.0, 30.0, 60.0], &lon);
        for x in [355.1, -4.9, 4.9, 0.0, 716.0] {
            assert_eq!(tree.nearest(1.0, x, f64::INFINITY).map(|it| it.column), Some(0), "{x}");
        }
        assert_eq!(tree.nearest(1.0, 354.9, f64::INFINITY).map(|it| it.column), Some(35));
        assert_eq!(tree.nearest(89.0, 3.0, f64::INFINITY), None);
    }

    #[test]
    fn cells_without_a_place() {
        let nan = f64::NAN;
        let grid = CurvilinearGrid::new(
            &[0.0, nan, 0.0, 1.0, nan, 1.0],
            &[0.0, 1.0, nan, 0.0, nan, 2.0],
            3,
        )
        .unwrap();
        assert_eq!(
            grid.nearest(0.9, 1.9, f64::INFINITY).map(|it| (it.row, it.column)),
            Some((1, 2))
        );
        assert_eq!(
            grid.nearest(0.1, 0.1, f64::INFINITY).map(|it| (it.row, it.column)),
            Some((0, 0))
        );
        assert_eq!(grid.nearest(nan, 0.1, f64::INFINITY), None);
        let empty = CurvilinearGrid::new(&[nan], &[nan], 1).unwrap();
        assert_eq!(empty.nearest(0.0, 0.0, f64::INFINITY), None);
        assert_eq!(CurvilinearGrid::new(&[], &[], 0).unwrap().nearest(0.0, 0.0, 1e9), None);
    }

    #[test]
    fn errors() {
        let error = |lat: &[f64], lon: &[f64], columns| {
            CurvilinearGrid::new(lat, lon, columns).unwrap_err().to_string()
        };
        assert_eq!(
            error(&[0.0; 3], &[0.0; 3], 2),
            "3 latitudes and 3 longitudes do not fill rows of 2 cells"
        );
        assert_eq!(
            error(&[0.0; 3], &[0.0; 4], 1),
            "3 latitudes and 4 longitudes do not fill rows of 1 cells"
        );
        assert!(error(&[0.0; 3], &[0.0; 3], 0).ends_with("rows of 0 cells"));
        assert_eq!(
            error(&[0.0, 91.0], &[0.0; 2], 2),
            "the latitude of the cell in row 0 and column 1 is 91, outside -90 to 90"
        );
    }
}
