//! The labels of dimensions that count from 0, and names that writers and readers agree on.
//!
//! A dense array cannot have coordinates such as 59.5. Its writer gives a dimension `lat_index`, and a dimension label `lat`: another
//! array, below `__labels`. A table shows the labels in the place of the coordinates, if the names are of this form.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::concat;
use futures::TryStreamExt;
use gridfusion_core::array::failed_to;
use gridfusion_core::read::ArrayReader;
use gridfusion_core::tile::{Objects, drive};
use gridfusion_core::{Error, ErrorKind, Result};

use crate::bytes::{ArrayKind, DimensionLabel, OpenArray, OpenOptions, TileDbArray};
use crate::reader::TileDbReader;
use crate::view::TileDbView;

/// The attribute with the labels, in the array of a dimension label.
pub(crate) const LABEL_ATTRIBUTE: &str = "label";
/// The beginning of metadata keys of an attribute, in TileDB-CF.
pub(crate) const ATTRIBUTE_KEY: &str = "__tiledb_attr.";
/// The beginning of metadata keys of a dimension, in TileDB-CF.
pub(crate) const DIMENSION_KEY: &str = "__tiledb_dim.";
/// The most labels that are read and written. Arrays of more show their coordinates.
pub(crate) const MOST_LABELS: u64 = 1 << 24;

/// Returns the name of a dimension that counts from 0, and whose labels are called `label`.
pub(crate) fn index_name(label: &str) -> String {
    format!("{label}_index")
}

/// The labels of a dimension, from some coordinate on.
#[derive(Debug, Clone)]
pub(crate) struct AxisLabels {
    pub(crate) name: String,
    low: i128,
    labels: ArrayRef,
    /// The array of the labels.
    pub(crate) array: Arc<TileDbArray>,
}

impl AxisLabels {
    /// Returns the labels of `len` coordinates from `low` on; `None` if some have none.
    pub(crate) fn window(&self, low: i128, len: u64) -> Option<ArrayRef> {
        let start = usize::try_from(low - self.low).ok()?;
        let len = usize::try_from(len).ok()?;
        let is_within = start.checked_add(len)? <= self.labels.len();
        is_within.then(|| self.labels.slice(start, len))
    }
}

/// Reads the labels of the dimensions of an array of these objects: per dimension, `None` if its coordinates are shown.
pub(crate) async fn axis_labels(
    array: &TileDbArray,
    objects: &Objects,
    options: &OpenOptions,
) -> Vec<Option<Result<AxisLabels>>> {
    let schema = array.schema();
    let mut found = vec![None; schema.dimensions.len()];
    for label in schema.labels.iter().filter(|_| schema.kind == ArrayKind::Dense) {
        let dimension = &schema.dimensions[label.dimension];
        if dimension.name != index_name(&label.name) || !is_below(&label.uri) || !label.relative {
            continue;
        }
        // Labels hold for all cells, whenever these were written.
        let options = OpenOptions { start: 0, ..options.clone() };
        let read = match read(label, objects, &options).await {
            // Without them, the coordinates are there.
            Err(error) if matches!(error.kind(), ErrorKind::Usage | ErrorKind::Unsupported) => {
                log::warn!("the labels \"{}\" are not shown: {error}", label.name);
                Ok(None)
            }
            read => read,
        };
        let about = |error: Error| error.about(&format!("the labels \"{}\"", label.name));
        found[label.dimension] = read.map_err(about).transpose();
    }
    found
}

/// Whether a path leads to a place below the folder that it starts from.
fn is_below(path: &str) -> bool {
    !path.split('/').any(|part| ["", ".", ".."].contains(&part))
}

/// Reads labels; `None` if there are none, or too many.
async fn read(
    label: &DimensionLabel,
    objects: &Objects,
    options: &OpenOptions,
) -> Result<Option<AxisLabels>> {
    let objects = Arc::new(objects.below(&label.uri)?);
    let array = Arc::new(drive(OpenArray::new(options.clone()), &objects).await?);
    let (schema, window) = (array.schema(), array.window(false)?);
    if schema.dimensions.len() != 1 || window.grid.cells() == 0 || window.grid.cells() > MOST_LABELS
    {
        return Ok(None);
    }
    let low = window.low[0];
    let reader =
        TileDbReader::without_labels(Arc::clone(&array), objects).grid(&TileDbView::default())?;
    let reader = ArrayReader::new(reader).with_columns(&[&label.attribute])?;
    let batches: Vec<_> = reader.batches().try_collect().await?;
    let parts: Vec<_> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
    let labels = concat(&parts).map_err(failed_to("read labels"))?;
    Ok(Some(AxisLabels { name: label.name.clone(), low, labels, array }))
}
