//! The corners of all cells, and the index over them.

use super::blocks::{Block, blocks};
use super::bounds::Bounds;
use super::cell::{Cell, Flaw};

/// The cells of a grid in row-major order.
#[derive(Debug)]
pub(super) struct Mesh {
    pub(super) rows: usize,
    pub(super) columns: usize,
    corners: Corners,
    /// The longitude and the latitude of each label, or nothing.
    labels: Vec<[f64; 2]>,
    pub(super) blocks: Vec<Block>,
    /// How many cells have edges that cross.
    pub(super) crossed: usize,
    /// How many cells can be covered.
    pub(super) sound: usize,
}

/// Corners as longitude and latitude.
#[derive(Debug)]
pub(super) enum Corners {
    /// Four for each cell.
    OfCells(Vec<[f64; 2]>),
    /// Shared by neighbours: a row and a column more than of cells.
    Shared(Vec<[f64; 2]>),
}

impl Mesh {
    pub(super) fn new([rows, columns]: [u32; 2], corners: Corners, labels: Vec<[f64; 2]>) -> Self {
        let mut mesh = Self {
            rows: rows as usize,
            columns: columns as usize,
            corners,
            labels,
            blocks: Vec::new(),
            crossed: 0,
            sound: 0,
        };
        let (mut crossed, mut sound) = (0, 0);
        mesh.blocks = blocks(rows, columns, |row, column| match mesh.cell(row, column) {
            Ok(cell) => {
                sound += 1;
                *cell.bounds()
            }
            Err(flaw) => {
                crossed += usize::from(flaw == Flaw::Crossed);
                Bounds::NONE
            }
        });
        (mesh.crossed, mesh.sound) = (crossed, sound);
        mesh
    }

    /// Returns a cell, or why none can be covered there.
    pub(super) fn cell(&self, row: usize, column: usize) -> Result<Cell, Flaw> {
        Cell::new(match &self.corners {
            Corners::OfCells(corners) => {
                let first = 4 * (row * self.columns + column);
                [0, 1, 2, 3].map(|it| corners[first + it])
            }
            Corners::Shared(corners) => {
                // The corners may all come from other centres.
                self.label(row, column).ok_or(Flaw::Missing)?;
                let first = row * (self.columns + 1) + column;
                let below = first + self.columns + 1;
                [first, first + 1, below + 1, below].map(|it| corners[it])
            }
        })
    }

    /// Whether some cell has a place, but none can be covered.
    pub(super) fn is_without_cells(&self) -> bool {
        self.sound == 0 && self.labels.iter().flatten().any(|it| it.is_finite())
    }

    /// Returns the place of a cell's label, if there is one.
    pub(super) fn label(&self, row: usize, column: usize) -> Option<[f64; 2]> {
        let label = self.labels.get(row * self.columns + column)?;
        label.iter().all(|it| it.is_finite()).then_some(*label)
    }
}
