//! [`Total`]: aggregates of frames, as [`SlidingFold`] states of all partitions of a column of chunks.
//!
//! A frame without values gives NULL, except for `count`. So with NULLs among the arguments, values are counted too.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::error::Result;

use super::edge_value::EdgeValue;
use super::frames::Frames;
use super::steps::{CountStep, Extreme, Steps, SumStep, SummedIntegers, Variance};
use super::window_state::{ColumnShape, WindowState};
use crate::reduce::{
    FirstKnown, Fold, Greatest, LastKnown, Least, Moments, SlidingFold, ValueCount,
};

/// An aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Total {
    Count,
    FloatSum,
    IntegerSum,
    Average,
    Least,
    Greatest,
    Variance {
        is_sample: bool,
        is_root: bool,
    },
    /// The first value that is not NULL.
    FirstKnown,
    /// The last value that is not NULL.
    LastKnown,
}

impl Total {
    /// Returns the bytes that an argument or an aggregate takes, with the number of its values.
    pub(super) fn bytes_per_cell(self) -> usize {
        /// The bytes of a number of values.
        const COUNT: usize = size_of::<u32>();
        match self {
            Self::Count => COUNT,
            Self::FirstKnown | Self::LastKnown => size_of::<Option<i64>>() + COUNT,
            Self::Variance { .. } => size_of::<Moments>() + COUNT,
            _ => size_of::<i64>() + COUNT,
        }
    }
}

/// The state of an aggregate function.
struct Totals<F: Fold, S> {
    shape: ColumnShape,
    frames: Arc<Frames>,
    /// One per block of rows.
    sliding: Vec<SlidingFold<F>>,
    /// The numbers of values that are not NULL, from the first NULL on.
    counts: Option<Vec<SlidingFold<ValueCount>>>,
    steps: S,
}

/// Returns the state of an aggregate function with results of `data_type`, before line number `first`.
pub(super) fn totals(
    total: &Total,
    data_type: &DataType,
    frames: Arc<Frames>,
    shape: ColumnShape,
    first: usize,
) -> Box<dyn WindowState> {
    fn of<S: Steps + 'static>(
        steps: S,
        frames: Arc<Frames>,
        shape: ColumnShape,
        first: usize,
    ) -> Box<dyn WindowState> {
        let sliding = (0..shape.outer).map(|_| SlidingFold::new(shape.width, first)).collect();
        Box::new(Totals::<S::Fold, S> { shape, frames, sliding, counts: None, steps })
    }
    let is_signed = *data_type != DataType::UInt64;
    match *total {
        Total::Count => of(CountStep, frames, shape, first),
        Total::FloatSum => of(SumStep { is_average: false }, frames, shape, first),
        Total::Average => of(SumStep { is_average: true }, frames, shape, first),
        Total::IntegerSum => of(SummedIntegers { is_signed }, frames, shape, first),
        Total::Least => of(Extreme::<Least>::new(data_type), frames, shape, first),
        Total::Greatest => of(Extreme::<Greatest>::new(data_type), frames, shape, first),
        Total::Variance { is_sample, is_root } => {
            of(Variance { is_sample, is_root }, frames, shape, first)
        }
        Total::FirstKnown => of(EdgeValue::<FirstKnown>::new(data_type), frames, shape, first),
        Total::LastKnown => of(EdgeValue::<LastKnown>::new(data_type), frames, shape, first),
    }
}

impl<S: Steps> WindowState for Totals<S::Fold, S> {
    fn push(&mut self, values: &ArrayRef, lines: Range<usize>) -> Result<()> {
        let nulls = values.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        if nulls.is_some() && S::COUNTS && self.counts.is_none() {
            // All values so far count.
            let counted = self.sliding.iter().map(|it| it.with_same_cells(|count| count as u32));
            self.counts = Some(counted.collect());
        }
        let cells = self.steps.cells(values)?;
        let block = lines.len() * self.shape.width;
        for (outer, sliding) in self.sliding.iter_mut().enumerate() {
            sliding.push(cells[outer * block..(outer + 1) * block].iter().copied());
        }
        for (outer, counts) in self.counts.iter_mut().flatten().enumerate() {
            match &nulls {
                None => counts.push(std::iter::repeat_n(1, block)),
                Some(nulls) => {
                    let nulls = nulls.slice(outer * block, block);
                    counts.push(nulls.iter().map(u32::from));
                }
            }
        }
        Ok(())
    }

    fn values(&mut self, lines: Range<usize>) -> Result<ArrayRef> {
        let ColumnShape { outer, width } = self.shape;
        let rows = outer * lines.len() * width;
        let mut aggregates = vec![S::Fold::IDENTITY; rows];
        let mut counts = vec![0; if S::COUNTS { rows } else { 0 }];
        let mut start = 0;
        for outer in 0..outer {
            for line in lines.clone() {
                let (frame, end) = (self.frames.at(line), start + width);
                self.sliding[outer].aggregate(&frame, &mut aggregates[start..end]);
                match &mut self.counts {
                    Some(counted) => counted[outer].aggregate(&frame, &mut counts[start..end]),
                    None if S::COUNTS => counts[start..end].fill(frame.len() as u32),
                    None => {}
                }
                start = end;
            }
        }
        self.steps.results(aggregates, &counts)
    }

    fn forget(&mut self, next: usize) {
        let needed = self.frames.needed_from(next);
        self.sliding.iter_mut().for_each(|it| it.forget(needed));
        self.counts.iter_mut().flatten().for_each(|it| it.forget(needed));
    }

    fn size(&self) -> usize {
        let counts = self.counts.iter().flatten().map(SlidingFold::size).sum::<usize>();
        self.sliding.iter().map(SlidingFold::size).sum::<usize>() + counts
    }
}
