//! An opened array: its dimensions with their labels, its value column and its schema.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tokio::sync::OnceCell;

use super::drive;
use super::labels::Labels;
use super::opened::OpenedFile;
use super::plan::ChunkTask;
use super::tile::Tile;
use super::values::ValueColumn;
use crate::error::{Error, Result};
use crate::format::StoredChunk;
use crate::format::tet::{MemoryBudget, ZoneMaps};
use crate::grid::ChunkGrid;
use crate::io::ByteSource;

/// How stored data becomes SQL values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    /// NaN is NULL. Default: true.
    pub nan_as_null: bool,
    /// The declared fill value is NULL. Default: true.
    pub fill_as_null: bool,
    /// Adds a column `<dimension>_idx` with the 0-based index for each dimension. Default: false.
    pub index_columns: bool,
    /// Believes the zone maps of the file where they say how many NULLs a chunk has, and which its least
    /// and greatest values are. Default: true.
    pub trust_zone_maps: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { nan_as_null: true, fill_as_null: true, index_columns: false, trust_zone_maps: true }
    }
}

/// Decodes the payloads of one chunk.
pub(super) fn decode_tile(
    chunk: &StoredChunk,
    payloads: Vec<bytes::Bytes>,
    spare: Vec<u8>,
) -> Result<bytes::Bytes> {
    match (chunk.layers.as_slice(), payloads.into_iter().next()) {
        ([layer], Some(payload)) => layer.decode(payload, spare),
        _ => Err(Error::internal("a chunk that is not one layer and one payload")),
    }
}

/// One axis of an array, as columns see it.
#[derive(Debug, Clone)]
pub struct Dimension {
    name: String,
    labels: Labels,
    index: Labels,
    attributes: BTreeMap<String, String>,
}

impl Dimension {
    pub(super) fn new(
        name: String,
        labels: Labels,
        len: u64,
        attributes: BTreeMap<String, String>,
    ) -> Self {
        Self { name, labels, index: Labels::Index { len }, attributes }
    }

    /// The dimension's name, which is its column's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One label per element.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }
}

/// What a column of the table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// The labels of an axis.
    Label(usize),
    /// The 0-based index on an axis.
    Index(usize),
    /// The cells.
    Value,
}

impl Column {
    /// The axis, for columns of a dimension.
    pub fn axis(self) -> Option<usize> {
        match self {
            Self::Label(axis) | Self::Index(axis) => Some(axis),
            Self::Value => None,
        }
    }
}

/// One array, ready to be scanned: one row per cell, a column per dimension, a value column.
#[derive(Debug)]
pub struct GridArray {
    name: String,
    opened: OpenedFile,
    dataset: usize,
    grid: ChunkGrid,
    dims: Vec<Dimension>,
    value: ValueColumn,
    schema: SchemaRef,
    columns: Vec<Column>,
    options: ReadOptions,
    zone_maps: OnceCell<Option<ZoneMaps>>,
}

impl GridArray {
    pub(super) fn new(
        opened: OpenedFile,
        dataset: usize,
        grid: ChunkGrid,
        dims: Vec<Dimension>,
        value: ValueColumn,
        options: &ReadOptions,
    ) -> Self {
        let name = opened.tet().datasets()[dataset].name().to_owned();
        let attributes = &opened.tet().metadata_of(dataset).attrs;
        let (schema, columns) = schema(&name, &dims, &value, attributes, options);
        Self {
            name,
            opened,
            dataset,
            grid,
            dims,
            value,
            schema,
            columns,
            options: options.clone(),
            zone_maps: OnceCell::new(),
        }
    }

    /// The dataset's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file it is in.
    pub fn opened_file(&self) -> &OpenedFile {
        &self.opened
    }

    /// Where its bytes come from.
    pub fn source(&self) -> &Arc<dyn ByteSource> {
        self.opened.source()
    }

    /// How it is cut into chunks.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Its axes.
    pub fn dims(&self) -> &[Dimension] {
        &self.dims
    }

    /// How its elements become values.
    pub fn value(&self) -> &ValueColumn {
        &self.value
    }

    /// The table's columns: dimensions, the value, index columns if they were asked for.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What each column of the schema shows.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// What a column of a dimension shows along its axis; `None` for the value.
    pub fn labels_of(&self, column: Column) -> Option<&Labels> {
        match column {
            Column::Label(axis) => Some(&self.dims[axis].labels),
            Column::Index(axis) => Some(&self.dims[axis].index),
            Column::Value => None,
        }
    }

    /// What the writer suggests about memory.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.opened.tet().memory_budget()
    }

    /// Finds where the chunks of `tasks` are stored, in order.
    ///
    /// # Errors
    /// `Corrupt` if a chunk has no row in the index, or a row that cannot be right.
    pub async fn locate(&self, tasks: &[ChunkTask]) -> Result<Vec<StoredChunk>> {
        let chunks = tasks.iter().map(|task| task.number).collect();
        self.opened.locate(self.dataset, chunks).await
    }

    /// Decodes the fetched `payloads` of the chunk of `task`, in the memory of `spare` if it can.
    ///
    /// # Errors
    /// `Corrupt` if they do not decode to the chunk's cells.
    pub fn decode(
        &self,
        task: &ChunkTask,
        chunk: &StoredChunk,
        payloads: Vec<bytes::Bytes>,
        spare: Vec<u8>,
    ) -> Result<Tile> {
        let bytes = decode_tile(chunk, payloads, spare).map_err(|error| {
            let what = format!("chunk {:?} of dataset \"{}\"", task.coordinates, self.name);
            error.about(&what).in_file(self.opened.name())
        })?;
        Ok(Tile::new(bytes, self.value.element()))
    }

    /// Whether NULL in the table is what zone maps count as such: NaN and the declared fill.
    pub fn null_is_fill_or_nan(&self) -> bool {
        self.options.nan_as_null && self.options.fill_as_null
    }

    /// The zone maps, if they are trusted, well-formed and cheap beside `bytes_to_read` of payloads.
    pub async fn zone_maps(&self, bytes_to_read: u64) -> Option<&ZoneMaps> {
        /// Parsing JSON costs this many times more per byte than looking for NULLs.
        const RELATIVE_COST: u64 = 64;
        let at = self.opened.tet().zone_maps_at().filter(|_| self.options.trust_zone_maps)?;
        if (at.end - at.start).saturating_mul(RELATIVE_COST) > bytes_to_read {
            return None;
        }
        let read = || async {
            let machine = self.opened.tet().read_zone_maps(self.dataset).ok()??;
            match drive(machine, self.source().as_ref()).await {
                Ok(maps) => Some(maps),
                Err(error) => {
                    log::warn!("zone maps are ignored: {error}");
                    None
                }
            }
        };
        self.zone_maps.get_or_init(read).await.as_ref()
    }
}

/// The table's schema and what each of its columns shows.
fn schema(
    dataset: &str,
    dims: &[Dimension],
    value: &ValueColumn,
    attributes: &BTreeMap<String, String>,
    options: &ReadOptions,
) -> (SchemaRef, Vec<Column>) {
    let mut fields: Vec<Field> = Vec::new();
    let mut columns = Vec::new();
    for (axis, dim) in dims.iter().enumerate() {
        let field = Field::new(&dim.name, dim.labels.data_type(), dim.labels.has_nulls());
        fields.push(with_attributes(field, &dim.attributes));
        columns.push(Column::Label(axis));
    }
    let name = if dims.iter().any(|dim| dim.name == "value") { dataset } else { "value" };
    let field = Field::new(unused_name(name, &fields), value.data_type(), value.is_nullable());
    fields.push(with_attributes(field, attributes));
    columns.push(Column::Value);
    if options.index_columns {
        for (axis, dim) in dims.iter().enumerate() {
            let name = unused_name(&format!("{}_idx", dim.name), &fields);
            fields.push(Field::new(name, DataType::Int64, false));
            columns.push(Column::Index(axis));
        }
    }
    (Arc::new(Schema::new(fields)), columns)
}

/// `name`, or `name` with as many underscores as make it unique.
fn unused_name(name: &str, fields: &[Field]) -> String {
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
