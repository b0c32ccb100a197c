//! [`KnownCells`]: cells of coordinates that a query has read, for the next ones.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, ArrayRef};

/// The most bytes that are kept of an array: those of two coordinates of 2²³ cells in double precision, with their validity.
const MOST_BYTES: usize = 160 << 20;

/// The cells of a variable along its own axes, row-major.
#[derive(Debug, Clone)]
pub struct VariableCells {
    /// The number of the variable.
    pub value: usize,
    /// The cells.
    pub cells: ArrayRef,
    /// The objects that were read, with their members, if they may be written again.
    pub objects: Vec<(u32, Arc<str>)>,
    /// The files that have these cells, by the index at which they begin; empty unless cells repeat within files.
    pub files: BTreeSet<u64>,
}

/// The cells of variables that repeat along some axes; those that were used last are at the end.
#[derive(Debug, Default)]
pub(super) struct KnownCells {
    cells: Mutex<Vec<VariableCells>>,
    /// The variables whose cells differ from file to file.
    differing: Mutex<BTreeSet<usize>>,
}

impl KnownCells {
    fn all(&self) -> MutexGuard<'_, Vec<VariableCells>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn differing(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.differing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the cells of a variable are known to differ from file to file.
    pub(super) fn differs_in_files(&self, value: usize) -> bool {
        self.differing().contains(&value)
    }

    /// Keeps in mind that they do.
    pub(super) fn set_differs_in_files(&self, value: usize) {
        self.differing().insert(value);
    }

    /// Returns the files that have the known cells of a variable.
    pub(super) fn files(&self, value: usize) -> BTreeSet<u64> {
        let all = self.all();
        let known = all.iter().find(|known| known.value == value);
        known.map(|known| known.files.clone()).unwrap_or_default()
    }

    /// Returns the cells of a variable, if they are known.
    pub(super) fn of(&self, value: usize) -> Option<ArrayRef> {
        let mut all = self.all();
        let at = all.iter().position(|known| known.value == value)?;
        let used = all.remove(at);
        let cells = ArrayRef::clone(&used.cells);
        all.push(used);
        Some(cells)
    }

    /// Keeps the cells of a variable. Leaves out those that were not used for longest if there are too many bytes.
    pub(super) fn keep(&self, mut known: VariableCells) {
        let (mut all, value) = (self.all(), known.value);
        for other in all.extract_if(.., |other| other.value == value) {
            // Cells of more files come from the objects of all of them.
            if other.files.is_subset(&known.files) && !other.files.is_empty() {
                known.objects.extend(other.objects);
            }
        }
        all.push(known);
        let mut held: usize = all.iter().map(|it| it.cells.get_array_memory_size()).sum();
        while held > MOST_BYTES && !all.is_empty() {
            held -= all.remove(0).cells.get_array_memory_size();
        }
    }

    /// Returns the objects from which the cells were read.
    pub(super) fn objects(&self) -> Vec<(u32, Arc<str>)> {
        self.all().iter().flat_map(|known| known.objects.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int8Array;

    use super::*;

    #[test]
    fn cells_that_were_not_used_for_longest_are_left_out() {
        let known = KnownCells::default();
        let keep = |value: usize, len: usize| {
            let cells = Arc::new(Int8Array::from(vec![0; len])) as ArrayRef;
            let objects = vec![(0, "a".into())];
            known.keep(VariableCells { value, cells, objects, files: BTreeSet::new() });
        };
        let part = MOST_BYTES / 5 * 2;
        (0..2).for_each(|value| keep(value, part));
        assert!(known.of(0).is_some());
        keep(2, part);
        assert_eq!([0, 1, 2].map(|value| known.of(value).is_some()), [true, false, true]);
        assert_eq!(known.objects().len(), 2);
        let of_files = |files: &[u64]| {
            let (cells, files) = (known.of(2).unwrap(), files.iter().copied().collect());
            known.keep(VariableCells { value: 2, cells, objects: vec![(1, "b".into())], files });
        };
        of_files(&[0]);
        of_files(&[0, 5]);
        assert_eq!(known.objects().len(), 3, "one of another variable, and one per file");
        keep(3, 2 * MOST_BYTES);
        assert!((0..4).all(|value| known.of(value).is_none()));
    }
}
