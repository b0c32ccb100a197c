//! [`CellTest`]: a condition on the values of another variable, which the cells of a member must meet, too.
//!
//! ```text
//!   avg(t) FILTER (WHERE p > 0)
//!
//!   tile of p ─▶ bytes of a batch   1 0 1 1 0      each test clears the bytes of cells that fail it
//!   tile of t ─▶ masked cells       t × t t ×      × is an element that the member's own test leaves out
//! ```
//!
//! The bytes and the masked cells of a batch stay in the nearest cache, so each tile is read once from memory.

use std::ops::Range;

use arrow::datatypes::Float32Type;

use super::batch::Rows;
use super::bounds::Bounds;
use super::cell::Cell;
use super::elements::{Elements, Stored};
use super::keep::{Keep, Numbers, Test};
use super::loops;
use super::value_range::ValueRange;
use crate::array::{Element, NumberColumn, for_element_type};
use crate::error::{Error, Result};
use crate::tile::Tile;

/// The test of a variable, for each form in which files store it.
pub struct CellTest {
    forms: Vec<Box<dyn FormTest>>,
}

/// The test of the cells of a tile.
pub struct TestedTile<'a>(Box<dyn TileTest + 'a>);

/// The test of a variable in one form.
trait FormTest: Send {
    fn of_tile<'a>(&'a mut self, tile: &'a Tile, may_hold_nulls: bool) -> Box<dyn TileTest + 'a>;
    fn scratch_bytes(&self) -> usize;
}

trait TileTest: Send {
    fn cells(&self) -> usize;
    fn restrict(&self, rows: Rows, columns: &Range<usize>, mask: &mut [u8]);
}

impl CellTest {
    /// Returns the test for values in `range` of a variable whose forms are `columns`. `None` if the kernels do not support
    /// a column, or if values may be NaN and have to be compared.
    pub fn of_forms(columns: &[&NumberColumn], range: &ValueRange) -> Option<Self> {
        let data_type = columns.first()?.data_type();
        let compares = !range.is_unbounded();
        let is_comparable = |column: &&NumberColumn| {
            !compares || column.data_type() == data_type && !column.may_be_nan()
        };
        if !columns.iter().all(is_comparable) {
            return None;
        }
        let forms = columns.iter().map(|column| form_test(column, range)).collect::<Option<_>>()?;
        Some(Self { forms })
    }

    /// Returns the test of the cells of a tile.
    ///
    /// # Errors
    /// `Internal` if the form of the tile is unknown.
    pub fn of_tile<'a>(
        &'a mut self,
        tile: &'a Tile,
        may_hold_nulls: bool,
    ) -> Result<TestedTile<'a>> {
        let form = if self.forms.len() == 1 { 0 } else { tile.form() as usize };
        let missing = || Error::internal("a form without a test");
        let form = self.forms.get_mut(form).ok_or_else(missing)?;
        Ok(TestedTile(form.of_tile(tile, may_hold_nulls)))
    }

    /// Returns the bytes of scratch memory, for tiles that are converted.
    pub fn scratch_bytes(&self) -> usize {
        self.forms.iter().map(|form| form.scratch_bytes()).sum()
    }
}

impl TestedTile<'_> {
    /// Returns the number of cells.
    pub(super) fn cells(&self) -> usize {
        self.0.cells()
    }

    /// Clears the bytes of the cells that fail. `mask` has those of `columns` of the first row, then those of the next.
    pub(super) fn restrict(&self, rows: Rows, columns: &Range<usize>, mask: &mut [u8]) {
        self.0.restrict(rows, columns, mask);
    }
}

fn form_test(column: &NumberColumn, range: &ValueRange) -> Option<Box<dyn FormTest>> {
    for_element_type!(
        column.element(),
        T => boxed::<T>(&Stored::of(column)?, range),
        F16 => boxed::<Float32Type>(&Stored::of_halves(column)?, range)
    )
}

fn boxed<T: Element>(stored: &Stored<T>, range: &ValueRange) -> Option<Box<dyn FormTest>>
where
    T::Native: Cell + Bounds,
{
    let elements = Elements::<T>::new(&stored.value);
    Some(Box::new(OfForm { elements, keep: stored.keep(range) }))
}

struct OfForm<T: Element>
where
    T::Native: Cell,
{
    elements: Elements<T>,
    keep: Keep<T::Native>,
}

impl<T: Element> FormTest for OfForm<T>
where
    T::Native: Cell + Bounds,
{
    fn of_tile<'a>(&'a mut self, tile: &'a Tile, may_hold_nulls: bool) -> Box<dyn TileTest + 'a> {
        let cells = self.elements.of_tile(tile, may_hold_nulls);
        Box::new(OfCells::<T::Native> { cells, keep: self.keep })
    }

    fn scratch_bytes(&self) -> usize {
        self.elements.scratch_bytes()
    }
}

struct OfCells<'a, T: Cell> {
    cells: &'a [T::Bytes],
    keep: Keep<T>,
}

impl<T: Cell> OfCells<'_, T> {
    fn with<K: Test<T>>(&self, test: K, rows: Rows, columns: &Range<usize>, mask: &mut [u8]) {
        loops::tested::<T, K>(self.cells, rows, columns, test, mask);
    }
}

impl<T: Cell> TileTest for OfCells<'_, T> {
    fn cells(&self) -> usize {
        self.cells.len()
    }

    fn restrict(&self, rows: Rows, columns: &Range<usize>, mask: &mut [u8]) {
        match self.keep {
            Keep::All => {}
            Keep::Numbers if T::IS_FLOAT => self.with(Numbers, rows, columns, mask),
            Keep::Numbers => {}
            Keep::Between(between) => self.with(between, rows, columns, mask),
            Keep::Interval(interval) => self.with(interval, rows, columns, mask),
            Keep::Nothing => mask.fill(0),
        }
    }
}
