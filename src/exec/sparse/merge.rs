//! [`Merge`]: finds the newest of several cells with the same coordinates.
//!
//! Every fragment has its cells in the global order of the array. So cells of the same coordinates meet if all
//! fragments are walked through side by side, always the one with the least key:
//!
//! ```text
//!   fragment 0   A  C  D     G         cursors at   0:A 1:B 2:C
//!   fragment 1      B  D  F            A and B have no equals; of C the newer one stays, and so on
//!   fragment 2         C     F
//! ```
//!
//! A merge returns no rows in this order. It only clears the bits of cells that newer ones replace, tile by
//! tile, and returns each tile when all of its cells are decided. It holds the current tile of each fragment
//! that it has begun: a tile is opened when the walk comes to the least key that it can have.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::BooleanBufferBuilder;
use arrow::datatypes::DataType;
use datafusion::error::Result;

use super::open_tile::OpenTile;
use super::plan::{MergeTask, TileTask};
use super::tile_reader::{TileReader, nan_coordinate, out_of_order};
use crate::array::{CellKeys, SparseArray};
use crate::error::Error;
use crate::exec::yield_budget::YieldBudget;

/// The merge of the tiles of one task.
pub(super) struct Merge {
    reader: Arc<TileReader>,
    task: MergeTask,
    cursors: Vec<Cursor>,
    /// The cursors that are not at their end, the one with the greatest key first.
    order: Vec<usize>,
    /// The open tiles; a place without one is used again.
    tiles: Vec<Option<MergedTile>>,
    /// The newest cell so far of the current coordinates.
    newest: Option<CellPlace>,
    /// Tiles that their cursor has left, and which may hold `newest`.
    left: Vec<usize>,
    /// Tiles whose cells are all decided.
    decided: VecDeque<OpenTile>,
    yields: YieldBudget,
}

/// The way through the tiles of one fragment.
struct Cursor {
    /// The tiles that have not been opened.
    tasks: VecDeque<TileTask>,
    /// A key per tile of the fragment that is not greater than those of its cells; `None` if not known.
    least: Option<Arc<CellKeys>>,
    /// The current cell; `None` before the next tile is opened.
    at: Option<CellPlace>,
}

/// A cell: the place of its open tile, and its position among the selected cells of the tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CellPlace {
    tile: usize,
    position: usize,
}

/// An open tile.
struct MergedTile {
    open: OpenTile,
    keys: CellKeys,
    /// The selected cells; `None` for all.
    selected: Option<Vec<u32>>,
    /// The cells that newer ones replace.
    replaced: Vec<usize>,
}

impl MergedTile {
    /// Returns the number of selected cells.
    fn len(&self) -> usize {
        self.selected.as_ref().map_or(self.open.rows, Vec::len)
    }

    /// Returns the selected cell at a position.
    fn cell(&self, position: usize) -> usize {
        self.selected.as_ref().map_or(position, |selected| selected[position] as usize)
    }

    /// Whether the selected cells are in the global order.
    fn is_sorted(&self) -> bool {
        let cells = (0..self.len()).map(|position| self.cell(position));
        cells.is_sorted_by(|a, b| self.keys.compare(*a, &self.keys, *b).is_le())
    }

    /// Sorts the selected cells. Cells of the same coordinates keep their order.
    fn sort(&mut self) {
        let mut cells: Vec<u32> =
            (0..self.len()).map(|position| self.cell(position) as u32).collect();
        cells.sort_by(|a, b| self.keys.compare(*a as usize, &self.keys, *b as usize));
        self.selected = Some(cells);
    }
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
        let mut merge = Self {
            reader,
            task,
            order: vec![],
            cursors,
            tiles: vec![],
            newest: None,
            left: vec![],
            decided: VecDeque::new(),
            yields: YieldBudget::default(),
        };
        (0..merge.cursors.len()).for_each(|cursor| merge.insert(cursor));
        Ok(merge)
    }

    /// Returns the next tile whose cells are all decided; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<OpenTile>> {
        loop {
            if let Some(tile) = self.decided.pop_front() {
                return Ok(Some(tile));
            }
            let Some(cursor) = self.order.pop() else {
                self.newest = None;
                self.release();
                return Ok(self.decided.pop_front());
            };
            match self.cursors[cursor].at {
                None => self.open(cursor).await?,
                Some(at) => self.walk_on(cursor, at)?,
            }
        }
    }

    /// Walks with one cursor after the other, from `at`, until a tile is decided or has to be opened.
    fn walk_on(&mut self, mut cursor: usize, mut at: CellPlace) -> Result<()> {
        let reader = Arc::clone(&self.reader);
        let _timer = reader.metrics.time_merge.timer();
        loop {
            self.walk(cursor, at)?;
            let next = self.order.last().map(|&next| (next, self.cursors[next].at));
            match next {
                Some((next, Some(place))) if self.decided.is_empty() => {
                    self.order.pop();
                    (cursor, at) = (next, place);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Opens the next tile of a cursor that has a selected cell, and puts the cursor there.
    async fn open(&mut self, cursor: usize) -> Result<()> {
        let Some(task) = self.cursors[cursor].tasks.pop_front() else { return Ok(()) };
        let is_needed = self.reader.pruner.may_hold(&[task.tile], true)?;
        if is_needed == [true]
            && let Some((open, keys)) =
                self.reader.open_for_merge(task, self.task.range.as_ref()).await?
        {
            let selected = open
                .selected
                .as_ref()
                .map(|selected| selected.set_indices().map(|at| at as u32).collect::<Vec<u32>>());
            let mut tile = MergedTile { open, keys, selected, replaced: vec![] };
            self.yields.spend(tile.len() as u64).await;
            if !tile.is_sorted() {
                match has_texts(&self.reader.array) {
                    true => tile.sort(),
                    false if tile.open.holds_nan(self.reader.array.rank()) => {
                        return Err(nan_coordinate(&self.reader, tile.open.task));
                    }
                    false => return Err(out_of_order(&self.reader, tile.open.task)),
                }
            }
            let place = self.tiles.iter().position(Option::is_none).unwrap_or(self.tiles.len());
            self.tiles.resize_with(self.tiles.len().max(place + 1), || None);
            self.tiles[place] = Some(tile);
            self.cursors[cursor].at = Some(CellPlace { tile: place, position: 0 });
        }
        if self.cursors[cursor].at.is_some() || !self.cursors[cursor].tasks.is_empty() {
            self.insert(cursor);
        }
        Ok(())
    }

    /// Walks with the cursor of the least key, until another cursor has a lesser one or the tile ends.
    fn walk(&mut self, cursor: usize, mut at: CellPlace) -> Result<()> {
        let tile = self.tile(at)?;
        let (len, end) = (tile.len(), self.end_of_run(tile, at.position));
        let task = tile.open.task.tile;
        if at.position < end {
            // Only a fragment with times can hold a cell twice, so the others of a run need no comparison.
            let repeats = self.reader.array.source().fragments()[task.fragment].has_times;
            let compared = if repeats { end } else { at.position + 1 };
            for position in at.position..compared {
                self.decide(CellPlace { position, ..at })?;
            }
            if compared < end {
                self.replace_newest(CellPlace { position: end - 1, ..at });
            }
            at.position = end;
        }
        let is_left = at.position == len;
        self.cursors[cursor].at = if is_left { None } else { Some(at) };
        if is_left {
            self.left.push(at.tile);
            self.release();
        }
        if !is_left || !self.cursors[cursor].tasks.is_empty() {
            self.insert(cursor);
        }
        Ok(())
    }

    /// Returns the position of the first cell of a tile, from `start` on, that must wait for another cursor:
    /// its key is greater, or the other's next tile has not been opened and could hold the same coordinates.
    fn end_of_run(&self, tile: &MergedTile, start: usize) -> usize {
        let len = tile.len();
        let Some(&next) = self.order.last() else { return len };
        let Some((keys, key)) = self.head_key(next) else { return start };
        let most = if self.cursors[next].at.is_some() { Ordering::Equal } else { Ordering::Less };
        let comes_first =
            |position: usize| tile.keys.compare(tile.cell(position), keys, key) <= most;
        // Tiles that overlap in few cells end before the next one begins.
        if comes_first(len - 1) {
            return len;
        }
        (start..len).find(|&position| !comes_first(position)).unwrap_or(len)
    }

    /// Compares a cell with the newest one so far. If they have the same coordinates, one replaces the other.
    fn decide(&mut self, at: CellPlace) -> Result<()> {
        let order = self.newest.map_or(Ordering::Greater, |newest| self.compare(at, newest));
        match (order, self.newest) {
            (Ordering::Equal, Some(newest)) => {
                let is_newer = self.is_newer(at, newest)?;
                let (stays, goes) = if is_newer { (at, newest) } else { (newest, at) };
                let cell = self.tile(goes)?.cell(goes.position);
                if let Some(tile) = self.tiles.get_mut(goes.tile).and_then(Option::as_mut) {
                    tile.replaced.push(cell);
                }
                self.newest = Some(stays);
            }
            (Ordering::Less, _) => {
                return Err(out_of_order(&self.reader, self.tile(at)?.open.task));
            }
            _ => self.replace_newest(at),
        }
        Ok(())
    }

    /// Goes on to the next coordinates, of which `at` is the newest cell so far.
    fn replace_newest(&mut self, at: CellPlace) {
        let before = self.newest.replace(at);
        // The tile of the last cell may now be decided.
        if before.is_some_and(|before| before.tile != at.tile) {
            self.release();
        }
    }

    /// Whether a cell replaces an earlier one of the same coordinates.
    ///
    /// Of equal times, the later fragment wins. Within a fragment, consolidation has put the newer cell first,
    /// but TileDB takes the last one if the two lie in different tiles.
    fn is_newer(&self, at: CellPlace, than: CellPlace) -> Result<bool> {
        let (tile, other) = (self.tile(at)?, self.tile(than)?);
        let time = |tile: &MergedTile, at: CellPlace| match &tile.open.times {
            Some(times) => times.times[tile.cell(at.position)],
            None => self.reader.array.source().fragments()[tile.open.task.tile.fragment].time,
        };
        Ok(match time(tile, at).cmp(&time(other, than)) {
            // Tiles compare by their fragment first.
            Ordering::Equal => tile.open.task.tile > other.open.task.tile,
            order => order.is_gt(),
        })
    }

    fn tile(&self, at: CellPlace) -> crate::Result<&MergedTile> {
        self.open_tile(at).ok_or_else(|| Error::internal("a tile that was given back"))
    }

    fn open_tile(&self, at: CellPlace) -> Option<&MergedTile> {
        self.tiles.get(at.tile)?.as_ref()
    }

    /// Compares the coordinates of two cells in the global order.
    fn compare(&self, a: CellPlace, b: CellPlace) -> Ordering {
        let (Some(left), Some(right)) = (self.open_tile(a), self.open_tile(b)) else {
            return Ordering::Greater;
        };
        left.keys.compare(left.cell(a.position), &right.keys, right.cell(b.position))
    }

    /// Puts a cursor in order. Cursors that have not opened their tile come before others of the same key.
    fn insert(&mut self, cursor: usize) {
        // The walk takes the last one, so those that come later stand before it.
        let (head, is_open) = (self.head_key(cursor), self.cursors[cursor].at.is_some());
        let place = self.order.partition_point(|&other| self.precedes(head, is_open, other));
        self.order.insert(place, cursor);
    }

    /// Whether the walk comes to a cursor with this key before it comes to `other`.
    fn precedes(&self, head: Option<(&CellKeys, usize)>, is_open: bool, other: usize) -> bool {
        match (head, self.head_key(other)) {
            (None, _) => true,
            (_, None) => false,
            (Some((keys, at)), Some((others, other_at))) => {
                match keys.compare(at, others, other_at) {
                    Ordering::Less => true,
                    Ordering::Equal => !is_open,
                    Ordering::Greater => false,
                }
            }
        }
    }

    /// Returns the key of a cursor's place, or the least that it can be; `None` if nothing is known of it.
    fn head_key(&self, cursor: usize) -> Option<(&CellKeys, usize)> {
        let Cursor { tasks, least, at } = &self.cursors[cursor];
        match at {
            Some(at) => {
                let tile = self.open_tile(*at)?;
                Some((&tile.keys, tile.cell(at.position)))
            }
            None => Some((least.as_deref()?, tasks.front()?.tile.tile as usize)),
        }
    }

    /// Moves tiles that their cursors have left, and whose cells are all decided, to `decided`.
    fn release(&mut self) {
        if self.left.is_empty() {
            return;
        }
        let holds_newest = |tile: usize| self.newest.is_some_and(|newest| newest.tile == tile);
        let (kept, released): (Vec<usize>, Vec<usize>) =
            std::mem::take(&mut self.left).into_iter().partition(|&tile| holds_newest(tile));
        self.left = kept;
        for tile in released.into_iter().filter_map(|tile| self.tiles.get_mut(tile)?.take()) {
            let MergedTile { mut open, replaced, .. } = tile;
            if !replaced.is_empty() {
                let mut stay = BooleanBufferBuilder::new(open.rows);
                stay.append_n(open.rows, true);
                replaced.iter().for_each(|&cell| stay.set_bit(cell, false));
                let removed = open.restrict(&stay.finish());
                self.reader.metrics.cells_duplicate.add(removed);
            }
            self.decided.push_back(open);
        }
    }
}

/// Whether a dimension has texts.
fn has_texts(array: &SparseArray) -> bool {
    let mut fields = array.schema().fields().iter().take(array.rank());
    fields.any(|field| matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView))
}
