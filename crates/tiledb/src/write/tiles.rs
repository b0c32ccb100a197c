//! [`NewTiles`]: the tiles of a fragment, in the order of their numbers.
//!
//! ```text
//!   tile                0 1 2 3 4 5      a file has its tiles in this order
//!   chunks that come    0 1 3            0 and 1 are appended, 3 is held
//!                       2                2 and 3 are appended
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::{ArrayRef, new_null_array};
use arrow::buffer::NullBuffer;
use gridfusion_core::format::Write;
use gridfusion_core::grid::{ravel, unravel};
use gridfusion_core::write::{BadCell, NewArray, NewChunk, in_threads, lens};
use gridfusion_core::{Error, Result};
use tokio::runtime::Handle;

use super::fragment::{FragmentBox, NewFragment};
use super::old_cells::{OldCells, RowCells};
use super::tile::{CellEncoder, EncodedTile, cells_of};
use crate::bytes::DimensionSchema;

/// The tiles of a fragment that is being written.
#[derive(Debug)]
pub(super) struct NewTiles {
    pub(super) array: NewArray,
    pub(super) fragment: NewFragment,
    tile_shape: Vec<u64>,
    /// The tiles that have cells of the fragment, along each axis.
    within: Vec<Range<u64>>,
    /// Tiles that came before tiles that precede them, by variable and number.
    held: BTreeMap<(usize, u64), EncodedTile>,
    held_bytes: u64,
    /// The threads that have encoded chunks so far.
    threads: usize,
    /// The cells that are there, if rows may change some of them.
    old: Option<OldCells>,
    /// The most bytes of tiles that are held.
    max_bytes: u64,
}

impl NewTiles {
    /// Makes a fragment without tiles. The chunks of the array are those of the tiles of this shape.
    ///
    /// # Errors
    /// `Unsupported` if a tile does not fit in memory.
    pub(super) fn try_new(
        array: NewArray,
        fragment: NewFragment,
        tile_shape: Vec<u64>,
        max_bytes: u64,
    ) -> Result<Self> {
        cells_of(&tile_shape)?;
        let (within, held) = (array.chunks_of_region(), BTreeMap::new());
        let (held_bytes, threads, old) = (0, 1, None);
        Ok(Self { array, fragment, tile_shape, within, held, held_bytes, threads, old, max_bytes })
    }

    /// Returns the tiles of an array that is there. Cells without a row stay as they are. Encoding tiles needs a Tokio runtime of several
    /// threads.
    pub(super) fn over(self, old: OldCells) -> Self {
        Self { old: Some(old), ..self }
    }

    /// Adds the encoder of the next variable, which is the attribute of this number. `keeps_validity` means that each tile has validity.
    ///
    /// # Errors
    /// `Unsupported` if a tile does not fit in memory.
    pub(super) fn add_field(
        &mut self,
        number: usize,
        encoder: CellEncoder,
        keeps_validity: bool,
    ) -> Result<()> {
        let cells = cells_of(&self.tile_shape)?;
        self.fragment.add_field(number, encoder, cells, keeps_validity);
        Ok(())
    }

    /// Whether cells that are there may change.
    pub(super) fn changes_cells(&self) -> bool {
        self.old.is_some()
    }

    fn counts(&self) -> Vec<u64> {
        self.within.iter().map(|range| range.end - range.start).collect()
    }

    /// Returns the number of tiles of a variable.
    fn count(&self) -> u64 {
        self.counts().iter().product()
    }

    /// Encodes a chunk, and returns the number of its tile with it.
    fn encoded(&self, chunk: &NewChunk, runtime: Option<&Handle>) -> Result<(u64, EncodedTile)> {
        let ranges = self.array.ranges_of(chunk)?;
        let from_start = chunk.coordinates.iter().zip(&self.within);
        let from_start = from_start.map(|(at, range)| {
            Some(at - range.start).filter(|_| range.contains(at)).ok_or_else(|| {
                Error::usage(format!("chunk {:?} is not one that is written", chunk.coordinates))
            })
        });
        let from_start = from_start.collect::<Result<Vec<_>>>()?;
        let name = &self.array.variables()[chunk.variable].name;
        let cells = self.cells(chunk, &ranges, runtime)?;
        let encoded = match cells {
            Ok(cells) => self.tile(chunk.variable, &chunk.coordinates, &cells)?,
            Err(bad) => Err(bad),
        };
        let encoded = encoded.map_err(|bad| self.array.bad_cell(name, &ranges, bad))?;
        Ok((ravel(&from_start, &self.counts()), encoded))
    }

    /// Returns the cells of a chunk, with old ones where no row changes them.
    fn cells(
        &self,
        chunk: &NewChunk,
        ranges: &[Range<u64>],
        runtime: Option<&Handle>,
    ) -> Result<Result<ArrayRef, BadCell>> {
        let Some((old, runtime)) = self.old.as_ref().zip(runtime) else {
            return Ok(Ok(ArrayRef::clone(&chunk.cells)));
        };
        let CellEncoder { cell, nulls, .. } = &self.fragment.fields[chunk.variable].encoder;
        let has_column = chunk.variable < old.columns;
        let rows = RowCells { cells: &chunk.cells, given: chunk.given.as_ref(), has_column };
        let name = &self.array.variables()[chunk.variable].name;
        old.merged(name, cell, nulls, ranges, &rows, runtime)
    }

    fn tile(
        &self,
        variable: usize,
        coordinates: &[u64],
        cells: &ArrayRef,
    ) -> Result<Result<EncodedTile, BadCell>> {
        let in_tile = |(axis, range): (usize, Range<u64>)| {
            let start = coordinates[axis] * self.tile_shape[axis];
            range.start - start..range.end - start
        };
        let within = self.array.ranges_in(coordinates).into_iter().enumerate().map(in_tile);
        let within: Vec<Range<u64>> = within.collect();
        self.fragment.fields[variable].encoder.tile(cells, &within, &self.tile_shape)
    }

    /// Takes chunks, which are encoded on so many threads.
    ///
    /// # Errors
    /// `Usage` for a chunk that is none of the fragment, or cannot be stored.
    pub(super) fn write_many(&mut self, chunks: &[NewChunk], threads: usize) -> Result<Vec<Write>> {
        self.threads = self.threads.max(threads);
        let mut writes = self.before(chunks)?;
        let encoded = self.encode_many(chunks, threads)?;
        for (chunk, (number, tile)) in chunks.iter().zip(encoded) {
            writes.extend(self.take(chunk, number, tile)?);
        }
        Ok(writes)
    }

    /// Appends the tiles of rows of chunks that lie before those of a variable: they do not come any more, and later ones need not be held.
    fn before(&mut self, chunks: &[NewChunk]) -> Result<Vec<Write>> {
        let mut writes = vec![];
        if !self.old.as_ref().is_some_and(|old| old.is_in_order) {
            return Ok(writes);
        }
        let of_row = self.counts()[1..].iter().product::<u64>();
        for variable in 0..self.array.variables().len() {
            let own = chunks.iter().filter(|chunk| chunk.variable == variable);
            let Some(row) = own.map(|chunk| chunk.coordinates[0]).min() else { continue };
            let end = row.saturating_sub(self.within[0].start).saturating_mul(of_row);
            while (self.fragment.fields[variable].tiles() as u64) < end.min(self.count()) {
                for tile in self.next_tiles(variable, end)? {
                    writes.extend(self.fragment.fields[variable].append(tile)?);
                }
            }
        }
        Ok(writes)
    }

    /// Returns the tiles that follow those that were appended, up to the one with the number `end`: one that came, or some that did not.
    fn next_tiles(&mut self, variable: usize, end: u64) -> Result<Vec<EncodedTile>> {
        let next = self.fragment.fields[variable].tiles() as u64;
        let numbers = next..end.min(next + self.threads as u64);
        let is_absent = |number: &u64| !self.held.contains_key(&(variable, *number));
        let absent: Vec<u64> = numbers.take_while(is_absent).collect();
        match absent.is_empty() {
            true => Ok(self.next_held(variable).into_iter().collect()),
            false => self.absent(variable, &absent),
        }
    }

    /// Appends a tile and those that follow it, or holds it until the tiles before it have come.
    fn take(&mut self, chunk: &NewChunk, number: u64, tile: EncodedTile) -> Result<Vec<Write>> {
        let NewChunk { variable, coordinates, .. } = chunk;
        let next = self.fragment.fields[*variable].tiles() as u64;
        let bytes = tile.held_bytes();
        if number < next || self.held.insert((*variable, number), tile).is_some() {
            let name = &self.array.variables()[*variable].name;
            let message = format!("chunk {coordinates:?} of \"{name}\" is written twice");
            return Err(Error::usage(message));
        }
        self.held_bytes += bytes;
        let mut writes = vec![];
        while let Some(tile) = self.next_held(*variable) {
            writes.extend(self.fragment.fields[*variable].append(tile)?);
        }
        match self.held_bytes > self.max_bytes {
            true => Err(Error::usage(format!(
                "more than {} bytes of chunks out of order, which are held in memory; raise 'max_bytes', or write Zarr",
                self.max_bytes
            ))),
            false => Ok(writes),
        }
    }

    /// Takes the tile that follows those that were appended, if it has come.
    fn next_held(&mut self, variable: usize) -> Option<EncodedTile> {
        let next = self.fragment.fields[variable].tiles() as u64;
        let tile = self.held.remove(&(variable, next))?;
        self.held_bytes -= tile.held_bytes();
        Some(tile)
    }

    /// Appends some of the tiles that are left, in some bytes; none if there are no more. Cells that did not come are NULL, or stay as they
    /// are in an array that is there.
    ///
    /// # Errors
    /// `Usage` if one did not come, and NULL cannot be stored.
    pub(super) fn rest(&mut self) -> Result<Vec<Write>> {
        /// The bytes after which the writes are returned.
        const BYTES: u64 = 64 << 20;
        let (mut writes, mut bytes) = (vec![], 0);
        for variable in 0..self.array.variables().len() {
            while bytes < BYTES {
                let tiles = self.next_tiles(variable, self.count())?;
                if tiles.is_empty() {
                    break;
                }
                for tile in tiles {
                    bytes += tile.held_bytes();
                    writes.extend(self.fragment.fields[variable].append(tile)?);
                }
            }
        }
        Ok(writes)
    }

    /// Appends all tiles that are left: see [`NewTiles::rest`].
    pub(super) fn complete(&mut self) -> Result<Vec<Write>> {
        let mut writes = vec![];
        loop {
            match self.rest()? {
                none if none.is_empty() => return Ok(writes),
                some => writes.extend(some),
            }
        }
    }

    /// Returns tiles that no row is in.
    fn absent(&self, variable: usize, numbers: &[u64]) -> Result<Vec<EncodedTile>> {
        let chunk = |number: &u64| {
            let from_start = unravel(*number, &self.counts());
            let coordinates =
                from_start.iter().zip(&self.within).map(|(at, range)| at + range.start);
            let coordinates: Vec<u64> = coordinates.collect();
            let cells = lens(&self.array.ranges_in(&coordinates)).iter().product::<u64>() as usize;
            let given = Some(NullBuffer::new_null(cells));
            let cells = new_null_array(&self.array.variables()[variable].data_type, cells);
            NewChunk { variable, coordinates, cells, given }
        };
        let chunks: Vec<NewChunk> = numbers.iter().map(chunk).collect();
        let tiles = self.encode_many(&chunks, self.threads)?;
        Ok(tiles.into_iter().map(|(_, tile)| tile).collect())
    }

    fn encode_many(&self, chunks: &[NewChunk], threads: usize) -> Result<Vec<(u64, EncodedTile)>> {
        // Threads that encode wait for cells that are read.
        let runtime = self.old.as_ref().map(|_| Handle::current());
        in_threads(chunks, threads, |chunk| self.encoded(chunk, runtime.as_ref()))
    }

    /// Returns the box of the fragment, whose first index along each axis has these coordinates.
    pub(super) fn covered(&self, dimensions: &[DimensionSchema], low: &[i128]) -> FragmentBox {
        let range = |(range, low): (&Range<u64>, &i128)| {
            (low + i128::from(range.start), low + i128::from(range.end) - 1)
        };
        FragmentBox {
            datatype: dimensions[0].datatype,
            ranges: self.array.region().iter().zip(low).map(range).collect(),
            tiles: self.count(),
            tile_cells: self.tile_shape.iter().product(),
        }
    }

    /// Returns the bytes that it takes to put old and new cells of a tile together; 0 without old cells.
    pub(super) fn merge_memory(&self) -> u64 {
        /// A number of a cell, and one of those that change; cells as they come, as they were, both, and the chosen ones.
        const OF_CELL: u64 = 2 * size_of::<u64>() as u64 + 5 * 16;
        let cells = self.tile_shape.iter().product::<u64>();
        self.old.as_ref().map_or(0, |_| cells.saturating_mul(OF_CELL))
    }

    /// Returns the bytes that the tiles take.
    pub(super) fn memory(&self) -> u64 {
        /// The bytes of a tile in the metadata of the fragment: offsets and statistics.
        const OF_TILE: u64 = 256;
        let tiles = self.count().saturating_mul(self.array.variables().len() as u64);
        self.held_bytes.saturating_add(tiles.saturating_mul(OF_TILE))
    }
}

impl EncodedTile {
    /// Returns the bytes that the tile takes.
    fn held_bytes(&self) -> u64 {
        let text = self.text.as_ref().map_or(0, |text| text.stored.len());
        let validity = self.validity.as_ref().map_or(0, Vec::len);
        (self.values.len() + text + validity + size_of::<Self>()) as u64
    }
}
