//! [`Slice`]: the part of an uncompressed payload that has all selected cells of a chunk.
//!
//! ```text
//!   chunk     . . . . . .      payload   ............▒▒▒▒▒▒▒▒▒........
//!             . . . . . .                            └─ slice ─┘
//!             ▒ . ▒ . . .
//!             ▒ . ▒ . . .      a request fetches the slice; zeros stand for the other bytes, which no query reads
//!             . . . . . .
//! ```

use std::ops::Range;

use bytes::Bytes;

use super::request::Request;
use crate::format::{ByteRange, Layer, Payload, StoredChunk};
use crate::grid::{AxisSelection, ChunkTask};

/// A part of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The bytes of the payload that are fetched.
    bytes: Range<usize>,
    /// The length of the whole payload.
    len: usize,
}

impl Slice {
    /// Shortens the requests for a chunk to slices that spare more than `least` bytes each. `requests` are those
    /// of `stored`, in order. Returns a slice for each shorter request, and `None` for the others.
    ///
    /// A view of memory or of a mapping costs nothing, so if the bytes are `resident`, requests for views stay whole.
    /// Their slices count the bytes that are used.
    pub fn shorten(
        task: &ChunkTask,
        stored: &[StoredChunk],
        requests: &mut [Request],
        least: u64,
        resident: bool,
    ) -> Vec<Option<Self>> {
        let payloads = stored.iter().flat_map(|chunk| &chunk.layers);
        let payloads = payloads.flat_map(|layer| layer.payloads().map(move |it| (layer, it)));
        let shorten = |((layer, payload), request): ((&Layer, &Payload), &mut Request)| {
            let slice = Self::try_new(task, layer, payload)?;
            if (slice.left_out() as u64) <= least {
                return None;
            }
            if resident && payload.is_view() {
                return Some(slice);
            }
            let start = payload.at.start();
            let (from, to) = (slice.bytes.start as u64, slice.bytes.end as u64);
            request.at.range = ByteRange::Bounded(start + from..start + to);
            Some(slice)
        };
        payloads.zip(requests).map(shorten).collect()
    }

    /// Returns the part of a payload with all selected cells; `None` if cells have no known place in it.
    fn try_new(task: &ChunkTask, layer: &Layer, payload: &Payload) -> Option<Self> {
        let has_places =
            layer.placement.is_none() && layer.content.is_none() && payload.codec.is_raw();
        let is_bounded = matches!(payload.at.range, ByteRange::Bounded(_));
        if !has_places || !is_bounded || payload.stored_len() != payload.raw_len {
            return None;
        }
        let cells = task.cells();
        let width =
            payload.raw_len.checked_div(cells).filter(|it| it * cells == payload.raw_len)?;
        let cells = span(&task.selection)?;
        let bytes = (cells.start * width) as usize..(cells.end * width) as usize;
        Some(Self { bytes, len: usize::try_from(payload.raw_len).ok()? })
    }

    /// Returns the bytes that are used.
    pub fn used(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that are not fetched.
    fn left_out(&self) -> usize {
        self.len - self.bytes.len()
    }

    /// Returns a payload of the whole length with the fetched bytes in their place.
    pub fn pad(&self, fetched: &Bytes) -> Bytes {
        if fetched.len() != self.bytes.len() {
            return fetched.clone(); // the whole payload, or decoding reports a wrong length
        }
        // The system provides zeroed memory on first use, so bytes that no query reads take none.
        let mut payload = vec![0; self.len];
        payload[self.bytes.clone()].copy_from_slice(fetched);
        payload.into()
    }
}

/// Returns the row-major numbers of the cells from the first selected one to the last; `None` if none is
/// selected.
fn span(selection: &[AxisSelection]) -> Option<Range<u64>> {
    let (mut first, mut last) = (0, 0);
    for axis in selection {
        let ranges = axis.ranges();
        first = first * axis.len() + ranges.first()?.start;
        last = last * axis.len() + ranges.last()?.end - 1;
    }
    Some(first..last + 1)
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::format::{ByteOrder, Codec, Location};

    fn task(selection: Vec<AxisSelection>) -> ChunkTask {
        let rows = selection.iter().map(AxisSelection::count).product();
        let coordinates = vec![0; selection.len()];
        ChunkTask { chunk_number: 0, coordinates, selection, rows }
    }

    /// Returns the payload at byte 100 of a chunk, and the request for it.
    fn chunk(codec: Codec, stored: u64, raw: u64) -> (StoredChunk, Request) {
        let at = Location::new("a", ByteRange::Bounded(100..100 + stored));
        let request = Request { at: at.clone(), may_be_absent: false, expected: stored };
        (StoredChunk::new(vec![Layer::whole(Payload::new(at, raw, codec))]), request)
    }

    #[test]
    fn a_slice_has_all_selected_cells() {
        let mut rng = StdRng::seed_from_u64(17);
        for _ in 0..500 {
            let shape: Vec<u64> =
                (0..rng.random_range(1..4)).map(|_| rng.random_range(1..6)).collect();
            let mask = |&len: &u64| (0..len).map(|_| rng.random_bool(0.4)).collect::<Vec<_>>();
            let masks: Vec<Vec<bool>> = shape.iter().map(mask).collect();
            let task = task(masks.iter().map(|mask| AxisSelection::from_mask(mask)).collect());
            let cells = shape.iter().product::<u64>() as usize;
            let payload: Vec<u8> = (0..cells * 2).map(|at| at as u8 + 1).collect();
            let (stored, mut request) =
                chunk(Codec::Raw, payload.len() as u64, payload.len() as u64);
            let slices =
                Slice::shorten(&task, &[stored], std::slice::from_mut(&mut request), 0, false);
            let ByteRange::Bounded(range) = &request.at.range else { panic!("a bounded range") };
            let fetched = &payload[range.start as usize - 100..range.end as usize - 100];
            let padded = match &slices[0] {
                Some(slice) => slice.pad(&Bytes::copy_from_slice(fetched)),
                None => Bytes::copy_from_slice(fetched),
            };
            assert_eq!(padded.len(), payload.len());
            for cell in 0..cells {
                let mut at = cell as u64;
                let is_selected = masks.iter().zip(&shape).rev().all(|(mask, len)| {
                    let index = at % len;
                    at /= len;
                    mask[index as usize]
                });
                let bytes = cell * 2..cell * 2 + 2;
                assert!(!is_selected || padded[bytes.clone()] == payload[bytes], "cell {cell}");
            }
        }
    }

    #[test]
    fn only_slices_that_spare_enough_are_fetched() {
        let one =
            task(vec![AxisSelection::from_range(10, 4..5), AxisSelection::from_range(8, 3..5)]);
        let shortened = |codec, stored, raw, least| {
            let (stored, mut request) = chunk(codec, stored, raw);
            let requests = std::slice::from_mut(&mut request);
            let slices = Slice::shorten(&one, &[stored], requests, least, false);
            (request.at.range, slices[0].as_ref().map(Slice::left_out))
        };
        // The cells 35 and 36 of 80, of 4 bytes each.
        let whole = ByteRange::Bounded(100..420);
        assert_eq!(shortened(Codec::Raw, 320, 320, 100), (ByteRange::Bounded(240..248), Some(312)));
        assert_eq!(shortened(Codec::Raw, 320, 320, 312), (whole.clone(), None));
        assert_eq!(shortened(Codec::Raw, 320, 321, 0), (whole.clone(), None)); // damaged
        assert_eq!(shortened(Codec::Zstd, 320, 320, 0), (whole, None));
    }

    #[test]
    fn views_of_a_mapping_stay_whole_and_count_the_bytes_that_are_used() {
        let one =
            task(vec![AxisSelection::from_range(10, 4..5), AxisSelection::from_range(8, 3..5)]);
        for (byte_order, requested) in [(ByteOrder::Little, 320), (ByteOrder::big(4), 8)] {
            let (mut stored, mut request) = chunk(Codec::Raw, 320, 320);
            stored.layers[0].values.byte_order = byte_order;
            let requests = std::slice::from_mut(&mut request);
            let slices = Slice::shorten(&one, &[stored], requests, 100, true);
            assert_eq!(
                (slices[0].as_ref().map(Slice::used), request.at.range.most()),
                (Some(8), Some(requested))
            );
        }
    }
}
