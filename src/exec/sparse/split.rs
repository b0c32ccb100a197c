//! Divides the tiles of a scan into partitions with about the same number of cells.
//!
//! ```text
//!   merges      a group of many cells is cut into ranges of one dimension, each merged on its own
//!   tiles       fill up the partitions, in order
//!
//!   partition 0   ▓▓▓▓▓▓▓▓ range x < 40   ░░░ tiles 0 to 2
//!   partition 1   ▓▓▓▓▓▓ range x ≥ 40     ░░░░░ tiles 3 to 7
//! ```

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::row::{RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Column as PhysicalColumn, Literal};

use super::bounds::KnownTiles;
use super::filters::RowFilter;
use super::plan::{MergeTask, PartitionTasks, TileTask};
use crate::array::{SparseArray, TileNumber};

/// Fewer cells than this are not worth another partition.
const MIN_CELLS: u64 = 1 << 14;

/// Divides merges and tiles into at most `partitions` partitions.
pub(super) fn split(
    array: &SparseArray,
    known: &KnownTiles,
    groups: Vec<Vec<TileTask>>,
    tiles: &[TileTask],
    partitions: usize,
) -> Result<Vec<PartitionTasks>> {
    let fragments = array.source().fragments();
    let cells = |task: &TileTask| fragments[task.tile.fragment].cells_of(task.tile.tile);
    let of = |tasks: &[TileTask]| tasks.iter().map(cells).fold(0, u64::saturating_add);
    let total = groups.iter().map(|group| of(group)).fold(of(tiles), u64::saturating_add);
    let most = usize::try_from(total / MIN_CELLS).unwrap_or(usize::MAX).max(1);
    let partitions = partitions.clamp(1, most);
    let share = total.div_ceil(partitions as u64).max(1);

    let mut merges: Vec<(u64, MergeTask)> = vec![];
    for group in groups {
        let cells = of(&group);
        let parts = usize::try_from(cells / share).unwrap_or(usize::MAX).clamp(1, partitions);
        for merge in ranges(array, known, group, parts)? {
            merges.push((of(&merge.tiles), merge));
        }
    }
    let mut tasks = distribute(merges, tiles, cells, total, partitions);
    tasks.retain(|tasks| !tasks.merges.is_empty() || !tasks.tiles.is_empty());
    if tasks.is_empty() {
        tasks.push(PartitionTasks::default());
    }
    Ok(tasks)
}

/// Distributes merges, with their cells, and tiles among partitions, of which some may stay empty. Tiles fill up the
/// partitions until each has its part of `total` cells.
pub(super) fn distribute(
    mut merges: Vec<(u64, MergeTask)>,
    tiles: &[TileTask],
    cells: impl Fn(&TileTask) -> u64,
    total: u64,
    partitions: usize,
) -> Vec<PartitionTasks> {
    // The largest first, each to the partition with the least work.
    merges.sort_by_key(|(cells, _)| std::cmp::Reverse(*cells));
    let mut shares = vec![(0_u64, PartitionTasks::default()); partitions];
    for (cells, merge) in merges {
        if let Some((load, tasks)) = shares.iter_mut().min_by_key(|(load, _)| *load) {
            *load = load.saturating_add(cells);
            tasks.merges.push(merge);
        }
    }
    let share = total.div_ceil(partitions as u64).max(1);
    let (mut left, last) = (tiles.iter(), shares.len() - 1);
    for (at, (load, tasks)) in shares.iter_mut().enumerate() {
        while (*load < share || at == last)
            && let Some(task) = left.next()
        {
            *load = load.saturating_add(cells(task));
            tasks.tiles.push(*task);
        }
    }
    shares.into_iter().map(|(_, tasks)| tasks).collect()
}

/// Divides a group of overlapping tiles into at most `parts` ranges of one dimension. A tile at a border is
/// read by several parts.
fn ranges(
    array: &SparseArray,
    known: &KnownTiles,
    group: Vec<TileTask>,
    parts: usize,
) -> Result<Vec<MergeTask>> {
    let whole = |tiles| vec![MergeTask { tiles, range: None }];
    let numbers: Vec<TileNumber> = group.iter().map(|task| task.tile).collect();
    let mut best: Option<Cuts> = None;
    for axis in 0..if parts > 1 { array.rank() } else { 0 } {
        let cuts = Cuts::new(known, &numbers, axis, parts)?;
        // Fewer tiles at borders are fewer tiles to decode twice.
        best = match (best, cuts) {
            (Some(best), Some(cuts)) if cuts.tiles() >= best.tiles() => Some(best),
            (best, cuts) => cuts.or(best),
        };
    }
    let Some(cuts) = best else { return Ok(whole(group)) };
    let mut merges = vec![];
    for (at, members) in cuts.members.iter().enumerate() {
        let tile = |&(member, is_cut): &(usize, bool)| TileTask { is_cut, ..group[member] };
        let tiles = members.iter().map(tile).collect();
        let (from, to) = (at.checked_sub(1).map(|at| &cuts.values[at]), cuts.values.get(at));
        let range = range(array, cuts.axis, from, to)?;
        merges.push(MergeTask { tiles, range });
    }
    Ok(merges)
}

/// Cuts of one dimension into ranges.
struct Cuts {
    axis: usize,
    /// The first coordinate of each range but the first.
    values: Vec<ScalarValue>,
    /// Per range, the positions of the tiles that may hold cells of it, and whether they may hold others.
    members: Vec<Vec<(usize, bool)>>,
}

impl Cuts {
    /// Cuts an axis so that each range begins with about the same number of tiles. `None` if it cannot be cut.
    fn new(
        known: &KnownTiles,
        tiles: &[TileNumber],
        axis: usize,
        parts: usize,
    ) -> Result<Option<Self>> {
        let least = known.coordinates(tiles, axis, true)?;
        let greatest = known.coordinates(tiles, axis, false)?;
        let (Some(least), Some(greatest)) = (least, greatest) else { return Ok(None) };
        if least.null_count() + greatest.null_count() > 0 {
            return Ok(None);
        }
        let converter = RowConverter::new(vec![SortField::new(least.data_type().clone())])?;
        let lows = converter.convert_columns(&[ArrayRef::clone(&least)])?;
        let highs = converter.convert_columns(&[greatest])?;
        let mut order: Vec<usize> = (0..tiles.len()).collect();
        order.sort_unstable_by_key(|&at| lows.row(at));
        let mut cuts: Vec<usize> =
            (1..parts).map(|part| order[part * order.len() / parts]).collect();
        cuts.dedup_by_key(|at| lows.row(*at));
        // A range before the least coordinate would be empty.
        cuts.retain(|&at| lows.row(at) > lows.row(order[0]));
        if cuts.is_empty() {
            return Ok(None);
        }
        let members = (0..=cuts.len()).map(|range| {
            let begins_before =
                |at: &usize| cuts.get(range).is_none_or(|&cut| lows.row(*at) < lows.row(cut));
            let from = range.checked_sub(1).map(|range| cuts[range]);
            let ends_after = |at: &usize| from.is_none_or(|cut| highs.row(*at) >= lows.row(cut));
            let is_cut = |at: usize| {
                from.is_some_and(|cut| lows.row(at) < lows.row(cut))
                    || cuts.get(range).is_some_and(|&cut| highs.row(at) >= lows.row(cut))
            };
            let members = (0..tiles.len()).filter(|at| begins_before(at) && ends_after(at));
            members.map(|at| (at, is_cut(at))).collect()
        });
        let members = members.collect();
        let value = |&at: &usize| ScalarValue::try_from_array(&least, at);
        let values = cuts.iter().map(value).collect::<Result<_>>()?;
        Ok(Some(Self { axis, values, members }))
    }

    /// Returns the number of tiles in all ranges together.
    fn tiles(&self) -> usize {
        self.members.iter().map(Vec::len).sum()
    }
}

/// Returns a filter of the coordinates of a dimension from one value on, and before another.
fn range(
    array: &SparseArray,
    axis: usize,
    from: Option<&ScalarValue>,
    to: Option<&ScalarValue>,
) -> Result<Option<RowFilter>> {
    let compare = |operator, value: &ScalarValue| -> PhysicalExprRef {
        let column = Arc::new(PhysicalColumn::new(array.schema().field(axis).name(), axis));
        Arc::new(BinaryExpr::new(column, operator, Arc::new(Literal::new(value.clone()))))
    };
    let from = from.map(|value| compare(Operator::GtEq, value));
    let to = to.map(|value| compare(Operator::Lt, value));
    let both = match (from, to) {
        (Some(from), Some(to)) => Arc::new(BinaryExpr::new(from, Operator::And, to)),
        (Some(one), None) | (None, Some(one)) => {
            return RowFilter::new(one, array.schema()).map(Some);
        }
        (None, None) => return Ok(None),
    };
    RowFilter::new(both, array.schema()).map(Some)
}
