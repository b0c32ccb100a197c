//! [`GridArray::combine`]: makes one array of the variables of several files.
//!
//! `ArrayOpener::table` and `GridTable::from_file` call it with opened arrays. No chunk is read here: everything
//! follows from dimensions, labels and chunk grids.
//!
//! ```text
//!   0  leave out optional columns that files have not in common              optional.rs
//!      with the option `union_by_name`: give all files all variables           unite.rs
//!   1  sort the variables of each file as in the first                         order_variables
//!      if labels count times of a calendar, all count alike                    counted_labels.rs
//!      if some files have labels in singles, all have                          unify_precision
//!      if labels are numbers of several types, all have one                    unify_numbers
//!   2  variables of one file must have equal dimensions and labels             refuse_mixed_variables
//!   3  files must agree in everything but labels, and how they store values    refuse_mixed_files
//!      pad dimensions without labels to the length of the longest             padded.rs
//!   4  find the axis along which labels differ, sort the files, join labels    concat_axis.rs
//!      with the option `overlap`: leave out labels that other files have       repeated_labels.rs
//!   5  cut the table into chunks, and number the objects of all arrays         mosaic
//! ```
//!
//! The steps 1 to 4 end in an [`Arrangement`]. Another process makes it of `KnownFiles` instead, and opens only the files
//! that it reads.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};

use super::common_values::CommonValues;
use super::compat::{files_differ, variables_differ};
use super::concat_axis::{concat_axis, concat_labels, sort_files};
use super::counted_labels::unify_counted_times;
use super::differences::Differences;
use super::file_arrays::FileArrays;
use super::grid::{cutting, table_grid};
use super::layout::Layout;
use super::optional::keep_common;
use super::options::MosaicOptions;
use super::own_fill::with_own_fill;
use super::padded::pad_files;
use super::precision::{unify_numbers, unify_precision};
use super::repeated_labels::keep_one;
use super::source::{Mosaic, MosaicPart, PartValue};
use super::unite::united;
use crate::array::{GridArray, Labels, Property, ValueColumn};
use crate::error::{Error, Result};
use crate::format::ElementType;
use crate::options::Overlap;
use crate::tile::Objects;

impl GridArray {
    /// Combines arrays into one, with a column per variable. Files are concatenated along the dimension whose
    /// labels differ, in the order of these labels, whatever the order of `files`.
    ///
    /// # Errors
    /// `Usage` if the variables of a file do not have the same dimensions and labels. Unless the options allow it, `Usage` if
    /// files have other variables, dimensions or units, differ in the labels of several dimensions, or share a label. The
    /// message names the files and the difference. `Unsupported` if there are too many chunks or labels.
    pub fn combine(name: String, files: Vec<FileArrays>, options: &MosaicOptions) -> Result<Self> {
        Arrangement::try_new(files, options)?.into_array(name, options)
    }
}

/// Files in the order in which they follow one another along an axis.
#[derive(Debug)]
pub struct Arrangement {
    pub(super) files: Vec<FileArrays>,
    /// The number that each file had in the list of files before.
    pub(super) places: Vec<usize>,
    pub(super) axis: usize,
    /// The labels of all files on `axis`; `None` if there is one file.
    pub(super) labels: Option<Labels>,
    /// Whether arrays are not those of the files, which another process could not know.
    pub(super) is_adapted: bool,
}

impl Arrangement {
    /// Arranges files that may be one table.
    ///
    /// # Errors
    /// As [`GridArray::combine`].
    pub fn try_new(mut files: Vec<FileArrays>, options: &MosaicOptions) -> Result<Self> {
        if files.is_empty() || files.iter().any(|file| file.arrays.is_empty()) {
            return Err(Error::internal("a table of no array"));
        }
        keep_common(&mut files, options.union_by_name);
        if options.union_by_name {
            files = united(files)?;
        }
        let places = (0..files.len()).collect();
        let is_adapted = options.union_by_name;
        if files[0].dims().is_empty() {
            return Ok(Self { files, places, axis: 0, labels: None, is_adapted });
        }
        order_variables(&mut files);
        let is_adapted = unify_counted_times(&mut files)? | is_adapted;
        let is_adapted = unify_precision(&mut files)? | unify_numbers(&mut files)? | is_adapted;
        refuse_mixed_variables(&files)?;
        refuse_mixed_files(&files)?;
        if files.len() == 1 {
            return Ok(Self { files, places, axis: 0, labels: None, is_adapted });
        }
        let is_adapted = pad_files(&mut files, options)? | is_adapted;
        let axis = concat_axis(&files, options)?;
        let mut places = sort_files(&mut files, axis)?;
        let mut is_sliced = false;
        if options.overlap != Overlap::Refused && files[0].dims()[axis].is_labelled() {
            (files, places, is_sliced) = keep_one(files, places, axis, options.overlap)?;
        }
        let labels = Some(concat_labels(&files, axis)?);
        Ok(Self { files, places, axis, labels, is_adapted: is_adapted || is_sliced })
    }

    /// Makes one array of the files.
    ///
    /// # Errors
    /// `Usage` for several single values; `Unsupported` for too many chunks.
    pub fn into_array(self, name: String, options: &MosaicOptions) -> Result<GridArray> {
        let Self { files, axis, labels, .. } = self;
        if files[0].dims().is_empty() {
            return scalar(&name, files);
        }
        // All files have the dimensions of the first, except for the labels and the length of `axis`.
        let mut dims = files[0].dims().to_vec();
        if let Some(labels) = labels {
            dims[axis] = dims[axis].with_labels(labels);
        }
        let common = CommonValues::try_new(&files)?;
        let values = common.values.clone();
        let names = options.file_column.then(|| names_along(&files, axis));
        let source = mosaic(&name, files, axis, &common, options.chunk_bytes)?;
        let grid = source.grid().clone();
        let source = Arc::new(source);
        let array = GridArray::new(name, source, grid, dims, values, options.index_columns);
        Ok(match names {
            Some(names) => array.with_files(axis, names?),
            None => array,
        })
    }
}

/// Returns the only array, which is a scalar: it has no axis along which anything could be combined.
fn scalar(name: &str, mut files: Vec<FileArrays>) -> Result<GridArray> {
    let (mut file, others) = (files.swap_remove(0), files);
    let is_only = file.arrays.len() == 1 && others.is_empty();
    match (is_only, file.arrays.pop()) {
        (true, Some(array)) => Ok(array.with_name(name)),
        (_, last) => {
            let array = file.arrays.first().or(last.as_ref());
            let array = array.map_or(String::new(), |array| array.name().to_owned());
            let message = format!(
                "\"{array}\" is a single value, which is a table of its own: choose it alone with the option 'dataset'"
            );
            Err(Error::usage(message).in_file(&file.name))
        }
    }
}

/// Sorts the variables of each file in the order of the first file, because files may list them in any order.
/// From here on, variable `v` is `arrays[v]` in every file.
fn order_variables(files: &mut [FileArrays]) {
    let Some((first, others)) = files.split_first_mut() else { return };
    let names: Vec<&str> = first.arrays.iter().map(GridArray::name).collect();
    // Variables that the first file lacks come last; the combination fails for them later.
    others.iter_mut().for_each(|file| file.order_variables(&names));
}

/// Fails if the variables of a file differ in dimensions or labels.
fn refuse_mixed_variables(files: &[FileArrays]) -> Result<()> {
    for FileArrays { name, arrays, .. } in files {
        let (first, others) = (&arrays[0], &arrays[1..]);
        let differs =
            |other: &GridArray| Some((other.name().to_owned(), variables_differ(first, other)?));
        if let Some((other, reason)) = others.iter().find_map(differs) {
            let message =
                format!("\"{other}\" cannot be a column beside \"{}\": {reason}", first.name());
            return Err(Error::usage(message).in_file(name));
        }
    }
    Ok(())
}

/// Fails if files differ in more than labels.
fn refuse_mixed_files(files: &[FileArrays]) -> Result<()> {
    let first = &files[0];
    let mut found = Differences::default();
    for file in &files[1..] {
        files_differ(first, file).into_iter().for_each(|it| found.add(it, &file.name));
    }
    if found.all.is_empty() {
        return Ok(());
    }
    let lines = found.lines();
    let message = format!(
        "the files cannot be one table; compared with {}:{lines}\n{}",
        first.name,
        way_out(found.all.iter().any(|it| it.difference.property == Property::Variables))
    );
    Err(Error::usage(message))
}

/// Returns what to do about files that cannot be one table.
pub(super) fn way_out(variables_differ: bool) -> String {
    let shared = match variables_differ {
        true => {
            "set the option 'union_by_name', name variables that all files have with the option 'dataset', or "
        }
        false => "",
    };
    format!("{shared}make a table of each kind of file, and combine the tables with UNION ALL")
}

/// Returns the name of the file of each position along `axis`.
fn names_along(files: &[FileArrays], axis: usize) -> Result<Labels> {
    let names: StringViewArray = files.iter().map(|file| Some(file.name.as_str())).collect();
    let lens = files.iter().map(|file| file.dims()[axis].len());
    Labels::repeated(Arc::new(names) as ArrayRef, lens)
}

/// Makes the chunk source of compatible files, and cuts the table into chunks.
///
/// Two files with the variables `u` and `v` along `time` give these lists, if each file is one object:
///
/// ```text
///   starts   [0, 365, 731]                       the start of each file, and the end of the last
///   values   [u, v]                              the columns: variable, and number of the value in its array
///   parts    u: [2023, 2024], v: [2023, 2024]    per variable and file: source and first member
///   members  [2023, 2024]                        u and v of one file share their objects
/// ```
fn mosaic(
    name: &str,
    files: Vec<FileArrays>,
    axis: usize,
    common: &CommonValues,
    chunk_bytes: u64,
) -> Result<Mosaic> {
    let mut starts = vec![0];
    for file in &files {
        let start = starts.last().copied().unwrap_or_default();
        starts.push(start + file.dims()[axis].len());
    }
    let variables = files[0].arrays.len();
    let cells_of: Vec<Option<u64>> = {
        let beside = |array: &GridArray| files[0].beside(array.name()).map(|it| it.cells);
        files[0].arrays.iter().map(beside).collect()
    };
    let mut values = Vec::new();
    // Bytes of a cell of each variable, over all its values.
    let mut widths = Vec::new();
    // The columns of each variable.
    let mut columns_of: Vec<Range<usize>> = Vec::new();
    for (variable, array) in files[0].arrays.iter().enumerate() {
        let columns = values.len()..values.len() + array.values().len();
        let of_value = common.values[columns.clone()].iter().map(|value| value.column.cell_bytes());
        widths.push(of_value.fold(0, u64::saturating_add));
        for (number, value) in common.values[columns.clone()].iter().enumerate() {
            let element = element_of(&value.column);
            let data_type = value.column.data_type();
            values.push(PartValue { variable, value: number, element, data_type });
        }
        columns_of.push(columns);
    }
    // The objects of all arrays, and the objects of the previous array with the number of their first member.
    let mut members: Vec<Arc<Objects>> = Vec::new();
    let mut before: Option<(Arc<Objects>, u32)> = None;
    let mut parts: Vec<Vec<MosaicPart>> = (0..variables).map(|_| Vec::new()).collect();
    let mut grids: Vec<Vec<_>> = (0..variables).map(|_| Vec::new()).collect();
    for (number, file) in files.into_iter().enumerate() {
        for (variable, array) in file.arrays.into_iter().enumerate() {
            grids[variable].push(array.grid().clone());
            let columns = columns_of[variable].clone();
            let forms = columns.clone().map(|it| common.numbers(it, number).to_vec()).collect();
            let source = with_own_fill(array, &common.values[columns]);
            // Variables of one file share their objects, so comparing with the previous ones is enough.
            let objects = Arc::clone(source.objects());
            let member = match &before {
                Some((same, member)) if Arc::ptr_eq(same, &objects) => *member,
                _ => add_members(&mut members, &objects)?,
            };
            before = Some((objects, member));
            parts[variable].push(MosaicPart { source, member, forms });
        }
    }
    // One object or folder needs no members: its locations keep the number 0.
    let objects = match members.as_slice() {
        [one] => Arc::clone(one),
        _ => Arc::new(Objects::several(name, members)?),
    };
    let (of_cuts, widths) = cutting(&grids, &widths, &cells_of);
    let grid = table_grid(&of_cuts, axis, &widths, chunk_bytes)?;
    let layout = Arc::new(Layout::new(grid, axis, starts, grids));
    Ok(Mosaic::new(objects, layout, parts, values))
}

/// Adds the objects of an array, or of each of its members, and returns the number of the first.
/// A mosaic of mosaics has a flat list: its locations are renumbered by adding that number.
fn add_members(members: &mut Vec<Arc<Objects>>, objects: &Arc<Objects>) -> Result<u32> {
    let first = u32::try_from(members.len());
    match objects.members() {
        Some(several) => members.extend(several.iter().cloned()),
        None => members.push(Arc::clone(objects)),
    }
    first.map_err(|_| Error::unsupported("a table of more than 4294967296 files"))
}

/// Returns the type by which zone bounds compare, if the column keeps the order of its stored elements.
/// `None` for packed numbers, for example: a negative factor would turn least and greatest round.
fn element_of(column: &ValueColumn) -> Option<ElementType> {
    match column {
        _ if !column.is_as_stored() => None,
        ValueColumn::Number(column) => Some(column.element()),
        ValueColumn::Cells(_) => Some(ElementType::I64), // dates and times
    }
}
