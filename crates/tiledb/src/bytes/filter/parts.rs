//! Filters that encode both metadata and data of a chunk, in parts: the cipher and the compressors, to
//! which TileDB counts the delta filters.
//!
//! Their metadata replaces that of earlier filters. It lists the parts of the data, in order:
//!
//! ```text
//!   metadata  u32 n, u32 m, then n + m times: u32 raw length, u32 stored length [, nonce, tag]
//!   data      n parts that unpack to the metadata of the filter before, m that unpack to its data
//! ```
//!
//! For example, byteshuffle leaves 8 bytes of metadata and 4000 bytes of data, and zstd makes 17 and 900
//! bytes of them. Then zstd's metadata is n = 1, m = 1, (8, 17), (4000, 900), and its data has 917 bytes.

use super::chunk::{FilteredChunk, Targets, may_preallocate};
use super::crypto::{Cipher, SEAL_LEN};
use super::word::{Width, by_width};
use super::{delta, run_length};
use gridfusion_core::format::compress::{Compressor, Contexts};
use gridfusion_core::format::wire::to_usize;
use gridfusion_core::{Error, Result};

/// Bytes of the two lengths of a part.
const LENGTHS_LEN: usize = 8;

/// The inverse of a filter that works on parts.
#[derive(Debug, Clone)]
pub(super) enum Unpack {
    Decompress(Compressor),
    /// Run-length encoding of cells of this many bytes.
    RunLength(usize),
    Delta(Deltas),
    DoubleDelta(Deltas),
    Decrypt(Cipher),
}

/// The values that a delta filter takes differences of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deltas {
    /// The width of a value.
    pub(super) width: Width,
    /// Whether the values are the cells themselves, rather than the output of another filter.
    pub(super) of_cells: bool,
}

impl Deltas {
    /// Whether the writer dropped the last of `raw_len` bytes, after the last whole value.
    fn are_cut_off(self, raw_len: usize) -> bool {
        !self.of_cells && !raw_len.is_multiple_of(self.width.bytes())
    }
}

impl Unpack {
    /// Undoes the filter for a chunk.
    pub(super) fn run<'a>(
        &self,
        chunk: FilteredChunk<'a>,
        targets: Targets<'a>,
        contexts: &mut Contexts,
    ) -> Result<FilteredChunk<'a>> {
        let seal_len = if matches!(self, Self::Decrypt(_)) { SEAL_LEN } else { 0 };
        let parts = Parts::parse(chunk, seal_len)?;
        let raw_len = |part: ChunkPart<'_>| part.raw_len as u64;
        let metadata_len = parts.iter().take(parts.of_metadata).map(raw_len).sum::<u64>();
        let data_len = parts.iter().skip(parts.of_metadata).map(raw_len).sum::<u64>();

        // Lengths are checked from the cheapest to the dearest check: against the bounds, against the
        // stored bytes, and only where much memory is needed for few bytes, by decompressing to nowhere.
        targets.metadata.check(metadata_len)?;
        targets.data.check(data_len)?;
        if !may_preallocate(metadata_len.saturating_add(data_len), chunk.data.len())
            && let Some(part) = parts.iter().find(|part| !self.can_unpack(part))
        {
            let (stored, raw) = (part.stored.len(), part.raw_len);
            let message = format!("a part of {stored} bytes that does not unpack to {raw} bytes");
            return Err(chunk.corrupt(message));
        }
        let metadata = targets.metadata.claim(metadata_len)?;
        let data = targets.data.claim(data_len)?;
        self.fill(chunk, parts.iter().take(parts.of_metadata), metadata, contexts)?;
        self.fill(chunk, parts.iter().skip(parts.of_metadata), data, contexts)?;
        Ok(FilteredChunk { metadata, data, ..chunk })
    }

    /// Unpacks `parts` one after another into `output`.
    fn fill<'a>(
        &self,
        chunk: FilteredChunk<'a>,
        parts: impl Iterator<Item = ChunkPart<'a>>,
        mut output: &mut [u8],
        contexts: &mut Contexts,
    ) -> Result<()> {
        for part in parts {
            let Some(place) = output.split_off_mut(..part.raw_len) else {
                return Err(chunk.corrupt("parts longer than all parts together"));
            };
            // Nothing to unpack. Most compressors would refuse such a part, because their streams have
            // headers.
            if place.is_empty() && part.stored.is_empty() {
                continue;
            }
            let (stored, raw) = (part.stored.len(), place.len());
            self.unpack(&part, place, contexts).map_err(|why| match self {
                Self::Delta(deltas) | Self::DoubleDelta(deltas) if deltas.are_cut_off(raw) => {
                    cut_off(*deltas, raw)
                }
                _ => chunk.corrupt(format!(
                    "a part of {stored} bytes that should unpack to {raw}: {why}"
                )),
            })?;
        }
        Ok(())
    }

    fn unpack(
        &self,
        part: &ChunkPart<'_>,
        raw: &mut [u8],
        contexts: &mut Contexts,
    ) -> Result<(), String> {
        match self {
            Self::Decompress(compressor) => compressor.decompress(part.stored, raw, contexts),
            Self::RunLength(cell) => run_length::expand(part.stored, *cell, raw),
            Self::Delta(Deltas { width, .. }) => {
                use delta::undo_delta;
                by_width!(*width, undo_delta(part.stored, raw))
            }
            Self::DoubleDelta(Deltas { width, .. }) => {
                use delta::undo_double_delta;
                by_width!(*width, undo_double_delta(part.stored, raw))
            }
            Self::Decrypt(cipher) => cipher.decrypt(part.stored, part.seal, raw),
        }
    }

    /// Whether `part` can unpack to its declared length, as far as that shows without memory for the output.
    /// For most compressors, this takes as long as unpacking.
    fn can_unpack(&self, part: &ChunkPart<'_>) -> bool {
        let (stored, raw_len) = (part.stored.len() as u64, part.raw_len as u64);
        match self {
            Self::Decompress(compressor) => compressor.decompresses_to(part.stored, raw_len),
            Self::RunLength(cell) => run_length::expanded_len(part.stored, *cell) == raw_len,
            // A value of at most 64 bits takes at least one stored bit.
            Self::DoubleDelta(_) => raw_len / 64 <= stored,
            Self::Delta(_) | Self::Decrypt(_) => raw_len <= stored,
        }
    }
}

/// The error for bytes that TileDB lost when it wrote: of another filter's output, its delta filters store
/// only whole values.
fn cut_off(deltas: Deltas, raw_len: usize) -> Error {
    let width = deltas.width.bytes();
    let lost = raw_len % width;
    Error::unsupported(format!(
        "delta after a filter that changes lengths: TileDB stored only whole values of {width} bytes and \
         lost the last {lost} of {raw_len} bytes, so TileDB cannot restore them either; write the \
         attribute again, with delta as its first filter"
    ))
}

/// A part of the data of a chunk.
struct ChunkPart<'a> {
    raw_len: usize,
    stored: &'a [u8],
    /// Nonce and tag, of an encrypted part.
    seal: &'a [u8],
}

/// The parts of a chunk, which together are its data.
struct Parts<'a> {
    /// The lengths and the seal of each part.
    entries: &'a [u8],
    entry_len: usize,
    data: &'a [u8],
    /// How many parts unpack to metadata; these precede the parts of data.
    of_metadata: usize,
}

impl<'a> Parts<'a> {
    fn parse(chunk: FilteredChunk<'a>, seal_len: usize) -> Result<Self> {
        let mut reader = chunk.reader();
        let (of_metadata, of_data) = (u64::from(reader.u32()?), u64::from(reader.u32()?));
        let entry_len = LENGTHS_LEN + seal_len;
        let entries_len = (of_metadata + of_data).saturating_mul(entry_len as u64);
        let entries = reader.take(to_usize(entries_len))?;
        reader.end()?;
        let of_metadata = to_usize(of_metadata);
        let parts = Self { entries, entry_len, data: chunk.data, of_metadata };
        let listed = parts.lengths().map(|(_, stored, _)| stored as u64).sum::<u64>();
        let found = chunk.data.len();
        if listed != found as u64 {
            let message = format!("{found} bytes of data, but its parts have {listed} in all");
            return Err(chunk.corrupt(message));
        }
        Ok(parts)
    }

    /// Raw length, stored length and seal of each part. The seal is empty unless the filter is the cipher.
    fn lengths(&self) -> impl Iterator<Item = (usize, usize, &'a [u8])> + use<'a> {
        self.entries.chunks_exact(self.entry_len).filter_map(|entry| {
            let (raw, entry) = entry.split_first_chunk()?;
            let (stored, seal) = entry.split_first_chunk()?;
            let len = |bytes| to_usize(u64::from(u32::from_le_bytes(bytes)));
            Some((len(*raw), len(*stored), seal))
        })
    }

    /// The parts in order, each with the stored bytes that its length takes from the front of what is left.
    fn iter(&self) -> impl Iterator<Item = ChunkPart<'a>> + use<'a> {
        let mut data = self.data;
        self.lengths().filter_map(move |(raw_len, stored, seal)| {
            Some(ChunkPart { raw_len, stored: data.split_off(..stored)?, seal })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::{ClaimLimit, Target};
    use super::*;
    use gridfusion_core::ErrorKind;

    const CELLS: Deltas = Deltas { width: Width::One, of_cells: true };

    fn run(unpack: &Unpack, entries: &[u32], data: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
        let metadata: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        let (mut raw, mut raw_metadata) = (vec![], vec![]);
        let bound = ClaimLimit::AtMost(1 << 40);
        let targets = Targets {
            data: Target { memory: &mut raw, at: 0, bound, offset: 0 },
            metadata: Target { memory: &mut raw_metadata, at: 0, bound, offset: 0 },
        };
        let chunk = FilteredChunk { metadata: &metadata, data, offset: 0 };
        let chunk = unpack.run(chunk, targets, &mut Contexts::default())?;
        Ok((chunk.metadata.to_vec(), chunk.data.to_vec()))
    }

    #[test]
    fn parts_of_metadata_come_first() {
        let runs = Unpack::RunLength(1);
        let data = [5, 0, 2, 6, 0, 1, 7, 0, 3];
        let entries = [1, 3, 2, 3, 0, 0, 1, 3, 3, 3];
        assert_eq!(run(&runs, &entries, &data).unwrap(), (vec![5, 5], vec![6, 7, 7, 7]));
        for (at, wrong) in [(0, 0), (0, 5), (1, 2), (1, 4), (2, 1), (3, 4), (9, 2), (4, 1)] {
            let mut entries = entries;
            entries[at] = wrong;
            let result = run(&runs, &entries, &data);
            let is_other_split = at == 0 && wrong == 0;
            assert!(result.is_err() || is_other_split, "{at} {wrong}");
        }
        assert!(run(&runs, &entries, &data[..8]).is_err());
        assert!(run(&runs, &entries[..9], &data).is_err());
        assert!(run(&runs, &[u32::MAX, u32::MAX], &data).is_err());
    }

    #[test]
    fn parts_that_claim_too_much_get_no_memory() {
        let claims = [0, 1, u32::MAX, 3];
        for unpack in [
            Unpack::Decompress(Compressor::Gzip),
            Unpack::Decompress(Compressor::Zstd),
            Unpack::Decompress(Compressor::Lz4),
            Unpack::Decompress(Compressor::Bzip2),
            Unpack::RunLength(1),
            Unpack::Delta(CELLS),
            Unpack::DoubleDelta(CELLS),
        ] {
            let error = run(&unpack, &claims, &[0, 0, 9]).unwrap_err();
            assert!(error.to_string().contains("does not unpack"), "{error}");
        }
    }

    #[test]
    fn what_the_writer_of_deltas_dropped_is_not_the_fault_of_the_file() {
        // Of seven bytes of another filter's output, three values of two bytes are stored.
        let data = [&[3, 0, 0, 0, 0, 0, 0, 0], &[5, 0, 1, 0, 1, 0][..]].concat();
        let kind = |of_cells| {
            let unpack = Unpack::Delta(Deltas { width: Width::Two, of_cells });
            assert_eq!(run(&unpack, &[0, 1, 6, 14], &data).unwrap().1, [5, 0, 6, 0, 7, 0]);
            let error = run(&unpack, &[0, 1, 7, 14], &data).unwrap_err();
            (error.kind(), error.to_string().contains("lost the last 1"))
        };
        assert_eq!(
            [kind(true), kind(false)],
            [(ErrorKind::Corrupt, false), (ErrorKind::Unsupported, true)]
        );
        // Eight bytes are four whole values, so three stored values mean damage.
        let unpack = Unpack::Delta(Deltas { width: Width::Two, of_cells: false });
        assert_eq!(run(&unpack, &[0, 1, 8, 14], &data).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
