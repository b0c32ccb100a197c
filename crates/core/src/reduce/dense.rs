//! The reducer of a variable: it shares one pass over each tile between all members.
//!
//! ```text
//!   tile ─▶ elements       as stored; singles if halves; NaN for NULL by validity byte
//!        ─▶ Walk ─▶ batch  ─▶ each member: the cells that count, and their statistics
//!                 tests of other variables ─▶ masked cells of the batch, if a member has any
//!        ─▶ counts         of members without a test: from the extents of the chunk alone
//!   repeated tile ─▶ each member: its cell, times the cells of each group
//! ```

use arrow::datatypes::Float32Type;

use super::bounds::Bounds;
use super::cell::Cell;
use super::cell_number::CellNumber;
use super::cell_test::TestedTile;
use super::elements::{Elements, Stored};
use super::group_stats::{GroupStats, RequestedMember, RequestedStats};
use super::grouped_chunk::{ChunkAxis, GroupedChunk};
use super::keep::Keep;
use super::masks::MaskedCells;
use super::member::{LabelNumbers, Member};
use super::reducer::Reducer;
use super::rows::{add_products, each_place};
use super::walk::Walk;
use crate::array::{Element, NumberColumn, for_element_type};
use crate::error::{Error, Result};
use crate::format::{ElementType, Zone, ZoneBound};
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
    for_element_type!(
        value.element(),
        T => Dense::<T>::boxed(Stored::of(value)?, members, groups),
        F16 => Dense::<Float32Type>::boxed(Stored::of_halves(value)?, members, groups)
    )
}

/// The members of a variable with elements of one type.
struct Dense<T: Element>
where
    T::Native: Cell,
{
    value: NumberColumn,
    members: Vec<Member<T>>,
    elements: Elements<T>,
    masks: MaskedCells<T::Native>,
}

impl<T: Element> Dense<T>
where
    T::Native: Cell + Bounds,
{
    fn boxed(
        stored: Stored<T>,
        members: &[RequestedMember],
        groups: usize,
    ) -> Option<Box<dyn Reducer>> {
        let members = members.iter().map(|member| Member::try_new(member, &stored, groups));
        let (members, elements) = (members.collect::<Option<_>>()?, Elements::new(&stored.value));
        let masks = MaskedCells::new();
        Some(Box::new(Self { value: stored.value, members, elements, masks }))
    }

    /// Adds a cell that stands for all cells of `axes`.
    fn add_repeated(
        members: &mut [Member<T>],
        cell: T::Native,
        axes: &[ChunkAxis],
        may_hold_nulls: bool,
    ) {
        for member in members {
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
    fn add(
        &mut self,
        chunk: GroupedChunk<'_>,
        tile: &Tile,
        may_hold_nulls: bool,
        tests: &[TestedTile<'_>],
    ) -> Result<()> {
        if tile.is_repeated()
            && let [cell] = self.elements.of_tile(tile, may_hold_nulls)
        {
            let cell = T::Native::from_bytes(*cell);
            Self::add_repeated(&mut self.members, cell, &chunk.axes(), may_hold_nulls);
            return Ok(());
        }
        let cells = self.elements.open(tile, may_hold_nulls);
        let is_small = |cells: usize| (cells as u64) < chunk.task.cells();
        if is_small(cells.len()) || tests.iter().any(|tile| is_small(tile.cells())) {
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
            let batch = self.elements.batch(&cells, rows, inner);
            self.masks.begin();
            for ((member, keep), labels) in self.members.iter_mut().zip(&keeps).zip(&labels) {
                member.add_tested(batch, *keep, labels, first, (&mut self.masks, tests));
            }
        });
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
        self.elements.scratch_bytes() + self.masks.scratch_bytes()
    }

    fn finish(self: Box<Self>) -> Result<Vec<GroupStats>> {
        let halves = self.value.element() == ElementType::F16;
        Ok(self.members.into_iter().map(|member| member.finish(halves)).collect())
    }
}
