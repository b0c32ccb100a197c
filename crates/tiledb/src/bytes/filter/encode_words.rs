//! Encoders of little-endian words: runs, differences, and windows of integers in fewer bytes.
//!
//! Each is the counterpart of an inverse in `run_length`, `delta`, `segments` or `window`, whose documentation shows the bytes.

use super::word::{Width, by_width, load, store};

/// The bytes of a window of integers, as TileDB chooses them.
pub(super) const MOST_WINDOW: usize = 256;

/// The windows of a chunk so far.
#[derive(Debug, Default)]
pub(super) struct Windows {
    count: u32,
    headers: Vec<u8>,
    data: Vec<u8>,
}

impl Windows {
    /// Returns the metadata of all windows, which begins with `head`, and their data.
    pub(super) fn end(self, head: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut own = head.to_vec();
        own.extend(self.count.to_le_bytes());
        own.extend(self.headers);
        (own, self.data)
    }
}

/// Encodes runs of equal cells: the cell, and the big-endian length of its run. `None` unless `part` has whole cells.
pub(super) fn run_lengths(cell: usize, part: &[u8]) -> Option<Vec<u8>> {
    if cell == 0 || !part.len().is_multiple_of(cell) {
        return None;
    }
    let mut stored = vec![];
    let mut cells = part.chunks_exact(cell).peekable();
    while let Some(value) = cells.next() {
        let mut run = 1_u16;
        while run < u16::MAX && cells.next_if_eq(&value).is_some() {
            run += 1;
        }
        stored.extend(value);
        stored.extend(run.to_be_bytes());
    }
    Some(stored)
}

/// Encodes differences: u64 count, then each word less the one before it. `None` unless `part` has whole words.
pub(super) fn deltas(width: Width, part: &[u8]) -> Option<Vec<u8>> {
    fn words<const N: usize>(part: &[u8], stored: &mut Vec<u8>) {
        let mut before = 0;
        for word in part.as_chunks::<N>().0 {
            let word = load(*word);
            stored.extend(store::<N>(word.wrapping_sub(before)));
            before = word;
        }
    }
    let mut stored = count_of(width, part)?;
    by_width!(width, words(part, &mut stored));
    Some(stored)
}

/// Returns the number of words as it is stored; `None` unless `part` has whole words.
fn count_of(width: Width, part: &[u8]) -> Option<Vec<u8>> {
    let is_whole = part.len().is_multiple_of(width.bytes());
    is_whole.then(|| ((part.len() / width.bytes()) as u64).to_le_bytes().to_vec())
}

/// Encodes differences of differences: u8 bits, u64 count, the first two words, and a sign and `bits` bits per difference, packed
/// into words from their highest bit down. `None` unless `part` has whole words.
pub(super) fn double_deltas(width: Width, is_signed: bool, part: &[u8]) -> Option<Vec<u8>> {
    let mut stored = vec![0];
    stored.extend(count_of(width, part)?);
    by_width!(width, double_deltas_of(is_signed, part, &mut stored));
    Some(stored)
}

fn double_deltas_of<const N: usize>(is_signed: bool, part: &[u8], stored: &mut Vec<u8>) {
    let words = part.as_chunks::<N>().0;
    let differences = || {
        words.windows(3).map(|three| {
            let [a, b, c] = [three[0], three[1], three[2]].map(|it| integer(it, is_signed));
            c - 2 * b + a
        })
    };
    let greatest = differences().map(i128::unsigned_abs).max();
    // Bits of the greatest magnitude, at least 1 if there is any difference.
    let bits = greatest.map_or(0, |most| (u128::BITS - most.leading_zeros()).max(1));
    stored[0] = bits as u8;
    if bits as usize >= 8 * N - 1 {
        stored.extend(part);
        return;
    }
    stored.extend(&part[..part.len().min(2 * N)]);
    let (mut stream, mut len) = (0_u128, 0);
    for difference in differences() {
        let field = u128::from(difference < 0) << bits | difference.unsigned_abs();
        (stream, len) = (stream << (bits + 1) | field, len + bits + 1);
        if len >= u64::BITS {
            len -= u64::BITS;
            stored.extend(((stream >> len) as u64).to_le_bytes());
            stream &= (1 << len) - 1;
        }
    }
    if len > 0 {
        stored.extend(((stream << (u64::BITS - len)) as u64).to_le_bytes());
    }
}

fn integer<const N: usize>(word: [u8; N], is_signed: bool) -> i128 {
    let unsigned = i128::from(load(word));
    let is_negative = is_signed && word[N - 1] >= 0x80;
    if is_negative { unsigned - (1 << (8 * N)) } else { unsigned }
}

/// Adds a window of bit width reduction: each integer less the least, in 1, 2, 4 or 8 bytes.
pub(super) fn reduce(width: Width, is_signed: bool, window: &[u8], windows: &mut Windows) {
    by_width!(width, reduce_words(is_signed, window, windows));
}

fn reduce_words<const N: usize>(is_signed: bool, window: &[u8], windows: &mut Windows) {
    let (words, rest) = window.as_chunks::<N>();
    let integers = || words.iter().map(|word| integer(*word, is_signed));
    let whole = if rest.is_empty() { integers().min().zip(integers().max()) } else { None };
    let (low, high) = whole.unwrap_or_default();
    // Signed types store signed differences, so one bit less holds the range of values.
    let fits = |bytes: &usize| high - low + 1 < 1 << (8 * bytes - usize::from(is_signed));
    let bytes = [1, 2, 4].into_iter().find(fits).filter(|bytes| *bytes < N).unwrap_or(N);
    windows.count += 1;
    windows.headers.extend(&low.to_le_bytes()[..N]);
    windows.headers.push((8 * bytes) as u8);
    windows.headers.extend((window.len() as u32).to_le_bytes());
    match bytes == N || whole.is_none() {
        true => windows.data.extend(window),
        false => integers().for_each(|it| windows.data.extend(&(it - low).to_le_bytes()[..bytes])),
    }
}

/// Adds a window of positive delta: each integer less the one before it. `false` if integers descend, which TileDB does not write.
pub(super) fn positive_deltas(
    width: Width,
    is_signed: bool,
    window: &[u8],
    windows: &mut Windows,
) -> bool {
    by_width!(width, positive_deltas_of(is_signed, window, windows))
}

fn positive_deltas_of<const N: usize>(
    is_signed: bool,
    window: &[u8],
    windows: &mut Windows,
) -> bool {
    let (words, rest) = window.as_chunks::<N>();
    if !words.is_sorted_by_key(|word| integer(*word, is_signed)) && rest.is_empty() {
        return false;
    }
    let mut last = words.first().map_or(0, |word| load(*word));
    windows.count += 1;
    windows.headers.extend(store::<N>(last));
    windows.headers.extend((window.len() as u32).to_le_bytes());
    if !rest.is_empty() {
        windows.data.extend(window);
        return true;
    }
    for word in words {
        let word = load(*word);
        windows.data.extend(store::<N>(word.wrapping_sub(last)));
        last = word;
    }
    true
}

/// Combines each word with the one before it; `None` unless `part` has whole words.
pub(super) fn xor(width: Width, part: &[u8]) -> Option<Vec<u8>> {
    let size = width.bytes();
    let mut stored = part.to_vec();
    for (place, before) in stored.iter_mut().skip(size).zip(part) {
        *place ^= before;
    }
    part.len().is_multiple_of(size).then_some(stored)
}
