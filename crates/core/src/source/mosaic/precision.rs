//! Labels that are numbers of other types in some files: singles and doubles with the same decimals, and integers of any width.

use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::common_type::common_type;
use super::concat_axis::MOST_LABELS;
use super::file_arrays::FileArrays;
use crate::array::{Dimension, GridArray, Labels, failed_to};
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

/// Gives the labels of a dimension one type of numbers in all files, if some have integers and others wider ones, or floats.
/// Returns whether any labels changed. Labels that the type does not hold stay as they are.
///
/// # Errors
/// As [`Labels::slice`].
pub(super) fn unify_numbers(files: &mut [FileArrays]) -> Result<bool> {
    let ranks = files.iter().flat_map(|file| &file.arrays).map(|array| array.dims().len());
    let mut changed = false;
    for axis in 0..ranks.min().unwrap_or_default() {
        let dims = || files.iter().flat_map(|file| &file.arrays).map(|it| &it.dims()[axis]);
        let Some(data_type) = type_of_all(dims()) else { continue };
        let converted = dims().map(|dim| in_type(dim, &data_type));
        let Some(labels) = converted.collect::<Result<Option<Vec<_>>>>()? else { continue };
        replace(files, axis, labels);
        changed = true;
    }
    Ok(changed)
}

/// Returns the type of numbers that all labels can have; `None` if they have one type, or have no common one.
fn type_of_all<'a>(mut dims: impl Iterator<Item = &'a Dimension> + Clone) -> Option<DataType> {
    let mut types = dims.clone().map(|dim| dim.labels().data_type());
    let first = types.next()?;
    if types.clone().all(|it| it == first)
        || !dims.all(|dim| dim.is_labelled() && dim.len() <= MOST_LABELS)
    {
        return None;
    }
    // Singles stay singles: as doubles, they would have other decimals.
    match types.clone().chain([first.clone()]).any(|it| it == DataType::Float32) {
        true => Some(DataType::Float32),
        false => types.try_fold(first, |common, other| common_type(&common, &other)),
    }
}

/// Returns the labels in a type; `None` if it does not hold them all. The inner `None` stands for labels that have the type.
fn in_type(dim: &Dimension, data_type: &DataType) -> Result<Option<Option<Labels>>> {
    let own = dim.labels().data_type();
    if own == *data_type {
        return Ok(Some(None));
    }
    let is_exact = own.is_integer() || own.is_floating() && *data_type != DataType::Float32;
    if !is_exact {
        return Ok(None);
    }
    let failed = || failed_to("convert labels");
    let labels = dim.labels().slice(0..dim.len())?;
    let converted = cast(&labels, data_type).map_err(failed())?;
    match cast(&converted, &own).map_err(failed())? == labels {
        true => Ok(Some(Some(Labels::from_array(converted)?))),
        false => Ok(None),
    }
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
