//! Datasets whose cells are in other files, which have nothing but cells.
//!
//! ```text
//!   cells     0 1 2 3 4 5 6 7 8 9 …
//!   segments  └ a.raw ┘ └ b.raw … ┘      runs of cells, which are boxes of a chunk
//! ```

use std::iter;
use std::ops::Range;

use super::segment::Segment;
use super::stored_variable::{ChunkPlace, StoredVariable, location};
use gridfusion_core::format::{Layer, Location, Payload, Placement, StoredChunk};
use gridfusion_core::grid::ravel;
use gridfusion_core::{Error, Result};

/// The parts of other files that hold the cells of a variable.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    stored: &'a StoredVariable,
    segments: &'a [Segment],
    /// The lengths of the files of the segments.
    lens: &'a [u64],
    /// The first byte of each segment among all bytes of the dataset.
    starts: Vec<u64>,
}

/// Cells of a dataset that are in one segment, as numbers in row-major order.
#[derive(Debug, PartialEq, Eq)]
struct ExternalRun {
    segment: usize,
    cells: Range<u64>,
    /// The position in the file.
    at: u64,
}

impl<'a> Parts<'a> {
    /// Returns the parts of a variable, whose files have these lengths.
    pub(super) fn new(stored: &'a StoredVariable, lens: &'a [u64]) -> Result<Self> {
        let ChunkPlace::External(segments) = &stored.place else {
            return Err(Error::internal("no other file holds the variable"));
        };
        if segments.len() != lens.len() {
            return Err(Error::internal("not as many files as segments"));
        }
        let start = |at: &mut u64, segment: &Segment| {
            let start = *at;
            *at = start.saturating_add(segment.len.unwrap_or(u64::MAX));
            Some(start)
        };
        let starts = segments.iter().scan(0, start).collect();
        Ok(Self { stored, segments, lens, starts })
    }

    /// Returns the number of cells that the files have, and of all cells.
    pub(super) fn count(&self) -> Result<(u64, u64)> {
        let all = self.stored.shape.iter().product();
        let found = self.runs(&(0..all))?.iter().map(|run| run.cells.end - run.cells.start).sum();
        Ok((found, all))
    }

    /// Returns the runs of these cells that the files have.
    fn runs(&self, cells: &Range<u64>) -> Result<Vec<ExternalRun>> {
        let width = self.stored.width;
        let bytes = cells.start * width..cells.end * width;
        let first = self.starts.partition_point(|start| *start <= bytes.start).saturating_sub(1);
        let all = self.segments.iter().zip(self.lens).zip(&self.starts).enumerate().skip(first);
        let mut runs = vec![];
        for (number, ((segment, file), &start)) in all {
            if start >= bytes.end {
                break;
            }
            let end = start.saturating_add(segment.len.unwrap_or(u64::MAX)).min(bytes.end);
            let in_file = file.saturating_sub(segment.offset);
            let from = start.max(bytes.start);
            let to = end.min(start.saturating_add(in_file));
            // A part that ends within a cell would need another part for the rest.
            if [from, end.max(from), to.max(from)].iter().any(|at| at % width != 0) {
                let name = &segment.file;
                return Err(Error::unsupported(format!(
                    "the part of the external file {name:?} from byte {} on begins or ends within a cell of {width} bytes",
                    segment.offset
                )));
            }
            if from < to {
                let at = segment.offset.saturating_add(from - start);
                runs.push(ExternalRun { segment: number, cells: from / width..to / width, at });
            }
        }
        Ok(runs)
    }

    /// Returns the layers of a chunk, of which `shown` cells per axis are of the variable.
    pub(super) fn chunk(&self, chunk: &[u64], shown: &[u64]) -> Result<StoredChunk> {
        let stored = self.stored;
        if stored.number(chunk).is_none() {
            return Ok(StoredChunk::default());
        }
        let extents = stored.extents(chunk);
        let firsts = chunk.iter().zip(&stored.chunk_shape).map(|(at, len)| at * len);
        let first = ravel(&firsts.collect::<Vec<u64>>(), &stored.shape);
        let cells: u64 = extents.iter().product();
        let mut layers = vec![];
        for run in self.runs(&(first..first + cells))? {
            let member = u32::try_from(run.segment);
            let member = member.map_err(|_| Error::internal("too many segments"))?;
            let mut at = run.at;
            for region in boxes(&extents, run.cells.start - first..run.cells.end - first) {
                let tile_shape: Vec<u64> = region.iter().map(|it| it.end - it.start).collect();
                let len = tile_shape.iter().product::<u64>() * stored.width;
                let place = Location { member, ..location(at, len) };
                let payload = Payload::new(place, len, stored.filters.plain());
                let values = payload.with_byte_order(stored.byte_order);
                let is_whole = tile_shape == shown;
                let placement = Placement::new(region, tile_shape);
                let placement = Some(placement).filter(|_| !is_whole);
                layers.push(Layer::whole(values).with_placement(placement));
                at += len;
            }
        }
        Ok(StoredChunk::new(layers))
    }
}

/// Divides a run of cells of a chunk, as numbers in row-major order, into boxes that are runs themselves.
///
/// ```text
///   . . a a
///   b b b b      the rest of a row, whole rows, the beginning of a row
///   b b b b
///   c . . .
/// ```
fn boxes(extents: &[u64], run: Range<u64>) -> Vec<Vec<Range<u64>>> {
    let Some((_, rest)) = extents.split_first() else { return vec![vec![]] };
    let row: u64 = rest.iter().product::<u64>().max(1);
    let mut all: Vec<Vec<Range<u64>>> = vec![];
    let mut at = run.start;
    while at < run.end {
        let first = at / row;
        let whole = run.end / row;
        let next = if at.is_multiple_of(row) && whole > first {
            let others = rest.iter().map(|&len| 0..len);
            all.push(std::iter::once(first..whole).chain(others).collect());
            whole * row
        } else {
            let end = run.end.min((first + 1) * row);
            let within = boxes(rest, at - first * row..end - first * row).into_iter();
            let of_row = |it: Vec<Range<u64>>| iter::once(first..first + 1).chain(it).collect();
            all.extend(within.map(of_row));
            end
        };
        at = next;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::grid::unravel;

    #[test]
    fn boxes_are_the_run_in_order() {
        for extents in [&[7][..], &[3, 4], &[2, 3, 4], &[1, 3, 1, 2], &[]] {
            let all: u64 = extents.iter().product();
            for start in 0..all {
                for end in start + 1..=all {
                    let boxes = boxes(extents, start..end);
                    assert!(boxes.len() <= 2 * extents.len().max(1), "{boxes:?}");
                    let cells = boxes.iter().flat_map(|region| {
                        let lens: Vec<u64> = region.iter().map(|it| it.end - it.start).collect();
                        (0..lens.iter().product()).map(move |number| {
                            let within = unravel(number, &lens);
                            let cell = within.iter().zip(region).map(|(at, it)| at + it.start);
                            ravel(&cell.collect::<Vec<u64>>(), extents)
                        })
                    });
                    assert_eq!(cells.collect::<Vec<_>>(), (start..end).collect::<Vec<_>>());
                }
            }
        }
    }
}
