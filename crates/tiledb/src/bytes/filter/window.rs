//! Bit width reduction and positive delta, which encode integers in windows. Each window has an offset or
//! first value of its own.
//!
//! ```text
//!   bit width reduction  u32 length of the raw data, u32 windows,
//!                        then per window: offset, u8 bits per integer, u32 raw length
//!   positive delta       u32 windows, then per window: first value, u32 length
//! ```
//!
//! Metadata of earlier filters follows. Lengths are in bytes of decoded data. One window of INT32 each:
//!
//! ```text
//!   values   1000  1003  1001      offset 1000, 8 bits, raw length 12     data  00 03 01
//!   values   1000  1003  1007      first value 1000, length 12            data  0  3  4, as INT32
//! ```

use super::chunk::{FilteredChunk, Target, rest};
use super::scale::signed;
use super::word::{Width, accumulate, by_width, load, store};
use gridfusion_core::Result;
use gridfusion_core::format::wire::{Reader, to_usize};

/// Undoes bit width reduction, which stores integers of `width` less an offset, in as few bytes as their
/// window needs.
pub(super) fn widen<'a>(
    width: Width,
    is_signed: bool,
    chunk: FilteredChunk<'a>,
    target: Target<'a>,
) -> Result<FilteredChunk<'a>> {
    by_width!(width, widen_words(is_signed, chunk, target))
}

fn widen_words<'a, const N: usize>(
    is_signed: bool,
    chunk: FilteredChunk<'a>,
    target: Target<'a>,
) -> Result<FilteredChunk<'a>> {
    let mut reader = chunk.reader();
    let (raw_len, windows) = (u64::from(reader.u32()?), reader.u32()?);
    // Each integer takes at least one stored byte.
    if raw_len > (chunk.data.len() as u64).saturating_mul(N as u64) {
        let stored = chunk.data.len();
        return Err(chunk
            .corrupt(format!("{raw_len} bytes of integers, too many for {stored} stored bytes")));
    }
    let output = target.claim(raw_len)?;
    let mut data = Data { chunk, stored: chunk.data, place: output };
    for _ in 0..windows {
        let offset = load(reader.array::<N>()?);
        let bits = usize::from(reader.u8()?);
        let len = window_len(&mut reader)?;
        // Stored bytes per integer. Writers leave a window as it is if it needs the full width, or if its
        // length is not a whole number of integers.
        let stored = if bits >= 8 * N || len % N != 0 { N } else { bits / 8 };
        // The last `len % N` bytes are no whole integer. They exist only in windows that are stored as they
        // are.
        let (narrow, wide) = data.next(len / N * stored + len % N, len)?;
        match (stored, bits % 8) {
            (same, _) if same == N => wide.copy_from_slice(narrow),
            (1, 0) => widen_window::<1, N>(narrow, wide, offset, is_signed),
            (2, 0) => widen_window::<2, N>(narrow, wide, offset, is_signed),
            (4, 0) => widen_window::<4, N>(narrow, wide, offset, is_signed),
            _ => {
                return Err(chunk.corrupt(format!("integers of {bits} bits, expected 8, 16 or 32")));
            }
        }
    }
    data.end()?;
    Ok(FilteredChunk { metadata: rest(reader)?, data: output, ..chunk })
}

/// Adds `offset` to integers of `M` bytes, and writes them in `N` bytes. Sums wrap, so the offset may be
/// negative.
fn widen_window<const M: usize, const N: usize>(
    narrow: &[u8],
    wide: &mut [u8],
    offset: u64,
    is_signed: bool,
) {
    for (narrow, wide) in narrow.as_chunks::<M>().0.iter().zip(wide.as_chunks_mut::<N>().0) {
        let integer = if is_signed { signed(*narrow).cast_unsigned() } else { load(*narrow) };
        *wide = store(integer.wrapping_add(offset));
    }
}

/// Undoes positive delta, which stores the difference of each integer of a window to the one before.
pub(super) fn undo_positive_delta<'a>(
    width: Width,
    chunk: FilteredChunk<'a>,
    target: Target<'a>,
) -> Result<FilteredChunk<'a>> {
    by_width!(width, add_up_words(chunk, target))
}

fn add_up_words<'a, const N: usize>(
    chunk: FilteredChunk<'a>,
    target: Target<'a>,
) -> Result<FilteredChunk<'a>> {
    let mut reader = chunk.reader();
    let windows = reader.u32()?;
    let output = target.claim(chunk.data.len() as u64)?;
    let mut data = Data { chunk, stored: chunk.data, place: output };
    for _ in 0..windows {
        let first = load(reader.array::<N>()?);
        let len = window_len(&mut reader)?;
        let (deltas, integers) = data.next(len, len)?;
        // Writers leave a window without a whole number of integers as it is.
        if len.is_multiple_of(N) {
            accumulate::<N>(deltas, integers, first, u64::wrapping_add);
        } else {
            integers.copy_from_slice(deltas);
        }
    }
    data.end()?;
    Ok(FilteredChunk { metadata: rest(reader)?, data: output, ..chunk })
}

fn window_len(reader: &mut Reader<'_>) -> Result<usize> {
    Ok(to_usize(u64::from(reader.u32()?)))
}

/// The stored data that is still unread, and the memory for raw data that is still unwritten.
struct Data<'a, 'b> {
    chunk: FilteredChunk<'a>,
    stored: &'a [u8],
    place: &'b mut [u8],
}

impl<'a, 'b> Data<'a, 'b> {
    /// The stored bytes of the next window, and memory for its raw bytes.
    fn next(&mut self, stored_len: usize, raw_len: usize) -> Result<(&'a [u8], &'b mut [u8])> {
        let (Some(stored), Some(place)) =
            (self.stored.split_off(..stored_len), self.place.split_off_mut(..raw_len))
        else {
            let message = format!("a window of {raw_len} bytes beyond the end of the data");
            return Err(self.chunk.corrupt(message));
        };
        Ok((stored, place))
    }

    /// Fails unless the windows covered all of the data.
    fn end(&self) -> Result<()> {
        if self.stored.is_empty() && self.place.is_empty() {
            return Ok(());
        }
        let (stored, raw) = (self.stored.len(), self.place.len());
        let message = format!("windows that leave {stored} bytes unread and {raw} unwritten");
        Err(self.chunk.corrupt(message))
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::ClaimLimit;
    use super::*;

    type Inverse = fn(Width, FilteredChunk<'_>, Target<'_>) -> Result<Vec<u8>>;

    fn widen_signed(width: Width, chunk: FilteredChunk<'_>, target: Target<'_>) -> Result<Vec<u8>> {
        widen(width, true, chunk, target).map(|chunk| chunk.data.to_vec())
    }

    fn widen_unsigned(
        width: Width,
        chunk: FilteredChunk<'_>,
        target: Target<'_>,
    ) -> Result<Vec<u8>> {
        widen(width, false, chunk, target).map(|chunk| chunk.data.to_vec())
    }

    fn sums(width: Width, chunk: FilteredChunk<'_>, target: Target<'_>) -> Result<Vec<u8>> {
        undo_positive_delta(width, chunk, target).map(|chunk| chunk.data.to_vec())
    }

    fn run(inverse: Inverse, metadata: &[&[u8]], data: &[u8]) -> Result<Vec<u8>> {
        let (metadata, mut memory) = (metadata.concat(), vec![]);
        let target =
            Target { memory: &mut memory, at: 0, bound: ClaimLimit::AtMost(1_000), offset: 0 };
        inverse(Width::Two, FilteredChunk { metadata: &metadata, data, offset: 0 }, target)
    }

    #[test]
    fn integers_get_their_width_and_sign_back() {
        let window = |raw_len, bits, len: u8| {
            [vec![raw_len, 0, 0, 0, 1, 0, 0, 0], vec![100, 0], vec![bits, len, 0, 0, 0]].concat()
        };
        let metadata = window(4, 8, 4);
        let words = |words: [i16; 2]| words.map(i16::to_le_bytes).concat();
        assert_eq!(run(widen_signed, &[&metadata], &[255, 1]).unwrap(), words([99, 101]));
        assert_eq!(run(widen_unsigned, &[&metadata], &[255, 1]).unwrap(), words([355, 101]));
        // Writers store windows unchanged if they need the full width, or have no whole number of integers.
        assert_eq!(run(widen_signed, &[&window(4, 16, 4)], &[1, 2, 3, 4]).unwrap(), [1, 2, 3, 4]);
        assert_eq!(run(widen_signed, &[&window(3, 8, 3)], &[1, 2, 3]).unwrap(), [1, 2, 3]);
        for (bits, len) in [(7, 4), (0, 4), (12, 4), (8, 2), (8, 6), (8, 5)] {
            assert!(run(widen_signed, &[&window(4, bits, len)], &[255, 1]).is_err());
        }
        assert!(run(widen_signed, &[&window(5, 8, 5)], &[255, 1]).is_err());
    }

    #[test]
    fn differences_add_up_from_the_first_value_of_each_window() {
        let windows: [&[u8]; 4] =
            [&[3, 0, 0, 0], &[255, 0, 4, 0, 0, 0], &[9, 9, 1, 0, 0, 0], &[5, 0, 2, 0, 0, 0]];
        let deltas = [0, 0, 2, 0, 77, 0, 1];
        assert_eq!(run(sums, &windows, &deltas).unwrap(), [255, 0, 1, 1, 77, 5, 1]);
        assert!(run(sums, &windows, &deltas[..6]).is_err());
        assert!(run(sums, &windows, &[0; 8]).is_err());
        assert!(run(sums, &windows[..3], &deltas).is_err());
    }
}
