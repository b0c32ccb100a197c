//! The reducer of the dense kernels: per statistic, an array with one state per group.
//!
//! ```text
//!   tile ─▶ elements       as stored; doubles if packed; singles if halves; NaN for NULL by validity byte
//!        ─▶ counts         += all selected cells, from extents alone
//!        ─▶ Walk ─▶ batch  ─▶ counts −= cells that are NULL or excluded
//!                          ─▶ sums, wide_sums, mins, maxs, spreads: one pass each, if requested
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{Float16Type, Float32Type, Float64Type};

use super::bounds::Bounds;
use super::cell::Cell;
use super::group_stats::{GroupStats, Requested};
use super::grouped_chunk::GroupedChunk;
use super::keep::Keep;
use super::kernel::{Batch, Statistic, all_kept, reduce};
use super::reducer::Reducer;
use super::rows::add_products;
use super::speculate::sum_numbers;
use super::statistic::{Max, Min, Moments, Spread, Sum, WideSum};
use super::subtract::subtract_dropped;
use super::value_range::ValueRange;
use super::walk::Walk;
use crate::array::{Element, Form, NumberColumn, for_element_type};
use crate::error::{Error, Result};
use crate::format::{Bound, ElementType, Zone};
use crate::tile::Tile;

/// Returns a reducer for a column over a table of `groups` places. `None` if the kernels do not support
/// the column's values, or if values may be NaN and have to be compared.
pub fn reducer(
    value: &NumberColumn,
    requested: Requested,
    range: Option<&ValueRange>,
    groups: usize,
) -> Option<Box<dyn Reducer>> {
    if value.may_be_nan() && (requested.min || requested.max || range.is_some()) {
        return None;
    }
    if value.has_validity() && !(value.nan_is_null() && value.form() == Some(Form::Stored)) {
        return None; // no element can stand for NULL
    }
    Some(match value.form()? {
        Form::Stored => for_element_type!(
            value.element(),
            T => Dense::<T>::boxed(value, value.fill_as::<T>(), range, requested, groups),
            F16 => {
                let fill = value.fill_as::<Float16Type>().map(f32::from);
                Dense::<Float32Type>::boxed(value, fill, range, requested, groups)
            }
        ),
        // These values are NaN exactly where they are NULL.
        Form::Unpacked => Dense::<Float64Type>::boxed(value, None, range, requested, groups),
    })
}

/// The number of cells that are unpacked at a time, so that the Arrow array in between stays in cache.
const PIECE_CELLS: usize = 8192;

/// The states of groups for elements of one type.
struct Dense<T: Element>
where
    T::Native: Cell,
{
    value: NumberColumn,
    /// The test for cells that are neither NULL nor excluded by the predicate.
    keep: Keep<T::Native>,
    /// Whether a value predicate applies.
    ranged: bool,
    requested: Requested,
    // The states, indexed by the place of the group. Statistics that are not requested have no states;
    // counts are always kept, because they decide which groups are NULL.
    counts: Vec<u64>,
    sums: Vec<f64>,
    wide_sums: Vec<<T::Native as Cell>::Wide>,
    mins: Vec<T::Native>,
    maxs: Vec<T::Native>,
    spreads: Vec<Moments>,
    /// Scratch memory for speculative sums, discarded on NaN.
    aside: Vec<f64>,
    /// Scratch memory for counts of cells that are NULL or excluded.
    dropped: Vec<u32>,
    /// Scratch memory for a tile that is converted before it is reduced.
    converted: Vec<u8>,
}

impl<T: Element> Dense<T>
where
    T::Native: Cell + Bounds,
{
    fn boxed(
        value: &NumberColumn,
        fill: Option<T::Native>,
        range: Option<&ValueRange>,
        requested: Requested,
        groups: usize,
    ) -> Box<dyn Reducer> {
        let nan_is_null = value.form() == Some(Form::Unpacked) || value.nan_is_null();
        let places = |is_requested: bool| if is_requested { groups } else { 0 };
        Box::new(Self {
            value: value.clone(),
            keep: Keep::new(nan_is_null, fill, range),
            ranged: range.is_some(),
            requested,
            counts: vec![0; groups],
            sums: vec![0.0; places(requested.sum)],
            wide_sums: vec![T::Native::ZERO; places(requested.wide_sum)],
            mins: vec![T::Native::GREATEST; places(requested.min)],
            maxs: vec![T::Native::LEAST; places(requested.max)],
            spreads: vec![Moments::default(); places(requested.spread)],
            aside: Vec::new(),
            dropped: Vec::new(),
            converted: Vec::new(),
        })
    }

    /// Adds the cells of `batch` that count to every state except `counts`. These already include all
    /// cells of the chunk, so the cells that do not count are subtracted.
    fn add_batch(&mut self, batch: Batch<'_, T::Native>, may_hold_nulls: bool) {
        match self.keep {
            Keep::Nothing => {}
            Keep::All => self.add_all(batch, false),
            Keep::NotNan if !may_hold_nulls => self.add_all(batch, false),
            Keep::NotNan => {
                #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
                let keep = |cell| cell == cell;
                // One pass sums and looks for NaN. Only with NaN do the other statistics need a test per
                // cell.
                let summed = self.requested.sum;
                if summed && sum_numbers(&mut self.sums, batch, &mut self.aside) {
                    self.add_all(batch, true);
                } else {
                    self.add_kept(batch, keep, summed);
                }
            }
            Keep::Within { low, high, fill: None, .. } => {
                // Comparisons with NaN are false, so NaN is left out too.
                self.add_kept(batch, |cell| (low <= cell) & (cell <= high), false);
            }
            Keep::Within { low, high, fill: Some(fill), nan } => {
                #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
                let keep = |cell: T::Native| {
                    // `&` and `|` do not branch, so the loop vectorises.
                    let inside = ((low <= cell) & (cell <= high)) | (nan & (cell != cell));
                    inside & !cell.same_bits(fill)
                };
                self.add_kept(batch, keep, false);
            }
        }
    }

    /// Adds the cells that `keep` accepts. With `summed`, `sums` already include them. Most batches have
    /// nothing to leave out, so that is checked first.
    fn add_kept(
        &mut self,
        batch: Batch<'_, T::Native>,
        keep: impl Fn(T::Native) -> bool + Copy,
        summed: bool,
    ) {
        if all_kept(batch, keep) {
            self.add_all(batch, summed);
            return;
        }
        subtract_dropped(&mut self.counts, batch, keep, &mut self.dropped);
        self.fold(batch, Some(keep), summed);
    }

    /// Adds every cell. With `summed`, `sums` already include them.
    fn add_all(&mut self, batch: Batch<'_, T::Native>, summed: bool) {
        self.fold::<fn(T::Native) -> bool>(batch, None, summed);
    }

    /// Adds the batch to each requested statistic in turn, with the test `keep` if there is one.
    fn fold<K: Fn(T::Native) -> bool + Copy>(
        &mut self,
        batch: Batch<'_, T::Native>,
        keep: Option<K>,
        summed: bool,
    ) {
        if self.requested.sum && !summed {
            reduce::<T::Native, Sum, _>(&mut self.sums, batch, keep);
        }
        if self.requested.wide_sum {
            reduce::<T::Native, WideSum, _>(&mut self.wide_sums, batch, keep);
        }
        if self.requested.min {
            reduce::<T::Native, Min, _>(&mut self.mins, batch, keep);
        }
        if self.requested.max {
            reduce::<T::Native, Max, _>(&mut self.maxs, batch, keep);
        }
        if self.requested.spread {
            reduce::<T::Native, Spread, _>(&mut self.spreads, batch, keep);
        }
    }

    /// Returns the tile's elements in the type that is reduced, with NaN for NULL where cells have
    /// validity bytes.
    fn elements<'a>(&mut self, tile: &'a Tile, may_hold_nulls: bool) -> Result<Cow<'a, [u8]>> {
        let bytes = tile.bytes();
        let unpacked = self.value.form() == Some(Form::Unpacked);
        let missing = tile.validity().filter(|validity| may_hold_nulls && validity.contains(&0));
        let halves = self.value.element() == ElementType::F16;
        if !unpacked && !halves && missing.is_none() {
            return Ok(Cow::Borrowed(bytes));
        }
        // Tiles are converted whole, into memory that the next tile reuses.
        let mut converted = std::mem::take(&mut self.converted);
        converted.clear();
        if unpacked {
            let element = self.value.element().size() as usize;
            for piece in bytes.chunks(PIECE_CELLS * element) {
                let piece = Buffer::from_slice_ref(piece);
                let numbers = self.value.decode(piece, None, may_hold_nulls)?;
                let numbers = numbers.as_primitive::<Float64Type>().iter();
                converted
                    .extend(numbers.flat_map(|number| number.unwrap_or(f64::NAN).to_le_bytes()));
            }
        } else if halves {
            let halves = bytes.as_chunks::<2>().0.iter();
            converted.extend(
                halves.flat_map(|half| half::f16::from_le_bytes(*half).to_f32().to_le_bytes()),
            );
        } else {
            converted.extend_from_slice(bytes);
        }
        if let Some(validity) = missing {
            // Only columns of floats where NaN is NULL get here: `reducer` refuses the others.
            let size = size_of::<T::Native>();
            let nan = T::parse("NaN").map(T::to_bound).unwrap_or_default();
            let cells = converted.chunks_exact_mut(size).zip(validity);
            cells.filter(|(_, valid)| **valid == 0).for_each(|(cell, _)| {
                cell.copy_from_slice(&nan[..size]);
            });
        }
        Ok(Cow::Owned(converted))
    }

    /// Decodes an element of a zone.
    fn element(bound: &Bound) -> T::Native {
        T::from_bound(*bound)
    }
}

impl<T: Element> Reducer for Dense<T>
where
    T::Native: Cell + Bounds,
{
    fn add(&mut self, chunk: GroupedChunk<'_>, tile: &Tile, may_hold_nulls: bool) -> Result<()> {
        let elements = self.elements(tile, may_hold_nulls)?;
        let cells = T::Native::cells(&elements);
        if (cells.len() as u64) < chunk.task.cells() {
            return Err(Error::internal("a tile that is smaller than its chunk"));
        }
        let segments = chunk.segments();
        if !matches!(self.keep, Keep::Nothing) {
            add_products(&mut self.counts, &segments, 0, 1);
        }
        Walk::new(chunk.task, segments)
            .each(|rows, inner| self.add_batch(Batch { cells, rows, inner }, may_hold_nulls));
        if let Cow::Owned(converted) = elements {
            self.converted = converted;
        }
        Ok(())
    }

    fn is_answered(&self, chunk: GroupedChunk<'_>, zone: &Zone) -> bool {
        let task = chunk.task;
        if zone.null_count == task.cells() {
            return true;
        }
        let Requested { sum, wide_sum, min, max, spread } = self.requested;
        // The zone has bounds if extremes are requested, and a sum if sums are. No zone has a spread.
        let is_stored =
            zone.bounds.is_some() | !(min | max) && zone.sum.is_some() | !(sum | wide_sum);
        // Zone maps hold stored elements. Packed values would have to be computed from them, and halves
        // have another type in the states. A range may exclude some of the cells that a zone covers.
        let as_stored = self.value.form() == Some(Form::Stored)
            && self.value.element() != ElementType::F16
            && !self.ranged;
        let whole = task.rows == task.cells();
        as_stored && is_stored && !spread && whole && chunk.only_place().is_some()
    }

    fn add_zone(&mut self, chunk: GroupedChunk<'_>, zone: &Zone) {
        let Some(place) = chunk.only_place() else { return };
        self.counts[place] += chunk.task.cells() - zone.null_count;
        if let Some((least, greatest)) = &zone.bounds {
            if self.requested.min {
                <Min as Statistic<T::Native>>::add(&mut self.mins[place], Self::element(least));
            }
            if self.requested.max {
                <Max as Statistic<T::Native>>::add(&mut self.maxs[place], Self::element(greatest));
            }
        }
        if let Some(sum) = zone.sum {
            if self.requested.sum {
                self.sums[place] += sum.to_f64();
            }
            if self.requested.wide_sum {
                let total = &mut self.wide_sums[place];
                *total = T::Native::add(*total, T::Native::wide_sum(sum));
            }
        }
    }

    fn extremes(&self, place: usize) -> (Option<Bound>, Option<Bound>) {
        // Without a value, the states still hold the neutral elements.
        let found = self.counts[place] > 0;
        let of = |states: &[T::Native], is_requested: bool| {
            (found && is_requested).then(|| T::to_bound(states[place]))
        };
        (of(&self.mins, self.requested.min), of(&self.maxs, self.requested.max))
    }

    fn scratch_bytes(&self) -> usize {
        self.converted.capacity()
    }

    fn finish(self: Box<Self>) -> GroupStats {
        let this = *self;
        let Requested { sum, wide_sum, min, max, spread } = this.requested;
        let halves = this.value.element() == ElementType::F16;
        GroupStats {
            counts: this.counts,
            sums: sum.then_some(this.sums),
            wide_sums: wide_sum.then(|| T::Native::wide_array(this.wide_sums)),
            mins: min.then(|| extremes::<T>(this.mins, halves)),
            maxs: max.then(|| extremes::<T>(this.maxs, halves)),
            spreads: spread.then_some(this.spreads),
        }
    }
}

/// Returns extremes in the column's type; with `halves`, in half precision.
fn extremes<T: Element>(values: Vec<T::Native>, halves: bool) -> ArrayRef {
    let array = PrimitiveArray::<T>::new(ScalarBuffer::from(values), None);
    match array.as_any().downcast_ref::<PrimitiveArray<Float32Type>>() {
        Some(singles) if halves => Arc::new(singles.unary::<_, Float16Type>(half::f16::from_f32)),
        _ => Arc::new(array),
    }
}
