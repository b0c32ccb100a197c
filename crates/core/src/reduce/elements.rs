//! The elements of tiles, as the kernels read them, and the test for those that are no NULL.

use std::ops::Range;

use arrow::datatypes::{Float16Type, Float32Type};

use super::batch::{Batch, Rows, Segment};
use super::bounds::Bounds;
use super::cell::Cell;
use super::keep::Keep;
use super::masks::{runs, selected_columns};
use super::packing::Packing;
use super::value_range::ValueRange;
use crate::array::{Element, NumberColumn};
use crate::format::{ElementType, bound};
use crate::tile::Tile;

/// How a column stores its numbers.
pub(super) struct Stored<T: Element> {
    pub(super) value: NumberColumn,
    /// The element that stands for NULL, besides NaN.
    fill: Option<T::Native>,
    pub(super) packing: Option<Packing>,
}

impl<T: Element> Stored<T>
where
    T::Native: Cell + Bounds,
{
    /// Returns how `value` stores numbers as elements of type `T`; `None` if the kernels do not support it.
    pub(super) fn of(value: &NumberColumn) -> Option<Self> {
        Self::with_fill(value, value.fill_as::<T>())
    }

    fn with_fill(value: &NumberColumn, fill: Option<T::Native>) -> Option<Self> {
        let packing = Packing::try_new(value.form()?);
        if value.has_validity() && (!value.nan_is_null() || packing.is_some()) {
            return None; // no element can stand for NULL
        }
        if packing.is_some_and(|packing| !packing.is_finite::<T::Native>()) {
            return None; // sums of stored numbers may be finite where sums of values are not
        }
        Some(Self { value: value.clone(), fill, packing })
    }

    /// Returns the test for elements that are not NULL, and whose values are in `range`.
    pub(super) fn keep(&self, range: &ValueRange) -> Keep<T::Native> {
        let keep = match self.packing {
            Some(packing) => packing.keep::<T>(self.fill, range),
            None => Keep::new(self.value.nan_is_null(), self.fill, range),
        };
        let zero = self.fill.filter(|_| self.value.zeros_are_null());
        zero.map_or(keep, |zero| keep.without_zeros(zero))
    }
}

impl Stored<Float32Type> {
    /// Returns how a column of halves stores numbers, which are read as singles.
    pub(super) fn of_halves(value: &NumberColumn) -> Option<Self> {
        Self::with_fill(value, value.fill_as::<Float16Type>().map(f32::from))
    }
}

/// Reads the elements of tiles in the type that is reduced.
pub(super) struct Elements<T: Element>
where
    T::Native: Cell,
{
    is_half: bool,
    /// Scratch memory for cells that are converted.
    converted: Vec<<T::Native as Cell>::Bytes>,
}

/// The elements of a tile.
pub(super) enum TileElements<'a, T: Cell> {
    /// As the tile holds them.
    Stored(&'a [T::Bytes]),
    /// Not in the type that is reduced, or without NaN for the cells of which a validity byte is 0.
    Converted(ConvertedElements<'a>),
}

/// Elements that are read one run of cells at a time.
#[derive(Clone, Copy)]
pub(super) struct ConvertedElements<'a> {
    is_half: bool,
    bytes: &'a [u8],
    validity: Option<&'a [u8]>,
}

impl<T: Element> Elements<T>
where
    T::Native: Cell,
{
    pub(super) fn new(value: &NumberColumn) -> Self {
        Self { is_half: value.element() == ElementType::F16, converted: Vec::new() }
    }

    /// Returns the bytes of scratch memory.
    pub(super) fn scratch_bytes(&self) -> usize {
        self.converted.capacity() * size_of::<T::Native>()
    }

    /// Returns the tile's elements, with NaN for NULL where cells have validity bytes. They are a view of the tile if they can be.
    pub(super) fn open<'a>(
        &self,
        tile: &'a Tile,
        may_hold_nulls: bool,
    ) -> TileElements<'a, T::Native> {
        let (bytes, is_half) = (tile.bytes(), self.is_half);
        let missing = tile.validity().filter(|validity| may_hold_nulls && validity.contains(&0));
        if is_half || missing.is_some() {
            return TileElements::Converted(ConvertedElements {
                is_half,
                bytes,
                validity: missing,
            });
        }
        let whole = bytes.len() - bytes.len() % size_of::<T::Native>();
        TileElements::Stored(bytemuck::cast_slice(&bytes[..whole]))
    }

    /// Returns all elements of a tile. They are converted into memory that the next tile reuses.
    pub(super) fn of_tile<'a>(
        &'a mut self,
        tile: &'a Tile,
        may_hold_nulls: bool,
    ) -> &'a [<T::Native as Cell>::Bytes] {
        match self.open(tile, may_hold_nulls) {
            TileElements::Stored(cells) => cells,
            TileElements::Converted(tile) => {
                let cells = tile.len::<T::Native>();
                tile.convert::<T>(0..cells, self.scratch(cells));
                &self.converted[..cells]
            }
        }
    }

    /// Returns a batch of a tile. Cells that are converted stay in the nearest cache until the statistics have passed over them.
    pub(super) fn batch<'a>(
        &'a mut self,
        tile: &TileElements<'a, T::Native>,
        rows: Rows,
        inner: &'a [Segment],
    ) -> Batch<'a, T::Native> {
        let tile = match tile {
            TileElements::Stored(cells) => return Batch { cells, base: 0, rows, inner },
            TileElements::Converted(tile) => tile,
        };
        let columns = selected_columns(inner);
        let base = rows.start + columns.start;
        // As far apart as in the tile, so that a row is found alike.
        let cells = self.scratch(rows.count.saturating_sub(1) * rows.stride + columns.len());
        let (len, starts) = runs(rows, &columns);
        for start in starts {
            tile.convert::<T>(start..start + len, &mut cells[start - base..][..len]);
        }
        Batch { cells, base, rows, inner }
    }

    fn scratch(&mut self, cells: usize) -> &mut [<T::Native as Cell>::Bytes] {
        if self.converted.len() < cells {
            self.converted.resize(cells, bytemuck::Zeroable::zeroed());
        }
        &mut self.converted[..cells]
    }
}

impl<T: Cell> TileElements<'_, T> {
    /// Returns the number of cells.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Stored(cells) => cells.len(),
            Self::Converted(tile) => tile.len::<T>(),
        }
    }
}

impl ConvertedElements<'_> {
    fn len<T>(&self) -> usize {
        self.bytes.len() / if self.is_half { 2 } else { size_of::<T>() }
    }

    /// Converts `cells` of the tile.
    fn convert<T: Element>(&self, cells: Range<usize>, to: &mut [<T::Native as Cell>::Bytes])
    where
        T::Native: Cell,
    {
        if self.is_half {
            let single =
                |half: &[u8; 2]| bound(&half::f16::from_le_bytes(*half).to_f32().to_le_bytes());
            let halves = &self.bytes.as_chunks::<2>().0[cells.clone()];
            to.iter_mut()
                .zip(halves)
                .for_each(|(cell, half)| *cell = T::from_bound(single(half)).to_bytes());
        } else {
            let size = size_of::<T::Native>();
            let bytes = &self.bytes[cells.start * size..cells.end * size];
            bytemuck::cast_slice_mut::<_, u8>(to).copy_from_slice(bytes);
        }
        if let Some(validity) = self.validity {
            // Only columns of floats where NaN is NULL get here: `Stored` refuses the others.
            let cells = to.iter_mut().zip(&validity[cells]);
            cells
                .filter(|(_, valid)| **valid == 0)
                .for_each(|(cell, _)| *cell = T::Native::NAN.to_bytes());
        }
    }
}
