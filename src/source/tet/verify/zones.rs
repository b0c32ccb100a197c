//! Zone maps: whether they can be right, and which chunks they are about.

use crate::array::decimal;
use crate::array::declared_fill;
use crate::error::Error;
use crate::format::Zone;
use crate::format::tet::{CheckedZoneMaps, TetFile, ZoneFault, ZoneMaps};
use crate::source::tet::package::Package;
use crate::source::tet::reader::TetReader;
use crate::verify::{Check, Finding, counted};

/// The maps that were found, by dataset, with the check that looked at them.
pub(super) struct FoundZones {
    pub(super) maps: Vec<ZoneMaps>,
    pub(super) check: Check,
}

impl FoundZones {
    /// Of the maps that queries use: those in the file or, if it has none, beside it in its package, where
    /// the checks of the package look at them.
    pub(super) async fn used(file: &TetReader) -> Self {
        if let Some(machine) = file.tet().check_zone_maps() {
            return Self::of(file.tet(), file.run(machine).await);
        }
        let none = Check::new("zone_maps").with_detail("none");
        let Some(package) = file.package() else { return Self { maps: vec![], check: none } };
        let beside = Self::beside(file, package).await;
        Self { maps: beside.map_or(vec![], |found| found.maps), check: none }
    }

    /// Of the zone file of a package, if there is one.
    pub(super) async fn beside(file: &TetReader, package: &Package) -> Option<Self> {
        let at = package.zone_file()?.clone();
        let found = match file.tet().check_zone_file(at, package.generation()) {
            Ok(machine) => package.run(machine).await,
            Err(error) => Err(error),
        };
        Some(Self::of(file.tet(), found))
    }

    /// Of what was read.
    pub(super) fn of(file: &TetFile, found: Result<CheckedZoneMaps, Error>) -> Self {
        let mut check = Check::new("zone_maps");
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                check.add(Finding::of_error(&error));
                return Self { maps: vec![], check };
            }
        };
        check = check.with_detail(counted(found.entries, "map"));
        for fault in &found.faults {
            check.add(finding(file, fault));
        }
        if !found.in_order {
            check.add(Finding::warning("maps that are not in the order of datasets and chunks"));
        }
        for (dataset, maps) in file.datasets().iter().zip(&found.maps) {
            let chunks = dataset.grid().map_or(0, |grid| grid.chunks());
            let missing = chunks.saturating_sub(maps.len() as u64);
            if missing > 0 {
                let message = format!("no map of {missing} of {chunks} chunks; none is skipped");
                check.add(Finding::warning(message).in_dataset(dataset.name()));
            }
        }
        for (id, maps) in found.maps.iter().enumerate() {
            check.extend(noted_fills(file, id, maps));
        }
        Self { maps: found.maps, check }
    }

    /// Says what differs from other maps of the same file.
    pub(super) fn compare(&mut self, file: &TetFile, others: &[ZoneMaps]) {
        for ((dataset, own), other) in file.datasets().iter().zip(&self.maps).zip(others) {
            if own == other {
                continue;
            }
            let finding = Finding::failure("maps that differ from those in the file");
            let finding = finding.in_dataset(dataset.name());
            let chunk = own.first_difference(other);
            let coordinates = dataset.grid().ok().zip(chunk);
            self.check.add(match coordinates {
                Some((grid, number)) => finding.of_chunk(&grid.chunk_coordinates(number)),
                None => finding,
            });
        }
    }
}

/// Maps whose least or greatest value is the declared fill: their writer did not know it. One that lies
/// between the two may be rightly noted, which only the cells tell.
fn noted_fills(file: &TetFile, id: usize, maps: &ZoneMaps) -> Vec<Finding> {
    let dataset = &file.datasets()[id];
    let (Ok(grid), Ok(element)) = (dataset.grid(), dataset.element()) else { return vec![] };
    let attributes = &file.metadata_of(id).attrs;
    let Some(fill) = declared_fill(element, attributes, &mut vec![]) else { return vec![] };
    let is_noted =
        |zone: &Zone| zone.bounds.is_some_and(|(least, most)| [least, most].contains(&fill));
    let numbers = maps.iter().filter(|(_, zone)| is_noted(zone)).map(|(number, _)| number);
    let text = decimal(element, &fill).unwrap_or_default();
    let message = format!(
        "the fill value {text} is noted as a value, so bounds and NULL count are wrong; queries do without this map"
    );
    let finding = Finding::failure(message).in_dataset(dataset.name());
    numbers.map(|number| finding.clone().of_chunk(&grid.chunk_coordinates(number))).collect()
}

fn finding(file: &TetFile, fault: &ZoneFault) -> Finding {
    let id = usize::try_from(fault.dataset).unwrap_or(usize::MAX);
    let finding = Finding::of_error(&fault.error).of_chunk(&fault.coordinates);
    match file.datasets().get(id) {
        Some(dataset) => finding.in_dataset(dataset.name()),
        None => finding,
    }
}
