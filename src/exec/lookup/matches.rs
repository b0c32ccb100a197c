//! [`Matches`]: the rows at each place of a partition's table.
//!
//! ```text
//!   place    0   1   2   3            rows with the same keys are a list:
//!   first    4   7   ·   0            next of row 0 is 3, next of 3 is none
//! ```

use arrow::array::UInt32Array;
use arrow::buffer::NullBuffer;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;

use super::build_side::BuildSide;
use super::grid_lookup::{GridLookup, ReturnedRows};
use crate::exec::filled::filled;
use crate::exec::reduce::elements;
use crate::plan::ScanPlan;
use crate::reduce::{AxisGroups, GroupTable};

/// No row.
pub(in crate::exec) const NONE: u32 = u32::MAX;

/// The rows of the other side by place.
pub(in crate::exec) struct Matches {
    /// The places of cells.
    pub(in crate::exec) table: GroupTable,
    /// The first row at each place.
    first: Vec<u32>,
    /// Per row, the next one at the same place; empty if all places have at most one.
    next: Vec<u32>,
}

impl Matches {
    /// Puts the rows into their places in a partition of the join, which `plan` reads. Returns also the plan without labels that have
    /// no match, if the join returns only matches.
    pub(in crate::exec) fn try_new(
        lookup: &GridLookup,
        built: &BuildSide,
        mut plan: ScanPlan,
        reservation: &MemoryReservation,
    ) -> Result<(ScanPlan, Self)> {
        let selection = lookup.scan.plan().selection().axes();
        if matches!(lookup.kept, ReturnedRows::Matches | ReturnedRows::WithMatch) {
            for (keys, numbers) in lookup.keys.iter().zip(&built.numbers) {
                let axis = keys.axis;
                let mut needed = vec![false; count(lookup, axis)];
                numbers.iter().flatten().for_each(|number| needed[*number as usize] = true);
                let wanted = elements(&needed, &lookup.groups[axis], &selection[axis]);
                plan = plan.restricted(axis, &wanted);
            }
        }
        let table = GroupTable::new(&plan, 0, selection, &lookup.groups)?;
        // The rows may need a list, too.
        let entries = table.len().saturating_add(built.rows.num_rows());
        reservation.try_grow(entries.saturating_mul(size_of::<u32>()))?;
        let (first, next) = lists(lookup, built, &table)?;
        Ok((plan, Self { table, first, next }))
    }

    /// Returns the first row at each of these places.
    pub(in crate::exec) fn firsts(&self, places: &[usize]) -> Vec<u32> {
        places.iter().map(|place| self.first[*place]).collect()
    }

    /// Whether each place has at most one row.
    pub(super) fn are_single(&self) -> bool {
        self.next.is_empty()
    }

    /// Returns the row behind `row` at its place.
    pub(in crate::exec) fn next(&self, row: u32) -> u32 {
        self.next.get(row as usize).copied().unwrap_or(NONE)
    }
}

/// Returns row numbers, with NULL for no row.
pub(super) fn optional(rows: Vec<u32>) -> UInt32Array {
    let is_valid = rows.iter().map(|row| *row != NONE).collect::<Vec<bool>>();
    let nulls = NullBuffer::from(is_valid);
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    UInt32Array::new(rows.into(), nulls)
}

/// Returns the number of groups along an axis.
fn count(lookup: &GridLookup, axis: usize) -> usize {
    let selected = lookup.scan.plan().selection().axes()[axis].count();
    match &lookup.groups[axis] {
        AxisGroups::One => 1,
        groups => groups.count(selected) as usize,
    }
}

/// Returns the first row at each place, and per row the next one at the same place.
fn lists(
    lookup: &GridLookup,
    built: &BuildSide,
    table: &GroupTable,
) -> Result<(Vec<u32>, Vec<u32>)> {
    let returns_all = matches!(lookup.kept, ReturnedRows::Matches | ReturnedRows::All);
    // Per axis with keys and number, the part of the place; groups that the table does not have are missing.
    let parts: Vec<Vec<Option<usize>>> = lookup
        .keys
        .iter()
        .map(|keys| {
            let places = table.places_on(keys.axis);
            let mut parts = vec![None; count(lookup, keys.axis)];
            for number in table.groups_on(keys.axis).unwrap_or_default() {
                parts[number as usize] = Some(places[number as usize]);
            }
            parts
        })
        .collect();
    let mut first = filled(NONE, table.len())?;
    let mut next = vec![];
    // From the last row, so that lists are in the order of the rows.
    for row in (0..built.rows.num_rows()).rev() {
        let part = |(parts, numbers): (&Vec<Option<usize>>, &Vec<Option<u32>>)| {
            parts[numbers[row]? as usize]
        };
        let place: Option<usize> = parts.iter().zip(&built.numbers).map(part).sum();
        let Some(head) = place.and_then(|place| first.get_mut(place)) else { continue };
        if *head != NONE && returns_all {
            next.resize(built.rows.num_rows(), NONE);
            next[row] = *head;
        }
        *head = row as u32;
    }
    Ok((first, next))
}
