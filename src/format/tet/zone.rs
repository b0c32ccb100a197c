//! Zone maps: what the writer noted about the values of each chunk.
//!
//! They are hints in JSON that nothing guards: the maps of a dataset are used only if all of them
//! are well-formed and fit their tiles, and an option turns it off altogether.
//!
//! They are a spill of the footer or, in a package, a file of their own.

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::format::{Bound, ElementType, Location, Machine, Replies, Step, Zone, Zones, bound};
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
        let error = Error::corrupt("zone maps", self.at.start(), message);
        if self.at.object.is_empty() { error } else { error.in_file(&self.at.object) }
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
    fn maps<'a>(
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

/// Reads the zone maps of one dataset; made by [`super::TetFile::read_zone_maps`] and
/// [`super::TetFile::read_zone_file`].
#[derive(Debug)]
pub struct ReadZoneMaps {
    text: ZoneText,
    target: Target,
}

impl ReadZoneMaps {
    pub(super) fn new(text: ZoneText, target: Target) -> Self {
        Self { text, target }
    }

    fn parse(&self, json: &[u8]) -> Result<ZoneMaps> {
        let entries = self.text.parse(json)?;
        let own = |entry: &&ZoneEntry| entry.dataset_id == self.target.dataset as u64;
        self.target.maps(entries.iter().filter(own), &self.text)
    }
}

impl Machine for ReadZoneMaps {
    type Output = ZoneMaps;

    fn step(&mut self, replies: Replies) -> Result<Step<ZoneMaps>> {
        match replies.into_bytes().first() {
            None => Ok(Step::Read(vec![self.text.at.clone()])),
            Some(json) => self.parse(json).map(Step::Done),
        }
    }
}

/// Reads the zone maps of all datasets of a file in one go, each of which may be wrong without the
/// others; made by [`super::TetFile::read_all_zone_maps`].
#[derive(Debug)]
pub struct ReadAllZoneMaps {
    text: ZoneText,
    targets: Vec<Result<Target>>,
}

impl ReadAllZoneMaps {
    pub(super) fn new(text: ZoneText, targets: Vec<Result<Target>>) -> Self {
        Self { text, targets }
    }

    fn parse(&self, json: &[u8]) -> Result<Vec<Result<ZoneMaps>>> {
        let mut entries = self.text.parse(json)?;
        entries.sort_by_key(|entry| entry.dataset_id);
        let targets = (0_u64..).zip(&self.targets).map(|(dataset, target)| {
            let first = entries.partition_point(|entry| entry.dataset_id < dataset);
            let own = entries[first..].iter().take_while(|entry| entry.dataset_id == dataset);
            target.as_ref().map_err(Clone::clone)?.maps(own, &self.text)
        });
        Ok(targets.collect())
    }
}

impl Machine for ReadAllZoneMaps {
    /// By dataset.
    type Output = Vec<Result<ZoneMaps>>;

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        match replies.into_bytes().first() {
            None => Ok(Step::Read(vec![self.text.at.clone()])),
            Some(json) => self.parse(json).map(Step::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ZoneMaps> {
        parse_of(None, json)
    }

    fn parse_of(generation: Option<u64>, json: &str) -> Result<ZoneMaps> {
        let grid = ChunkGrid::new(&[5], &[2]).unwrap();
        let at = Location::new("maps", 0..0);
        let target = Target { dataset: 1, grid, element: ElementType::I16 };
        ReadZoneMaps::new(ZoneText { at, generation }, target).parse(json.as_bytes())
    }

    #[test]
    fn only_maps_that_fit_the_tile_are_believed() {
        let entry = |chunk: u64, count: u64, nulls: u64| {
            format!(
                r#"{{"dataset_id":1,"chunk_index":[{chunk}],"element_count":{count},"null_count":{nulls}}}"#
            )
        };
        let maps = |version: u32, entry: &str| {
            let other = r#"{"dataset_id":0,"chunk_index":[9],"element_count":9,"null_count":9}"#;
            parse(&format!(r#"{{"version":{version},"chunks":[{other},{entry}]}}"#))
        };
        let good = maps(1, &entry(2, 1, 1)).unwrap();
        assert_eq!(good.zone(2).map(|zone| zone.null_count), Some(1));
        assert_eq!(good.zone(0), None);
        assert!(maps(2, &entry(2, 1, 1)).is_err());
        assert!(maps(1, &entry(3, 1, 1)).is_err());
        assert!(maps(1, &entry(2, 2, 1)).is_err());
        assert!(maps(1, &entry(1, 2, 3)).is_err());
        assert!(parse("!").is_err());
        let twice = format!("{},{}", entry(2, 1, 1), entry(2, 1, 0));
        assert!(maps(1, &twice).is_err());
    }

    #[test]
    fn maps_of_a_package_are_those_of_the_generation() {
        for (generation, fits) in
            [("7", true), ("6", false), ("\"7\"", false), ("7.0", false), ("null", false)]
        {
            let json = format!(r#"{{"version":1,"generation":{generation},"chunks":[]}}"#);
            assert_eq!(parse_of(Some(7), &json).is_ok(), fits, "{generation}");
            assert!(parse(&json).is_ok(), "{generation}: a file alone has none");
        }
        let error = parse_of(Some(7), r#"{"version":1,"chunks":[]}"#).unwrap_err().to_string();
        assert_eq!(error, "maps: corrupt zone maps at byte 0: of generation null, but 7 is open");
    }

    #[test]
    fn bounds_are_elements_in_hexadecimal() {
        let maps = |least: &str, greatest: &str| {
            parse(&format!(
                r#"{{"version":1,"chunks":[{{"dataset_id":1,"chunk_index":[0],"element_count":2,
                    "null_count":0,"min_le":"{least}","max_le":"{greatest}"}}]}}"#
            ))
        };
        let bounds = maps("feff", "0a01").unwrap().zone(0).and_then(|zone| zone.bounds);
        assert_eq!(bounds, Some((bound(&[0xfe, 0xff]), bound(&[0x0a, 0x01]))));
        for bad in ["fe", "feff00", "xyzw", "+1+1", "é1", "0b01"] {
            assert!(maps(bad, "0a01").is_err(), "{bad}");
        }
        let one_sided = r#"{"version":1,"chunks":[{"dataset_id":1,"chunk_index":[0],
            "element_count":2,"null_count":0,"min_le":"0100"}]}"#;
        assert!(parse(one_sided).is_err());
    }

    #[test]
    fn datasets_are_wrong_one_by_one() {
        let target = |dataset: usize| {
            let grid = ChunkGrid::new(&[5], &[2])?;
            Ok(Target { dataset, grid, element: ElementType::I16 })
        };
        let targets = vec![target(0), target(1), Err(Error::unsupported("odd")), target(3)];
        let at = Location::new("maps", 0..0);
        let entry = |dataset: u64, chunk: u64, cells: u64| {
            format!(
                r#"{{"dataset_id":{dataset},"chunk_index":[{chunk}],"element_count":{cells},"null_count":1}}"#
            )
        };
        let entries = [entry(1, 0, 2), entry(0, 7, 2), entry(9, 0, 1), entry(1, 2, 1)].join(",");
        let json = format!(r#"{{"version":1,"chunks":[{entries}]}}"#);
        let all = ReadAllZoneMaps::new(ZoneText { at, generation: None }, targets);
        let maps = all.parse(json.as_bytes()).unwrap();
        assert!(maps[0].is_err() && maps[2].is_err());
        assert_eq!(maps[1].as_ref().unwrap(), &parse(&json).unwrap());
        assert!(maps[1].as_ref().unwrap().zone(2).is_some());
        assert!(maps[3].as_ref().unwrap().is_empty());
    }
}
