//! Reading zone maps from a `.tet` file, or from the zone file beside it in a package.
//!
//! Both are the same JSON, which has the maps of all datasets. A query keeps the maps of one dataset
//! ([`ReadZoneMaps`]). A caller who needs those of all datasets parses the JSON once ([`ReadAllZoneMaps`]).

use super::file::TetFile;
use super::open_package::Generation;
use super::zone::{Target, ZoneEntry, ZoneMaps, ZoneMapsLocation};
use gridfusion_core::format::{Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

impl TetFile {
    /// Returns a machine that reads the zone maps of `dataset`; `None` if the file has no zone maps.
    ///
    /// # Errors
    /// The errors of [`Dataset::grid`](super::Dataset::grid), and `Usage` for an unknown id.
    pub fn read_zone_maps(&self, dataset: usize) -> Result<Option<ReadZoneMaps>> {
        let Some(text) = self.embedded_zones() else { return Ok(None) };
        Ok(Some(ReadZoneMaps::new(text, self.zone_target(dataset)?)))
    }

    /// Returns a machine that reads the zone maps of all datasets from the file. If the file has none, and
    /// is a `generation` of a package, the machine reads the zone file beside it.
    ///
    /// # Errors
    /// `Corrupt` if the zone file is too long; see [`TetFile::read_zone_file`].
    pub fn read_all_zone_maps(
        &self,
        generation: Option<&Generation>,
    ) -> Result<Option<ReadAllZoneMaps>> {
        let text = match (self.embedded_zones(), generation) {
            (Some(text), _) => text,
            (None, Some(Generation { number, zone_file: Some(at), .. })) => {
                self.zones_beside(at.clone(), *number)?
            }
            (None, _) => return Ok(None),
        };
        Ok(Some(ReadAllZoneMaps::new(text, self.zone_targets())))
    }

    /// Returns the location of the zone maps in the file itself, if it has any.
    pub(super) fn embedded_zones(&self) -> Option<ZoneMapsLocation> {
        let at = Location::new("", self.zone_maps_at()?);
        Some(ZoneMapsLocation { at, generation: None })
    }

    /// Returns a machine that reads the zone maps of `dataset` from the zone file `at` of a package. The zone
    /// file must describe `generation`, which is the number of this file in the package.
    ///
    /// # Errors
    /// `Corrupt` if the zone file is longer than the maps of all chunks can be, and the errors of
    /// [`TetFile::read_zone_maps`].
    pub fn read_zone_file(
        &self,
        dataset: usize,
        at: Location,
        generation: u64,
    ) -> Result<ReadZoneMaps> {
        Ok(ReadZoneMaps::new(self.zones_beside(at, generation)?, self.zone_target(dataset)?))
    }

    /// Returns the location of the zone maps in the zone file `at`, which must describe `generation`.
    ///
    /// # Errors
    /// `Corrupt` if the zone file is too long for the chunks of this file.
    pub(super) fn zones_beside(&self, at: Location, generation: u64) -> Result<ZoneMapsLocation> {
        /// More bytes than the map of one chunk with eight axes has, and more than precede the maps.
        const MOST_PER_CHUNK: u64 = 1024;
        let (len, chunks) = (at.range.most().unwrap_or(u64::MAX), self.index_rows());
        if len > chunks.saturating_add(1).saturating_mul(MOST_PER_CHUNK) {
            let message = format!("{len} bytes, which is too much for {chunks} chunks");
            return Err(Error::corrupt_region("zone maps", message).in_file(&at.object));
        }
        Ok(ZoneMapsLocation { at, generation: Some(generation) })
    }

    /// Returns what the zone maps of each dataset must fit; an error for a dataset that cannot be read.
    pub(super) fn zone_targets(&self) -> Vec<Result<Target>> {
        (0..self.datasets.len()).map(|dataset| self.zone_target(dataset)).collect()
    }

    fn zone_target(&self, dataset: usize) -> Result<Target> {
        let of = self.dataset(dataset)?;
        Ok(Target { dataset, grid: of.grid()?.clone(), element: of.element()? })
    }
}

/// A machine that reads the zone maps of one dataset; made by [`TetFile::read_zone_maps`] and
/// [`TetFile::read_zone_file`].
#[derive(Debug)]
pub struct ReadZoneMaps {
    text: ZoneMapsLocation,
    target: Target,
}

impl ReadZoneMaps {
    fn new(text: ZoneMapsLocation, target: Target) -> Self {
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

    fn subject(&self) -> &'static str {
        "zone maps"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<ZoneMaps>> {
        match replies.into_bytes().first() {
            None => Ok(Step::Read(vec![self.text.at.clone()])),
            Some(json) => self.parse(json).map(Step::Done),
        }
    }
}

/// A machine that reads the zone maps of all datasets at once; made by [`TetFile::read_all_zone_maps`].
/// Wrong maps of one dataset do not affect the others.
#[derive(Debug)]
pub struct ReadAllZoneMaps {
    text: ZoneMapsLocation,
    targets: Vec<Result<Target>>,
}

impl ReadAllZoneMaps {
    fn new(text: ZoneMapsLocation, targets: Vec<Result<Target>>) -> Self {
        Self { text, targets }
    }

    fn parse(&self, json: &[u8]) -> Result<Vec<Result<ZoneMaps>>> {
        let mut entries = self.text.parse(json)?;
        // Sorted by dataset, the maps of each are neighbours: one search per dataset, not one pass.
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
    /// The zone maps of each dataset, by id.
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
    use gridfusion_core::format::{ElementType, Zones, bound};
    use gridfusion_core::grid::ChunkGrid;

    fn parse(json: &str) -> Result<ZoneMaps> {
        parse_of(None, json)
    }

    fn parse_of(generation: Option<u64>, json: &str) -> Result<ZoneMaps> {
        let grid = ChunkGrid::new(&[5], &[2]).unwrap();
        let at = Location::new("maps", 0..0);
        let target = Target { dataset: 1, grid, element: ElementType::I16 };
        ReadZoneMaps::new(ZoneMapsLocation { at, generation }, target).parse(json.as_bytes())
    }

    #[test]
    fn only_maps_that_fit_the_tile_are_used() {
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
        assert_eq!(
            error,
            "maps: corrupt zone maps: they describe generation null, but generation 7 is open"
        );
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
        let all = ReadAllZoneMaps::new(ZoneMapsLocation { at, generation: None }, targets);
        let maps = all.parse(json.as_bytes()).unwrap();
        assert!(maps[0].is_err() && maps[2].is_err());
        assert_eq!(maps[1].as_ref().unwrap(), &parse(&json).unwrap());
        assert!(maps[1].as_ref().unwrap().zone(2).is_some());
        assert!(maps[3].as_ref().unwrap().is_empty());
    }
}
