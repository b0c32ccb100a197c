//! Finds the dimension along which files are concatenated, sorts the files and joins their labels.
//!
//! ```text
//!   b.tet   time 2024-01-01 … 2024-12-31   lat 0 … 90        axis 0, because only the labels of time differ
//!   a.tet   time 2023-01-01 … 2023-12-31   lat 0 … 90        order a, b, by the least label of each
//! ```
//!
//! `combine` calls `concat_axis`, `sort_files` and `concat_labels` in this order.
//!
//! A table must not depend on the order of a listing, so files are sorted by their least label. A label that two files
//! have is refused, because queries would count it twice. Counted coordinates that continue across arrays stay counted.

use arrow::array::{ArrayRef, make_comparator};
use arrow::compute::{SortOptions, concat};

use super::combine::way_out;
use super::differences::{Differences, labels_differ};
use super::file_arrays::FileArrays;
use super::options::MosaicOptions;
use super::repeated_labels::refuse_repeated;
use crate::array::{Dimension, LabelOrder, Labels, failed_to};
use crate::error::{Error, Result};
use crate::options::Overlap;

/// The most labels of a dimension of many files in memory.
pub(super) const MOST_LABELS: u64 = 1 << 28;

/// Returns the axis along which several files are concatenated: the requested dimension, or the only one whose
/// labels differ.
pub(super) fn concat_axis(files: &[FileArrays], options: &MosaicOptions) -> Result<usize> {
    let dims = files[0].dims();
    let asked = options.concat_dimension.as_deref().map(|name| axis_of(dims, name)).transpose()?;
    let differs = |axis: &usize| {
        let differs = |file: &FileArrays| labels_differ(&dims[*axis], &file.dims()[*axis]);
        files[1..].iter().any(|file| differs(file).is_some())
    };
    let differing: Vec<usize> = (0..dims.len()).filter(differs).collect();
    // Files with the same labels everywhere may be concatenated on request only: they may as well be
    // copies.
    match (asked, differing.as_slice()) {
        (Some(axis), differing) if differing.iter().all(|other| *other == axis) => Ok(axis),
        (None, [axis]) => Ok(*axis),
        (None, []) if samples_axis(files).is_some() => Ok(samples_axis(files).unwrap_or_default()),
        // One of several copies wins.
        (None, []) if options.overlap != Overlap::Refused && dims[0].is_labelled() => Ok(0),
        (None, []) => Err(Error::usage(format!(
            "the files have the same labels on every dimension ({}), so there is none to concatenate along; to \
             concatenate the files anyway, name a dimension with the option 'concat_dimension'",
            names(dims)
        ))),
        (asked, differing) => Err(several_differ(files, asked, differing)),
    }
}

/// Returns the only axis that counts samples in all files: each file has samples of its own.
pub(super) fn samples_axis(files: &[FileArrays]) -> Option<usize> {
    let counts = |axis: &usize| {
        files.iter().all(|file| file.dims().get(*axis).is_some_and(Dimension::counts_samples))
    };
    let mut axes = (0..files.first()?.dims().len()).filter(counts);
    axes.next().filter(|_| axes.next().is_none())
}

pub(super) fn axis_of(dims: &[Dimension], name: &str) -> Result<usize> {
    dims.iter().position(|dim| dim.name() == name).ok_or_else(|| {
        let message =
            format!("no dimension \"{name}\" to concatenate the files along; the dimensions are ");
        Error::usage(message + &names(dims))
    })
}

fn names(dims: &[Dimension]) -> String {
    dims.iter().map(Dimension::name).collect::<Vec<_>>().join(", ")
}

/// Returns the error for files whose labels differ along other dimensions than allowed.
fn several_differ(files: &[FileArrays], asked: Option<usize>, differing: &[usize]) -> Error {
    let (first, mut found) = (&files[0], Differences::default());
    for axis in differing.iter().filter(|axis| Some(**axis) != asked) {
        for file in &files[1..] {
            let differs = labels_differ(&first.dims()[*axis], &file.dims()[*axis]);
            differs.into_iter().for_each(|it| found.add(it, &file.name));
        }
    }
    // Without labels, the others could be padded.
    let counted = |axis: &usize| !first.dims()[*axis].is_labelled();
    let hint = match asked.is_none() && differing.iter().any(counted) {
        true => "name the dimension to concatenate along with the option 'concat_dimension', or ",
        false => "",
    };
    let allowed = match asked {
        Some(axis) => format!("only the labels of \"{}\" may differ", first.dims()[axis].name()),
        None => "the labels of only one dimension may differ".to_owned(),
    };
    Error::usage(format!(
        "the files cannot be one table: {allowed}; compared with {}:{}\n{hint}{}",
        first.name,
        found.lines(),
        way_out(false)
    ))
}

/// Sorts the files by their least label on `axis`, or by name if the axis has no labels. The order is
/// descending if the labels of all files are. Returns the number that each file had before.
///
/// Latitudes often descend: files with 90 … 46 and 45 … 0 are then in this order, so that the whole
/// descends, too. Files with one label have no direction, so they follow the others.
pub(super) fn sort_files(files: &mut Vec<FileArrays>, axis: usize) -> Result<Vec<usize>> {
    let order = sorted_order(files, axis)?;
    // Arrays cannot be cloned, so each file is moved out of its old place.
    let mut taken: Vec<Option<FileArrays>> = files.drain(..).map(Some).collect();
    files.extend(order.iter().filter_map(|&at| taken[at].take()));
    Ok(order)
}

/// Returns the numbers of the files in the order of [`sort_files`].
fn sorted_order(files: &[FileArrays], axis: usize) -> Result<Vec<usize>> {
    // The order by label is stable, so files with equal least labels stay in the order of their names.
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by(|a, b| files[*a].name.cmp(&files[*b].name));
    if !files[0].dims()[axis].is_labelled() {
        return Ok(order);
    }
    let firsts: Vec<ArrayRef> =
        files.iter().map(|file| least(file, axis)).collect::<Result<_>>()?;
    let firsts = joined(&firsts)?;
    let compare = make_comparator(&firsts, &firsts, SortOptions::default())
        .map_err(failed_to("compare the labels of files"))?;
    order.sort_by(|a, b| compare(*a, *b));
    let descends = |file: &FileArrays| {
        let dim = &file.dims()[axis];
        dim.len() < 2 || dim.labels().order() == LabelOrder::Descending
    };
    if files.iter().all(descends) && files.iter().any(|file| file.dims()[axis].len() > 1) {
        order.reverse();
    }
    Ok(order)
}

/// Returns the least label of a file, as an array of one element; NULL if there is none.
fn least(file: &FileArrays, axis: usize) -> Result<ArrayRef> {
    let (dim, len) = (&file.dims()[axis], file.dims()[axis].len());
    let everything = crate::grid::AxisSelection::all(len);
    let extremes = dim.labels().extremes(&everything, 0)?;
    dim.labels().at(std::iter::once(extremes.map(|(least, _)| least)))
}

/// Concatenates the labels of all files on `axis`.
///
/// Counted labels that continue from file to file stay counted, of any number: 0 … 9 and 10 … 19 are 0 …
/// 19. All others are copied into one array. Axes without labels are counted again from 0.
///
/// # Errors
/// `Unsupported` for more than 2²⁸ labels in memory; `Usage` if two files share a label.
pub(super) fn concat_labels(files: &[FileArrays], axis: usize) -> Result<Labels> {
    let mut all = files.iter().map(|file| file.dims()[axis].labels());
    let first = all.next().cloned();
    if let Some(joined) = first.and_then(|first| all.try_fold(first, |a, b| a.joined(b))) {
        return Ok(joined);
    }
    let len = files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.dims()[axis].len()));
    let len = len.filter(|len| *len <= MOST_LABELS || !files[0].dims()[axis].is_labelled());
    let len = len.ok_or_else(|| {
        Error::unsupported(format!("more than {MOST_LABELS} labels on one dimension"))
    })?;
    if !files[0].dims()[axis].is_labelled() {
        return Ok(Labels::indices(len));
    }
    let of_file = |file: &FileArrays| file.dims()[axis].labels().slice(0..file.dims()[axis].len());
    let labels =
        Labels::from_array(joined(&files.iter().map(of_file).collect::<Result<Vec<_>>>()?)?)?;
    // Labels in strict order do not repeat.
    if labels.order() == LabelOrder::Unsorted {
        refuse_repeated(&labels, files, axis)?;
    }
    Ok(labels)
}

pub(super) fn joined(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let arrays: Vec<&dyn arrow::array::Array> = arrays.iter().map(|array| array.as_ref()).collect();
    concat(&arrays).map_err(failed_to("join the labels of files"))
}
