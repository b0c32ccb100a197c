//! Encodings of variable-length strings: runs, or a dictionary and entry numbers. Decoding also gives the
//! offsets of the strings, which no tile stores.
//!
//! ```text
//!   metadata      u32 0, u32 1, u32 raw length, u32 stored length, u32 8 * strings, then
//!     runs          u8 width of counts, u8 width of lengths
//!     dictionary    u8 width of numbers, u8 width of lengths, u32 bytes, entries: length, bytes
//!   data
//!     runs          per run: count, length, bytes
//!     dictionary    per string: the number of its entry
//! ```
//!
//! Counts, lengths and numbers are big-endian, unlike everything else.
//!
//! ```text
//!   strings       "ab" "ab" "c"          decodes to   ababc, offsets 0 2 4
//!     runs          data 02 02 ab  01 01 c
//!     dictionary    entries 02 ab  01 c, data 00 00 01
//! ```
//!
//! This encoding is the first filter, so its metadata is the last: `0` and `1` are the counts of parts of
//! metadata and of data.

use super::chunk::{FilteredChunk, Targets};
use super::word::Width;
use gridfusion_core::Result;
use gridfusion_core::format::wire::{Reader, to_usize};

/// An encoding of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringEncoding {
    RunLength,
    Dictionary,
}

/// Bytes of an offset.
const OFFSET_LEN: u64 = 8;

impl StringEncoding {
    /// Decodes a chunk, and appends the start of each of its strings to `offsets`.
    pub(super) fn run<'a>(
        self,
        chunk: FilteredChunk<'a>,
        targets: Targets<'a>,
        offsets: &mut Vec<u64>,
    ) -> Result<FilteredChunk<'a>> {
        let mut header = chunk.reader();
        let parts = [header.u32()?, header.u32()?];
        let [raw_len, stored_len, offsets_len] =
            [header.u32()?, header.u32()?, header.u32()?].map(u64::from);
        let found = chunk.data.len();
        if parts != [0, 1] || stored_len != found as u64 {
            let message =
                format!("{parts:?} parts of {stored_len} bytes, expected [0, 1] of {found}");
            return Err(chunk.corrupt(message));
        }
        // The strings are visited twice: once to check all lengths, and then to fill the memory for them.
        targets.data.check(raw_len)?;
        // The limit for metadata bounds the offsets, too.
        targets.metadata.check(offsets_len)?;
        let strings = Strings::parse(self, chunk.data, &mut header)?;
        header.end()?;
        strings.locate(chunk, raw_len, offsets_len, offsets)?;

        let output = targets.data.claim(raw_len)?;
        let mut place = &mut *output;
        strings.visit(chunk, |count, string| {
            if let Some(places) =
                place.split_off_mut(..to_usize(count).saturating_mul(string.len()))
                && !string.is_empty()
            {
                places.chunks_exact_mut(string.len()).for_each(|to| to.copy_from_slice(string));
            }
            Ok(())
        })?;
        Ok(FilteredChunk { metadata: &[], data: output, ..chunk })
    }
}

/// The strings of a chunk.
enum Strings<'a> {
    /// Runs, each with its count, the length of its string and the string.
    Runs { runs: &'a [u8], count_width: Width, len_width: Width },
    /// Per string, the number of its entry in the dictionary.
    Numbers { numbers: &'a [u8], width: Width, dictionary: Vec<&'a [u8]> },
}

impl<'a> Strings<'a> {
    /// Parses the widths and, if there is one, the dictionary. Runs and numbers are read by
    /// [`visit`](Self::visit).
    fn parse(encoding: StringEncoding, data: &'a [u8], header: &mut Reader<'a>) -> Result<Self> {
        let (width, len_width) = (read_width(header)?, read_width(header)?);
        if encoding == StringEncoding::RunLength {
            return Ok(Self::Runs { runs: data, count_width: width, len_width });
        }
        let len = header.u32()?;
        let at = header.offset();
        let entries = header.take(to_usize(u64::from(len)))?;
        let mut entries = Reader::new("dictionary", at, entries);
        let mut dictionary = vec![];
        while !entries.is_at_end() {
            let len = big_endian(entries.take(len_width.bytes())?);
            dictionary.push(entries.take(to_usize(len))?);
        }
        if !data.len().is_multiple_of(width.bytes()) {
            let (bytes, found) = (width.bytes(), data.len());
            let message = format!("{found} bytes of entry numbers, not a multiple of {bytes}");
            return Err(header.corrupt(message));
        }
        Ok(Self::Numbers { numbers: data, width, dictionary })
    }

    /// Calls `each` with the count and string of every run; an entry number is a run of 1.
    fn visit(
        &self,
        chunk: FilteredChunk<'a>,
        mut each: impl FnMut(u64, &'a [u8]) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Runs { runs, count_width, len_width } => {
                let mut runs = Reader::new("runs of strings", chunk.offset, runs);
                while !runs.is_at_end() {
                    let count = big_endian(runs.take(count_width.bytes())?);
                    let len = big_endian(runs.take(len_width.bytes())?);
                    each(count, runs.take(to_usize(len))?)?;
                }
            }
            Self::Numbers { numbers, width, dictionary } => {
                for number in numbers.chunks_exact(width.bytes()) {
                    let number = big_endian(number);
                    let Some(string) = dictionary.get(to_usize(number)) else {
                        let entries = dictionary.len();
                        let message = format!("entry {number}, but the dictionary has {entries}");
                        return Err(chunk.corrupt(message));
                    };
                    each(1, string)?;
                }
            }
        }
        Ok(())
    }

    /// Appends the start of each string to `offsets`. Fails unless the strings have `raw_len` bytes and
    /// their offsets `offsets_len` bytes.
    fn locate(
        &self,
        chunk: FilteredChunk<'a>,
        raw_len: u64,
        offsets_len: u64,
        offsets: &mut Vec<u64>,
    ) -> Result<()> {
        let (mut end, mut found) = (0_u64, 0_u64);
        self.visit(chunk, |count, string| {
            let (begin, len) = (end, string.len() as u64);
            found = found.saturating_add(count);
            end = end.saturating_add(count.saturating_mul(len));
            // Before the offsets grow: a run of few bytes may claim 2^64 strings.
            if end > raw_len || found > offsets_len / OFFSET_LEN {
                let message = format!("{found} strings of {end} bytes or more, ");
                return Err(chunk.corrupt(message + &expected(raw_len, offsets_len)));
            }
            offsets.extend((0..count).map(|place| begin + place * len));
            Ok(())
        })?;
        if end == raw_len && found.checked_mul(OFFSET_LEN) == Some(offsets_len) {
            return Ok(());
        }
        let message = format!("{found} strings of {end} bytes, ");
        Err(chunk.corrupt(message + &expected(raw_len, offsets_len)))
    }
}

/// The end of a message: how many strings of how many bytes the header gives.
fn expected(raw_len: u64, offsets_len: u64) -> String {
    format!("expected {} of {raw_len} bytes", offsets_len / OFFSET_LEN)
}

fn read_width(header: &mut Reader<'_>) -> Result<Width> {
    let bytes = header.u8()?;
    Width::from_bytes(u64::from(bytes))
        .ok_or_else(|| header.corrupt(format!("integers of {bytes} bytes, expected 1, 2, 4 or 8")))
}

/// The big-endian integer in at most 8 bytes.
fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |integer, byte| integer << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::super::chunk::{ClaimLimit, Target};
    use super::*;

    fn run(
        encoding: StringEncoding,
        [raw_len, strings]: [u32; 2],
        rest: &[u8],
        data: &[u8],
    ) -> Result<(Vec<u8>, Vec<u64>)> {
        let header = [0, 1, raw_len, data.len() as u32, 8 * strings].map(u32::to_le_bytes);
        let metadata = [&header.concat(), rest].concat();
        let (mut raw, mut unused, mut offsets) = (vec![], vec![], vec![]);
        let bound = ClaimLimit::AtMost(1 << 20);
        let targets = Targets {
            data: Target { memory: &mut raw, at: 0, bound, offset: 0 },
            metadata: Target { memory: &mut unused, at: 0, bound, offset: 0 },
        };
        let chunk = FilteredChunk { metadata: &metadata, data, offset: 0 };
        let chunk = encoding.run(chunk, targets, &mut offsets)?;
        assert!(chunk.metadata.is_empty());
        Ok((chunk.data.to_vec(), offsets))
    }

    #[test]
    fn runs_become_strings_and_offsets() {
        let runs = |lens, data: &[u8]| run(StringEncoding::RunLength, lens, &[2, 1], data);
        let data = b"\0\x02\x02ab\0\x03\0\0\x01\x01c";
        let expected = (b"ababc".to_vec(), vec![0, 2, 4, 4, 4, 4]);
        assert_eq!(runs([5, 6], data).unwrap(), expected);
        assert_eq!(runs([0, 0], b"").unwrap(), (vec![], vec![]));
        for lens in [[4, 6], [6, 6], [5, 5], [5, 7]] {
            assert!(runs(lens, data).is_err());
        }
        assert!(runs([5, 6], &data[..10]).is_err());
        // Empty strings take no bytes, but their offsets do.
        let error = runs([0, u32::MAX / 8], b"\xFF\xFF\0").unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
    }

    #[test]
    fn numbers_become_the_entries_of_the_dictionary() {
        let dictionary =
            |lens, rest: &[u8], data: &[u8]| run(StringEncoding::Dictionary, lens, rest, data);
        let rest = b"\x01\x01\x06\0\0\0\x02ab\0\x01c";
        let expected = (b"cabab".to_vec(), vec![0, 1, 1, 3]);
        assert_eq!(dictionary([5, 4], rest, &[2, 1, 0, 0]).unwrap(), expected);
        assert!(dictionary([5, 4], rest, &[2, 1, 0, 3]).is_err());
        assert!(dictionary([5, 3], rest, &[2, 1, 0, 0]).is_err());
        assert!(dictionary([4, 4], rest, &[2, 1, 0, 0]).is_err());
        assert!(dictionary([5, 4], &rest[..11], &[2, 1, 0, 0]).is_err());
        assert!(dictionary([5, 4], b"\x03\x01\x06\0\0\0\x02ab\0\x01c", &[2, 1, 0, 0]).is_err());
        assert!(dictionary([5, 4], b"\x01\x01\x05\0\0\0\x02ab\0\x01", &[2, 1, 0, 0]).is_err());
    }
}
