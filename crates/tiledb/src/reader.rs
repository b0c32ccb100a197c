//! An opened TileDB array: its schema, its fragments, and its conversion to a table.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{Mutex, OnceCell};

use super::chunks::TileDbChunks;
use super::columns::{table_dimension, table_values};
use super::labels::{AxisLabels, axis_labels};
use super::sparse::sparse_array;
use super::view::TileDbView;
use crate::bytes::{
    ArrayKind, Block, CoordinateRange, Datatype, DimensionDomain, DimensionSchema, EncryptionKey,
    MetadataValue, OpenArray, OpenOptions, TileDbArray,
};
use gridfusion_core::array::{Dimension, GridArray, Labels};
use gridfusion_core::io::{Folder, last_part};
use gridfusion_core::options::ResolvedOptions;
use gridfusion_core::source::OpenedArray;
use gridfusion_core::source::Place;
use gridfusion_core::tile::{Objects, drive};
use gridfusion_core::{Error, Result};

/// An opened TileDB array: its schema and the footers of its fragments are in memory.
#[derive(Debug, Clone)]
pub struct TileDbReader {
    array: Arc<TileDbArray>,
    objects: Arc<Objects>,
    /// Per dimension, the labels that are shown in the place of its coordinates, or why they cannot be read.
    labels: Vec<Option<Result<AxisLabels>>>,
}

impl TileDbReader {
    /// Reads the schema and the fragments' footers of the array in `folder`.
    ///
    /// # Errors
    /// `Usage` if the folder is not an array, `Corrupt` or `Unsupported` if it cannot be read.
    pub async fn open(folder: Arc<dyn Folder>, mut options: OpenOptions) -> Result<Self> {
        // As in TileDB, fragments dated in the future are not visible.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        options.end.get_or_insert(u64::try_from(now).unwrap_or(u64::MAX));
        Self::open_objects(Arc::new(Objects::many(folder)), options).await
    }

    /// Reads the schema and the fragments' footers of the array of these objects.
    ///
    /// # Errors
    /// As [`TileDbReader::open`].
    pub(crate) async fn open_objects(objects: Arc<Objects>, options: OpenOptions) -> Result<Self> {
        let array = Arc::new(drive(OpenArray::new(options.clone()), &objects).await?);
        let labels = axis_labels(&array, &objects, &options).await;
        Ok(Self { array, objects, labels })
    }

    /// Returns the labels that are shown in the place of coordinates, per dimension.
    pub(crate) fn labels(&self) -> &[Option<Result<AxisLabels>>] {
        &self.labels
    }

    /// Returns a reader that shows the coordinates of all dimensions.
    pub(crate) fn without_labels(array: Arc<TileDbArray>, objects: Arc<Objects>) -> Self {
        let labels = vec![None; array.schema().dimensions.len()];
        Self { array, objects, labels }
    }

    /// Opens the array at `place` with options `timestamp`, `timestamp_start` and `encryption_key`.
    ///
    /// # Errors
    /// As [`TileDbReader::open`], and `Usage` for a key of the wrong length.
    pub async fn open_place(place: &Place, options: &ResolvedOptions) -> Result<Self> {
        Self::open(place.folder()?, open_options(options)?).await
    }

    /// The parsed schema and fragments of the array.
    pub fn tiledb(&self) -> &Arc<TileDbArray> {
        &self.array
    }

    /// The objects that the array is stored in.
    pub(crate) fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// The path or URL of the array.
    pub fn location(&self) -> &str {
        self.objects.name()
    }

    /// The name of the array: the last part of its path.
    pub fn name(&self) -> &str {
        last_part(self.location())
    }

    /// Returns the levels of the R-tree of each fragment, which it reads; `None` for fragments of dense
    /// arrays, which have none.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if an R-tree cannot be read.
    pub async fn rtree_levels(&self) -> Result<Vec<Option<u32>>> {
        let fragments = self.array.fragments();
        if self.array.schema().kind == ArrayKind::Dense {
            return Ok(vec![None; fragments.len()]);
        }
        let blocks = (0..fragments.len()).map(Block::RTree);
        let machine = self.array.read_blocks(blocks).map_err(|error| self.objects.named(error))?;
        drive(machine, &self.objects).await?;
        let levels = |number: usize| match fragments[number].tiles {
            tiles @ 0..=1 => Ok(Some(u32::from(tiles == 1))), // the domain is the only rectangle
            _ => self.array.tile_rectangles(number).map(|rectangles| Some(rectangles.levels)),
        };
        (0..fragments.len()).map(levels).collect()
    }

    /// Reads the array's own metadata, as keys and values.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the metadata cannot be read.
    pub async fn metadata(&self) -> Result<Vec<(String, MetadataValue)>> {
        drive(self.array.read_metadata(), &self.objects).await
    }

    /// Returns a coordinate as its column shows it: a date rather than a count of days. A coordinate
    /// that no column can show becomes the stored integer.
    pub fn coordinate_text(&self, dimension: &DimensionSchema, coordinate: i128) -> String {
        let label = table_dimension(dimension, coordinate, 1, &TileDbView::default())
            .and_then(|dimension| dimension.labels().text(0))
            .ok()
            .flatten();
        label.unwrap_or_else(|| coordinate.to_string())
    }

    /// A range of coordinates of a dimension, see [`TileDbReader::coordinate_text`].
    pub fn range_text(&self, dimension: &DimensionSchema, range: &CoordinateRange) -> [String; 2] {
        match range {
            CoordinateRange::Integer(low, high) => {
                [low, high].map(|coordinate| self.coordinate_text(dimension, *coordinate))
            }
            CoordinateRange::Float(low, high) if dimension.datatype == Datatype::Float32 => {
                [low, high].map(|end| (*end as f32).to_string())
            }
            CoordinateRange::Float(low, high) => [low, high].map(f64::to_string),
            CoordinateRange::Text(low, high) => {
                [low, high].map(|text| match std::str::from_utf8(text) {
                    Ok(text) => text.to_owned(),
                    Err(_) => text.escape_ascii().to_string(),
                })
            }
        }
    }

    /// The least and the greatest coordinate of all fragments of a sparse array; `None` if there is none.
    pub(super) fn coordinate_ends(&self, axis: usize) -> [Option<String>; 2] {
        let Some(dimension) = self.array.schema().dimensions.get(axis) else { return [None, None] };
        let ranges = self.array.fragments().iter().filter_map(|it| it.domain.get(axis));
        let all = ranges.cloned().reduce(CoordinateRange::around);
        match all.map(|range| self.range_text(dimension, &range)) {
            Some([first, last]) => [Some(first), Some(last)],
            None => [None, None],
        }
    }

    /// The least and the greatest coordinate of a dimension, see [`TileDbReader::coordinate_text`];
    /// `None` for dimensions of text, which have no bounds.
    pub fn domain_text(&self, dimension: &DimensionSchema) -> Option<[String; 2]> {
        match &dimension.domain {
            DimensionDomain::Integer { low, high, .. } => {
                Some([low, high].map(|coordinate| self.coordinate_text(dimension, *coordinate)))
            }
            DimensionDomain::Float { low, high, .. } => Some([low, high].map(f64::to_string)),
            DimensionDomain::Text => None,
        }
    }

    /// Returns the array as a table: a column per dimension, then a column per attribute.
    ///
    /// # Errors
    /// `Unsupported` for a type that columns cannot have.
    pub fn array(&self, view: &TileDbView) -> Result<OpenedArray> {
        let array = match self.array.schema().kind {
            ArrayKind::Dense => self.grid(view).map(OpenedArray::from),
            ArrayKind::Sparse => {
                let array = sparse_array(self.name(), &self.array, &self.objects, view);
                array.map(OpenedArray::from)
            }
        };
        array.map_err(|error| self.objects.named(error))
    }

    /// Makes the table; errors do not name the array yet.
    pub(crate) fn grid(&self, view: &TileDbView) -> Result<GridArray> {
        let window = Arc::new(self.array.window(view.full_domain)?);
        let schema = self.array.schema();
        if view.read.index_columns {
            refuse_indices_beyond_i64(window.grid.shape())?;
        }
        let axes = schema.dimensions.iter().zip(&window.low).zip(window.grid.shape());
        let dims = axes.zip(&self.labels).map(|(((dimension, low), len), labels)| {
            if let Some(labels) = labels.clone().transpose()?
                && let Some(window) = labels.window(*low, *len)
            {
                return Ok(Dimension::labelled(labels.name, Labels::from_array(window)?));
            }
            table_dimension(dimension, *low, *len, view)
        });
        let dims = dims.collect::<Result<_>>()?;
        let values = table_values(&self.array, view)?;
        let source = TileDbChunks {
            array: Arc::clone(&self.array),
            objects: Arc::clone(&self.objects),
            window: Arc::clone(&window),
            zones: values.iter().map(|_| OnceCell::new()).collect(),
            looking_up: Mutex::new(()),
            view: view.clone(),
        };
        let (name, grid) = (self.name().to_owned(), window.grid.clone());
        Ok(GridArray::new(name, Arc::new(source), grid, dims, values, view.read.index_columns))
    }
}

/// Fails if an axis has indices that their column cannot hold.
fn refuse_indices_beyond_i64(shape: &[u64]) -> Result<()> {
    match shape.iter().find(|len| **len > 1 << 63) {
        None => Ok(()),
        Some(len) => Err(Error::unsupported(format!(
            "index_columns of an axis of {len} cells; indices are at most {}",
            i64::MAX
        ))),
    }
}

/// Takes the time range of visible fragments and the encryption key from the options.
pub(super) fn open_options(options: &ResolvedOptions) -> Result<OpenOptions> {
    let key = options.secret("encryption_key");
    let key = key.map(|key| EncryptionKey::new(key.expose().as_bytes())).transpose()?;
    let start = options.number("timestamp_start").unwrap_or_default();
    Ok(OpenOptions::new(start, options.number("timestamp")).with_key(key))
}
