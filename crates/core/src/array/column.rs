//! The sources of a table's columns, and the table's schema.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::counted_times::marked_times;
use super::dimension::Dimension;
use super::read_options::ReadOptions;
use super::single_labels::mark;
use super::values::{NumberColumn, ValueColumn};
use crate::format::{ElementType, bound};
use crate::tile::CellFormat;

/// The source of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnSource {
    /// The labels of the dimension on this axis.
    Label(usize),
    /// The 0-based indices along this axis.
    Index(usize),
    /// The name of the file that holds each row, where files are concatenated along this axis.
    File(usize),
    /// The elements of the variable with this number.
    Value(usize),
}

impl ColumnSource {
    /// Returns the axis; `None` for the column of a variable.
    pub fn axis(self) -> Option<usize> {
        match self {
            Self::Label(axis) | Self::Index(axis) | Self::File(axis) => Some(axis),
            Self::Value(_) => None,
        }
    }

    /// Returns the number of the variable; `None` for columns of dimensions.
    pub fn value(self) -> Option<usize> {
        match self {
            Self::Value(value) => Some(value),
            Self::Label(_) | Self::Index(_) | Self::File(_) => None,
        }
    }
}

/// A variable: its name, how its cells are stored, and how they become a column.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Value {
    /// The name of the column. Underscores are appended if an earlier column has the same name.
    pub name: String,
    /// How decoded cells become SQL values.
    pub column: ValueColumn,
    /// How the cells are stored, and the element of cells that were never written.
    pub cells: CellFormat,
    /// The metadata of the column's field.
    pub attributes: BTreeMap<String, String>,
    /// Other forms, in which some files store the variable. Form 0 is `column` and `cells`; these follow.
    pub(crate) forms: Arc<[StoredForm]>,
}

/// A form in which some files store a variable, such as integers with their own packing. The values are those of the
/// variable, once they have its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredForm {
    pub(crate) column: ValueColumn,
    pub(crate) cells: CellFormat,
}

impl Value {
    /// Returns the name of the column of a variable that is a table of its own: `value`, or the variable's `own` name if a
    /// dimension is called `value`.
    pub fn name_beside<'a>(dims: &[Dimension], own: &'a str) -> &'a str {
        if dims.iter().any(|dim| dim.name() == "value") { own } else { "value" }
    }

    /// Returns a variable whose `column` may be of any kind: packed numbers, text, dates or lists.
    pub fn new(name: impl Into<String>, column: ValueColumn, cells: CellFormat) -> Self {
        let (attributes, forms) = (BTreeMap::new(), Arc::default());
        Self { name: name.into(), column, cells, attributes, forms }
    }

    /// Returns a variable with a mark per cell, which tells whether it is NULL. Cells of no layer are NULL, as in a file that
    /// lacks the variable.
    pub fn absent(&self) -> Self {
        let fill = vec![0; self.cells.width.unwrap_or_default()];
        let cells = CellFormat::new(self.cells.width, true, fill, false);
        let column = self.column.clone().with_validity();
        Self { column, cells, forms: Arc::default(), ..self.clone() }
    }

    /// Returns how cells of a form become a column, and how they are stored.
    pub(crate) fn form(&self, number: u32) -> (&ValueColumn, &CellFormat) {
        let other = (number as usize).checked_sub(1).and_then(|at| self.forms.get(at));
        other.map_or((&self.column, &self.cells), |form| (&form.column, &form.cells))
    }

    /// Returns the columns of all forms, in the order of their numbers.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &ValueColumn> {
        std::iter::once(&self.column).chain(self.forms.iter().map(|form| &form.column))
    }

    /// Whether a value may be NULL.
    fn is_nullable(&self) -> bool {
        self.columns().any(ValueColumn::is_nullable)
    }

    /// Returns a variable of little-endian numbers, shown as stored. Cells that were never written have
    /// the element `fill`, which is NULL if the options set so. Without `fill`, every chunk must be
    /// stored.
    ///
    /// ```
    /// use gridfusion_core::array::{ReadOptions, Value};
    /// use gridfusion_core::format::ElementType;
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

    /// Sets the attributes. They become the metadata of the column's field.
    #[must_use]
    pub fn with_attributes(self, attributes: BTreeMap<String, String>) -> Self {
        Self { attributes, ..self }
    }

    /// Tells that the values are labels of other variables, as those of a coordinate are. Comparisons of labels in single
    /// precision happen in singles.
    #[must_use]
    pub fn of_labels(mut self) -> Self {
        mark(&mut self.attributes, &self.column.data_type());
        self
    }

    /// Whether the column expects cells of this width, and the fill value has it too.
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

/// Returns the table's schema and the source of each of its columns: dimensions, then variables, then
/// index columns. A variable `lat` beside a dimension `lat` becomes the column `lat_`.
pub(super) fn schema(
    dims: &[Dimension],
    values: &[Value],
    index_columns: bool,
) -> (SchemaRef, Vec<ColumnSource>) {
    let mut fields: Vec<Field> = Vec::new();
    let mut columns = Vec::new();
    for (axis, dim) in dims.iter().enumerate() {
        fields.push(dim.field());
        columns.push(ColumnSource::Label(axis));
    }
    for (number, value) in values.iter().enumerate() {
        let name = unused_name(&value.name, &fields);
        let field = Field::new(name, value.column.data_type(), value.is_nullable());
        fields.push(marked_times(with_attributes(field, &value.attributes), false));
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

/// Returns `name`, with as many underscores appended as make it unique among `fields`.
pub(super) fn unused_name(name: &str, fields: &[Field]) -> String {
    let mut name = name.to_owned();
    while fields.iter().any(|field| *field.name() == name) {
        name.push('_');
    }
    name
}

/// Returns the field with these attributes as its metadata.
pub(super) fn with_attributes(field: Field, attributes: &BTreeMap<String, String>) -> Field {
    let metadata: HashMap<String, String> =
        attributes.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    field.with_metadata(metadata)
}
