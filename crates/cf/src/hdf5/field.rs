//! Fields of compounds as stored, and what makes them fields as decoded: little-endian, with zeros after texts.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::bits::Bits;
use super::filters::Trim;
use crate::hierarchy::Multiples;
use gridfusion_core::format::codecs::StepDecoder;

/// How the fields of a compound are stored.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct StoredFields {
    /// The changes of each cell.
    pub(super) fixes: Vec<Fix>,
    /// For each field, the values in the heap that it refers to; `None` for a field that refers to none.
    pub(super) heap: Vec<Option<HeapField>>,
}

/// A change of bytes of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fix {
    pub(super) bytes: Range<usize>,
    pub(super) change: Change,
}

/// A change of values that follow one another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    /// Reverses words of this many bytes.
    Reverse(usize),
    Trim(Trim),
    Bits(Bits),
    Multiply(Multiples),
}

/// A field whose values are in the global heap, or that has such values in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeapField {
    /// The bytes in a cell.
    pub(super) bytes: Range<usize>,
    /// Whether it is a reference, and not a compound or an array of them.
    pub(super) is_single: bool,
    pub(super) parts: Arc<[HeapPart]>,
}

/// A reference to a value in the global heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeapPart {
    /// The first byte of the reference in the field.
    pub(super) offset: usize,
    pub(super) items: HeapItems,
}

/// The items of values in the global heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeapItems {
    /// Bytes of an item.
    pub(super) width: u64,
    /// Whether they are the bytes of a text, which ends before zeros.
    pub(super) is_text: bool,
    pub(super) is_big_endian: bool,
}

impl HeapPart {
    /// Returns the reference in a larger value, in which this one begins at an offset.
    pub(super) fn at(self, offset: usize) -> Self {
        Self { offset: self.offset + offset, ..self }
    }
}

impl HeapItems {
    /// The bytes of texts.
    pub(super) const TEXT: Self = Self { width: 1, is_text: true, is_big_endian: false };
}

impl Fix {
    /// Returns the change of the field at an offset of a larger cell.
    pub(super) fn at(&self, offset: usize) -> Self {
        let bytes = self.bytes.start + offset..self.bytes.end + offset;
        Self { bytes, change: self.change }
    }

    fn apply(&self, cell: &mut [u8]) -> Result<(), String> {
        let bytes = cell.get_mut(self.bytes.clone()).unwrap_or_default();
        match self.change {
            Change::Reverse(word) => bytes.chunks_exact_mut(word.max(1)).for_each(<[u8]>::reverse),
            Change::Trim(trim) => trim.apply(bytes),
            Change::Bits(bits) => bits.apply(bytes),
            Change::Multiply(multiples) => multiples.apply(bytes)?,
        }
        Ok(())
    }
}

/// Applies changes to each cell.
#[derive(Debug, Clone)]
pub(super) struct FixedFields {
    /// Bytes of a cell.
    pub(super) width: usize,
    pub(super) fixes: Vec<Fix>,
}

impl FixedFields {
    pub(super) fn apply(&self, cells: &mut [u8]) -> Result<(), String> {
        for cell in cells.chunks_exact_mut(self.width.max(1)) {
            self.fixes.iter().try_for_each(|fix| fix.apply(cell))?;
        }
        Ok(())
    }
}

impl StepDecoder for FixedFields {
    fn decode(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        if stored.len() > most {
            return Err(format!("{} bytes of compounds, expected {most}", stored.len()));
        }
        let mut cells = stored.to_vec();
        self.apply(&mut cells)?;
        Ok(cells)
    }
}

impl fmt::Display for FixedFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fields")
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::AfterText;
    use super::*;

    #[test]
    fn each_field_of_each_cell_is_changed() {
        let trim = Trim { width: 2, after: AfterText::Spaces };
        let fixes = vec![
            Fix { bytes: 1..5, change: Change::Reverse(2) },
            Fix { bytes: 5..7, change: Change::Trim(trim) },
        ];
        let fields = FixedFields { width: 8, fixes };
        let found = fields.decode(b"\x09\x00\x01\x00\x02a \x09\x08\x01\x00\x02\x00 b\x08", 16);
        assert_eq!(found.unwrap(), b"\x09\x01\x00\x02\x00a\x00\x09\x08\x00\x01\x00\x02 b\x08");
        assert!(fields.decode(&[0; 8], 7).is_err());
    }
}
