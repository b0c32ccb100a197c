//! The conditions of deletes, which remove cells of sparse arrays.
//!
//! A delete writes a file into `__commits`, and the cells stay in their fragments. The file has the negated
//! condition: it is true for the cells that remain.
//!
//! ```text
//!   DELETE WHERE x = 2 AND s < '10:3'      the file keeps x <> 2 OR s >= '10:3'
//!
//!   a node of the tree      u8 0, u8 how, u64 count, nodes         how: 0 AND, 1 OR, 2 NOT
//!   a leaf of the tree      u8 1, u8 op, text32 field, u64 length, value
//!   op                      0 <, 1 <=, 2 >, 3 >=, 4 =, 5 <>, 253 always true, 254 always false
//!   op 6 IN, 7 NOT IN       … and then u64 length, the u64 offset of each member in the value
//! ```

use std::collections::BTreeSet;

use crate::bytes::filter::EncryptionKey;
use crate::bytes::generic_tile;
use crate::bytes::text::{numbers, text32};
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::{Error, Result};

/// A condition that deletes cells.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeleteCondition {
    /// The path of its file, `__commits/__t_t_uuid_22.del`. Fragments list the conditions that they already
    /// contain by this name.
    pub marker: String,
    /// The time of the delete, in milliseconds since 1970-01-01. It deletes cells that are not newer.
    pub time: u64,
    /// The negated condition, which is true for the cells that remain.
    pub keep: Condition,
}

/// A condition on the fields of a cell. A field is a dimension or an attribute.
///
/// Values are the stored bytes of a cell. For an attribute with an enumeration, they are an index.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// True if all parts are true, and if there are none.
    And(Vec<Condition>),
    /// True if any part is true.
    Or(Vec<Condition>),
    /// True if the part is false. TileDB itself neither writes nor evaluates it.
    Not(Box<Condition>),
    /// Compares the field with a value.
    Compare {
        /// The name of the field.
        field: String,
        /// The operator; the field is on its left.
        op: Comparison,
        /// The value; empty for a test for NULL, and for empty text.
        value: Vec<u8>,
    },
    /// Looks the field up in a list of values.
    In {
        /// The name of the field.
        field: String,
        /// The list.
        values: Vec<Vec<u8>>,
        /// Whether the condition is true for fields outside the list.
        negated: bool,
    },
    /// True or false for all cells. TileDB does not write it into deletes.
    Constant(bool),
}

/// An operator that compares two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
}

const REGION: &str = "delete condition";
/// The most levels of a tree. Recursion over a tree of this depth cannot exhaust the stack.
const MAX_DEPTH: usize = 64;

impl DeleteCondition {
    /// Parses a file `.del`, or its copy in a file `.con`: a generic tile.
    ///
    /// # Errors
    /// `Corrupt` if it is malformed, `Unsupported` for unknown operators and for trees that are too deep, and
    /// `Usage` if the key does not fit.
    pub(in crate::bytes) fn parse(
        marker: String,
        time: u64,
        stored: &[u8],
        key: Option<&EncryptionKey>,
    ) -> Result<Self> {
        let content = generic_tile::decode(REGION, 0, stored, key)?;
        let mut reader = Reader::new(REGION, 0, &content);
        let keep = Condition::parse(&mut reader, MAX_DEPTH)?;
        reader.end()?;
        Ok(Self { marker, time, keep })
    }
}

impl Condition {
    /// Returns the names of the fields that the condition refers to, each once, in alphabetical order.
    pub fn fields(&self) -> Vec<&str> {
        let mut fields = BTreeSet::new();
        self.add_fields(&mut fields);
        fields.into_iter().collect()
    }

    fn add_fields<'a>(&'a self, fields: &mut BTreeSet<&'a str>) {
        match self {
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.add_fields(fields));
            }
            Self::Not(part) => part.add_fields(fields),
            Self::Compare { field, .. } | Self::In { field, .. } => {
                fields.insert(field);
            }
            Self::Constant(_) => {}
        }
    }

    /// Parses a tree of at most `levels` levels.
    fn parse(reader: &mut Reader<'_>, levels: usize) -> Result<Self> {
        let Some(below) = levels.checked_sub(1) else {
            let message = format!("a delete condition of more than {MAX_DEPTH} levels");
            return Err(Error::unsupported(message));
        };
        match reader.u8()? {
            0 => Self::parse_node(reader, below),
            1 => Self::parse_leaf(reader),
            other => Err(reader.corrupt(format!("kind {other}, expected 0 or 1"))),
        }
    }

    /// Parses the operator of a node, and the trees below, which have at most `levels` levels.
    fn parse_node(reader: &mut Reader<'_>, levels: usize) -> Result<Self> {
        let op = reader.u8()?;
        if op > 2 {
            return Err(unknown("combination", op));
        }
        let count = reader.u64()?;
        if op == 2 {
            if count != 1 {
                return Err(reader.corrupt(format!("NOT of {count} conditions, expected 1")));
            }
            return Ok(Self::Not(Box::new(Self::parse(reader, levels)?)));
        }
        // No memory is reserved for the count: a wrong one fails when the bytes end.
        let parts = (0..count).map(|_| Self::parse(reader, levels));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Ok(if op == 0 { Self::And(parts) } else { Self::Or(parts) })
    }

    /// Parses a leaf after its kind.
    fn parse_leaf(reader: &mut Reader<'_>) -> Result<Self> {
        let op = reader.u8()?;
        let field = text32(reader, "the field of a delete condition")?;
        let len = reader.u64()?;
        let value = reader.take(to_usize(len))?;
        let op = match op {
            0 => Comparison::Less,
            1 => Comparison::LessOrEqual,
            2 => Comparison::Greater,
            3 => Comparison::GreaterOrEqual,
            4 => Comparison::Equal,
            5 => Comparison::NotEqual,
            6 | 7 => {
                return Ok(Self::In { field, values: members(reader, value)?, negated: op == 7 });
            }
            253 | 254 => return Ok(Self::Constant(op == 253)),
            _ => return Err(unknown("operator", op)),
        };
        Ok(Self::Compare { field, op, value: value.to_vec() })
    }
}

/// Reads the offsets of the members of a list, and splits `value` there.
fn members(reader: &mut Reader<'_>, value: &[u8]) -> Result<Vec<Vec<u8>>> {
    let len = reader.u64()?;
    if !len.is_multiple_of(8) {
        return Err(reader.corrupt(format!("{len} bytes of offsets, not a multiple of 8")));
    }
    let starts = numbers(reader, len / 8)?;
    if starts.is_empty() && !value.is_empty() {
        return Err(reader.corrupt(format!("{} bytes of values without offsets", value.len())));
    }
    let ends = starts.iter().skip(1).copied().chain([value.len() as u64]);
    let member = |(start, end): (&u64, u64)| {
        let member = value.get(to_usize(*start)..to_usize(end));
        let message = "offsets that do not ascend to the end of the values";
        member.map(<[u8]>::to_vec).ok_or_else(|| reader.corrupt(message))
    };
    starts.iter().zip(ends).map(member).collect()
}

fn unknown(what: &str, code: u8) -> Error {
    Error::unsupported(format!("{what} {code} in a delete condition"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing::{generic_tile, words};
    use gridfusion_core::ErrorKind;

    fn parse(content: &[u8]) -> Result<Condition> {
        let marker = "__commits/a.del".to_owned();
        let parsed = DeleteCondition::parse(marker, 40, &generic_tile(content), None)?;
        assert_eq!((parsed.marker.as_str(), parsed.time), ("__commits/a.del", 40));
        Ok(parsed.keep)
    }

    fn kind(content: &[u8]) -> ErrorKind {
        parse(content).unwrap_err().kind()
    }

    fn leaf(op: u8, field: &str, value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![1, op];
        bytes.extend((field.len() as u32).to_le_bytes());
        bytes.extend(field.bytes());
        bytes.extend(words(&[value.len() as u64]));
        bytes.extend(value);
        bytes
    }

    fn list(op: u8, field: &str, value: &[u8], offsets: &[u64]) -> Vec<u8> {
        let offset_bytes = words(&[offsets.len() as u64 * 8]);
        [leaf(op, field, value), offset_bytes, words(offsets)].concat()
    }

    fn node(op: u8, parts: &[Vec<u8>]) -> Vec<u8> {
        [vec![0, op], words(&[parts.len() as u64]), parts.concat()].concat()
    }

    fn compare(field: &str, op: Comparison, value: &[u8]) -> Condition {
        Condition::Compare { field: field.to_owned(), op, value: value.to_vec() }
    }

    /// Returns a tree with all kinds of nodes.
    fn tree() -> Vec<u8> {
        let strings = list(7, "s", b"onetwo", &[0, 3, 3]);
        let either = node(1, &[leaf(5, "s", b"10:3"), strings, leaf(254, "x", b"")]);
        node(0, &[leaf(3, "x", &[2, 0]), either, node(2, &[leaf(4, "n", b"")])])
    }

    #[test]
    fn the_bytes_of_a_delete() {
        // TileDB writes these bytes for "v >= 200 and v < 302".
        let bytes = b"\x00\x01\x02\0\0\0\0\0\0\0\
            \x01\x00\x01\0\0\0v\x04\0\0\0\0\0\0\0\xc8\0\0\0\
            \x01\x03\x01\0\0\0v\x04\0\0\0\0\0\0\0\x2e\x01\0\0";
        let less = compare("v", Comparison::Less, &200_i32.to_le_bytes());
        let greater = compare("v", Comparison::GreaterOrEqual, &302_i32.to_le_bytes());
        let expected = Condition::Or(vec![less, greater]);
        assert_eq!(expected.fields(), ["v"]);
        assert_eq!(parse(bytes).unwrap(), expected);
    }

    #[test]
    fn all_kinds_of_nodes() {
        let values = vec![b"one".to_vec(), vec![], b"two".to_vec()];
        let parsed = parse(&tree()).unwrap();
        assert_eq!(parsed.fields(), ["n", "s", "x"]);
        let expected = Condition::And(vec![
            compare("x", Comparison::GreaterOrEqual, &[2, 0]),
            Condition::Or(vec![
                compare("s", Comparison::NotEqual, b"10:3"),
                Condition::In { field: "s".to_owned(), values, negated: true },
                Condition::Constant(false),
            ]),
            Condition::Not(Box::new(compare("n", Comparison::Equal, b""))),
        ]);
        assert_eq!(parsed, expected);
        for (op, comparison) in [
            (0, Comparison::Less),
            (1, Comparison::LessOrEqual),
            (2, Comparison::Greater),
            (3, Comparison::GreaterOrEqual),
            (4, Comparison::Equal),
            (5, Comparison::NotEqual),
        ] {
            assert_eq!(parse(&leaf(op, "", &[7])).unwrap(), compare("", comparison, &[7]));
        }
        assert_eq!(parse(&leaf(253, "x", b"")).unwrap(), Condition::Constant(true));
        assert_eq!(parse(&node(0, &[])).unwrap(), Condition::And(vec![]));
        // TileDB writes an empty list if no value is in the enumeration.
        let nothing = Condition::In { field: "e".to_owned(), values: vec![], negated: false };
        assert_eq!(parse(&list(6, "e", b"", &[])).unwrap(), nothing);
    }

    #[test]
    fn no_truncation_and_no_flipped_bit_does_harm() {
        let content = tree();
        for len in 0..content.len() {
            assert_eq!(kind(&content[..len]), ErrorKind::Corrupt, "{len}");
        }
        for bit in 0..content.len() * 8 {
            let mut content = content.clone();
            content[bit / 8] ^= 1 << (bit % 8);
            let _ = parse(&content);
        }
        let tile = generic_tile(&content);
        for len in 0..tile.len() {
            let parsed = DeleteCondition::parse(String::new(), 0, &tile[..len], None);
            assert!(parsed.is_err(), "{len}");
        }
        assert_eq!(kind(&[content, vec![0]].concat()), ErrorKind::Corrupt);
    }

    #[test]
    fn unknown_codes_and_wrong_counts_are_refused() {
        assert_eq!(kind(&leaf(8, "x", b"a")), ErrorKind::Unsupported);
        assert_eq!(kind(&leaf(255, "x", b"a")), ErrorKind::Unsupported);
        assert_eq!(kind(&node(3, &[])), ErrorKind::Unsupported);
        assert_eq!(kind(&[2, 0]), ErrorKind::Corrupt);
        assert_eq!(kind(&node(2, &[])), ErrorKind::Corrupt);
        assert_eq!(kind(&node(2, &[leaf(0, "x", b"a"), leaf(0, "x", b"a")])), ErrorKind::Corrupt);
        assert_eq!(kind(&[vec![0, 1], words(&[u64::MAX])].concat()), ErrorKind::Corrupt);
        for offsets in [&[][..], &[1, 0], &[0, 4], &[u64::MAX]] {
            assert_eq!(kind(&list(6, "s", b"abc", offsets)), ErrorKind::Corrupt, "{offsets:?}");
        }
        let ragged = [leaf(6, "s", b"abc"), words(&[7]), vec![0; 7]].concat();
        assert_eq!(kind(&ragged), ErrorKind::Corrupt);
    }

    #[test]
    fn deep_trees_are_refused() {
        let nested = |nodes: usize| {
            (0..nodes).fold(leaf(4, "x", b"a"), |tree, at| node((at % 3) as u8, &[tree]))
        };
        assert_eq!(parse(&nested(MAX_DEPTH - 1)).unwrap().fields(), ["x"]);
        assert_eq!(kind(&nested(MAX_DEPTH)), ErrorKind::Unsupported);
        assert_eq!(kind(&nested(10_000)), ErrorKind::Unsupported);
    }
}
