//! The elements of tiles, as the kernels read them, and the test for those that are no NULL.

use arrow::datatypes::{Float16Type, Float32Type};

use super::bounds::Bounds;
use super::cell::Cell;
use super::keep::Keep;
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
pub(super) struct Elements<T: Element> {
    is_half: bool,
    /// Scratch memory for a tile that is converted.
    converted: Vec<T::Native>,
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

    /// Returns the tile's elements, with NaN for NULL where cells have validity bytes. They are a view of the tile, unless
    /// they have to be changed or are not aligned.
    pub(super) fn of_tile<'a>(
        &'a mut self,
        tile: &'a Tile,
        may_hold_nulls: bool,
    ) -> &'a [T::Native] {
        let bytes = tile.bytes();
        let missing = tile.validity().filter(|validity| may_hold_nulls && validity.contains(&0));
        if !self.is_half
            && missing.is_none()
            && let Ok(cells) = bytemuck::try_cast_slice(bytes)
        {
            return cells;
        }
        // Tiles are converted whole, into memory that the next tile reuses.
        let converted = &mut self.converted;
        if self.is_half {
            let single =
                |half: &[u8; 2]| bound(&half::f16::from_le_bytes(*half).to_f32().to_le_bytes());
            let halves = bytes.as_chunks::<2>().0.iter();
            converted.clear();
            converted.extend(halves.map(|half| T::from_bound(single(half))));
        } else {
            converted.resize(bytes.len() / size_of::<T::Native>(), bytemuck::Zeroable::zeroed());
            let aligned: &mut [u8] = bytemuck::cast_slice_mut(converted);
            let whole = aligned.len();
            aligned.copy_from_slice(&bytes[..whole]);
        }
        if let Some(validity) = missing {
            // Only columns of floats where NaN is NULL get here: `Stored` refuses the others.
            let cells = converted.iter_mut().zip(validity);
            cells.filter(|(_, valid)| **valid == 0).for_each(|(cell, _)| *cell = T::Native::NAN);
        }
        converted
    }
}
