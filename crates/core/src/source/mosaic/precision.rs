//! Labels that are singles in some files and doubles in others, with the same decimals.

use arrow::datatypes::DataType;

use super::file_arrays::FileArrays;
use crate::array::{GridArray, Labels};
use crate::error::Result;

/// Makes the labels of a dimension singles in all files, if they are singles in some and doubles in the others. Returns
/// whether any labels changed.
///
/// The labels stay as they are if two labels of a file would become equal.
///
/// # Errors
/// As [`Labels::in_singles`].
pub(super) fn unify_precision(files: &mut [FileArrays]) -> Result<bool> {
    let ranks = files.iter().flat_map(|file| &file.arrays).map(|array| array.dims().len());
    let mut changed = false;
    for axis in 0..ranks.min().unwrap_or_default() {
        let labels =
            || files.iter().flat_map(|file| &file.arrays).map(|it| it.dims()[axis].labels());
        let has = |wanted: DataType| labels().any(|labels| labels.data_type() == wanted);
        if !has(DataType::Float32) || !has(DataType::Float64) {
            continue;
        }
        let singles: Vec<Option<Labels>> =
            labels().map(Labels::in_singles).collect::<Result<_>>()?;
        let collide = labels()
            .zip(&singles)
            .any(|(labels, singles)| labels.data_type() == DataType::Float64 && singles.is_none());
        if !collide {
            replace(files, axis, singles);
            changed = true;
        }
    }
    Ok(changed)
}

/// Replaces the labels on an axis, in the order of the arrays.
fn replace(files: &mut [FileArrays], axis: usize, labels: Vec<Option<Labels>>) {
    let mut labels = labels.into_iter();
    for file in files {
        let arrays = std::mem::take(&mut file.arrays).into_iter();
        let with = |(array, labels): (GridArray, Option<Labels>)| match labels {
            Some(labels) => array.with_labels(axis, labels),
            None => array,
        };
        file.arrays = arrays.zip(&mut labels).map(with).collect();
    }
}
