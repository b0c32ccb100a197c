//! Converts TileDB dimensions to labels, and TileDB attributes to columns of values.
//!
//! | stored | cell | column |
//! |---|---|---|
//! | dimension of whole numbers, dates, times | | labels that count up by one |
//! | attribute of numbers | 1 value | `NumberColumn` |
//! | dates, times, booleans | 1 value | `CellKind::Scalar` |
//! | numbers, dates, times, booleans | n values | `CellKind::FixedList` |
//! | numbers, dates, times, booleans | any number of values | `CellKind::List` |
//! | text, bytes | n characters | `CellKind::FixedBytes` |
//! | text | any number of characters | `CellKind::Text`, or bytes by option |
//! | bytes | any number | `CellKind::Bytes` |
//! | whole numbers with an enumeration | 1 index | `CellKind::Enumerated` |
//!
//! Only NaN, NaT and NULL are NULL. A fill value is also the default of unwritten cells in TileDB, so it is NULL only by
//! option.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use bytes::Bytes;

use super::view::TileDbView;
use crate::bytes::{
    Attribute, Datatype, DimensionDomain, DimensionSchema, Enumeration, FieldSchema, TileDbArray,
    ValuesPerCell,
};
use gridfusion_core::array::{
    CellColumn, CellKind, Counter, Dimension, Encoding, NOT_A_TIME, NumberColumn, Scalar, Temporal,
    Unreadable, Value, ValueColumn,
};
use gridfusion_core::format::{ElementType, bound};
use gridfusion_core::grid::AxisSelection;
use gridfusion_core::tile::{CellFormat, Tile};
use gridfusion_core::{Error, Result};

/// Returns the dimension of a table with `len` labels from coordinate `low` on. Coordinates of dense arrays
/// are not stored: they count up by one.
///
/// # Errors
/// `Unsupported` for dimensions of floats or text, which only sparse arrays have, and for labels beyond
/// Arrow's types.
pub(super) fn table_dimension(
    dimension: &DimensionSchema,
    low: i128,
    len: u64,
    view: &TileDbView,
) -> Result<Dimension> {
    let scalar = match (&dimension.domain, scalar(dimension.datatype, view)) {
        (DimensionDomain::Integer { .. }, Some(scalar)) => scalar,
        _ => {
            let (name, datatype) = (&dimension.name, dimension.datatype);
            return Err(Error::unsupported(format!("dimension \"{name}\" of type {datatype}")));
        }
    };
    let labels = Counter::new(low, len, scalar)
        .map_err(|error| error.about(&format!("dimension \"{}\"", dimension.name)))?;
    let attributes = attributes_of(dimension.datatype, scalar);
    Ok(Dimension::new(dimension.name.clone(), Some(labels.into()), len, attributes))
}

/// Returns the column of a dimension of a sparse array, which stores the coordinates of each cell. They are
/// never NULL.
///
/// # Errors
/// `Unsupported` for types that no column can have.
pub(super) fn coordinate_value(dimension: &DimensionSchema, view: &TileDbView) -> Result<Value> {
    let (datatype, name) = (dimension.datatype, dimension.name.clone());
    let is_text = dimension.domain == DimensionDomain::Text;
    let values = if is_text { ValuesPerCell::Variable } else { ValuesPerCell::Fixed(1) };
    let column = match scalar(datatype, view) {
        Some(Scalar::Number(element)) if !is_text => {
            let read = view.read.clone().with_nan_as_null(false);
            ValueColumn::Number(NumberColumn::plain(element, None, false, &read))
        }
        _ => {
            // Coordinates are compared by their bytes, so that their order must be that of the characters.
            let view = TileDbView { text_encoding: None, ..view.clone() };
            ValueColumn::Cells(CellColumn::new(cell_kind(datatype, values, &view)?, false, vec![]))
        }
    };
    let width = if is_text { None } else { usize::try_from(datatype.size()).ok() };
    let cells = CellFormat::new(width, false, vec![], true);
    let attributes = scalar(datatype, view).map(|scalar| attributes_of(datatype, scalar));
    Ok(Value::new(name, column, cells).with_attributes(attributes.unwrap_or_default()))
}

/// Returns `tiledb_datatype` with the stored type for a date or time that its column shows as integers,
/// because the integers alone lack the unit. Returns no attributes for other types.
fn attributes_of(datatype: Datatype, scalar: Scalar) -> BTreeMap<String, String> {
    let told = !datatype.is_temporal() || scalar.data_type().is_temporal();
    let tell = (!told).then(|| ("tiledb_datatype".to_owned(), datatype.to_string()));
    tell.into_iter().collect()
}

/// Returns the name of the column of an attribute.
pub(super) fn column_name(attribute: &Attribute) -> &str {
    if attribute.name.is_empty() { "value" } else { &attribute.name }
}

/// Returns the columns of the attributes of an array. The anonymous attribute becomes the column `value`.
///
/// # Errors
/// `Unsupported` for cells that are too large, and for enumerations with indices that are not whole
/// numbers. An enumeration that cannot be read is an error of queries that use its column.
pub(super) fn table_values(array: &TileDbArray, view: &TileDbView) -> Result<Vec<Value>> {
    let attributes = array.schema().attributes.iter().enumerate();
    let value = |(number, attribute): (usize, &Attribute)| {
        let value = table_value(attribute, array.enumeration(number), view);
        value.map_err(|error| error.about(&format!("attribute \"{}\"", attribute.name)))
    };
    attributes.map(value).collect()
}

/// Returns the errors of enumerations whose values cannot be shown, one per attribute.
pub(super) fn enumeration_errors(array: &TileDbArray, view: &TileDbView) -> Vec<Error> {
    let attributes = array.schema().attributes.iter().enumerate();
    let error = |(number, attribute): (usize, &Attribute)| {
        let values =
            array.enumeration(number).and_then(|it| it.map(|it| values_of(it, view)).transpose());
        Some(values.err()?.about(&format!("attribute \"{}\"", attribute.name)))
    };
    attributes.filter_map(error).collect()
}

fn table_value(
    attribute: &Attribute,
    enumeration: Result<Option<&Arc<Enumeration>>>,
    view: &TileDbView,
) -> Result<Value> {
    let column = match enumeration {
        Ok(Some(enumeration)) => enumerated(attribute, enumeration, view)?,
        Ok(None) => {
            let fill = Some(attribute.fill.as_slice());
            column(attribute.datatype, attribute.values_per_cell, attribute.nullable, fill, view)?
        }
        // The type of the values is not known, and no value is ever shown.
        Err(error) => unreadable(attribute, DataType::Utf8View, error)?,
    };
    let width = attribute.cell_size().map(usize::try_from).transpose();
    let width = width.map_err(|_| Error::unsupported("cells that do not fit in memory"))?;
    let name = column_name(attribute);
    let attributes = scalar(attribute.datatype, view)
        .map(|scalar| attributes_of(attribute.datatype, scalar))
        .unwrap_or_default();
    let cells =
        CellFormat::new(width, attribute.nullable, attribute.fill.clone(), attribute.fill_valid);
    Ok(Value::new(name, column, cells).with_attributes(attributes))
}

/// Returns the format of the cells in a tile that is complete, so that no cell needs the fill value.
///
/// # Errors
/// `Unsupported` for cells that are too large.
pub(super) fn complete_cells(field: &FieldSchema<'_>) -> Result<CellFormat> {
    let width = field.cell_size().map(usize::try_from).transpose();
    let width = width.map_err(|_| Error::unsupported("cells that do not fit in memory"))?;
    Ok(CellFormat::new(width, field.nullable, vec![], true))
}

/// Makes the column of cells with values of `datatype`. Cells that equal `fill` are NULL by option.
fn column(
    datatype: Datatype,
    values_per_cell: ValuesPerCell,
    nullable: bool,
    fill: Option<&[u8]>,
    view: &TileDbView,
) -> Result<ValueColumn> {
    let fill = fill.filter(|_| view.read.fill_as_null);
    // A number per cell, the usual case, takes the same fast path as `.tet` files.
    if let (Some(Scalar::Number(element)), ValuesPerCell::Fixed(1)) =
        (scalar(datatype, view), values_per_cell)
    {
        let column = NumberColumn::plain(element, fill.map(bound), nullable, &view.read);
        return Ok(ValueColumn::Number(column));
    }
    let kind = cell_kind(datatype, values_per_cell, view)?;
    let mut nulls: Vec<Vec<u8>> = fill.map(<[u8]>::to_vec).into_iter().collect();
    if view.read.nan_as_null && matches!(kind, CellKind::Scalar(Scalar::Temporal(_))) {
        nulls.push(NOT_A_TIME.to_le_bytes().to_vec());
    }
    let column = CellColumn::new(kind, nullable, nulls);
    Ok(ValueColumn::Cells(column.with_missing_items(view.read.nan_as_null)))
}

/// Makes a column whose cells cannot be shown, for the reason that `error` gives.
fn unreadable(attribute: &Attribute, data_type: DataType, error: Error) -> Result<ValueColumn> {
    let width = attribute.cell_size().ok_or_else(|| {
        let (values, datatype) = (attribute.values_per_cell, attribute.datatype);
        Error::unsupported(format!("{values} values of {datatype} as indices"))
    })?;
    let error = error.about(&format!("attribute \"{}\"", attribute.name));
    let kind = CellKind::Unreadable(Unreadable { width, data_type, error });
    Ok(ValueColumn::Cells(CellColumn::new(kind, attribute.nullable, vec![])))
}

/// Returns how a cell of this type and number of values becomes a value of a column.
fn cell_kind(
    datatype: Datatype,
    values_per_cell: ValuesPerCell,
    view: &TileDbView,
) -> Result<CellKind> {
    let encoding = match datatype {
        Datatype::StringAscii | Datatype::StringUtf8 | Datatype::GeomWkt => {
            Some(view.text_encoding.unwrap_or(Encoding::Utf8))
        }
        Datatype::StringUtf16 | Datatype::StringUcs2 => Some(Encoding::Utf16),
        Datatype::StringUtf32 | Datatype::StringUcs4 => Some(Encoding::Utf32),
        _ => None,
    };
    Ok(match (values_per_cell, scalar(datatype, view), encoding) {
        (ValuesPerCell::Fixed(1), Some(scalar), _) => CellKind::Scalar(scalar),
        (ValuesPerCell::Fixed(len), Some(scalar), _) if i32::try_from(len).is_ok() => {
            CellKind::FixedList(scalar, len)
        }
        (ValuesPerCell::Fixed(len), None, _) => {
            let width = u64::from(len) * datatype.size();
            match i32::try_from(width) {
                Ok(width) => CellKind::FixedBytes(width.unsigned_abs()),
                Err(_) => return Err(Error::unsupported(format!("cells of {width} bytes"))),
            }
        }
        // A list of more items than Arrow can count.
        (ValuesPerCell::Fixed(len), ..) => {
            return Err(Error::unsupported(format!("cells of {len} values")));
        }
        (ValuesPerCell::Variable, Some(scalar), _) => CellKind::List(scalar),
        (ValuesPerCell::Variable, None, Some(encoding)) if !view.text_as_binary => {
            CellKind::Text(encoding)
        }
        (ValuesPerCell::Variable, None, _) => CellKind::Bytes,
    })
}

/// Returns how a single value of a type is read; `None` for text and bytes.
pub(super) fn scalar(datatype: Datatype, view: &TileDbView) -> Option<Scalar> {
    Some(match datatype {
        Datatype::Bool => Scalar::Boolean,
        Datatype::DateTime(_) | Datatype::Time(_) if view.time_as_integer => {
            Scalar::Temporal(Temporal::Count)
        }
        Datatype::DateTime(unit) => Scalar::Temporal(Temporal::Point(unit)),
        Datatype::Time(unit) => Scalar::Temporal(Temporal::Length(unit)),
        _ => Scalar::Number(element(datatype)?),
    })
}

/// Returns the type of plain numbers; `None` for all other types.
pub(super) fn element(datatype: Datatype) -> Option<ElementType> {
    Some(match datatype {
        Datatype::Int8 => ElementType::I8,
        Datatype::Int16 => ElementType::I16,
        Datatype::Int32 => ElementType::I32,
        Datatype::Int64 => ElementType::I64,
        Datatype::UInt8 => ElementType::U8,
        Datatype::UInt16 => ElementType::U16,
        Datatype::UInt32 => ElementType::U32,
        Datatype::UInt64 => ElementType::U64,
        Datatype::Float32 => ElementType::F32,
        Datatype::Float64 => ElementType::F64,
        _ => return None,
    })
}

/// Makes the column of an attribute whose cells are indices into the values of an enumeration.
fn enumerated(
    attribute: &Attribute,
    enumeration: &Enumeration,
    view: &TileDbView,
) -> Result<ValueColumn> {
    let (Some(index), ValuesPerCell::Fixed(1)) =
        (element(attribute.datatype).filter(|it| it.is_integer()), attribute.values_per_cell)
    else {
        let (name, datatype) = (&enumeration.name, attribute.datatype);
        let message = format!("indices of type {datatype} into enumeration \"{name}\"");
        return Err(Error::unsupported(message));
    };
    let values = match values_of(enumeration, view) {
        Ok(values) => values,
        Err(error) => {
            let (of, len) = (enumeration.datatype, enumeration.values_per_cell);
            let data_type = column(of, len, false, None, view)?.data_type();
            return unreadable(attribute, data_type, error);
        }
    };
    let kind = CellKind::Enumerated { index, values };
    let nulls = if view.read.fill_as_null { vec![attribute.fill.clone()] } else { vec![] };
    Ok(ValueColumn::Cells(CellColumn::new(kind, attribute.nullable, nulls)))
}

/// Returns the values of an enumeration as an Arrow array, in order.
///
/// Makes a tile of the values, as if they were cells of an attribute, and decodes it like one. So the
/// values have the type that a column of them would have, and NaN is NULL as it would be there.
fn values_of(enumeration: &Enumeration, view: &TileDbView) -> Result<ArrayRef> {
    let column = column(enumeration.datatype, enumeration.values_per_cell, false, None, view)?;
    let mut content = Vec::new();
    let mut spans = Vec::with_capacity(enumeration.len());
    for at in 0..enumeration.len() {
        let start = content.len() as u64;
        content.extend_from_slice(enumeration.value(at).unwrap_or_default());
        spans.push(start..content.len() as u64);
    }
    let content = Bytes::from(content);
    let tile = match enumeration.values_per_cell {
        ValuesPerCell::Fixed(len) => {
            Tile::fixed(content, len as usize * enumeration.datatype.size() as usize)
        }
        ValuesPerCell::Variable => Tile::variable(spans, content)?,
    };
    let values = column.decode(&tile, &[AxisSelection::all(enumeration.len() as u64)], true);
    values.map_err(|error| error.about(&format!("enumeration \"{}\"", enumeration.name)))
}
