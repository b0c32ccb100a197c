//! The reducer of a variable that files store in several forms, such as packed integers with their own factors.
//!
//! ```text
//!   chunks of 2023.nc ──▶ reducer of form 1 ─┐ at the first chunk of another form: statistics as values
//!   chunks of 2024.nc ──▶ reducer of form 2 ─┴▶ merged per group
//! ```
//!
//! Each reducer works on the stored elements of its form, so packed integers are not unpacked cell by cell. Chunks of a file
//! follow one another, so forms change about once per file.

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::{gt, lt};
use arrow::compute::kernels::numeric::add_wrapping;
use arrow::compute::kernels::zip::zip;
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::dense::reducer;
use super::group_stats::{GroupStats, RequestedMember};
use super::grouped_chunk::GroupedChunk;
use super::reducer::Reducer;
use crate::array::{NumberColumn, failed_to};
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
    Some(Box::new(OfForms {
        columns: columns.iter().map(|column| (*column).clone()).collect(),
        members: members.to_vec(),
        groups,
        data_type,
        current: None,
        merged: None,
    }))
}

/// The reducers of several forms, one after the other.
struct OfForms {
    columns: Vec<NumberColumn>,
    members: Vec<RequestedMember>,
    groups: usize,
    /// The type of the values.
    data_type: DataType,
    /// The form of the latest chunk, and its reducer.
    current: Option<(u32, Box<dyn Reducer>)>,
    /// The statistics of the forms before, per member.
    merged: Option<Vec<GroupStats>>,
}

impl OfForms {
    /// Returns the reducer of a form.
    fn of_form(&mut self, form: u32) -> Result<&mut Box<dyn Reducer>> {
        if self.current.as_ref().is_none_or(|(current, _)| *current != form) {
            self.merge()?;
            let column = self.columns.get(form as usize);
            let made = column.and_then(|column| reducer(column, &self.members, self.groups));
            let made = made.ok_or_else(|| Error::internal("a form without a reducer"))?;
            self.current = Some((form, made));
        }
        let current = self.current.as_mut().map(|(_, reducer)| reducer);
        current.ok_or_else(|| Error::internal("a form without a reducer"))
    }

    /// Merges the statistics of the current form with those of the forms before.
    fn merge(&mut self) -> Result<()> {
        let Some((_, reducer)) = self.current.take() else { return Ok(()) };
        let finished = reducer.finish()?;
        let finished = finished.into_iter().map(|stats| in_type(stats, &self.data_type));
        let finished: Vec<GroupStats> = finished.collect::<Result<_>>()?;
        let Some(merged) = &mut self.merged else {
            self.merged = Some(finished);
            return Ok(());
        };
        merged.iter_mut().zip(finished).try_for_each(|(into, of_form)| merge(into, of_form))
    }
}

impl Reducer for OfForms {
    fn add(&mut self, chunk: GroupedChunk<'_>, tile: &Tile, may_hold_nulls: bool) -> Result<()> {
        self.of_form(tile.form())?.add(chunk, tile, may_hold_nulls)
    }

    fn is_answered(&self, _: GroupedChunk<'_>, _: &Zone) -> bool {
        false
    }

    fn add_zone(&mut self, _: GroupedChunk<'_>, _: &Zone) {}

    fn extremes(&self, _: usize) -> (Option<ZoneBound>, Option<ZoneBound>) {
        (None, None)
    }

    fn scratch_bytes(&self) -> usize {
        let of_group: u64 = self.members.iter().map(RequestedMember::bytes_per_group).sum();
        let merged = if self.merged.is_some() { of_group as usize * self.groups } else { 0 };
        merged + self.current.as_ref().map_or(0, |(_, reducer)| reducer.scratch_bytes())
    }

    fn finish(mut self: Box<Self>) -> Result<Vec<GroupStats>> {
        if self.merged.is_none() && self.current.is_none() {
            self.of_form(0)?;
        }
        self.merge()?;
        self.merged.ok_or_else(|| Error::internal("a reducer without statistics"))
    }
}

/// Returns the statistics with values of this type, which holds them all.
fn in_type(mut stats: GroupStats, data_type: &DataType) -> Result<GroupStats> {
    let widened = |values: Option<ArrayRef>, to: &DataType| {
        let cast = |values: ArrayRef| cast(&values, to).map_err(failed_to("widen numbers"));
        values.map(cast).transpose()
    };
    stats.mins = widened(stats.mins.take(), data_type)?;
    stats.maxs = widened(stats.maxs.take(), data_type)?;
    let sums = match data_type.is_unsigned_integer() {
        true => DataType::UInt64,
        false => DataType::Int64,
    };
    stats.wide_sums = widened(stats.wide_sums.take(), &sums)?;
    Ok(stats)
}

/// Adds the statistics of more values.
fn merge(into: &mut GroupStats, more: GroupStats) -> Result<()> {
    let merge_arrays = |a: Option<ArrayRef>, b: Option<ArrayRef>, pick: Pick<'_>| match (a, b) {
        (Some(a), Some(b)) => pick(&a, &b).map(Some),
        _ => Ok(None),
    };
    let counts = (into.counts.clone(), &more.counts);
    let least = |a: &ArrayRef, b: &ArrayRef| extreme(a, b, &counts, true);
    let greatest = |a: &ArrayRef, b: &ArrayRef| extreme(a, b, &counts, false);
    into.mins = merge_arrays(into.mins.take(), more.mins, &least)?;
    into.maxs = merge_arrays(into.maxs.take(), more.maxs, &greatest)?;
    let sum = |a: &ArrayRef, b: &ArrayRef| add_wrapping(a, b).map_err(failed_to("add numbers"));
    into.wide_sums = merge_arrays(into.wide_sums.take(), more.wide_sums, &sum)?;
    let add = |into: &mut Option<Vec<f64>>, more: Option<Vec<f64>>| {
        let pairs = into.iter_mut().flatten().zip(more.into_iter().flatten());
        pairs.for_each(|(into, more)| *into += more);
    };
    add(&mut into.sums, more.sums);
    for (into, more) in into.spreads.iter_mut().flatten().zip(more.spreads.into_iter().flatten()) {
        into.merge(more);
    }
    if let (Some(into), Some(more)) = (&mut into.weighted, more.weighted) {
        into.sums.iter_mut().zip(more.sums).for_each(|(into, more)| *into += more);
        into.weights.iter_mut().zip(more.weights).for_each(|(into, more)| *into += more);
    }
    into.counts.iter_mut().zip(more.counts).for_each(|(into, more)| *into += more);
    Ok(())
}

/// Merges two arrays of a statistic.
type Pick<'a> = &'a dyn Fn(&ArrayRef, &ArrayRef) -> Result<ArrayRef>;

/// Returns the least, or the greatest, of two values per group. Values of groups without any do not count.
fn extreme(
    a: &ArrayRef,
    b: &ArrayRef,
    (of_a, of_b): &(Vec<u64>, &Vec<u64>),
    is_least: bool,
) -> Result<ArrayRef> {
    let failed = failed_to("compare numbers");
    let better = if is_least { lt(b, a) } else { gt(b, a) }.map_err(&failed)?;
    let takes_b = |at: usize| of_b[at] > 0 && (of_a[at] == 0 || better.value(at));
    let mask = BooleanBuffer::collect_bool(a.len(), takes_b).into();
    zip(&mask, b, a).map_err(&failed)
}
