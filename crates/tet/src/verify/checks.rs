//! The checks of a `.tet` file, in the order in which they are reported.
//!
//! `FORMAT.md` describes each check. Some have no code here: opening the file has made them already,
//! so they are listed without findings.
//!
//! The index may have millions of rows, and cells take the most time. So one pass over the index feeds all
//! checks of rows and, at [`Depth::Cells`], the decoding:
//!
//! ```text
//!   checked_rows, 8192 at a time ──┬─▶ IndexChecks::add      keeps ranges, no rows
//!                                  └─▶ CellChecks::add ──▶ batches ──▶ a task per core
//! ```

use std::sync::Arc;

use super::cells::CellChecks;
use super::index::{IndexChecks, checked_rows};
use super::zones::FoundZones;
use crate::bytes::TetFile;
use crate::reader::TetReader;
use gridfusion_core::Result;
use gridfusion_core::array::{ReadOptions, Remarks, TimeUnits};
use gridfusion_core::verify::{Check, Depth, Finding, Progress, Report, counted};

/// Runs the checks of the file, without those of its package.
pub(super) async fn verify_file(
    reader: &TetReader,
    depth: Depth,
    progress: &Arc<Progress>,
    zones: &FoundZones,
) -> Report {
    let file = reader.tet();
    let mut report = Report::new(depth);
    report.add(Check::new("superblock").with_detail("layout version 1"));
    let datasets = counted(file.datasets().len() as u64, "dataset");
    report.add(Check::new("dataset_directory").with_detail(datasets));
    // An index that cannot be read is one finding, and the checks of the footer are still made.
    let (index, cells) = match verify_index(reader, depth, progress, zones).await {
        Ok(checks) => checks,
        Err(error) => (vec![Check::new("chunk_index").with(Finding::from_error(&error))], vec![]),
    };
    index.into_iter().for_each(|check| report.add(check));
    verify_footer(reader, &mut report).await;
    report.add(labels(file));
    report.add(attributes(reader));
    report.add(zones.check.clone());
    cells.into_iter().for_each(|check| report.add(check));
    report.relative_to(reader.name())
}

/// Reads the index once and returns the checks of the index and those of the cells. [`Depth::Cells`]
/// decodes the payloads in the same pass.
async fn verify_index(
    reader: &TetReader,
    depth: Depth,
    progress: &Arc<Progress>,
    zones: &FoundZones,
) -> Result<(Vec<Check>, Vec<Check>)> {
    let rows = reader.tet().index_rows();
    progress.expect(rows);
    let mut index = IndexChecks::new(reader.tet());
    let reads_cells = depth != Depth::Structure;
    let mut cells = reads_cells.then(|| CellChecks::new(reader, zones.maps.clone(), progress));
    // The number of rows that were checked, and so the number of the next one.
    let mut seen = 0;
    while seen < rows {
        let part = checked_rows(reader, seen).await?;
        if part.is_empty() {
            break;
        }
        seen += part.len() as u64;
        for row in part {
            index.add(reader.tet(), &row);
            match &mut cells {
                Some(cells) => cells.add(row).await?,
                None => progress.advance(1, 0),
            }
        }
    }
    let cells = match cells {
        Some(cells) => cells.finish().await?,
        None => vec![],
    };
    Ok((index.finish(reader).await, cells))
}

/// Adds the checks of the footer. Misplaced parts are failures. Parts that readers ignore are warnings.
async fn verify_footer(reader: &TetReader, report: &mut Report) {
    let mut footer = Check::new("footer");
    let Some(machine) = reader.tet().check_footer() else {
        return report.add(footer.with_detail("none"));
    };
    let found = match reader.run(machine).await {
        Ok(found) => found,
        Err(error) => return report.add(footer.with(Finding::from_error(&error))),
    };
    footer = footer.with_detail(format!("version {}", found.version));
    footer.extend(found.misplaced.iter().map(Finding::from_error));
    footer.extend(found.ignored.iter().map(|error| Finding::from_error(error).into_warning()));
    report.add(footer);
    let mut limits = Check::new("footer_metadata");
    limits.extend(found.exceeded.iter().map(Finding::from_error));
    report.add(limits);
}

/// Checks the names of datasets and dimensions, and the number of labels per dimension.
fn labels(file: &TetFile) -> Check {
    let mut check = Check::new("labels");
    for (id, dataset) in file.datasets().iter().enumerate() {
        if file.dataset_id(dataset.name()) != Some(id) {
            let message = "queries read an earlier dataset with the same name";
            check.add(Finding::warning(message).in_dataset(dataset.name()));
            continue;
        }
        let (_, warnings) = file.dimensions(id);
        check.extend(
            warnings
                .into_iter()
                .map(|warning| Finding::warning(warning).in_dataset(dataset.name())),
        );
    }
    check
}

/// Checks that attributes can be parsed if values depend on them: fill values, packing, categories and
/// units of time.
fn attributes(reader: &TetReader) -> Check {
    let file = reader.tet();
    let mut check = Check::new("attributes");
    for (id, dataset) in file.datasets().iter().enumerate() {
        // Queries ignore a later dataset of the same name, and the check of labels warns of it.
        if file.dataset_id(dataset.name()) != Some(id) {
            continue;
        }
        let mut remarks = Remarks::default();
        if reader.column(id, &ReadOptions::default(), &mut remarks).is_err() {
            continue;
        }
        let units = TimeUnits::from_attributes(&file.metadata_of(id).attrs).err();
        // Units of time matter for labels only: values of other datasets are shown as numbers.
        let odd = units.filter(|_| file.is_coordinate(id)).map(Finding::warning);
        let findings = remarks.misunderstood.into_iter().map(Finding::failure).chain(odd);
        check.extend(findings.map(|finding| finding.in_dataset(dataset.name())));
    }
    check
}
