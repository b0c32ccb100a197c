//! The default rows of `array_info` and `array_attributes`, for arrays of any format.
//!
//! They have only facts that every opened array has. A format that knows more overrides `ArrayGroup::info`.

use std::sync::Arc;

use super::NamedArray;
use crate::array::{ColumnSource, GridArray, SparseArray, is_mark};
use crate::error::{Error, Result};
use crate::source::facts::KnownAttribute;
use crate::source::known_dataset::{KnownDataset, Role};
use crate::source::opened_array::OpenedArray;

/// Returns the facts about each variable. An array that cannot be read is an error if it is the only one.
pub(crate) fn array_info(arrays: Vec<NamedArray>, left_out: &[Error]) -> Result<Vec<KnownDataset>> {
    let is_only = arrays.len() == 1;
    let mut rows = vec![];
    for (name, array) in arrays {
        match array {
            Ok(OpenedArray::Grid(array)) => rows.extend(grid_info(&name, &array)),
            Ok(OpenedArray::Sparse(array)) => rows.extend(sparse_info(&name, &array)),
            Err(error) if is_only => return Err(error),
            Err(error) => rows.push(KnownDataset::unreadable(name, error.to_string())),
        }
    }
    rows.extend(left_out.iter().map(|error| {
        KnownDataset::unreadable(error.file().unwrap_or_default(), format!("left out: {error}"))
    }));
    Ok(rows)
}

fn grid_info(name: &str, array: &GridArray) -> Vec<KnownDataset> {
    let grid = array.grid();
    let dimensions: Vec<String> = array.dims().iter().map(|it| it.name().to_owned()).collect();
    let is_coordinate = dimensions == [name];
    let fields = array.schema().fields().iter().zip(array.columns());
    let values = fields.filter_map(|(field, source)| match source {
        ColumnSource::Value(number) => Some((field, array.value(*number))),
        _ => None,
    });
    let info = values.map(|(field, column)| KnownDataset {
        name: name.to_owned(),
        variable: Some(field.name().clone()),
        role: Some(if is_coordinate { Role::Coordinate } else { Role::Data }),
        data_type: Some(field.data_type().to_string()),
        element_type: column.as_number().map(|number| number.element().to_string()),
        shape: Some(grid.shape().to_vec()),
        chunk_shape: Some(grid.chunk_shape().collect()),
        chunks: Some(grid.chunks()),
        dimensions: dimensions.clone(),
        units: field.metadata().get("units").cloned(),
        long_name: field.metadata().get("long_name").cloned(),
        ..KnownDataset::default()
    });
    info.collect()
}

fn sparse_info(name: &str, array: &SparseArray) -> Vec<KnownDataset> {
    let fields = array.schema().fields();
    let dimensions: Vec<String> =
        fields.iter().take(array.rank()).map(|it| it.name().clone()).collect();
    let tiles = array.source().fragments().iter().map(|it| it.tiles);
    let tiles = tiles.fold(0, u64::saturating_add);
    let info = fields.iter().enumerate().map(|(at, field)| KnownDataset {
        name: name.to_owned(),
        variable: Some(field.name().clone()),
        role: Some(if at < array.rank() { Role::Coordinate } else { Role::Data }),
        data_type: Some(field.data_type().to_string()),
        dimensions: dimensions.clone(),
        chunks: Some(tiles),
        ..KnownDataset::default()
    });
    info.collect()
}

/// Returns the attributes of the columns of each array, sorted by key. One of several arrays that cannot be read is left out,
/// unless they `are_named`.
pub(crate) fn array_attributes(
    arrays: Vec<NamedArray>,
    are_named: bool,
) -> Result<Vec<KnownAttribute>> {
    let leaves_out = !are_named && arrays.len() > 1;
    let mut all = vec![];
    for (name, array) in arrays {
        let schema = match array {
            Ok(OpenedArray::Grid(array)) => Arc::clone(array.schema()),
            Ok(OpenedArray::Sparse(array)) => Arc::clone(array.schema()),
            Err(error) if leaves_out => {
                log::warn!("\"{name}\" is left out: {error}");
                continue;
            }
            Err(error) => return Err(error),
        };
        for field in schema.fields() {
            let mut pairs: Vec<_> =
                field.metadata().iter().filter(|(key, _)| !is_mark(key)).collect();
            pairs.sort_unstable();
            all.extend(pairs.into_iter().map(|(key, value)| {
                KnownAttribute::text(Some(&name), key, value).of_variable(field.name())
            }));
        }
    }
    Ok(all)
}
