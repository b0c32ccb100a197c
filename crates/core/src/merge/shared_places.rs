//! [`SharedPlaces`]: finds the few cells whose keys may be equal, by the hashes of all.
//!
//! A table has two bits for each place, and is so small that it stays in the nearest caches:
//!
//! ```text
//!   hashes   3  7  1  7  5         table   place 1  2  3  4  5  6  7
//!                                                o  .  o  .  o  .  oo      o: a cell, oo: several cells
//!   shared      7     7
//! ```
//!
//! A table of cells would be larger, and cost a comparison and a branch for each cell.

use std::ops::Range;

use crate::array::KeyColumn;

/// The places for each cell, before they are rounded up to a power of two. Of random cells, at most one in
/// 16 then shares its place by chance; of cells on a grid, more do.
const PLACES_PER_CELL: usize = 16;
/// The places of a word of the table.
const PLACES_PER_WORD: usize = 32;
/// An odd number with well-mixed bits, that of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hashes of some cells.
#[derive(Debug)]
pub(super) struct SharedPlaces {
    hashes: Vec<u64>,
}

/// Adds one part of the keys to hashes, from the first cell on.
#[derive(Debug)]
pub(super) struct PartHashes<'a> {
    hashes: &'a mut [u64],
}

impl SharedPlaces {
    /// The most bytes of memory per cell: its hash, its number, and its part of the table.
    pub(super) const BYTES_PER_CELL: usize = 12 + 2 * PLACES_PER_CELL * 2 / 8;

    /// Makes hashes of as many cells, whose keys have no parts yet.
    pub(super) fn new(cells: usize) -> Self {
        Self { hashes: vec![0; cells] }
    }

    /// Begins the next part of the keys.
    pub(super) fn hashes(&mut self) -> PartHashes<'_> {
        PartHashes { hashes: &mut self.hashes }
    }

    /// Returns the numbers of the cells whose hash may be that of another one, ascending.
    pub(super) fn shared(&self) -> Vec<u32> {
        let places = self.hashes.len().saturating_mul(PLACES_PER_CELL).next_power_of_two();
        let places = places.max(PLACES_PER_WORD);
        let shift = u64::BITS - places.trailing_zeros();
        let mut table = vec![0_u64; places / PLACES_PER_WORD];
        let place = |hash: u64| {
            let place = (hash >> shift) as usize;
            (place / PLACES_PER_WORD, 2 * (place % PLACES_PER_WORD))
        };
        for &hash in &self.hashes {
            let (word, bit) = place(hash);
            let before = (table[word] >> bit) & 1;
            table[word] |= (1 | before << 1) << bit;
        }
        // Whether a place is shared is random, so a branch would be mispredicted.
        let (mut shared, mut len) = (vec![0; self.hashes.len()], 0);
        for (cell, &hash) in (0..).zip(&self.hashes) {
            let (word, bit) = place(hash);
            shared[len] = cell;
            len += (table[word] >> bit >> 1 & 1) as usize;
        }
        shared.truncate(len);
        shared
    }
}

impl PartHashes<'_> {
    /// Adds the parts of the next cells.
    pub(super) fn add(&mut self, column: &KeyColumn, cells: Range<usize>) {
        let (hashes, rest) = std::mem::take(&mut self.hashes).split_at_mut(cells.len());
        self.hashes = rest;
        let mix = |hash: &mut u64, number: u64| {
            *hash = (hash.rotate_left(32) ^ number).wrapping_mul(FACTOR);
        };
        match column {
            KeyColumn::Numbers(numbers) => {
                hashes.iter_mut().zip(&numbers[cells]).for_each(|(hash, it)| mix(hash, *it));
            }
            KeyColumn::Stored(numbers) => {
                let mut hashes = hashes.iter_mut();
                numbers
                    .for_each(cells, |it| hashes.next().into_iter().for_each(|hash| mix(hash, it)));
            }
            KeyColumn::Repeated { number, .. } => {
                hashes.iter_mut().for_each(|hash| mix(hash, *number));
            }
            KeyColumn::Texts { spans, content } => {
                let texts = spans[cells].iter().map(|span| text_hash(content, span));
                hashes.iter_mut().zip(texts).for_each(|(hash, it)| mix(hash, it));
            }
        }
    }
}

/// Returns a number that is the same for equal texts.
fn text_hash(content: &[u8], span: &Range<u64>) -> u64 {
    let (start, end) = (span.start as usize, span.end as usize);
    let len = end - start;
    // Most texts are short. One load and a mask are quicker than a copy of so many bytes.
    if len <= 8
        && let Some(word) = content.get(start..).and_then(|rest| rest.first_chunk::<8>())
    {
        let mask = u64::MAX.unbounded_shr(64 - 8 * len as u32);
        return (u64::from_le_bytes(*word) & mask) ^ (len as u64).wrapping_mul(FACTOR);
    }
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let words = content.get(start..end).unwrap_or_default().chunks(8).map(word);
    // A text of up to 8 bytes must have the same hash here, too: it may stand at the end of the content.
    let hash = words.reduce(|hash, word| hash.wrapping_mul(FACTOR).rotate_left(32) ^ word);
    hash.unwrap_or_default() ^ (len as u64).wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(columns: &[KeyColumn], cells: usize) -> Vec<u32> {
        let mut places = SharedPlaces::new(cells);
        columns.iter().for_each(|column| places.hashes().add(column, 0..cells));
        places.shared()
    }

    #[test]
    fn equal_keys_are_found_and_few_others() {
        let numbers: Vec<u64> = (0..50_000).map(|at| at % 40_000 * 7).collect();
        let found = shared(&[KeyColumn::Numbers(numbers.clone())], numbers.len());
        for repeated in (0..10_000).chain(40_000..50_000) {
            assert!(found.binary_search(&repeated).is_ok(), "{repeated}");
        }
        assert!(found.len() < 24_000, "{}", found.len());
        assert!(shared(&[], 0).is_empty());
    }

    #[test]
    fn equal_texts_have_equal_hashes_wherever_they_stand() {
        let texts = ["", "a", "a\0", "S00042", "12345678", "123456789", "a longer text", "S00042"];
        let mut content: Vec<u8> = vec![];
        let mut spans = vec![];
        for text in texts.iter().chain(texts.iter().rev()) {
            let start = content.len() as u64;
            content.extend_from_slice(text.as_bytes());
            spans.push(start..content.len() as u64);
        }
        let hashes: Vec<u64> = spans.iter().map(|span| text_hash(&content, span)).collect();
        for (a, left) in texts.iter().enumerate() {
            for (b, right) in texts.iter().enumerate() {
                let is_equal = hashes[a] == hashes[2 * texts.len() - 1 - b];
                assert_eq!(is_equal, left == right, "{left:?} {right:?}");
            }
        }
        let column = KeyColumn::Texts { spans, content: content.into() };
        let same = KeyColumn::Repeated { number: 3, cells: 2 * texts.len() };
        assert_eq!(shared(&[same, column], 2 * texts.len()).len(), 2 * texts.len());
    }
}
