//! Zone maps: what the writer noted about the values of each chunk.
//!
//! They are hints in JSON that nothing guards: the maps of a dataset are used only if all of them
//! are well-formed and fit their tiles, and an option turns it off altogether.

use std::cmp::Reverse;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::format::{Machine, Step};
use crate::grid::ChunkGrid;

/// The zone maps of one dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZoneMaps {
    /// Sorted by chunk number: cells that are NaN or the fill value.
    null_counts: Vec<(u64, u64)>,
}

impl ZoneMaps {
    /// How many cells of `chunk` (its row-major number) are NaN or the fill value, if known.
    pub fn null_count(&self, chunk: u64) -> Option<u64> {
        let at = self.null_counts.binary_search_by_key(&chunk, |(number, _)| *number).ok()?;
        Some(self.null_counts[at].1)
    }
}

#[derive(Deserialize)]
struct ZoneJson {
    version: u32,
    chunks: Vec<ZoneEntry>,
}

#[derive(Deserialize)]
struct ZoneEntry {
    dataset_id: u64,
    chunk_index: Vec<u64>,
    element_count: u64,
    null_count: u64,
}

/// Reads the zone maps of one dataset; made by [`super::TetFile::read_zone_maps`].
#[derive(Debug)]
pub struct ReadZoneMaps {
    at: Range<u64>,
    dataset: usize,
    grid: ChunkGrid,
}

impl ReadZoneMaps {
    pub(super) fn new(at: Range<u64>, dataset: usize, grid: ChunkGrid) -> Self {
        Self { at, dataset, grid }
    }

    fn parse(&self, json: &[u8]) -> Result<ZoneMaps> {
        let corrupt = |message: String| Error::corrupt("zone maps", self.at.start, message);
        let json: ZoneJson = serde_json::from_slice(json)
            .map_err(|error| corrupt(format!("not zone maps ({error})")))?;
        if json.version != 1 {
            return Err(corrupt(format!("version {}, this reader knows 1", json.version)));
        }
        let mut null_counts = Vec::new();
        for zone in json.chunks.iter().filter(|zone| zone.dataset_id == self.dataset as u64) {
            let at = &zone.chunk_index;
            let number = self
                .grid
                .chunk_number(at)
                .ok_or_else(|| corrupt(format!("a map of chunk {at:?}, which does not exist")))?;
            let cells: u64 = self.grid.extents(at).iter().product();
            if zone.element_count != cells || zone.null_count > cells {
                return Err(corrupt(format!(
                    "{} nulls among {} elements in chunk {at:?}, which has {cells}",
                    zone.null_count, zone.element_count
                )));
            }
            null_counts.push((number, zone.null_count));
        }
        // Of maps that contradict each other, the one that promises less counts.
        null_counts.sort_unstable_by_key(|&(number, nulls)| (number, Reverse(nulls)));
        null_counts.dedup_by_key(|(number, _)| *number);
        Ok(ZoneMaps { null_counts })
    }
}

impl Machine for ReadZoneMaps {
    type Output = ZoneMaps;

    fn step(&mut self, replies: Vec<Bytes>) -> Result<Step<ZoneMaps>> {
        match replies.first() {
            None => Ok(Step::Read(vec![self.at.clone()])),
            Some(json) => self.parse(json).map(Step::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ZoneMaps> {
        let grid = ChunkGrid::new(&[5], &[2]).unwrap();
        ReadZoneMaps::new(0..0, 1, grid).parse(json.as_bytes())
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
        assert_eq!((good.null_count(2), good.null_count(0)), (Some(1), None));
        assert!(maps(2, &entry(2, 1, 1)).is_err());
        assert!(maps(1, &entry(3, 1, 1)).is_err());
        assert!(maps(1, &entry(2, 2, 1)).is_err());
        assert!(maps(1, &entry(1, 2, 3)).is_err());
        assert!(parse("!").is_err());
    }
}
