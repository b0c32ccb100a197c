//! Chooses the inverses that undo a pipeline for one kind of tile.
//!
//! Every filter has an input type: the field's type, until a filter changes it for later filters. The
//! input type determines the width of words, and whether the filter changes the data:
//!
//! ```text
//!   FLOAT32 ──▶ scale float ──INT16──▶ bit width reduction ──INT16──▶ byteshuffle ──INT16──▶ zstd
//! ```
//!
//! The stages of decoding come in the opposite order, without filters that left the data unchanged. For UINT8
//! values and a key, the filters delta, bit width reduction and zstd become three stages:
//!
//! ```text
//!   stored ──▶ decrypt ──▶ zstd ──▶ undo delta ──▶ cells      (bytes have no width to reduce)
//! ```

use super::checksum::Checksum;
use super::crypto::{Cipher, EncryptionKey};
use super::parts::{Deltas, Unpack};
use super::pipeline::{Filter, Pipeline};
use super::scale::Scaling;
use super::segments::SegmentInverse;
use super::stage::{Inverse, Stage};
use super::strings::StringEncoding;
use super::tile::TileCodec;
use super::word::Width;
use crate::bytes::datatype::Datatype;
use gridfusion_core::format::compress::Compressor;
use gridfusion_core::format::wire::to_usize;
use gridfusion_core::{Error, Result};

/// Since this format version of fragments, window filters treat dates and times as integers.
const WINDOWS_OF_DATES: u32 = 20;

/// The properties of a kind of tile that filters depend on.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// The type of the values: the field's own, `UInt64` for offsets, `UInt8` for validity, and the type in
    /// the header for generic tiles.
    pub(crate) datatype: Datatype,
    /// Bytes of a cell, the unit that run-length encoding repeats.
    pub(crate) cell_size: u64,
    /// Whether the tile has variable-length strings whose encoding includes their offsets, as
    /// [`drops_offsets`] determines.
    pub(crate) var_strings: bool,
    /// The format version of the fragment, or of the generic tile.
    pub(crate) fragment_version: u32,
}

/// Whether the encoding of variable-length values of this type includes their offsets, so that the tile of
/// offsets is empty. This depends on the version of the schema.
pub(in crate::bytes) fn drops_offsets(
    pipeline: &Pipeline,
    datatype: Datatype,
    schema_version: u32,
) -> bool {
    let since = |filter: &Filter| match (datatype, filter) {
        (Datatype::StringAscii, Filter::RunLength) => Some(12),
        (Datatype::StringAscii, Filter::Dictionary) => Some(13),
        (Datatype::StringUtf8, Filter::RunLength | Filter::Dictionary) => Some(17),
        _ => None,
    };
    pipeline.filters.iter().filter_map(since).any(|version| schema_version >= version)
}

impl Pipeline {
    /// Prepares the pipeline for decoding tiles of `field`, which are encrypted if there is a `key`.
    ///
    /// # Errors
    /// `Unsupported` for filters that cannot be undone for such a field, and `Usage` if the
    /// pipeline lists a cipher but there is no key.
    pub(in crate::bytes) fn codec(
        &self,
        field: &Field,
        key: Option<&EncryptionKey>,
    ) -> Result<TileCodec> {
        let mut pipeline = self.clone();
        // Pipelines of fields do not list the cipher, which writers apply last.
        if key.is_some() && !pipeline.filters.contains(&Filter::AesGcm) {
            pipeline.filters.push(Filter::AesGcm);
        }
        let mut datatype = field.datatype;
        let mut stages = vec![];
        for (place, filter) in pipeline.filters.iter().enumerate() {
            let inverse = match filter.string_encoding() {
                Some(encoding) if field.var_strings => Some(encoding.at(place)?),
                _ => filter.inverse(datatype, field, key, stages.is_empty())?,
            };
            stages.extend(inverse.map(|inverse| Stage { name: filter.name(), inverse }));
            datatype = filter.output_type(datatype);
        }
        // Some stage must write the cells to the tile. This one becomes the last.
        if !stages.iter().any(Stage::writes) {
            stages.insert(0, Stage { name: Filter::Noop.name(), inverse: Inverse::Copy });
        }
        stages.reverse();
        Ok(TileCodec::new(pipeline, stages))
    }
}

impl StringEncoding {
    /// The inverse of the encoding as filter number `place`. Only the first filter gets whole strings to
    /// encode.
    fn at(self, place: usize) -> Result<Inverse> {
        if place > 0 {
            return Err(Error::unsupported(format!("strings encoded after {place} other filters")));
        }
        Ok(Inverse::Strings(self))
    }
}

impl Filter {
    /// The filter's encoding of variable-length strings; `None` if it treats them as bytes.
    fn string_encoding(self) -> Option<StringEncoding> {
        match self {
            Self::RunLength => Some(StringEncoding::RunLength),
            Self::Dictionary => Some(StringEncoding::Dictionary),
            _ => None,
        }
    }

    /// The inverse for data of type `input`; `None` if the filter leaves such data unchanged. `is_first`
    /// means that no earlier filter has an inverse, so that the data is the cells.
    fn inverse(
        self,
        input: Datatype,
        field: &Field,
        key: Option<&EncryptionKey>,
        is_first: bool,
    ) -> Result<Option<Inverse>> {
        let width = Width::new(input);
        let segments = |inverse| Some(Inverse::Segments(inverse));
        Ok(match self {
            Self::Noop => None,
            Self::BitWidthReduction => {
                let is_reduced = is_window_integer(input, field) && width != Width::One;
                is_reduced.then_some(Inverse::Widen { width, is_signed: input.is_signed() })
            }
            Self::PositiveDelta => {
                let is_reduced = is_window_integer(input, field) || is_positive_delta_byte(input);
                is_reduced.then_some(Inverse::UndoPositiveDelta(width))
            }
            Self::Byteshuffle => segments(SegmentInverse::Byteshuffle(width)),
            Self::Bitshuffle => segments(SegmentInverse::Bitshuffle(width)),
            Self::Xor => segments(SegmentInverse::Xor(width)),
            Self::ScaleFloat { scale, offset, width: stored } => {
                let is_double = match width {
                    Width::Four => false,
                    Width::Eight => true,
                    Width::One | Width::Two => return Err(self.unsupported(input)),
                };
                segments(SegmentInverse::Scale(Scaling { scale, offset, stored, is_double }))
            }
            Self::Md5 => Some(Inverse::Check(Checksum::Md5)),
            Self::Sha256 => Some(Inverse::Check(Checksum::Sha256)),
            _ => Some(Inverse::Unpack(self.unpack(input, field, key, is_first)?)),
        })
    }

    /// The inverse of a filter that works on parts.
    fn unpack(
        self,
        input: Datatype,
        field: &Field,
        key: Option<&EncryptionKey>,
        is_first: bool,
    ) -> Result<Unpack> {
        // Delta filters count in values of their output type: a type in their options replaces the input
        // type.
        let deltas = || {
            let width = self.delta_width(self.output_type(input))?;
            Ok(Deltas { width, of_cells: is_first })
        };
        Ok(match self {
            Self::Gzip { .. } => Unpack::Decompress(Compressor::Gzip),
            Self::Zstd { .. } => Unpack::Decompress(Compressor::Zstd),
            Self::Lz4 => Unpack::Decompress(Compressor::Lz4),
            Self::Bzip2 { .. } => Unpack::Decompress(Compressor::Bzip2),
            Self::RunLength => Unpack::RunLength(run_cell(field.cell_size)?),
            Self::Delta { .. } => Unpack::Delta(deltas()?),
            Self::DoubleDelta { .. } => Unpack::DoubleDelta(deltas()?),
            Self::AesGcm => Unpack::Decrypt(Cipher::new(key.ok_or_else(no_key)?)),
            _ => return Err(self.unsupported(input)),
        })
    }

    /// The type of the filter's output for data of type `input`: the input type of the next filter.
    pub(super) fn output_type(self, input: Datatype) -> Datatype {
        match self {
            Self::Delta { reinterpret } | Self::DoubleDelta { reinterpret } => {
                reinterpret.unwrap_or(input)
            }
            Self::ScaleFloat { width, .. } => signed_integer(width),
            Self::Xor => signed_integer(Width::new(input)),
            Self::AesGcm => Datatype::Blob,
            _ => input,
        }
    }

    /// The width of the words that a delta filter takes differences of, for data of type `input`, and whether they have a sign.
    pub(super) fn delta_words(self, input: Datatype) -> Result<(Width, bool)> {
        let datatype = self.output_type(input);
        Ok((self.delta_width(datatype)?, datatype.is_signed()))
    }

    /// The width of differences between values of this type; text counts as bytes.
    fn delta_width(self, datatype: Datatype) -> Result<Width> {
        if datatype.is_float() {
            return Err(self.unsupported(datatype));
        }
        Ok(if datatype.is_string() { Width::One } else { Width::new(datatype) })
    }

    fn unsupported(self, datatype: Datatype) -> Error {
        Error::unsupported(format!("TileDB filter {} of {datatype} data", self.name()))
    }
}

/// Whether window filters treat values of this type as integers.
pub(super) fn is_window_integer(datatype: Datatype, field: &Field) -> bool {
    if datatype.is_temporal() {
        return field.fragment_version >= WINDOWS_OF_DATES;
    }
    datatype.is_signed() || datatype.is_unsigned()
}

/// Whether positive delta encodes these values as bytes: truth values, blobs and geometries.
pub(super) fn is_positive_delta_byte(datatype: Datatype) -> bool {
    use Datatype::{Blob, Bool, GeomWkb, GeomWkt};
    matches!(datatype, Bool | Blob | GeomWkb | GeomWkt)
}

/// The type of integers that floats are scaled to, and of the output of xor.
fn signed_integer(width: Width) -> Datatype {
    match width {
        Width::One => Datatype::Int8,
        Width::Two => Datatype::Int16,
        Width::Four => Datatype::Int32,
        Width::Eight => Datatype::Int64,
    }
}

/// The cell size of run-length encoding. In generic tiles it comes from the file, and may be 0.
fn run_cell(cell_size: u64) -> Result<usize> {
    match to_usize(cell_size) {
        0 => Err(Error::unsupported("run-length encoding of cells of 0 bytes")),
        cell => Ok(cell),
    }
}

fn no_key() -> Error {
    Error::usage("the array is encrypted; give option 'encryption_key'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::ErrorKind;
    use gridfusion_core::format::TimeUnit;

    fn field(datatype: Datatype) -> Field {
        Field { datatype, cell_size: datatype.size(), var_strings: false, fragment_version: 22 }
    }

    fn inverses(filters: &[Filter], field: &Field) -> Vec<String> {
        let pipeline = Pipeline { filters: filters.to_vec() };
        let stages = pipeline.codec(field, None).unwrap().stages().to_vec();
        stages.iter().map(|stage| format!("{:?}", stage.inverse)).collect()
    }

    #[test]
    fn types_are_threaded_through_the_filters() {
        let scale = Filter::ScaleFloat { scale: 1.0, offset: 0.0, width: Width::Two };
        let filters = [scale, Filter::BitWidthReduction, Filter::Byteshuffle];
        assert_eq!(
            inverses(&filters, &field(Datatype::Float64))[..2],
            ["Segments(Byteshuffle(Two))", "Widen { width: Two, is_signed: true }"]
        );
        let reinterpret = Some(Datatype::UInt16);
        let filters = [Filter::Delta { reinterpret }, Filter::PositiveDelta];
        let found = inverses(&filters, &field(Datatype::Float64));
        let delta = "Unpack(Delta(Deltas { width: Two, of_cells: true }))";
        assert_eq!(found, ["UndoPositiveDelta(Two)", delta]);
        let filters = [Filter::Xor, Filter::Delta { reinterpret }];
        let found = inverses(&filters, &field(Datatype::Int16));
        assert_eq!(found[0], delta.replace("true", "false"));
        let filters = [Filter::Xor, Filter::BitWidthReduction];
        let found = inverses(&filters, &field(Datatype::Float32));
        assert_eq!(found, ["Widen { width: Four, is_signed: true }", "Segments(Xor(Four))"]);
    }

    #[test]
    fn window_filters_pass_some_types_on() {
        let date = Datatype::DateTime(TimeUnit::Day);
        let mut old_date = field(date);
        old_date.fragment_version = 19;
        for (field, reduced, added_up) in [
            (field(Datatype::Int8), false, true),
            (field(Datatype::Bool), false, true),
            (field(Datatype::Char), false, false),
            (field(Datatype::StringAscii), false, false),
            (field(Datatype::Float32), false, false),
            (field(Datatype::UInt64), true, true),
            (field(date), true, true),
            (old_date, false, false),
        ] {
            let is_active = |filter| inverses(&[filter], &field) != ["Copy"];
            assert_eq!(is_active(Filter::BitWidthReduction), reduced, "{field:?}");
            assert_eq!(is_active(Filter::PositiveDelta), added_up, "{field:?}");
        }
    }

    #[test]
    fn what_cannot_be_undone_is_refused() {
        let kind = |filters: &[Filter], datatype, var_strings| {
            let pipeline = Pipeline { filters: filters.to_vec() };
            let field = Field { var_strings, ..field(datatype) };
            pipeline.codec(&field, None).unwrap_err().kind()
        };
        let scale = Filter::ScaleFloat { scale: 1.0, offset: 0.0, width: Width::Two };
        let delta = Filter::Delta { reinterpret: None };
        for (filter, datatype) in [
            (Filter::Webp, Datatype::UInt8),
            (Filter::Dictionary, Datatype::StringAscii),
            (scale, Datatype::Int16),
            (delta, Datatype::Float64),
        ] {
            assert_eq!(kind(&[filter], datatype, false), ErrorKind::Unsupported);
        }
        let late = [Filter::Noop, Filter::RunLength];
        assert_eq!(kind(&late, Datatype::StringAscii, true), ErrorKind::Unsupported);
        assert_eq!(kind(&[Filter::AesGcm], Datatype::Char, false), ErrorKind::Usage);
    }

    #[test]
    fn a_key_adds_the_cipher_once() {
        let key = EncryptionKey::new(&[1; 32]).unwrap();
        for filters in [vec![], vec![Filter::AesGcm]] {
            let codec = Pipeline { filters }.codec(&field(Datatype::Int8), Some(&key)).unwrap();
            assert_eq!(codec.to_string(), "aes-256-gcm");
            assert_eq!(codec.stages().len(), 1);
        }
    }

    #[test]
    fn strings_drop_offsets_by_type_and_version() {
        let drops = |filter, datatype, version| {
            let pipeline = Pipeline { filters: vec![filter, Filter::Lz4] };
            drops_offsets(&pipeline, datatype, version)
        };
        let (ascii, utf8) = (Datatype::StringAscii, Datatype::StringUtf8);
        assert!(drops(Filter::RunLength, ascii, 12) && !drops(Filter::RunLength, ascii, 11));
        assert!(drops(Filter::Dictionary, ascii, 13) && !drops(Filter::Dictionary, ascii, 12));
        assert!(drops(Filter::RunLength, utf8, 17) && !drops(Filter::Dictionary, utf8, 16));
        assert!(!drops(Filter::Lz4, ascii, 22) && !drops(Filter::RunLength, Datatype::Char, 22));
    }
}
