//! [`Change`]: new cells of an array that is there, as the objects that have them.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::take;
use gridfusion_core::Result;
use gridfusion_core::array::failed_to;
use gridfusion_core::grid::unravel;
use gridfusion_core::write::{ExistingCells, lens};
use tokio::runtime::Handle;

use super::object_cells::{NewCells, Sources};
use super::variable::TargetVariable;

/// An object of a variable: its name, and its bytes if it is stored.
pub(super) struct Object {
    pub(super) name: Arc<str>,
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) cells: OldCells,
}

/// The cells of an object that readers see already.
#[derive(Clone, Copy)]
pub(super) enum OldCells {
    None,
    Kept,
    Changed,
}

/// New cells of an array that is there.
pub(super) struct Change<'a> {
    pub(super) variable: &'a TargetVariable,
    pub(super) cells: NewCells,
    /// The shape that the array is to have.
    pub(super) shape: Vec<u64>,
    /// The fate of cells that are there already.
    pub(super) existing: ExistingCells,
    /// Names a cell by its number, for errors.
    pub(super) name: &'a dyn Fn(u64) -> String,
}

impl Change<'_> {
    /// Cuts the cells into objects.
    pub(super) fn objects(&self, runtime: &Handle) -> Result<Vec<Object>> {
        let edges = self.variable.object_shape();
        let numbers = self
            .cells
            .ranges()
            .iter()
            .zip(edges)
            .map(|(range, edge)| range.start / edge..range.end.div_ceil(*edge));
        let numbers: Vec<Range<u64>> = numbers.collect();
        let counts = lens(&numbers);
        let mut objects = vec![];
        for number in 0..counts.iter().product() {
            let at = unravel(number, &counts);
            let at: Vec<u64> =
                at.iter().zip(&numbers).map(|(at, range)| at + range.start).collect();
            objects.extend(self.object(&at, runtime)?);
        }
        Ok(objects)
    }

    /// Returns an object with new cells; `None` if it stays as it is.
    fn object(&self, at: &[u64], runtime: &Handle) -> Result<Option<Object>> {
        let Self { variable, cells: new, shape, .. } = self;
        let range =
            |((at, edge), len): ((&u64, &u64), &u64)| at * edge..((at + 1) * edge).min(*len);
        let ranges: Vec<Range<u64>> =
            at.iter().zip(variable.object_shape()).zip(shape).map(range).collect();
        let old = ranges.iter().zip(variable.shape());
        let old: Vec<u64> =
            old.map(|(range, len)| len.min(range.end).saturating_sub(range.start)).collect();
        let has_old = !old.contains(&0);
        let is_compared = has_old && self.existing == ExistingCells::Same;
        let object = |cells: &ArrayRef, of_old| {
            let bytes = variable.object_bytes(cells, &lens(&ranges))?;
            Ok(Some(Object { name: variable.object(at), bytes, cells: of_old }))
        };
        if !is_compared && new.has_all_of(&ranges) {
            let of_old = if has_old { OldCells::Changed } else { OldCells::None };
            return object(&new.cells_of(&ranges)?, of_old);
        }
        let sources = new.sources(&ranges, &old);
        let of_old = match (has_old, is_compared || sources.both.is_empty()) {
            (false, _) => OldCells::None,
            (true, true) => OldCells::Kept,
            (true, false) => OldCells::Changed,
        };
        if sources.both.is_empty() && sources.added == 0 {
            return Ok(None);
        }
        let is_read = has_old && (is_compared || sources.keep_old());
        let there = match is_read {
            true => Some(runtime.block_on(variable.old_cells(at))?.0),
            false => None,
        };
        if let Some(there) = there.as_ref().filter(|_| is_compared) {
            self.check_same(there, &sources)?;
            if sources.added == 0 {
                return Ok(None);
            }
        }
        object(&sources.cells(there.as_ref(), new)?, of_old)
    }

    /// Fails for cells of rows that differ from those that are there.
    fn check_same(&self, there: &ArrayRef, sources: &Sources) -> Result<()> {
        let new = &self.cells;
        let failed = failed_to("compare cells");
        let (of_old, of_new): (Vec<u64>, Vec<u64>) = sources.both.iter().copied().unzip();
        let old = take(there, &UInt64Array::from(of_old), None).map_err(&failed)?;
        let same = take(new.stored(), &UInt64Array::from(of_new.clone()), None).map_err(failed)?;
        self.variable.check_same(&old, &same, |at| (self.name)(new.number(of_new[at])))
    }
}
