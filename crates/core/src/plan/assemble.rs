//! Blocks of a chunk's rows, and [`Assembler`], which makes their dimension columns.
//!
//! The selected cells of a chunk, in row-major order, are cut into *blocks*. A block covers all of the
//! inner axes, a range on one *split* axis, and one index on each outer axis.
//!
//! ```text
//!   selected extents 2 x 4 x 3, batch size 8:  split axis 1, two of its indices per block
//!
//!   axis 0   0 0 0 0 0 0 │ 0 0 0 0 0 0 │ 1 …     one label, repeated
//!   axis 1   0 0 0 1 1 1 │ 2 2 2 3 3 3 │ 0 …     a range of labels, each repeated 3 times
//!   axis 2   0 1 2 0 1 2 │ 0 1 2 0 1 2 │ 0 …     all labels, over and over: the same array each time
//! ```
//!
//! A dimension column is `take(labels, pattern)`. Blocks and chunks share the patterns, and the columns of
//! inner axes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;

use crate::array::{ColumnSource, GridArray, Labels, failed_to};
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, ChunkTask, unravel};

/// A run of rows of one chunk, at most as many as a batch has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Per axis, the block's positions among the chunk's selected indices.
    positions: Vec<Range<u64>>,
    rows: u64,
}

impl Block {
    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the block's positions on `axis`, among the chunk's selected indices.
    pub fn positions(&self, axis: usize) -> Range<u64> {
        self.positions[axis].clone()
    }

    /// Returns the block's cells per axis, relative to the chunk of `task`.
    pub fn cells(&self, task: &ChunkTask) -> Vec<AxisSelection> {
        task.selection
            .iter()
            .zip(&self.positions)
            .map(|(axis, at)| axis.slice(at.clone()))
            .collect()
    }
}

/// An iterator over the blocks of a box of selected cells; each has 1 to `batch_size` rows.
#[derive(Debug)]
pub struct RowBlocks {
    /// Per axis, the box's positions among the chunk's selected indices.
    within: Vec<Range<u64>>,
    split: usize,
    /// The number of positions on the split axis per block.
    step: u64,
    /// The number of positions on each outer axis, then the number of steps on the split axis.
    outer: Vec<u64>,
    /// The numbers of the remaining blocks.
    left: Range<u64>,
    /// Whether the last block comes first.
    backwards: bool,
}

impl RowBlocks {
    /// Cuts all selected cells of `task` into blocks, in order.
    pub fn new(task: &ChunkTask, batch_size: u64) -> Self {
        let all = task.selection.iter().map(|axis| 0..axis.count()).collect();
        Self::within(all, batch_size, false)
    }

    /// Cuts the selected cells at the positions `within`; `backwards` begins with the last block.
    pub(crate) fn within(within: Vec<Range<u64>>, batch_size: u64, backwards: bool) -> Self {
        let counts: Vec<u64> = within.iter().map(|range| range.end - range.start).collect();
        if counts.is_empty() {
            // The only cell of a scalar.
            return Self { within, split: 0, step: 1, outer: vec![], left: 0..1, backwards };
        }
        // Inner axes that fit into a batch together stay whole; the next axis outwards is split.
        let mut split = counts.len() - 1;
        let mut inner = 1;
        while split > 0 && inner * counts[split] <= batch_size {
            inner *= counts[split];
            split -= 1;
        }
        let step = (batch_size / inner.max(1)).clamp(1, counts[split].max(1));
        let mut outer = counts[..split].to_vec();
        outer.push(counts[split].div_ceil(step));
        let blocks = if counts.contains(&0) { 0 } else { outer.iter().product() };
        Self { within, split, step, outer, left: 0..blocks, backwards }
    }

    fn block(&self, number: u64) -> Block {
        let mut positions = self.within.clone();
        // Outer axes have one position in the block, and the split axis up to `step`.
        let at = unravel(number, &self.outer);
        for (range, at) in positions.iter_mut().zip(&at[..self.split]) {
            *range = range.start + at..range.start + at + 1;
        }
        if let Some(range) = positions.get_mut(self.split) {
            let start = range.start + at[self.split] * self.step;
            *range = start..(start + self.step).min(range.end);
        }
        let rows = positions.iter().map(|range| range.end - range.start).product();
        Block { positions, rows }
    }
}

impl Iterator for RowBlocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let number = if self.backwards { self.left.next_back() } else { self.left.next() };
        number.map(|number| self.block(number))
    }
}

/// The repetition of labels along the rows of a block: row `r` has label `(r / inner) % count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Pattern {
    /// The number of labels in the block.
    count: u64,
    /// How often each label occurs in succession: the positions of all axes after it.
    inner: u64,
    rows: u64,
}

impl Pattern {
    fn indices(self) -> UInt32Array {
        let mut indices = Vec::with_capacity(self.rows as usize);
        while (indices.len() as u64) < self.rows {
            for label in 0..self.count as u32 {
                indices.resize(indices.len() + self.inner as usize, label);
            }
        }
        UInt32Array::from(indices)
    }
}

/// The cache key of a dimension column: equal keys give equal columns of the same chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ColumnKey {
    /// The first of the block's positions among the chunk's selected indices.
    start: u64,
    pattern: Pattern,
}

/// The last labels and array of a dimension column; the next block often needs them again.
#[derive(Debug)]
struct AxisCache {
    chunk: u64,
    /// The chunk's selected indices. Tasks at the same coordinate can differ, because dynamic filters
    /// remove indices from some.
    selection: AxisSelection,
    /// The selected labels, once they are read.
    labels: Option<ArrayRef>,
    column: Option<(ColumnKey, ArrayRef)>,
}

/// A builder of dimension columns, block by block.
#[derive(Debug)]
pub struct Assembler {
    array: Arc<GridArray>,
    /// The last column of each dimension.
    caches: HashMap<ColumnSource, AxisCache>,
    patterns: HashMap<Pattern, Arc<UInt32Array>>,
}

/// The greatest number of cached patterns; the chunks of one array need a handful.
const MAX_PATTERNS: usize = 32;

impl Assembler {
    /// Makes an assembler with empty caches.
    pub fn new(array: &Arc<GridArray>) -> Self {
        Self { array: Arc::clone(array), caches: HashMap::new(), patterns: HashMap::new() }
    }

    /// Returns the label of `column` in each row of `block`; the column must belong to a dimension.
    ///
    /// # Errors
    /// `Internal` if the column belongs to a variable; `Unsupported` or `Internal` if Arrow cannot repeat
    /// the labels.
    pub fn dimension(
        &mut self,
        column: ColumnSource,
        task: &ChunkTask,
        block: &Block,
    ) -> Result<ArrayRef> {
        let axis = column.axis().ok_or_else(|| Error::internal("the column is not a dimension"))?;
        let positions = &block.positions[axis];
        let inner: u64 =
            block.positions[axis + 1..].iter().map(|range| range.end - range.start).product();
        let pattern = Pattern { count: positions.end - positions.start, inner, rows: block.rows };
        let key = ColumnKey { start: positions.start, pattern };

        let (chunk, selection) = (task.coordinates[axis], &task.selection[axis]);
        let cache =
            self.caches.entry(column).or_insert_with(|| AxisCache::new(chunk, selection.clone()));
        if cache.chunk != chunk || cache.selection != *selection {
            *cache = AxisCache::new(chunk, selection.clone());
        }
        if let Some((_, array)) = cache.column.as_ref().filter(|(held, _)| *held == key) {
            return Ok(Arc::clone(array));
        }
        let labels = match self.array.labels_of(column) {
            Some(labels) => labels,
            None => return Err(Error::internal("a variable has no labels")),
        };
        let start = self.array.grid().axis_range(axis, chunk).start;
        let labels = cache.select(labels, positions, start)?;
        // If no label repeats, the labels are the column.
        let array = if pattern.count == pattern.rows {
            labels
        } else {
            let indices = indices(&mut self.patterns, pattern);
            take(labels.as_ref(), indices.as_ref(), None).map_err(failed_to("repeat labels"))?
        };
        cache.column = Some((key, Arc::clone(&array)));
        Ok(array)
    }
}

impl AxisCache {
    fn new(chunk: u64, selection: AxisSelection) -> Self {
        Self { chunk, selection, labels: None, column: None }
    }

    /// Returns the labels at `positions` among the chunk's selected indices. The chunk begins at index
    /// `start` of the axis.
    fn select(&mut self, labels: &Labels, positions: &Range<u64>, start: u64) -> Result<ArrayRef> {
        if labels.in_memory().is_none() {
            // These labels are computed. Only the block's are made, however long the chunk is.
            return labels.select(&self.selection.slice(positions.clone()), start);
        }
        let selected = match &self.labels {
            Some(selected) => selected,
            None => self.labels.insert(labels.select(&self.selection, start)?),
        };
        Ok(selected.slice(positions.start as usize, (positions.end - positions.start) as usize))
    }
}

/// Returns the indices of `pattern`, from the cache if they are there. A full cache starts again empty.
fn indices(
    patterns: &mut HashMap<Pattern, Arc<UInt32Array>>,
    pattern: Pattern,
) -> Arc<UInt32Array> {
    if patterns.len() >= MAX_PATTERNS && !patterns.contains_key(&pattern) {
        patterns.clear();
    }
    Arc::clone(patterns.entry(pattern).or_insert_with(|| Arc::new(pattern.indices())))
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::grid::for_each_run;

    /// The blocks of a chunk hold its selected cells in order, and none has more rows than a batch.
    #[test]
    fn blocks_cover_the_chunk_in_order() {
        let mut rng = StdRng::seed_from_u64(4);
        for _ in 0..2_000 {
            let selection: Vec<AxisSelection> = (0..rng.random_range(1..=4))
                .map(|_| {
                    let mask: Vec<bool> =
                        (0..rng.random_range(1..6)).map(|_| rng.random_bool(0.7)).collect();
                    AxisSelection::from_mask(&mask)
                })
                .collect();
            let rows = selection.iter().map(AxisSelection::count).product();
            let rank = selection.len();
            let task = ChunkTask { chunk_number: 0, coordinates: vec![0; rank], selection, rows };
            let batch_size = rng.random_range(1..40);

            let mut expected = Vec::new();
            for_each_run(&task.selection, |run| expected.extend(run));
            let mut found = Vec::new();
            for block in RowBlocks::new(&task, batch_size) {
                let before = found.len();
                for_each_run(&block.cells(&task), |run| found.extend(run));
                assert_eq!(found.len() - before, block.rows() as usize);
                assert!((1..=batch_size).contains(&block.rows()));
            }
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn patterns_repeat_labels() {
        let pattern =
            |count, inner, rows| Pattern { count, inner, rows }.indices().values().to_vec();
        assert_eq!(pattern(2, 3, 6), [0, 0, 0, 1, 1, 1]);
        assert_eq!(pattern(2, 1, 6), [0, 1, 0, 1, 0, 1]);
        assert_eq!(pattern(1, 4, 4), [0; 4]);
    }
}
