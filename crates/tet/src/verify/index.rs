//! The checks of the chunk index: each row is valid, each chunk has one row, and payloads do not
//! overlap.
//!
//! ```text
//!   pass 1, all rows    faults of each row ──▶ one check per field
//!                       chunk number, span ──▶ Extents
//!   finish              gaps and overlaps of chunk numbers ──▶ missing and doubled rows
//!                       overlaps of spans ──▶ pass 2, only if there are any: which chunks have these bytes?
//! ```
//!
//! The first pass keeps no rows, because an index may have millions.

use std::ops::Range;

use super::extents::Extents;
use crate::bytes::{CheckedRow, RowField, TetFile};
use crate::reader::TetReader;
use gridfusion_core::Result;
use gridfusion_core::verify::{Check, Finding, Severity, counted};

/// Rows of the index read at once: less than a megabyte.
const ROWS_AT_ONCE: u64 = 8192;
/// The most overlaps of payloads that are reported with the chunks they belong to.
const MOST_LOOKED_UP: usize = 20;

/// Reads and checks the next rows of the index; `after` is the number of the first of them.
pub(super) async fn checked_rows(file: &TetReader, after: u64) -> Result<Vec<CheckedRow>> {
    let rows = after..after.saturating_add(ROWS_AT_ONCE);
    file.run(file.tet().check_index(rows)).await
}

/// The checks of the index, which take its rows one by one.
#[derive(Debug)]
pub(super) struct IndexChecks {
    index: Check,
    payloads: Check,
    dataset_ids: Check,
    tensor_bytes: Check,
    coords: Check,
    unused: Check,
    /// The numbers of the chunks that have rows, indexed by dataset id.
    chunks: Vec<Extents>,
    /// The bytes of the payloads.
    spans: Extents,
}

impl IndexChecks {
    pub(super) fn new(file: &TetFile) -> Self {
        Self {
            index: Check::new("chunk_index").with_detail(counted(file.index_rows(), "row")),
            payloads: Check::new("chunk_payloads"),
            dataset_ids: Check::new("chunk_dataset_ids"),
            tensor_bytes: Check::new("dataset_tensor_bytes"),
            coords: Check::new("chunk_coords"),
            unused: Check::new("unused_coords"),
            chunks: file.datasets().iter().map(|_| Extents::default()).collect(),
            spans: Extents::default(),
        }
    }

    /// Adds the faults of a row to the checks, and its chunk and its bytes to the ranges.
    pub(super) fn add(&mut self, file: &TetFile, row: &CheckedRow) {
        for (field, error) in &row.faults {
            let finding = about(file, row, Finding::from_error(error));
            match field {
                RowField::Dataset => self.dataset_ids.add(finding),
                RowField::Coordinates => self.coords.add(finding),
                RowField::UnusedCoordinates => self.unused.add(finding.into_warning()),
                RowField::RawLength => self.tensor_bytes.add(finding),
                RowField::Codec | RowField::StoredLength => self.index.add(finding),
                RowField::Payload => self.payloads.add(finding),
            }
        }
        if let Some((dataset, number)) = chunk_of(file, row) {
            self.chunks[dataset].add(number..number + 1);
        }
        if let Some(span) = &row.span {
            self.spans.add(span.clone());
        }
    }

    /// Adds the checks that need all rows. Returns all checks in the order of the report.
    pub(super) async fn finish(mut self, file: &TetReader) -> Vec<Check> {
        let tet = file.tet();
        for (id, chunks) in std::mem::take(&mut self.chunks).into_iter().enumerate() {
            self.check_grid(tet, id, chunks);
        }
        let mut order = Check::new("payload_order");
        // Payloads in the order of the index are one run, which a scan reads from start to end.
        let run_count = self.spans.run_count();
        if run_count > 1 {
            let slow = "which takes longer to read than one run";
            let message = format!("payloads form {run_count} separate runs in index order, {slow}");
            order.add(Finding::warning(message));
        }
        let overlaps = self.spans.compare(tet.payload_area()).overlaps;
        let mut checks = vec![self.index, self.payloads, self.dataset_ids, self.tensor_bytes];
        checks.extend([self.coords, self.unused]);
        checks.extend(Overlaps::new(overlaps).find(file).await);
        checks.push(order);
        checks
    }

    /// Checks that each chunk of a dataset has exactly one row.
    fn check_grid(&mut self, file: &TetFile, id: usize, chunks: Extents) {
        let dataset = &file.datasets()[id];
        let grid = match dataset.grid() {
            Ok(grid) => grid,
            Err(error) => {
                let finding = Finding::from_error(&error).in_dataset(dataset.name());
                return self.tensor_bytes.add(finding);
            }
        };
        let found = chunks.compare(0..grid.chunks());
        // A number that is in no range is a chunk without a row. One in an overlap is a chunk with several.
        for (check, ranges, what) in [
            (&mut self.tensor_bytes, found.gaps, "no row of the index; its cells are missing"),
            (&mut self.coords, found.overlaps, "more than one row of the index"),
        ] {
            for range in ranges {
                // A range may have billions of numbers, so findings are made only as long as they are listed.
                let mut numbers = range.clone();
                while check.has_room()
                    && let Some(number) = numbers.next()
                {
                    let finding = Finding::failure(what).in_dataset(dataset.name());
                    check.add(finding.of_chunk(&grid.chunk_coordinates(number)));
                }
                check.leave_out(Severity::Failure, numbers.end - numbers.start);
            }
        }
    }
}

/// Returns the dataset id and the chunk number of a row; `None` if the row names no existing chunk.
fn chunk_of(file: &TetFile, row: &CheckedRow) -> Option<(usize, u64)> {
    let (dataset, coordinates) = (row.dataset?, row.coordinates.as_ref()?);
    let number = file.datasets()[dataset].grid().ok()?.chunk_number(coordinates)?;
    Some((dataset, number))
}

/// Adds the dataset and the chunk of a row to a finding.
fn about(file: &TetFile, row: &CheckedRow, finding: Finding) -> Finding {
    let finding = match row.dataset {
        Some(dataset) => finding.in_dataset(file.datasets()[dataset].name()),
        None => finding,
    };
    match &row.coordinates {
        Some(coordinates) => finding.of_chunk(coordinates),
        None => finding,
    }
}

/// Byte ranges that several payloads share, each with up to two of the index rows that share it.
#[derive(Debug)]
struct Overlaps {
    looked_up: Vec<(Range<u64>, Vec<CheckedRow>)>,
    /// The number of further overlaps, for which no rows are searched.
    left_out: u64,
}

impl Overlaps {
    fn new(overlaps: Vec<Range<u64>>) -> Self {
        let left_out = overlaps.len().saturating_sub(MOST_LOOKED_UP) as u64;
        let first = overlaps.into_iter().take(MOST_LOOKED_UP);
        Self { looked_up: first.map(|bytes| (bytes, vec![])).collect(), left_out }
    }

    /// Reads the index again to find the chunks that overlap. Returns a check of equal offsets and
    /// one of other overlaps.
    async fn find(mut self, file: &TetReader) -> [Check; 2] {
        let mut offsets = Check::new("payload_offsets");
        let mut overlap = Check::new("payload_overlap");
        if let Err(error) = self.look_up(file).await {
            overlap.add(Finding::from_error(&error));
        }
        let start = |row: &CheckedRow| row.span.as_ref().map(|span| span.start);
        for (bytes, mut rows) in self.looked_up {
            rows.sort_by_key(start);
            // If only one payload has the first byte, that payload begins before the area of payloads.
            let [first, second] = &rows[..] else {
                let message = "the payload overlaps the directory or the index";
                let found = Finding::failure(message).at_offset(bytes.start);
                overlap
                    .add(rows.first().map_or(found.clone(), |row| about(file.tet(), row, found)));
                continue;
            };
            let is_same = start(first) == start(second);
            let shared = match is_same {
                true => "begins at the same byte as that of",
                false => "overlaps that of",
            };
            let message = format!("its payload {shared} {}", name_of(file.tet(), first));
            let found = Finding::failure(message).at_offset(bytes.start);
            let check = if is_same { &mut offsets } else { &mut overlap };
            check.add(about(file.tet(), second, found));
        }
        overlap.leave_out(Severity::Failure, self.left_out);
        [offsets, overlap]
    }

    /// Finds two rows for each overlap. If any payload begins where the overlap begins, one of the two
    /// rows has such a payload.
    ///
    /// For the payloads 0..9, 2..9 and 5..8 in this order, the overlap 5..8 begins in all three. The first two
    /// would describe another overlap, so the third takes the place of the second.
    async fn look_up(&mut self, file: &TetReader) -> Result<()> {
        let mut after = 0;
        while after < file.tet().index_rows() && !self.looked_up.is_empty() {
            let rows = checked_rows(file, after).await?;
            after = after.saturating_add(ROWS_AT_ONCE);
            for row in rows {
                let Some(span) = row.span.clone() else { continue };
                for (bytes, holders) in &mut self.looked_up {
                    if !span.contains(&bytes.start) {
                        continue;
                    }
                    let begins = |row: &CheckedRow| {
                        row.span.as_ref().is_some_and(|span| span.start == bytes.start)
                    };
                    match holders.len() {
                        ..2 => holders.push(row.clone()),
                        _ if begins(&row) && !holders.iter().any(begins) => {
                            holders[1] = row.clone()
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// Names the chunk of a row in a message.
fn name_of(file: &TetFile, row: &CheckedRow) -> String {
    let dataset = row.dataset.map_or("", |dataset| file.datasets()[dataset].name());
    match &row.coordinates {
        Some(coordinates) => format!("chunk {coordinates:?} of \"{dataset}\""),
        None => format!("the row at byte {}", row.offset),
    }
}
