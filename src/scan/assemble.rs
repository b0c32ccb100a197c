//! From one chunk's selected cells to record batches.
//!
//! The selected cells of a chunk, in row-major order, are cut into *blocks*: everything on the
//! inner axes, a range on one *split* axis, one index on each outer axis.
//!
//! ```text
//!   selected extents 2 x 4 x 3, batch size 8:  split axis 1, two of its elements per block
//!
//!   axis 0   0 0 0 0 0 0 │ 0 0 0 0 0 0 │ 1 …     one label, repeated
//!   axis 1   0 0 0 1 1 1 │ 2 2 2 3 3 3 │ 0 …     a range of labels, each repeated 3 times
//!   axis 2   0 1 2 0 1 2 │ 0 1 2 0 1 2 │ 0 …     all labels, over and over: the same array each time
//! ```
//!
//! So a dimension column is `take(labels, pattern)`, and both the patterns and the columns of inner
//! axes are shared between blocks and chunks.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;

use super::{ChunkTask, Column, GridArray, Labels};
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, unravel};

/// A run of rows of one chunk that becomes one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Per axis the positions, among the selected elements of the chunk, that the block covers.
    positions: Vec<Range<u64>>,
    rows: u64,
}

impl Block {
    /// Rows of the block.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The positions on `axis` that the block covers, among the selected elements of the chunk.
    pub fn positions(&self, axis: usize) -> Range<u64> {
        self.positions[axis].clone()
    }

    /// The cells of the block within the chunk of `task`.
    pub fn cells(&self, task: &ChunkTask) -> Vec<AxisSelection> {
        task.selection
            .iter()
            .zip(&self.positions)
            .map(|(axis, at)| axis.slice(at.clone()))
            .collect()
    }
}

/// Cuts the selected cells of a chunk into blocks of at most `batch_size` rows, at least one.
#[derive(Debug)]
pub struct Blocks {
    /// Selected elements per axis.
    counts: Vec<u64>,
    split: usize,
    /// Elements of the split axis per block.
    step: u64,
    /// Per outer axis its count, and for the split axis the number of steps.
    outer: Vec<u64>,
    next: u64,
}

impl Blocks {
    /// Starts at the first selected cell of `task`.
    pub fn new(task: &ChunkTask, batch_size: u64) -> Self {
        let counts: Vec<u64> = task.selection.iter().map(AxisSelection::count).collect();
        let mut split = counts.len() - 1;
        let mut inner = 1;
        while split > 0 && inner * counts[split] <= batch_size {
            inner *= counts[split];
            split -= 1;
        }
        let step = (batch_size / inner.max(1)).clamp(1, counts[split].max(1));
        let mut outer = counts[..split].to_vec();
        outer.push(counts[split].div_ceil(step));
        Self { counts, split, step, outer, next: 0 }
    }
}

impl Iterator for Blocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        if self.counts.contains(&0) || self.next == self.outer.iter().product::<u64>() {
            return None;
        }
        let at = unravel(self.next, &self.outer);
        self.next += 1;
        let (last, fixed) = at.split_last()?;
        let mut positions: Vec<Range<u64>> = fixed.iter().map(|&at| at..at + 1).collect();
        let start = last * self.step;
        positions.push(start..(start + self.step).min(self.counts[self.split]));
        positions.extend(self.counts[self.split + 1..].iter().map(|&count| 0..count));
        let rows = positions.iter().map(|range| range.end - range.start).product();
        Some(Block { positions, rows })
    }
}

/// How labels repeat along the rows of a block: row `r` has label `(r / inner) % count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Pattern {
    count: u64,
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

/// Where a dimension column comes from; equal keys give equal columns.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ColumnKey {
    chunk: u64,
    start: u64,
    pattern: Pattern,
}

/// What one axis made last, kept because the next block often needs the same.
#[derive(Debug, Default)]
struct AxisCache {
    /// The chunk coordinate and its selected labels.
    labels: Option<(u64, ArrayRef)>,
    column: Option<(ColumnKey, ArrayRef)>,
}

/// Builds the columns of dimensions, block by block.
#[derive(Debug)]
pub struct Assembler {
    array: Arc<GridArray>,
    caches: HashMap<Column, AxisCache>,
    patterns: HashMap<Pattern, Arc<UInt32Array>>,
}

/// More patterns than this are not kept: chunks of one array need a handful.
const MAX_PATTERNS: usize = 32;

impl Assembler {
    /// An assembler with empty caches.
    pub fn new(array: &Arc<GridArray>) -> Self {
        Self { array: Arc::clone(array), caches: HashMap::new(), patterns: HashMap::new() }
    }

    /// What `column`, which must be one of a dimension, shows in each row of `block`.
    ///
    /// # Errors
    /// `Internal` for the value column, or if Arrow refuses to repeat labels.
    pub fn dimension(
        &mut self,
        column: Column,
        task: &ChunkTask,
        block: &Block,
    ) -> Result<ArrayRef> {
        let axis = column.axis().ok_or_else(|| Error::internal("the value is no dimension"))?;
        let positions = &block.positions[axis];
        let inner: u64 =
            block.positions[axis + 1..].iter().map(|range| range.end - range.start).product();
        let pattern = Pattern { count: positions.end - positions.start, inner, rows: block.rows };
        let key = ColumnKey { chunk: task.coordinates[axis], start: positions.start, pattern };

        let cache = self.caches.entry(column).or_default();
        if let Some((_, array)) = cache.column.as_ref().filter(|(held, _)| *held == key) {
            return Ok(Arc::clone(array));
        }
        let labels = self.block_labels(column, axis, task, positions)?;
        let array = if pattern.count == pattern.rows {
            labels
        } else {
            let indices = self.pattern(pattern);
            take(labels.as_ref(), indices.as_ref(), None)
                .map_err(|error| Error::internal(error.to_string()))?
        };
        self.caches.entry(column).or_default().column = Some((key, Arc::clone(&array)));
        Ok(array)
    }

    /// The labels at these positions among the selected elements of the chunk.
    fn block_labels(
        &mut self,
        column: Column,
        axis: usize,
        task: &ChunkTask,
        positions: &Range<u64>,
    ) -> Result<ArrayRef> {
        let chunk = task.coordinates[axis];
        let start = self.array.grid().axis_range(axis, chunk).start;
        let selection = &task.selection[axis];
        let labels = match self.array.labels_of(column) {
            // Made, not read: a chunk of any length costs no more than its block.
            Some(counted @ Labels::Counted(_)) => {
                return counted.select(&selection.slice(positions.clone()), start);
            }
            Some(labels) => labels,
            None => return Err(Error::internal("the value has no labels")),
        };
        let cache = self.caches.entry(column).or_default();
        let held = match &cache.labels {
            Some((held, labels)) if *held == chunk => Arc::clone(labels),
            _ => {
                let labels = labels.select(selection, start)?;
                cache.labels = Some((chunk, Arc::clone(&labels)));
                labels
            }
        };
        Ok(held.slice(positions.start as usize, (positions.end - positions.start) as usize))
    }

    fn pattern(&mut self, pattern: Pattern) -> Arc<UInt32Array> {
        if self.patterns.len() >= MAX_PATTERNS && !self.patterns.contains_key(&pattern) {
            self.patterns.clear();
        }
        let indices = self.patterns.entry(pattern).or_insert_with(|| Arc::new(pattern.indices()));
        Arc::clone(indices)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::grid::for_each_run;

    /// The blocks of a chunk are its selected cells in order, in batches close to the size asked for.
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
            let task = ChunkTask { number: 0, coordinates: vec![0; rank], selection, rows };
            let batch_size = rng.random_range(1..40);

            let mut expected = Vec::new();
            for_each_run(&task.selection, |run| expected.extend(run));
            let mut found = Vec::new();
            for block in Blocks::new(&task, batch_size) {
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
