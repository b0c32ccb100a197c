//! The table of groups, which maps the indices of a cell to the place of its group.
//!
//! Each axis in a key numbers its groups once, over its selected labels. A group has one number per
//! such axis. Its place in the table is the sum of these numbers times their strides:
//!
//! ```text
//!   GROUP BY date_trunc('month', time), station        time   0 0 0 0 1 1 1 2 …     × stride 250
//!                                                      station 0 1 2 … 249          × stride 1
//!   place = month × 250 + station
//! ```
//!
//! A partition's table holds only the groups that its chunks can contain. The months 5 to 7 of a
//! partition have the *local* numbers 0 to 2 in its table. On the axis they keep the *global* numbers 5
//! to 7, by which output keys are looked up.

use std::ops::Range;
use std::sync::Arc;

use super::batch::{GroupPlaces, Segment};
use super::plane_groups::{PlaneGroups, TablePlane};
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask};
use crate::plan::ScanPlan;

/// The group numbers along one axis, for its selected indices in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisGroups {
    /// The axis is in no key.
    One,
    /// Every selected index is a group of its own.
    Each,
    /// Selected index number `i` is in group `numbers[i]`.
    Numbered {
        /// The group of each selected index, less than `groups`.
        numbers: Arc<[u32]>,
        /// The number of groups.
        groups: u32,
    },
}

impl AxisGroups {
    /// Returns the number of groups along the axis if `selected` of its indices are selected.
    pub fn count(&self, selected: u64) -> u64 {
        match self {
            Self::One => 1,
            Self::Each => selected,
            Self::Numbered { groups, .. } => u64::from(*groups),
        }
    }

    /// Returns the number of each of the `selected` indices, from that of its group.
    pub fn of_labels(&self, selected: u64, number: impl Fn(usize) -> f64) -> Arc<[f64]> {
        match self {
            Self::One => vec![number(0); selected as usize].into(),
            Self::Each => (0..selected as usize).map(number).collect(),
            Self::Numbered { numbers, .. } => {
                numbers.iter().map(|group| number(*group as usize)).collect()
            }
        }
    }
}

/// The ranks of an axis' selected indices: their numbers in ascending order, from 0.
#[derive(Debug)]
pub(super) struct Ranks {
    /// The first index of each range, and the number of selected indices before it.
    starts: Vec<(u64, u64)>,
}

impl Ranks {
    pub(super) fn new(selection: &AxisSelection) -> Self {
        let mut before = 0;
        let mut start_of = |range: &Range<u64>| {
            let start = (range.start, before);
            before += range.end - range.start;
            start
        };
        Self { starts: selection.ranges().iter().map(&mut start_of).collect() }
    }

    /// Returns the rank of `index`, which must be selected.
    pub(super) fn of(&self, index: u64) -> u64 {
        let at = self.starts.partition_point(|(start, _)| *start <= index);
        at.checked_sub(1).map_or(0, |at| self.starts[at].1 + index - self.starts[at].0)
    }
}

/// An axis in a key, as a part of the group table.
#[derive(Debug)]
struct TableAxis {
    /// The distance in the table between neighbouring local numbers of this axis.
    stride: usize,
    ranks: Ranks,
    /// The ranks of the selected indices that the partition's chunks can contain.
    window: Range<u64>,
    groups: LocalGroups,
}

#[derive(Debug)]
enum LocalGroups {
    /// Each rank in the window is a group of its own.
    Each,
    /// `local`: the group's number in this table, per rank in the window. `global`: the group's number
    /// on the axis, per local number.
    Numbered { local: Vec<u32>, global: Vec<u32> },
}

/// The places of groups in a table of states.
#[derive(Debug)]
pub struct GroupTable {
    /// One entry per axis of the array; `None` for an axis in no key. If a key is over a plane, its entry is the last.
    axes: Vec<Option<TableAxis>>,
    /// The number of groups: the product over the axes, 1 without keys.
    len: usize,
    /// The groups of the cells of several axes.
    pub(super) plane: Option<TablePlane>,
}

impl GroupTable {
    /// Returns the table of the groups that a partition of `plan` can contain. `groups` are numbered over
    /// `selection`, which includes the selection of the plan. The plan must read chunks one by one, for
    /// [`ScanPlan::index_windows`].
    ///
    /// # Errors
    /// `Internal` if the number of groups overflows a `usize`.
    pub fn new(
        plan: &ScanPlan,
        partition: usize,
        selection: &[AxisSelection],
        groups: &[AxisGroups],
    ) -> Result<Self> {
        let windows = plan.index_windows(partition);
        let mut axes: Vec<Option<TableAxis>> = Vec::with_capacity(groups.len());
        let mut len: usize = 1;
        // From the last axis, so that `len` is the stride of the next one.
        for (axis, groups) in groups.iter().enumerate().rev() {
            if *groups == AxisGroups::One {
                axes.push(None);
                continue;
            }
            let ranks = Ranks::new(&selection[axis]);
            // The window in indices becomes a window in ranks, by its first and its last selected index.
            let within = plan.selection().axes()[axis].intersect(&AxisSelection::from_range(
                selection[axis].len(),
                windows[axis].clone(),
            ));
            let window = match (within.ranges().first(), within.ranges().last()) {
                (Some(first), Some(last)) => ranks.of(first.start)..ranks.of(last.end - 1) + 1,
                _ => 0..0,
            };
            let local = LocalGroups::new(groups, &window);
            let count = local.count(&window);
            axes.push(Some(TableAxis { stride: len, ranks, window, groups: local }));
            len = usize::try_from(count)
                .ok()
                .and_then(|count| len.checked_mul(count))
                .ok_or_else(|| Error::internal("a table of more groups than can be addressed"))?;
        }
        axes.reverse();
        // Without chunks a keyed table has no groups. Without keys there is one group, even without rows.
        if plan.tasks(partition).is_empty() && groups.iter().any(|axis| *axis != AxisGroups::One) {
            len = 0;
        }
        Ok(Self { axes, len, plane: None })
    }

    /// Divides each group by the groups of a plane, whose cells are numbered over `selection`.
    ///
    /// # Errors
    /// `Internal` if the number of groups overflows a `usize`.
    pub fn with_plane(mut self, groups: &PlaneGroups, selection: &[AxisSelection]) -> Result<Self> {
        let len = self.len.checked_mul(groups.groups.max(1) as usize);
        let too_many = || Error::internal("a table of more groups than can be addressed");
        self.len = len.ok_or_else(too_many)?;
        // Neighbours on the plane are neighbours in the table, whatever the keys of other axes.
        let others = self.axes.iter_mut().flatten();
        others.for_each(|axis| axis.stride *= groups.groups.max(1) as usize);
        let ranks = Ranks { starts: vec![] };
        let local = LocalGroups::Numbered { local: vec![], global: (0..groups.groups).collect() };
        self.axes.push(Some(TableAxis { stride: 1, ranks, window: 0..0, groups: local }));
        self.plane = Some(TablePlane::new(groups, selection));
        Ok(self)
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `axis` is in a key, or on the plane.
    pub(super) fn is_keyed(&self, axis: usize) -> bool {
        let is_on_plane = self.plane.as_ref().is_some_and(|plane| plane.axes().contains(&axis));
        is_on_plane || self.axes[axis].is_some()
    }

    /// Returns the place of the only group in which the selected cells of a chunk are; `None` if they
    /// are in several.
    pub(super) fn only_place(&self, grid: &ChunkGrid, task: &ChunkTask) -> Option<usize> {
        if self.plane.is_some() {
            return None; // some cells may not count
        }
        let mut place = 0;
        for axis in (0..self.axes.len()).filter(|axis| self.is_keyed(*axis)) {
            let segments = self.segments(axis, grid, task);
            // Compares the place of every cell on this axis with the first one.
            let mut places =
                segments.iter().flat_map(|at| (0..at.len).map(|cell| at.places.at(cell)));
            let first = places.next()?;
            if places.any(|other| other != first) {
                return None;
            }
            place += first;
        }
        Some(place)
    }

    /// Returns, for the groups at `places`, their numbers on `axis`, which must be in a key.
    pub fn numbers_of(&self, axis: usize, places: impl Iterator<Item = usize>) -> Vec<u64> {
        let Some(Some(axis)) = self.axes.get(axis) else { return vec![] };
        let count = axis.groups.count(&axis.window).max(1) as usize;
        places
            // The local number is the digit of the place at this axis.
            .map(|place| place / axis.stride % count)
            .map(|local| match &axis.groups {
                LocalGroups::Each => axis.window.start + local as u64,
                LocalGroups::Numbered { global, .. } => u64::from(global[local]),
            })
            .collect()
    }

    /// Returns a number for each place of the table. It starts with `first`, and `step` takes the number so
    /// far, an axis in a key, and the group's number on that axis.
    pub fn over_places<V: Copy>(&self, first: V, step: impl Fn(V, usize, u64) -> V) -> Vec<V> {
        if self.is_empty() {
            return vec![];
        }
        let mut numbers = vec![first];
        for axis in 0..self.axes.len() {
            let Some(groups) = self.groups_on(axis) else { continue };
            let mut longer = Vec::with_capacity(numbers.len() * groups.len());
            for number in numbers {
                longer.extend(groups.iter().map(|group| step(number, axis, *group)));
            }
            numbers = longer;
        }
        numbers
    }

    /// Returns the numbers on `axis` of the groups that the table has, in the order of their places. `None` for
    /// an axis in no key.
    pub fn groups_on(&self, axis: usize) -> Option<Vec<u64>> {
        let axis = self.axes[axis].as_ref()?;
        Some(match &axis.groups {
            LocalGroups::Each => axis.window.clone().collect(),
            LocalGroups::Numbered { global, .. } => {
                global.iter().map(|it| u64::from(*it)).collect()
            }
        })
    }

    /// Returns the part of a place that `axis` determines, by the number of the group on the axis. It is 0 for
    /// groups that the table does not have, and the list is empty for an axis in no key.
    pub fn places_on(&self, axis: usize) -> Vec<usize> {
        let groups = self.groups_on(axis).unwrap_or_default();
        let stride = self.axes[axis].as_ref().map_or(0, |axis| axis.stride);
        let mut places = vec![0; groups.iter().max().map_or(0, |last| *last as usize + 1)];
        for (local, group) in groups.iter().enumerate() {
            places[*group as usize] = local * stride;
        }
        places
    }

    /// Returns the group numbers of `axis` if each of its indices is a group, and the table has no others.
    pub fn whole_axis(&self, axis: usize) -> Option<Range<u64>> {
        let at = self.axes.get(axis)?.as_ref()?;
        let alone = at.stride == 1 && at.groups.count(&at.window) == self.len as u64;
        match &at.groups {
            LocalGroups::Each if alone => Some(at.window.clone()),
            _ => None,
        }
    }

    /// Returns the least and the greatest part that `axis` has in the places of the selected cells of a chunk.
    pub(super) fn ends(&self, axis: usize, grid: &ChunkGrid, task: &ChunkTask) -> (usize, usize) {
        let Some(keyed) = &self.axes[axis] else { return (0, 0) };
        let chunk_start = grid.axis_range(axis, task.coordinates[axis]).start;
        let of_range = |range: &Range<u64>| {
            let rank = (keyed.ranks.of(chunk_start + range.start) - keyed.window.start) as usize;
            let last = rank + (range.end - range.start) as usize - 1;
            match &keyed.groups {
                LocalGroups::Each => (rank, last),
                LocalGroups::Numbered { local, .. } => {
                    let ends = |(least, greatest): (u32, u32), group: &u32| {
                        (least.min(*group), greatest.max(*group))
                    };
                    let (least, greatest) = local[rank..=last].iter().fold((u32::MAX, 0), ends);
                    (least as usize, greatest as usize)
                }
            }
        };
        let ranges = task.selection[axis].ranges().iter().filter(|range| !range.is_empty());
        let all = ranges.map(of_range).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let (least, greatest) = all.unwrap_or_default();
        (least * keyed.stride, greatest * keyed.stride)
    }

    /// Returns the parts of places that the selected indices of an axis in a chunk have. They are 0 for an axis in no key.
    pub fn parts_of(&self, axis: usize, grid: &ChunkGrid, task: &ChunkTask) -> Vec<usize> {
        let mut places = Vec::with_capacity(task.selection[axis].count() as usize);
        for segment in self.segments(axis, grid, task) {
            places.extend((0..segment.len).map(|at| segment.places.at(at)));
        }
        places
    }

    /// Returns the selected cells of `axis` in the chunk of `task`, with the places of their groups.
    pub(super) fn segments(&self, axis: usize, grid: &ChunkGrid, task: &ChunkTask) -> Vec<Segment> {
        let ranges = task.selection[axis].ranges().iter();
        let Some(keyed) = &self.axes[axis] else {
            let segment = |range: &Range<u64>| Segment {
                start: range.start as usize,
                len: (range.end - range.start) as usize,
                places: GroupPlaces::Fixed(0),
            };
            return ranges.map(segment).collect();
        };
        let chunk_start = grid.axis_range(axis, task.coordinates[axis]).start;
        let mut segments = Vec::new();
        for range in ranges {
            // Chunk-relative position -> index -> rank -> position in the window.
            let rank = keyed.ranks.of(chunk_start + range.start) - keyed.window.start;
            let (start, len) = (range.start as usize, (range.end - range.start) as usize);
            match &keyed.groups {
                LocalGroups::Each => {
                    let first = rank as usize * keyed.stride;
                    let places = GroupPlaces::Steps { first, step: keyed.stride };
                    segments.push(Segment { start, len, places });
                }
                LocalGroups::Numbered { local, .. } => {
                    let local = &local[rank as usize..rank as usize + len];
                    numbered_segments(start, local, keyed.stride, &mut segments);
                }
            }
        }
        segments
    }
}

impl LocalGroups {
    /// Numbers the groups in the window in the order in which they first occur.
    fn new(groups: &AxisGroups, window: &Range<u64>) -> Self {
        let AxisGroups::Numbered { numbers, groups } = groups else { return Self::Each };
        let mut local_of = vec![u32::MAX; *groups as usize];
        let mut global = Vec::new();
        let mut number = |group: &u32| {
            let local = &mut local_of[*group as usize];
            if *local == u32::MAX {
                *local = global.len() as u32;
                global.push(*group);
            }
            *local
        };
        let local =
            numbers[window.start as usize..window.end as usize].iter().map(&mut number).collect();
        Self::Numbered { local, global }
    }

    fn count(&self, window: &Range<u64>) -> u64 {
        match self {
            Self::Each => window.end - window.start,
            Self::Numbered { global, .. } => global.len() as u64,
        }
    }
}

/// The shortest average run of one group for which cells are added run by run. A run is folded in 16
/// states, which are merged at its end. Shorter runs are not worth that.
pub(super) const WORTHWHILE_RUN: usize = 8;

/// Appends segments for the cells from `start` on, whose groups are `local`.
fn numbered_segments(start: usize, local: &[u32], stride: usize, out: &mut Vec<Segment>) {
    let runs = || local.chunk_by(|a, b| a == b);
    if local.is_empty() || runs().count() * WORTHWHILE_RUN > local.len() {
        let places = local.iter().map(|&group| group as usize * stride).collect();
        out.push(Segment { start, len: local.len(), places: GroupPlaces::Listed(places) });
        return;
    }
    let mut at = start;
    for run in runs() {
        let places = GroupPlaces::Fixed(run[0] as usize * stride);
        out.push(Segment { start: at, len: run.len(), places });
        at += run.len();
    }
}
