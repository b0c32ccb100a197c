//! [`SparseArray`]: a sparse array as a table.
//!
//! Columns of dimensions hold the stored coordinates. They are never NULL, and have one zero: two cells that differ in
//! the sign of a zero are one row. There are no index columns, because a cell has no index.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema, SchemaRef};
use bytes::Bytes;

use super::sparse_source::{SparseSource, TileNumber};
use crate::array::column::{Value, unused_name, with_attributes};
use crate::array::label_order::without_negative_zeros;
use crate::array::values::ValueColumn;
use crate::error::{Error, Result};
use crate::format::{Scratch, StoredChunk};
use crate::grid::AxisSelection;
use crate::tile::{ObjectVersion, Objects, Tile, layers};

/// A sparse array as a table: a row per visible cell, a column per dimension, and a column per variable.
#[derive(Debug, Clone)]
pub struct SparseArray {
    name: String,
    source: Arc<dyn SparseSource>,
    /// Dimensions, then variables.
    columns: Vec<Value>,
    /// The number of dimensions.
    rank: usize,
    schema: SchemaRef,
}

impl SparseArray {
    /// Makes a table of `dimensions` and `values`, whose cells `source` finds. The columns of dimensions must
    /// not be nullable. A variable with the name of an earlier column gets an underscore appended.
    pub fn new(
        name: impl Into<String>,
        source: Arc<dyn SparseSource>,
        dimensions: Vec<Value>,
        values: Vec<Value>,
    ) -> Self {
        let rank = dimensions.len();
        let mut columns: Vec<Value> = dimensions.into_iter().map(Value::of_labels).collect();
        columns.extend(values);
        let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
        for value in &columns {
            let name = unused_name(&value.name, &fields);
            let column = &value.column;
            let field = Field::new(name, column.data_type(), column.is_nullable());
            fields.push(with_attributes(field, &value.attributes));
        }
        let schema = Arc::new(Schema::new(fields));
        Self { name: name.into(), source, columns, rank, schema }
    }

    /// Returns the same array under another name.
    #[must_use]
    pub fn with_name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Returns the array's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the source of the tiles.
    pub fn source(&self) -> &Arc<dyn SparseSource> {
        &self.source
    }

    /// Returns the objects that hold the array.
    pub fn objects(&self) -> &Objects {
        self.source.objects()
    }

    /// Returns the versions of the objects that opening the array has read; see [`SparseSource::versions`].
    pub fn versions(&self) -> Vec<ObjectVersion> {
        self.source.versions()
    }

    /// Returns the number of dimensions, which are the first columns.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the table's schema: dimensions, then variables.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns how the cells of a column become values; `None` if there is no such column.
    pub fn column(&self, column: usize) -> Option<&ValueColumn> {
        self.columns.get(column).map(|value| &value.column)
    }

    /// Decodes the fetched `payloads` of one column of a tile with this many cells.
    ///
    /// # Errors
    /// `Corrupt` if the payloads do not decode to the tile's cells.
    pub fn decode(
        &self,
        tile: TileNumber,
        column: usize,
        stored: &StoredChunk,
        payloads: &mut impl Iterator<Item = Bytes>,
        scratch: &mut Scratch,
    ) -> Result<Tile> {
        let value = &self.columns[column];
        let cells = self.source.fragments()[tile.fragment].cells_of(tile.tile);
        layers::decode(stored, payloads, &[cells], &value.cells, vec![], scratch)
            .map_err(|failed| self.named(failed.error, tile, column))
    }

    /// Returns the values of a decoded tile with this many cells. Dimensions of floats have one zero only,
    /// because -0.0 and 0.0 are the same coordinate.
    ///
    /// # Errors
    /// As [`ValueColumn::decode`].
    pub fn values(&self, tile: TileNumber, column: usize, decoded: &Tile) -> Result<ArrayRef> {
        let cells = self.source.fragments()[tile.fragment].cells_of(tile.tile);
        let all = [AxisSelection::all(cells)];
        let named = |error| self.named(error, tile, column);
        let values = self.columns[column].column.decode(decoded, &all, true).map_err(named)?;
        if column < self.rank && values.data_type().is_floating() {
            return without_negative_zeros(values);
        }
        Ok(values)
    }

    /// Returns the bytes that decoding a column of a tile allocates.
    pub fn bytes_decoded(&self, tile: TileNumber, column: usize, stored: &StoredChunk) -> u64 {
        let cells = self.source.fragments()[tile.fragment].cells_of(tile.tile);
        layers::bytes_decoded(stored, cells, &self.columns[column].cells)
    }

    /// Returns the bytes of a decoded cell in some columns; an estimate for cells of any length.
    pub fn cell_bytes(&self, columns: &[usize]) -> u64 {
        let of_column = |at: &usize| self.columns.get(*at).map_or(0, |it| it.column.cell_bytes());
        columns.iter().map(of_column).sum()
    }

    fn named(&self, error: Error, tile: TileNumber, column: usize) -> Error {
        let name = self.schema.field(column).name();
        let what = format!("column \"{name}\", tile {} of fragment {}", tile.tile, tile.fragment);
        self.objects().named(error.about(&what))
    }
}
