//! [`CellLanes`]: values of scattered cells at a few positions, side by side. [`CellReader`] reads them from tiles.
//!
//! ```text
//!   tile      time 0   . a b . c .        cells of the matrix: offsets 1 to 2, and 4
//!             time 1   . d e . f .        positions: offsets 0, 6
//!
//!   lanes     cell 0   a d                8 positions of a cell are added in few instructions
//!             cell 1   b e
//!             cell 2   c f
//! ```

use std::ops::Range;

use multiversion::multiversion;

use super::bounds::Bounds;
use super::cell::Cell;
use super::elements::{Elements, Stored};
use super::keep::{Keep, KeepAll, Numbers, Test};
use super::sparse_blocks::{SparseBlocks, add};
use super::sparse_rows::SparseSums;
use crate::array::{Element, NumberColumn, for_element_type};
use crate::error::{Error, Result};
use crate::tile::Tile;

/// The number of positions that are added at once.
pub const LANES: usize = 8;

/// The values of gathered cells at one position, or at up to [`LANES`] positions.
#[derive(Debug, Clone, Default)]
pub struct CellLanes {
    /// The lanes of a cell: 1 or [`LANES`].
    pub(super) width: usize,
    /// Per cell a value per lane; 0 without a value.
    pub(super) values: Vec<f64>,
    /// Per cell 1 for each position with a value, and 0 for the others. Empty if all have one.
    pub(super) known: Vec<f64>,
}

impl CellLanes {
    /// The most bytes per cell.
    pub const BYTES: usize = 2 * LANES * size_of::<f64>();

    /// Fills in the values of `cells` at `positions` positions, at most [`LANES`]. `value` takes the number of the cell and that
    /// of the position.
    pub fn fill(
        &mut self,
        cells: usize,
        positions: usize,
        value: impl Fn(usize, usize) -> Option<f64>,
    ) {
        self.begin(cells, positions, true);
        self.values.fill(0.0);
        self.known.fill(0.0);
        let lanes = self.values.chunks_exact_mut(self.width);
        let lanes = lanes.zip(self.known.chunks_exact_mut(self.width));
        for (cell, (values, known)) in lanes.enumerate() {
            for (lane, (to, is_known)) in values.iter_mut().zip(known).take(positions).enumerate() {
                if let Some(value) = value(cell, lane) {
                    (*to, *is_known) = (value, 1.0);
                }
            }
        }
    }

    /// Makes room for so many cells, whose values are those of before.
    fn begin(&mut self, cells: usize, positions: usize, may_fail: bool) {
        self.width = if positions == 1 { 1 } else { LANES };
        let len = cells * self.width;
        self.values.resize(len, 0.0);
        self.known.resize(if may_fail { len } else { 0 }, 0.0);
    }
}

/// Reads cells of the tiles of a variable.
pub trait CellReader: Send {
    /// Whether the cells of tiles take [`SparseBlocks`].
    fn takes_blocks(&self) -> bool;

    /// Returns the cells of a tile. A tile that is no view is converted once.
    fn open<'a>(&'a mut self, tile: &'a Tile, may_hold_nulls: bool) -> Box<dyn TileCells + 'a>;
}

/// The cells of one tile.
pub trait TileCells: Send + Sync {
    /// Reads runs of cells at up to [`LANES`] positions. The index of an element is the sum of the offsets of its cell and its
    /// position.
    ///
    /// # Errors
    /// `Internal` if the tile has no such cell.
    fn read(
        &self,
        cells: &[Range<usize>],
        positions: &[usize],
        lanes: &mut CellLanes,
    ) -> Result<()>;

    /// Adds the products of a matrix and the elements at some positions, whose parts of places are `lanes`. The index of an element is the
    /// sum of its offset in the matrix and that of the position.
    ///
    /// # Errors
    /// `Internal` if the tile has no such cell, or takes no blocks.
    fn add_blocks(
        &self,
        matrix: &SparseBlocks,
        positions: &[usize],
        lanes: &[usize],
        sums: &mut SparseSums,
    ) -> Result<()>;
}

/// Returns the reader of a variable; `None` if it stores numbers in a way that only columns show, such as packed.
///
/// ```
/// use gridfusion_core::array::{NumberColumn, ReadOptions};
/// use gridfusion_core::format::ElementType;
/// use gridfusion_core::reduce::{CellLanes, SparseEntry, SparseRowsBuilder, SparseSums, cell_reader};
/// use gridfusion_core::tile::Tile;
///
/// // Two times of three cells, of which the last two are in one group.
/// let cells = [1.0f64, 2.0, 3.0, 4.0, f64::NAN, 6.0].map(f64::to_le_bytes);
/// let tile = Tile::fixed(cells.concat().into(), 8);
/// let column = NumberColumn::with_nulls(ElementType::F64, &[], &ReadOptions::default());
/// let mut reader = cell_reader(&column).ok_or("packed")?;
/// let mut lanes = CellLanes::default();
/// reader.open(&tile, true).read(&[1..3], &[0, 3], &mut lanes)?;
/// let entries = [0, 1].map(|cell| SparseEntry { place: 0, cell, weight: 0.5 });
/// let mut sums = SparseSums::new(2);
/// SparseRowsBuilder::new(2).rows(entries.into_iter()).add(&lanes, &[0, 1], &mut sums);
/// assert_eq!((sums.sums, sums.weights), (vec![2.5, 3.0], vec![1.0, 0.5]));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn cell_reader(value: &NumberColumn) -> Option<Box<dyn CellReader>> {
    for_element_type!(
        value.element(),
        T => Reader::<T>::boxed(value),
        F16 => None
    )
}

struct Reader<T: Element>
where
    T::Native: Cell,
{
    stored: Stored<T>,
    elements: Elements<T>,
}

impl<T: Element> Reader<T>
where
    T::Native: Cell + Bounds,
{
    fn boxed(value: &NumberColumn) -> Option<Box<dyn CellReader>> {
        let stored = Stored::<T>::of(value)?;
        let elements = Elements::new(value);
        stored.packing.is_none().then(|| Box::new(Self { stored, elements }) as _)
    }
}

impl<T: Element> CellReader for Reader<T>
where
    T::Native: Cell + Bounds,
{
    /// Sums in doubles have loops of their own for floats. Integers are rare where they are not packed.
    fn takes_blocks(&self) -> bool {
        T::Native::IS_FLOAT
    }

    fn open<'a>(&'a mut self, tile: &'a Tile, may_hold_nulls: bool) -> Box<dyn TileCells + 'a> {
        let keep = match may_hold_nulls {
            true => self.stored.keep(&Default::default()),
            false => Keep::All,
        };
        let elements = self.elements.of_tile(tile, may_hold_nulls);
        Box::new(Opened::<T::Native> { elements, keep, is_repeated: tile.is_repeated() })
    }
}

/// The elements of a tile.
struct Opened<'a, T: Cell> {
    elements: &'a [T::Bytes],
    keep: Keep<T>,
    /// Whether the only element stands for all cells.
    is_repeated: bool,
}

impl<T: Cell + Bounds> TileCells for Opened<'_, T> {
    fn read(
        &self,
        cells: &[Range<usize>],
        positions: &[usize],
        lanes: &mut CellLanes,
    ) -> Result<()> {
        let count = cells.iter().map(Range::len).sum();
        if let ([element], true) = (self.elements, self.is_repeated) {
            let element = T::from_bytes(*element);
            let value = self.keep.keeps(element).then(|| element.to_f64());
            lanes.fill(count, positions.len(), |_, _| value);
            return Ok(());
        }
        let end = cells.iter().map(|run| run.end).max().unwrap_or_default();
        self.check(end, positions)?;
        lanes.begin(count, positions.len(), !matches!(self.keep, Keep::All));
        match self.keep {
            Keep::All => gather::<T, _>(self.elements, cells, positions, KeepAll, lanes),
            Keep::Numbers => gather::<T, _>(self.elements, cells, positions, Numbers, lanes),
            Keep::Between(test) => gather::<T, _>(self.elements, cells, positions, test, lanes),
            Keep::Interval(test) => gather::<T, _>(self.elements, cells, positions, test, lanes),
            Keep::Nothing => lanes.fill(count, positions.len(), |_, _| None),
        }
        Ok(())
    }

    fn add_blocks(
        &self,
        matrix: &SparseBlocks,
        positions: &[usize],
        lanes: &[usize],
        sums: &mut SparseSums,
    ) -> Result<()> {
        if !T::IS_FLOAT {
            return Err(Error::internal("blocks of integers"));
        }
        if let ([element], true) = (self.elements, self.is_repeated) {
            let element = T::from_bytes(*element);
            if self.keep.keeps(element) {
                matrix.add_repeated(element.to_f64(), lanes, sums);
            }
            return Ok(());
        }
        self.check(matrix.end, positions)?;
        let elements = self.elements;
        match self.keep {
            Keep::All => add::<T, _>(matrix, elements, KeepAll, positions, lanes, sums),
            Keep::Numbers => add::<T, _>(matrix, elements, Numbers, positions, lanes, sums),
            Keep::Between(test) => {
                add::<T, _>(matrix, elements, test.common(), positions, lanes, sums);
            }
            Keep::Interval(test) => add::<T, _>(matrix, elements, test, positions, lanes, sums),
            Keep::Nothing => {}
        }
        Ok(())
    }
}

impl<T: Cell> Opened<'_, T> {
    /// Fails if elements before `end` reach beyond the tile at some position.
    fn check(&self, end: usize, positions: &[usize]) -> Result<()> {
        let last = positions.iter().max().copied().unwrap_or_default();
        match end > 0 && end + last > self.elements.len() {
            true => Err(Error::internal("a tile that is smaller than its chunk")),
            false => Ok(()),
        }
    }
}

/// Copies elements to their lanes.
fn gather<T: Cell, K: Test<T>>(
    elements: &[T::Bytes],
    cells: &[Range<usize>],
    positions: &[usize],
    test: K,
    lanes: &mut CellLanes,
) {
    match positions {
        [] => {}
        [position] => gather_lanes::<T, K, 1>(elements, cells, [*position], test, lanes),
        // Lanes behind the last position repeat it, and are not used.
        [.., last] => {
            let positions = std::array::from_fn(|lane| *positions.get(lane).unwrap_or(last));
            gather_lanes::<T, K, LANES>(elements, cells, positions, test, lanes);
        }
    }
}

/// Cells are first put side by side as they are stored, in blocks that stay in the processor's nearest cache. Then a block is tested
/// and converted at once.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx2", "x86_64+avx2"))]
fn gather_lanes<T: Cell, K: Test<T>, const WIDTH: usize>(
    elements: &[T::Bytes],
    cells: &[Range<usize>],
    positions: [usize; WIDTH],
    test: K,
    lanes: &mut CellLanes,
) {
    /// The cells of a block.
    const CELLS: usize = 64;
    let Some(first) = elements.first() else { return };
    let (mut block, mut filled) = ([[T::from_bytes(*first); WIDTH]; CELLS], 0);
    let (mut values, mut known) = (&mut lanes.values[..], &mut lanes.known[..]);
    for run in cells {
        let mut run = run.clone();
        while !run.is_empty() {
            let len = run.len().min(CELLS - filled);
            let rows = positions.map(|position| &elements[position + run.start..][..len]);
            for (cell, lanes) in block[filled..][..len].iter_mut().enumerate() {
                *lanes = rows.map(|row| T::from_bytes(row[cell]));
            }
            (run.start, filled) = (run.start + len, filled + len);
            if filled == CELLS {
                (values, known) = convert(block.as_flattened(), test, values, known);
                filled = 0;
            }
        }
    }
    convert(block[..filled].as_flattened(), test, values, known);
}

/// Converts elements to lanes, and returns the lanes behind these.
#[inline(always)]
fn convert<'a, T: Cell, K: Test<T>>(
    elements: &[T],
    test: K,
    values: &'a mut [f64],
    known: &'a mut [f64],
) -> (&'a mut [f64], &'a mut [f64]) {
    let (values, more_values) = values.split_at_mut(elements.len());
    if !K::MAY_FAIL {
        for (value, element) in values.iter_mut().zip(elements) {
            *value = element.to_f64();
        }
        return (more_values, known);
    }
    let (known, more_known) = known.split_at_mut(elements.len());
    for ((value, known), element) in values.iter_mut().zip(known).zip(elements) {
        let keeps = test.keeps(*element);
        *value = if keeps { element.to_f64() } else { 0.0 };
        *known = f64::from(u8::from(keeps));
    }
    (more_values, more_known)
}
