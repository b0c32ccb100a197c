//! [`NewCells`]: cells for a box of an array, and where the cells of an object come from.
//!
//! ```text
//!   array        old old old │            box of new cells     object     old old │
//!                old old old │                ◌   a  b                     old  a  │ b
//!                ────────────┘
//!                                         ◌ has no row                      beyond the old array, fill values
//! ```

use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat, take};
use gridfusion_core::Result;
use gridfusion_core::array::failed_to;
use gridfusion_core::write::{cells_of_box, for_each_row, lens};

/// No cell.
const FILL: u64 = u64::MAX;

/// Stored cells for some places of a box.
pub(super) struct NewCells {
    /// The indices of the box along each axis.
    ranges: Vec<Range<u64>>,
    /// The cells, row by row.
    stored: ArrayRef,
    /// The numbers of the cells within the box, ascending; `None` if it has all of them.
    numbers: Option<Vec<u64>>,
}

/// The sources of an object's cells.
pub(super) struct Sources {
    /// Per cell of the object, row by row, its index among its old cells, followed by the new ones; [`FILL`] for the fill value.
    indices: Vec<u64>,
    /// The new cells that are old ones, too: the index among the old cells of the object, and that of the new cell.
    pub(super) both: Vec<(u64, u64)>,
    /// The new cells that are no old ones.
    pub(super) added: usize,
    /// The old cells.
    old: u64,
}

impl NewCells {
    pub(super) fn new(
        ranges: Vec<Range<u64>>,
        stored: ArrayRef,
        numbers: Option<Vec<u64>>,
    ) -> Self {
        Self { ranges, stored, numbers }
    }

    pub(super) fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    pub(super) fn stored(&self) -> &ArrayRef {
        &self.stored
    }

    /// Returns the number within the box of a stored cell.
    pub(super) fn number(&self, stored: u64) -> u64 {
        self.numbers.as_ref().map_or(stored, |numbers| numbers[stored as usize])
    }

    /// Whether there is a new cell for each of an object's, which has these indices.
    pub(super) fn has_all_of(&self, object: &[Range<u64>]) -> bool {
        let is_within =
            |(own, it): (&Range<u64>, &Range<u64>)| own.start <= it.start && it.end <= own.end;
        self.numbers.is_none() && self.ranges.iter().zip(object).all(is_within)
    }

    /// Returns the cells of an object, of which there are all.
    pub(super) fn cells_of(&self, object: &[Range<u64>]) -> Result<ArrayRef> {
        let part = self.ranges.iter().zip(object);
        let part = part.map(|(own, it)| it.start - own.start..it.end - own.start);
        cells_of_box(&self.stored, &lens(&self.ranges), &part.collect::<Vec<_>>())
    }

    /// Finds the sources of an object's cells. The object has the indices `object`, of which the first `old` along each axis are in the array
    /// already.
    pub(super) fn sources(&self, object: &[Range<u64>], old: &[u64]) -> Sources {
        let cells = lens(object).iter().product::<u64>();
        let of_old = old.iter().product::<u64>();
        let mut sources = Sources {
            indices: Vec::with_capacity(cells as usize),
            both: vec![],
            added: 0,
            old: of_old,
        };
        let (along, along_new) = (along(object), along(&self.ranges));
        let old_along = old.last().copied().unwrap_or(1);
        for_each_row(object, |outer| {
            let first_old = offset(outer, object, old);
            let first_new = offset(outer, &self.ranges, &lens(&self.ranges));
            for at in along.clone() {
                let is_old = first_old.filter(|_| at - along.start < old_along);
                let old = is_old.map(|first| first + at - along.start);
                let is_new = first_new.filter(|_| along_new.contains(&at));
                let new = is_new.and_then(|first| self.stored_at(first + at - along_new.start));
                match (old, new) {
                    (Some(old), Some(new)) => sources.both.push((old, new)),
                    (None, Some(_)) => sources.added += 1,
                    _ => {}
                }
                sources.indices.push(new.map(|new| of_old + new).or(old).unwrap_or(FILL));
            }
        });
        sources
    }

    /// Returns the index of the stored cell with this number within the box.
    fn stored_at(&self, number: u64) -> Option<u64> {
        match &self.numbers {
            None => Some(number),
            Some(numbers) => numbers.binary_search(&number).ok().map(|at| at as u64),
        }
    }
}

impl Sources {
    /// Whether any old cell stays.
    pub(super) fn keep_old(&self) -> bool {
        (self.both.len() as u64) < self.old
    }

    /// Returns the cells of the object; fill values are NULL.
    pub(super) fn cells(self, old: Option<&ArrayRef>, new: &NewCells) -> Result<ArrayRef> {
        let failed = failed_to("put cells together");
        let parts: Vec<&dyn Array> =
            old.into_iter().chain([&new.stored]).map(|it| it.as_ref()).collect();
        // Without old cells, no index is one of them.
        let behind = if old.is_some() { 0 } else { self.old };
        let all = concat(&parts).map_err(&failed)?;
        let mut indices = self.indices;
        let is_cell = NullBuffer::from_iter(indices.iter().map(|at| *at != FILL));
        indices.iter_mut().for_each(|at| *at = if *at == FILL { 0 } else { *at - behind });
        let indices = UInt64Array::new(indices.into(), Some(is_cell));
        take(&all, &indices, None).map_err(failed)
    }
}

/// Returns the indices of a row of a box: those along the last axis. A single value is a row of one.
pub(super) fn along(ranges: &[Range<u64>]) -> Range<u64> {
    ranges.last().cloned().unwrap_or(0..1)
}

/// Returns the number of a row's first cell in a box that begins as `ranges` do. `None` if it lies outside of these lengths.
fn offset(outer: &[u64], ranges: &[Range<u64>], lens: &[u64]) -> Option<u64> {
    let mut number = 0;
    for ((at, range), len) in outer.iter().zip(ranges).zip(lens) {
        let at = at.checked_sub(range.start).filter(|at| at < len)?;
        number = number * len + at;
    }
    Some(number * lens.last().unwrap_or(&1))
}
