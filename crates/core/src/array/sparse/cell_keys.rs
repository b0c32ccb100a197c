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
///
/// The merge of fragments orders cells by each kind, so a further kind would be a breaking change.
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
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts { spans, .. } => spans.len(),
        }
    }

    /// Returns the parts of these cells, in the given order.
    fn take(&self, cells: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Numbers(numbers) => Self::Numbers(cells.map(|cell| numbers[cell]).collect()),
            Self::Texts { spans, content } => Self::Texts {
                spans: cells.map(|cell| spans[cell].clone()).collect(),
                content: content.clone(),
            },
        }
    }

    /// Returns the text of cell `at`; an empty one if the parts are numbers.
    pub fn text(&self, at: usize) -> &[u8] {
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

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, KeyColumn::len)
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the parts of the keys, in the order in which they compare.
    pub fn columns(&self) -> &[KeyColumn] {
        &self.columns
    }

    /// Returns the keys of these cells, in the given order.
    pub fn take(&self, cells: &(impl Iterator<Item = usize> + Clone)) -> Self {
        Self { columns: self.columns.iter().map(|column| column.take(cells.clone())).collect() }
    }

    /// Returns the order of each cell and the next one: the greatest of these orders, `Less` for fewer than two
    /// cells. So `Less` means that keys ascend, and `Equal` that some repeat.
    pub fn order(&self) -> Ordering {
        if self.is_ordered_by_first() {
            return Ordering::Less;
        }
        let neighbours = |at: usize| self.compare(at - 1, self, at);
        (1..self.len()).map(neighbours).max().unwrap_or(Ordering::Less)
    }

    /// Whether the first parts are numbers that ascend. The other parts then need not be compared.
    pub fn is_ordered_by_first(&self) -> bool {
        match self.columns.first() {
            Some(KeyColumn::Numbers(numbers)) => numbers.is_sorted_by(|a, b| a < b),
            _ => false,
        }
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
