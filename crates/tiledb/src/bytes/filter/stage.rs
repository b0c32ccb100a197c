//! One type for the inverses of all filters.
//!
//! A stage takes a chunk and returns the chunk as it was before the filter: data and metadata are slices of
//! its targets, or of its input where they stay unchanged.
//!
//! | kind of inverse | data | metadata |
//! |---|---|---|
//! | `Check` | unchanged | without the digests |
//! | `Unpack` | unpacked | unpacked |
//! | `Strings` | unpacked | empty |
//! | all others | decoded | without the filter's own, which comes first |

use super::checksum::Checksum;
use super::chunk::{FilteredChunk, Targets};
use super::parts::Unpack;
use super::segments::SegmentInverse;
use super::strings::StringEncoding;
use super::window;
use super::word::Width;
use gridfusion_core::Result;
use gridfusion_core::format::compress::Contexts;

/// The inverse of one filter.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    /// The filter's name, for errors.
    pub(super) name: &'static str,
    pub(super) inverse: Inverse,
}

/// How a filter is undone.
#[derive(Debug, Clone)]
pub(super) enum Inverse {
    /// Only copies the data to its target, for pipelines without any inverse that writes.
    Copy,
    Check(Checksum),
    /// Undoes a compressor, a cipher or a delta filter.
    Unpack(Unpack),
    /// Undoes shuffling, xor or float scaling.
    Segments(SegmentInverse),
    /// Undoes bit width reduction.
    Widen {
        width: Width,
        is_signed: bool,
    },
    /// Undoes positive delta.
    UndoPositiveDelta(Width),
    Strings(StringEncoding),
}

impl Stage {
    /// Whether the stage writes new data, rather than passing on its input.
    pub(super) fn writes(&self) -> bool {
        !matches!(self.inverse, Inverse::Check(_))
    }

    /// Whether the stage also decodes offsets.
    pub(super) fn makes_offsets(&self) -> bool {
        matches!(self.inverse, Inverse::Strings(_))
    }

    /// Undoes the filter for a chunk; decoded strings append to `offsets`.
    pub(super) fn run<'a>(
        &self,
        chunk: FilteredChunk<'a>,
        targets: Targets<'a>,
        contexts: &mut Contexts,
        offsets: &mut Vec<u64>,
    ) -> Result<FilteredChunk<'a>> {
        match &self.inverse {
            Inverse::Copy => {
                let output = targets.data.claim(chunk.data.len() as u64)?;
                output.copy_from_slice(chunk.data);
                Ok(FilteredChunk { data: output, ..chunk })
            }
            Inverse::Check(checksum) => checksum.run(chunk),
            Inverse::Unpack(unpack) => unpack.run(chunk, targets, contexts),
            Inverse::Segments(inverse) => inverse.run(chunk, targets.data),
            Inverse::Widen { width, is_signed } => {
                window::widen(*width, *is_signed, chunk, targets.data)
            }
            Inverse::UndoPositiveDelta(width) => {
                window::undo_positive_delta(*width, chunk, targets.data)
            }
            Inverse::Strings(encoding) => encoding.run(chunk, targets, offsets),
        }
    }
}
