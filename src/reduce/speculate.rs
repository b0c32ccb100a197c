//! Sums of floats in one pass, speculating that no cell is NaN.
//!
//! A NaN turns every sum into NaN. So the sum of a run is computed speculatively, without a test per
//! cell. If it is NaN, it is discarded, and the run is summed again with the test. Without NaN, memory
//! is read only once.

use super::cell::Cell;
use super::kernel::{Batch, GroupPlaces, Statistic, add_row, all_kept, reduce};
use super::statistic::Sum;

/// Adds the cells of `batch` that are not NaN to `sums`. Returns true if no cell is NaN; false also if
/// infinities cancel out. `aside` is scratch memory.
pub(super) fn sum_numbers<T: Cell>(
    sums: &mut [f64],
    batch: Batch<'_, T>,
    aside: &mut Vec<f64>,
) -> bool {
    #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
    let is_number = |cell: T| cell == cell;
    let mut clean = true;
    for segment in batch.inner {
        match segment.places {
            GroupPlaces::Fixed(place) => {
                for (start, base) in batch.rows.each() {
                    let row = batch.row(segment, start);
                    // One group: the sum of the run shows whether it has a NaN.
                    let mut sum = 0.0;
                    <Sum as Statistic<T>>::add_run(&mut sum, row);
                    if sum.is_nan() {
                        clean = false;
                        sum = 0.0;
                        <Sum as Statistic<T>>::add_run_if(&mut sum, row, is_number);
                    }
                    sums[base + place] += sum;
                }
            }
            GroupPlaces::Steps { first, step: 1 } => {
                for rows in batch.rows.by_place() {
                    // One group per cell: rows of the same groups are summed aside, and added if no sum
                    // is NaN.
                    aside.clear();
                    aside.resize(segment.len, 0.0);
                    for (start, _) in rows.each() {
                        let row = batch.row(segment, start);
                        add_row(aside, row, |sum, cell| *sum += T::load(cell).to_f64());
                    }
                    if aside.iter().fold(false, |any, sum| any | sum.is_nan()) {
                        clean = false;
                        let inner = std::slice::from_ref(segment);
                        reduce::<T, Sum, _>(sums, Batch { rows, inner, ..batch }, Some(is_number));
                        continue;
                    }
                    let sums = &mut sums[rows.place + first..][..segment.len];
                    sums.iter_mut().zip(&*aside).for_each(|(sum, aside)| *sum += aside);
                }
            }
            _ => {
                // Groups in any order have no sum per run to examine, so a separate pass looks for NaN.
                let batch = Batch { inner: std::slice::from_ref(segment), ..batch };
                if all_kept(batch, is_number) {
                    reduce::<T, Sum, fn(T) -> bool>(sums, batch, None);
                } else {
                    clean = false;
                    reduce::<T, Sum, _>(sums, batch, Some(is_number));
                }
            }
        }
    }
    clean
}
