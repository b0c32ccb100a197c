//! Filter pipelines as schemas and generic tiles store them.
//!
//! ```text
//!   u32 largest chunk, u32 count, then per filter: u8 id, u32 length of the options, options
//! ```
//!
//! `plan` turns a pipeline into the stages that decode a tile. Some pipelines that parse cannot be decoded.
//! `gridfusion info` shows their arrays nevertheless.

use std::fmt;

use super::encode_words::MOST_WINDOW;
use super::encoder::MOST_CHUNK;
use super::word::Width;
use crate::bytes::datatype::Datatype;
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::{Error, Result};

/// Pipelines of more filters are refused: each filter takes memory of its own while decoding.
const MOST_FILTERS: u32 = 64;

/// The level of filters that have none.
const NO_LEVEL: i32 = -1;

/// Since this format version of the enclosing structure, options of delta filters name a type.
const DELTA_NAMES_TYPE: u32 = 19;
/// Since this format version, options of double delta filters name a type, too.
const DOUBLE_DELTA_NAMES_TYPE: u32 = 20;

/// The filters that a writer applied to the bytes of a tile, first to last.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    pub(crate) filters: Vec<Filter>,
}

/// One filter, with the options that its inverse or `Display` needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Filter {
    Noop,
    /// Compresses to a zlib stream, despite the name.
    Gzip {
        level: i32,
    },
    Zstd {
        level: i32,
    },
    Lz4,
    /// Encodes runs of equal cells, or of equal strings together with their offsets.
    RunLength,
    Bzip2 {
        level: i32,
    },
    /// Takes differences of values of type `reinterpret`, or of the data's own type if that is `None`.
    DoubleDelta {
        reinterpret: Option<Datatype>,
    },
    /// Stores integers relative to the least of their window, in fewer bytes.
    BitWidthReduction,
    Bitshuffle,
    Byteshuffle,
    /// Takes differences of values that never descend within a window.
    PositiveDelta,
    AesGcm,
    Md5,
    Sha256,
    /// Stores each distinct string once. Only for strings of variable length.
    Dictionary,
    /// Stores floats as integers of this width: the nearest to (value - offset) / scale.
    ScaleFloat {
        scale: f64,
        offset: f64,
        width: Width,
    },
    /// Combines each word with the one before it by exclusive or.
    Xor,
    /// Compresses images. Known, but not decoded.
    Webp,
    /// Has the same option as `DoubleDelta`.
    Delta {
        reinterpret: Option<Datatype>,
    },
}

impl Pipeline {
    /// Reads a pipeline of a structure of format `version`.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end early or options are malformed, `Unsupported` for unknown filters and
    /// for more than 64 filters.
    pub(in crate::bytes) fn parse(reader: &mut Reader<'_>, version: u32) -> Result<Self> {
        // Only writers need it; each chunk of a tile gives its own length.
        let _largest_chunk = reader.u32()?;
        let count = reader.u32()?;
        if count > MOST_FILTERS {
            let message = format!("a pipeline of {count} filters, more than {MOST_FILTERS}");
            return Err(Error::unsupported(message));
        }
        let filters = (0..count).map(|_| Filter::parse(reader, version)).collect::<Result<_>>()?;
        Ok(Self { filters })
    }

    /// Returns the bytes of the pipeline in a structure of the newest format.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = (MOST_CHUNK as u32).to_le_bytes().to_vec();
        bytes.extend((self.filters.len() as u32).to_le_bytes());
        for filter in &self.filters {
            let (id, options) = filter.id_and_options();
            bytes.push(id);
            bytes.extend((options.len() as u32).to_le_bytes());
            bytes.extend(options);
        }
        bytes
    }

    /// Returns the name of a filter that is read and not written; `None` if there is none. Texts are written with their offsets.
    pub(crate) fn not_written(&self, is_text: bool) -> Option<&'static str> {
        let is_unknown = |filter: &&Filter| match filter {
            Filter::RunLength => is_text,
            Filter::Lz4 | Filter::ScaleFloat { .. } | Filter::AesGcm => true,
            Filter::Dictionary | Filter::Webp => true,
            _ => false,
        };
        self.filters.iter().find(is_unknown).map(|filter| filter.name())
    }

    /// Whether there are no filters.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether decoded cells may differ from the cells that were written.
    pub fn is_lossy(&self) -> bool {
        let rounds = |filter: &Filter| matches!(filter, Filter::ScaleFloat { .. } | Filter::Webp);
        self.filters.iter().any(rounds)
    }
}

impl Filter {
    fn parse(reader: &mut Reader<'_>, version: u32) -> Result<Self> {
        let id = reader.u8()?;
        let len = reader.u32()?;
        let at = reader.offset();
        let mut options = Reader::new("filter options", at, reader.take(to_usize(u64::from(len)))?);
        let filter = Self::parse_options(id, &mut options, version)?;
        options.end()?;
        Ok(filter)
    }

    /// Parses the options of the filter with this id (see crates/tiledb/FORMAT.md, section 4).
    fn parse_options(id: u8, options: &mut Reader<'_>, version: u32) -> Result<Self> {
        Ok(match id {
            0 => Self::Noop,
            1 => Self::Gzip { level: level(options)? },
            2 => Self::Zstd { level: level(options)? },
            3 => level(options).map(|_| Self::Lz4)?,
            4 => level(options).map(|_| Self::RunLength)?,
            5 => Self::Bzip2 { level: level(options)? },
            6 => {
                let reinterpret = reinterpret(options, version >= DOUBLE_DELTA_NAMES_TYPE)?;
                Self::DoubleDelta { reinterpret }
            }
            // The largest window only matters to the writer.
            7 => options.u32().map(|_| Self::BitWidthReduction)?,
            8 => Self::Bitshuffle,
            9 => Self::Byteshuffle,
            10 => options.u32().map(|_| Self::PositiveDelta)?,
            11 => Self::AesGcm,
            12 => Self::Md5,
            13 => Self::Sha256,
            14 => level(options).map(|_| Self::Dictionary)?,
            15 => scale_float(options)?,
            16 => Self::Xor,
            // Quality, format, losslessness and the image's extents.
            18 => options.take(4 + 1 + 1 + 2 + 2).map(|_| Self::Webp)?,
            19 => Self::Delta { reinterpret: reinterpret(options, version >= DELTA_NAMES_TYPE)? },
            _ => return Err(Error::unsupported(format!("TileDB filter {id}"))),
        })
    }

    /// Returns the filter's id, and the bytes of its options.
    fn id_and_options(self) -> (u8, Vec<u8>) {
        let level = |kind: u8, level: i32| [&[kind][..], &level.to_le_bytes()].concat();
        let delta = |kind: u8, reinterpret: Option<Datatype>| {
            [level(kind, NO_LEVEL), vec![reinterpret.unwrap_or(Datatype::Any).code()]].concat()
        };
        let window = || (MOST_WINDOW as u32).to_le_bytes().to_vec();
        match self {
            Self::Noop => (0, vec![]),
            Self::Gzip { level: of } => (1, level(1, of)),
            Self::Zstd { level: of } => (2, level(2, of)),
            Self::Lz4 => (3, level(3, NO_LEVEL)),
            Self::RunLength => (4, level(4, NO_LEVEL)),
            Self::Bzip2 { level: of } => (5, level(5, of)),
            Self::DoubleDelta { reinterpret } => (6, delta(6, reinterpret)),
            Self::BitWidthReduction => (7, window()),
            Self::Bitshuffle => (8, vec![]),
            Self::Byteshuffle => (9, vec![]),
            Self::PositiveDelta => (10, window()),
            Self::AesGcm => (11, vec![]),
            Self::Md5 => (12, vec![]),
            Self::Sha256 => (13, vec![]),
            Self::Dictionary => (14, level(7, NO_LEVEL)),
            Self::ScaleFloat { scale, offset, width } => {
                let width = (width.bytes() as u64).to_le_bytes();
                (15, [scale.to_le_bytes(), offset.to_le_bytes(), width].concat())
            }
            Self::Xor => (16, vec![]),
            Self::Webp => (18, vec![0; 10]),
            Self::Delta { reinterpret } => (19, delta(8, reinterpret)),
        }
    }

    /// The filter's name, without options.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Gzip { .. } => "gzip",
            Self::Zstd { .. } => "zstd",
            Self::Lz4 => "lz4",
            Self::RunLength => "rle",
            Self::Bzip2 { .. } => "bzip2",
            Self::DoubleDelta { .. } => "double delta",
            Self::BitWidthReduction => "bit width reduction",
            Self::Bitshuffle => "bitshuffle",
            Self::Byteshuffle => "byteshuffle",
            Self::PositiveDelta => "positive delta",
            Self::AesGcm => "aes-256-gcm",
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Dictionary => "dictionary",
            Self::ScaleFloat { .. } => "scale float",
            Self::Xor => "xor",
            Self::Webp => "webp",
            Self::Delta { .. } => "delta",
        }
    }
}

/// Reads the level in the options of a compressor, after a byte that only repeats the filter's kind.
fn level(options: &mut Reader<'_>) -> Result<i32> {
    options.u8()?;
    options.array().map(i32::from_le_bytes)
}

/// Reads the options of a delta filter: a level without a meaning, and since some version (`is_named`) a
/// type. The type ANY stands for the type of the data, which is `None` here.
fn reinterpret(options: &mut Reader<'_>, is_named: bool) -> Result<Option<Datatype>> {
    level(options)?;
    if !is_named {
        return Ok(None);
    }
    let datatype = Datatype::from_code(options.u8()?)?;
    Ok(Some(datatype).filter(|datatype| *datatype != Datatype::Any))
}

/// Reads the options of float scaling: scale and offset as `f64`, and the width of the integers as `u64`.
fn scale_float(options: &mut Reader<'_>) -> Result<Filter> {
    let scale = options.array().map(f64::from_le_bytes)?;
    let offset = options.array().map(f64::from_le_bytes)?;
    let bytes = options.u64()?;
    let width = Width::from_bytes(bytes).ok_or_else(|| {
        options.corrupt(format!("floats scaled to {bytes} bytes, expected 1, 2, 4 or 8"))
    })?;
    Ok(Filter::ScaleFloat { scale, offset, width })
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (place, filter) in self.filters.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(f, "{comma}{filter}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            // A negative level is the compressor's default.
            Self::Gzip { level } | Self::Zstd { level } | Self::Bzip2 { level } if *level >= 0 => {
                write!(f, " level {level}")
            }
            Self::Delta { reinterpret: Some(datatype) }
            | Self::DoubleDelta { reinterpret: Some(datatype) } => write!(f, " as {datatype}"),
            Self::ScaleFloat { scale, offset, width } => {
                write!(f, " by {scale} from {offset} to {} bytes", width.bytes())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::ErrorKind;

    fn pipeline(filters: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = 65536_u32.to_le_bytes().to_vec();
        bytes.extend((filters.len() as u32).to_le_bytes());
        for (id, options) in filters {
            bytes.push(*id);
            bytes.extend((options.len() as u32).to_le_bytes());
            bytes.extend(*options);
        }
        bytes
    }

    fn parse(bytes: &[u8], version: u32) -> Result<Pipeline> {
        let mut reader = Reader::new("schema", 100, bytes);
        let pipeline = Pipeline::parse(&mut reader, version)?;
        reader.end()?;
        Ok(pipeline)
    }

    #[test]
    fn every_filter_is_read_and_shown() {
        let mut scale = [0.25, 10.0].map(f64::to_le_bytes).concat();
        scale.extend(4_u64.to_le_bytes());
        let bytes = pipeline(&[
            (0, &[]),
            (1, &[1, 1, 0, 0, 0]),
            (2, &[2, 255, 255, 255, 255]),
            (3, &[3, 0, 0, 0, 0]),
            (4, &[4, 0, 0, 0, 0]),
            (5, &[5, 9, 0, 0, 0]),
            (6, &[6, 0, 0, 0, 0, 0]),
            (7, &[0, 1, 0, 0]),
            (8, &[]),
            (9, &[]),
            (10, &[0, 1, 0, 0]),
            (11, &[]),
            (12, &[]),
            (13, &[]),
            (14, &[7, 0, 0, 0, 0]),
            (15, &scale),
            (16, &[]),
            (18, &[0; 10]),
            (19, &[8, 0, 0, 0, 0, 17]),
        ]);
        assert_eq!(
            parse(&bytes, 22).unwrap().to_string(),
            "noop, gzip level 1, zstd, lz4, rle, bzip2 level 9, double delta as INT32, bit width \
             reduction, bitshuffle, byteshuffle, positive delta, aes-256-gcm, md5, sha256, \
             dictionary, scale float by 0.25 from 10 to 4 bytes, xor, webp, delta"
        );
        for end in 0..bytes.len() {
            assert!(parse(&bytes[..end], 22).is_err());
        }
        let parsed = parse(&bytes, 22).unwrap();
        assert_eq!(parse(&parsed.bytes(), 22).unwrap(), parsed);
        let none = parse(&pipeline(&[]), 22).unwrap();
        assert!(none.is_empty() && none.to_string() == "none");
    }

    #[test]
    fn delta_options_grew() {
        for (id, since) in [(6, 20), (19, 19)] {
            let (old, new) = (pipeline(&[(id, &[6, 0, 0, 0, 0])]), pipeline(&[(id, &[6; 6])]));
            assert!(parse(&old, since - 1).is_ok() && parse(&old, since).is_err());
            assert!(parse(&new, since).is_ok() && parse(&new, since - 1).is_err());
        }
    }

    #[test]
    fn unknown_filters_and_wrong_options_are_errors() {
        let kind = |filters: &[(u8, &[u8])]| parse(&pipeline(filters), 22).unwrap_err().kind();
        assert_eq!(kind(&[(17, &[])]), ErrorKind::Unsupported);
        assert_eq!(kind(&[(20, &[])]), ErrorKind::Unsupported);
        assert_eq!(kind(&[(9, &[0])]), ErrorKind::Corrupt);
        assert_eq!(kind(&[(15, &[3; 24])]), ErrorKind::Corrupt);
        assert_eq!(kind(&[(9, &[][..]); 65]), ErrorKind::Unsupported);
    }
}
