//! Little-endian fields of the files of an array.

/// The bytes of a structure, field by field.
#[derive(Debug, Default)]
pub(super) struct Fields(pub(super) Vec<u8>);

impl Fields {
    pub(super) fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    pub(super) fn flag(&mut self, is_set: bool) {
        self.0.push(u8::from(is_set));
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    pub(super) fn words(&mut self, words: &[u64]) {
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Adds a text after its length as u32.
    pub(super) fn text32(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.bytes(text.as_bytes());
    }

    /// Adds a text after its length as u64.
    pub(super) fn text64(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// Adds a whole number of so many bytes.
    pub(super) fn integer(&mut self, number: i128, size: u64) {
        self.0.extend(&number.to_le_bytes()[..size as usize]);
    }
}
