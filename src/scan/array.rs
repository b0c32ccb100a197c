//! An opened array: its dimensions with their labels, its values and its schema.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;

use super::labels::Labels;
use super::layers::{self, CellFormat};
use super::objects::Objects;
use super::plan::ChunkTask;
use super::source::ChunkSource;
use super::tile::Tile;
use super::values::ValueColumn;
use crate::error::Result;
use crate::format::{MemoryBudget, Scratch, StoredChunk, Zones};
use crate::grid::{AxisSelection, ChunkGrid, Selection};

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

/// One axis of an array, as columns see it.
#[derive(Debug, Clone)]
pub struct Dimension {
    name: String,
    labels: Labels,
    /// Whether the labels say more than the index.
    is_labelled: bool,
    index: Labels,
    attributes: BTreeMap<String, String>,
}

impl Dimension {
    pub(super) fn new(
        name: String,
        labels: Option<Labels>,
        len: u64,
        attributes: BTreeMap<String, String>,
    ) -> Self {
        let (is_labelled, index) = (labels.is_some(), Labels::indices(len));
        Self {
            name,
            labels: labels.unwrap_or_else(|| index.clone()),
            is_labelled,
            index,
            attributes,
        }
    }

    /// The same dimension, longer or shorter.
    pub(super) fn with_labels(&self, labels: Labels) -> Self {
        Self { index: Labels::indices(labels.len()), labels, ..self.clone() }
    }

    /// Whether the labels say more than the index.
    pub(super) fn is_labelled(&self) -> bool {
        self.is_labelled
    }

    /// What labels that are numbers count, if they are times: those of another moment or unit are not of
    /// the same line.
    pub(super) fn measure(&self) -> Option<&str> {
        if self.labels.data_type().is_temporal() {
            return None;
        }
        let units = self.attributes.get("units").filter(|units| units.contains(" since "));
        units.or_else(|| self.attributes.get("tiledb_datatype")).map(String::as_str)
    }

    /// The number of its elements.
    pub fn len(&self) -> u64 {
        self.index.len()
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
    /// The name of the file, where files follow one another along an axis.
    File(usize),
    /// The cells of a value, by number.
    Value(usize),
}

impl Column {
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

/// One value of every cell.
#[derive(Debug, Clone)]
pub(super) struct Value {
    /// What its column is called, unless a column before it is.
    pub(super) name: String,
    pub(super) column: ValueColumn,
    pub(super) cells: CellFormat,
    pub(super) attributes: BTreeMap<String, String>,
}

/// One array, ready to be scanned: one row per cell, a column per dimension, a column per value.
#[derive(Debug)]
pub struct GridArray {
    name: String,
    source: Arc<dyn ChunkSource>,
    grid: ChunkGrid,
    dims: Vec<Dimension>,
    values: Vec<Value>,
    /// The names of the files, if there is a column of them.
    files: Option<Labels>,
    schema: SchemaRef,
    columns: Vec<Column>,
}

/// Memory that decoding reuses from chunk to chunk.
#[derive(Debug, Default)]
pub struct Workspace {
    scratch: Scratch,
    /// The memory of the last chunk's tiles.
    spares: Vec<Vec<u8>>,
}

impl Workspace {
    /// Takes tiles that are no longer needed, in the order in which they were decoded.
    pub fn reclaim(&mut self, tiles: impl IntoIterator<Item = Tile>) {
        self.spares = tiles.into_iter().map(Tile::into_spare).collect();
    }
}

impl GridArray {
    pub(super) fn new(
        name: String,
        source: Arc<dyn ChunkSource>,
        grid: ChunkGrid,
        dims: Vec<Dimension>,
        values: Vec<Value>,
        index_columns: bool,
    ) -> Self {
        let (schema, columns) = schema(&dims, &values, index_columns);
        Self { name, source, grid, dims, values, files: None, schema, columns }
    }

    /// The same array with a column of the names of files, which follow one another along `axis`.
    pub(super) fn with_files(mut self, axis: usize, names: Labels) -> Self {
        let mut fields: Vec<Field> =
            self.schema.fields().iter().map(|it| it.as_ref().clone()).collect();
        fields.push(Field::new(unused_name("_file", &fields), names.data_type(), false));
        self.columns.push(Column::File(axis));
        Self { files: Some(names), schema: Arc::new(Schema::new(fields)), ..self }
    }

    /// The same array under another name.
    pub(crate) fn with_name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// The array without its labels.
    pub(super) fn into_source(self) -> Arc<dyn ChunkSource> {
        self.source
    }

    /// All values of a cell.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// What the array is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The objects that it is stored in.
    pub fn objects(&self) -> &Objects {
        self.source.objects()
    }

    /// How it is cut into chunks.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Its axes.
    pub fn dims(&self) -> &[Dimension] {
        &self.dims
    }

    /// How the cells of a value become a column.
    pub fn value(&self, value: usize) -> &ValueColumn {
        &self.values[value].column
    }

    /// The table's columns: dimensions, the values, index columns if they were asked for.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What each column of the schema shows.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// What a column of a dimension shows along its axis; `None` for a value.
    pub fn labels_of(&self, column: Column) -> Option<&Labels> {
        match column {
            Column::Label(axis) => Some(&self.dims[axis].labels),
            Column::Index(axis) => Some(&self.dims[axis].index),
            Column::File(_) => self.files.as_ref(),
            Column::Value(_) => None,
        }
    }

    /// What the writer suggests about memory.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.source.memory_budget()
    }

    /// Finds where `values` of the chunks of `tasks` are stored: per task one entry per value.
    ///
    /// # Errors
    /// `Corrupt` if what the format says of a chunk is missing or cannot be right.
    pub async fn locate(
        &self,
        tasks: &[ChunkTask],
        values: &[usize],
    ) -> Result<Vec<Vec<StoredChunk>>> {
        self.source.locate(tasks, values).await
    }

    /// Decodes the fetched `payloads` of `values` of the chunk of `task`: a tile for each. Payloads are
    /// in the order of values, layers, and parts of a layer.
    ///
    /// # Errors
    /// `Corrupt` if they do not decode to the chunk's cells.
    pub fn decode(
        &self,
        task: &ChunkTask,
        values: &[usize],
        stored: &[StoredChunk],
        payloads: Vec<Bytes>,
        workspace: &mut Workspace,
    ) -> Result<Vec<Tile>> {
        let extents: Vec<u64> = task.selection.iter().map(AxisSelection::len).collect();
        let Workspace { scratch, spares } = workspace;
        spares.resize(values.len(), vec![]);
        let mut payloads = payloads.into_iter();
        let tiles = values.iter().zip(stored).zip(spares).map(|((&value, stored), spare)| {
            let cells = &self.values[value].cells;
            let spare = std::mem::take(spare);
            layers::decode(stored, &mut payloads, &extents, cells, spare, scratch)
        });
        tiles.collect::<Result<_>>().map_err(|error| {
            let what = format!("chunk {:?} of \"{}\"", task.coordinates, self.name);
            self.objects().named(error.about(&what))
        })
    }

    /// Bytes of memory of its own that decoding `values` of the chunk of `task` takes, and that its tiles
    /// hold.
    pub fn bytes_decoded(&self, task: &ChunkTask, values: &[usize], stored: &[StoredChunk]) -> u64 {
        let bytes = values.iter().zip(stored).map(|(&value, stored)| {
            layers::bytes_decoded(stored, task.cells(), &self.values[value].cells)
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// What is known of the chunks of `value` that hold a cell of `selection`, with NULL as the table has
    /// it; `None` if there is nothing, it cannot be believed, or reading it costs too much beside
    /// `bytes_to_read` of payloads.
    pub async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        self.source.zones(value, selection, bytes_to_read).await
    }
}

/// The table's schema and what each of its columns shows.
fn schema(dims: &[Dimension], values: &[Value], index_columns: bool) -> (SchemaRef, Vec<Column>) {
    let mut fields: Vec<Field> = Vec::new();
    let mut columns = Vec::new();
    for (axis, dim) in dims.iter().enumerate() {
        let field = Field::new(&dim.name, dim.labels.data_type(), dim.labels.has_nulls());
        fields.push(with_attributes(field, &dim.attributes));
        columns.push(Column::Label(axis));
    }
    for (number, value) in values.iter().enumerate() {
        let name = unused_name(&value.name, &fields);
        let field = Field::new(name, value.column.data_type(), value.column.is_nullable());
        fields.push(with_attributes(field, &value.attributes));
        columns.push(Column::Value(number));
    }
    if index_columns {
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
