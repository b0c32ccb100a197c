//! [`FormStats`]: the statistics of all groups, to which those of some groups are added.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowNativeTypeOp, AsArray, PrimitiveArray};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::form_cells::FormCells;
use super::group_stats::{GroupStats, RequestedMember};
use super::moments::Moments;
use super::pair_sums::Pairs;
use super::weighted::WeightedStates;
use crate::array::failed_to;
use crate::error::{Error, Result};

/// The statistics of one member. Adding those of a range of places takes time for that range only.
pub(super) struct FormStats {
    counts: Vec<u64>,
    sums: Option<Vec<f64>>,
    wide_sums: Option<Box<dyn Numbers>>,
    mins: Option<Box<dyn Numbers>>,
    maxs: Option<Box<dyn Numbers>>,
    spreads: Option<Vec<Moments>>,
    weighted: Option<WeightedStates>,
    pairs: Option<Vec<Pairs>>,
    cells: FormCells,
}

impl FormStats {
    /// Returns statistics of no value, for a variable of this type. `None` for a type that is no number.
    pub(super) fn try_new(
        member: &RequestedMember,
        data_type: &DataType,
        groups: usize,
    ) -> Option<Self> {
        let requested = member.requested;
        let sums = match data_type.is_unsigned_integer() {
            true => DataType::UInt64,
            false => DataType::Int64,
        };
        let numbers = |is_requested: bool, data_type: &DataType| match is_requested {
            true => numbers(data_type, groups).map(Some),
            false => Some(None),
        };
        Some(Self {
            counts: vec![0; groups],
            sums: requested.sum.then(|| vec![0.0; groups]),
            wide_sums: numbers(requested.wide_sum, &sums)?,
            mins: numbers(requested.min, data_type)?,
            maxs: numbers(requested.max, data_type)?,
            spreads: requested.spread.then(|| vec![Moments::default(); groups]),
            weighted: member.weights.is_some().then(|| WeightedStates::new(groups)),
            pairs: requested.pairs.then(|| vec![Pairs::NONE; groups]),
            cells: FormCells::try_new(member.cells, data_type, groups)?,
        })
    }

    /// Adds the statistics of the groups at `places`.
    pub(super) fn add(&mut self, places: &Range<usize>, more: GroupStats) -> Result<()> {
        let counts = &mut self.counts[places.clone()];
        let is_better =
            |at: usize, is_beyond: bool| more.counts[at] > 0 && (counts[at] == 0 || is_beyond);
        let pairs = [(&mut self.mins, &more.mins, true), (&mut self.maxs, &more.maxs, false)];
        for (own, more, is_least) in pairs {
            if let (Some(own), Some(more)) = (own, more) {
                own.take_better(places, more, is_least, &is_better)?;
            }
        }
        if let (Some(own), Some(more)) = (&mut self.wide_sums, &more.wide_sums) {
            own.add(places, more)?;
        }
        let add = |own: &mut [f64], more: Vec<f64>| {
            own[places.clone()].iter_mut().zip(more).for_each(|(own, more)| *own += more);
        };
        if let (Some(own), Some(more)) = (&mut self.sums, more.sums) {
            add(own, more);
        }
        if let (Some(own), Some(more)) = (&mut self.weighted, more.weighted) {
            add(&mut own.sums, more.sums);
            add(&mut own.weights, more.weights);
        }
        if let (Some(own), Some(more)) = (&mut self.spreads, more.spreads) {
            own[places.clone()].iter_mut().zip(more).for_each(|(own, more)| own.merge(more));
        }
        if let (Some(own), Some(more)) = (&mut self.pairs, more.pairs) {
            own[places.clone()].iter_mut().zip(more).for_each(|(own, more)| *own = own.and(more));
        }
        counts.iter_mut().zip(more.counts).for_each(|(own, more)| *own += more);
        more.cells.map_or(Ok(()), |more| self.cells.add(places, more))
    }

    pub(super) fn finish(self) -> Result<GroupStats> {
        Ok(GroupStats {
            counts: self.counts,
            sums: self.sums,
            wide_sums: self.wide_sums.map(Numbers::finish),
            mins: self.mins.map(Numbers::finish),
            maxs: self.maxs.map(Numbers::finish),
            spreads: self.spreads,
            weighted: self.weighted,
            pairs: self.pairs,
            cells: self.cells.finish()?,
        })
    }
}

/// One number per group, of the type of a column.
trait Numbers: Send {
    /// Takes the number in `more` of each place for which `is_better` is true. That gets the place within the range, and whether
    /// the number is beyond the own one: less, or greater.
    fn take_better(
        &mut self,
        places: &Range<usize>,
        more: &ArrayRef,
        is_least: bool,
        is_better: &dyn Fn(usize, bool) -> bool,
    ) -> Result<()>;

    /// Adds numbers, which wrap.
    fn add(&mut self, places: &Range<usize>, more: &ArrayRef) -> Result<()>;

    fn finish(self: Box<Self>) -> ArrayRef;
}

struct Typed<T: ArrowPrimitiveType>(Vec<T::Native>);

/// Returns zeros of a type; `None` for a type that is no number.
fn numbers(data_type: &DataType, groups: usize) -> Option<Box<dyn Numbers>> {
    fn of<T: ArrowPrimitiveType>(groups: usize) -> Option<Box<dyn Numbers>> {
        Some(Box::new(Typed::<T>(vec![T::Native::default(); groups])))
    }
    match data_type {
        DataType::Int8 => of::<Int8Type>(groups),
        DataType::Int16 => of::<Int16Type>(groups),
        DataType::Int32 => of::<Int32Type>(groups),
        DataType::Int64 => of::<Int64Type>(groups),
        DataType::UInt8 => of::<UInt8Type>(groups),
        DataType::UInt16 => of::<UInt16Type>(groups),
        DataType::UInt32 => of::<UInt32Type>(groups),
        DataType::UInt64 => of::<UInt64Type>(groups),
        DataType::Float16 => of::<Float16Type>(groups),
        DataType::Float32 => of::<Float32Type>(groups),
        DataType::Float64 => of::<Float64Type>(groups),
        _ => None,
    }
}

impl<T: ArrowPrimitiveType> Typed<T> {
    /// Returns the numbers in the own type, which is as wide.
    fn widened(more: &ArrayRef) -> Result<PrimitiveArray<T>> {
        let widened = cast(more, &T::DATA_TYPE).map_err(failed_to("widen numbers"))?;
        let numbers = widened.as_primitive_opt::<T>().cloned();
        numbers.ok_or_else(|| Error::internal("numbers of another type"))
    }
}

impl<T: ArrowPrimitiveType> Numbers for Typed<T> {
    fn take_better(
        &mut self,
        places: &Range<usize>,
        more: &ArrayRef,
        is_least: bool,
        is_better: &dyn Fn(usize, bool) -> bool,
    ) -> Result<()> {
        let more = Self::widened(more)?;
        let own = self.0[places.clone()].iter_mut();
        for (at, (own, more)) in own.zip(more.values()).enumerate() {
            let is_beyond = if is_least { more.is_lt(*own) } else { more.is_gt(*own) };
            if is_better(at, is_beyond) {
                *own = *more;
            }
        }
        Ok(())
    }

    fn add(&mut self, places: &Range<usize>, more: &ArrayRef) -> Result<()> {
        let more = Self::widened(more)?;
        let own = self.0[places.clone()].iter_mut();
        own.zip(more.values()).for_each(|(own, more)| *own = own.add_wrapping(*more));
        Ok(())
    }

    fn finish(self: Box<Self>) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(self.0), None))
    }
}
