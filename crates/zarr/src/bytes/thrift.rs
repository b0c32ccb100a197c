//! A walk through values of Thrift's compact protocol, the metadata of Parquet files, before a parser allocates for them.
//!
//! ```text
//!   footer, header of a page ──▶ each number and each length of a list, with the numbers of the fields around it
//! ```
//!
//! The parser of the crate `parquet` trusts some counts. A list of 2³¹ entries must really be there, or the file is corrupt.
//!
//! Facts: the specification of Thrift's compact protocol.

use gridfusion_core::{Error, Result};

/// The most fields around a value.
const MOST_DEPTH: usize = 16;

/// A value that a walk has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Number(i64),
    /// The entries of a list.
    Entries(u64),
}

/// Takes each value, with the numbers of the fields around it. Entries of lists have no number of their own.
pub(super) type Visit<'a> = dyn FnMut(&[i16], Found) -> Result<()> + 'a;

/// The kinds of values, as they are stored.
mod kind {
    pub(super) const STOP: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
    pub(super) const UUID: u8 = 13;
}

/// Walks through a structure at the start of `bytes`. Returns its length.
///
/// # Errors
/// `Corrupt` if the structure does not end in `bytes`, and the errors of `visit`.
pub(super) fn walk(bytes: &[u8], visit: &mut Visit<'_>) -> Result<usize> {
    let mut walk = Walk { bytes, at: 0, fields: vec![], visit };
    walk.structure()?;
    Ok(walk.at)
}

struct Walk<'a, 'b> {
    bytes: &'a [u8],
    at: usize,
    /// The numbers of the fields around the next value.
    fields: Vec<i16>,
    visit: &'a mut Visit<'b>,
}

impl Walk<'_, '_> {
    fn structure(&mut self) -> Result<()> {
        if self.fields.len() >= MOST_DEPTH {
            return Err(corrupt("too many structures in one another"));
        }
        let mut last = 0_i16;
        loop {
            let head = self.byte()?;
            let kind = head & 15;
            if kind == kind::STOP {
                return Ok(());
            }
            last = match head >> 4 {
                0 => i16::try_from(self.number()?).map_err(|_| corrupt("the number of a field"))?,
                step => last.checked_add(i16::from(step)).ok_or_else(|| corrupt("a field"))?,
            };
            self.fields.push(last);
            match kind {
                // The kind is the value.
                kind::TRUE | kind::FALSE => {}
                kind => self.value(kind)?,
            }
            self.fields.pop();
        }
    }

    fn value(&mut self, kind: u8) -> Result<()> {
        match kind {
            kind::TRUE | kind::FALSE | kind::BYTE => self.skip(1),
            kind::I16..=kind::I64 => {
                let number = self.number()?;
                (self.visit)(&self.fields, Found::Number(number))
            }
            kind::DOUBLE => self.skip(8),
            kind::UUID => self.skip(16),
            kind::BINARY => {
                let length = self.varint()?;
                self.skip(length)
            }
            kind::LIST | kind::SET => self.list(),
            kind::STRUCT => self.structure(),
            kind => Err(corrupt(&format!("a value of the kind {kind}"))),
        }
    }

    fn list(&mut self) -> Result<()> {
        if self.fields.len() >= MOST_DEPTH {
            return Err(corrupt("too many lists in one another"));
        }
        let head = self.byte()?;
        let entries = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        let left = (self.bytes.len() - self.at) as u64;
        if entries > left {
            return Err(corrupt(&format!("a list of {entries} entries in {left} bytes")));
        }
        (self.visit)(&self.fields, Found::Entries(entries))?;
        // Lists in a list count as a field, so that their depth is limited, too.
        let is_nested = matches!(head & 15, kind::LIST | kind::SET);
        self.fields.extend(is_nested.then_some(0));
        for _ in 0..entries {
            self.value(head & 15)?;
        }
        self.fields.truncate(self.fields.len() - usize::from(is_nested));
        Ok(())
    }

    fn byte(&mut self) -> Result<u8> {
        let byte =
            self.bytes.get(self.at).copied().ok_or_else(|| corrupt("metadata that ends early"))?;
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, length: u64) -> Result<()> {
        let left = (self.bytes.len() - self.at) as u64;
        if length > left {
            return Err(corrupt(&format!("a value of {length} bytes in {left}")));
        }
        self.at += length as usize;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(corrupt("a number of more than 64 bits"))
    }

    fn number(&mut self) -> Result<i64> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }
}

fn corrupt(message: &str) -> Error {
    Error::corrupt_region("metadata of Parquet", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    type All = Vec<(Vec<i16>, Found)>;

    fn found(bytes: &[u8]) -> Result<(usize, All)> {
        let mut all = vec![];
        let length = walk(bytes, &mut |fields, found| {
            all.push((fields.to_vec(), found));
            Ok(())
        })?;
        Ok((length, all))
    }

    #[test]
    fn values_have_the_fields_around_them() {
        // 1: -3; 2: [{1: 5}, {1: 200}]; 20: "ab"; 21: true
        let bytes = [
            0x15, 0x05, 0x19, 0x2c, 0x15, 0x0a, 0x00, 0x15, 0x90, 0x03, 0x00, 0x08, 0x28, 0x02,
            b'a', b'b', 0x11, 0x00, 0xff,
        ];
        let (length, all) = found(&bytes).unwrap();
        let number = |fields: &[i16], number| (fields.to_vec(), Found::Number(number));
        let expected = vec![
            number(&[1], -3),
            (vec![2], Found::Entries(2)),
            number(&[2, 1], 5),
            number(&[2, 1], 200),
        ];
        assert_eq!((length, all), (bytes.len() - 1, expected));
        for end in 0..length {
            assert!(found(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn counts_must_be_there() {
        assert!(found(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]).is_err());
        assert!(found(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x07]).is_err());
        assert!(found(&[0x1b, 0x00]).is_err());
        assert!(found(&[0x1c; 100]).is_err());
        assert!(found(&[&[0x19][..], &[0x19; 100]].concat()).is_err());
    }
}
