//! The checks of zone maps: each map is valid, and each chunk has a map.
//!
//! Zone maps may be in the file, beside it in a package, or in both. Queries use those in the file first:
//!
//! | in the file | beside it | `zone_maps` reports on | `zone_file` reports on | decoding compares with |
//! |---|---|---|---|---|
//! | yes | no | the file | their absence | the file |
//! | yes | yes | the file | `ZONE.json`, and differences | the file |
//! | no | yes | nothing | `ZONE.json` | `ZONE.json` |

use crate::bytes::{CheckedZoneMaps, TetFile, ZoneFault, ZoneMaps};
use crate::package::Package;
use crate::reader::TetReader;
use gridfusion_core::Error;
use gridfusion_core::array::decimal;
use gridfusion_core::array::declared_fill;
use gridfusion_core::format::Zone;
use gridfusion_core::verify::{Check, Finding, counted};

/// Zone maps, indexed by dataset id, with the result of checking them.
pub(super) struct FoundZones {
    /// The maps without faults; no entries if there are none, or if they cannot be parsed.
    pub(super) maps: Vec<ZoneMaps>,
    pub(super) check: Check,
}

impl FoundZones {
    /// Reads and checks the zone maps that queries use: those in the file or, if it has none, those in
    /// the zone file of its package. The checks of the package report on the zone file.
    pub(super) async fn used(file: &TetReader) -> Self {
        if let Some(machine) = file.tet().check_zone_maps() {
            return Self::new(file.tet(), file.run(machine).await);
        }
        let none = Check::new("zone_maps").with_detail("none");
        let Some(package) = file.package() else { return Self { maps: vec![], check: none } };
        let beside = Self::beside(file, package).await;
        Self { maps: beside.map_or(vec![], |found| found.maps), check: none }
    }

    /// Reads and checks the zone file of a package, if there is one.
    pub(super) async fn beside(file: &TetReader, package: &Package) -> Option<Self> {
        let at = package.zone_file()?.clone();
        let found = match file.tet().check_zone_file(at, package.generation()) {
            Ok(machine) => package.run(machine).await,
            Err(error) => Err(error),
        };
        Some(Self::new(file.tet(), found))
    }

    /// Reports faults, the order, missing maps and fill values of zone maps that were read.
    pub(super) fn new(file: &TetFile, found: Result<CheckedZoneMaps, Error>) -> Self {
        let mut check = Check::new("zone_maps");
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                check.add(Finding::from_error(&error));
                return Self { maps: vec![], check };
            }
        };
        check = check.with_detail(counted(found.entries, "map"));
        for fault in &found.faults {
            check.add(finding(file, fault));
        }
        if !found.in_order {
            check.add(Finding::warning("the maps are not in the order of datasets and chunks"));
        }
        for (dataset, maps) in file.datasets().iter().zip(&found.maps) {
            let chunks = dataset.grid().map_or(0, |grid| grid.chunks());
            // Maps may be missing. Chunks without one are only read more often.
            let missing = chunks.saturating_sub(maps.len() as u64);
            if missing > 0 {
                let message = format!(
                    "{missing} of {chunks} chunks have no map, so filters on values cannot skip them"
                );
                check.add(Finding::warning(message).in_dataset(dataset.name()));
            }
        }
        for (id, maps) in found.maps.iter().enumerate() {
            check.extend(maps_with_fill_bounds(file, id, maps));
        }
        Self { maps: found.maps, check }
    }

    /// Adds a failure for each dataset whose maps differ from `others`, the maps in the same file.
    pub(super) fn compare(&mut self, file: &TetFile, others: &[ZoneMaps]) {
        for ((dataset, own), other) in file.datasets().iter().zip(&self.maps).zip(others) {
            if own == other {
                continue;
            }
            let finding = Finding::failure("the maps differ from those in the .tet file");
            let finding = finding.in_dataset(dataset.name());
            // One finding per dataset, with the first chunk as an example.
            let chunk = own.first_difference(other);
            let coordinates = dataset.grid().ok().zip(chunk);
            self.check.add(match coordinates {
                Some((grid, number)) => finding.of_chunk(&grid.chunk_coordinates(number)),
                None => finding,
            });
        }
    }
}

/// Reports maps whose least or greatest value is the declared fill value, which must count as NULL. A
/// map with the fill value between its bounds may be correct: only the cells can tell.
fn maps_with_fill_bounds(file: &TetFile, id: usize, maps: &ZoneMaps) -> Vec<Finding> {
    let dataset = &file.datasets()[id];
    if file.dataset_id(dataset.name()) != Some(id) {
        return vec![]; // queries ignore a later dataset of the same name
    }
    let (Ok(grid), Ok(element)) = (dataset.grid(), dataset.element()) else { return vec![] };
    let attributes = &file.metadata_of(id).attrs;
    let Some(fill) = declared_fill(element, attributes, &mut vec![]) else { return vec![] };
    let has_fill_bound =
        |zone: &Zone| zone.bounds.is_some_and(|(least, most)| [least, most].contains(&fill));
    let numbers = maps.iter().filter(|(_, zone)| has_fill_bound(zone)).map(|(number, _)| number);
    let text = decimal(element, &fill).unwrap_or_default();
    let message = format!(
        "the map counts the fill value {text} as a value, so its bounds and NULL count are wrong; queries ignore it"
    );
    let finding = Finding::failure(message).in_dataset(dataset.name());
    numbers.map(|number| finding.clone().of_chunk(&grid.chunk_coordinates(number))).collect()
}

/// Converts a fault to a finding. Its dataset may not exist.
fn finding(file: &TetFile, fault: &ZoneFault) -> Finding {
    let id = usize::try_from(fault.dataset).unwrap_or(usize::MAX);
    let finding = Finding::from_error(&fault.error).of_chunk(&fault.coordinates);
    match file.datasets().get(id) {
        Some(dataset) => finding.in_dataset(dataset.name()),
        None => finding,
    }
}
