//! The table of states: one place per group, one array per statistic.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

use super::bounds::Bounds;
use super::cell::Cell;
use super::count::uncount;
use super::keep::{Keep, ValueRange};
use super::kernel::{Batch, Segment, Statistic, all_kept, reduce};
use super::optimistic::sum_numbers;
use super::places::GroupTable;
use super::rows::add_products;
use super::statistic::{Max, Min, Moments, Spread, Sum, WideSum};
use super::walk::Walk;
use crate::array::{Element, Form, NumberColumn};
use crate::error::{Error, Result};
use crate::format::{Bound, ElementType, Zone};
use crate::grid::{ChunkGrid, ChunkTask};
use crate::tile::Tile;

/// What is to be known of every group. The count of its values always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The sum in doubles.
    pub sum: bool,
    /// The wrapping sum of integers.
    pub wide_sum: bool,
    /// The least value.
    pub min: bool,
    /// The greatest value.
    pub max: bool,
    /// Mean and squared distances from it.
    pub spread: bool,
}

impl Wanted {
    /// Memory for a group, in bytes.
    pub fn bytes_per_group(self) -> u64 {
        let words = |wanted: bool, count: u64| if wanted { 8 * count } else { 0 };
        8 + words(self.sum, 1)
            + words(self.wide_sum, 1)
            + words(self.min, 1)
            + words(self.max, 1)
            + words(self.spread, 3)
    }
}

/// What was found out about each group; arrays of one element per place of the table. Those not
/// wanted are absent.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Values that count: neither NULL nor excluded by the predicate.
    pub counts: Vec<u64>,
    /// Their sums as doubles.
    pub sums: Option<Vec<f64>>,
    /// Their sums as integers: `Int64`, or `UInt64` for unsigned elements.
    pub wide_sums: Option<ArrayRef>,
    /// The least; of the column's type, meaningless where the count is 0.
    pub mins: Option<ArrayRef>,
    /// The greatest; of the column's type, meaningless where the count is 0.
    pub maxs: Option<ArrayRef>,
    /// Means and sums of squared distances from them.
    pub spreads: Option<Vec<Moments>>,
}

/// Folds chunks into the states of groups; one per partition.
pub trait Reducer: Send {
    /// Adds the selected cells of a chunk; `tile` holds all of it.
    ///
    /// # Errors
    /// `Internal` if the tile is smaller than its chunk.
    fn add(&mut self, chunk: Chunk<'_>, tile: &Tile, may_hold_nulls: bool) -> Result<()>;

    /// Whether `zone` says all that is wanted of a chunk: it holds no value, or the chunk is selected
    /// whole, lies in one group, and what is wanted was noted.
    fn is_answered(&self, chunk: Chunk<'_>, zone: &Zone) -> bool;

    /// Adds what `zone` says of a chunk that it answers.
    fn add_zone(&mut self, chunk: Chunk<'_>, zone: &Zone);

    /// The least and the greatest value so far of the group at `place`, as far as they are wanted and
    /// there is a value.
    fn extremes(&self, place: usize) -> (Option<Bound>, Option<Bound>);

    /// Bytes held apart from the states: a chunk in another form.
    fn scratch_bytes(&self) -> usize;

    /// The states of all groups.
    fn finish(self: Box<Self>) -> Found;
}

/// A chunk and where its cells belong.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Where the groups are.
    pub table: &'a GroupTable,
    /// How the array is cut.
    pub grid: &'a ChunkGrid,
    /// The chunk and the cells wanted of it.
    pub task: &'a ChunkTask,
}

impl Chunk<'_> {
    /// Per axis the cells wanted and their groups.
    pub(super) fn segments(&self) -> Vec<Vec<Segment>> {
        let segments = |axis| self.table.segments(axis, self.grid, self.task);
        (0..self.task.selection.len()).map(segments).collect()
    }
}

/// A reducer for a column over a table of `groups` places, or `None` if the kernels do not know its
/// values, or if they may be NaN where an order is needed.
pub fn reducer(
    value: &NumberColumn,
    wanted: Wanted,
    range: Option<&ValueRange>,
    groups: usize,
) -> Option<Box<dyn Reducer>> {
    if value.may_be_nan() && (wanted.min || wanted.max || range.is_some()) {
        return None;
    }
    if value.has_validity() && !(value.nan_is_null() && value.form() == Some(Form::Stored)) {
        return None; // there is no element that could stand for NULL
    }
    macro_rules! stored {
        ($($element:ident => $t:ty),*) => {
            match value.element() {
                $(ElementType::$element => Dense::<$t>::boxed(value, value.fill_as::<$t>(), range, wanted, groups),)*
                ElementType::F16 => {
                    let fill = value.fill_as::<Float16Type>().map(f32::from);
                    Dense::<Float32Type>::boxed(value, fill, range, wanted, groups)
                }
            }
        };
    }
    Some(match value.form()? {
        Form::Stored => stored! {
            F32 => Float32Type, F64 => Float64Type, I8 => Int8Type, I16 => Int16Type,
            I32 => Int32Type, I64 => Int64Type, U8 => UInt8Type, U16 => UInt16Type, U32 => UInt32Type,
            U64 => UInt64Type
        },
        // NULL is NaN there, and nothing else is.
        Form::Unpacked => Dense::<Float64Type>::boxed(value, None, range, wanted, groups),
    })
}

/// Cells unpacked at once.
const PIECE_CELLS: usize = 8192;

/// The states of groups for elements of one type.
struct Dense<T: Element>
where
    T::Native: Cell,
{
    value: NumberColumn,
    keep: Keep<T::Native>,
    /// Whether a predicate has a say.
    ranged: bool,
    wanted: Wanted,
    counts: Vec<u64>,
    sums: Vec<f64>,
    wide_sums: Vec<<T::Native as Cell>::Wide>,
    mins: Vec<T::Native>,
    maxs: Vec<T::Native>,
    spreads: Vec<Moments>,
    /// Sums on approval.
    aside: Vec<f64>,
    /// Cells of a batch that do not count.
    dropped: Vec<u32>,
    /// The tile, where it is not reduced as it is stored.
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
        wanted: Wanted,
        groups: usize,
    ) -> Box<dyn Reducer> {
        let nan_is_null = value.form() == Some(Form::Unpacked) || value.nan_is_null();
        let places = |wanted: bool| if wanted { groups } else { 0 };
        Box::new(Self {
            value: value.clone(),
            keep: Keep::new(nan_is_null, fill, range),
            ranged: range.is_some(),
            wanted,
            counts: vec![0; groups],
            sums: vec![0.0; places(wanted.sum)],
            wide_sums: vec![T::Native::ZERO; places(wanted.wide_sum)],
            mins: vec![T::Native::GREATEST; places(wanted.min)],
            maxs: vec![T::Native::LEAST; places(wanted.max)],
            spreads: vec![Moments::default(); places(wanted.spread)],
            aside: Vec::new(),
            dropped: Vec::new(),
            converted: Vec::new(),
        })
    }

    fn add_batch(&mut self, batch: Batch<'_, T::Native>, may_hold_nulls: bool) {
        match self.keep {
            Keep::Nothing => {}
            Keep::All => self.add_all(batch, false),
            Keep::NotNan if !may_hold_nulls => self.add_all(batch, false),
            Keep::NotNan => {
                #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
                let keep = |cell| cell == cell;
                let summed = self.wanted.sum;
                if summed && sum_numbers(&mut self.sums, batch, &mut self.aside) {
                    self.add_all(batch, true);
                } else {
                    self.add_kept(batch, keep, summed);
                }
            }
            Keep::Within { low, high, fill: None, .. } => {
                self.add_kept(batch, |cell| (low <= cell) & (cell <= high), false);
            }
            Keep::Within { low, high, fill: Some(fill), nan } => {
                #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
                let keep = |cell: T::Native| {
                    let inside = ((low <= cell) & (cell <= high)) | (nan & (cell != cell));
                    inside & !cell.same_bits(fill)
                };
                self.add_kept(batch, keep, false);
            }
        }
    }

    /// Adds those cells that `keep` keeps; the sums may be there already.
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
        uncount(&mut self.counts, batch, keep, &mut self.dropped);
        let keep = Some(keep);
        if self.wanted.sum && !summed {
            reduce::<T::Native, Sum, _>(&mut self.sums, batch, keep);
        }
        if self.wanted.wide_sum {
            reduce::<T::Native, WideSum, _>(&mut self.wide_sums, batch, keep);
        }
        if self.wanted.min {
            reduce::<T::Native, Min, _>(&mut self.mins, batch, keep);
        }
        if self.wanted.max {
            reduce::<T::Native, Max, _>(&mut self.maxs, batch, keep);
        }
        if self.wanted.spread {
            reduce::<T::Native, Spread, _>(&mut self.spreads, batch, keep);
        }
    }

    /// Adds every cell; the sums may be there already.
    fn add_all(&mut self, batch: Batch<'_, T::Native>, summed: bool) {
        if self.wanted.sum && !summed {
            fold_all::<T::Native, Sum>(&mut self.sums, batch);
        }
        if self.wanted.wide_sum {
            fold_all::<T::Native, WideSum>(&mut self.wide_sums, batch);
        }
        if self.wanted.min {
            fold_all::<T::Native, Min>(&mut self.mins, batch);
        }
        if self.wanted.max {
            fold_all::<T::Native, Max>(&mut self.maxs, batch);
        }
        if self.wanted.spread {
            fold_all::<T::Native, Spread>(&mut self.spreads, batch);
        }
    }

    /// The tile as elements of the type reduced.
    fn elements<'a>(&mut self, tile: &'a Tile, may_hold_nulls: bool) -> Result<Cow<'a, [u8]>> {
        let bytes = tile.bytes();
        let unpacked = self.value.form() == Some(Form::Unpacked);
        let missing = tile.validity().filter(|validity| may_hold_nulls && validity.contains(&0));
        let halves = self.value.element() == ElementType::F16;
        if !unpacked && !halves && missing.is_none() {
            return Ok(Cow::Borrowed(bytes));
        }
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
            // Such columns are of floats, of which NaN is NULL.
            let size = size_of::<T::Native>();
            let nan = T::parse("NaN").map(T::to_bound).unwrap_or_default();
            let cells = converted.chunks_exact_mut(size).zip(validity);
            cells.filter(|(_, valid)| **valid == 0).for_each(|(cell, _)| {
                cell.copy_from_slice(&nan[..size]);
            });
        }
        Ok(Cow::Owned(converted))
    }

    /// What an element of a zone is.
    fn element(bound: &Bound) -> T::Native {
        T::from_bound(*bound)
    }
}

fn fold_all<T: Cell, S: Statistic<T>>(states: &mut [S::State], batch: Batch<'_, T>) {
    reduce::<T, S, fn(T) -> bool>(states, batch, None);
}

impl<T: Element> Reducer for Dense<T>
where
    T::Native: Cell + Bounds,
{
    fn add(&mut self, chunk: Chunk<'_>, tile: &Tile, may_hold_nulls: bool) -> Result<()> {
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

    fn is_answered(&self, chunk: Chunk<'_>, zone: &Zone) -> bool {
        let Chunk { table, grid, task } = chunk;
        if zone.null_count == task.cells() {
            return true;
        }
        let Wanted { sum, wide_sum, min, max, spread } = self.wanted;
        let noted = zone.bounds.is_some() | !(min | max) && zone.sum.is_some() | !(sum | wide_sum);
        let as_stored = self.value.form() == Some(Form::Stored)
            && self.value.element() != ElementType::F16
            && !self.ranged;
        let whole = task.rows == task.cells();
        as_stored && noted && !spread && whole && table.only_place(grid, task).is_some()
    }

    fn add_zone(&mut self, chunk: Chunk<'_>, zone: &Zone) {
        let Chunk { table, grid, task } = chunk;
        let Some(place) = table.only_place(grid, task) else { return };
        self.counts[place] += task.cells() - zone.null_count;
        if let Some((least, greatest)) = &zone.bounds {
            if self.wanted.min {
                <Min as Statistic<T::Native>>::add(&mut self.mins[place], Self::element(least));
            }
            if self.wanted.max {
                <Max as Statistic<T::Native>>::add(&mut self.maxs[place], Self::element(greatest));
            }
        }
        if let Some(sum) = zone.sum {
            if self.wanted.sum {
                self.sums[place] += sum.to_f64();
            }
            if self.wanted.wide_sum {
                let total = &mut self.wide_sums[place];
                *total = T::Native::add(*total, T::Native::wide_sum(sum));
            }
        }
    }

    fn extremes(&self, place: usize) -> (Option<Bound>, Option<Bound>) {
        let found = self.counts[place] > 0;
        let of = |states: &[T::Native], wanted: bool| {
            (found && wanted).then(|| T::to_bound(states[place]))
        };
        (of(&self.mins, self.wanted.min), of(&self.maxs, self.wanted.max))
    }

    fn scratch_bytes(&self) -> usize {
        self.converted.capacity()
    }

    fn finish(self: Box<Self>) -> Found {
        let this = *self;
        let Wanted { sum, wide_sum, min, max, spread } = this.wanted;
        let halves = this.value.element() == ElementType::F16;
        Found {
            counts: this.counts,
            sums: sum.then_some(this.sums),
            wide_sums: wide_sum.then(|| T::Native::wide_array(this.wide_sums)),
            mins: min.then(|| extremes::<T>(this.mins, halves)),
            maxs: max.then(|| extremes::<T>(this.maxs, halves)),
            spreads: spread.then_some(this.spreads),
        }
    }
}

/// Extremes in the column's type.
fn extremes<T: Element>(values: Vec<T::Native>, halves: bool) -> ArrayRef {
    let array = PrimitiveArray::<T>::new(ScalarBuffer::from(values), None);
    match array.as_any().downcast_ref::<PrimitiveArray<Float32Type>>() {
        Some(singles) if halves => Arc::new(singles.unary::<_, Float16Type>(half::f16::from_f32)),
        _ => Arc::new(array),
    }
}
