//! The times of the cells of a consolidated fragment: when each was written, and when it was deleted.

use crate::bytes::Fragment;
use gridfusion_core::tile::Tile;
use gridfusion_core::verify::Finding;

/// The time of deletion of a cell that was not deleted.
const NEVER: u64 = u64::MAX;

/// Checks the times of the cells of a tile: `written` and `deleted` are the decoded tiles, as far as the
/// fragment has them and they could be decoded. Returns the first finding of each kind.
pub(super) fn check_times(
    fragment: &Fragment,
    written: Option<&Tile>,
    deleted: Option<&Tile>,
) -> Vec<Finding> {
    let (t1, t2) = (fragment.t1, fragment.t2);
    let mut findings = vec![];
    let written = written.map(numbers);
    if let Some((cell, time)) = first(written.as_deref(), |time| time < t1) {
        let message = format!("cell {cell} has time {time}, and the fragment begins at {t1}");
        findings.push(Finding::failure(message));
    }
    // TileDB takes the end from the last of the fragments that it consolidates. An earlier one may end later.
    if let Some((cell, time)) = first(written.as_deref(), |time| time > t2) {
        let message = format!("cell {cell} has time {time}, and the fragment ends at {t2}");
        findings.push(Finding::warning(message));
    }
    let Some(deleted) = deleted.map(numbers) else { return findings };
    let times = match (&written, fragment.time_field()) {
        (Some(times), _) => times.clone(),
        // Cells without a time have that of the fragment.
        (None, None) => vec![t1; deleted.len()],
        (None, Some(_)) => return findings,
    };
    let mut both = times.iter().zip(&deleted).enumerate();
    if let Some((cell, (time, end))) = both.find(|(_, (time, end))| **end != NEVER && end < time) {
        let message = format!("cell {cell} has time {time}, and was deleted at {end}");
        findings.push(Finding::failure(message));
    }
    findings
}

/// Returns the first time that meets a condition, with the number of its cell.
fn first(times: Option<&[u64]>, is_wrong: impl Fn(u64) -> bool) -> Option<(usize, u64)> {
    times?.iter().copied().enumerate().find(|(_, time)| is_wrong(*time))
}

/// Returns the cells of a tile of `u64`.
fn numbers(tile: &Tile) -> Vec<u64> {
    tile.bytes().as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}
