//! Which datasets of a file a table is made of.

use crate::array::ReadOptions;
use crate::error::{Error, Result};
use crate::source::{FileArrays, TetReader};

/// The dataset of this name, or those of several names with commas between them; without a name all data
/// variables, which must have the same dimensions.
///
/// # Errors
/// `Usage` if there is no such dataset, or none is named and the variables have not the same dimensions;
/// otherwise those of [`TetReader::array`].
pub(super) async fn arrays_of(
    file: &TetReader,
    dataset: Option<&str>,
    options: &ReadOptions,
) -> Result<FileArrays> {
    let names = match dataset {
        Some(names) => names_in(names, |name| file.tet().dataset_id(name).is_some()),
        None => data_variables(file)?,
    };
    let arrays = file.arrays(&names, options).await?;
    Ok(FileArrays { name: file.name().to_owned(), arrays })
}

/// All data variables, if they can be columns of one table.
fn data_variables(file: &TetReader) -> Result<Vec<String>> {
    let names = file.data_variables();
    let mut axes = names.iter().map(|name| axes_of(file, name));
    let first = axes.next();
    if names.is_empty() {
        return Err(Error::usage("the file has no data variable").in_file(file.name()));
    }
    if axes.all(|axes| Some(axes) == first) {
        return Ok(names);
    }
    let listed = names.iter().map(|name| with_axes(name, &axes_of(file, name)));
    Err(mixed("the file has several data variables", listed).in_file(file.name()))
}

/// The names that the option `dataset` holds: one, if `is_one` knows it, or several with commas between them.
pub(super) fn names_in(dataset: &str, is_one: impl Fn(&str) -> bool) -> Vec<String> {
    match dataset.contains(',') && !is_one(dataset) {
        true => dataset.split(',').map(|name| name.trim().to_owned()).collect(),
        false => vec![dataset.to_owned()],
    }
}

/// A name with dimensions: `"t" (time: 24, lat: 10)`.
pub(super) fn with_axes(name: &str, axes: &[(String, u64)]) -> String {
    let axes: Vec<String> = axes.iter().map(|(name, len)| format!("{name}: {len}")).collect();
    format!("\"{name}\" ({})", axes.join(", "))
}

/// Why several variables are no table; `listed` are they.
pub(super) fn mixed(several: &str, listed: impl Iterator<Item = String>) -> Error {
    /// More than this do not help.
    const MOST: usize = 40;
    let mut listed: Vec<String> = listed.collect();
    let more = listed.len().saturating_sub(MOST);
    listed.truncate(MOST);
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    Error::usage(format!(
        "{several} over different dimensions, which cannot be columns of one table; choose one with the \
         option 'dataset', or several with commas between them: {}",
        listed.join(", ")
    ))
}

/// The names and lengths of the dimensions of a dataset.
fn axes_of(file: &TetReader, dataset: &str) -> Vec<(String, u64)> {
    let Some(id) = file.tet().dataset_id(dataset) else { return vec![] };
    let (dimensions, _) = file.tet().dimensions(id);
    dimensions.into_iter().map(|dimension| (dimension.name, dimension.len)).collect()
}
