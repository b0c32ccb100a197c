//! GeoJSON files as tables: a column per property, and the geometry as GeoJSON text.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow::datatypes::{Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use gridfusion_spatial::{Crs, Feature, Property};

use crate::error::{Error, Result as GridResult};
use crate::source::{Place, path_of};

/// The name of the column of geometries.
pub(super) const GEOMETRY: &str = "geometry";

/// The most bytes of a file: the table has them in memory.
const MOST_BYTES: u64 = 256 << 20;

/// The most columns, so that features with a property each do not make a table of their square.
const MOST_COLUMNS: usize = 4096;

/// Whether a path or URL ends as those of GeoJSON files alone do.
pub(in crate::provider) fn is_features(path: &str) -> bool {
    path_of(path).to_ascii_lowercase().ends_with(".geojson")
}

/// Whether the file of polygons at a path may be GeoJSON. In other places, `.json` is a JSON object per line.
pub(super) fn is_name(path: &str) -> bool {
    is_features(path) || path.to_ascii_lowercase().ends_with(".json")
}

/// Reads a file as a table, and tells the kind of its coordinates.
///
/// # Errors
/// `Usage` if the file is no GeoJSON, `Unsupported` if it is too long, or if it cannot be read.
pub(in crate::provider) async fn table(place: &Place) -> Result<(Arc<dyn TableProvider>, Crs)> {
    let object = place.object().await?;
    let size = object.size();
    if size > MOST_BYTES {
        let message = format!(
            "the file has {size} bytes, and GeoJSON is read whole, up to {MOST_BYTES} bytes: convert it to GeoParquet"
        );
        return Err(Error::unsupported(message).in_file(place.location()).into());
    }
    let read = object.read(std::slice::from_ref(&(0..size))).await?;
    let bytes = read.first().map_or(&[] as &[u8], |it| it.as_ref());
    let (batch, crs) = batch(bytes).map_err(|error| error.in_file(place.location()))?;
    let schema = batch.schema();
    Ok((Arc::new(MemTable::try_new(schema, vec![vec![batch]])?), crs))
}

/// Returns the features of a file as rows.
fn batch(bytes: &[u8]) -> GridResult<(RecordBatch, Crs)> {
    let mut columns: BTreeMap<String, Vec<(usize, Property)>> = BTreeMap::new();
    let mut geometries = vec![];
    let crs = Feature::read_all(bytes, |feature| {
        let row = geometries.len();
        let id = feature.id.map(|id| ("id".to_owned(), id));
        let has_id = feature.properties.iter().any(|it| it.0 == "id");
        for (name, value) in feature.properties.into_iter().chain(id.filter(|_| !has_id)) {
            if name == GEOMETRY {
                return Err(Error::usage(format!(
                    "feature {} has a property '{GEOMETRY}', the name of the column of its geometry",
                    row + 1
                )));
            }
            columns.entry(name).or_default().push((row, value));
        }
        geometries.push(feature.geometry);
        if columns.len() > MOST_COLUMNS {
            return Err(Error::unsupported(format!(
                "the features have more than {MOST_COLUMNS} different properties"
            )));
        }
        Ok(())
    })?;
    let rows = geometries.len();
    // Features that share few properties would make a table that is much larger than their file.
    let (cells, most) = (rows.saturating_mul(columns.len()), bytes.len().max(MOST_COLUMNS));
    if cells > most {
        return Err(Error::unsupported(format!(
            "{rows} features have {} different properties, most of which they lack: a table of {cells} values for {} bytes; convert the \
             file to GeoParquet",
            columns.len(),
            bytes.len()
        )));
    }
    let mut fields = vec![];
    let mut arrays = vec![];
    for (name, values) in columns {
        let array = array(rows, values);
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let geometries: ArrayRef = Arc::new(StringArray::from_iter(geometries));
    fields.push(Field::new(GEOMETRY, geometries.data_type().clone(), true));
    arrays.push(geometries);
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|error| Error::internal(format!("features are no table: {error}")))?;
    Ok((batch, crs))
}

/// Returns a column of values, by row: numbers or Booleans if all are, else text.
fn array(rows: usize, values: Vec<(usize, Property)>) -> ArrayRef {
    let known = || values.iter().map(|it| &it.1).filter(|it| **it != Property::Null);
    let has_any = known().next().is_some();
    if has_any && known().all(|it| matches!(it, Property::Boolean(_))) {
        let value = |it| match it {
            Property::Boolean(it) => Some(it),
            _ => None,
        };
        return Arc::new(BooleanArray::from(spread(rows, values, value)));
    }
    if has_any && known().all(|it| matches!(it, Property::Integer(_))) {
        let value = |it| match it {
            Property::Integer(it) => Some(it),
            _ => None,
        };
        return Arc::new(Int64Array::from(spread(rows, values, value)));
    }
    if has_any && known().all(|it| matches!(it, Property::Integer(_) | Property::Float(_))) {
        let value = |it| match it {
            Property::Integer(it) => Some(it as f64),
            Property::Float(it) => Some(it),
            _ => None,
        };
        return Arc::new(Float64Array::from(spread(rows, values, value)));
    }
    let value = |it| match it {
        Property::Null => None,
        Property::Boolean(it) => Some(it.to_string()),
        Property::Integer(it) => Some(it.to_string()),
        Property::Float(it) => Some(it.to_string()),
        Property::Text(it) => Some(it),
    };
    Arc::new(StringArray::from(spread(rows, values, value)))
}

/// Returns a value per row; `None` in rows that have none.
fn spread<T: Clone>(
    rows: usize,
    values: Vec<(usize, Property)>,
    value: impl Fn(Property) -> Option<T>,
) -> Vec<Option<T>> {
    let mut column = vec![None; rows];
    for (row, property) in values {
        column[row] = value(property);
    }
    column
}

#[cfg(test)]
mod tests {
    use arrow::util::pretty::pretty_format_batches;

    use super::*;

    #[test]
    fn properties_have_the_types_of_all_features() {
        let text = r#"{"type": "FeatureCollection", "features": [
            {"type": "Feature", "id": "a", "properties": {"n": 1, "f": 1, "t": "x", "b": true}, "geometry": null},
            {"type": "Feature", "properties": {"n": null, "f": 1.5, "t": 3, "s": null}, "geometry": null}]}"#;
        let (batch, crs) = batch(text.as_bytes()).unwrap();
        assert_eq!(crs, Crs::Geographic);
        let shown = pretty_format_batches(&[batch]).unwrap().to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], "| b    | f   | id | n | s | t | geometry |");
        assert_eq!(lines[3], "| true | 1.0 | a  | 1 |   | x |          |");
        assert_eq!(lines[4], "|      | 1.5 |    |   |   | 3 |          |");
        let wrong = r#"{"type": "Feature", "properties": {"geometry": 1}, "geometry": null}"#;
        let error = super::batch(wrong.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("feature 1 has a property 'geometry'"), "{error}");
    }
}
