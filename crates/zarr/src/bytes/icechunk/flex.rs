//! FlexBuffers and MessagePack as JSON: how metadata of commits and the configuration are stored.
//!
//! ```text
//!   FlexBuffers   …values…  root value, its type, its width     offsets lead backward; types follow the elements
//!   MessagePack   a byte with the type and a short length, then the value
//! ```
//!
//! Values may share bytes, so the number of values is bounded by the number of bytes.
//!
//! Facts: the internals page of FlexBuffers, and the specification of MessagePack.

use serde_json::{Map, Number, Value};

use gridfusion_core::{Error, Result};

/// The most values within values.
const MOST_DEPTH: usize = 32;

fn corrupt(what: &str) -> Error {
    Error::corrupt_region("configuration or metadata", what)
}

/// Parses a FlexBuffer.
pub(super) fn flexbuffer(bytes: &[u8]) -> Result<Value> {
    let [.., packed, width] = *bytes else { return Err(corrupt("a FlexBuffer without a root")) };
    let at = (bytes.len() - 2).checked_sub(usize::from(width));
    let at = at.filter(|_| matches!(width, 1 | 2 | 4 | 8));
    let at = at.ok_or_else(|| corrupt("a FlexBuffer with a root of no width"))?;
    let mut reader = Flex { bytes, left: bytes.len() };
    reader.value(at, width.into(), packed, MOST_DEPTH)
}

struct Flex<'a> {
    bytes: &'a [u8],
    /// The values that may still be read.
    left: usize,
}

impl<'a> Flex<'a> {
    fn slice(&self, at: usize, len: usize) -> Result<&'a [u8]> {
        let end = at.checked_add(len).ok_or_else(|| corrupt("an offset that is too great"))?;
        self.bytes.get(at..end).ok_or_else(|| corrupt("an offset that leads out of a FlexBuffer"))
    }

    fn unsigned(&self, at: usize, width: usize) -> Result<u64> {
        let bytes = self.slice(at, width)?;
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn signed(&self, at: usize, width: usize) -> Result<i64> {
        let unused = 64 - 8 * width;
        Ok((self.unsigned(at, width)? << unused) as i64 >> unused)
    }

    fn float(&self, at: usize, width: usize) -> Result<f64> {
        let bits = self.unsigned(at, width)?;
        match width {
            8 => Ok(f64::from_bits(bits)),
            4 => Ok(f32::from_bits(bits as u32).into()),
            _ => Err(corrupt("a short float in a FlexBuffer")),
        }
    }

    /// Returns where the offset at `at` leads.
    fn back(&self, at: usize, width: usize) -> Result<usize> {
        let back = usize::try_from(self.unsigned(at, width)?).ok();
        let target = back.and_then(|back| at.checked_sub(back));
        target.ok_or_else(|| corrupt("an offset before the beginning of a FlexBuffer"))
    }

    /// Returns the length that stands before `at`.
    fn len(&self, at: usize, width: usize) -> Result<usize> {
        let before = at.checked_sub(width).ok_or_else(|| corrupt("a vector without a length"))?;
        let len = usize::try_from(self.unsigned(before, width)?).ok();
        len.filter(|len| *len <= self.bytes.len()).ok_or_else(|| corrupt("a vector too long"))
    }

    fn text(&self, bytes: &[u8]) -> Result<String> {
        let text = std::str::from_utf8(bytes).map_err(|_| corrupt("a text that is not UTF-8"))?;
        Ok(text.to_owned())
    }

    fn key(&self, at: usize) -> Result<String> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0);
        self.text(&rest[..end.ok_or_else(|| corrupt("a key without an end"))?])
    }

    /// Reads the value at `at`. An offset there has `width` bytes, and leads to values of the width in `packed`.
    fn value(&mut self, at: usize, width: usize, packed: u8, depth: usize) -> Result<Value> {
        let inner = 1 << (packed & 3);
        self.left = self.left.checked_sub(1).ok_or_else(|| corrupt("values that share bytes"))?;
        let depth = depth.checked_sub(1).ok_or_else(|| corrupt("values too deep"))?;
        let float = |value: f64| Number::from_f64(value).map_or(Value::Null, Value::Number);
        Ok(match packed >> 2 {
            0 => Value::Null,
            1 => self.signed(at, width)?.into(),
            2 => self.unsigned(at, width)?.into(),
            3 => float(self.float(at, width)?),
            26 => Value::Bool(self.unsigned(at, width)? != 0),
            kind => {
                let to = self.back(at, width)?;
                match kind {
                    4 => self.key(to)?.into(),
                    5 => {
                        let text = self.slice(to, self.len(to, inner)?)?;
                        self.left = self
                            .left
                            .checked_sub(text.len())
                            .ok_or_else(|| corrupt("texts that share bytes"))?;
                        self.text(text)?.into()
                    }
                    6 => self.signed(to, inner)?.into(),
                    7 => self.unsigned(to, inner)?.into(),
                    8 => float(self.float(to, inner)?),
                    9 => self.map(to, inner, depth)?,
                    10 => Value::Array(self.elements(to, inner, depth)?),
                    11..=15 | 36 => {
                        let of = if kind == 36 { 26 } else { kind - 10 };
                        self.typed(to, inner, of, self.len(to, inner)?, depth)?
                    }
                    16..=24 => {
                        let (of, len) = ((kind - 16) % 3 + 1, usize::from((kind - 16) / 3 + 2));
                        self.typed(to, inner, of, len, depth)?
                    }
                    25 => self.typed(to, inner, 2, self.len(to, inner)?, depth)?,
                    other => return Err(corrupt(&format!("type {other} of a FlexBuffer"))),
                }
            }
        })
    }

    /// Reads elements that have one type.
    fn typed(
        &mut self,
        to: usize,
        width: usize,
        of: u8,
        len: usize,
        depth: usize,
    ) -> Result<Value> {
        let packed = of << 2 | width.trailing_zeros() as u8;
        let each = (0..len).map(|number| self.value(to + number * width, width, packed, depth));
        each.collect::<Result<_>>().map(Value::Array)
    }

    /// Reads elements, whose types stand behind them.
    fn elements(&mut self, to: usize, width: usize, depth: usize) -> Result<Vec<Value>> {
        let len = self.len(to, width)?;
        let types = self.slice(to.saturating_add(len.saturating_mul(width)), len)?;
        let each = types.iter().enumerate();
        each.map(|(number, packed)| self.value(to + number * width, width, *packed, depth))
            .collect()
    }

    fn map(&mut self, to: usize, width: usize, depth: usize) -> Result<Value> {
        let before = |parts: usize| {
            to.checked_sub(parts * width).ok_or_else(|| corrupt("a map without keys"))
        };
        let keys = self.back(before(3)?, width)?;
        let key_width = self.unsigned(before(2)?, width)?;
        if !matches!(key_width, 1 | 2 | 4 | 8) {
            return Err(corrupt("a map whose keys have no width"));
        }
        let key_width = key_width as usize;
        let values = self.elements(to, width, depth)?;
        if self.len(keys, key_width)? != values.len() {
            return Err(corrupt("a map with more or fewer keys than values"));
        }
        let mut map = Map::new();
        for (number, value) in values.into_iter().enumerate() {
            let key = self.key(self.back(keys + number * key_width, key_width)?)?;
            self.left =
                self.left.checked_sub(key.len()).ok_or_else(|| corrupt("keys that share bytes"))?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Parses a value of MessagePack.
pub(super) fn message_pack(bytes: &[u8]) -> Result<Value> {
    let mut rest = bytes;
    packed(&mut rest, MOST_DEPTH)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8]> {
    let (taken, after) = rest
        .split_at_checked(len)
        .ok_or_else(|| corrupt("a value of MessagePack that ends early"))?;
    *rest = after;
    Ok(taken)
}

fn number(rest: &mut &[u8], width: usize) -> Result<u64> {
    Ok(take(rest, width)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn packed(rest: &mut &[u8], depth: usize) -> Result<Value> {
    let depth = depth.checked_sub(1).ok_or_else(|| corrupt("values too deep"))?;
    let float = |value: f64| Number::from_f64(value).map_or(Value::Null, Value::Number);
    let kind = take(rest, 1)?[0];
    let len =
        |rest: &mut &[u8], first: u8| Ok::<_, Error>(number(rest, 1 << (kind - first))? as usize);
    Ok(match kind {
        0x00..=0x7f => kind.into(),
        0xe0..=0xff => (kind as i8).into(),
        0x80..=0x8f => map(rest, (kind & 15).into(), depth)?,
        0x90..=0x9f => list(rest, (kind & 15).into(), depth)?,
        0xa0..=0xbf => text(rest, (kind & 31).into())?,
        0xc0 => Value::Null,
        0xc2 | 0xc3 => (kind == 0xc3).into(),
        0xc4..=0xc6 => {
            let len = len(rest, 0xc4)?;
            take(rest, len)?.iter().map(|byte| Value::from(*byte)).collect()
        }
        0xca => float(f32::from_bits(number(rest, 4)? as u32).into()),
        0xcb => float(f64::from_bits(number(rest, 8)?)),
        0xcc..=0xcf => number(rest, 1 << (kind - 0xcc))?.into(),
        0xd0..=0xd3 => {
            let width = 1 << (kind - 0xd0);
            let unused = 64 - 8 * width;
            ((number(rest, width)? << unused) as i64 >> unused).into()
        }
        0xd9..=0xdb => {
            let len = len(rest, 0xd9)?;
            text(rest, len)?
        }
        0xdc | 0xdd => {
            let len = number(rest, if kind == 0xdc { 2 } else { 4 })? as usize;
            list(rest, len, depth)?
        }
        0xde | 0xdf => {
            let len = number(rest, if kind == 0xde { 2 } else { 4 })? as usize;
            map(rest, len, depth)?
        }
        other => return Err(corrupt(&format!("type {other} of MessagePack"))),
    })
}

fn text(rest: &mut &[u8], len: usize) -> Result<Value> {
    let text = std::str::from_utf8(take(rest, len)?);
    Ok(text.map_err(|_| corrupt("a text that is not UTF-8"))?.into())
}

fn list(rest: &mut &[u8], len: usize, depth: usize) -> Result<Value> {
    (0..len).map(|_| packed(rest, depth)).collect::<Result<_>>().map(Value::Array)
}

fn map(rest: &mut &[u8], len: usize, depth: usize) -> Result<Value> {
    let mut map = Map::new();
    for _ in 0..len {
        let key = match packed(rest, depth)? {
            Value::String(key) => key,
            other => other.to_string(),
        };
        map.insert(key, packed(rest, depth)?);
    }
    Ok(Value::Object(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_pack_is_json() {
        let bytes = b"\x83\xa1a\x01\xa1b\x93\xd0\xff\xc3\xc0\xa1c\xcb\x3f\xe0\0\0\0\0\0\0";
        let value = message_pack(bytes).unwrap();
        assert_eq!(value, serde_json::json!({"a": 1, "b": [-1, true, null], "c": 0.5}));
        for end in 0..bytes.len() {
            assert!(message_pack(&bytes[..end]).is_err());
        }
        assert!(message_pack(&[0x91; 100]).is_err());
        assert!(message_pack(b"\xdd\xff\xff\xff\xff").is_err());
    }

    /// The example of the internals page of FlexBuffers: a vector, and a map.
    #[test]
    fn flexbuffers_are_json() {
        let vector = [3, 1, 2, 3, 4, 4, 4, 6, 40, 1];
        assert_eq!(flexbuffer(&vector).unwrap(), serde_json::json!([1, 2, 3]));
        let map = b"bar\0foo\0\x02\x09\x06\x02\x01\x02\x0d\x0e\x04\x04\x04\x24\x01";
        assert_eq!(flexbuffer(map).unwrap(), serde_json::json!({"bar": 13, "foo": 14}));
        for at in 0..map.len() {
            for bit in 0..8 {
                let mut broken = *map;
                broken[at] ^= 1 << bit;
                let _ = flexbuffer(&broken);
            }
            let _ = flexbuffer(&map[..at]);
        }
    }
}
