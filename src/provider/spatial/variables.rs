//! Small variables as numbers: bounds of cells, and coordinates of curvilinear grids.

use std::sync::Arc;

use arrow::array::{ArrowPrimitiveType, AsArray, PrimitiveArray, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::downcast_primitive_array;
use gridfusion_core::read::ArrayReader;

use crate::array::{Dimension, GridArray};
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, Selection};
use crate::provider::{ArrayOpener, GridTable};

/// The most numbers of a variable that are read into memory.
const MOST_CELLS: u64 = 1 << 27;

/// Reads a variable along these axes, at index 0 of all others. Missing values are NaN.
///
/// # Errors
/// `Usage` if it is no column of numbers, `Unsupported` if it is too long, or if it cannot be read.
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
    let named = |error: Error| array.objects().named(error);
    if selection.cells() > MOST_CELLS {
        return Err(named(Error::unsupported(format!(
            "\"{variable}\" has {} cells, and coordinates are read whole, up to {MOST_CELLS} cells",
            selection.cells()
        ))));
    }
    let field = array.schema().field_with_name(variable);
    let field =
        field.map_err(|_| named(Error::usage(format!("there is no variable \"{variable}\""))))?;
    let reader = ArrayReader::of_selection(Arc::clone(array), selection);
    let of_type = new_empty_array(field.data_type());
    let of_type = of_type.as_ref();
    downcast_primitive_array!(
        of_type => numbers(&reader, variable, of_type).await,
        other => Err(named(Error::usage(format!(
            "\"{variable}\" is of type {other}, and coordinates are numbers"
        ))))
    )
}

/// Reads cells of the type of `_like` as numbers.
async fn numbers<T: ArrowPrimitiveType>(
    reader: &ArrayReader,
    variable: &str,
    _like: &PrimitiveArray<T>,
) -> Result<Vec<f64>> {
    let cells = reader.cells::<T>(variable).await?.into_array();
    let numbers = cast(&cells, &DataType::Float64)
        .map_err(|error| Error::usage(format!("\"{variable}\" holds no numbers: {error}")))?;
    Ok(numbers.as_primitive::<Float64Type>().iter().map(|it| it.unwrap_or(f64::NAN)).collect())
}

/// Returns the vertices of each cell along some dimensions of a table, cell by cell: those that the variable `name` beside the
/// table's arrays has. Along one dimension, a cell has two edges, and along two, it has four corners. `of` names the coordinate.
///
/// The variable may have other dimensions, such as the times of files that were put one after another. Then its
/// vertices are the same at each of their indices. `None` if there is no such variable, which a warning tells.
///
/// # Errors
/// `Usage` if the variable has vertices of other cells, or if it cannot be read.
pub(super) async fn vertices(
    opener: &ArrayOpener,
    table: &GridTable,
    of: &str,
    dimensions: &[&Dimension],
    name: &str,
) -> Result<Option<Vec<f64>>> {
    let Some((variable, array)) = variable_beside(opener, table, name).await? else {
        log::warn!(
            "\"{of}\" of {} names its bounds \"{name}\", and there is no such variable: cells end halfway between labels",
            table.array().name()
        );
        return Ok(None);
    };
    let named = |error: Error| array.objects().named(error);
    let (dims, count) = (array.dims(), 2 * dimensions.len() as u64);
    let fits = |wanted: &&Dimension| {
        dims.iter().position(|it| it.name() == wanted.name() && it.len() == wanted.len())
    };
    let axes: Option<Vec<usize>> = dimensions.iter().map(fits).collect();
    let last = |axes: &Vec<usize>| (0..dims.len()).rev().find(|axis| !axes.contains(axis));
    let place = axes.as_ref().and_then(last).filter(|axis| dims[*axis].len() == count);
    let has_cells = !dims.iter().any(Dimension::is_empty);
    let (Some(mut axes), Some(place), true) = (axes, place, has_cells) else {
        return Err(named(misfit(name, &array, of, dimensions)));
    };
    axes.push(place);
    let all: Vec<usize> = (0..dims.len()).collect();
    let numbers = read(&array, &variable, &all).await?;
    along(&array, &numbers, &axes).map(Some).ok_or_else(|| {
        named(Error::usage(format!(
            "the bounds \"{name}\" of \"{of}\" change along another dimension: edges => 'midpoints' ignores them"
        )))
    })
}

fn misfit(name: &str, bounds: &GridArray, of: &str, dimensions: &[&Dimension]) -> Error {
    let shape = |dims: &mut dyn Iterator<Item = &Dimension>| {
        dims.map(|dim| format!("{}={}", dim.name(), dim.len())).collect::<Vec<_>>().join(", ")
    };
    let (found, expected) =
        (shape(&mut bounds.dims().iter()), shape(&mut dimensions.iter().copied()));
    Error::usage(format!(
        "the bounds \"{name}\" of \"{of}\" have the shape ({found}), expected {expected} and {}: edges => 'midpoints' ignores them",
        2 * dimensions.len()
    ))
}

/// Returns the numbers of an array along some of its axes, in row-major order of these. `None` if they are not the same along all other
/// axes.
fn along(array: &GridArray, numbers: &[f64], axes: &[usize]) -> Option<Vec<f64>> {
    let shape: Vec<usize> = array.grid().shape().iter().map(|len| *len as usize).collect();
    let stride = |axis: usize| shape[axis + 1..].iter().product::<usize>();
    // From an index of all axes to one of these.
    let mut steps = vec![];
    let mut cells = 1;
    for axis in axes.iter().rev() {
        steps.push((stride(*axis), shape[*axis], cells));
        cells *= shape[*axis];
    }
    let mut found = vec![None; cells];
    for (at, number) in numbers.iter().enumerate() {
        let to = steps.iter().map(|(stride, len, step)| at / stride % len * step).sum::<usize>();
        match &found[to] {
            Some(known) if f64::to_bits(*known) != number.to_bits() => return None,
            _ => found[to] = Some(*number),
        }
    }
    found.into_iter().collect()
}

/// Opens a variable that an attribute names: of the group that the table's array is in, or of one above it.
async fn variable_beside(
    opener: &ArrayOpener,
    table: &GridTable,
    name: &str,
) -> Result<Option<(String, Arc<GridArray>)>> {
    let Some((place, origin)) = table.origin().and_then(|it| Some((it.first_place()?, it))) else {
        return Ok(None);
    };
    let group = opener.group(place, origin.format.as_deref(), &origin.options).await?;
    let array = table.array();
    let mut above = Some(array.name());
    let path = std::iter::from_fn(|| {
        let group = above?;
        above = match group.rsplit_once('/') {
            Some((above, _)) => Some(above),
            None if group.is_empty() => None,
            None => Some(""),
        };
        Some(group)
    });
    let paths = path.map(|group| format!("{group}/{name}").trim_start_matches('/').to_owned());
    let absolute = name.strip_prefix('/').map(str::to_owned);
    let found = absolute.into_iter().chain(paths).find(|path| group.has(path));
    let Some(path) = found else { return Ok(None) };
    let Some(opened) = group.arrays(&[path]).await?.into_iter().next() else { return Ok(None) };
    let opened = Arc::new(opened.into_grid()?);
    let variable = opened.values().first().map(|it| it.name.clone());
    Ok(variable.map(|variable| (variable, opened)))
}
