//! [`Best`]: the best sort keys so far, by place.

use datafusion::error::Result;

use crate::exec::filled::filled;

/// The best keys of each place: `count` at most, ascending.
pub(super) struct Best {
    count: usize,
    any_of_ties: bool,
    /// Per place, how many keys it has.
    lens: Vec<u32>,
    /// Per place, the greatest of its keys if it has `count`, and otherwise the greatest number.
    worst: Vec<i64>,
    /// `count` keys per place.
    keys: Vec<i64>,
}

impl Best {
    /// Makes the table of so many places.
    ///
    /// # Errors
    /// If the process has not so much memory.
    pub(super) fn new(places: usize, count: usize, any_of_ties: bool) -> Result<Self> {
        Ok(Self {
            count,
            any_of_ties,
            lens: filled(0, places)?,
            worst: filled(i64::MAX, places)?,
            keys: filled(i64::MAX, places.saturating_mul(count))?,
        })
    }

    /// Returns the bytes that the table takes per place, with so many keys.
    pub(super) fn bytes_per_place(count: usize) -> usize {
        size_of::<u32>() + (count + 1) * size_of::<i64>()
    }

    /// Whether a row may be among the first of its place. The least keys are the first.
    pub(super) fn admits(&mut self, place: usize, key: i64) -> bool {
        let worst = self.worst[place];
        if key > worst {
            return false;
        }
        let len = self.lens[place] as usize;
        if len == self.count && key == worst {
            return !self.any_of_ties;
        }
        let start = place * self.count;
        let keys = &mut self.keys[start..start + self.count];
        let at = keys[..len].partition_point(|it| *it <= key);
        let moved = len.min(self.count - 1);
        keys.copy_within(at..moved, at + 1);
        keys[at] = key;
        if len < self.count {
            self.lens[place] += 1;
        }
        if self.lens[place] as usize == self.count {
            self.worst[place] = keys[self.count - 1];
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn rows_that_pass_hold_the_first_ones() {
        let mut random = StdRng::seed_from_u64(3);
        for _ in 0..500 {
            let (places, count) = (random.random_range(1..4), random.random_range(1..6));
            let any_of_ties = random.random_bool(0.5);
            let mut best = Best::new(places, count, any_of_ties).unwrap();
            let mut all = vec![vec![]; places];
            let mut passed = vec![vec![]; places];
            for _ in 0..random.random_range(0..60) {
                let (place, key) = (random.random_range(0..places), random.random_range(-9..9));
                let key = if key == 8 { i64::MAX } else { key };
                all[place].push(key);
                if best.admits(place, key) {
                    passed[place].push(key);
                }
            }
            for (mut all, mut passed) in all.into_iter().zip(passed) {
                all.sort_unstable();
                passed.sort_unstable();
                let first = all.len().min(count);
                assert_eq!(all[..first], passed[..first]);
                if let Some(last) = all[..first].last().filter(|_| !any_of_ties) {
                    let ties = |keys: &[i64]| keys.iter().filter(|key| *key <= last).count();
                    assert_eq!(ties(&all), ties(&passed));
                }
            }
        }
    }
}
