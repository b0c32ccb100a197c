//! [`ChangedCells`]: the cells of an array that rows change.
//!
//! ```text
//!              lat  50  60  70        rows: time=2, lat=50 and lat=70      ●  has a row
//!   time 1           ·   ·   ·        overwrite   changes ●
//!   time 2           ●   ·   ●        clear       also ○: other cells with the rows' labels
//!   time 3 (new)     ●   ○   ○        both        also all cells of new labels
//! ```

use std::ops::Range;

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::ExistingCells;
use super::boxes::for_each_row;

/// The cells that the rows of an append have values for.
#[derive(Debug)]
pub struct ChangedCells {
    existing: ExistingCells,
    /// The dimension that becomes longer, and its new indices.
    longer: Option<(usize, Range<u64>)>,
    /// Per dimension, the indices whose labels some row has.
    named: Vec<BooleanBuffer>,
}

impl ChangedCells {
    /// Makes the cells of rows whose labels have these `places` along each axis of an array of this `shape`.
    pub fn new(
        existing: ExistingCells,
        longer: Option<(usize, Range<u64>)>,
        places: &[Vec<u64>],
        shape: &[u64],
    ) -> Self {
        let named = |(places, len): (&Vec<u64>, &u64)| {
            let mut named = BooleanBufferBuilder::new(*len as usize);
            named.append_n(*len as usize, false);
            places.iter().for_each(|at| named.set_bit(*at as usize, true));
            named.finish()
        };
        let named = places.iter().zip(shape).map(named).collect();
        Self { existing, longer, named }
    }

    /// Returns what becomes of cells that are there.
    pub fn existing(&self) -> ExistingCells {
        self.existing
    }

    /// Returns the dimension that becomes longer, and its new indices.
    pub fn longer(&self) -> Option<&(usize, Range<u64>)> {
        self.longer.as_ref()
    }

    /// Returns the numbers of the cells of a chunk that change, ascending; `None` if all do. The chunk has `ranges` of indices, and rows for
    /// the cells that are `given`.
    ///
    /// ```
    /// use arrow::buffer::NullBuffer;
    /// use gridfusion_core::write::{ChangedCells, ExistingCells};
    ///
    /// let (places, shape) = (vec![vec![0], vec![0, 2]], [2, 3]);
    /// let given = NullBuffer::from(vec![true, false, false, false, false, false]);
    /// for (existing, changed) in
    ///     [(ExistingCells::Overwrite, vec![0]), (ExistingCells::Clear, vec![0, 2])]
    /// {
    ///     let cells = ChangedCells::new(existing, None, &places, &shape);
    ///     assert_eq!(cells.numbers(&[0..2, 0..3], Some(&given)), Some(changed));
    /// }
    /// ```
    pub fn numbers(&self, ranges: &[Range<u64>], given: Option<&NullBuffer>) -> Option<Vec<u64>> {
        let given = given.filter(|_| self.existing != ExistingCells::Refuse)?;
        let last = ranges.len() - 1;
        let (mut numbers, mut number) = (vec![], 0);
        let is_added = |axis: usize, at: u64| {
            self.longer
                .as_ref()
                .is_some_and(|(longer, added)| *longer == axis && added.contains(&at))
        };
        let is_named = |axis: usize, at: u64| self.named[axis].value(at as usize);
        for_each_row(ranges, |outer| {
            let outer = || outer.iter().copied().enumerate();
            let row_is_added = outer().any(|(axis, at)| is_added(axis, at));
            let row_is_cleared = self.existing == ExistingCells::Clear
                && outer().all(|(axis, at)| is_named(axis, at));
            for at in ranges[last].clone() {
                let is_changed = given.is_valid(number)
                    || row_is_added
                    || is_added(last, at)
                    || row_is_cleared && is_named(last, at);
                if is_changed {
                    numbers.push(number as u64);
                }
                number += 1;
            }
        });
        Some(numbers)
    }
}
