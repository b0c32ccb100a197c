//! [`GroupCells`]: the cells of the extremes of groups, when all chunks have been added.

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, UInt64Array, downcast_primitive_array};
use arrow::compute::take;

use super::cell_number::CellNumber;
use super::contracted::Coarser;
use crate::array::failed_to;
use crate::error::{Error, Result};

/// The cells of groups: arrays with one element per place of the table. Cells that are not requested are absent.
#[derive(Debug, Clone, Default)]
pub struct GroupCells {
    /// The least values and their cells.
    pub least: Option<FirstCells>,
    /// The greatest values and their cells.
    pub greatest: Option<FirstCells>,
    /// The first cell of each group that is NULL, or [`CellNumber::NONE`].
    pub nulls: Option<Vec<CellNumber>>,
}

/// The extremes of groups, and the first cell of each that has it.
#[derive(Debug, Clone)]
pub struct FirstCells {
    /// The extremes, in the column's type; meaningless without a cell.
    pub values: ArrayRef,
    /// The cells; [`CellNumber::NONE`] for groups without a value.
    pub cells: Vec<CellNumber>,
}

impl GroupCells {
    /// Returns the cells of coarser groups.
    ///
    /// # Errors
    /// `Internal` if extremes are not numbers.
    pub fn coarser(&self, coarser: Coarser<'_>) -> Result<Self> {
        let extremes = |cells: Option<&FirstCells>, is_greatest| {
            cells.map(|cells| cells.coarser(coarser, is_greatest)).transpose()
        };
        let first = |first: &mut CellNumber, other: CellNumber| *first = other.min(*first);
        Ok(Self {
            least: extremes(self.least.as_ref(), false)?,
            greatest: extremes(self.greatest.as_ref(), true)?,
            nulls: self.nulls.as_ref().map(|it| coarser.fold(CellNumber::NONE, it, first)),
        })
    }
}

impl FirstCells {
    fn coarser(&self, coarser: Coarser<'_>, is_greatest: bool) -> Result<Self> {
        let mut best: Vec<Option<u64>> = vec![None; coarser.groups];
        let found = coarser.pairs().filter(|(group, _)| self.cells[*group] != CellNumber::NONE);
        let values = &self.values;
        downcast_primitive_array!(
            values => for (group, place) in found {
                let is_better = best[place].is_none_or(|best| {
                    let (new, old) = (values.value(group), values.value(best as usize));
                    let is_tie = !new.is_lt(old) && !new.is_gt(old);
                    let is_before = self.cells[group] < self.cells[best as usize];
                    is_tie && is_before || if is_greatest { new.is_gt(old) } else { new.is_lt(old) }
                });
                if is_better {
                    best[place] = Some(group as u64);
                }
            },
            _ => return Err(Error::internal("extremes that are not numbers"))
        );
        let cell = |best: &Option<u64>| best.map_or(CellNumber::NONE, |it| self.cells[it as usize]);
        let cells = best.iter().map(cell).collect();
        let values = take(&self.values, &UInt64Array::from(best), None);
        Ok(Self { values: values.map_err(failed_to("take extremes"))?, cells })
    }
}
