//! Zone maps: what the writer noted about the values of each chunk.
//!
//! They are hints in JSON that nothing guards: the maps of a dataset are used only if all of them
//! are well-formed and fit their tiles, and an option turns it off altogether.
//!
//! They are a spill of the footer or, in a package, a file of their own.

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::format::{Bound, ElementType, Location, Zone, Zones, bound};
use crate::grid::ChunkGrid;

/// The zone maps of one dataset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ZoneMaps {
    /// Sorted by chunk number.
    zones: Vec<(u64, Zone)>,
}

impl ZoneMaps {
    /// The maps of chunks by number, sorted, none of them twice.
    pub(crate) fn sorted(zones: Vec<(u64, Zone)>) -> Self {
        Self { zones }
    }

    /// The number of the first chunk of which `other` says something else.
    pub fn first_difference(&self, other: &Self) -> Option<u64> {
        let number = |zones: &Self, at: usize| Some(zones.zones.get(at)?.0);
        let same = self.zones.iter().zip(&other.zones).take_while(|(a, b)| a == b).count();
        let (own, theirs) = (number(self, same), number(other, same));
        own.into_iter().chain(theirs).min()
    }

    /// The numbers of chunks, and what is said of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Zone)> {
        self.zones.iter().map(|(number, zone)| (*number, zone))
    }

    /// How many chunks something is said of.
    pub fn len(&self) -> usize {
        self.zones.len()
    }

    /// Whether nothing is said of any chunk.
    pub fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }
}

impl Zones for ZoneMaps {
    fn zone(&self, chunk: u64) -> Option<Zone> {
        // Where no chunk lacks its map, a map is at the chunk's number.
        let in_place = self.zones.get(chunk as usize).filter(|(number, _)| *number == chunk);
        let zone = in_place.or_else(|| {
            let at = self.zones.binary_search_by_key(&chunk, |(number, _)| *number).ok()?;
            self.zones.get(at)
        });
        zone.map(|(_, zone)| zone.clone())
    }
}

#[derive(Deserialize)]
struct ZoneJson {
    version: u32,
    /// Means something in a package only, where it is a number.
    #[serde(default)]
    generation: Value,
    chunks: Vec<ZoneEntry>,
}

#[derive(Deserialize)]
pub(super) struct ZoneEntry {
    pub(super) dataset_id: u64,
    pub(super) chunk_index: Vec<u64>,
    element_count: u64,
    null_count: u64,
    /// Hexadecimal digits of the element's bytes, as stored.
    min_le: Option<String>,
    max_le: Option<String>,
}

/// Where zone maps are.
#[derive(Debug)]
pub(super) struct ZoneText {
    pub(super) at: Location,
    /// The generation that they must be about.
    pub(super) generation: Option<u64>,
}

impl ZoneText {
    pub(super) fn parse(&self, json: &[u8]) -> Result<Vec<ZoneEntry>> {
        let json: ZoneJson = serde_json::from_slice(json)
            .map_err(|error| self.corrupt(format!("not zone maps ({error})")))?;
        if json.version != 1 {
            return Err(self.corrupt(format!("version {}, this reader knows 1", json.version)));
        }
        if let Some(generation) = self.generation
            && json.generation.as_u64() != Some(generation)
        {
            let found = &json.generation;
            return Err(self.corrupt(format!("of generation {found}, but {generation} is open")));
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

/// The dataset that zone maps must fit.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) dataset: usize,
    pub(super) grid: ChunkGrid,
    pub(super) element: ElementType,
}

impl Target {
    /// The zone maps among `entries`, all of which are about this dataset.
    pub(super) fn maps<'a>(
        &self,
        entries: impl Iterator<Item = &'a ZoneEntry>,
        text: &ZoneText,
    ) -> Result<ZoneMaps> {
        let mut zones =
            entries.map(|entry| self.zone(entry, text)).collect::<Result<Vec<(u64, Zone)>>>()?;
        zones.sort_by_key(|(number, _)| *number);
        // Maps that contradict each other are worth nothing.
        if let Some(pair) = zones.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(text.corrupt(format!("several maps of chunk number {}", pair[0].0)));
        }
        Ok(ZoneMaps { zones })
    }

    /// The number of a chunk and what is said of it.
    pub(super) fn zone(&self, entry: &ZoneEntry, text: &ZoneText) -> Result<(u64, Zone)> {
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
            text.corrupt(format!("{least:?} to {greatest:?} is no range of {}", self.element))
        })?;
        Ok((number, Zone { null_count: entry.null_count, bounds, sum: None }))
    }

    /// The bounds of a zone, if it has any; `None` if they cannot be right.
    fn bounds(&self, zone: &ZoneEntry) -> Option<Option<(Bound, Bound)>> {
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

/// The bytes of one element from its hexadecimal digits.
fn element_bytes(digits: &str, size: u64) -> Option<Vec<u8>> {
    let well_formed =
        digits.len() as u64 == 2 * size && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    if well_formed { (0..digits.len()).step_by(2).map(byte).collect() } else { None }
}
