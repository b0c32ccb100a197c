//! [`Geometries`]: a column of polygons in one of three encodings.
//!
//! Binary columns hold WKB. Text that begins with `{` is GeoJSON, and other text is WKT.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use datafusion::error::Result;
use gridfusion_spatial::Region;

use crate::error::Result as GridResult;

/// The polygons of one batch.
#[derive(Debug)]
pub(crate) struct Geometries(ArrayRef);

impl Geometries {
    /// Whether a column of this type may hold polygons.
    pub(crate) fn is_type(data_type: &DataType) -> bool {
        Self::is_binary(data_type) || data_type.is_string()
    }

    /// Whether a column of this type may hold WKB.
    pub(crate) fn is_binary(data_type: &DataType) -> bool {
        matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    }

    /// Takes a column of a batch.
    ///
    /// # Errors
    /// If the type of the column holds no polygons.
    pub(super) fn try_new(column: &ArrayRef) -> Result<Self> {
        // A view of the same bytes.
        let view = match column.data_type() {
            it if Self::is_binary(it) => DataType::BinaryView,
            _ => DataType::Utf8View,
        };
        Ok(Self(cast(column, &view)?))
    }

    /// Reads the polygons of a row; `None` for NULL.
    pub(super) fn region(&self, row: usize) -> GridResult<Option<Region>> {
        if self.0.is_null(row) {
            return Ok(None);
        }
        if let Some(bytes) = self.0.as_binary_view_opt() {
            return Region::from_wkb(bytes.value(row)).map(Some);
        }
        let text = self.0.as_string_view().value(row).trim_start();
        match text.starts_with('{') {
            true => Region::from_geojson(text).map(Some),
            false => Region::from_wkt(text).map(Some),
        }
    }
}

/// Names a row for messages: by its number, if that is known, and by its first columns that are no geometry.
pub(super) fn row_name(
    batch: &RecordBatch,
    geometry: usize,
    row: usize,
    number: Option<usize>,
) -> String {
    /// The most characters of a value.
    const MOST: usize = 60;
    let schema = batch.schema();
    let own = (0..batch.num_columns()).filter(|it| *it != geometry).take(2);
    let values = own.filter_map(|at| {
        let value = array_value_to_string(batch.column(at), row).ok()?;
        let value: String = value.chars().take(MOST).collect();
        Some(format!("{} = {value}", schema.field(at).name()))
    });
    let values: Vec<String> = values.collect();
    match (number, values.is_empty()) {
        (Some(number), true) => format!("row {number}"),
        (Some(number), false) => format!("row {number}, {}", values.join(", ")),
        (None, true) => "a row".to_owned(),
        (None, false) => format!("the row with {}", values.join(", ")),
    }
}
