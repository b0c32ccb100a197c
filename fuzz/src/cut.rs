//! Cuts the bytes of an input into parts, and glues parts to an input.
//!
//! ```text
//!   ├ byte ┼ number, little-endian ┼ u16 length ┼ piece ┼ … ┼ rest ┤
//! ```
//!
//! Cutting never fails, so that every input is valid: a missing part is 0 or empty.

/// The part of an input that is not cut off yet.
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a>(pub &'a [u8]);

impl<'a> Cut<'a> {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Cuts off the next byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Cuts off a number of `len` bytes, at most 8.
    pub fn number(&mut self, len: usize) -> u64 {
        self.take(len).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Cuts off the next piece.
    pub fn piece(&mut self) -> &'a [u8] {
        let len = self.number(2);
        self.take(len as usize)
    }

    /// Cuts off the next piece and replaces invalid UTF-8.
    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.piece()).into_owned()
    }

    /// Cuts off the next `N` pieces.
    pub fn pieces<const N: usize>(&mut self) -> [&'a [u8]; N] {
        std::array::from_fn(|_| self.piece())
    }

    /// Cuts off the whole rest.
    pub fn rest(&mut self) -> &'a [u8] {
        self.take(self.0.len())
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// An input under construction.
#[derive(Debug, Clone, Default)]
pub struct Glue(pub Vec<u8>);

impl Glue {
    /// Adds a number of `len` bytes.
    pub fn number(mut self, number: u64, len: usize) -> Self {
        self.0.extend(&number.to_le_bytes()[..len]);
        self
    }

    /// Adds a byte.
    pub fn byte(self, byte: u8) -> Self {
        self.number(u64::from(byte), 1)
    }

    /// Adds a piece, of fewer than 2¹⁶ bytes.
    pub fn piece(self, piece: &[u8]) -> Self {
        assert!(piece.len() < 1 << 16, "a piece of {} bytes", piece.len());
        self.number(piece.len() as u64, 2).rest(piece)
    }

    /// Adds bytes without a length, as the last part.
    pub fn rest(mut self, rest: &[u8]) -> Self {
        self.0.extend(rest);
        self
    }
}
