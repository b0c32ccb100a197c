//! The ends of cells along an axis, as a file declares them.

use crate::settings::Scale;

/// The ends of the cell of each key, by key.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bounds {
    /// Key, lower end and upper end, in ascending order of keys.
    cells: Vec<[f64; 3]>,
}

impl Bounds {
    /// Takes keys and both ends of their cells, in any order. `is_angle` tells that ends may be on the other side of 0° or 360°.
    pub(crate) fn new(cells: impl IntoIterator<Item = [f64; 3]>, is_angle: bool) -> Self {
        let ordered = |[key, one, other]: [f64; 3]| match (one.min(other), one.max(other)) {
            (low, high) if is_angle && key < low => [key, high - 360.0, low],
            (low, high) if is_angle && key > high => [key, high, low + 360.0],
            (low, high) => [key, low, high],
        };
        // The sum makes 0 of -0.
        let mut cells: Vec<[f64; 3]> =
            cells.into_iter().map(|[key, one, other]| ordered([key + 0.0, one, other])).collect();
        cells.sort_by(|one, other| one[0].total_cmp(&other[0]));
        Self { cells }
    }

    /// Returns the ends of the cells of ascending keys. `None` if a key has none, or they are no cells beside each other: a key is
    /// outside of its cell, or cells overlap, as those of running means do.
    pub(crate) fn ends(&self, keys: &[f64], scale: Scale) -> Option<Vec<(f64, f64)>> {
        let ends = |key: &f64| {
            let found = self.cells.binary_search_by(|cell| cell[0].total_cmp(&(key + 0.0))).ok()?;
            let [_, low, high] = *self.cells.get(found)?;
            let is_cell = low < high && low <= *key && *key <= high;
            (is_cell && scale.place(low).is_finite() && scale.place(high).is_finite())
                .then_some((low, high))
        };
        let ends = keys.iter().map(ends).collect::<Option<Vec<_>>>()?;
        // Ends that were rounded may overlap a little.
        let overlaps = |pair: &[(f64, f64)]| {
            let (one, next) = (pair[0], pair[1]);
            one.1 - next.0 > 1e-3 * (one.1 - one.0).min(next.1 - next.0)
        };
        (!ends.windows(2).any(overlaps)).then_some(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_ends_of_their_keys() {
        let bounds = Bounds::new([[5.0, 10.0, 2.0], [1.0, 0.0, 2.0], [15.0, 10.0, 20.0]], false);
        let ends = |keys: &[f64]| bounds.ends(keys, Scale::Linear);
        assert_eq!(ends(&[1.0, 5.0, 15.0]), Some(vec![(0.0, 2.0), (2.0, 10.0), (10.0, 20.0)]));
        assert_eq!(ends(&[15.0]), Some(vec![(10.0, 20.0)]));
        let zero = Bounds::new([[-0.0, -1.0, 1.0]], false);
        assert_eq!(zero.ends(&[0.0], Scale::Linear), zero.ends(&[-0.0], Scale::Linear));
        assert_eq!(zero.ends(&[0.0], Scale::Linear), Some(vec![(-1.0, 1.0)]));
        assert_eq!(ends(&[1.0, 6.0]), None);
        assert_eq!(bounds.ends(&[1.0], Scale::Log), None, "zero has no place");
        assert_eq!(bounds.ends(&[5.0], Scale::Log), Some(vec![(2.0, 10.0)]));
    }

    #[test]
    fn ends_that_are_no_cells_are_left_out() {
        for cells in [
            [[1.0, 0.0, 3.0], [2.0, 1.0, 4.0]],
            [[1.0, 2.0, 3.0], [4.0, 3.0, 5.0]],
            [[1.0, 1.0, 1.0], [2.0, 1.5, 2.5]],
            [[1.0, f64::NAN, 1.5], [2.0, 1.5, 2.5]],
            [[1.0, f64::NEG_INFINITY, 1.5], [2.0, 1.5, 2.5]],
        ] {
            assert_eq!(
                Bounds::new(cells, false).ends(&[cells[0][0], cells[1][0]], Scale::Linear),
                None,
                "{cells:?}"
            );
        }
    }

    #[test]
    fn cells_at_the_edge_of_the_map_are_narrow() {
        let bounds =
            Bounds::new([[0.0, 355.0, 5.0], [10.0, 5.0, 15.0], [178.0, -178.0, 176.0]], true);
        let ends = bounds.ends(&[0.0, 10.0, 178.0], Scale::Linear);
        assert_eq!(ends, Some(vec![(-5.0, 5.0), (5.0, 15.0), (176.0, 182.0)]));
    }
}
