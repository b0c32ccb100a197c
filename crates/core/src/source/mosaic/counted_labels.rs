//! Labels that count time in a calendar without timestamps, in other units or from another instant in some files.
//!
//! ```text
//!   2000.nc   0.5  1.5   days since 2000-01-01 ┐               0.5  1.5  360.5  361.5
//!   2001.nc   0.5  1.5   days since 2001-01-01 ┘ 360_day  ──▶  days since 2000-01-01
//! ```

use std::sync::Arc;

use super::concat_axis::MOST_LABELS;
use super::file_arrays::FileArrays;
use crate::array::{Calendar, CountedTimes, Dimension, GridArray, Labels};
use crate::error::Result;

/// Makes the labels of a dimension count time as those of the first file do that counts. Returns whether any labels changed.
///
/// Timestamps of the standard calendar become numbers beside files that have times before 1582-10-15. Labels of other calendars
/// stay as they are.
///
/// # Errors
/// `Usage` for a label that is no time, or for which no double stands.
pub(super) fn unify_counted_times(files: &mut [FileArrays]) -> Result<bool> {
    let ranks = files.iter().flat_map(|file| &file.arrays).map(|array| array.dims().len());
    let mut changed = false;
    for axis in 0..ranks.min().unwrap_or_default() {
        let dims = || files.iter().flat_map(|file| &file.arrays).map(|it| &it.dims()[axis]);
        let Some((first, times)) = dims().find_map(|dim| Some((dim.clone(), dim.times()?))) else {
            continue;
        };
        if dims().all(|dim| dim.times() == Some(times)) {
            continue;
        }
        for file in files.iter_mut() {
            let name = file.name.clone();
            let counted = |array: GridArray| -> Result<GridArray> {
                let dim = counted(&array.dims()[axis], &first, times);
                Ok(match dim.map_err(|error| error.in_file(&name))? {
                    Some(dim) => array.with_dim(axis, dim),
                    None => array,
                })
            };
            let arrays = std::mem::take(&mut file.arrays).into_iter();
            file.arrays = arrays.map(counted).collect::<Result<_>>()?;
        }
        changed = true;
    }
    Ok(changed)
}

/// Returns a dimension whose labels count as those of `first` do; `None` for labels that cannot.
fn counted(dim: &Dimension, first: &Dimension, times: CountedTimes) -> Result<Option<Dimension>> {
    if dim.name() != first.name() || !dim.is_labelled() || dim.len() > MOST_LABELS {
        return Ok(None);
    }
    let attributes = dim.attributes();
    let is_standard = || {
        let calendar = attributes.get("calendar").map_or("", String::as_str);
        dim.calendar().is_some() && Calendar::from_name(calendar) == Some(Calendar::Mixed)
    };
    let labels = dim.labels().slice(0..dim.len())?;
    let instants = match dim.times() {
        Some(own) if own.calendar() == times.calendar() => own.times(&labels)?,
        None if labels.data_type().is_temporal()
            && times.calendar() == Calendar::Mixed
            && is_standard() =>
        {
            CountedTimes::times_of_timestamps(&labels)?
        }
        _ => return Ok(None),
    };
    let mut attributes = attributes.clone();
    for key in ["units", "calendar"] {
        match first.attributes().get(key) {
            Some(value) => attributes.insert(key.to_owned(), value.clone()),
            None => attributes.remove(key),
        };
    }
    let labels = Labels::from_array(Arc::new(times.numbers(&instants)?))?;
    Ok(Some(Dimension::new(dim.name().to_owned(), Some(labels), dim.len(), attributes)))
}
