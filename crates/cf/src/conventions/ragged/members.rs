//! [`Members`]: the instance that each sample belongs to, as runs.
//!
//! ```text
//!   row_size       2 0 3              counts, of contiguous ragged arrays
//!   station_index  0 0 2 2 2          indices, of indexed ones
//!   runs           0: ..2, 2: ..5     both give these
//! ```

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int64Type};
use gridfusion_core::{Error, Result};

/// The instance of each sample. Samples may belong to none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Members {
    /// The index after each run of samples of one instance, ascending.
    ends: Vec<u64>,
    /// The instance of each run.
    instances: Vec<Option<u32>>,
    /// The number of instances up to the last one that has a sample.
    most: u64,
    has_none: bool,
}

impl Members {
    fn push(&mut self, instance: Option<u32>, len: u64) {
        if len == 0 {
            return;
        }
        match instance {
            Some(instance) => self.most = self.most.max(u64::from(instance) + 1),
            None => self.has_none = true,
        }
        let end = self.len() + len;
        match (self.instances.last(), self.ends.last_mut()) {
            (Some(last), Some(last_end)) if *last == instance => *last_end = end,
            _ => {
                self.instances.push(instance);
                self.ends.push(end);
            }
        }
    }

    /// Takes the number of samples of each instance, which follow one another.
    ///
    /// # Errors
    /// `Corrupt` if a count is missing or negative, or if they are not `len` samples in all. `Unsupported` for other numbers than
    /// integers.
    pub(super) fn from_counts(counts: &ArrayRef, len: u64) -> Result<Self> {
        let counts = whole_numbers(counts)?;
        let (mut members, mut sum) = (Self::default(), 0_u64);
        for (instance, count) in counts.iter().enumerate() {
            let Some(count) = count.and_then(|count| u64::try_from(count).ok()) else {
                let found = count.map_or("missing".to_owned(), |count| count.to_string());
                return Err(corrupt(format!("the count of instance {instance} is {found}")));
            };
            sum = sum.saturating_add(count);
            if sum <= len {
                members.push(Some(number(instance as u64)?), count);
            }
        }
        match sum == len {
            true => Ok(members),
            false => Err(corrupt(format!(
                "the counts add up to {sum} samples, and the sample dimension has {len}"
            ))),
        }
    }

    /// Takes the instance of each sample. A missing or negative index belongs to none. `instances` is their number, if the file
    /// has it.
    ///
    /// # Errors
    /// `Corrupt` if an index is beyond the instances. `Unsupported` for other numbers than integers.
    pub(super) fn from_indices(indices: &ArrayRef, instances: Option<u64>) -> Result<Self> {
        let mut members = Self::default();
        for (sample, index) in whole_numbers(indices)?.iter().enumerate() {
            let instance = index.and_then(|index| u64::try_from(index).ok());
            if let (Some(instance), Some(len)) =
                (instance, instances.filter(|len| instance >= Some(*len)))
            {
                return Err(corrupt(format!(
                    "sample {sample} belongs to instance {instance}, and there are {len}"
                )));
            }
            members.push(instance.map(number).transpose()?, 1);
        }
        Ok(members)
    }

    /// Returns the parents of the instances as those of the samples: the trajectory of each sample, if these belong to profiles,
    /// and profiles to trajectories.
    pub(super) fn then(&self, parents: &Self) -> Self {
        let mut members = Self::default();
        let mut start = 0;
        for (instance, end) in self.instances.iter().zip(&self.ends) {
            members.push(instance.and_then(|it| parents.of(u64::from(it))), end - start);
            start = *end;
        }
        members
    }

    /// Returns the instance of a sample.
    fn of(&self, sample: u64) -> Option<u32> {
        let run = self.ends.partition_point(|end| *end <= sample);
        self.instances.get(run).copied().flatten()
    }

    /// Returns the number of samples.
    pub(super) fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Returns the number of instances up to the last one that has a sample.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Whether a sample belongs to no instance.
    pub(super) fn has_none(&self) -> bool {
        self.has_none
    }

    /// Returns the instances of the samples in `range`, each with the number of its samples there.
    pub(super) fn runs(&self, range: Range<u64>) -> impl Iterator<Item = (Option<u32>, u64)> + '_ {
        let first = self.ends.partition_point(|end| *end <= range.start);
        let mut start = range.start;
        let runs = self.instances[first..].iter().zip(&self.ends[first..]);
        runs.map_while(move |(instance, end)| {
            let len = (*end).min(range.end).saturating_sub(start);
            start += len;
            (len > 0).then_some((*instance, len))
        })
    }
}

/// The greatest number of instances: their numbers take four bytes each.
fn number(instance: u64) -> Result<u32> {
    u32::try_from(instance).map_err(|_| Error::unsupported("an instance beyond number 2^32"))
}

/// Returns counts or indices, which must be whole numbers of up to 63 bits.
fn whole_numbers(values: &ArrayRef) -> Result<Int64Array> {
    if !values.data_type().is_integer() {
        let message =
            format!("counts and indices must be integers, and these are {}", values.data_type());
        return Err(Error::unsupported(message));
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let cast = cast_with_options(values, &DataType::Int64, &strict);
    let cast = cast.map_err(|_| corrupt("a count or an index is 2^63 or more".to_owned()))?;
    Ok(cast.as_primitive::<Int64Type>().clone())
}

fn corrupt(message: String) -> Error {
    Error::corrupt_region("ragged array", message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn array(values: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    fn listed(members: &Members) -> Vec<Option<u32>> {
        (0..members.len()).map(|sample| members.of(sample)).collect()
    }

    #[test]
    fn counts_and_indices_give_the_same_runs() {
        let counts = Members::from_counts(&array(&[Some(2), Some(0), Some(3)]), 5).unwrap();
        let indices = [0, 0, 2, 2, 2].map(Some);
        let indices = Members::from_indices(&array(&indices), Some(3)).unwrap();
        assert_eq!(counts, indices);
        assert_eq!(listed(&counts), [0, 0, 2, 2, 2].map(Some));
        assert_eq!(counts.runs(1..4).collect::<Vec<_>>(), [(Some(0), 1), (Some(2), 2)]);
        assert_eq!(counts.runs(5..5).count(), 0);
        assert!(!counts.has_none());
    }

    #[test]
    fn samples_may_belong_to_no_instance() {
        let members = Members::from_indices(&array(&[Some(1), None, Some(-1)]), Some(2)).unwrap();
        assert_eq!(listed(&members), [Some(1), None, None]);
        assert!(members.has_none());
        let parents = Members::from_indices(&array(&[Some(0), Some(7)]), None).unwrap();
        assert_eq!(listed(&members.then(&parents)), [Some(7), None, None]);
    }

    #[test]
    fn numbers_that_cannot_be_are_errors() {
        for (counts, len, expected) in [
            (vec![Some(2), Some(2)], 5, "add up to 4 samples, and the sample dimension has 5"),
            (vec![Some(2), Some(4)], 5, "add up to 6 samples, and the sample dimension has 5"),
            (vec![Some(i64::MAX), Some(i64::MAX), Some(9)], 5, "has 5"),
            (vec![Some(-1), Some(6)], 5, "the count of instance 0 is -1"),
            (vec![Some(5), None], 5, "the count of instance 1 is missing"),
        ] {
            let error = Members::from_counts(&array(&counts), len).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = Members::from_indices(&array(&[Some(0), Some(3)]), Some(3)).unwrap_err();
        let expected = "sample 1 belongs to instance 3, and there are 3";
        assert!(error.to_string().contains(expected), "{error}");
        let text: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["1"]));
        let floats: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![1.0]));
        for other in [text, floats] {
            let error = Members::from_counts(&other, 1).unwrap_err();
            assert_eq!(error.kind(), gridfusion_core::ErrorKind::Unsupported, "{error}");
        }
    }
}
