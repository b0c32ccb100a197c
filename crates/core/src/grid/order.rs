//! Row-major order: coordinates to positions and back, and the contiguous runs of a selection.

use std::ops::Range;

use super::AxisSelection;

/// Returns the row-major position of `coordinates` in a box of `shape`.
///
/// ```
/// assert_eq!(gridfusion_core::grid::ravel(&[1, 2], &[4, 3]), 5);
/// ```
pub fn ravel(coordinates: &[u64], shape: &[u64]) -> u64 {
    coordinates.iter().zip(shape).fold(0, |position, (&at, &len)| position * len + at)
}

/// Returns the coordinates of a row-major `position` in a box of `shape`; no length may be 0.
///
/// ```
/// assert_eq!(gridfusion_core::grid::unravel(5, &[4, 3]), [1, 2]);
/// ```
pub fn unravel(mut position: u64, shape: &[u64]) -> Vec<u64> {
    let mut coordinates = vec![0; shape.len()];
    for (at, &len) in coordinates.iter_mut().zip(shape).rev() {
        *at = position % len;
        position /= len;
    }
    coordinates
}

/// Calls `visit` with each contiguous run of cells that `selection` picks from a row-major tile, in
/// row-major order. A run is a range of cell positions in the tile.
///
/// The tile's extents are the lengths of the axes of `selection`. Trailing axes that are selected
/// whole are folded into the runs, so a box that is contiguous in memory is one run. The cost is per
/// run, not per cell.
///
/// ```
/// use gridfusion_core::grid::{AxisSelection, for_each_run};
///
/// // 3 x 4 tile, rows 1 and 2, columns 1 and 2
/// let selection = [AxisSelection::from_range(3, 1..3), AxisSelection::from_range(4, 1..3)];
/// let mut runs = Vec::new();
/// for_each_run(&selection, |run| runs.push(run));
/// assert_eq!(runs, [5..7, 9..11]);
/// ```
pub fn for_each_run(selection: &[AxisSelection], mut visit: impl FnMut(Range<u64>)) {
    // From the last axis: `whole` axes are selected whole. The ranges of the axis before them become the
    // runs, in units of `inner` cells. The outer axes are stepped index by index.
    let whole = selection.iter().rev().take_while(|axis| axis.is_all()).count();
    let Some((run_axis, outer)) = selection[..selection.len() - whole].split_last() else {
        let cells = selection.iter().map(AxisSelection::len).product();
        if cells > 0 {
            visit(0..cells);
        }
        return;
    };
    let inner: u64 = selection[selection.len() - whole..].iter().map(AxisSelection::len).product();
    if inner > 0 {
        visit_axis(outer, run_axis, inner, 0, &mut visit);
    }
}

/// Visits the runs at `base`, a row-major position over the axes that are already fixed.
fn visit_axis(
    outer: &[AxisSelection],
    run_axis: &AxisSelection,
    inner: u64,
    base: u64,
    visit: &mut impl FnMut(Range<u64>),
) {
    let Some((axis, outer)) = outer.split_first() else {
        let base = base * run_axis.len();
        for range in run_axis.ranges() {
            visit((base + range.start) * inner..(base + range.end) * inner);
        }
        return;
    };
    for index in axis.ranges().iter().cloned().flatten() {
        visit_axis(outer, run_axis, inner, base * axis.len() + index, visit);
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn runs_are_the_selected_cells_in_order() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..3_000 {
            let rank = rng.random_range(1..=4);
            let selection: Vec<AxisSelection> = (0..rank)
                .map(|_| {
                    let density = [0.0, 0.3, 0.7, 1.0][rng.random_range(0..4)];
                    let mask: Vec<bool> =
                        (0..rng.random_range(1..5)).map(|_| rng.random_bool(density)).collect();
                    AxisSelection::from_mask(&mask)
                })
                .collect();
            let shape: Vec<u64> = selection.iter().map(AxisSelection::len).collect();

            let mut found = Vec::new();
            let mut runs = 0;
            for_each_run(&selection, |run| {
                assert!(run.start < run.end);
                found.extend(run);
                runs += 1;
            });

            let picked = |position: &u64| {
                let coordinates = unravel(*position, &shape);
                coordinates.iter().zip(&selection).all(|(&at, axis)| axis.contains(at))
            };
            let expected: Vec<u64> = (0..shape.iter().product()).filter(picked).collect();
            assert_eq!(found, expected, "{selection:?}");
            if selection.iter().all(AxisSelection::is_all) {
                assert_eq!(runs, 1);
            }
        }
    }
}
