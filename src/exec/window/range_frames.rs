//! Frames of `RANGE` with offsets, such as intervals: rows whose sort key is at most so far from that of the row.
//!
//! The bounds of all rows are computed at once, by the rules of DataFusion's `WindowFrameStateRange`. As keys ascend in the order of the
//! window, so do bounds, and two pointers walk through the keys:
//!
//! ```text
//!   key       0   2   3   7   8         RANGE 2 PRECEDING
//!   key - 2  -2   0   1   5   6
//!   start     0   0   1   3   3         the first key that is not less
//! ```

use std::ops::Range;

use arrow::array::{Array, ArrayRef, make_comparator};
use arrow::compute::SortOptions;
use arrow::compute::kernels::numeric::{add, sub};
use datafusion::error::Result;
use datafusion::logical_expr::{WindowFrame, WindowFrameBound};

/// Returns the frames of rows with these keys, in the order of the window. `None` if a key and an offset have no sum of the same
/// type. Rows whose key is NULL are at one end, and peers: no offset reaches from or to them.
pub(super) fn range_frames(
    frame: &WindowFrame,
    key: &ArrayRef,
    options: SortOptions,
) -> Result<Option<Vec<Range<usize>>>> {
    let (len, nulls) = (key.len(), key.null_count());
    let known = if options.nulls_first { nulls..len } else { 0..len - nulls };
    let key = key.slice(known.start, known.len());
    let (Some(start), Some(end)) =
        (targets(&frame.start_bound, &key, options), targets(&frame.end_bound, &key, options))
    else {
        return Ok(None);
    };
    let starts = match start {
        Targets::Unbounded => vec![0; known.len()],
        Targets::Keys(keys) => bounds(&key, &keys, options, false, known.start)?,
    };
    let ends = match end {
        Targets::Unbounded => vec![len; known.len()],
        Targets::Keys(keys) => bounds(&key, &keys, options, true, known.start)?,
    };
    let mut frames: Vec<_> = starts.into_iter().zip(ends).map(|(start, end)| start..end).collect();
    let (at, peers) = if options.nulls_first { (0, 0..nulls) } else { (known.end, known.end..len) };
    let start = if frame.start_bound.is_unbounded() { 0 } else { peers.start };
    let end = if frame.end_bound.is_unbounded() { len } else { peers.end };
    frames.splice(at..at, std::iter::repeat_n(start..end, nulls));
    Ok(Some(frames))
}

/// The key at which the frame of each row begins or ends.
enum Targets {
    Unbounded,
    Keys(ArrayRef),
}

/// Returns the keys of a bound; `None` if they cannot be computed for all rows.
fn targets(bound: &WindowFrameBound, key: &ArrayRef, options: SortOptions) -> Option<Targets> {
    if bound.is_unbounded() {
        return Some(Targets::Unbounded);
    }
    let (offset, precedes) = match bound {
        WindowFrameBound::CurrentRow => return Some(Targets::Keys(ArrayRef::clone(key))),
        WindowFrameBound::Preceding(offset) => (offset, true),
        WindowFrameBound::Following(offset) => (offset, false),
    };
    let offset = offset.to_scalar().ok()?;
    let keys = match precedes == options.descending {
        true => add(key, &offset),
        false => sub(key, &offset),
    };
    // DataFusion treats sums that overflow as no bound, for each row on its own.
    let keys = keys.ok().filter(|keys| keys.data_type() == key.data_type())?;
    Some(Targets::Keys(keys))
}

/// Returns for each row the first key that is not before its target, or behind it if `is_end`. Keys are numbered from `first`.
fn bounds(
    key: &ArrayRef,
    targets: &ArrayRef,
    options: SortOptions,
    is_end: bool,
    first: usize,
) -> Result<Vec<usize>> {
    let compare = make_comparator(key, targets, options)?;
    let mut at = 0;
    let bound = |row: usize| {
        let is_before = |at: usize| {
            let order = compare(at, row);
            if is_end { order.is_le() } else { order.is_lt() }
        };
        while at < key.len() && is_before(at) {
            at += 1;
        }
        first + at
    };
    Ok((0..key.len()).map(bound).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int8Array;
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::WindowFrameUnits;

    use super::*;

    fn frames(start: i8, keys: Vec<Option<i8>>, descending: bool) -> Option<Vec<Range<usize>>> {
        let start = WindowFrameBound::Preceding(ScalarValue::Int8(Some(start)));
        let end = WindowFrameBound::CurrentRow;
        let frame = WindowFrame::new_bounds(WindowFrameUnits::Range, start, end);
        let key: ArrayRef = Arc::new(Int8Array::from(keys));
        range_frames(&frame, &key, SortOptions { descending, nulls_first: false }).unwrap()
    }

    #[test]
    fn bounds_are_the_first_keys_that_are_near() {
        let keys = [0, 2, 3, 7, 8];
        let expected = vec![0..1, 0..2, 1..3, 3..4, 3..5];
        assert_eq!(frames(2, keys.map(Some).to_vec(), false), Some(expected));
        let descending = [8, 7, 7, 3].map(Some).to_vec();
        assert_eq!(frames(1, descending, true), Some(vec![0..1, 0..3, 0..3, 3..4]));
    }

    #[test]
    fn keys_that_are_null_are_peers_at_the_end() {
        let expected = vec![0..1, 0..2, 2..3, 3..5, 3..5];
        assert_eq!(frames(1, vec![Some(1), Some(2), Some(7), None, None], false), Some(expected));
        assert_eq!(frames(1, vec![None], false).unwrap(), std::slice::from_ref(&(0..1)));
    }

    /// DataFusion then computes the bounds of each row.
    #[test]
    fn keys_without_a_distance_have_no_frames() {
        // The least key minus the offset is no 8-bit integer.
        assert_eq!(frames(1, vec![Some(-128), Some(5)], false), None);
    }
}
