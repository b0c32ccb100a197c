//! Which cells of a tile are visible: those in the time window that no deletion hides.
//!
//! ```text
//!   t      10  20  30  40     time of each cell, in fragments that were consolidated with times
//!   dt      ∞  35   ∞   ∞     when consolidation found the cell deleted, in fragments with deletions
//!   .del   of 25: x < 5       conditions that consolidation has not applied to the fragment
//!
//!   window 0 to 30            cell 3 lies outside
//!   window 0 to 50            cell 1 is deleted, and cells 0 and 1 if x < 5
//! ```
//!
//! `crates/tiledb/FORMAT.md`, section 11, has the rules. They apply after duplicates are removed: a deleted cell
//! still hides older cells of its coordinates.

use arrow::buffer::BooleanBuffer;
use bytes::Bytes;

use super::conditions::{Operand, OperandCells, evaluate};
use super::source::TileDbTiles;
use crate::bytes::{Block, DeleteCondition, FieldSchema, Fragment};
use crate::columns::complete_cells;
use gridfusion_core::array::{CellTimes, TileNumber};
use gridfusion_core::format::{Layer, Scratch, StoredChunk};
use gridfusion_core::grid::AxisSelection;
use gridfusion_core::tile::{Request, Tile, layers};
use gridfusion_core::{Error, Result};

impl TileDbTiles {
    fn fragment(&self, number: usize) -> Result<&Fragment> {
        let fragment = self.array.fragments().get(number);
        fragment.ok_or_else(|| Error::internal("a tile of no fragment"))
    }

    /// Returns the blocks that [`Self::cell_times`] and [`Self::cells_kept`] need of a fragment.
    pub(super) fn blocks_of_visibility(&self, number: usize) -> Vec<Block> {
        let Ok(fragment) = self.fragment(number) else { return vec![] };
        let times = [fragment.time_field(), fragment.delete_time_field()].into_iter().flatten();
        let mut blocks: Vec<Block> = times.map(|field| Block::Tiles(number, field)).collect();
        if fragment.delete_time_field().is_some() {
            blocks.push(Block::AppliedConditions(number));
        }
        for condition in self.conditions_after(fragment) {
            let fields = condition.keep.fields();
            let fields = fields.into_iter().filter_map(|name| field_named(fragment, name));
            blocks.extend(fields.map(|field| Block::Tiles(number, field)));
        }
        blocks
    }

    /// Returns the times of the cells of a tile; `None` if the fragment has one time for all.
    pub(super) async fn cell_times(&self, tile: TileNumber) -> Result<Option<CellTimes>> {
        let fragment = self.fragment(tile.fragment)?;
        let Some(field) = fragment.time_field() else { return Ok(None) };
        let times = numbers(&self.decoded(tile, &[field]).await?[0]);
        let options = self.array.options();
        let end = options.end.unwrap_or(u64::MAX);
        let inside = |time: u64| options.start <= time && time <= end;
        let inside = BooleanBuffer::collect_bool(times.len(), |at| inside(times[at]));
        Ok(Some(CellTimes::new(times, inside)))
    }

    /// Returns a bit per cell of a tile: whether no deletion hides it. `None` if none is deleted.
    pub(super) async fn cells_kept(
        &self,
        tile: TileNumber,
        times: Option<&CellTimes>,
    ) -> Result<Option<BooleanBuffer>> {
        let fragment = self.fragment(tile.fragment)?;
        let mut kept = None;
        if let Some(field) = fragment.delete_time_field() {
            let deleted = numbers(&self.decoded(tile, &[field]).await?[0]);
            let end = self.array.options().end.unwrap_or(u64::MAX);
            // The greatest number stands for cells that were never deleted.
            let lives = |time: u64| time > end || time == u64::MAX;
            and(&mut kept, BooleanBuffer::collect_bool(deleted.len(), |at| lives(deleted[at])));
        }
        for condition in self.unapplied(tile.fragment).await? {
            // A cell that was written after the deletion stays.
            let later = match times {
                Some(times) if condition.time <= fragment.t2 => {
                    let later = |at: usize| times.times[at] > condition.time;
                    Some(BooleanBuffer::collect_bool(times.times.len(), later))
                }
                _ => None,
            };
            and(&mut kept, self.matches(tile, condition, later).await?);
        }
        Ok(kept)
    }

    /// Returns the visible delete conditions that are not older than a fragment.
    fn conditions_after<'a>(
        &'a self,
        fragment: &'a Fragment,
    ) -> impl Iterator<Item = &'a DeleteCondition> {
        self.array.deletions().iter().filter(|condition| condition.time >= fragment.t1)
    }

    /// Returns the conditions that may delete cells of a fragment, without those that consolidation has
    /// already applied to it.
    async fn unapplied(&self, number: usize) -> Result<Vec<&DeleteCondition>> {
        let fragment = self.fragment(number)?;
        let later = self.conditions_after(fragment);
        if fragment.delete_time_field().is_none() {
            return Ok(later.collect());
        }
        self.read(vec![Block::AppliedConditions(number)]).await?;
        let applied = self.array.applied_conditions(number)?;
        Ok(later.filter(|condition| !applied.contains(&condition.marker)).collect())
    }

    /// Returns a bit per cell of a tile: whether a stored condition, which tells what to keep, is true. Cells
    /// in `later` were written after the deletion.
    async fn matches(
        &self,
        tile: TileNumber,
        condition: &DeleteCondition,
        later: Option<BooleanBuffer>,
    ) -> Result<BooleanBuffer> {
        let fragment = self.fragment(tile.fragment)?;
        let names = condition.keep.fields();
        let fields: Vec<(&str, usize)> = names
            .into_iter()
            .filter_map(|name| Some((name, field_named(fragment, name)?)))
            .collect();
        let numbers: Vec<usize> = fields.iter().map(|(_, field)| *field).collect();
        let tiles = self.decoded(tile, &numbers).await?;
        let mut operands = Vec::with_capacity(fields.len());
        let all = [AxisSelection::all(fragment.tile_cells(tile.tile)?)];
        // Spans are made first, because operands borrow them.
        let spans = tiles.iter().map(|tile| tile.spans(&all).ok()).collect::<Vec<_>>();
        for (((name, field), tile), spans) in fields.iter().zip(&tiles).zip(&spans) {
            let schema = fragment.field(*field)?;
            operands.push((*name, operand(&schema, tile, spans.as_ref())));
        }
        let operand = |name: &str| {
            operands.iter().find(|(known, _)| *known == name).map(|(_, operand)| operand)
        };
        let cells = usize::try_from(fragment.tile_cells(tile.tile)?);
        let cells = cells.map_err(|_| Error::unsupported("a tile that does not fit in memory"))?;
        evaluate(&condition.keep, cells, &operand, later)
            .map_err(|error| self.objects.named(error.about(&condition.marker)))
    }

    /// Fetches and decodes `fields` of a tile.
    async fn decoded(&self, tile: TileNumber, fields: &[usize]) -> Result<Vec<Tile>> {
        let fragment = self.fragment(tile.fragment)?;
        self.read(fields.iter().map(|&field| Block::Tiles(tile.fragment, field)).collect()).await?;
        let layer = |&field: &usize| self.array.sparse_tile(tile.fragment, field, tile.tile);
        let layers: Result<Vec<Layer>> = fields.iter().map(layer).collect();
        let layers = layers.map_err(|error| self.objects.named(error))?;
        let chunks: Vec<StoredChunk> =
            layers.into_iter().map(|layer| StoredChunk::new(vec![layer])).collect();
        let fetched = self.objects.fetch(&Request::for_chunks(&chunks)).await?;
        let mut payloads = fetched.into_iter().flatten();
        let cells = [fragment.tile_cells(tile.tile)?];
        let mut decode = |(chunk, &field): (&StoredChunk, &usize)| {
            decode_field(&fragment.field(field)?, chunk, &cells, &mut payloads)
        };
        let tiles = chunks.iter().zip(fields).map(&mut decode).collect::<Result<Vec<Tile>>>();
        tiles.map_err(|error| self.objects.named(error))
    }
}

/// Decodes one field of a tile, as the fragment's schema has it.
fn decode_field(
    field: &FieldSchema<'_>,
    chunk: &StoredChunk,
    cells: &[u64],
    payloads: &mut impl Iterator<Item = Bytes>,
) -> Result<Tile> {
    let format = complete_cells(field)?;
    let decoded = layers::decode(chunk, payloads, cells, &format, vec![], &mut Scratch::default());
    decoded.map_err(|failed| failed.error)
}

/// Returns the field of a fragment with this name, an attribute or a dimension; `None` if its schema has none.
fn field_named(fragment: &Fragment, name: &str) -> Option<usize> {
    let schema = fragment.schema();
    let dimension = schema.dimensions.iter().position(|dimension| dimension.name == name);
    let dimension = dimension.map(|dimension| fragment.dimension_field(dimension));
    schema.attribute_index(name).or(dimension)
}

/// Spans of the cells of a tile, and the bytes that they refer to.
type Spans<'a> = (Vec<std::ops::Range<u64>>, &'a Bytes);

/// Returns the cells of a field, to be compared.
fn operand<'a>(
    field: &FieldSchema<'_>,
    tile: &'a Tile,
    spans: Option<&'a Spans<'a>>,
) -> Operand<'a> {
    let cells = match spans {
        Some((spans, content)) => OperandCells::Variable { spans, content },
        None => {
            let width = field.cell_size().unwrap_or(1) as usize;
            OperandCells::Fixed { bytes: tile.bytes(), width }
        }
    };
    Operand { datatype: field.datatype, cells, validity: tile.validity() }
}

/// Returns the cells of a tile of `u64`.
fn numbers(tile: &Tile) -> Vec<u64> {
    tile.bytes().as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Leaves of `kept` only the cells that are in `other`.
fn and(kept: &mut Option<BooleanBuffer>, other: BooleanBuffer) {
    *kept = Some(match kept.take() {
        Some(kept) => &kept & &other,
        None => other,
    });
}
