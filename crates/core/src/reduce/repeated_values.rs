//! How often values occur in a group: the number of different ones, and the most frequent one.
//!
//! ```text
//!   sorted   1 1 2 3 3 3     4 values are different from the one before, and 3 has the longest run
//! ```
//!
//! Sorting a group takes no memory, and counting needs no table of its values.

use arrow::array::{Int64Array, PrimitiveArray};

use super::gathered_values::{GroupedValues, TotalOrder};

impl<T: TotalOrder> GroupedValues<T> {
    /// Sorts the values of each group, as [`Self::distinct_counts`] and [`Self::modes`] need them.
    pub fn sort(&mut self) {
        for group in self.starts.windows(2) {
            self.keys[group[0]..group[1]].sort_unstable();
        }
    }

    /// Returns the number of different values of each sorted group. Values of different bits are different, as for DataFusion.
    pub fn distinct_counts(&self) -> Int64Array {
        let count = |keys: &[T::Key]| {
            let first = i64::from(!keys.is_empty());
            first + keys.windows(2).map(|pair| i64::from(pair[0] != pair[1])).sum::<i64>()
        };
        Int64Array::from_iter_values(self.groups().map(count))
    }

    /// Returns the most frequent value of each sorted group, and the least of several ones; NULL for a group without values.
    /// Zeros of both signs are one value.
    pub fn modes(&self) -> PrimitiveArray<T> {
        let mode = |keys: &[T::Key]| {
            let runs = keys.chunk_by(|a, b| T::with_one_zero(*a) == T::with_one_zero(*b));
            let longest = runs.reduce(|best, run| if run.len() > best.len() { run } else { best });
            longest.map(|run| T::number(T::with_one_zero(run[0])))
        };
        self.groups().map(mode).collect()
    }

    fn groups(&self) -> impl Iterator<Item = &[T::Key]> {
        self.starts.windows(2).map(|group| &self.keys[group[0]..group[1]])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::array::{Array, Float32Array, Int16Array};
    use arrow::datatypes::{Float32Type, Int16Type};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use crate::reduce::GatheredValues;

    #[test]
    fn counts_are_those_of_a_map() {
        let mut rng = StdRng::seed_from_u64(45);
        for _ in 0..300 {
            let (groups, rows) = (rng.random_range(1..9), rng.random_range(0..90));
            let of_rows: Vec<usize> = (0..rows).map(|_| rng.random_range(0..groups)).collect();
            let values: Vec<i16> = (0..rows).map(|_| rng.random_range(-5..6)).collect();
            let mut counts = vec![BTreeMap::<i16, usize>::new(); groups];
            for (group, value) in of_rows.iter().zip(&values) {
                *counts[*group].entry(*value).or_default() += 1;
            }
            let mut gathered = GatheredValues::<Int16Type>::default();
            gathered.push(&Int16Array::from(values), &of_rows, None);
            let mut gathered = gathered.grouped(groups);
            gathered.sort();
            let (distinct, modes) = (gathered.distinct_counts(), gathered.modes());
            for (group, counts) in counts.iter().enumerate() {
                assert_eq!(distinct.value(group), counts.len() as i64);
                let most = counts.values().max();
                let mode = counts.iter().find(|(_, count)| Some(*count) == most);
                let found = modes.is_valid(group).then(|| modes.value(group));
                assert_eq!(found, mode.map(|(value, _)| *value));
            }
        }
    }

    #[test]
    fn zeros_are_two_values_and_one_mode() {
        let numbers = vec![-0.0, 0.0, 7.0, 7.0, -0.0, f32::NAN];
        let mut gathered = GatheredValues::<Float32Type>::default();
        gathered.push(&Float32Array::from(numbers), &[0; 6], None);
        let mut gathered = gathered.grouped(1);
        gathered.sort();
        assert_eq!(gathered.distinct_counts().value(0), 4);
        assert_eq!(gathered.modes().value(0).to_bits(), 0.0_f32.to_bits());
    }
}
