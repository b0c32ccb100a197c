//! The bounds of values in a mosaic, merged from those of the stored chunks of files.
//!
//! ```text
//!   chunk of the table    stored chunks    bounds                least    greatest
//!   3                     2024.nc 0, 1     A .. C, B .. F   ─▶   A        F
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array, make_comparator, new_null_array};
use arrow::compute::{SortOptions, cast, concat, take};
use arrow::datatypes::DataType;

use super::layout::Layout;
use crate::array::{ValueBounds, failed_to};
use crate::error::Result;

/// The bounds of one value of a mosaic.
#[derive(Debug)]
pub(super) struct MosaicBounds {
    pub(super) layout: Arc<Layout>,
    pub(super) variable: usize,
    /// Per file: the bounds of the variable; `None` if they are not known, or if the query selects no cell of the file.
    pub(super) of_files: Vec<Option<Arc<dyn ValueBounds>>>,
    /// The type of the column, to which files' values are widened.
    pub(super) data_type: DataType,
}

/// Stored chunks of one file, and for each the place of a chunk of the table in the list that was asked for.
#[derive(Default)]
struct OfFile {
    chunks: Vec<u64>,
    places: Vec<usize>,
}

impl ValueBounds for MosaicBounds {
    fn bounds(&self, chunks: &[u64]) -> Result<(ArrayRef, ArrayRef)> {
        let (mut leasts, mut greatests, mut places) = (vec![], vec![], vec![]);
        for (known, of_file) in self.of_files.iter().zip(self.stored(chunks)) {
            let Some(known) = known else { continue };
            let (least, greatest) = known.bounds(&of_file.chunks)?;
            let widen =
                |it: ArrayRef| cast(&it, &self.data_type).map_err(failed_to("widen bounds"));
            leasts.push(widen(least)?);
            greatests.push(widen(greatest)?);
            places.extend(of_file.places);
        }
        let least = self.extremes(&leasts, &places, chunks.len(), Ordering::Less)?;
        Ok((least, self.extremes(&greatests, &places, chunks.len(), Ordering::Greater)?))
    }
}

impl MosaicBounds {
    /// Returns the stored chunks of each file that these chunks of the table overlap.
    fn stored(&self, chunks: &[u64]) -> Vec<OfFile> {
        let mut of_files: Vec<OfFile> = self.of_files.iter().map(|_| OfFile::default()).collect();
        for (place, chunk) in chunks.iter().enumerate() {
            let coordinates = self.layout.grid().chunk_coordinates(*chunk);
            let file = self.layout.file_of(&coordinates);
            let Some(of_file) = of_files.get_mut(file) else { continue };
            let grid = self.layout.grid_of(self.variable, file);
            let stored = match self.layout.same_chunk(self.variable, file, &coordinates) {
                Some(chunk) => vec![chunk],
                None => {
                    let overlaps = self.layout.overlaps(self.variable, &coordinates, None);
                    overlaps.iter().map(|overlap| overlap.chunk_number(grid)).collect()
                }
            };
            of_file.places.extend(stored.iter().map(|_| place));
            of_file.chunks.extend(stored);
        }
        of_files
    }

    /// Returns the least or the greatest of the `parts` with each place, of `len` places. NULL, which stands for an unknown
    /// bound, makes its place unknown.
    fn extremes(
        &self,
        parts: &[ArrayRef],
        places: &[usize],
        len: usize,
        wanted: Ordering,
    ) -> Result<ArrayRef> {
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        if parts.is_empty() {
            return Ok(new_null_array(&self.data_type, len));
        }
        let all = concat(&parts).map_err(failed_to("join bounds"))?;
        let compare = make_comparator(&all, &all, SortOptions::default())
            .map_err(failed_to("compare bounds"))?;
        let mut best: Vec<Option<u64>> = vec![None; len];
        let mut is_unknown = vec![false; len];
        for (at, place) in places.iter().enumerate() {
            is_unknown[*place] |= all.is_null(at);
            let is_better = best[*place].is_none_or(|it| compare(at, it as usize) == wanted);
            if is_better {
                best[*place] = Some(at as u64);
            }
        }
        let known = best.into_iter().zip(is_unknown);
        let known: UInt64Array = known.map(|(at, is_unknown)| at.filter(|_| !is_unknown)).collect();
        take(&all, &known, None).map_err(failed_to("take bounds"))
    }
}
