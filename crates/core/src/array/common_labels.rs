//! The labels that two axes have in common, for joins of arrays.
//!
//! ```text
//!   1990 1995 2000 2005 2010            indices 2..5
//!             2000 2005 2010 2015       indices 0..3
//! ```
//!
//! NULL is no label that axes have in common. It may stand among the labels of both at the same places.

use std::cmp::Ordering;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, make_comparator};
use arrow::compute::SortOptions;

use super::arrow_error::failed_to;
use super::label_order::LabelOrder;
use super::labels::Labels;
use crate::error::Result;
use crate::grid::AxisSelection;

impl Labels {
    /// Returns the indices of `self` and of `other` whose labels both have. `None` if there are none, or if one of the two is in
    /// no strict order. `None` too if one has labels between the ends of both that the other has not.
    ///
    /// Labels that are NULL are in no order. They may be among the indices if both have them at the same places.
    ///
    /// # Errors
    /// `Unsupported` if Arrow does not compare such labels.
    pub fn common(&self, other: &Self) -> Result<Option<(Range<u64>, Range<u64>)>> {
        let (a, b) = (KnownLabels::of(self)?, KnownLabels::of(other)?);
        let Some(descends) = strict_order(&a.labels, &b.labels) else { return Ok(None) };
        if self.equals(other)? {
            return Ok(Some((0..self.len(), 0..other.len())));
        }
        let ours = a.labels.within(&b.labels, descends)?;
        let theirs = b.labels.within(&a.labels, descends)?;
        if ours.is_empty() || theirs.is_empty() {
            return Ok(None);
        }
        let (ours, theirs) = (a.indices(ours), b.indices(theirs));
        let is_same = self.part(ours.clone())?.equals(&other.part(theirs.clone())?)?;
        Ok(is_same.then_some((ours, theirs)))
    }

    /// Returns the indices in `range` whose labels are not NULL, counted from its start.
    ///
    /// # Errors
    /// `Internal` if `range` reaches beyond the labels.
    pub fn known_within(&self, range: Range<u64>) -> Result<AxisSelection> {
        let len = range.end - range.start;
        if !self.has_nulls() {
            return Ok(AxisSelection::all(len));
        }
        Ok(match self.slice(range)?.nulls() {
            None => AxisSelection::all(len),
            Some(nulls) => {
                let ranges = nulls.valid_slices();
                AxisSelection::from_ranges(len, ranges.map(|(start, end)| start as u64..end as u64))
            }
        })
    }

    /// Returns the indices of the labels between the ends of `other`, in the same strict order.
    fn within(&self, other: &Self, descends: bool) -> Result<Range<u64>> {
        let (first, last) = (other.slice(0..1)?, other.slice(other.len() - 1..other.len())?);
        let start = self.partition(|label| precedes(label, &first, descends))?;
        let end = self.partition(|label| Ok(!precedes(&last, label, descends)?))?;
        Ok(start..end.max(start))
    }

    /// Returns the number of labels for which `holds`, which are the first ones.
    fn partition(&self, holds: impl Fn(&ArrayRef) -> Result<bool>) -> Result<u64> {
        let (mut least, mut most) = (0, self.len());
        while least < most {
            let middle = least + (most - least) / 2;
            match holds(&self.slice(middle..middle + 1)?)? {
                true => least = middle + 1,
                false => most = middle,
            }
        }
        Ok(least)
    }
}

/// The labels of an axis that are not NULL.
struct KnownLabels {
    labels: Labels,
    /// The index of each; `None` if no label of the axis is NULL.
    indices: Option<Vec<u64>>,
}

impl KnownLabels {
    fn of(all: &Labels) -> Result<Self> {
        if !all.has_nulls() {
            return Ok(Self { labels: all.clone(), indices: None });
        }
        let known = all.known_within(0..all.len())?;
        let indices: Vec<u64> = known.ranges().iter().cloned().flatten().collect();
        Ok(Self { labels: Labels::from_array(all.select(&known, 0)?)?, indices: Some(indices) })
    }

    /// Returns the indices on the axis from the first of some labels to the last. There must be one.
    fn indices(&self, labels: Range<u64>) -> Range<u64> {
        match &self.indices {
            None => labels,
            Some(indices) => indices[labels.start as usize]..indices[labels.end as usize - 1] + 1,
        }
    }
}

/// Returns whether the labels of two axes descend. `None` unless both have labels of one type in the same strict order. A single
/// label has either order.
fn strict_order(a: &Labels, b: &Labels) -> Option<bool> {
    let is_strict = |labels: &Labels| labels.order() != LabelOrder::Unsorted && !labels.is_empty();
    let descends = |labels: &Labels| labels.order() == LabelOrder::Descending;
    if !is_strict(a) || !is_strict(b) || a.data_type() != b.data_type() {
        return None;
    }
    match (a.len(), b.len()) {
        (1, _) => Some(descends(b)),
        (_, 1) => Some(descends(a)),
        _ => (descends(a) == descends(b)).then_some(descends(a)),
    }
}

/// Whether one label comes before another in a strict order.
fn precedes(a: &ArrayRef, b: &ArrayRef, descends: bool) -> Result<bool> {
    let compare =
        make_comparator(a, b, SortOptions::default()).map_err(failed_to("compare labels"))?;
    let wanted = if descends { Ordering::Greater } else { Ordering::Less };
    Ok(compare(0, 0) == wanted)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn labels(numbers: &[i64]) -> Labels {
        Labels::from_array(Arc::new(Int64Array::from(numbers.to_vec()))).unwrap()
    }

    /// The indices of the labels between the ends of both, if they are the same labels.
    fn naive(a: &[i64], b: &[i64]) -> Option<(Range<u64>, Range<u64>)> {
        let least = a.iter().min()?.max(b.iter().min()?);
        let greatest = a.iter().max()?.min(b.iter().max()?);
        let between = |of: &[i64]| -> Vec<(u64, i64)> {
            let all = (0..).zip(of.iter().copied());
            all.filter(|(_, label)| (least..=greatest).contains(&label)).collect()
        };
        let range = |of: &[(u64, i64)]| Some(of.first()?.0..of.last()?.0 + 1);
        let (a, b) = (between(a), between(b));
        let is_same = a.iter().map(|it| it.1).eq(b.iter().map(|it| it.1));
        range(&a).zip(range(&b)).filter(|_| is_same)
    }

    #[test]
    fn common_labels_are_a_range_of_both() {
        let mut random = StdRng::seed_from_u64(6);
        let (mut found, mut none) = (0, 0);
        for _ in 0..3_000 {
            let mut axis = |descends: bool| {
                let start = random.random_range(0..8);
                let step = if random.random_bool(0.8) { 1 } else { 2 };
                let len = random.random_range(1..8);
                let mut axis: Vec<i64> = (0..len).map(|at| start + at * step).collect();
                if descends {
                    axis.reverse();
                }
                axis
            };
            let descends = axis(false).len() % 2 == 0;
            let (a, b) = (axis(descends), axis(descends));
            let common = labels(&a).common(&labels(&b)).unwrap();
            assert_eq!(common, naive(&a, &b), "{a:?} {b:?}");
            found += usize::from(common.is_some());
            none += usize::from(common.is_none());
        }
        assert!(found > 500 && none > 500, "{found} {none}");
    }

    #[test]
    fn labels_that_are_null_are_not_in_common() {
        let of = |numbers: &[Option<i64>]| {
            Labels::from_array(Arc::new(Int64Array::from(numbers.to_vec()))).unwrap()
        };
        let (one, two, three) = (Some(1), Some(2), Some(3));
        let nulled = of(&[None, one, None, three]);
        let (all, whole) = (labels(&[0, 1, 2, 3]), of(&[None, one, two, three]));
        assert_eq!(nulled.common(&nulled).unwrap(), Some((0..4, 0..4)));
        assert_eq!(all.common(&whole).unwrap(), Some((1..4, 1..4)));
        assert_eq!(whole.common(&all).unwrap(), Some((1..4, 1..4)));
        assert_eq!(of(&[one, None, three, None]).common(&nulled).unwrap(), Some((0..3, 1..4)));
        assert_eq!(
            of(&[three, two, None]).common(&labels(&[3, 2, 1])).unwrap(),
            Some((0..2, 0..2))
        );
        // Each has labels that the other has not, between the ends of both.
        assert_eq!(nulled.common(&all).unwrap(), None);
        for others in [&[None, None][..], &[two, None, one], &[one, None, one]] {
            assert_eq!(of(others).common(&all).unwrap(), None, "{others:?}");
        }
        assert_eq!(nulled.known_within(0..4).unwrap().ranges(), [1..2, 3..4]);
        assert!(nulled.known_within(1..2).unwrap().is_all());
        assert_eq!(nulled.known_within(2..3).unwrap().count(), 0);
        assert!(all.known_within(1..3).unwrap().is_all());
    }

    #[test]
    fn labels_without_a_common_order_have_no_range() {
        let ascending = labels(&[1, 2, 3]);
        for others in [&[3, 2, 1][..], &[1, 1, 2], &[2, 1, 3], &[], &[7]] {
            assert_eq!(ascending.common(&labels(others)).unwrap(), None, "{others:?}");
        }
        assert_eq!(ascending.common(&labels(&[2])).unwrap(), Some((1..2, 0..1)));
        let floats = Labels::from_array(Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]))).unwrap();
        assert_eq!(ascending.common(&floats).unwrap(), None);
        // Counted labels and labels in memory may be equal.
        let counted = Labels::indices(9);
        assert_eq!(counted.common(&ascending).unwrap(), Some((1..4, 0..3)));
        assert_eq!(ascending.common(&counted).unwrap(), Some((0..3, 1..4)));
    }
}
