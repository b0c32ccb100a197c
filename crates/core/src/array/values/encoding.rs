//! Character sets: how the bytes of text become characters, without ever replacing one.

use std::borrow::Cow;
use std::fmt;

/// How text is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// UTF-8, which includes ASCII.
    Utf8,
    /// UTF-16 or UCS-2, little-endian.
    Utf16,
    /// UTF-32 or UCS-4, little-endian.
    Utf32,
    /// ISO 8859-1, whose bytes are the first 256 characters of Unicode.
    Latin1,
    /// Another character set, which [`Encoding::from_name`] knows.
    Other(Charset),
}

/// A character set of the WHATWG Encoding Standard.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Charset(&'static encoding_rs::Encoding);

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 => "Utf8",
            Self::Utf16 => "Utf16",
            Self::Utf32 => "Utf32",
            Self::Latin1 => "ISO-8859-1",
            Self::Other(charset) => charset.0.name(),
        })
    }
}

impl fmt::Debug for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Encoding {
    /// Returns the encoding with this name, as the attribute `_Encoding` of NetCDF and Python's codecs name it.
    /// `None` for an unknown name.
    ///
    /// ```
    /// use gridfusion_core::array::Encoding;
    ///
    /// assert_eq!(Encoding::from_name("ISO-8859-1"), Some(Encoding::Latin1));
    /// assert_eq!(Encoding::from_name("latin_1"), Some(Encoding::Latin1));
    /// assert!(Encoding::from_name("windows-1252").is_some());
    /// assert!(Encoding::from_name("klingon").is_none());
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace('_', "-");
        Some(match name.as_str() {
            // The standard for the web takes ASCII and ISO 8859-1 for Windows-1252, which differs.
            "utf-8" | "utf8" | "u8" | "ascii" | "us-ascii" | "646" => Self::Utf8,
            "iso-8859-1" | "iso8859-1" | "8859" | "latin-1" | "latin1" | "l1" | "cp819" => {
                Self::Latin1
            }
            "utf-16" | "utf-16le" | "utf-16-le" | "ucs-2" => Self::Utf16,
            "utf-32" | "utf-32le" | "utf-32-le" | "ucs-4" => Self::Utf32,
            other => {
                let charset = encoding_rs::Encoding::for_label_no_replacement(other.as_bytes())?;
                Self::Other(Charset(charset))
            }
        })
    }

    /// Returns the characters of a text; `None` if the bytes are not text in this encoding.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Utf8 => Cow::Borrowed(std::str::from_utf8(bytes).ok()?),
            Self::Utf16 => Cow::Owned(utf16(bytes)?),
            Self::Utf32 => Cow::Owned(utf32(bytes)?),
            Self::Latin1 => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
            Self::Other(Charset(charset)) => {
                charset.decode_without_bom_handling_and_without_replacement(bytes)?
            }
        })
    }

    /// Returns the bytes of a text; `None` if the encoding lacks one of its characters.
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        let narrow = |character: char| u8::try_from(u32::from(character)).ok();
        Some(match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf16 => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf32 => text.chars().flat_map(|point| u32::from(point).to_le_bytes()).collect(),
            Self::Latin1 => text.chars().map(narrow).collect::<Option<_>>()?,
            Self::Other(Charset(charset)) => match charset.encode(text) {
                (bytes, _, false) => bytes.into_owned(),
                _ => return None,
            },
        })
    }

    /// Returns the bytes before the zeros at the end of a cell. Zeros of UTF-16 and UTF-32 are whole units.
    pub(super) fn end(self, cell: &[u8]) -> usize {
        let unit = match self {
            Self::Utf16 => 2,
            Self::Utf32 => 4,
            Self::Utf8 | Self::Latin1 | Self::Other(_) => 1,
        };
        let last = cell.chunks_exact(unit).rposition(|unit| unit.iter().any(|byte| *byte != 0));
        last.map_or(0, |last| (last + 1) * unit)
    }
}

/// Converts little-endian UTF-16; `None` for unpaired surrogates or an odd number of bytes.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
    rest.is_empty().then_some(text)
}

/// Converts little-endian UTF-32; `None` for a number that is no character, or bytes left over.
fn utf32(bytes: &[u8]) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<4>();
    let text = units.iter().map(|unit| char::from_u32(u32::from_le_bytes(*unit))).collect();
    if rest.is_empty() { text } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_inverse_and_never_replace() {
        for (name, text, bytes) in [
            ("utf-8", "Zürich", &b"Z\xc3\xbcrich"[..]),
            ("Latin-1", "Zürich\u{80}", b"Z\xfcrich\x80"),
            ("cp1252", "Zürich €", b"Z\xfcrich \x80"),
            ("ISO-8859-15", "€", b"\xa4"),
            ("koi8-r", "Я", b"\xf1"),
            ("shift_jis", "海", b"\x8aC"),
            ("utf_16_le", "ж", b"\x36\x04"),
        ] {
            let encoding = Encoding::from_name(name).unwrap();
            assert_eq!(encoding.decode(bytes).as_deref(), Some(text), "{name}");
            assert_eq!(encoding.encode(text).as_deref(), Some(bytes), "{name}");
        }
        for (name, bytes) in [("ascii", &b"\xfc"[..]), ("gbk", b"\x81"), ("utf-16", b"\x00\xd8")] {
            assert_eq!(Encoding::from_name(name).unwrap().decode(bytes), None, "{name}");
        }
        assert_eq!(Encoding::Latin1.encode("€"), None);
        for unknown in ["", "replacement", "x-user", "utf-9"] {
            assert_eq!(Encoding::from_name(unknown), None, "{unknown}");
        }
    }
}
