//! [`Matches`]: the rows at each place of a partition's table.
//!
//! ```text
//!   place    0   1   2   3            rows with the same keys are a list:
//!   first    4   7   ·   0            next of row 0 is 3, next of 3 is none
//! ```

use arrow::array::UInt32Array;
use arrow::buffer::NullBuffer;
use datafusion::error::Result;

use super::built::Built;
use super::grid_lookup::{GridLookup, Kept};
use crate::exec::reduce::elements;
use crate::plan::ScanPlan;
use crate::reduce::{AxisGroups, GroupTable};

/// No row.
const NONE: u32 = u32::MAX;

/// The rows of the other side by place.
pub(super) struct Matches {
    /// The places of cells.
    pub(super) table: GroupTable,
    /// The first row at each place.
    first: Vec<u32>,
    /// Per row, the next one at the same place; empty if all places have at most one.
    next: Vec<u32>,
    /// The most rows at one place.
    most: usize,
}

/// The rows of a join: of the array, and of the other side. NULL stands for no match.
pub(super) enum Rows {
    /// All rows of the block, with their matches.
    All(UInt32Array),
    /// These rows of the block, with their matches.
    Some(UInt32Array, UInt32Array),
}

impl Matches {
    /// Puts the rows into their places in a partition of the join. Returns also the plan of the partition, without labels that
    /// have no match if the join returns only matches.
    pub(super) fn of(
        lookup: &GridLookup,
        built: &Built,
        partition: usize,
    ) -> Result<(ScanPlan, Self)> {
        let whole = lookup.scan.plan();
        let selection = whole.selection().axes();
        let mut plan = whole.partition(partition);
        if matches!(lookup.kept, Kept::Matches | Kept::WithMatch) {
            for (keys, numbers) in lookup.keys.iter().zip(&built.numbers) {
                let axis = keys.axis;
                let mut needed = vec![false; count(lookup, axis)];
                numbers.iter().flatten().for_each(|number| needed[*number as usize] = true);
                let wanted = elements(&needed, &lookup.groups[axis], &selection[axis]);
                plan = plan.restricted(axis, &wanted);
            }
        }
        let table = GroupTable::new(&plan, 0, selection, &lookup.groups)?;
        let (first, next) = lists(lookup, built, &table);
        let most = if next.is_empty() { 1 } else { longest(&first, &next) };
        Ok((plan, Self { table, first, next, most }))
    }

    /// Returns the most rows at one place.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Returns the bytes that the table takes.
    pub(super) fn size(&self) -> usize {
        (self.first.len() + self.next.len()) * size_of::<u32>()
    }

    /// Returns the rows of a block whose cells have these places.
    pub(super) fn rows(&self, places: &[usize], kept: Kept) -> Rows {
        let firsts = places.iter().map(|place| self.first[*place]);
        let is_simple = match kept {
            Kept::Matches | Kept::All => self.next.is_empty(),
            Kept::WithMatch | Kept::WithoutMatch => false,
        };
        if is_simple {
            let all: Vec<u32> = firsts.clone().collect();
            // This loop has no branch per row.
            let missing = all.iter().map(|row| usize::from(*row == NONE)).sum::<usize>();
            match (missing, kept) {
                (0, _) => return Rows::All(all.into()),
                (_, Kept::All) => return Rows::All(optional(all)),
                _ => {}
            }
        }
        let (mut own, mut built) = (vec![], vec![]);
        for (row, mut found) in (0..).zip(firsts) {
            match (kept, found) {
                (Kept::WithMatch, NONE) | (Kept::Matches, NONE) => {}
                (Kept::WithMatch, _) | (Kept::WithoutMatch | Kept::All, NONE) => {
                    own.push(row);
                    built.push(found);
                }
                (Kept::WithoutMatch, _) => {}
                (Kept::Matches | Kept::All, _) => {
                    while found != NONE {
                        own.push(row);
                        built.push(found);
                        found = self.next.get(found as usize).copied().unwrap_or(NONE);
                    }
                }
            }
        }
        Rows::Some(UInt32Array::from(own), optional(built))
    }
}

/// Returns the length of the longest list.
fn longest(first: &[u32], next: &[u32]) -> usize {
    let follow = |row: u32| next.get(row as usize).copied().filter(|row| *row != NONE);
    let lists = first.iter().filter(|row| **row != NONE);
    let len = |first: &u32| std::iter::successors(Some(*first), |row| follow(*row)).count();
    lists.map(len).max().unwrap_or(1)
}

/// Returns row numbers, with NULL for no row.
fn optional(rows: Vec<u32>) -> UInt32Array {
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
fn lists(lookup: &GridLookup, built: &Built, table: &GroupTable) -> (Vec<u32>, Vec<u32>) {
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
    let mut first = vec![NONE; table.len()];
    let mut next = vec![];
    // From the last row, so that lists are in the order of the rows.
    for row in (0..built.rows.num_rows()).rev() {
        let part = |(parts, numbers): (&Vec<Option<usize>>, &Vec<Option<u32>>)| {
            parts[numbers[row]? as usize]
        };
        let place: Option<usize> = parts.iter().zip(&built.numbers).map(part).sum();
        let Some(head) = place.and_then(|place| first.get_mut(place)) else { continue };
        if *head != NONE {
            next.resize(built.rows.num_rows(), NONE);
            next[row] = *head;
        }
        *head = row as u32;
    }
    (first, next)
}
