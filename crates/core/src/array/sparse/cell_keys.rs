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
//!
//! Most cells are told apart by the first part that varies. So the others stay as they are stored, until they are compared.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;

use super::stored_numbers::StoredNumbers;

/// So many cells are compared at once: their parts stay in the nearest cache.
const BLOCK: usize = 1024;

/// One part of the keys of some cells.
///
/// The merge of fragments orders cells by each kind, so a further kind would be a breaking change.
#[derive(Debug, Clone)]
pub enum KeyColumn {
    /// Numbers, mapped to unsigned numbers of the same order.
    Numbers(Vec<u64>),
    /// Numbers as they are stored.
    Stored(StoredNumbers),
    /// One number for all cells.
    Repeated {
        /// The number.
        number: u64,
        /// The number of cells.
        cells: usize,
    },
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
            Self::Stored(numbers) => numbers.len(),
            Self::Repeated { cells, .. } => *cells,
            Self::Texts { spans, .. } => spans.len(),
        }
    }

    /// Returns the parts of these cells, in the given order.
    fn take(&self, cells: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Numbers(numbers) => Self::Numbers(cells.map(|cell| numbers[cell]).collect()),
            Self::Stored(numbers) => Self::Numbers(cells.map(|cell| numbers.at(cell)).collect()),
            Self::Repeated { number, .. } => {
                Self::Repeated { number: *number, cells: cells.count() }
            }
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
            _ => &[],
        }
    }

    /// Returns the number of cell `at`; 0 if the parts are texts.
    pub fn number(&self, at: usize) -> u64 {
        match self {
            Self::Numbers(numbers) => numbers[at],
            Self::Stored(numbers) => numbers.at(at),
            Self::Repeated { number, .. } => *number,
            Self::Texts { .. } => 0,
        }
    }

    fn is_repeated(&self) -> bool {
        matches!(self, Self::Repeated { .. })
    }

    /// As the function [`keep_equal`], with these parts. `block` has the cells and those before them.
    fn keep_equal(&self, block: Range<usize>, cells: &mut Vec<usize>) -> bool {
        // Few cells are converted one by one.
        let (first, are_few) = (block.start, cells.len() < block.len() / 8);
        match self {
            Self::Repeated { .. } => true,
            Self::Numbers(numbers) => keep_equal(cells, |cell| numbers[cell]),
            Self::Stored(numbers) if are_few => keep_equal(cells, |cell| numbers.at(cell)),
            Self::Stored(numbers) => {
                let mut parts = Vec::with_capacity(block.len());
                numbers.for_each(block, |number| parts.push(number));
                keep_equal(cells, |cell| parts[cell - first])
            }
            Self::Texts { spans, .. } => {
                let is_short = |span: &Range<u64>| span.end.saturating_sub(span.start) <= 8;
                if are_few || !spans[block.clone()].iter().all(is_short) {
                    return keep_equal(cells, |cell| self.text(cell));
                }
                // One number, whose comparison has no branch.
                let head = |cell| {
                    let (bytes, len) = self.head(cell).unwrap_or_default();
                    (u128::from(bytes) << 8) | u128::from(len)
                };
                let heads: Vec<u128> = block.map(head).collect();
                keep_equal(cells, |cell| heads[cell - first])
            }
        }
    }

    /// Returns numbers that compare like the parts: those of texts are their bytes and their length. `None` for a text of
    /// more than eight bytes.
    fn head(&self, at: usize) -> Option<(u64, u64)> {
        let Self::Texts { spans, content } = self else { return Some((self.number(at), 0)) };
        let span = spans.get(at)?;
        let len = span.end.checked_sub(span.start).filter(|len| *len <= 8)?;
        let rest = content.get(span.start as usize..)?;
        let bytes = rest.first_chunk::<8>().copied().unwrap_or_else(|| {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            bytes
        });
        let mask = u64::MAX.unbounded_shl(64 - 8 * len as u32);
        Some((u64::from_be_bytes(bytes) & mask, len))
    }
}

impl CellKeys {
    /// Makes keys of their parts. All parts have as many entries as there are cells.
    pub fn new(mut columns: Vec<KeyColumn>) -> Self {
        // This part is read by each search and comparison.
        if let Some(first) = first_that_varies(&columns)
            && let KeyColumn::Stored(numbers) = &columns[first]
        {
            columns[first] = KeyColumn::Numbers(numbers.all());
        }
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
        if self.distinct_part().is_some() {
            return Ordering::Less;
        }
        let mut order = Ordering::Less;
        // The cells of a block that are equal to the one before, as far as they were compared.
        let mut equal = Vec::with_capacity(BLOCK);
        for start in (1..self.len()).step_by(BLOCK) {
            let end = self.len().min(start + BLOCK);
            equal.clear();
            equal.extend(start..end);
            for column in self.columns.iter().skip_while(|column| column.is_repeated()) {
                if equal.is_empty() {
                    break;
                }
                if !column.keep_equal(start - 1..end, &mut equal) {
                    return Ordering::Greater;
                }
            }
            if !equal.is_empty() {
                order = Ordering::Equal;
            }
        }
        order
    }

    /// Returns the part that tells all cells apart, because its numbers ascend and those before it are equal. `None` if
    /// there is no such part.
    pub fn distinct_part(&self) -> Option<usize> {
        let ascends = self.first_numbers()?.is_sorted_by(|a, b| a < b);
        first_that_varies(&self.columns).filter(|_| ascends)
    }

    /// Returns the first part that is not the same number for all cells, if it is one of numbers.
    fn first_numbers(&self) -> Option<&[u64]> {
        match &self.columns[first_that_varies(&self.columns)?] {
            KeyColumn::Numbers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// Compares the key of cell `at` with that of cell `other_at` of `other`, which has the same parts.
    pub fn compare(&self, at: usize, other: &Self, other_at: usize) -> Ordering {
        for (mine, theirs) in self.columns.iter().zip(&other.columns) {
            let order = match (mine.head(at), theirs.head(other_at)) {
                (Some(mine), Some(theirs)) => mine.cmp(&theirs),
                _ => mine.text(at).cmp(theirs.text(other_at)),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Returns the bytes of memory that the keys take, without texts and stored numbers, which belong to tiles.
    pub fn bytes(&self) -> usize {
        let column = |column: &KeyColumn| match column {
            KeyColumn::Numbers(numbers) => size_of_val(numbers.as_slice()),
            KeyColumn::Stored(_) | KeyColumn::Repeated { .. } => 0,
            KeyColumn::Texts { spans, .. } => size_of_val(spans.as_slice()),
        };
        self.columns.iter().map(column).sum()
    }
}

/// Returns the first of some parts that is not the same number for all cells.
fn first_that_varies(columns: &[KeyColumn]) -> Option<usize> {
    columns.iter().position(|column| !column.is_repeated())
}

/// Keeps the cells whose part is that of the cell before; returns `false` if the part of one is less than that.
fn keep_equal<T: Ord>(cells: &mut Vec<usize>, part: impl Fn(usize) -> T) -> bool {
    let (mut ascends, mut len) = (true, 0);
    // Which parts are equal is often random, so a branch would be mispredicted.
    for at in 0..cells.len() {
        let cell = cells[at];
        // One comparison: of texts, two would take twice the time.
        let order = part(cell - 1).cmp(&part(cell));
        ascends &= order.is_le();
        cells[len] = cell;
        len += usize::from(order.is_eq());
    }
    cells.truncate(len);
    ascends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ElementType;

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

    /// Cells are compared in blocks, and also across their borders.
    #[test]
    fn the_order_is_that_of_all_neighbours() {
        let texts = |texts: &[String]| {
            let (mut content, mut spans) = (vec![], vec![]);
            for text in texts {
                let start = content.len() as u64;
                content.extend_from_slice(text.as_bytes());
                spans.push(start..content.len() as u64);
            }
            KeyColumn::Texts { spans, content: content.into() }
        };
        let cells = 3 * BLOCK;
        for (at, is_equal) in [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, cells - 1]
            .into_iter()
            .flat_map(|at| [(at, true), (at, false)])
        {
            for long in [None, Some(BLOCK + 7)] {
                let mut labels: Vec<String> = (0..cells).map(|at| format!("{at:06}")).collect();
                if let Some(long) = long {
                    labels[long].push_str("and more");
                }
                labels[at] = match is_equal {
                    true => labels[at - 1].clone(),
                    false => "0".to_owned(),
                };
                let numbers = vec![7; cells];
                let keys = CellKeys::new(vec![KeyColumn::Numbers(numbers), texts(&labels)]);
                let naive = (1..cells).map(|at| keys.compare(at - 1, &keys, at)).max().unwrap();
                assert_eq!(keys.order(), naive, "{at} {is_equal} {long:?}");
                assert_ne!(naive, Ordering::Less);
            }
        }
    }

    #[test]
    fn texts_compare_byte_by_byte_wherever_they_stand() {
        let texts =
            ["", "\0", "a", "a\0", "a\0b", "ab", "abcdefgh", "abcdefghi", "abcdefgi", "é", ""];
        let mut content = vec![];
        let span = |text: &&str| {
            let start = content.len() as u64;
            content.extend_from_slice(text.as_bytes());
            start..content.len() as u64
        };
        let spans: Vec<Range<u64>> = texts.iter().map(span).collect();
        let keys = CellKeys::new(vec![KeyColumn::Texts { spans, content: content.into() }]);
        for (a, left) in texts.iter().enumerate() {
            for (b, right) in texts.iter().enumerate() {
                let expected = left.as_bytes().cmp(right.as_bytes());
                assert_eq!(keys.compare(a, &keys, b), expected, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn parts_that_are_stored_or_repeated_compare_like_numbers() {
        let bytes = |numbers: &[i16]| -> Bytes {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
        };
        let stored = |numbers: &[i16]| {
            KeyColumn::Stored(StoredNumbers::new(bytes(numbers), ElementType::I16))
        };
        let repeated = KeyColumn::Repeated { number: 7, cells: 3 };
        let lazy = CellKeys::new(vec![repeated, stored(&[-5, -5, 2]), stored(&[3, -4, 0])]);
        let number = |number: i16| i64::from(number).cast_unsigned() ^ (1 << 63);
        let numbers = |all: &[i16]| KeyColumn::Numbers(all.iter().map(|it| number(*it)).collect());
        let eager =
            vec![KeyColumn::Numbers(vec![7; 3]), numbers(&[-5, -5, 2]), numbers(&[3, -4, 0])];
        let eager = CellKeys { columns: eager };
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 2), (2, 0)] {
            let expected = eager.compare(a, &eager, b);
            let found = [(&lazy, &lazy), (&lazy, &eager), (&eager, &lazy)];
            let found = found.map(|(left, right)| left.compare(a, right, b));
            assert_eq!(found, [expected; 3], "{a} {b}");
            assert_eq!(lazy.take(&[b].into_iter()).compare(0, &lazy, a), expected.reverse());
        }
        assert_eq!([lazy.order(), eager.order()], [Ordering::Greater; 2]);
        assert_eq!((lazy.distinct_part(), lazy.bytes()), (None, 3 * 8));
        let ascending =
            CellKeys::new(vec![KeyColumn::Repeated { number: 7, cells: 2 }, stored(&[-5, 2])]);
        assert_eq!((ascending.distinct_part(), ascending.order()), (Some(1), Ordering::Less));
    }
}
