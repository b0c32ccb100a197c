//! Lists the chunks of arrays, some at a time: their places by locating them, as a query does, and their statistics.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};

use super::chunk_facts::{KnownChunk, StoredFacts};
use super::columns::Needs;
use super::object_sizes::ObjectSizes;
use crate::array::{FoundChunks, GridArray, SparseArray, TileNumber, decimal};
use crate::error::{Error, Result};
use crate::format::{ElementType, StoredChunk, ZoneBound, Zones};
use crate::grid::{ChunkTask, Selection};
use crate::source::array_format::{ArrayGroup, ListedValue};
use crate::source::opened_array::OpenedArray;

/// The chunks that are located together.
const AT_ONCE: u64 = 1024;

/// The most chunks of an array to list. An array may declare any number.
const MOST_CHUNKS: u64 = 1 << 24;

/// The most chunks of an array in an object store whose lengths are listed. A folder may hold all of them.
const MOST_OBJECTS: u64 = 1 << 20;

/// Lists the chunks of the arrays `only`, or of all arrays of a group. One array is open at a time.
pub(super) fn chunk_list(
    group: Arc<dyn ArrayGroup>,
    only: Option<Vec<String>>,
    needs: Needs,
) -> BoxStream<'static, Result<Vec<KnownChunk>>> {
    let leaves_out = only.is_none() && group.names().len() > 1;
    let names: VecDeque<String> = only.unwrap_or_else(|| group.names()).into();
    let state = State { group, names, leaves_out, array: None, needs };
    stream::try_unfold(state, |mut state| async move {
        let chunks = state.next().await?;
        Ok(chunks.map(|chunks| (chunks, state)))
    })
    .boxed()
}

struct State {
    group: Arc<dyn ArrayGroup>,
    /// The arrays that are not open yet.
    names: VecDeque<String>,
    /// Whether arrays that cannot be opened are left out, because the query names none.
    leaves_out: bool,
    array: Option<Listed>,
    needs: Needs,
}

/// The array whose chunks are listed.
enum Listed {
    Grid(Box<ListedGrid>),
    Sparse(ListedTiles),
}

impl State {
    /// Returns the next chunks; `None` after the last.
    async fn next(&mut self) -> Result<Option<Vec<KnownChunk>>> {
        loop {
            let next = match &mut self.array {
                Some(Listed::Grid(grid)) => grid.next(self.needs).await?,
                Some(Listed::Sparse(tiles)) => tiles.next(self.needs).await?,
                None => None,
            };
            if next.is_some() {
                return Ok(next);
            }
            let Some(name) = self.names.pop_front() else { return Ok(None) };
            let opened = match self.group.array(&name).await {
                Err(error) if self.leaves_out => {
                    log::warn!("\"{name}\" is left out: {error}");
                    continue;
                }
                opened => opened?,
            };
            self.array = Some(match opened {
                OpenedArray::Grid(array) => {
                    let values = self.group.listed_values(&name, &array);
                    let grid = ListedGrid::new(&name, array, values, self.needs).await?;
                    Listed::Grid(Box::new(grid))
                }
                OpenedArray::Sparse(array) => Listed::Sparse(ListedTiles::new(&name, array)),
            });
        }
    }
}

/// The chunks of a grid: all chunks of its first variable, then those of the next.
struct ListedGrid {
    dataset: Arc<str>,
    array: GridArray,
    values: Vec<ListedValue>,
    /// The number of the variable in `values`, and of the next chunk.
    at: (usize, u64),
    zones: Vec<Option<Arc<dyn Zones>>>,
    sizes: ObjectSizes,
    /// Whether chunks of the variable were found. If none of the first ones was, the reason is looked for.
    found: FoundChunks,
}

impl ListedGrid {
    async fn new(
        name: &str,
        array: GridArray,
        values: Vec<ListedValue>,
        needs: Needs,
    ) -> Result<Self> {
        let mut zones = vec![];
        for value in &values {
            zones.push(match needs.statistics && array.grid().is_numbered() {
                true => {
                    array.zones(value.number, &Selection::all(array.grid().shape()), u64::MAX).await
                }
                false => None,
            });
        }
        let (dataset, sizes) = (name.into(), ObjectSizes::default());
        Ok(Self { dataset, array, values, at: (0, 0), zones, sizes, found: FoundChunks::default() })
    }

    async fn next(&mut self, needs: Needs) -> Result<Option<Vec<KnownChunk>>> {
        let count = self.array.grid().chunks();
        if self.at.1 >= count {
            self.at = (self.at.0 + 1, 0);
        }
        let (number, first) = self.at;
        if count == 0 || number >= self.values.len() {
            return Ok(None);
        }
        self.check_count(first)?;
        let end = first.saturating_add(AT_ONCE).min(count);
        self.at.1 = end;
        let stored = self.stored(first..end, number, needs).await?;
        let chunks = (first..end).zip(stored);
        Ok(Some(chunks.map(|(chunk, stored)| self.chunk(chunk, number, stored)).collect()))
    }

    /// Fails if there are too many chunks to list them all. Chunks before that are rows.
    fn check_count(&self, first: u64) -> Result<()> {
        let grid = self.array.grid();
        if first < MOST_CHUNKS && grid.is_numbered() {
            return Ok(());
        }
        let message = format!(
            "\"{}\" has {} chunks, and array_chunks lists at most {MOST_CHUNKS} of an array; add a LIMIT",
            self.dataset,
            grid.chunks()
        );
        Err(self.array.objects().named(Error::unsupported(message)))
    }

    /// Locates chunks, and looks up the lengths of their objects. Returns `None` for each chunk if nothing is needed
    /// of that, or if it takes the cells themselves.
    async fn stored(
        &mut self,
        chunks: Range<u64>,
        number: usize,
        needs: Needs,
    ) -> Result<Vec<Option<StoredFacts>>> {
        let value = &self.values[number];
        if !needs.stored || !value.is_located {
            return Ok(chunks.map(|_| None).collect());
        }
        let is_first = chunks.start == 0;
        let tasks: Vec<ChunkTask> =
            chunks.map(|chunk| ChunkTask::whole(self.array.grid(), chunk)).collect();
        let located = self.array.locate(&tasks, &[value.number]).await?;
        let located: Vec<StoredChunk> = located.into_iter().flatten().collect();
        let objects = self.array.objects();
        let is_whole =
            |chunk: &StoredChunk| chunk.payloads().any(|it| it.at.range.most().is_none());
        let count = self.array.grid().chunks();
        if objects.is_remote() && count > MOST_OBJECTS && located.iter().any(is_whole) {
            let message = format!(
                "\"{}\" has {count} chunks, and array_chunks lists the objects of at most {MOST_OBJECTS} in an object \
                 store; select only dataset, variable, chunk, start and shape",
                self.dataset
            );
            return Err(objects.named(Error::unsupported(message)));
        }
        self.sizes.list(objects, located.iter()).await?;
        let facts = located.iter().map(|it| {
            let facts = StoredFacts::new(it, objects, &self.sizes);
            let raw_bytes = facts.raw_bytes.and_then(|bytes| bytes.checked_mul(value.sharing));
            StoredFacts { raw_bytes, ..facts }
        });
        let facts: Vec<StoredFacts> = facts.collect();
        if is_first {
            // Chunks under other names would look as if they were absent.
            for (chunk, facts) in located.iter().zip(&facts) {
                let chunk = std::slice::from_ref(chunk);
                self.found.note_requested(chunk);
                if facts.pieces != Some(0) {
                    self.found.note_found(chunk);
                }
            }
            self.found.explain(&self.array, &[value.number]).await?;
        }
        Ok(facts.into_iter().map(Some).collect())
    }

    fn chunk(&self, chunk: u64, number: usize, stored: Option<StoredFacts>) -> KnownChunk {
        let (grid, value) = (self.array.grid(), &self.values[number]);
        let coordinates = grid.chunk_coordinates(chunk);
        let start = coordinates.iter().enumerate();
        let start = start.map(|(axis, &at)| grid.axis_range(axis, at).start).collect();
        let zone = self.zones[number].as_ref().and_then(|zones| zones.zone(chunk));
        let (null_count, bounds) = zone.map(|zone| (zone.null_count, zone.bounds)).unzip();
        let (min, max) = bounds.flatten().unzip();
        let element = element(&self.array, value.number);
        let text = |bound: Option<ZoneBound>| decimal(element?, &bound?);
        KnownChunk {
            dataset: Arc::clone(&self.dataset),
            variable: Arc::clone(&value.name),
            start: Some(start),
            shape: grid.extents(&coordinates),
            chunk: coordinates,
            stored,
            null_count,
            min: text(min),
            max: text(max),
        }
    }
}

/// Returns the type of stored elements; dates and times are counts.
fn element(array: &GridArray, value: usize) -> Option<ElementType> {
    let column = array.value(value);
    let temporal = || column.is_as_stored().then_some(ElementType::I64);
    column.as_number().map_or_else(temporal, |number| Some(number.element()))
}

/// The tiles of a sparse array: of each tile, a row per column.
struct ListedTiles {
    dataset: Arc<str>,
    array: SparseArray,
    names: Vec<Arc<str>>,
    next: TileNumber,
    listed: u64,
}

impl ListedTiles {
    fn new(name: &str, array: SparseArray) -> Self {
        let names = array.schema().fields().iter().map(|it| it.name().as_str().into()).collect();
        let next = TileNumber { fragment: 0, tile: 0 };
        Self { dataset: name.into(), array, names, next, listed: 0 }
    }

    async fn next(&mut self, needs: Needs) -> Result<Option<Vec<KnownChunk>>> {
        let mut rows = vec![];
        while (rows.len() as u64) < AT_ONCE {
            let Some(fragment) = self.array.source().fragments().get(self.next.fragment) else {
                break;
            };
            if self.next.tile >= fragment.tiles {
                self.next = TileNumber { fragment: self.next.fragment + 1, tile: 0 };
                continue;
            }
            if self.listed >= MOST_CHUNKS {
                let message = format!(
                    "\"{}\" has more than {MOST_CHUNKS} tiles, which array_chunks does not list; add a LIMIT",
                    self.dataset
                );
                return Err(self.array.objects().named(Error::unsupported(message)));
            }
            let cells = fragment.cells_of(self.next.tile);
            rows.extend(self.rows(cells, needs).await?);
            self.next.tile += 1;
            self.listed += 1;
        }
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// Returns a row per column of the next tile.
    async fn rows(&self, cells: u64, needs: Needs) -> Result<Vec<KnownChunk>> {
        let columns: Vec<usize> = (0..self.names.len()).collect();
        let stored = match needs.stored {
            true => {
                let located = self.array.source().locate(self.next, &columns).await?;
                if located.len() != columns.len() {
                    let message = format!("{} places of {} columns", located.len(), columns.len());
                    return Err(Error::internal(message));
                }
                let (objects, sizes) = (self.array.objects(), ObjectSizes::default());
                located.iter().map(|it| Some(StoredFacts::new(it, objects, &sizes))).collect()
            }
            false => vec![None; columns.len()],
        };
        let rows = self.names.iter().zip(stored).map(|(name, stored)| KnownChunk {
            dataset: Arc::clone(&self.dataset),
            variable: Arc::clone(name),
            chunk: vec![self.next.fragment as u64, self.next.tile],
            start: None,
            shape: vec![cells],
            stored,
            null_count: None,
            min: None,
            max: None,
        });
        Ok(rows.collect())
    }
}
