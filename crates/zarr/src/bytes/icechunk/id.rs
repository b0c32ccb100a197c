//! [`ObjectId`] and [`NodeId`]: the names of objects and of arrays.
//!
//! Twelve bytes are 96 bits, which twenty characters of Crockford's base 32 hold: 5 bits each, the last with zeros
//! behind them.

use std::fmt;

use gridfusion_core::{Error, Result};

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The characters of an id.
const LEN: usize = 20;

/// The id of a snapshot, a manifest or an object with chunks: the name of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub(super) [u8; 12]);

/// The id of an array, which keeps it when it is renamed.
pub(super) type NodeId = [u8; 8];

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte)) << 4;
        for place in (0..LEN).rev() {
            let digit = (bits >> (5 * place)) as usize & 31;
            write!(f, "{}", char::from(DIGITS[digit]))?;
        }
        Ok(())
    }
}

impl ObjectId {
    /// Parses an id as it is written, in any case.
    ///
    /// # Errors
    /// `Usage` for another text.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!(
                "'{text}' is no id of Icechunk: it has {LEN} digits and letters, such as 1CECHNKREP0F1RSTCMT0"
            ))
        };
        let mut bits = 0_u128;
        for byte in text.bytes() {
            let upper = byte.to_ascii_uppercase();
            let digit = DIGITS.iter().position(|it| *it == upper).ok_or_else(wrong)?;
            bits = bits.checked_mul(32).ok_or_else(wrong)? | digit as u128;
        }
        if text.len() != LEN || bits & 15 != 0 {
            return Err(wrong());
        }
        let bytes = (bits >> 4).to_be_bytes();
        Ok(Self(bytes[4..].try_into().map_err(|_| wrong())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_texts_of_twenty_characters() {
        // The specification has this example.
        let bytes = [0x0b, 0x1c, 0xc8, 0xd6, 0x78, 0x75, 0x80, 0xf0, 0xe3, 0x3a, 0x65, 0x34];
        let id = ObjectId(bytes);
        assert_eq!(id.to_string(), "1CECHNKREP0F1RSTCMT0");
        assert_eq!(ObjectId::parse("1cechnkrep0f1rstcmt0").unwrap(), id);
        assert_eq!(ObjectId::parse(&ObjectId([255; 12]).to_string()).unwrap().0, [255; 12]);
        for wrong in [
            "",
            "1CECHNKREP0F1RSTCMT",
            "1CECHNKREP0F1RSTCMT01",
            "1CECHNKREP0F1RSTCMT1",
            "ICECHNKREP0F1RSTCMT0",
            "ж",
        ] {
            assert!(ObjectId::parse(wrong).is_err(), "{wrong}");
        }
    }
}
