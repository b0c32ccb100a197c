//! The check of a tile of an attribute: it is decoded, and its statistics computed again.

use bytes::Bytes;

use super::stored_tile::{StoredTile, located, number_type};
use super::sums::TileSum;
use crate::bytes::StoredStatistics;
use gridfusion_core::Result;
use gridfusion_core::format::{ElementType, Scratch, ZoneBound};
use gridfusion_core::tile::{Request, Tile};
use gridfusion_core::verify::{CellStatistics, Decodable, Finding, Findings, is_same, range_text};

/// The name of the check of tile statistics.
pub(super) const STALE: &str = "tile_statistics_stale";

/// A tile of an attribute, to be decoded.
#[derive(Debug)]
pub(super) struct ValueTile(pub(super) StoredTile);

impl Decodable for ValueTile {
    fn requests(&self) -> Vec<Request> {
        self.0.requests()
    }

    fn decode(
        &self,
        payloads: Vec<Option<Bytes>>,
        memory: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<(Findings, Vec<u8>)> {
        let tile = self.0.decode(payloads, memory, scratch)?;
        Ok((Findings::with(STALE, self.stale(&tile)), tile.into_spare()))
    }

    fn located(&self, finding: Finding) -> Finding {
        self.0.located(finding)
    }
}

impl ValueTile {
    /// Returns a finding if the stored statistics of the tile differ from its cells.
    fn stale(&self, tile: &Tile) -> Option<Finding> {
        let (tiles, place) = (self.0.tiles(), self.0.place());
        let stored = tiles.stored_statistics(place)?;
        let datatype = tiles.field().ok()?.datatype;
        let element = number_type(datatype)?;
        let found = CellStatistics::new(element, tile.bytes(), None, tile.validity());
        let difference = difference(&stored, &found, element, tile, datatype.is_temporal())?;
        let file = &tiles.fragment().name;
        Some(located(tiles, place, Finding::failure(difference)).in_file(file))
    }
}

/// Returns how stored statistics differ from the cells, as a message. `None` if they do not, or if the two
/// cannot be compared.
///
/// Compares NULL counts, then bounds, then sums. `found` counts NaN as NULL, and `stored` does not.
fn difference(
    stored: &StoredStatistics,
    found: &CellStatistics,
    element: ElementType,
    tile: &Tile,
    is_temporal: bool,
) -> Option<String> {
    let is_null = |byte: &&u8| **byte == 0;
    let nulls = tile.validity().map_or(0, |valid| valid.iter().filter(is_null).count() as u64);
    if let Some(stored) = stored.null_count
        && stored != nulls
    {
        return Some(format!("the stored statistics have {stored} NULLs, the tile has {nulls}"));
    }
    // Bounds of a tile without values mean nothing, and a NaN makes writers forget earlier bounds.
    let has_nan = found.nulls != nulls;
    let bounds = found.bounds.filter(|_| !has_nan)?;
    if !is_bound(element, &stored.bounds.0, &bounds.0, f64::INFINITY)
        || !is_bound(element, &stored.bounds.1, &bounds.1, f64::NEG_INFINITY)
    {
        let stored = range_text(element, &Some(stored.bounds));
        let found = range_text(element, &found.bounds);
        return Some(format!("the stored statistics have {stored}, the tile has {found}"));
    }
    let (stored, sum) = (stored.sum?, TileSum::new(element, tile.bytes(), tile.validity()));
    // Writers pin a sum that overflows to the limit of its type, and sums of dates mean nothing.
    let is_comparable = !is_temporal && sum.cannot_overflow();
    let differs = is_comparable && !sum.is(stored);
    differs.then(|| format!("the stored sum is {}, the tile has {sum}", sum.text(stored)))
}

/// Whether a stored bound is the one that was found in the cells; zeros of different sign are the same.
///
/// Writers begin with the greatest finite number as the least value, and with the least as the greatest. They
/// store it if all cells are the `limit`, an infinity beyond that number.
fn is_bound(element: ElementType, stored: &ZoneBound, found: &ZoneBound, limit: f64) -> bool {
    let (number, greatest): (fn(&ZoneBound) -> f64, f64) = match element {
        ElementType::F32 => (single, f64::from(f32::MAX)),
        ElementType::F64 => (|bound| f64::from_le_bytes(*bound), f64::MAX),
        _ => return is_same(element, stored, found),
    };
    is_same(element, stored, found)
        || number(found) == limit && number(stored) == greatest.copysign(limit)
}

/// Returns a number of single precision.
fn single(bound: &ZoneBound) -> f64 {
    bound.first_chunk().map_or(f64::NAN, |bytes| f64::from(f32::from_le_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::format::bound;

    #[test]
    fn bounds_of_infinities_may_be_finite() {
        let (least, greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        let doubles = |stored: f64, found: f64, limit| {
            is_bound(ElementType::F64, &stored.to_le_bytes(), &found.to_le_bytes(), limit)
        };
        assert!(
            doubles(f64::MAX, f64::INFINITY, least) && doubles(f64::INFINITY, f64::INFINITY, least)
        );
        assert!(doubles(f64::MIN, f64::NEG_INFINITY, greatest) && doubles(-0.0, 0.0, greatest));
        assert!(!doubles(f64::MAX, f64::INFINITY, greatest) && !doubles(f64::MAX, 1.0, least));
        let [stored, found] = [f32::MAX, f32::INFINITY].map(|number| bound(&number.to_le_bytes()));
        assert!(is_bound(ElementType::F32, &stored, &found, least));
        assert!(!is_bound(ElementType::F32, &stored, &found, greatest));
        assert!(!is_bound(ElementType::I32, &stored, &found, least));
    }
}
