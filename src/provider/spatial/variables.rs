//! Small variables as numbers: bounds of cells, and coordinates of curvilinear grids.

use std::sync::Arc;

use arrow::array::{ArrowPrimitiveType, PrimitiveArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use gridfusion_core::read::ArrayReader;

use crate::array::GridArray;
use crate::error::{Error, Result};
use crate::exec::spatial::Edges;
use crate::grid::{AxisSelection, Selection};
use crate::provider::ArrayOpener;
use crate::source::TableOrigin;

/// The most numbers of a variable that are read into memory.
const MOST_CELLS: u64 = 1 << 27;

/// Reads a variable along these axes, at index 0 of all others. Missing values are NaN.
///
/// # Errors
/// `Usage` if it is no column of floats, `Unsupported` if it is too long, or if it cannot be read.
pub(super) async fn read(
    array: &Arc<GridArray>,
    variable: &str,
    axes: &[usize],
) -> Result<Vec<f64>> {
    let lengths = array.dims().iter().map(|dim| dim.len()).enumerate();
    let selected = lengths.map(|(axis, len)| match axes.contains(&axis) {
        true => AxisSelection::all(len),
        false => AxisSelection::from_range(len, 0..len.min(1)),
    });
    let selection = Selection::from_axes(selected.collect());
    if selection.cells() > MOST_CELLS {
        return Err(array.objects().named(Error::unsupported(format!(
            "\"{variable}\" has {} cells, and coordinates are read whole, up to {MOST_CELLS} cells",
            selection.cells()
        ))));
    }
    let reader = ArrayReader::of_selection(Arc::clone(array), selection);
    let field = array.schema().field_with_name(variable).map_err(|_| {
        array.objects().named(Error::usage(format!("there is no variable \"{variable}\"")))
    })?;
    match field.data_type() {
        DataType::Float64 => {
            Ok(numbers(&reader.cells::<Float64Type>(variable).await?.into_array()))
        }
        DataType::Float32 => {
            Ok(numbers(&reader.cells::<Float32Type>(variable).await?.into_array()))
        }
        other => Err(array.objects().named(Error::usage(format!(
            "\"{variable}\" is of type {other}, and coordinates are floats"
        )))),
    }
}

fn numbers<T: ArrowPrimitiveType<Native: Into<f64>>>(cells: &PrimitiveArray<T>) -> Vec<f64> {
    cells.iter().map(|it| it.map_or(f64::NAN, Into::into)).collect()
}

/// Returns the two edges of each cell along an axis of `len` cells, which the variable `name` beside the table's arrays has.
/// `None` if there is no such variable, or it is for other cells, as in one of several files.
pub(super) async fn bounds(
    opener: &ArrayOpener,
    origin: Option<&TableOrigin>,
    name: &str,
    len: u64,
) -> Result<Option<Edges>> {
    let Some((place, origin)) = origin.and_then(|it| Some((it.first_place()?, it))) else {
        return Ok(None);
    };
    let group = opener.group(place, origin.format.as_deref(), &origin.options).await?;
    if !group.has(name) {
        return Ok(None);
    }
    let arrays = group.arrays(&[name.to_owned()]).await?;
    let Some(array) = arrays.into_iter().next() else { return Ok(None) };
    let array = Arc::new(array.into_grid()?);
    if *array.grid().shape() != [len, 2] {
        return Ok(None);
    }
    let Some(variable) = array.values().first().map(|it| it.name.clone()) else { return Ok(None) };
    let numbers = read(&array, &variable, &[0, 1]).await?;
    let edges = numbers.chunks_exact(2).map(|it| [it[0], it[1]]);
    Ok(Some(edges.collect()))
}
