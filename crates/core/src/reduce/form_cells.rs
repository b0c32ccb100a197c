//! [`FormCells`]: the cells of extremes of all groups, to which those of some groups are added.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};

use super::cell_number::CellNumber;
use super::group_cells::{FirstCells, GroupCells};
use super::group_stats::RequestedCells;
use crate::array::failed_to;
use crate::error::Result;

/// The cells of one member. Extremes are compared as doubles, which are exact for all numbers of up to 32 bits.
pub(super) struct FormCells {
    data_type: DataType,
    least: Option<Extremes>,
    greatest: Option<Extremes>,
    nulls: Option<Vec<CellNumber>>,
}

struct Extremes {
    is_greatest: bool,
    numbers: Vec<f64>,
    cells: Vec<CellNumber>,
}

impl FormCells {
    /// Returns no cells, for a variable of this type. `None` if doubles do not hold its numbers.
    pub(super) fn try_new(
        requested: RequestedCells,
        data_type: &DataType,
        groups: usize,
    ) -> Option<Self> {
        if matches!(data_type, DataType::Int64 | DataType::UInt64) && requested.any() {
            return None;
        }
        let cells = || vec![CellNumber::NONE; groups];
        let extremes = |is_requested: bool, is_greatest| {
            is_requested.then(|| Extremes {
                is_greatest,
                numbers: vec![0.0; groups],
                cells: cells(),
            })
        };
        Some(Self {
            data_type: data_type.clone(),
            least: extremes(requested.least, false),
            greatest: extremes(requested.greatest, true),
            nulls: requested.null.then(cells),
        })
    }

    /// Adds the cells of the groups at `places`.
    pub(super) fn add(&mut self, places: &Range<usize>, more: GroupCells) -> Result<()> {
        let pairs = [(&mut self.least, more.least), (&mut self.greatest, more.greatest)];
        for (own, more) in pairs {
            if let (Some(own), Some(more)) = (own, more) {
                own.add(places, &more)?;
            }
        }
        if let (Some(own), Some(more)) = (&mut self.nulls, more.nulls) {
            let pairs = own[places.clone()].iter_mut().zip(more);
            pairs.for_each(|(own, more)| *own = more.min(*own));
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Option<GroupCells>> {
        let finish = |extremes: Option<Extremes>| {
            extremes.map(|extremes| extremes.finish(&self.data_type)).transpose()
        };
        let found = GroupCells {
            least: finish(self.least)?,
            greatest: finish(self.greatest)?,
            nulls: self.nulls,
        };
        let any = found.least.is_some() || found.greatest.is_some() || found.nulls.is_some();
        Ok(any.then_some(found))
    }
}

impl Extremes {
    fn add(&mut self, places: &Range<usize>, more: &FirstCells) -> Result<()> {
        let numbers = cast(&more.values, &DataType::Float64).map_err(failed_to("widen numbers"))?;
        let numbers = numbers.as_primitive::<Float64Type>().values();
        for (place, (new, cell)) in places.clone().zip(numbers.iter().zip(&more.cells)) {
            let (number, own) = (&mut self.numbers[place], &mut self.cells[place]);
            let beats = if self.is_greatest { *new > *number } else { *new < *number };
            let is_before = *new == *number && *cell < *own;
            if *cell != CellNumber::NONE && (*own == CellNumber::NONE || beats || is_before) {
                (*number, *own) = (*new, *cell);
            }
        }
        Ok(())
    }

    fn finish(self, data_type: &DataType) -> Result<FirstCells> {
        let values: ArrayRef = Arc::new(Float64Array::from(self.numbers));
        let values = cast(&values, data_type).map_err(failed_to("narrow numbers"))?;
        Ok(FirstCells { values, cells: self.cells })
    }
}
