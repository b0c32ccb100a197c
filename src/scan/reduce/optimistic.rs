//! Sums of floats in one pass, on the bet that nothing in the batch is NaN.
//!
//! A NaN poisons every sum it is added to. So the sums of a batch are made aside, without a test per
//! cell, and looked at before they count: if one is NaN, nothing has happened yet and the batch is
//! taken again with the test. Memory is then read once, by the loop that does the work.

use super::cell::Cell;
use super::kernel::{Batch, Places, Statistic, add_row};
use super::statistic::Sum;

/// Adds the sums of `batch` to `states` and says true, or leaves them alone and says false. `aside`
/// is memory to work in.
pub(super) fn try_sum<T: Cell>(
    states: &mut [f64],
    batch: Batch<'_, T>,
    aside: &mut Vec<f64>,
) -> bool {
    aside.clear();
    if !sum_aside(batch, aside) || aside.iter().fold(false, |any, sum| any | sum.is_nan()) {
        return false;
    }
    let mut sums = aside.as_slice();
    for segment in batch.inner {
        for rows in batch.rows.chunk_by(|a, b| a.1 == b.1) {
            let (places, width) = match segment.places {
                Places::Fixed(place) => (rows[0].1 + place, 1),
                Places::Steps { first, .. } => (rows[0].1 + first, segment.len),
                Places::Listed(_) => return false, // as before: nothing was set aside
            };
            let (these, after) = sums.split_at(width);
            for (state, sum) in states[places..places + width].iter_mut().zip(these) {
                *state += sum;
            }
            sums = after;
        }
    }
    true
}

/// The sums of each segment of the rows of one base, one after the other; false if the batch has a
/// shape that this is no good for.
fn sum_aside<T: Cell>(batch: Batch<'_, T>, aside: &mut Vec<f64>) -> bool {
    for segment in batch.inner {
        let row = |start: usize| &batch.cells[start + segment.start..][..segment.len];
        for rows in batch.rows.chunk_by(|a, b| a.1 == b.1) {
            match segment.places {
                Places::Fixed(_) => {
                    let mut sum = 0.0;
                    for (start, _) in rows {
                        <Sum as Statistic<T>>::add_run(&mut sum, row(*start));
                    }
                    aside.push(sum);
                }
                Places::Steps { step: 1, .. } => {
                    let first = aside.len();
                    aside.resize(first + segment.len, 0.0);
                    for (start, _) in rows {
                        add_row(&mut aside[first..], row(*start), |sum, cell| {
                            *sum += T::load(cell).to_f64();
                        });
                    }
                }
                _ => return false,
            }
        }
    }
    true
}
