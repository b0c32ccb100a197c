//! Tile statistics of one attribute of one fragment: parses them, and checks which of them can be used.
//!
//! Bounds are the least and the greatest value of the cells that were written and are not NULL. Writers
//! compute bounds and sums wrongly in two cases:
//!
//! - A NaN makes the writer forget the bounds of the cells before it. The NaN shows in the sum, which
//!   is NaN from then on. If an infinity comes first, the sum saturates at the greatest double, which
//!   hides the NaN.
//! - A sum that overflows saturates at the greatest or least number of its type. The cells that follow
//!   may move it away from there again.
//!
//! For values 1, NaN, 3, the stored bounds are 3 to 3, and the sum is NaN. The 1 lies outside the bounds,
//! and a reader that used them could miss it.
//!
//! So statistics of floats are used only if the bounds explain the sum, and no part of the sum can have
//! overflowed. A sum of integers is left out if a part of it may have overflowed. If the bounds do not
//! explain any other sum, all statistics of the tile are rejected.

use bytes::Bytes;

use crate::bytes::datatype::Datatype;
use crate::bytes::filter::EncryptionKey;
use crate::bytes::fragments::{Fragment, TileBox};
use crate::bytes::generic_tile;
use crate::bytes::schema::{CellOrder, integer_of};
use crate::bytes::text::numbers;
use gridfusion_core::Result;
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::format::{Location, Sum, Zone, ZoneBound};

/// The tile statistics of one attribute of one fragment, as stored.
///
/// All lists are in the order of the fragment's tiles, which [`TileBox::place`] numbers.
#[derive(Debug)]
pub(in crate::bytes) struct TileStatistics {
    datatype: Datatype,
    tiles: TileBox,
    order: CellOrder,
    /// The least value of each tile, one after the other, in the bytes of `datatype`.
    mins: Vec<u8>,
    /// The greatest value of each tile, in the same form.
    maxs: Vec<u8>,
    /// The bits of the sum of each tile: `i64` for signed numbers, `u64` for unsigned ones, `f64` for
    /// floats. `None` if the writer stored none.
    sums: Option<Vec<u64>>,
    /// `None` if the attribute is not nullable.
    null_counts: Option<Vec<u64>>,
}

/// The stored statistics of one tile. Bounds and sum leave out NULLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredStatistics {
    /// The bytes of the least and of the greatest value.
    pub bounds: (ZoneBound, ZoneBound),
    /// The bits of the sum; `None` if it is not stored.
    pub sum: Option<u64>,
    /// The number of NULLs; `None` if the attribute is not nullable.
    pub null_count: Option<u64>,
}

const REGION: &str = "tile statistics";

impl TileStatistics {
    /// Parses the blocks at `locations`: least values, greatest values, sums and, if the attribute is
    /// nullable, NULL counts. `None` if the writer stored no bounds or no NULL counts.
    ///
    /// # Errors
    /// `Corrupt` if a block does not have one entry per tile.
    pub(in crate::bytes) fn parse(
        fragment: &Fragment,
        datatype: Datatype,
        locations: &[Location],
        blocks: &[Bytes],
        key: Option<&EncryptionKey>,
    ) -> Result<Option<Self>> {
        let mut contents = vec![];
        for (at, block) in locations.iter().zip(blocks) {
            contents.push(generic_tile::decode(REGION, at.start(), block, key)?);
        }
        let mut contents = contents.iter().map(|content| Reader::new(REGION, 0, content));
        let empty = || Reader::new(REGION, 0, &[]);
        let mut next = || contents.next().unwrap_or_else(empty);
        let bounds_len = fragment.tiles.saturating_mul(datatype.size());
        let mins = bounds(&mut next(), bounds_len)?;
        let maxs = bounds(&mut next(), bounds_len)?;
        let sums = per_tile(&mut next(), fragment.tiles)?;
        // The caller requests this block for nullable attributes only. Without counts, nothing tells how many
        // values the bounds and the sum describe.
        let null_counts = match contents.next() {
            Some(mut reader) => match per_tile(&mut reader, fragment.tiles)? {
                Some(counts) => Some(counts),
                None => return Ok(None),
            },
            None => None,
        };
        let (Some(mins), Some(maxs)) = (mins, maxs) else { return Ok(None) };
        let tiles = fragment.tile_box.clone();
        let order = fragment.schema.tile_order;
        Ok(Some(Self { datatype, tiles, order, mins, maxs, sums, null_counts }))
    }

    /// Returns the statistics of the tile with these numbers on the axes, of which `cells` were
    /// written. `None` if they cannot be used.
    pub(in crate::bytes) fn zone(&self, tile: &[u64], cells: u64) -> Option<Zone> {
        self.zone_of(self.tiles.place(tile, self.order), cells)
    }

    /// Returns the statistics of tile number `place` of the fragment, in which `cells` were written. `None` if
    /// they cannot be used.
    pub(in crate::bytes) fn zone_of(&self, place: u64, cells: u64) -> Option<Zone> {
        let place = usize::try_from(place).ok()?;
        let null_count = match &self.null_counts {
            Some(counts) => *counts.get(place)?,
            None => 0,
        };
        let values = cells.checked_sub(null_count)?;
        // Only NULLs: the stored bounds are meaningless then.
        if values == 0 {
            return Some(Zone::new(null_count, None));
        }
        let (min, max) = (self.bound(&self.mins, place)?, self.bound(&self.maxs, place)?);
        let sum = self.sums.as_ref().and_then(|sums| sums.get(place)).copied();
        let (bounds, sum) = match self.datatype {
            Datatype::Float32 | Datatype::Float64 => {
                self.checked_float_statistics(min, max, sum?, values)?
            }
            _ => ((min, max), self.checked_integer_sum(min, max, sum, values)?),
        };
        Some(Zone::new(null_count, Some(bounds)).with_sum(sum))
    }

    /// Returns the stored statistics of tile number `place` without checking them.
    pub(in crate::bytes) fn stored_statistics(&self, place: u64) -> Option<StoredStatistics> {
        let place = usize::try_from(place).ok()?;
        let per_tile = |stored: &Option<Vec<u64>>| stored.as_ref()?.get(place).copied();
        Some(StoredStatistics {
            bounds: (self.bound(&self.mins, place)?, self.bound(&self.maxs, place)?),
            sum: per_tile(&self.sums),
            null_count: per_tile(&self.null_counts),
        })
    }

    /// Returns the bound of tile number `place`, padded to 8 bytes.
    fn bound(&self, bounds: &[u8], place: usize) -> Option<ZoneBound> {
        let size = to_usize(self.datatype.size());
        let start = place.checked_mul(size)?;
        let mut bound = ZoneBound::default();
        bound.get_mut(..size)?.copy_from_slice(bounds.get(start..start.checked_add(size)?)?);
        Some(bound)
    }

    /// Returns the sum, or `Some(None)` if it is not stored, may have overflowed, or adds up dates or
    /// times. `None` if the statistics contradict each other.
    ///
    /// 100 values from -5 to 7 have sums from -500 to 700, and so have all sums on the way there: none of
    /// them has overflowed. A stored sum of 701 is a contradiction.
    fn checked_integer_sum(
        &self,
        min: ZoneBound,
        max: ZoneBound,
        sum: Option<u64>,
        values: u64,
    ) -> Option<Option<Sum>> {
        let signed = self.datatype.is_signed();
        let value = |bound: ZoneBound| {
            let bytes = bound.get(..to_usize(self.datatype.size()));
            bytes.map(|bytes| integer_of(bytes, signed))
        };
        let (min, max) = (value(min)?, value(max)?);
        if min > max {
            return None;
        }
        // No sum of some of the values can exceed this number, in either direction.
        let most = min.abs().max(max.abs()).checked_mul(i128::from(values));
        let limit = if signed { i128::from(i64::MAX) } else { i128::from(u64::MAX) };
        let (Some(sum), Some(true)) = (sum, most.map(|most| most <= limit)) else {
            return Some(None);
        };
        if self.datatype.is_temporal() {
            return Some(None);
        }
        let number = integer_of(&sum.to_le_bytes(), signed);
        let values = i128::from(values);
        let explained = min * values <= number && number <= max * values;
        let sum = if signed { Sum::Signed(sum.cast_signed()) } else { Sum::Unsigned(sum) };
        explained.then_some(Some(sum))
    }

    /// Returns bounds and sum; `None` if a NaN or an infinity may have been among the values.
    fn checked_float_statistics(
        &self,
        min: ZoneBound,
        max: ZoneBound,
        sum: u64,
        values: u64,
    ) -> Option<((ZoneBound, ZoneBound), Option<Sum>)> {
        let value = |bound: ZoneBound| match self.datatype {
            Datatype::Float32 => {
                bound.first_chunk().map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
            }
            _ => Some(f64::from_le_bytes(bound)),
        };
        let (least, greatest, sum) = (value(min)?, value(max)?, f64::from_bits(sum));
        // Comparisons with NaN are false. A sum that saturated at the greatest double cannot come back
        // to what these values add up to: they are too few or too small. The factors leave room for
        // rounding.
        let most = least.abs().max(greatest.abs()) * values as f64;
        let explained = least <= greatest && most < f64::MAX / 4.0 && sum.abs() <= 2.0 * most;
        explained.then_some(((min, max), Some(Sum::Float(sum))))
    }
}

/// Parses a block of bounds that should have `len` bytes; `None` if the writer stored none.
fn bounds(reader: &mut Reader<'_>, len: u64) -> Result<Option<Vec<u8>>> {
    let fixed = reader.u64()?;
    let variable = reader.u64()?;
    if (fixed, variable) == (0, 0) {
        return Ok(None);
    }
    if (fixed, variable) != (len, 0) {
        let message = format!("{fixed} and {variable} bytes of bounds, expected {len} and 0");
        return Err(reader.corrupt(message));
    }
    let bounds = reader.take(to_usize(fixed))?.to_vec();
    reader.end()?;
    Ok(Some(bounds))
}

/// Parses a block of one number per tile; `None` if the writer stored none.
fn per_tile(reader: &mut Reader<'_>, tiles: u64) -> Result<Option<Vec<u64>>> {
    let count = reader.u64()?;
    if count == 0 {
        return Ok(None);
    }
    if count != tiles {
        return Err(reader.corrupt(format!("statistics of {count} tiles, expected {tiles}")));
    }
    let numbers = numbers(reader, count)?;
    reader.end()?;
    Ok(Some(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(
        datatype: Datatype,
        min: &[u8],
        max: &[u8],
        sum: u64,
        nulls: Option<u64>,
    ) -> TileStatistics {
        TileStatistics {
            datatype,
            tiles: TileBox { first: vec![3], count: vec![1] },
            order: CellOrder::RowMajor,
            mins: min.to_vec(),
            maxs: max.to_vec(),
            sums: Some(vec![sum]),
            null_counts: nulls.map(|nulls| vec![nulls]),
        }
    }

    fn floats(min: f64, max: f64, sum: f64) -> Option<Zone> {
        let (min, max) = (min.to_le_bytes(), max.to_le_bytes());
        statistics(Datatype::Float64, &min, &max, sum.to_bits(), None).zone(&[3], 10)
    }

    fn integers(min: i64, max: i64, sum: i64) -> Option<Zone> {
        let (min, max) = (min.to_le_bytes(), max.to_le_bytes());
        statistics(Datatype::Int64, &min, &max, sum.cast_unsigned(), None).zone(&[3], 10)
    }

    #[test]
    fn statistics_with_nan_or_infinity_are_not_used() {
        let zone = floats(-1.5, 2.5, 7.0).unwrap();
        assert_eq!(zone.sum, Some(Sum::Float(7.0)));
        assert_eq!(zone.bounds, Some(((-1.5_f64).to_le_bytes(), 2.5_f64.to_le_bytes())));
        assert!(floats(-1.5, 2.5, f64::NAN).is_none());
        assert!(floats(-1.5, f64::INFINITY, f64::MAX).is_none());
        assert!(floats(-1.5, 2.5, f64::MAX).is_none());
        assert!(floats(-1e300, 2.5, f64::MAX - 1e300).is_none());
        assert!(floats(-1.5, 2.5, f64::NEG_INFINITY).is_none());
        assert!(floats(f64::NAN, 2.5, 1.0).is_none());
        assert!(floats(2.5, -1.5, 1.0).is_none());
        assert!(floats(-1e308, 1e308, 1.0).is_none());
        assert!(floats(-1.5, 2.5, 60.0).is_none());
    }

    #[test]
    fn sums_that_may_have_overflowed_are_left_out() {
        assert_eq!(integers(-5, 7, 20).unwrap().sum, Some(Sum::Signed(20)));
        let huge = integers(-5, i64::MAX / 4, 20).unwrap();
        assert_eq!(
            (huge.sum, huge.bounds.map(|bounds| bounds.1)),
            (None, Some((i64::MAX / 4).to_le_bytes()))
        );
        assert!(integers(-5, 7, 71).is_none() && integers(-5, 7, -51).is_none());
        assert!(integers(7, -5, 0).is_none());
        let unsigned = statistics(Datatype::UInt8, &[200], &[250], 2400, None).zone(&[3], 10);
        assert_eq!(unsigned.unwrap().sum, Some(Sum::Unsigned(2400)));
        let all = statistics(Datatype::UInt64, &[0; 8], &[255; 8], u64::MAX, None).zone(&[3], 10);
        assert_eq!(all.unwrap().sum, None);
        let days = Datatype::DateTime(gridfusion_core::format::TimeUnit::Day);
        let days = statistics(days, &[0; 8], &[1, 0, 0, 0, 0, 0, 0, 0], 5, None).zone(&[3], 10);
        assert_eq!(days.unwrap().sum, None);
    }

    #[test]
    fn null_cells_have_no_part_in_bounds() {
        let zone = |nulls| statistics(Datatype::Int8, &[0xff], &[3], 2, Some(nulls)).zone(&[3], 10);
        let some = zone(8).unwrap();
        assert_eq!((some.null_count, some.sum), (8, Some(Sum::Signed(2))));
        assert_eq!(zone(10), Some(Zone::new(10, None)));
        assert!(zone(11).is_none());
    }

    #[test]
    fn blocks_have_one_figure_per_tile() {
        let words =
            |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let per_tile = |bytes: &[u8]| per_tile(&mut Reader::new(REGION, 0, bytes), 2);
        assert_eq!(per_tile(&words(&[2, 7, 8])).unwrap(), Some(vec![7, 8]));
        assert_eq!(per_tile(&words(&[0])).unwrap(), None);
        for bad in [&words(&[3, 7, 8, 9])[..], &words(&[2, 7]), &words(&[2, 7, 8, 9]), &[1, 2]] {
            assert!(per_tile(bad).is_err());
        }
        let bounds = |bytes: &[u8]| bounds(&mut Reader::new(REGION, 0, bytes), 8);
        assert_eq!(bounds(&words(&[8, 0, 7])).unwrap(), Some(words(&[7])));
        assert_eq!(bounds(&words(&[0, 0])).unwrap(), None);
        for bad in [&words(&[16, 0, 7, 8])[..], &words(&[8, 8, 7, 8]), &words(&[8, 0])] {
            assert!(bounds(bad).is_err());
        }
    }
}
