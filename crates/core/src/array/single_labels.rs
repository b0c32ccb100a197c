//! The mark of columns that show labels of single precision.
//!
//! A file with the single 50.1 has 50.099998474…, and SQL makes the double 50.1 of `50.1`. So comparisons of labels happen in
//! singles. Field metadata tells which columns are labels, because it passes through projections, views and tables in memory.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type};

use super::arrow_error::failed_to;
use super::counted_times::COUNTED_TIMES;
use super::labels::Labels;
use super::number_attributes::NUMBER_ATTRIBUTES;
use crate::error::Result;

/// The key of the mark in a field's metadata.
pub const SINGLE_LABELS: &str = "gridfusion.labels";

/// Its value.
const SINGLES: &str = "single precision";

/// Marks the field of a dimension, if its labels are singles.
pub(super) fn marked(field: Field) -> Field {
    if *field.data_type() != DataType::Float32 {
        return field;
    }
    let mut metadata = field.metadata().clone();
    metadata.insert(SINGLE_LABELS.to_owned(), SINGLES.to_owned());
    field.with_metadata(metadata)
}

/// Marks the attributes of a variable that holds labels, if its values are singles.
pub(super) fn mark(attributes: &mut BTreeMap<String, String>, data_type: &DataType) {
    if *data_type == DataType::Float32 {
        attributes.insert(SINGLE_LABELS.to_owned(), SINGLES.to_owned());
    }
}

/// Whether a key of a field's metadata is a mark of this crate, and no attribute of the file.
pub(crate) fn is_mark(key: &str) -> bool {
    [SINGLE_LABELS, COUNTED_TIMES, NUMBER_ATTRIBUTES].contains(&key)
}

/// Whether a field shows labels of single precision.
pub fn is_single_label(field: &Field) -> bool {
    let is_marked = || field.metadata().get(SINGLE_LABELS).is_some_and(|it| it == SINGLES);
    *field.data_type() == DataType::Float32 && is_marked()
}

impl Labels {
    /// Returns doubles as singles. `None` for other labels, and if two labels would become equal.
    ///
    /// # Errors
    /// `Unsupported` if memory does not suffice.
    pub(crate) fn in_singles(&self) -> Result<Option<Self>> {
        fn count<T: Eq + Hash>(labels: impl Iterator<Item = T>) -> usize {
            labels.collect::<HashSet<T>>().len()
        }
        let Some(values) = self.in_memory() else { return Ok(None) };
        let Some(doubles) = values.as_primitive_opt::<Float64Type>() else { return Ok(None) };
        let singles =
            cast(values, &DataType::Float32).map_err(failed_to("make singles of labels"))?;
        let before = count(doubles.iter().map(|label| label.map(f64::to_bits)));
        let after = singles.as_primitive::<Float32Type>().iter();
        match count(after.map(|label| label.map(f32::to_bits))) == before {
            true => Self::from_array(singles).map(Some),
            false => Ok(None),
        }
    }
}
