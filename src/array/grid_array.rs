//! An opened array: its dimensions with their labels, its values and its schema.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use bytes::Bytes;

use super::chunk_source::ChunkSource;
use super::column::{ColumnSource, Value, schema, unused_name};
use super::dimension::Dimension;
use super::labels::Labels;
use super::values::ValueColumn;
use crate::error::{Error, Result};
use crate::format::{MemoryBudget, Scratch, StoredChunk, Zones};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, Selection};
use crate::tile::layers::{self, Undecodable};
use crate::tile::{Objects, Tile};

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
    columns: Vec<ColumnSource>,
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
    pub(crate) fn new(
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

    /// The same array with a column of the names of files, which are concatenated along `axis`.
    pub(crate) fn with_files(mut self, axis: usize, names: Labels) -> Self {
        let mut fields: Vec<Field> =
            self.schema.fields().iter().map(|it| it.as_ref().clone()).collect();
        fields.push(Field::new(unused_name("_file", &fields), names.data_type(), false));
        self.columns.push(ColumnSource::File(axis));
        Self { files: Some(names), schema: Arc::new(Schema::new(fields)), ..self }
    }

    /// The same array under another name.
    #[cfg(feature = "tiledb")]
    pub(crate) fn with_name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// The stored side of the array.
    pub(crate) fn into_source(self) -> Arc<dyn ChunkSource> {
        self.source
    }

    /// All values of a cell.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// The array's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The objects that hold the array.
    pub fn objects(&self) -> &Objects {
        self.source.objects()
    }

    /// [`GridArray::objects`], to be kept.
    pub(crate) fn shared_objects(&self) -> &Arc<Objects> {
        self.source.objects()
    }

    /// The chunk grid.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Its axes.
    pub fn dims(&self) -> &[Dimension] {
        &self.dims
    }

    /// How the cells of a value become a column.
    ///
    /// # Panics
    /// If the array has no value of this number; those of [`GridArray::columns`] it has.
    pub fn value(&self, value: usize) -> &ValueColumn {
        &self.values[value].column
    }

    /// The table's columns: dimensions, the values, index columns if requested.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The source of each column of the schema.
    pub fn columns(&self) -> &[ColumnSource] {
        &self.columns
    }

    /// The labels that a column of a dimension shows along its axis; `None` for a value, and for an axis that
    /// the array does not have.
    pub fn labels_of(&self, column: ColumnSource) -> Option<&Labels> {
        match column {
            ColumnSource::Label(axis) => self.dims.get(axis).map(|dim| &dim.labels),
            ColumnSource::Index(axis) => self.dims.get(axis).map(|dim| &dim.index),
            ColumnSource::File(_) => self.files.as_ref(),
            ColumnSource::Value(_) => None,
        }
    }

    /// The memory budget that the writer suggests.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.source.memory_budget()
    }

    /// Finds where `values` of the chunks of `tasks` are stored: per task one entry per value.
    ///
    /// # Errors
    /// `Corrupt` if the location of a chunk is missing or impossible; `Internal` if the format has not
    /// answered what it was asked.
    pub async fn locate(
        &self,
        tasks: &[ChunkTask],
        values: &[usize],
    ) -> Result<Vec<Vec<StoredChunk>>> {
        let found = self.source.locate(tasks, values).await?;
        match found.len() == tasks.len() && found.iter().all(|it| it.len() == values.len()) {
            true => Ok(found),
            false => {
                Err(Error::internal(format!("chunks of \"{}\" that were not located", self.name)))
            }
        }
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
        let Workspace { scratch, spares } = workspace;
        spares.resize(values.len(), vec![]);
        let mut payloads = payloads.into_iter();
        let tiles = values.iter().zip(stored).zip(spares).map(|((&value, stored), spare)| {
            let spare = std::mem::take(spare);
            self.decode_value(task, value, stored, &mut payloads, spare, scratch)
        });
        tiles.collect::<Result<_, Undecodable>>().map_err(|Undecodable { error, member }| {
            let what = format!("chunk {:?} of \"{}\"", task.coordinates, self.name);
            self.objects().named_in(member, error.about(&what))
        })
    }

    /// Decodes one value of the chunk of `task`, of which it takes the payloads.
    pub(crate) fn decode_value(
        &self,
        task: &ChunkTask,
        value: usize,
        stored: &StoredChunk,
        payloads: &mut impl Iterator<Item = Bytes>,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Tile, Undecodable> {
        let extents: Vec<u64> = task.selection.iter().map(AxisSelection::len).collect();
        layers::decode(stored, payloads, &extents, &self.values[value].cells, spare, scratch)
    }

    /// Bytes of memory of its own that decoding `values` of the chunk of `task` takes, and that its tiles
    /// hold.
    pub fn bytes_decoded(&self, task: &ChunkTask, values: &[usize], stored: &[StoredChunk]) -> u64 {
        let bytes = values.iter().zip(stored).map(|(&value, stored)| {
            layers::bytes_decoded(stored, task.cells(), &self.values[value].cells)
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// The zone maps of the chunks of `value` that hold a cell of `selection`, with NULL as in the table.
    /// `None` if there are none, they are not trusted, or they cost too much to read beside
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
