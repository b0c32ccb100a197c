//! [`Layout`]: maps chunks of the table to stored chunks of files and variables.
//!
//! ```text
//!   chunks of the table     │ 0  │ 1  │2│ 3  │ 4  │ 5  │6│     on the axis of the files
//!   indices                 0    4    8 10   14   18   22 23
//!   files                   │ 2023      │ 2024           │     starts [0, 10, 23], firsts [0, 3, 0]
//! ```
//!
//! A chunk of the table lies in one file, because each file ends at a border. So chunk 4 is in file 1
//! (`file_of`). Its indices 14..18 are 4..8 of that file. In a variable with stored chunks of 6, that
//! overlaps the chunks 0 and 1.

use super::overlap::{AxisOverlap, Overlap, axis_overlaps};
use crate::grid::{AxisSelection, ChunkGrid, Selection, ravel, unravel};

/// The positions of files and variables in a table of files that are concatenated along one axis.
#[derive(Debug)]
pub(super) struct Layout {
    /// The chunk grid of the table; each file ends at a border.
    grid: ChunkGrid,
    /// The axis along which files are concatenated.
    axis: usize,
    /// The index at which each file begins on `axis`, and the end of the last one.
    starts: Vec<u64>,
    /// The table's chunk on `axis` with which each file begins; 0 where no chunk follows.
    firsts: Vec<u64>,
    /// Per variable and file: the chunk grid of the stored array.
    grids: Vec<Vec<ChunkGrid>>,
    /// Per variable and file: whether its chunks are the table's chunks there. Most are, so looking up their
    /// statistics needs no overlaps.
    are_same: Vec<Vec<bool>>,
}

impl Layout {
    /// Makes the layout of a table with the chunk grid `grid`. Files begin at `starts` on `axis`; the last
    /// entry is the end of the last file. `grids` holds the stored grids per variable and file.
    pub(super) fn new(
        grid: ChunkGrid,
        axis: usize,
        starts: Vec<u64>,
        grids: Vec<Vec<ChunkGrid>>,
    ) -> Self {
        let len = grid.shape()[axis];
        let first = |start: &u64| if *start < len { grid.chunk_of(axis, *start) } else { 0 };
        let firsts: Vec<u64> = starts.iter().map(first).collect();
        // `is_same` needs the other fields, so its results are added last.
        let mut this = Self { grid, axis, starts, firsts, grids, are_same: vec![] };
        let of_variable = |files: &Vec<ChunkGrid>| {
            files.iter().enumerate().map(|(file, grid)| this.is_same(file, grid)).collect()
        };
        this.are_same = this.grids.iter().map(of_variable).collect();
        this
    }

    /// Whether the chunks of a file, which `grid` describes, are chunks of the table.
    /// Compares the chunks of each axis, not their combinations.
    fn is_same(&self, file: usize, grid: &ChunkGrid) -> bool {
        (0..grid.rank()).all(|axis| {
            let (first, start) = match axis == self.axis {
                true => (self.firsts[file], self.starts[file]),
                false => (0, 0),
            };
            (0..grid.chunks_per_axis()[axis]).all(|chunk| {
                // The range in the table, and that in the file, which begins at `start` in the table.
                let (here, there) =
                    (self.grid.axis_range(axis, first + chunk), grid.axis_range(axis, chunk));
                here == (start + there.start..start + there.end)
            })
        })
    }

    /// Returns the number, in its own grid, of the stored chunk with the same cells as this chunk of the table.
    /// `None` if the file is cut differently.
    pub(super) fn same_chunk(
        &self,
        variable: usize,
        file: usize,
        coordinates: &[u64],
    ) -> Option<u64> {
        if !self.are_same[variable][file] {
            return None;
        }
        let mut coordinates = coordinates.to_vec();
        coordinates[self.axis] -= self.firsts[file];
        Some(ravel(&coordinates, self.grids[variable][file].chunks_per_axis()))
    }

    /// Returns the number of the file that holds a chunk of the table.
    pub(super) fn file_of(&self, coordinates: &[u64]) -> usize {
        let start = self.grid.axis_range(self.axis, coordinates[self.axis]).start;
        // An empty file begins at the same index as the next one; this takes the last of them.
        self.starts.partition_point(|first| *first <= start).saturating_sub(1)
    }

    /// The chunk grid of the table.
    pub(super) fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// The axis along which files are concatenated.
    pub(super) fn axis(&self) -> usize {
        self.axis
    }

    /// Returns the index at which each file begins that is not empty.
    pub(super) fn file_starts(&self) -> Vec<u64> {
        let files = self.starts.windows(2).filter(|file| file[0] < file[1]);
        files.map(|file| file[0]).collect()
    }

    /// The stored chunk grid of a variable in a file.
    pub(super) fn grid_of(&self, variable: usize, file: usize) -> &ChunkGrid {
        &self.grids[variable][file]
    }

    /// Returns the numbers of the files that hold a selected index.
    pub(super) fn files_of(&self, selection: &Selection) -> Vec<usize> {
        let wanted = &selection.axes()[self.axis];
        let of_file = |file: &usize| self.starts[*file]..self.starts[*file + 1];
        let files = 0..self.starts.len() - 1;
        files.filter(|file| wanted.within(of_file(file)).count() > 0).collect()
    }

    /// Returns the selection restricted to one file, with indices relative to the file.
    pub(super) fn within_file(&self, selection: &Selection, file: usize) -> Selection {
        let of_file = self.starts[file]..self.starts[file + 1];
        let mut shape = self.grid.shape().to_vec();
        shape[self.axis] = of_file.end - of_file.start;
        let mut within = Selection::all(&shape);
        for (axis, wanted) in selection.axes().iter().enumerate() {
            match axis == self.axis {
                true => within.restrict(axis, &wanted.within(of_file.clone())),
                false => within.restrict(axis, wanted),
            }
        }
        within
    }

    /// Returns the stored chunks of a variable that overlap a chunk of the table. With a `selection`, which is
    /// relative to the table's chunk, returns only those that hold a selected cell.
    pub(super) fn overlaps(
        &self,
        variable: usize,
        coordinates: &[u64],
        selection: Option<&[AxisSelection]>,
    ) -> Vec<Overlap> {
        let file = self.file_of(coordinates);
        let grid = &self.grids[variable][file];
        let axes: Vec<Vec<AxisOverlap>> = (0..grid.rank())
            .map(|axis| {
                let range = self.grid.axis_range(axis, coordinates[axis]);
                // The range of the table's chunk on this axis, as indices of the stored array.
                let before = if axis == self.axis { self.starts[file] } else { 0 };
                let of_part = range.start - before..range.end - before;
                let wanted = selection.map(|selection| &selection[axis]);
                axis_overlaps(grid, axis, &of_part, wanted)
            })
            .collect();
        // The overlapping chunks are all combinations of those of each axis, in row-major order.
        let counts: Vec<u64> = axes.iter().map(|axis| axis.len() as u64).collect();
        let combinations = 0..counts.iter().product();
        let overlap = |number| {
            let at = unravel(number, &counts);
            Overlap::new(axes.iter().zip(at).map(|(axis, at)| &axis[at as usize]))
        };
        combinations.map(overlap).collect()
    }
}
