//! Datasets of Python as tables of cells, which scans and reductions read as those of files.
//!
//! numpy names types in a few letters, such as `<f4` or `<M8[ns]`. The same rules as for files apply to their values: NaN and NaT are
//! NULL, and bytes are text.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;
use gridfusion::extend::{
    AxisChunks, AxisSelection, CellColumn, CellFormat, CellKind, ChunkGrid, Dimension, ElementType,
    Encoding, GridArray, GridArrayBuilder, Labels, ReadOptions, Scalar, Temporal, Tile, TimeUnit,
    Value, ValueColumn,
};
use gridfusion::{Error, Result};
use pyo3::prelude::*;

use crate::cells::{Cells, DatasetChunks, Variable};
use crate::foreign::memory;

type Attributes = BTreeMap<String, String>;

/// Values: the letters of numpy for their type, their bytes, and a byte per value, which is 0 for NULL. Instead of bytes, variables may
/// have a function, which returns those of a box.
type Values<'py> = (String, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

/// Values in memory, as [`Values`] has them.
type Held = (String, Bytes, Option<Bytes>);

/// A dimension: its name, its length, its labels and attributes.
pub(crate) type GivenDimension<'py> = (String, u64, Option<Values<'py>>, Attributes);

/// A variable: its name, its axes, its values and attributes.
pub(crate) type GivenVariable<'py> = (String, Vec<usize>, Values<'py>, Attributes);

/// The integer that is NaT (not a time).
const NOT_A_TIME: [u8; 8] = i64::MIN.to_le_bytes();

/// A dataset whose memory is known.
pub(crate) struct GivenDataset {
    dims: Vec<(String, u64, Option<Held>, Attributes)>,
    variables: Vec<(String, String, Attributes, Variable)>,
}

impl GivenDataset {
    /// Takes the memory of a dataset.
    ///
    /// # Errors
    /// If bytes are not in one piece.
    pub(crate) fn try_new(
        dims: Vec<GivenDimension<'_>>,
        variables: Vec<GivenVariable<'_>>,
    ) -> PyResult<Self> {
        let mut given = Self { dims: vec![], variables: vec![] };
        for (name, len, labels, attributes) in dims {
            let labels = match labels {
                Some((kind, bytes, validity)) => {
                    Some((kind, memory(&bytes)?, validity.as_ref().map(memory).transpose()?))
                }
                None => None,
            };
            given.dims.push((name, len, labels, attributes));
        }
        for (name, axes, (kind, data, validity), attributes) in variables {
            let cells = match data.is_callable() {
                true => Cells::Computed(data.unbind()),
                false => Cells::Shared(memory(&data)?, validity.as_ref().map(memory).transpose()?),
            };
            // The type tells the width.
            given.variables.push((name, kind, attributes, Variable { axes, width: 0, cells }));
        }
        Ok(given)
    }

    /// Makes the array. `chunks` are the lengths of its chunks along each axis.
    ///
    /// # Errors
    /// If a type is unknown, or parts do not fit together.
    pub(crate) fn into_array(self, name: &str, chunks: Vec<Vec<u64>>) -> Result<GridArray> {
        let options = ReadOptions::default();
        let shape: Vec<u64> = self.dims.iter().map(|dim| dim.1).collect();
        let axes = chunks.into_iter().map(|lens| {
            let ends = lens.into_iter().scan(0_u64, |end, len| {
                *end = end.saturating_add(len);
                Some(*end)
            });
            AxisChunks::At(std::iter::once(0).chain(ends).collect())
        });
        let grid = ChunkGrid::with_axis_chunks(&shape, axes.collect())?;
        let (mut values, mut variables) = (vec![], vec![]);
        for (column, kind, attributes, mut variable) in self.variables {
            let has_validity = matches!(variable.cells, Cells::Shared(_, Some(_)));
            let value = value(&column, &kind, has_validity, &options)?;
            variable.width = value.column.cell_bytes();
            variables.push(variable);
            values.push(value.with_attributes(attributes));
        }
        let source = DatasetChunks::try_new(name.to_owned(), grid.clone(), variables)?;
        let mut builder = GridArrayBuilder::new(name, Arc::new(source), grid);
        for (dim, len, given, attributes) in self.dims {
            let dimension = match given {
                Some((kind, bytes, validity)) => {
                    let labels = labels(&dim, &kind, len, bytes, validity)?;
                    Dimension::labelled(dim, Labels::from_array(labels)?)
                }
                None => Dimension::indexed(dim, len),
            };
            builder = builder.dimension(dimension.with_attributes(attributes));
        }
        values.into_iter().fold(builder, GridArrayBuilder::value).build()
    }
}

/// Returns how cells of a type of numpy become a column.
fn value(name: &str, kind: &str, has_validity: bool, options: &ReadOptions) -> Result<Value> {
    let unknown = || Error::unsupported(format!("\"{name}\" has values of numpy's type {kind}"));
    if let Some(element) = element(kind) {
        return Ok(Value::numbers(name, element, None, options));
    }
    let (code, size) = kind.split_at_checked(2).ok_or_else(unknown)?;
    let time = || {
        let unit = size.strip_prefix("8[").and_then(|it| it.strip_suffix(']'));
        unit.and_then(TimeUnit::from_numpy).ok_or_else(unknown)
    };
    let (kind, nulls) = match code {
        "|b" => (CellKind::Scalar(Scalar::Boolean), vec![]),
        "<M" => (CellKind::Scalar(Scalar::Temporal(Temporal::Point(time()?))), NOT_A_TIME.to_vec()),
        "<m" => {
            (CellKind::Scalar(Scalar::Temporal(Temporal::Length(time()?))), NOT_A_TIME.to_vec())
        }
        "|S" => {
            let width = size.parse().ok().filter(|it| *it > 0).ok_or_else(unknown)?;
            (CellKind::FixedText(Encoding::Utf8, width), vec![])
        }
        _ => return Err(unknown()),
    };
    let nulls = if nulls.is_empty() { vec![] } else { vec![nulls] };
    let column = ValueColumn::Cells(CellColumn::new(kind, has_validity, nulls));
    let width = column.cell_bytes() as usize;
    let cells = CellFormat::new(Some(width), has_validity, vec![], !has_validity);
    Ok(Value::new(name, column, cells))
}

fn element(kind: &str) -> Option<ElementType> {
    Some(match kind {
        "|i1" => ElementType::I8,
        "<i2" => ElementType::I16,
        "<i4" => ElementType::I32,
        "<i8" => ElementType::I64,
        "|u1" => ElementType::U8,
        "<u2" => ElementType::U16,
        "<u4" => ElementType::U32,
        "<u8" => ElementType::U64,
        "<f2" => ElementType::F16,
        "<f4" => ElementType::F32,
        "<f8" => ElementType::F64,
        _ => return None,
    })
}

/// Returns the labels of a dimension. NaN stays, as in files.
fn labels(
    name: &str,
    kind: &str,
    len: u64,
    bytes: Bytes,
    validity: Option<Bytes>,
) -> Result<ArrayRef> {
    let options = ReadOptions::default().with_nan_as_null(false);
    let value = value(name, kind, validity.is_some(), &options)?;
    let tile = Tile::fixed(bytes, value.column.cell_bytes() as usize).with_validity(validity);
    value.column.decode(&tile, &[AxisSelection::all(len)], true)
}
