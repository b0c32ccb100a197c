//! [`CellKeys`]: the places of cells in an array's global order, to be compared.
//!
//! A key has several parts, which compare one after the other. With tiles of 10 × 10, the cells of a
//! row-major array have keys of four numbers:
//!
//! ```text
//!   cell (x 23, y 7)     key  2 0 23 7       tile on each axis, then the coordinates
//!   cell (x 21, y 14)         2 1 21 14      later: its tile is
//! ```
//!
//! Two cells have the same key if, and only if, they have the same coordinates.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;

/// One part of the keys of some cells.
#[derive(Debug, Clone)]
pub enum KeyColumn {
    /// Numbers, mapped to unsigned numbers of the same order.
    Numbers(Vec<u64>),
    /// Texts, which compare byte by byte.
    Texts {
        /// For each cell, its range of bytes in `content`.
        spans: Vec<Range<u64>>,
        /// The bytes of all texts.
        content: Bytes,
    },
}

/// The keys of some cells: one list per part, in the order in which parts compare.
#[derive(Debug, Clone)]
pub struct CellKeys {
    columns: Vec<KeyColumn>,
}

impl KeyColumn {
    fn text(&self, at: usize) -> &[u8] {
        match self {
            Self::Texts { spans, content } => {
                let range = spans.get(at).map(|span| span.start as usize..span.end as usize);
                range.and_then(|range| content.get(range)).unwrap_or_default()
            }
            Self::Numbers(_) => &[],
        }
    }
}

impl CellKeys {
    /// Makes keys of their parts. All parts have as many entries as there are cells.
    pub fn new(columns: Vec<KeyColumn>) -> Self {
        Self { columns }
    }

    /// Compares the key of cell `at` with that of cell `other_at` of `other`, which has the same parts.
    pub fn compare(&self, at: usize, other: &Self, other_at: usize) -> Ordering {
        for (mine, theirs) in self.columns.iter().zip(&other.columns) {
            let order = match (mine, theirs) {
                (KeyColumn::Numbers(mine), KeyColumn::Numbers(theirs)) => {
                    mine[at].cmp(&theirs[other_at])
                }
                _ => mine.text(at).cmp(theirs.text(other_at)),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Returns the bytes of memory that the keys take, without texts.
    pub fn bytes(&self) -> usize {
        let column = |column: &KeyColumn| match column {
            KeyColumn::Numbers(numbers) => size_of_val(numbers.as_slice()),
            KeyColumn::Texts { spans, .. } => size_of_val(spans.as_slice()),
        };
        self.columns.iter().map(column).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_compare_one_after_the_other() {
        let spans = vec![0..1, 1..3, 3..3];
        let texts = KeyColumn::Texts { spans, content: Bytes::from_static(b"bab") };
        let keys = CellKeys::new(vec![KeyColumn::Numbers(vec![1, 1, 1]), texts]);
        let order = |a, b| keys.compare(a, &keys, b);
        assert_eq!(
            [order(0, 1), order(2, 1), order(1, 1)],
            [Ordering::Greater, Ordering::Less, Ordering::Equal]
        );
        assert_eq!(keys.bytes(), 3 * 8 + 3 * 16);
    }
}
