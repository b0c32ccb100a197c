//! Guesses which bytes of a file are labels, from its first bytes alone.
//!
//! ```text
//!   head        ├ superblock ┼ directory ┼ chunk index ┼ …      in memory
//!   this guess        temperature [8760, 40]   time [8760] ─▶ rows of "time" ─▶ their payloads
//! ```
//!
//! The footer decides which datasets are labels, and lies at the other end of the file. A remote file is opened one
//! round trip sooner if the labels come together with the footer. A wrong guess costs bytes, and no answer.

use std::ops::Range;

use super::directory::Dataset;
use super::index::{Index, Row};

/// The most bytes to guess. Labels beyond are read once the footer names them.
const MOST_BYTES: u64 = 8 << 20;

/// Returns the bytes of the datasets that are probably labels, if `head`, the first bytes of the file, has their rows
/// of the index.
pub(super) fn likely_labels(
    head: &[u8],
    file_len: u64,
    datasets: &[Dataset],
    index: &Index,
) -> Vec<Range<u64>> {
    let region = index.bytes_of(0..index.row_count);
    let end = region.end.min(head.len() as u64);
    let Some(rows) = head.get(region.start as usize..end as usize) else { return vec![] };
    let is_likely: Vec<bool> = datasets.iter().map(|it| may_label(it, datasets)).collect();
    let mut most = MOST_BYTES;
    Row::parse_each(region.start, rows)
        .filter_map(Result::ok)
        .filter(|row| is_likely.get(row.dataset() as usize) == Some(&true))
        .filter_map(|row| row.span(file_len).ok())
        .take_while(|range| {
            let fits = most.checked_sub(range.end - range.start);
            most = fits.unwrap_or(0);
            fits.is_some()
        })
        .collect()
}

/// Whether a dataset has one axis, as long as an axis of a dataset with several.
fn may_label(dataset: &Dataset, datasets: &[Dataset]) -> bool {
    let &[len] = dataset.shape() else { return false };
    datasets.iter().any(|it| it.shape().len() > 1 && it.shape().contains(&len))
}
