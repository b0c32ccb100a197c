//! Strings, flags and lists of numbers in TileDB's structures.
//!
//! All lengths and counts come from files. They are compared with the remaining bytes before memory is
//! allocated.

use gridfusion_core::Result;
use gridfusion_core::format::wire::{Reader, to_usize};

/// Reads text that follows its length in a `u32`; errors name the text `what`.
pub(super) fn text32(reader: &mut Reader<'_>, what: &str) -> Result<String> {
    let len = u64::from(reader.u32()?);
    text(reader, len, what)
}

/// Reads text that follows its length in a `u64`; errors name the text `what`.
pub(super) fn text64(reader: &mut Reader<'_>, what: &str) -> Result<String> {
    let len = reader.u64()?;
    text(reader, len, what)
}

fn text(reader: &mut Reader<'_>, len: u64, what: &str) -> Result<String> {
    let bytes = reader.take(to_usize(len))?;
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned)
        .map_err(|_| reader.corrupt(format!("{what} \"{}\" is not UTF-8", bytes.escape_ascii())))
}

/// Reads a byte that is 0 or 1; the error names the flag `what`.
pub(super) fn flag(reader: &mut Reader<'_>, what: &str) -> Result<bool> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(reader.corrupt(format!("flag \"{what}\" is {other}, expected 0 or 1"))),
    }
}

/// Reads `count` numbers of 8 bytes. A `count` whose bytes overflow saturates, and is then too long.
pub(super) fn numbers(reader: &mut Reader<'_>, count: u64) -> Result<Vec<u64>> {
    let bytes = reader.take(to_usize(count.saturating_mul(8)))?;
    let (words, _) = bytes.as_chunks::<8>();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_checked() {
        let reader = |bytes: &'static [u8]| Reader::new("test", 0, bytes);
        assert_eq!(text32(&mut reader(b"\x02\0\0\0abc"), "name").unwrap(), "ab");
        assert!(text32(&mut reader(b"\xff\xff\xff\xffabc"), "name").is_err());
        assert!(text64(&mut reader(&[255; 12]), "name").is_err());
        assert!(text64(&mut reader(b"\x01\0\0\0\0\0\0\0\xff"), "name").is_err());
        assert!(numbers(&mut reader(&[1; 17]), u64::MAX / 8 + 2).is_err());
        assert_eq!(numbers(&mut reader(&[0; 17]), 2).unwrap(), [0, 0]);
        assert!(flag(&mut reader(&[1]), "it").unwrap());
        assert!(flag(&mut reader(&[2]), "it").is_err());
    }
}
