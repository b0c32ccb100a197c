//! [`Merge`]: finds the newest of several cells with the same coordinates.
//!
//! Every fragment has its cells in the global order of the array. So a merge goes through all fragments side by
//! side, window by window. A window ends at the least of the last keys of the open tiles. Cells of the same
//! coordinates are in the same window:
//!
//! ```text
//!   fragment 0   A  C  D │   G  ┊ J       the open tiles end at D, F and K
//!   fragment 1      B  D │ F              so the window ends at D: of the two D the newer one stays
//!   fragment 2         C │ F    ┊ K       then fragment 0 opens its next tile
//!                        ▲ limit
//! ```
//!
//! A merge returns no rows in this order. It only clears the bits of cells that newer ones replace, tile by
//! tile, and returns each tile when all of its cells are decided. It holds the current tile of each fragment
//! that it has begun: a tile is opened when a window may reach the least key that it can have.
//!
//! So a merge reads only coordinates and times, and the output needs no copy per row. A merge that interleaves rows would
//! copy every column row by row, also for the many cells without a duplicate. A hash table of coordinates would hold all
//! coordinates of a group. A window's table of bits only finds the cells to compare ([`Window`]).
//!
//! On the Hilbert curve there is no least key of a tile, and a cursor opens its next tile when it leaves the last.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;

use super::merged_tile::MergedTile;
use super::open_tile::OpenTile;
use super::plan::{MergeTask, TileTask};
use super::tile_reader::{TileReader, out_of_order};
use crate::array::{CellKeys, SparseArray};
use crate::error::Error;
use crate::exec::yield_budget::YieldBudget;
use crate::merge::{BYTES_PER_CELL, Decisions, RunCell, SortedRun, Window};

/// Windows of more cells are divided, so that the memory for comparing them is bounded.
const MAX_CELLS: usize = 1 << 18;

/// The merge of the tiles of one task.
pub(super) struct Merge {
    reader: Arc<TileReader>,
    task: MergeTask,
    has_texts: bool,
    cursors: Vec<Cursor>,
    /// The cursors that wait for their next tile, the one with the least key last.
    waiting: Vec<usize>,
    /// The cursors with an open tile.
    open: Vec<usize>,
    /// The cursor whose open tile has the least last key.
    ends_first: Option<usize>,
    /// The tiles that are held; a place without one is used again.
    tiles: Vec<Option<MergedTile>>,
    /// The last key of the windows so far.
    reached: Option<CellKeys>,
    /// The newest cell of the last key so far. A fragment may repeat the key in its next tile.
    last: Option<CellPlace>,
    /// The places of tiles that their cursors have left, and which may hold `last`.
    left: Vec<usize>,
    /// Tiles whose cells are all decided.
    decided: VecDeque<OpenTile>,
    /// Accounts for the memory of a window.
    memory: MemoryReservation,
    yields: YieldBudget,
}

/// The way through the tiles of one fragment.
struct Cursor {
    /// The tiles that have not been opened.
    tasks: VecDeque<TileTask>,
    /// A key per tile of the fragment that is not greater than those of its cells; `None` if not known.
    least: Option<Arc<CellKeys>>,
    /// The next cell, if a tile is open.
    at: Option<CellPlace>,
}

/// A cell: the place of its tile, and its position among the selected cells of the tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CellPlace {
    tile: usize,
    position: usize,
}

/// The cells of an open tile that belong to a window; there may be none.
#[derive(Debug, Clone, Copy)]
struct TilePart {
    tile: usize,
    /// The positions of the first cell, and of the one after the last.
    start: usize,
    end: usize,
}

/// The end of a window.
struct Limit {
    key: CellKeys,
    /// Whether cells of this key belong to the window.
    is_inclusive: bool,
}

impl Merge {
    pub(super) fn new(reader: Arc<TileReader>, task: MergeTask) -> Result<Self> {
        let source = reader.array.source();
        let mut cursors: Vec<Cursor> = vec![];
        // Writers do not agree on the order of texts that are not ASCII. So tiles with texts are sorted one by
        // one, and each is walked through on its own.
        let has_texts = has_texts(&reader.array);
        let is_one_run =
            |a: &TileTask, b: &TileTask| !has_texts && a.tile.fragment == b.tile.fragment;
        for tiles in task.tiles.chunk_by(is_one_run) {
            let least = source.least_keys(tiles[0].tile.fragment)?.map(Arc::new);
            cursors.push(Cursor { tasks: tiles.iter().copied().collect(), least, at: None });
        }
        let memory = reader.new_reservation();
        let mut merge = Self {
            reader,
            task,
            has_texts,
            waiting: vec![],
            open: vec![],
            ends_first: None,
            tiles: vec![],
            reached: None,
            last: None,
            left: vec![],
            decided: VecDeque::new(),
            memory,
            yields: YieldBudget::default(),
            cursors,
        };
        (0..merge.cursors.len()).for_each(|cursor| merge.wait(cursor));
        Ok(merge)
    }

    /// Returns the next tile whose cells are all decided; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<OpenTile>> {
        while self.decided.is_empty() {
            while let Some(cursor) = self.next_to_open()? {
                self.waiting.pop();
                self.open(cursor).await?;
            }
            if self.open.is_empty() {
                self.last = None;
                self.release();
                break;
            }
            self.advance()?;
        }
        Ok(self.decided.pop_front())
    }

    /// Returns the waiting cursor with the least key, if the next window may reach its tile.
    fn next_to_open(&self) -> Result<Option<usize>> {
        let Some(&cursor) = self.waiting.last() else { return Ok(None) };
        let (Some((keys, at)), Some(first)) = (self.least_key(cursor), self.ends_first) else {
            return Ok(Some(cursor));
        };
        let (end, end_at) = self.last_key(first)?;
        Ok(keys.compare(at, end, end_at).is_le().then_some(cursor))
    }

    /// Returns the last key of the open tile of a cursor.
    fn last_key(&self, cursor: usize) -> crate::Result<(&CellKeys, usize)> {
        let tile = self.tile(self.place(cursor)?.tile)?;
        Ok((&tile.keys, tile.len() - 1))
    }

    /// Returns that one of some cursors whose open tile has the least last key.
    fn first_to_end(&self, cursors: impl Iterator<Item = usize>) -> Result<Option<usize>> {
        let mut first: Option<usize> = None;
        for cursor in cursors {
            let is_first = match first {
                Some(first) => {
                    let ((keys, at), (least, least_at)) =
                        (self.last_key(cursor)?, self.last_key(first)?);
                    keys.compare(at, least, least_at).is_lt()
                }
                None => true,
            };
            first = if is_first { Some(cursor) } else { first };
        }
        Ok(first)
    }

    /// Returns the end of the next window; `None` if all cells are open.
    fn limit(&self) -> Result<Option<Limit>> {
        // A tile after which its cursor ends limits nothing.
        let has_more = |cursor: &usize| !self.cursors[*cursor].tasks.is_empty();
        let first = self.first_to_end(self.open.iter().copied().filter(has_more))?;
        let end = first.map(|first| self.last_key(first)).transpose()?;
        let least = self.waiting.last().and_then(|&cursor| self.least_key(cursor));
        Ok(match (end, least) {
            (Some(end), Some(least)) if least.0.compare(least.1, end.0, end.1).is_le() => {
                Some(Limit::new(least, false))
            }
            (Some(end), _) => Some(Limit::new(end, true)),
            (None, Some(least)) => Some(Limit::new(least, false)),
            (None, None) => None,
        })
    }

    /// Returns the cells up to a limit, one part per open cursor.
    fn parts(&self, limit: Option<&Limit>) -> Result<Vec<TilePart>> {
        let part = |&cursor: &usize| {
            let CellPlace { tile, position: start } = self.place(cursor)?;
            let keys = self.tile(tile)?;
            let end = match limit {
                Some(limit) => keys.end_of(start, &limit.key, limit.is_inclusive),
                None => keys.len(),
            };
            Ok(TilePart { tile, start, end })
        };
        self.open.iter().map(part).collect()
    }

    /// Decides the cells of the next window.
    fn advance(&mut self) -> Result<()> {
        let reader = Arc::clone(&self.reader);
        let _timer = reader.metrics.time_merge.timer();
        let mut limit = self.limit()?;
        let mut parts = self.parts(limit.as_ref())?;
        while cells_of(&parts) > MAX_CELLS
            && let Some(longest) = parts.iter().max_by_key(|part| part.end - part.start)
        {
            let middle = longest.start + (longest.end - longest.start) / 2;
            let less = Limit::new((&self.tile(longest.tile)?.keys, middle), true);
            let fewer = self.parts(Some(&less))?;
            if cells_of(&fewer) == cells_of(&parts) {
                break; // all cells have one key
            }
            (limit, parts) = (Some(less), fewer);
        }
        self.decide(&parts)?;
        self.reached = limit.map(|limit| limit.key);
        for (cursor, part) in std::mem::take(&mut self.open).into_iter().zip(parts) {
            let is_left = part.end == self.tile(part.tile)?.len();
            let at = CellPlace { tile: part.tile, position: part.end };
            self.cursors[cursor].at = (!is_left).then_some(at);
            if is_left {
                self.left.push(part.tile);
                self.wait(cursor);
            } else {
                self.open.push(cursor);
            }
        }
        self.ends_first = self.first_to_end(self.open.iter().copied())?;
        self.release();
        Ok(())
    }

    /// Finds the newest cells among those of a window.
    fn decide(&mut self, parts: &[TilePart]) -> Result<()> {
        let mut parts: Vec<TilePart> =
            parts.iter().filter(|part| part.start < part.end).copied().collect();
        if let Some(last) = self.last
            && self.is_repeated(last, &parts)?
        {
            parts.push(TilePart { tile: last.tile, start: last.position, end: last.position + 1 });
        }
        if let [TilePart { tile, end, .. }] = parts[..]
            && !self.tile(tile)?.repeats
        {
            self.last = Some(CellPlace { tile, position: end - 1 });
            return Ok(());
        }
        self.memory.try_resize(cells_of(&parts).saturating_mul(BYTES_PER_CELL))?;
        let fragments = self.reader.array.source().fragments();
        let run = |part: &TilePart| -> crate::Result<SortedRun<'_>> {
            let tile = self.tile(part.tile)?;
            let time = fragments[tile.open.task.tile.fragment].time;
            Ok(tile.run(part.start, part.end, time))
        };
        let window = Window::new(parts.iter().map(run).collect::<crate::Result<_>>()?);
        let Decisions { replaced, last } = window.decide();
        let of = |cell: RunCell| CellPlace {
            tile: parts[cell.run as usize].tile,
            position: cell.position as usize,
        };
        self.last = last.map(of);
        for CellPlace { tile, position } in replaced.into_iter().map(of) {
            if let Some(tile) = self.tiles.get_mut(tile).and_then(Option::as_mut) {
                tile.replace(position);
            }
        }
        Ok(())
    }

    /// Whether a window has cells with the key of `last`. That cell is then compared again.
    fn is_repeated(&self, last: CellPlace, parts: &[TilePart]) -> Result<bool> {
        let keys = &self.tile(last.tile)?.keys;
        for part in parts {
            if self.tile(part.tile)?.keys.compare(part.start, keys, last.position).is_eq() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Opens the next tile of a cursor that has a selected cell, and puts the cursor there.
    async fn open(&mut self, cursor: usize) -> Result<()> {
        let Some(task) = self.cursors[cursor].tasks.pop_front() else { return Ok(()) };
        let is_needed = self.reader.pruner.may_hold(&[task.tile], true)?;
        let opened = match is_needed == [true] {
            true => self.reader.open_for_merge(task, self.task.range.as_ref()).await?,
            false => None,
        };
        let Some((open, keys)) = opened else {
            self.wait(cursor);
            return Ok(());
        };
        let tile = MergedTile::new(&self.reader, open, keys, self.has_texts)?;
        self.yields.spend(tile.len() as u64).await;
        if let Some(reached) = &self.reached
            && tile.keys.compare(0, reached, 0).is_lt()
        {
            return Err(out_of_order(&self.reader, task));
        }
        let place = self.tiles.iter().position(Option::is_none).unwrap_or(self.tiles.len());
        self.tiles.resize_with(self.tiles.len().max(place + 1), || None);
        self.tiles[place] = Some(tile);
        self.cursors[cursor].at = Some(CellPlace { tile: place, position: 0 });
        self.open.push(cursor);
        self.ends_first = self.first_to_end(self.ends_first.into_iter().chain([cursor]))?;
        Ok(())
    }

    /// Puts a cursor among those that wait for their next tile, if it has one.
    fn wait(&mut self, cursor: usize) {
        if self.cursors[cursor].tasks.is_empty() {
            return;
        }
        let key = self.least_key(cursor);
        let comes_later = |&other: &usize| match (key, self.least_key(other)) {
            (None, _) => true,
            (_, None) => false,
            (Some((keys, at)), Some((others, other_at))) => {
                others.compare(other_at, keys, at) == Ordering::Greater
            }
        };
        let place = self.waiting.partition_point(comes_later);
        self.waiting.insert(place, cursor);
    }

    /// Returns the least key that the next tile of a cursor can have; `None` if nothing is known of it.
    fn least_key(&self, cursor: usize) -> Option<(&CellKeys, usize)> {
        let Cursor { tasks, least, .. } = &self.cursors[cursor];
        Some((least.as_deref()?, tasks.front()?.tile.tile as usize))
    }

    fn place(&self, cursor: usize) -> crate::Result<CellPlace> {
        self.cursors[cursor].at.ok_or_else(|| Error::internal("a cursor without an open tile"))
    }

    /// Returns the tile at a place.
    fn tile(&self, place: usize) -> crate::Result<&MergedTile> {
        let tile = self.tiles.get(place).and_then(Option::as_ref);
        tile.ok_or_else(|| Error::internal("a tile that was given back"))
    }

    /// Moves tiles that their cursors have left, and whose cells are all decided, to `decided`.
    fn release(&mut self) {
        let holds_last = |tile: &usize| self.last.is_some_and(|last| last.tile == *tile);
        let (kept, released): (Vec<usize>, Vec<usize>) =
            std::mem::take(&mut self.left).into_iter().partition(holds_last);
        self.left = kept;
        for tile in released.into_iter().filter_map(|tile| self.tiles.get_mut(tile)?.take()) {
            let (open, removed) = tile.finish();
            self.reader.metrics.cells_duplicate.add(removed);
            self.decided.push_back(open);
        }
    }
}

impl Limit {
    /// Makes a limit of one of some keys.
    fn new((keys, at): (&CellKeys, usize), is_inclusive: bool) -> Self {
        Self { key: keys.take(&std::iter::once(at)), is_inclusive }
    }
}

/// Returns the number of cells of a window.
fn cells_of(parts: &[TilePart]) -> usize {
    parts.iter().map(|part| part.end - part.start).sum()
}

/// Whether a dimension has texts.
fn has_texts(array: &SparseArray) -> bool {
    let mut fields = array.schema().fields().iter().take(array.rank());
    fields.any(|field| matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView))
}
