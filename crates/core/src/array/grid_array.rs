//! An opened array: its dimensions with their labels, its variables and its schema.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;

use super::arrow_error::failed_to;
use super::chunk_source::{ChunkSource, Contents, RepeatedInFiles};
use super::column::{ColumnSource, Value, schema, unused_name};
use super::dimension::Dimension;
use super::known_cells::{KnownCells, VariableCells};
use super::labels::Labels;
use super::value_bounds::ValueBounds;
use super::values::ValueColumn;
use crate::error::{Error, Result};
use crate::format::{MemoryBudget, Scratch, StoredChunk, Zones};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, Selection};
use crate::tile::layers::{self, Undecodable};
use crate::tile::{ObjectVersion, Objects, Tile};

/// An array that is ready to be scanned: one row per cell, one column per dimension and per variable.
#[derive(Debug)]
pub struct GridArray {
    name: String,
    source: Arc<dyn ChunkSource>,
    grid: ChunkGrid,
    /// One per axis of `grid`.
    dims: Vec<Dimension>,
    /// The variables; their positions are the numbers that `source` gets.
    values: Vec<Value>,
    /// The file names of the `_file` column, if the table has one.
    files: Option<Labels>,
    schema: SchemaRef,
    /// The source of each field of `schema`.
    columns: Vec<ColumnSource>,
    /// The cells of coordinates that queries have read.
    known: Box<KnownCells>,
}

/// Memory that decoding reuses from chunk to chunk.
#[derive(Debug, Default)]
pub struct Workspace {
    scratch: Scratch,
    /// The memory of the last chunk's tiles, one per variable; empty where a tile is still in use.
    spares: Vec<Vec<u8>>,
    /// Whether chunks of which nothing is stored become a single cell.
    repeats_fill: bool,
}

impl Workspace {
    /// Returns a workspace whose chunks become [a single cell](Tile::is_repeated) if nothing of them is stored.
    pub fn repeating_fill() -> Self {
        Self { repeats_fill: true, ..Self::default() }
    }

    /// Whether the tile of a chunk is a single cell.
    pub fn repeats(&self, stored: &StoredChunk) -> bool {
        self.repeats_fill && stored.layers.is_empty()
    }

    /// Takes back tiles that are no longer needed, in the order in which they were decoded.
    pub fn reclaim(&mut self, tiles: impl IntoIterator<Item = Tile>) {
        self.spares = tiles.into_iter().map(Tile::into_spare).collect();
    }
}

impl GridArray {
    /// Makes an array of its grid, the columns of its axes and its values, all of the same shape.
    pub fn new(
        name: String,
        source: Arc<dyn ChunkSource>,
        grid: ChunkGrid,
        dims: Vec<Dimension>,
        values: Vec<Value>,
        index_columns: bool,
    ) -> Self {
        let (schema, columns) = schema(&dims, &values, index_columns);
        Self {
            name,
            source,
            grid,
            dims,
            values,
            files: None,
            schema,
            columns,
            known: Box::default(),
        }
    }

    /// Adds the column `_file` with the names of the files, which are concatenated along `axis`.
    pub(crate) fn with_files(mut self, axis: usize, names: Labels) -> Self {
        let mut fields: Vec<Field> =
            self.schema.fields().iter().map(|it| it.as_ref().clone()).collect();
        fields.push(Field::new(unused_name("_file", &fields), names.data_type(), false));
        self.columns.push(ColumnSource::File(axis));
        Self { files: Some(names), schema: Arc::new(Schema::new(fields)), ..self }
    }

    /// Returns the same array under another name.
    pub fn with_name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Returns the same array, whose axes with these numbers count samples of ragged arrays.
    pub fn with_samples(mut self, axes: &[usize]) -> Self {
        for axis in axes {
            if let Some(dim) = self.dims.get_mut(*axis) {
                dim.counts_samples = true;
            }
        }
        self
    }

    /// Returns the same array, whose only variable has the name of the array. Several keep their names.
    pub fn with_variable_name(mut self) -> Self {
        let [value] = self.values.as_mut_slice() else { return self };
        value.name.clone_from(&self.name);
        let index_columns = self.columns.iter().any(|it| matches!(it, ColumnSource::Index(_)));
        (self.schema, self.columns) = schema(&self.dims, &self.values, index_columns);
        self
    }

    /// Returns the same array with a prefix before the names of its values, `NAME_`.
    #[must_use]
    pub fn with_value_prefix(mut self, prefix: &str) -> Self {
        for value in &mut self.values {
            value.name = format!("{prefix}_{}", value.name);
        }
        let index_columns = self.columns.iter().any(|it| matches!(it, ColumnSource::Index(_)));
        (self.schema, self.columns) = schema(&self.dims, &self.values, index_columns);
        self
    }

    /// Returns the same array, without the column `_file`. It shares the source.
    pub(crate) fn shared(&self) -> Self {
        let (source, grid) = (Arc::clone(&self.source), self.grid.clone());
        let (name, dims, values) = (self.name.clone(), self.dims.clone(), self.values.clone());
        Self::new(name, source, grid, dims, values, false)
    }

    /// Returns the same array with other labels on an axis, as many as before. It has no columns of indices.
    pub(crate) fn with_labels(self, axis: usize, labels: Labels) -> Self {
        let dim = self.dims[axis].with_labels(labels);
        self.with_dim(axis, dim)
    }

    /// Returns the same array with another dimension of the same length.
    pub(crate) fn with_dim(self, axis: usize, dim: Dimension) -> Self {
        let Self { name, source, grid, mut dims, values, .. } = self;
        dims[axis] = dim;
        Self::new(name, source, grid, dims, values, false)
    }

    /// Returns the same array with dimensions of another one, which must have equal labels: `axes` has the axis there of each
    /// own.
    ///
    /// # Errors
    /// `Usage` if labels differ; `Internal` for an axis that the other array does not have.
    pub(crate) fn over_dims_of(self, other: &Self, axes: &[usize]) -> Result<Self> {
        if axes.len() != self.dims.len() {
            return Err(Error::internal("axes of an array of another rank"));
        }
        let mut dims = Vec::with_capacity(axes.len());
        for (own, axis) in self.dims.iter().zip(axes) {
            let dim = other.dims.get(*axis).cloned();
            let dim = dim.ok_or_else(|| Error::internal("an axis that an array does not have"))?;
            if dim.len() != own.len() || !dim.labels.equals(&own.labels)? {
                let (a, b) = (self.name(), other.name());
                let message = format!(
                    "\"{}\" of \"{a}\" has other labels than \"{}\" of \"{b}\"",
                    own.name, dim.name
                );
                return Err(Error::usage(message));
            }
            dims.push(dim);
        }
        Ok(Self::new(self.name, self.source, self.grid, dims, self.values, false))
    }

    /// Returns the source of the stored chunks.
    pub(crate) fn into_source(self) -> Arc<dyn ChunkSource> {
        self.source
    }

    /// Returns the variables.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns the array's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the objects that hold the array.
    pub fn objects(&self) -> &Objects {
        self.source.objects()
    }

    /// Returns the versions of the objects that opening the array has read; see [`ChunkSource::versions`].
    pub fn versions(&self) -> Vec<ObjectVersion> {
        self.source.versions()
    }

    /// Returns the array's chunks, whose versions may be needed later.
    pub fn contents(&self) -> Contents {
        Contents(vec![Arc::clone(&self.source)])
    }

    /// Returns [`GridArray::objects`], to be kept.
    pub(crate) fn shared_objects(&self) -> &Arc<Objects> {
        self.source.objects()
    }

    /// Returns the chunk grid.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Returns the dimensions, in the order of the axes.
    pub fn dims(&self) -> &[Dimension] {
        &self.dims
    }

    /// Returns how the cells of a variable become a column.
    ///
    /// # Panics
    /// If the array has no variable of this number; the numbers in [`GridArray::columns`] all exist.
    pub fn value(&self, value: usize) -> &ValueColumn {
        &self.values[value].column
    }

    /// Returns how the cells of a variable become a column, in each form in which files store it. The first is
    /// [`GridArray::value`]; others may have other types, and are cast to the first one's.
    ///
    /// # Panics
    /// As [`GridArray::value`].
    pub fn forms_of(&self, value: usize) -> impl Iterator<Item = &ValueColumn> {
        self.values[value].columns()
    }

    /// Returns the number of variables.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Returns the table's schema: dimensions, variables, and index and file columns if requested.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the source of each column of the schema.
    pub fn columns(&self) -> &[ColumnSource] {
        &self.columns
    }

    /// Returns the labels that a column of a dimension shows along its axis. `None` for a variable, and
    /// for an axis that the array does not have.
    pub fn labels_of(&self, column: ColumnSource) -> Option<&Labels> {
        match column {
            ColumnSource::Label(axis) => self.dims.get(axis).map(|dim| &dim.labels),
            ColumnSource::Index(axis) => self.dims.get(axis).map(|dim| &dim.index),
            ColumnSource::File(_) => self.files.as_ref(),
            ColumnSource::Value(_) => None,
        }
    }

    /// Returns the axes along which the cells of a variable differ, ascending: along the others they repeat.
    ///
    /// # Panics
    /// As [`GridArray::value`].
    pub fn axes_of(&self, value: usize) -> Vec<usize> {
        self.source.axes_of(value).unwrap_or_else(|| (0..self.grid.rank()).collect())
    }

    /// Returns how the cells of a variable repeat within each of several files; `None` if they do not, or if
    /// [some files have other cells](Self::set_differs_in_files).
    ///
    /// # Panics
    /// As [`GridArray::value`].
    pub fn repeated_in_files(&self, value: usize) -> Option<Arc<RepeatedInFiles>> {
        let repeated = self.source.repeated_in_files(value)?;
        (!self.known.differs_in_files(value)).then_some(repeated)
    }

    /// Keeps in mind that some files have other cells of a variable.
    pub fn set_differs_in_files(&self, value: usize) {
        self.known.set_differs_in_files(value);
    }

    /// Returns the files whose cells are [those that are known](Self::known_cells), by the index at which they begin.
    pub fn known_files(&self, value: usize) -> BTreeSet<u64> {
        self.known.files(value)
    }

    /// Returns the cells of a variable along its own axes, row-major, if a query has [kept](Self::keep_cells) them.
    pub fn known_cells(&self, value: usize) -> Option<ArrayRef> {
        self.known.of(value)
    }

    /// Keeps the cells of a variable along its own axes for later queries, as long as there are not too many.
    pub fn keep_cells(&self, cells: VariableCells) {
        self.known.keep(cells);
    }

    /// Returns the objects, with their members, from which the known cells were read, if they may be written again.
    pub fn known_objects(&self) -> Vec<(u32, Arc<str>)> {
        self.known.objects()
    }

    /// Explains why a query has found no chunk of `value`; see [`ChunkSource::explain_absence`].
    ///
    /// # Errors
    /// If chunks are stored under other names than those that were tried.
    pub async fn explain_absence(&self, value: usize, member: u32) -> Result<Option<String>> {
        let explained = self.source.explain_absence(value, member).await;
        explained.map_err(|error| self.objects().named_in(member, error))
    }

    /// Returns the memory budget that the writer suggests.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.source.memory_budget()
    }

    /// Returns the most chunks that a scan may read, see [`ChunkSource::most_chunks`].
    pub fn most_chunks(&self) -> u64 {
        self.source.most_chunks()
    }

    /// Locates `values` of the chunks of `tasks`: one list per task, with one entry per value.
    ///
    /// # Errors
    /// `Corrupt` if the location of a chunk is missing or impossible; `Internal` if the source returns
    /// the wrong number of chunks.
    pub async fn locate(
        &self,
        tasks: &[ChunkTask],
        values: &[usize],
    ) -> Result<Vec<Vec<StoredChunk>>> {
        let found = self.source.locate(tasks, values).await?;
        match found.len() == tasks.len() && found.iter().all(|it| it.len() == values.len()) {
            true => Ok(found),
            false => {
                Err(Error::internal(format!("some chunks of \"{}\" were not located", self.name)))
            }
        }
    }

    /// Decodes the fetched `payloads` of `values` of the chunk of `task`, and returns one tile per
    /// value. Payloads are ordered by value, then by layer, then by part of the layer.
    ///
    /// # Errors
    /// `Corrupt` if the payloads do not decode to the chunk's cells.
    pub fn decode(
        &self,
        task: &ChunkTask,
        values: &[usize],
        stored: &[StoredChunk],
        payloads: Vec<Bytes>,
        workspace: &mut Workspace,
    ) -> Result<Vec<Tile>> {
        let repeated: Vec<bool> = stored.iter().map(|it| workspace.repeats(it)).collect();
        let Workspace { scratch, spares, .. } = workspace;
        spares.resize(values.len(), vec![]);
        let mut payloads = payloads.into_iter();
        let extents = extents_of(task);
        let all = values.iter().zip(stored).zip(spares.iter_mut().zip(repeated));
        let tiles = all.map(|((&value, stored), (spare, is_repeated))| match is_repeated {
            true => {
                let one = vec![1; extents.len()];
                let tile = self.decode_box(&one, value, stored, &mut payloads, vec![], scratch)?;
                Ok(tile.repeated())
            }
            false => {
                let spare = std::mem::take(spare);
                self.decode_box(&extents, value, stored, &mut payloads, spare, scratch)
            }
        });
        tiles.collect::<Result<_, Undecodable>>().map_err(|Undecodable { error, member }| {
            let what = format!("chunk {:?} of \"{}\"", task.coordinates, self.name);
            self.objects().named_in(member, error.about(&what))
        })
    }

    /// Decodes one variable of the chunk of `task`. Takes its payloads from the iterator.
    pub fn decode_value(
        &self,
        task: &ChunkTask,
        value: usize,
        stored: &StoredChunk,
        payloads: &mut impl Iterator<Item = Bytes>,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Tile, Undecodable> {
        self.decode_box(&extents_of(task), value, stored, payloads, spare, scratch)
    }

    /// Decodes one variable of a chunk of these extents.
    fn decode_box(
        &self,
        extents: &[u64],
        value: usize,
        stored: &StoredChunk,
        payloads: &mut impl Iterator<Item = Bytes>,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Tile, Undecodable> {
        let (_, cells) = self.values[value].form(stored.form);
        let tile = layers::decode(stored, payloads, extents, cells, spare, scratch)?;
        Ok(tile.with_form(stored.form))
    }

    /// Returns some cells of a decoded tile as they are in the column of the variable `value`; see [`ValueColumn::decode`].
    ///
    /// # Errors
    /// As [`ValueColumn::decode`]; the error names the column and the file.
    pub fn column_of(
        &self,
        value: usize,
        tile: &Tile,
        cells: &[AxisSelection],
        may_hold_nulls: bool,
    ) -> Result<ArrayRef> {
        let (column, _) = self.values[value].form(tile.form());
        let decoded = column.decode(tile, cells, may_hold_nulls);
        decoded.and_then(|array| in_type(array, &self.value(value).data_type())).map_err(|error| {
            let name = self.columns.iter().position(|it| *it == ColumnSource::Value(value));
            let name = name.map_or("", |at| self.schema.field(at).name());
            self.objects().named(error.about(&format!("column \"{name}\"")))
        })
    }

    /// Returns the bytes that decoding `values` of the chunk of `task` allocates, including their
    /// tiles.
    pub fn bytes_decoded(&self, task: &ChunkTask, values: &[usize], stored: &[StoredChunk]) -> u64 {
        let bytes = values.iter().zip(stored).map(|(&value, stored)| {
            layers::bytes_decoded(stored, task.cells(), self.values[value].form(stored.form).1)
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns the stored statistics of `value` for the chunks that hold a cell of `selection`. They
    /// count the same elements as NULL as the table does.
    ///
    /// `None` if there are none, if they are not trusted, or if reading them costs too much compared
    /// with `bytes_to_read` of payloads.
    pub async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        self.source.zones(value, selection, bytes_to_read).await
    }

    /// Returns the least and the greatest value of chunks; see [`ChunkSource::value_bounds`].
    pub async fn value_bounds(
        &self,
        value: usize,
        selection: &Selection,
    ) -> Option<Arc<dyn ValueBounds>> {
        self.source.value_bounds(value, selection).await
    }
}

/// Returns the extents of a chunk: the selection's axes are those of the chunk.
fn extents_of(task: &ChunkTask) -> Vec<u64> {
    task.selection.iter().map(AxisSelection::len).collect()
}

/// Returns values of one form of a variable in the type of its column, which is as wide.
fn in_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    match array.data_type() == data_type {
        true => Ok(array),
        false => cast(&array, data_type).map_err(failed_to("widen numbers")),
    }
}
