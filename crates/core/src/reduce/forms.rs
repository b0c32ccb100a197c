//! The reducer of a variable that files store in several forms, such as packed integers with their own factors.
//!
//! ```text
//!   chunks of 2023.nc ──▶ reducer of form 1, of places 0 … 364     ─┐ at the first chunk of another form, or of other
//!   chunks of 2024.nc ──▶ reducer of form 2, of places 365 … 730   ─┴▶ groups: added to the statistics of all groups
//! ```
//!
//! Each reducer works on the stored elements of its form, so packed integers are not unpacked cell by cell. Chunks of a file
//! follow one another, so forms change about once per file. A reducer has the groups of its chunks only. Otherwise each of a
//! thousand daily files would add up the groups of all days.

use std::ops::Range;

use super::cell_test::TestedTile;
use super::dense::reducer;
use super::form_stats::FormStats;
use super::group_stats::{GroupStats, RequestedMember};
use super::grouped_chunk::GroupedChunk;
use super::reducer::Reducer;
use crate::array::NumberColumn;
use crate::error::{Error, Result};
use crate::format::{Zone, ZoneBound};
use crate::tile::Tile;

/// Returns a reducer for a variable whose forms are `columns`, and whose values are of the type of the first; see
/// [`reducer`](super::reducer) for one form. `None` also if a condition compares values that a form has in another type.
pub fn reducer_of_forms(
    columns: &[&NumberColumn],
    members: &[RequestedMember],
    groups: usize,
) -> Option<Box<dyn Reducer>> {
    let (first, others) = columns.split_first()?;
    if others.is_empty() {
        return reducer(first, members, groups);
    }
    let data_type = first.data_type();
    let is_of_type = |column: &&&NumberColumn| column.data_type() == data_type;
    let compares = members.iter().any(|member| !member.range.is_unbounded());
    if compares && !others.iter().all(|column| is_of_type(&column)) {
        return None;
    }
    // Makes reducers without groups, only to learn whether the kernels support the columns.
    columns.iter().map(|column| reducer(column, members, 0)).collect::<Option<Vec<_>>>()?;
    let columns: Vec<NumberColumn> = columns.iter().map(|column| (*column).clone()).collect();
    let merged = members.iter().map(|member| FormStats::try_new(member, &data_type, groups));
    let (members, merged) = (members.to_vec(), merged.collect::<Option<_>>()?);
    Some(Box::new(OfForms { columns, members, current: None, merged }))
}

/// The reducers of several forms, one after the other.
struct OfForms {
    columns: Vec<NumberColumn>,
    members: Vec<RequestedMember>,
    /// The reducer of the latest chunks.
    current: Option<Current>,
    /// The statistics of the reducers before, per member.
    merged: Vec<FormStats>,
}

/// The reducer of chunks of one form.
struct Current {
    form: u32,
    /// The axis of the chunks from which the start of `places` is.
    axis: usize,
    /// The places of its groups.
    places: Range<usize>,
    reducer: Box<dyn Reducer>,
}

impl Current {
    /// Whether the groups of a chunk of this form are among its own.
    fn has(&self, form: u32, axis: usize, places: &Range<usize>) -> bool {
        let begins =
            places.start >= self.places.start && (axis == self.axis || self.places.start == 0);
        self.form == form && begins && places.end <= self.places.end
    }
}

impl OfForms {
    /// Returns the reducer of a form for groups at these places.
    fn of_form(&mut self, form: u32, axis: usize, places: Range<usize>) -> Result<&mut Current> {
        let missing = || Error::internal("a form without a reducer");
        if !self.current.as_ref().is_some_and(|it| it.has(form, axis, &places)) {
            self.merge()?;
            let column = self.columns.get(form as usize).ok_or_else(missing)?;
            let reducer = reducer(column, &self.members, places.len()).ok_or_else(missing)?;
            self.current = Some(Current { form, axis, places, reducer });
        }
        self.current.as_mut().ok_or_else(missing)
    }

    /// Adds the statistics of the current reducer to those of the reducers before.
    fn merge(&mut self) -> Result<()> {
        let Some(Current { places, reducer, .. }) = self.current.take() else { return Ok(()) };
        let finished = reducer.finish()?.into_iter();
        self.merged.iter_mut().zip(finished).try_for_each(|(into, more)| into.add(&places, more))
    }
}

impl Reducer for OfForms {
    fn add(
        &mut self,
        chunk: GroupedChunk<'_>,
        tile: &Tile,
        may_hold_nulls: bool,
        tests: &[TestedTile<'_>],
    ) -> Result<()> {
        let (axis, places) = chunk.span();
        let current = self.of_form(tile.form(), axis, places)?;
        let chunk = chunk.at_place((current.axis, current.places.start));
        current.reducer.add(chunk, tile, may_hold_nulls, tests)
    }

    fn is_answered(&self, _: GroupedChunk<'_>, _: &Zone) -> bool {
        false
    }

    fn add_zone(&mut self, _: GroupedChunk<'_>, _: &Zone) {}

    fn extremes(&self, _: usize) -> (Option<ZoneBound>, Option<ZoneBound>) {
        (None, None)
    }

    fn scratch_bytes(&self) -> usize {
        // The states of all groups are counted without those of the current reducer.
        let of_group: u64 = self.members.iter().map(RequestedMember::bytes_per_group).sum();
        self.current.as_ref().map_or(0, |current| {
            current.reducer.scratch_bytes() + of_group as usize * current.places.len()
        })
    }

    fn finish(mut self: Box<Self>) -> Result<Vec<GroupStats>> {
        self.merge()?;
        self.merged.into_iter().map(FormStats::finish).collect()
    }
}
