//! Reads zone maps with all their faults. After a fault, a query ignores all maps of the dataset instead.

use crate::bytes::file::TetFile;
use crate::bytes::zone::{Target, ZoneEntry, ZoneMaps, ZoneMapsLocation};
use gridfusion_core::format::{Location, Machine, Replies, Step, Zone};
use gridfusion_core::{Error, Result};

impl TetFile {
    /// Returns a machine that reads the zone maps in the file with all their faults; `None` if the file has
    /// no zone maps.
    pub fn check_zone_maps(&self) -> Option<CheckZoneMaps> {
        self.embedded_zones().map(|text| CheckZoneMaps::new(text, self.zone_targets()))
    }

    /// Returns a machine that checks the zone file `at` of a package; see [`TetFile::read_zone_file`].
    ///
    /// # Errors
    /// `Corrupt` if the zone file is too long.
    pub fn check_zone_file(&self, at: Location, generation: u64) -> Result<CheckZoneMaps> {
        let text = self.zones_beside(at, generation)?;
        Ok(CheckZoneMaps::new(text, self.zone_targets()))
    }
}

/// The zone maps of a file and their faults.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckedZoneMaps {
    /// The maps without faults, by dataset.
    pub maps: Vec<ZoneMaps>,
    /// The number of all maps, with and without faults.
    pub entries: u64,
    /// Whether the maps are sorted by dataset and chunk, as writers store them.
    pub in_order: bool,
    /// The maps with faults.
    pub faults: Vec<ZoneFault>,
}

/// A zone map with a fault.
#[derive(Debug)]
#[non_exhaustive]
pub struct ZoneFault {
    /// The id of the map's dataset, which may not exist.
    pub dataset: u64,
    /// The coordinates of the map's chunk, which may not exist.
    pub coordinates: Vec<u64>,
    /// The fault.
    pub error: Error,
}

/// A machine that reads and checks the zone maps of all datasets; made by [`TetFile::check_zone_maps`] and
/// [`TetFile::check_zone_file`].
#[derive(Debug)]
pub struct CheckZoneMaps {
    text: ZoneMapsLocation,
    targets: Vec<Result<Target>>,
}

impl CheckZoneMaps {
    fn new(text: ZoneMapsLocation, targets: Vec<Result<Target>>) -> Self {
        Self { text, targets }
    }

    /// Checks each map by itself, and then that no chunk has two.
    ///
    /// # Errors
    /// `Corrupt` if the JSON itself is wrong: then no map can be checked.
    fn check(&self, json: &[u8]) -> Result<CheckedZoneMaps> {
        let entries = self.text.parse(json)?;
        let in_order =
            entries.is_sorted_by_key(|entry| (entry.dataset_id, entry.chunk_index.as_slice()));
        let mut faults = vec![];
        let mut zones: Vec<Vec<(u64, Zone)>> = self.targets.iter().map(|_| vec![]).collect();
        for entry in &entries {
            match self.zone(entry) {
                Ok(Some((dataset, zone))) => zones[dataset].push(zone),
                // Maps of a dataset that cannot be read are not faulty themselves.
                Ok(None) => {}
                Err(error) => faults.push(fault(entry.dataset_id, &entry.chunk_index, error)),
            }
        }
        let maps = (0_u64..)
            .zip(zones)
            .map(|(dataset, zones)| self.without_doubles(dataset, zones, &mut faults));
        let maps = maps.collect();
        Ok(CheckedZoneMaps { maps, entries: entries.len() as u64, in_order, faults })
    }

    /// Returns the dataset of an entry, the number of its chunk, and its zone; `None` if the dataset cannot
    /// be read.
    fn zone(&self, entry: &ZoneEntry) -> Result<Option<(usize, (u64, Zone))>> {
        let dataset = usize::try_from(entry.dataset_id).unwrap_or(usize::MAX);
        let target = self.targets.get(dataset).ok_or_else(|| {
            let (id, count) = (entry.dataset_id, self.targets.len());
            self.text.corrupt(format!("a map of dataset {id}, but there are {count}"))
        })?;
        let Ok(target) = target else { return Ok(None) };
        Ok(Some((dataset, target.zone(entry, &self.text)?)))
    }

    /// Returns the maps of a dataset. Keeps the first of several maps of one chunk, and reports the others.
    fn without_doubles(
        &self,
        dataset: u64,
        mut zones: Vec<(u64, Zone)>,
        faults: &mut Vec<ZoneFault>,
    ) -> ZoneMaps {
        zones.sort_by_key(|(number, _)| *number);
        let target = self.targets.get(dataset as usize).and_then(|target| target.as_ref().ok());
        zones.dedup_by(|later, first| {
            let twice = later.0 == first.0;
            if let (true, Some(target)) = (twice, target) {
                let error = self.text.corrupt("a second map of this chunk".to_owned());
                faults.push(fault(dataset, &target.grid.chunk_coordinates(later.0), error));
            }
            twice
        });
        ZoneMaps::sorted(zones)
    }
}

fn fault(dataset: u64, coordinates: &[u64], error: Error) -> ZoneFault {
    ZoneFault { dataset, coordinates: coordinates.to_vec(), error }
}

impl Machine for CheckZoneMaps {
    type Output = CheckedZoneMaps;

    fn subject(&self) -> &'static str {
        "zone maps"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        match replies.into_bytes().first() {
            None => Ok(Step::Read(vec![self.text.at.clone()])),
            Some(json) => self.check(json).map(Step::Done),
        }
    }
}
