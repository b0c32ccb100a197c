//! Labels that several files have along the axis of concatenation.
//!
//! ```text
//!   forecast of Monday    0  1  2  3  4            overlap = last       0  1  of Monday
//!   forecast of Tuesday         2  3  4  5  6                           2  3  4  5  6  of Tuesday
//! ```
//!
//! Without the option, such files are refused, because queries would count cells twice.

use std::cmp::Ordering;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, make_comparator};
use arrow::compute::{SortOptions, sort_to_indices};

use super::concat_axis::{joined, sort_files};
use super::file_arrays::FileArrays;
use crate::array::{GridArray, Labels, failed_to, with_one_zero};
use crate::error::{Error, Result};
use crate::options::Overlap;

/// The labels of all files on one axis, in the order of the files.
struct FileLabels {
    values: ArrayRef,
    /// The number of the file of each label.
    files: Vec<usize>,
}

impl FileLabels {
    fn try_new(files: &[FileArrays], axis: usize) -> Result<Self> {
        let of_file =
            |file: &FileArrays| file.dims()[axis].labels().slice(0..file.dims()[axis].len());
        let values = joined(&files.iter().map(of_file).collect::<Result<Vec<_>>>()?)?;
        let mut numbers = Vec::with_capacity(values.len());
        for (number, file) in files.iter().enumerate() {
            numbers.resize(numbers.len() + file.dims()[axis].len() as usize, number);
        }
        Ok(Self { values: with_one_zero(values)?, files: numbers })
    }

    /// Calls `of_label` with the places of each label that several files have, in the order of labels; ends when it is false.
    ///
    /// Sorting brings equal labels together. A label that repeats within one file is not reported. NULLs are not equal to one
    /// another.
    fn repeated(&self, mut of_label: impl FnMut(&[u32]) -> bool) -> Result<()> {
        let order = sort_to_indices(&self.values, None, None)
            .map_err(failed_to("sort the labels of files"))?;
        let compare = make_comparator(&self.values, &self.values, SortOptions::default())
            .map_err(failed_to("compare the labels of files"))?;
        let is_equal = |a: &u32, b: &u32| {
            !self.values.is_null(*a as usize)
                && compare(*a as usize, *b as usize) == Ordering::Equal
        };
        for equal in order.values().chunk_by(is_equal) {
            let first = self.files[equal[0] as usize];
            let is_of_several = equal.iter().any(|at| self.files[*at as usize] != first);
            if is_of_several && !of_label(equal) {
                break;
            }
        }
        Ok(())
    }
}

/// Fails if two files share a label; `labels` are those of all files.
pub(super) fn refuse_repeated(labels: &Labels, files: &[FileArrays], axis: usize) -> Result<()> {
    let all = FileLabels::try_new(files, axis)?;
    let mut repeated = None;
    all.repeated(|equal| {
        let first = equal[0];
        let other = equal.iter().find(|at| all.files[**at as usize] != all.files[first as usize]);
        repeated = other.map(|other| (first.min(*other) as usize, first.max(*other) as usize));
        false
    })?;
    let Some((a, b)) = repeated else { return Ok(()) };
    let label = labels.text(a as u64)?.unwrap_or_default();
    let name = files[0].dims()[axis].name();
    let (a, b) = (&files[all.files[a]].name, &files[all.files[b]].name);
    Err(Error::usage(format!(
        "the files cannot be one table: \"{name}\" is {label} both in {a} and in {b}; leave one of them out, or let one \
         file win with the option 'overlap', which is 'first' or 'last'"
    )))
}

/// Keeps each label of one file only, the first or the last in the order of `places`. Files without such labels stay whole;
/// others become slices of the labels that they keep. Sorts files and `places` again.
pub(super) fn keep_one(
    files: Vec<FileArrays>,
    places: Vec<usize>,
    axis: usize,
    overlap: Overlap,
) -> Result<(Vec<FileArrays>, Vec<usize>, bool)> {
    /// The most slices, each of which has the cost of a file.
    const MOST: usize = 1 << 16;
    let all = FileLabels::try_new(&files, axis)?;
    let mut keeps = vec![true; all.files.len()];
    let place = |at: &u32| places[all.files[*at as usize]];
    all.repeated(|equal| {
        let all_places = equal.iter().map(place);
        let winner = if overlap == Overlap::Last { all_places.max() } else { all_places.min() };
        for at in equal {
            keeps[*at as usize] = Some(place(at)) == winner;
        }
        true
    })?;
    if !keeps.contains(&false) {
        return Ok((files, places, false));
    }
    let (mut kept, mut kept_places, mut start) = (vec![], vec![], 0);
    for (file, place) in files.into_iter().zip(places) {
        let len = file.dims()[axis].len() as usize;
        let own = &keeps[start..start + len];
        start += len;
        for range in runs(own) {
            kept.push(sliced(&file, axis, range)?);
            kept_places.push(place);
        }
        if kept.len() > MOST {
            let message = format!("labels of files alternate more than {MOST} times");
            return Err(Error::unsupported(message).in_file(&file.name));
        }
    }
    let order = sort_files(&mut kept, axis)?;
    let places = order.iter().map(|at| kept_places[*at]).collect();
    Ok((kept, places, true))
}

/// Returns the ranges of labels that stay.
fn runs(keeps: &[bool]) -> Vec<Range<u64>> {
    let (mut all, mut start) = (vec![], 0_u64);
    for run in keeps.chunk_by(|a, b| a == b) {
        let end = start + run.len() as u64;
        if run[0] {
            all.push(start..end);
        }
        start = end;
    }
    all
}

/// Returns the arrays of a file in a range of one axis. They share the sources.
fn sliced(file: &FileArrays, axis: usize, range: Range<u64>) -> Result<FileArrays> {
    let array = |array: &GridArray| {
        let mut ranges: Vec<Range<u64>> = array.grid().shape().iter().map(|len| 0..*len).collect();
        ranges[axis] = range.clone();
        array.shared().sliced(&ranges)
    };
    let arrays = file.arrays.iter().map(array).collect::<Result<_>>()?;
    Ok(FileArrays { beside: file.beside.clone(), ..FileArrays::new(file.name.clone(), arrays) })
}
