//! Zone maps with all that is wrong with them, where a query stops at the first thing and ignores the rest.

use crate::error::{Error, Result};
use crate::format::tet::file::TetFile;
use crate::format::tet::zone::{Target, ZoneEntry, ZoneMaps, ZoneText};
use crate::format::{Location, Machine, Replies, Step, Zone};

impl TetFile {
    /// A machine that reads the zone maps in the file with all that is wrong with them; `None` if the
    /// file has none.
    pub fn check_zone_maps(&self) -> Option<CheckZoneMaps> {
        self.embedded_zones().map(|text| CheckZoneMaps::new(text, self.zone_targets()))
    }

    /// The same for the zone file `at` of a package, see [`TetFile::read_zone_file`].
    ///
    /// # Errors
    /// `Corrupt` if the zone file is too long.
    pub fn check_zone_file(&self, at: Location, generation: u64) -> Result<CheckZoneMaps> {
        let text = self.zones_beside(at, generation)?;
        Ok(CheckZoneMaps::new(text, self.zone_targets()))
    }
}

/// The zone maps of a file, and what is wrong with them.
#[derive(Debug)]
pub struct CheckedZoneMaps {
    /// The maps that can be right, by dataset.
    pub maps: Vec<ZoneMaps>,
    /// How many there are in all.
    pub entries: u64,
    /// Whether they are in the order of datasets and of their chunks, as writers leave them.
    pub in_order: bool,
    /// Maps that cannot be right.
    pub faults: Vec<ZoneFault>,
}

/// A map that cannot be right.
#[derive(Debug)]
pub struct ZoneFault {
    /// The dataset that it is about, by id; there may be no such dataset.
    pub dataset: u64,
    /// The chunk that it is about; there may be no such chunk.
    pub coordinates: Vec<u64>,
    /// What is wrong.
    pub error: Error,
}

/// Reads the zone maps of all datasets; made by [`TetFile::check_zone_maps`] and
/// [`TetFile::check_zone_file`].
#[derive(Debug)]
pub struct CheckZoneMaps {
    text: ZoneText,
    targets: Vec<Result<Target>>,
}

impl CheckZoneMaps {
    fn new(text: ZoneText, targets: Vec<Result<Target>>) -> Self {
        Self { text, targets }
    }

    fn check(&self, json: &[u8]) -> Result<CheckedZoneMaps> {
        let entries = self.text.parse(json)?;
        let in_order =
            entries.is_sorted_by_key(|entry| (entry.dataset_id, entry.chunk_index.as_slice()));
        let mut faults = vec![];
        let mut zones: Vec<Vec<(u64, Zone)>> = self.targets.iter().map(|_| vec![]).collect();
        for entry in &entries {
            match self.zone(entry) {
                Ok(Some((dataset, zone))) => zones[dataset].push(zone),
                // What is wrong with the dataset is not the fault of its maps.
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

    /// The dataset of an entry, the number of its chunk, and what is said of it; `None` if the dataset
    /// cannot be read.
    fn zone(&self, entry: &ZoneEntry) -> Result<Option<(usize, (u64, Zone))>> {
        let dataset = usize::try_from(entry.dataset_id).unwrap_or(usize::MAX);
        let target = self.targets.get(dataset).ok_or_else(|| {
            let (id, count) = (entry.dataset_id, self.targets.len());
            self.text.corrupt(format!("a map of dataset {id}, but there are {count}"))
        })?;
        let Ok(target) = target else { return Ok(None) };
        Ok(Some((dataset, target.zone(entry, &self.text)?)))
    }

    /// The maps of a dataset, of several for one chunk the first.
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

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        match replies.into_bytes().first() {
            None => Ok(Step::Read(vec![self.text.at.clone()])),
            Some(json) => self.check(json).map(Step::Done),
        }
    }
}
