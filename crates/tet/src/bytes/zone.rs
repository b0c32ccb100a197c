//! Zone maps: the chunk statistics of a `.tet` file, as its writer stored them.
//!
//! They are JSON without a checksum. The maps of a dataset are used only if all of them are well-formed and
//! fit their chunks. The option `trust_zone_maps` can turn their use off.
//!
//! Zone maps are a spill of the footer or, in a package, a file of their own. A map of a chunk of two f32:
//!
//! ```text
//!   {"dataset_id":0, "chunk_index":[0,1], "element_count":2, "null_count":1,
//!    "min_le":"0000c040", "max_le":"0000c040"}            the bytes 00 00 c0 40 are 6.0
//! ```
//!
//! See crates/tet/FORMAT.md, section 10.

use serde::Deserialize;
use serde_json::Value;

use gridfusion_core::format::{ElementType, Location, Zone, ZoneBound, Zones, bound};
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::{Error, Result};

/// The zone maps of one dataset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ZoneMaps {
    /// Sorted by chunk number.
    zones: Vec<(u64, Zone)>,
}

impl ZoneMaps {
    /// Returns zone maps from zones by chunk number, which must be sorted and without duplicates.
    pub(crate) fn sorted(zones: Vec<(u64, Zone)>) -> Self {
        Self { zones }
    }

    /// Returns the number of the first chunk whose zone differs in `other`, or is in one of the two only.
    pub fn first_difference(&self, other: &Self) -> Option<u64> {
        let number = |zones: &Self, at: usize| Some(zones.zones.get(at)?.0);
        let same = self.zones.iter().zip(&other.zones).take_while(|(a, b)| a == b).count();
        let (own, theirs) = (number(self, same), number(other, same));
        own.into_iter().chain(theirs).min()
    }

    /// Returns the zones with the numbers of their chunks, sorted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Zone)> {
        self.zones.iter().map(|(number, zone)| (*number, zone))
    }

    /// Returns the number of chunks that have a zone.
    pub fn len(&self) -> usize {
        self.zones.len()
    }

    /// Whether no chunk has a zone.
    pub fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }
}

impl Zones for ZoneMaps {
    fn zone(&self, chunk: u64) -> Option<Zone> {
        // If no chunk lacks its zone, the chunk's number is the position of its zone.
        let in_place = self.zones.get(chunk as usize).filter(|(number, _)| *number == chunk);
        let zone = in_place.or_else(|| {
            let at = self.zones.binary_search_by_key(&chunk, |(number, _)| *number).ok()?;
            self.zones.get(at)
        });
        zone.map(|(_, zone)| zone.clone())
    }
}

/// The JSON of zone maps. Other members, such as hashes, are ignored.
#[derive(Deserialize)]
struct ZoneJson {
    version: u32,
    /// A number in a package; ignored elsewhere.
    #[serde(default)]
    generation: Value,
    chunks: Vec<ZoneEntry>,
}

/// The zone map of one chunk, as stored and not yet checked.
#[derive(Deserialize)]
pub(super) struct ZoneEntry {
    pub(super) dataset_id: u64,
    /// The chunk's coordinates.
    pub(super) chunk_index: Vec<u64>,
    /// The number of cells in the chunk.
    element_count: u64,
    /// The number of cells that are NaN or the fill value.
    null_count: u64,
    /// The hexadecimal digits of the stored element's bytes.
    min_le: Option<String>,
    max_le: Option<String>,
}

/// The location of zone maps in JSON.
#[derive(Debug)]
pub(super) struct ZoneMapsLocation {
    pub(super) at: Location,
    /// The generation that the zone maps must describe; `None` accepts any.
    pub(super) generation: Option<u64>,
}

impl ZoneMapsLocation {
    /// Parses the maps of all datasets, without checking them against datasets.
    ///
    /// # Errors
    /// `Corrupt` for other JSON, another version, or another generation.
    pub(super) fn parse(&self, json: &[u8]) -> Result<Vec<ZoneEntry>> {
        let json: ZoneJson = serde_json::from_slice(json)
            .map_err(|error| self.corrupt(format!("not zone maps ({error})")))?;
        if json.version != 1 {
            return Err(self.corrupt(format!("version {}, this reader supports 1", json.version)));
        }
        if let Some(generation) = self.generation
            && json.generation.as_u64() != Some(generation)
        {
            let found = &json.generation;
            return Err(self.corrupt(format!(
                "they describe generation {found}, but generation {generation} is open"
            )));
        }
        Ok(json.chunks)
    }

    pub(super) fn corrupt(&self, message: String) -> Error {
        const REGION: &str = "zone maps";
        match &*self.at.object {
            "" => Error::corrupt(REGION, self.at.start(), message),
            file => Error::corrupt_region(REGION, message).in_file(file),
        }
    }
}

/// A dataset whose shape and type zone maps must fit.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) dataset: usize,
    pub(super) grid: ChunkGrid,
    pub(super) element: ElementType,
}

impl Target {
    /// Returns the zone maps of `entries`, all of which describe this dataset.
    pub(super) fn maps<'a>(
        &self,
        entries: impl Iterator<Item = &'a ZoneEntry>,
        text: &ZoneMapsLocation,
    ) -> Result<ZoneMaps> {
        let mut zones =
            entries.map(|entry| self.zone(entry, text)).collect::<Result<Vec<(u64, Zone)>>>()?;
        zones.sort_by_key(|(number, _)| *number);
        // Two maps of one chunk may contradict each other, so the dataset's maps are not used.
        if let Some(pair) = zones.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(text.corrupt(format!("several maps of chunk number {}", pair[0].0)));
        }
        Ok(ZoneMaps { zones })
    }

    /// Returns the number of the entry's chunk, and its zone.
    ///
    /// # Errors
    /// `Corrupt` if the chunk does not exist, or the counts or bounds are impossible for it.
    pub(super) fn zone(&self, entry: &ZoneEntry, text: &ZoneMapsLocation) -> Result<(u64, Zone)> {
        let at = &entry.chunk_index;
        let number = self
            .grid
            .chunk_number(at)
            .ok_or_else(|| text.corrupt(format!("a map of chunk {at:?}, which does not exist")))?;
        let cells: u64 = self.grid.extents(at).iter().product();
        if entry.element_count != cells || entry.null_count > cells {
            return Err(text.corrupt(format!(
                "{} nulls among {} elements in chunk {at:?}, which has {cells}",
                entry.null_count, entry.element_count
            )));
        }
        let bounds = self.bounds(entry).ok_or_else(|| {
            let (least, greatest) = (&entry.min_le, &entry.max_le);
            text.corrupt(format!("{least:?} to {greatest:?} is not a range of {}", self.element))
        })?;
        Ok((number, Zone::new(entry.null_count, bounds)))
    }

    /// Returns the bounds of an entry, `Some(None)` if it has none, and `None` if they are impossible.
    fn bounds(&self, zone: &ZoneEntry) -> Option<Option<(ZoneBound, ZoneBound)>> {
        let (Some(least), Some(greatest)) = (&zone.min_le, &zone.max_le) else {
            return (zone.min_le == zone.max_le).then_some(None);
        };
        let bytes = |digits| element_bytes(digits, self.element.size());
        let (least, greatest) = (bytes(least)?, bytes(greatest)?);
        let ordered = self.element.rank(&least)? <= self.element.rank(&greatest)?;
        let holds_values = zone.null_count < zone.element_count;
        (ordered && holds_values).then_some(Some((bound(&least), bound(&greatest))))
    }
}

/// Parses the bytes of one element from their hexadecimal digits.
fn element_bytes(digits: &str, size: u64) -> Option<Vec<u8>> {
    let well_formed =
        digits.len() as u64 == 2 * size && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    if well_formed { (0..digits.len()).step_by(2).map(byte).collect() } else { None }
}
