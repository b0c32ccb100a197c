//! The sources of a table's columns, and its schema.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::dimension::Dimension;
use super::read_options::ReadOptions;
use super::values::{NumberColumn, ValueColumn};
use crate::format::{ElementType, bound};
use crate::tile::CellFormat;

/// Where the cells of a column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnSource {
    /// The labels of an axis.
    Label(usize),
    /// The 0-based index on an axis.
    Index(usize),
    /// The name of the file, where files are concatenated along an axis.
    File(usize),
    /// The cells of a value, by number.
    Value(usize),
}

impl ColumnSource {
    /// The axis, for columns of a dimension.
    pub fn axis(self) -> Option<usize> {
        match self {
            Self::Label(axis) | Self::Index(axis) | Self::File(axis) => Some(axis),
            Self::Value(_) => None,
        }
    }

    /// The number of the value, for columns of cells.
    pub fn value(self) -> Option<usize> {
        match self {
            Self::Value(value) => Some(value),
            Self::Label(_) | Self::Index(_) | Self::File(_) => None,
        }
    }
}

/// One value of every cell: the name of its column, how cells are stored, and how they become the column.
#[derive(Debug, Clone)]
pub struct Value {
    /// The name of its column, unless an earlier column has it.
    pub(crate) name: String,
    pub(crate) column: ValueColumn,
    pub(crate) cells: CellFormat,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Value {
    /// Cells that become a column in any way that there is: CF packing, text, dates, lists.
    pub fn new(name: impl Into<String>, column: ValueColumn, cells: CellFormat) -> Self {
        Self { name: name.into(), column, cells, attributes: BTreeMap::new() }
    }

    /// Numbers as they are stored, little-endian. `fill` is the element of cells that were never written,
    /// and NULL if the options say so; without it, every chunk must be there.
    ///
    /// ```
    /// use gridfusion::extend::{ElementType, ReadOptions, Value};
    ///
    /// let fill = (-9999.0_f32).to_le_bytes();
    /// let value = Value::numbers("t2m", ElementType::F32, Some(&fill), &ReadOptions::default());
    /// ```
    pub fn numbers(
        name: impl Into<String>,
        element: ElementType,
        fill: Option<&[u8]>,
        options: &ReadOptions,
    ) -> Self {
        let null = fill.filter(|_| options.fill_as_null).map(bound);
        let column = NumberColumn::plain(element, null, false, options);
        let fill = fill.unwrap_or_default().to_vec();
        let cells = CellFormat { fill, ..CellFormat::fixed(element.size() as usize) };
        Self::new(name, ValueColumn::Number(column), cells)
    }

    /// The same with attributes, which the column's field has as its metadata.
    #[must_use]
    pub fn with_attributes(self, attributes: BTreeMap<String, String>) -> Self {
        Self { attributes, ..self }
    }

    /// Whether cells are as wide as the column takes them for, and so is the fill value.
    pub(super) fn fits(&self) -> bool {
        let CellFormat { width, fill, .. } = &self.cells;
        let number = self.column.as_number().map(|column| column.element().size());
        let fits = |width: usize| number.is_none_or(|number| number == width as u64);
        match width {
            Some(width) => fits(*width) && (fill.is_empty() || fill.len() == *width),
            None => number.is_none(),
        }
    }
}

/// The table's schema and the source of each of its columns.
pub(super) fn schema(
    dims: &[Dimension],
    values: &[Value],
    index_columns: bool,
) -> (SchemaRef, Vec<ColumnSource>) {
    let mut fields: Vec<Field> = Vec::new();
    let mut columns = Vec::new();
    for (axis, dim) in dims.iter().enumerate() {
        let field = Field::new(&dim.name, dim.labels.data_type(), dim.labels.has_nulls());
        fields.push(with_attributes(field, &dim.attributes));
        columns.push(ColumnSource::Label(axis));
    }
    for (number, value) in values.iter().enumerate() {
        let name = unused_name(&value.name, &fields);
        let field = Field::new(name, value.column.data_type(), value.column.is_nullable());
        fields.push(with_attributes(field, &value.attributes));
        columns.push(ColumnSource::Value(number));
    }
    if index_columns {
        for (axis, dim) in dims.iter().enumerate() {
            let name = unused_name(&format!("{}_idx", dim.name), &fields);
            fields.push(Field::new(name, DataType::Int64, false));
            columns.push(ColumnSource::Index(axis));
        }
    }
    (Arc::new(Schema::new(fields)), columns)
}

/// `name`, or `name` with as many underscores as make it unique.
pub(super) fn unused_name(name: &str, fields: &[Field]) -> String {
    let mut name = name.to_owned();
    while fields.iter().any(|field| *field.name() == name) {
        name.push('_');
    }
    name
}

fn with_attributes(field: Field, attributes: &BTreeMap<String, String>) -> Field {
    let metadata: HashMap<String, String> =
        attributes.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    field.with_metadata(metadata)
}
