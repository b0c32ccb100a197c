//! Metadata of arrays and groups: keys and values, in files of which newer ones override older ones.
//!
//! ```text
//!   a file of __meta   entries until its end: text32 key, flag deleted,
//!                      and if not deleted: u8 type, u32 count, values
//!
//!   time 10: units = "m", scale = 2           units = "m", scale = 2
//!   time 20: units deleted, scale = 3         scale = 3
//! ```
//!
//! `array_attributes`, `tiledb_metadata` and `gridfusion info` show it. Groups have metadata in the same form, which
//! `array_attributes` shows.

use std::collections::BTreeMap;
use std::fmt;

use super::array::TileDbArray;
use super::datatype::Datatype;
use super::folder::{OpenOptions, ReadTimedFolder, TimedFile, map_done};
use super::schema::{float, integer};
use super::text::{flag, text32};
use gridfusion_core::Result;
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::format::{Machine, Replies, Step};

/// A value of an array's metadata.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MetadataValue {
    /// Text.
    Text(String),
    /// Whole numbers of any type; dates and times count their unit. A single number is a list of one.
    Integers(Vec<i128>),
    /// Floating-point numbers.
    Floats(Vec<f64>),
    /// Truth values.
    Booleans(Vec<bool>),
    /// Anything else: text in other encodings, text that is not UTF-8, and bytes without a meaning.
    Bytes(Vec<u8>),
}

const REGION: &str = "array metadata";

impl TileDbArray {
    /// Returns a machine that reads the array's metadata.
    pub fn read_metadata(&self) -> ReadMetadata {
        ReadMetadata::new(self.options.clone())
    }
}

/// A machine that reads the keys and values of an array's metadata, sorted by key. Made by
/// [`TileDbArray::read_metadata`].
#[derive(Debug)]
pub struct ReadMetadata {
    folder: ReadTimedFolder,
}

impl ReadMetadata {
    /// Returns a machine that reads the metadata in the folder of an array or a group.
    pub fn new(options: OpenOptions) -> Self {
        Self { folder: ReadTimedFolder::new("__meta", REGION, options) }
    }
}

impl Machine for ReadMetadata {
    type Output = Vec<(String, MetadataValue)>;

    fn subject(&self) -> &'static str {
        "array metadata"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        map_done(self.folder.step(replies)?, merge)
    }
}

/// Applies all files, which come oldest first. Errors name the file.
fn merge(files: Vec<TimedFile>) -> Result<Vec<(String, MetadataValue)>> {
    let mut merged = BTreeMap::new();
    for file in files {
        apply(&file.content, &mut merged).map_err(|error| error.about(&file.object))?;
    }
    Ok(merged.into_iter().collect())
}

/// Sets and deletes the keys that one file lists.
fn apply(content: &[u8], metadata: &mut BTreeMap<String, MetadataValue>) -> Result<()> {
    let mut reader = Reader::new(REGION, 0, content);
    while !reader.is_at_end() {
        let key = text32(&mut reader, "a key")?;
        if flag(&mut reader, "deleted")? {
            metadata.remove(&key);
        } else {
            metadata.insert(key, MetadataValue::parse(&mut reader)?);
        }
    }
    Ok(())
}

impl MetadataValue {
    /// Returns what kind of value it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integers(_) => "integers",
            Self::Floats(_) => "floats",
            Self::Booleans(_) => "booleans",
            Self::Bytes(_) => "bytes",
        }
    }

    /// Parses type, count and values. The count is of values, not of bytes: for text, these are the same.
    fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let datatype = Datatype::from_code(reader.u8()?)?;
        let count = u64::from(reader.u32()?);
        let at = reader.offset();
        // At most 2^32 values of 8 bytes, so the product cannot overflow.
        let bytes = reader.take(to_usize(count * datatype.size()))?;
        let mut values = Reader::new(REGION, at, bytes);
        if datatype.is_float() {
            let values = (0..count).map(|_| float(&mut values, datatype));
            return values.collect::<Result<_>>().map(Self::Floats);
        }
        if datatype.is_signed() || datatype.is_unsigned() {
            let values = (0..count).map(|_| integer(&mut values, datatype));
            return values.collect::<Result<_>>().map(Self::Integers);
        }
        Ok(match (datatype, std::str::from_utf8(bytes)) {
            (Datatype::Bool, _) => Self::Booleans(bytes.iter().map(|byte| *byte != 0).collect()),
            (Datatype::StringAscii | Datatype::StringUtf8 | Datatype::Char, Ok(text)) => {
                Self::Text(text.to_owned())
            }
            _ => Self::Bytes(bytes.to_vec()),
        })
    }
}

impl fmt::Display for MetadataValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integers(values) => fmt_list(f, values),
            Self::Floats(values) => fmt_list(f, values),
            Self::Booleans(values) => fmt_list(f, values),
            Self::Bytes(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// Writes a single value as it is, and any other number of values in brackets.
fn fmt_list(f: &mut fmt::Formatter<'_>, values: &[impl fmt::Display]) -> fmt::Result {
    if let [value] = values {
        return value.fmt(f);
    }
    f.write_str("[")?;
    for (place, value) in values.iter().enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        write!(f, "{comma}{value}")?;
    }
    f.write_str("]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing::{Folder, SCHEMA_NAME, generic_tile};

    fn set(key: &str, datatype: u8, count: u32, bytes: &[u8]) -> Vec<u8> {
        let mut entry = (key.len() as u32).to_le_bytes().to_vec();
        entry.extend(key.bytes());
        entry.extend([0, datatype]);
        entry.extend(count.to_le_bytes());
        entry.extend(bytes);
        entry
    }

    fn delete(key: &str) -> Vec<u8> {
        let mut entry = (key.len() as u32).to_le_bytes().to_vec();
        entry.extend(key.bytes());
        entry.push(1);
        entry
    }

    fn name(t1: u64, t2: u64) -> String {
        SCHEMA_NAME.replacen("__1_1", &format!("__{t1}_{t2}"), 1)
    }

    fn shown(folder: &Folder, end: u64) -> Vec<String> {
        let options = OpenOptions { end: Some(end), ..OpenOptions::default() };
        let metadata = folder.drive(ReadMetadata::new(options)).unwrap();
        metadata.iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn later_files_override_earlier_ones() {
        let first = [set("a", 7, 2, &[1, 0, 0xfe, 0xff]), set("b", 12, 2, b"hi")].concat();
        let second = [delete("a"), set("b", 3, 1, &1.5_f64.to_le_bytes())].concat();
        let both = set("c", 40, 2, &[1, 255]);
        let mut folder = Folder::default();
        folder.put(&format!("__meta/{}", name(10, 10)), &generic_tile(&first));
        folder.put(&format!("__meta/{}", name(20, 20)), &generic_tile(&second));
        assert_eq!(shown(&folder, 9), [""; 0]);
        assert_eq!(shown(&folder, 10), ["a=[1, -2]", "b=hi"]);
        assert_eq!(shown(&folder, 20), ["b=1.5"]);
        folder.put(&format!("__meta/{}", name(10, 20)), &generic_tile(&both));
        let vacuum = format!("/a/__meta/{}\n__meta/{}\n", name(10, 10), name(20, 20));
        folder.put(&format!("__meta/{}.vac", name(10, 20)), vacuum.as_bytes());
        assert_eq!(shown(&folder, 20), ["c=0x01ff"]);
        assert_eq!(shown(&folder, 19), ["a=[1, -2]", "b=hi"]);
    }

    #[test]
    fn entries_that_are_cut_off_are_errors() {
        let content = [set("a", 41, 2, &[1, 0]), set("b", 1, 1, &[7; 8])].concat();
        let mut metadata = BTreeMap::new();
        apply(&content, &mut metadata).unwrap();
        assert_eq!(metadata["a"].to_string(), "[true, false]");
        let boundaries = [0, set("a", 41, 2, &[1, 0]).len()];
        for len in (0..content.len()).filter(|len| !boundaries.contains(len)) {
            assert!(apply(&content[..len], &mut metadata).is_err(), "{len}");
        }
        assert!(apply(&set("a", 1, u32::MAX, &[]), &mut metadata).is_err());
    }
}
