//! Labels of a time axis at given times.

use gridfusion_core::{Error, Result};

/// The labels of a time axis, whose unit is that of the times that are sought.
///
/// ```
/// use gridfusion_spatial::TimeAxis;
///
/// let days = TimeAxis::new(&[0, 10, 20])?;
/// assert_eq!(days.nearest(14, u64::MAX), Some(1));
/// assert_eq!(days.last(19, u64::MAX), Some(1));
/// assert_eq!(days.last(-1, u64::MAX), None);
/// assert_eq!(days.nearest(14, 3), None);
/// # Ok::<_, gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TimeAxis<'a> {
    labels: &'a [i64],
    descending: bool,
}

impl<'a> TimeAxis<'a> {
    /// Returns the axis of labels that only rise or only fall. A label may repeat; then one of its
    /// indices is found.
    pub fn new(labels: &'a [i64]) -> Result<Self> {
        let descending =
            matches!((labels.first(), labels.last()), (Some(first), Some(last)) if first > last);
        let wrong = |pair: &[i64]| if descending { pair[0] < pair[1] } else { pair[0] > pair[1] };
        match labels.windows(2).position(wrong) {
            None => Ok(Self { labels, descending }),
            Some(at) => Err(Error::usage(format!(
                "the times of the grid do not only {}: {} at {at} is followed by {}",
                if descending { "fall" } else { "rise" },
                labels[at],
                labels[at + 1],
            ))),
        }
    }

    /// Returns the index of the label nearest to `time`, if it is at most `within` away. If two labels are
    /// equally near, the later wins, as in xarray.
    pub fn nearest(&self, time: i64, within: u64) -> Option<usize> {
        let sides = [self.before(time), self.after(time)];
        let distance = |index: &usize| self.labels[*index].abs_diff(time);
        let [before, after] = sides;
        let nearest = match (before, after) {
            (Some(before), Some(after)) if distance(&before) < distance(&after) => before,
            (_, Some(after)) => after,
            (before, None) => before?,
        };
        (distance(&nearest) <= within).then_some(nearest)
    }

    /// Returns the index of the last label at or before `time`, if it is at most `within` before it.
    pub fn last(&self, time: i64, within: u64) -> Option<usize> {
        self.before(time).filter(|it| self.labels[*it].abs_diff(time) <= within)
    }

    /// The greatest label that is not after `time`.
    fn before(&self, time: i64) -> Option<usize> {
        let index = if self.descending {
            self.labels.partition_point(|it| *it > time)
        } else {
            self.labels.partition_point(|it| *it <= time).checked_sub(1)?
        };
        (index < self.labels.len()).then_some(index)
    }

    /// The least label that is not before `time`.
    fn after(&self, time: i64) -> Option<usize> {
        let index = if self.descending {
            self.labels.partition_point(|it| *it >= time).checked_sub(1)?
        } else {
            self.labels.partition_point(|it| *it < time)
        };
        (index < self.labels.len()).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    #[test]
    fn equals_a_search_of_all() {
        let mut random = StdRng::seed_from_u64(8);
        for count in [0, 1, 2, 5, 40] {
            for descending in [false, true] {
                let mut labels: Vec<i64> =
                    (0..count).map(|_| random.random_range(-50..50)).collect();
                labels.sort_unstable();
                if descending {
                    labels.reverse();
                }
                let axis = TimeAxis::new(&labels).unwrap();
                for time in -60..60 {
                    let nearest =
                        labels.iter().min_by_key(|it| (it.abs_diff(time), -**it)).copied();
                    assert_eq!(axis.nearest(time, u64::MAX).map(|it| labels[it]), nearest);
                    let last = labels.iter().filter(|it| **it <= time).max().copied();
                    assert_eq!(axis.last(time, u64::MAX).map(|it| labels[it]), last);
                    let near = |it: &i64| it.abs_diff(time) <= 3;
                    assert_eq!(axis.nearest(time, 3).map(|it| labels[it]), nearest.filter(near));
                    assert_eq!(axis.last(time, 3).map(|it| labels[it]), last.filter(near));
                }
            }
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let labels = [i64::MIN, 0, i64::MAX];
        let axis = TimeAxis::new(&labels).unwrap();
        assert_eq!(axis.nearest(i64::MIN, 0), Some(0));
        assert_eq!(axis.nearest(i64::MAX - 1, u64::MAX), Some(2));
        assert_eq!(axis.last(-1, u64::MAX), Some(0));
    }

    #[test]
    fn labels_out_of_order() {
        let error = |it: &[i64]| TimeAxis::new(it).unwrap_err().to_string();
        assert_eq!(
            error(&[1, 3, 2, 5]),
            "the times of the grid do not only rise: 3 at 1 is followed by 2"
        );
        assert_eq!(
            error(&[5, 1, 3, 2]),
            "the times of the grid do not only fall: 1 at 1 is followed by 3"
        );
    }
}
