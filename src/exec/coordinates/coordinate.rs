//! [`Coordinate`]: a variable that repeats along some axes, and the files of which its cells are read.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::array::{GridArray, RepeatedInFiles};
use crate::grid::Selection;

/// The axes of a variable, and its places.
#[derive(Debug)]
pub(super) struct Coordinate {
    /// The number of the variable.
    pub(super) value: usize,
    /// The axes along which its cells differ, ascending.
    pub(super) axes: Vec<usize>,
    /// How they repeat within files, if files may have other cells.
    pub(super) in_files: Option<Arc<RepeatedInFiles>>,
}

impl Coordinate {
    /// Returns the variable `value`. If it repeats along no axis, it has all axes.
    pub(super) fn new(array: &GridArray, value: usize) -> Self {
        let axes = array.axes_of(value);
        let differs_everywhere = axes.len() == array.grid().rank();
        // Filters over one axis are exact before coordinates are read, so that all files must be known to be alike.
        let in_files = array.repeated_in_files(value).filter(|it| it.axes.len() > 1);
        match in_files.filter(|_| differs_everywhere) {
            Some(in_files) => Self { value, axes: in_files.axes.clone(), in_files: Some(in_files) },
            None => Self { value, axes, in_files: None },
        }
    }

    /// Returns the number of cells that the variable has along its own axes.
    pub(super) fn len(&self, array: &GridArray) -> u64 {
        self.axes.iter().map(|axis| array.grid().shape()[*axis]).product()
    }

    /// Returns the files that `selection` touches and whose cells are not known, by the index at which they begin.
    pub(super) fn unknown_files(
        in_files: &RepeatedInFiles,
        known: &BTreeSet<u64>,
        selection: &Selection,
    ) -> Vec<u64> {
        let wanted = &selection.axes()[in_files.axis];
        let ends = in_files.starts.iter().copied().skip(1).chain([wanted.len()]);
        let files = in_files.starts.iter().copied().zip(ends);
        let is_unknown = |(start, end): &(u64, u64)| {
            !known.contains(start) && wanted.within(*start..*end).count() > 0
        };
        files.filter(is_unknown).map(|(start, _)| start).collect()
    }

    /// Returns the number of cells to read before the cells of the files that `selection` touches are known.
    pub(super) fn cells_to_read(&self, array: &GridArray, selection: &Selection) -> u64 {
        let files = match &self.in_files {
            Some(in_files) => {
                let known = array.known_files(self.value);
                Self::unknown_files(in_files, &known, selection).len() as u64
            }
            None => u64::from(array.known_cells(self.value).is_none()),
        };
        files.saturating_mul(self.len(array))
    }
}
