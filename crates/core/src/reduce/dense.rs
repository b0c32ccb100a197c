//! The reducer of a variable: it shares one pass over each tile between all members.
//!
//! ```text
//!   tile ─▶ elements       as stored; singles if halves; NaN for NULL by validity byte
//!        ─▶ Walk ─▶ batch  ─▶ each member: the cells that count, and their statistics
//!        ─▶ counts         of members without a test: from the extents of the chunk alone
//!   repeated tile ─▶ each member: its cell, times the cells of each group
//! ```

use std::borrow::Cow;

use arrow::datatypes::{Float16Type, Float32Type};

use super::batch::Batch;
use super::bounds::Bounds;
use super::cell::Cell;
use super::cell_number::CellNumber;
use super::group_stats::{GroupStats, RequestedMember, RequestedStats};
use super::grouped_chunk::{ChunkAxis, GroupedChunk};
use super::keep::Keep;
use super::member::{LabelNumbers, Member};
use super::packing::Packing;
use super::reducer::Reducer;
use super::rows::{add_products, each_place};
use super::walk::Walk;
use crate::array::{Element, NumberColumn, for_element_type};
use crate::error::{Error, Result};
use crate::format::{ElementType, Zone, ZoneBound, bound};
use crate::tile::Tile;

/// Returns a reducer for a column over a table of `groups` places, with these members. `None` if the kernels
/// do not support the column's values, or if values may be NaN and have to be compared.
pub fn reducer(
    value: &NumberColumn,
    members: &[RequestedMember],
    groups: usize,
) -> Option<Box<dyn Reducer>> {
    let compares = |member: &RequestedMember| {
        let RequestedStats { min, max, .. } = member.requested;
        min || max || member.cells.any() || !member.range.is_unbounded()
    };
    if value.may_be_nan() && members.iter().any(compares) {
        return None;
    }
    let packing = Packing::try_new(value.form()?);
    if value.has_validity() && (!value.nan_is_null() || packing.is_some()) {
        return None; // no element can stand for NULL
    }
    for_element_type!(
        value.element(),
        T => Dense::<T>::boxed(value, value.fill_as::<T>(), packing, members, groups),
        F16 => {
            let fill = value.fill_as::<Float16Type>().map(f32::from);
            Dense::<Float32Type>::boxed(value, fill, packing, members, groups)
        }
    )
}

/// The members of a variable with elements of one type.
struct Dense<T: Element>
where
    T::Native: Cell,
{
    value: NumberColumn,
    members: Vec<Member<T>>,
    /// Scratch memory for a tile that is converted before it is reduced.
    converted: Vec<T::Native>,
}

impl<T: Element> Dense<T>
where
    T::Native: Cell + Bounds,
{
    fn boxed(
        value: &NumberColumn,
        fill: Option<T::Native>,
        packing: Option<Packing>,
        members: &[RequestedMember],
        groups: usize,
    ) -> Option<Box<dyn Reducer>> {
        if packing.is_some_and(|packing| !packing.is_finite::<T::Native>()) {
            return None; // sums of stored numbers may be finite where sums of values are not
        }
        let (nan_is_null, zeros_are_null) = (value.nan_is_null(), value.zeros_are_null());
        let member =
            |member| Member::new(member, nan_is_null, fill, zeros_are_null, packing, groups);
        let members = members.iter().map(member).collect();
        Some(Box::new(Self { value: value.clone(), members, converted: Vec::new() }))
    }

    /// Returns the tile's elements in the type that is reduced, with NaN for NULL where cells have
    /// validity bytes. They are a view of the tile, unless they have to be changed or are not aligned.
    fn elements<'a>(&mut self, tile: &'a Tile, may_hold_nulls: bool) -> Cow<'a, [T::Native]> {
        let bytes = tile.bytes();
        let missing = tile.validity().filter(|validity| may_hold_nulls && validity.contains(&0));
        let halves = self.value.element() == ElementType::F16;
        if !halves
            && missing.is_none()
            && let Ok(cells) = bytemuck::try_cast_slice(bytes)
        {
            return Cow::Borrowed(cells);
        }
        // Tiles are converted whole, into memory that the next tile reuses.
        let mut converted = std::mem::take(&mut self.converted);
        converted.clear();
        if halves {
            let single =
                |half: &[u8; 2]| bound(&half::f16::from_le_bytes(*half).to_f32().to_le_bytes());
            let halves = bytes.as_chunks::<2>().0.iter();
            converted.extend(halves.map(|half| T::from_bound(single(half))));
        } else {
            let elements = bytes.chunks_exact(size_of::<T::Native>());
            converted.extend(elements.map(|element| T::from_bound(bound(element))));
        }
        if let Some(validity) = missing {
            // Only columns of floats where NaN is NULL get here: `reducer` refuses the others.
            let cells = converted.iter_mut().zip(validity);
            cells.filter(|(_, valid)| **valid == 0).for_each(|(cell, _)| *cell = T::Native::NAN);
        }
        Cow::Owned(converted)
    }

    /// Adds a cell that stands for all cells of `axes`.
    fn add_repeated(&mut self, cell: T::Native, axes: &[ChunkAxis], may_hold_nulls: bool) {
        for member in &mut self.members {
            if member.keep_in(may_hold_nulls).keeps(cell) {
                each_place(axes, 0, 1, &mut |places, cells| {
                    places.for_each(|place| member.add_cells(place, cell, cells));
                });
            }
        }
    }
}

impl<T: Element> Reducer for Dense<T>
where
    T::Native: Cell + Bounds,
{
    fn add(&mut self, chunk: GroupedChunk<'_>, tile: &Tile, may_hold_nulls: bool) -> Result<()> {
        let elements = self.elements(tile, may_hold_nulls);
        let cells = elements.as_ref();
        if let ([cell], true) = (cells, tile.is_repeated()) {
            let cell = *cell;
            self.add_repeated(cell, &chunk.axes(), may_hold_nulls);
            return Ok(());
        }
        if (cells.len() as u64) < chunk.task.cells() {
            return Err(Error::internal("a tile that is smaller than its chunk"));
        }
        let axes = chunk.axes();
        let mut keeps = Vec::with_capacity(self.members.len());
        for member in &mut self.members {
            let keep = member.keep_in(may_hold_nulls);
            if matches!(keep, Keep::All) {
                add_products(&mut member.counts, &axes, 0, 1);
            }
            keeps.push(keep);
        }
        let of_members = |member: &Member<T>| (member.weights.clone(), member.numbers.clone());
        let all: Vec<_> = self.members.iter().map(of_members).collect();
        let labels: Vec<_> = all.iter().map(|it| LabelNumbers::of_chunk(it, chunk)).collect();
        let apart = |axis: usize| {
            let mut weights =
                all.iter().flat_map(|(weights, numbers)| [weights, numbers]).flatten();
            weights.any(|weights| weights.axes[axis].is_some())
        };
        let first = CellNumber::first_of(chunk.task);
        Walk::new(axes, apart).each(|rows, inner| {
            let batch = Batch { cells, rows, inner };
            for ((member, keep), labels) in self.members.iter_mut().zip(&keeps).zip(&labels) {
                member.add(batch, *keep, labels);
                member.cells.add(batch, *keep, first);
            }
        });
        if let Cow::Owned(converted) = elements {
            self.converted = converted;
        }
        Ok(())
    }

    fn is_answered(&self, chunk: GroupedChunk<'_>, zone: &Zone) -> bool {
        let task = chunk.task;
        let finds_nulls = self.members.iter().any(|member| member.requested_cells.null);
        if zone.null_count == task.cells() && !finds_nulls {
            return true;
        }
        // Zone maps hold stored elements, and halves have another type in the states.
        let as_stored = self.value.element() != ElementType::F16;
        let whole = task.rows == task.cells();
        as_stored
            && whole
            && self.members.iter().all(|member| member.is_answered(zone))
            && chunk.only_place().is_some()
    }

    fn add_zone(&mut self, chunk: GroupedChunk<'_>, zone: &Zone) {
        let Some(place) = chunk.only_place() else { return };
        self.members.iter_mut().for_each(|member| member.add_zone(chunk, place, zone));
    }

    fn extremes(&self, place: usize) -> (Option<ZoneBound>, Option<ZoneBound>) {
        self.members.first().map_or((None, None), |member| member.extremes(place))
    }

    fn scratch_bytes(&self) -> usize {
        self.converted.capacity() * size_of::<T::Native>()
    }

    fn finish(self: Box<Self>) -> Result<Vec<GroupStats>> {
        let halves = self.value.element() == ElementType::F16;
        Ok(self.members.into_iter().map(|member| member.finish(halves)).collect())
    }
}
