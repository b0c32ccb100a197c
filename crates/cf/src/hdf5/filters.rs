//! Filters of chunks as steps of a pipeline.
//!
//! Numbers of filters: HDF5 File Format Specification version 3.0, IV.A.2.l "The Data Storage - Filter Pipeline
//! Message", and the registry of filters of The HDF Group. The meaning of the parameters: the source of each
//! filter.

use std::fmt;
use std::sync::Arc;

use super::parse::{AfterText, Filter, LibraryFilter};
use gridfusion_core::format::Codec;
use gridfusion_core::format::codecs::{BlockCompressor, Pipeline, Step, StepDecoder};
use gridfusion_core::{Error, Result};

/// The filters of a dataset.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    /// In the order in which they were applied.
    filters: Vec<Filter>,
    /// Bytes per stored cell.
    width: u64,
    /// The last step, such as for texts that other bytes than zeros follow.
    last: Option<Arc<dyn StepDecoder>>,
    /// The codec of chunks to which all filters were applied.
    usual: Codec,
}

impl Filters {
    /// Returns the filters of a dataset.
    ///
    /// # Errors
    /// `Unsupported` if one is unknown.
    pub(super) fn new(
        filters: Vec<Filter>,
        width: u64,
        last: Option<Arc<dyn StepDecoder>>,
    ) -> Result<Self> {
        if filters.len() > 32 {
            return Err(Error::corrupt_region("filter pipeline", "more than 32 filters"));
        }
        let mut this = Self { filters, width, last, usual: Codec::Raw };
        this.usual = this.make(0)?;
        Ok(this)
    }

    /// Returns the codec of a chunk; `skipped` has a bit per filter that was not applied.
    pub(super) fn codec(&self, skipped: u32) -> Result<Codec> {
        if skipped == 0 { Ok(self.usual.clone()) } else { self.make(skipped) }
    }

    /// Returns the codec of bytes to which no filter was applied.
    pub(super) fn plain(&self) -> Codec {
        Pipeline::codec(self.last().into_iter().collect())
    }

    /// Whether there are no filters.
    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    fn make(&self, skipped: u32) -> Result<Codec> {
        let applied = self.filters.iter().enumerate().filter(|(at, _)| skipped >> at & 1 == 0);
        let steps = applied.rev().map(|(_, filter)| step(filter, self.width));
        let mut steps = steps.collect::<Result<Vec<_>>>()?;
        steps.extend(self.last());
        Ok(Pipeline::codec(steps))
    }

    fn last(&self) -> Option<Step> {
        self.last.clone().map(Step::Custom)
    }
}

impl fmt::Display for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, filter) in self.filters.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            match known_name(filter.id) {
                Some(name) => write!(f, "{comma}{name}")?,
                None => write!(f, "{comma}filter {}", filter.id)?,
            }
        }
        Ok(())
    }
}

/// Returns the step that undoes a filter on cells of `width` bytes.
fn step(filter: &Filter, width: u64) -> Result<Step> {
    let parameter = |at: usize| filter.parameters.get(at).copied().unwrap_or_default();
    let element = |at: usize| match parameter(at) as usize {
        0 => width as usize,
        element => element,
    };
    Ok(match filter.id {
        1 => Step::Zlib,
        2 => Step::Shuffle { element: element(0) },
        3 => Step::Fletcher32Hdf5,
        id @ 4..=6 => Step::Custom(Arc::new(LibraryFilter {
            id,
            name: known_name(id).unwrap_or_default(),
            parameters: filter.parameters.clone(),
            element: width as usize,
        })),
        307 => Step::Bzip2,
        32000 => Step::Lzf,
        32001 => Step::Blosc,
        32004 => Step::Lz4Frames,
        32008 => Step::Bitshuffle {
            element: element(2),
            block: parameter(3) as usize,
            compressor: match parameter(4) {
                0 => BlockCompressor::None,
                2 => BlockCompressor::Lz4,
                3 => BlockCompressor::Zstd,
                other => return Err(unknown(filter, &format!(" with compressor {other}"))),
            },
        },
        32015 => Step::Zstd,
        _ => return Err(unknown(filter, "")),
    })
}

fn unknown(filter: &Filter, with: &str) -> Error {
    let name = filter.name.as_deref().or(known_name(filter.id));
    let name = name.map_or(String::new(), |name| format!(" ({name})"));
    Error::unsupported(format!(
        "filter {}{name}{with} of its chunks is not known; `h5repack -f GZIP=4` writes them with another",
        filter.id
    ))
}

fn known_name(id: u16) -> Option<&'static str> {
    Some(match id {
        1 => "deflate",
        2 => "shuffle",
        3 => "fletcher32",
        4 => "szip",
        5 => "n-bit",
        6 => "scale-offset",
        307 => "bzip2",
        32000 => "lzf",
        32001 => "blosc",
        32004 => "lz4",
        32008 => "bitshuffle",
        32013 => "zfp",
        32015 => "zstd",
        32017 => "sz",
        32024 => "sz3",
        32026 => "blosc2",
        _ => return None,
    })
}

impl StepDecoder for LibraryFilter {
    fn decode(&self, stored: &[u8], most: usize) -> std::result::Result<Vec<u8>, String> {
        self.undo(stored, most)
    }
}

/// Replaces the bytes after the ends of texts by zeros, which follow texts in tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trim {
    /// Bytes of a cell.
    pub(super) width: usize,
    pub(super) after: AfterText,
}

impl Trim {
    /// Replaces the bytes after the end of each text.
    pub(super) fn apply(self, texts: &mut [u8]) {
        for text in texts.chunks_mut(self.width.max(1)) {
            let end = match self.after {
                AfterText::Spaces => text
                    .iter()
                    .rposition(|byte| !matches!(byte, b' ' | 0))
                    .map_or(0, |last| last + 1),
                AfterText::ZeroAndAnything => {
                    text.iter().position(|byte| *byte == 0).unwrap_or(text.len())
                }
            };
            text.iter_mut().skip(end).for_each(|byte| *byte = 0);
        }
    }
}

impl StepDecoder for Trim {
    fn decode(&self, stored: &[u8], most: usize) -> std::result::Result<Vec<u8>, String> {
        if stored.len() > most {
            return Err(format!("{} bytes of text, expected {most}", stored.len()));
        }
        let mut texts = stored.to_vec();
        self.apply(&mut texts);
        Ok(texts)
    }
}

impl fmt::Display for Trim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.after {
            AfterText::Spaces => "without spaces at the end",
            AfterText::ZeroAndAnything => "up to the first zero",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(id: u16, parameters: &[u32]) -> Filter {
        Filter { id, name: Some("own name".to_owned()), parameters: parameters.to_vec() }
    }

    #[test]
    fn filters_are_undone_from_the_last_to_the_first() {
        let all = vec![filter(3, &[]), filter(2, &[4]), filter(1, &[6])];
        let filters = Filters::new(all, 4, None).unwrap();
        assert_eq!(filters.to_string(), "fletcher32, shuffle, deflate");
        assert_eq!(filters.codec(0).unwrap().to_string(), "fletcher32, shuffle 4, zlib");
        assert_eq!(filters.codec(0b100).unwrap().to_string(), "fletcher32, shuffle 4");
        assert_eq!(filters.codec(0b101).unwrap().to_string(), "shuffle 4");
        assert!(filters.codec(0b111).unwrap().is_raw() && filters.plain().is_raw());
    }

    #[test]
    fn unknown_filters_are_named() {
        let error = Filters::new(vec![filter(32013, &[])], 4, None).unwrap_err().to_string();
        assert!(error.contains("filter 32013 (own name)"), "{error}");
        let no_name = Filter { name: None, ..filter(32026, &[]) };
        let error = Filters::new(vec![no_name], 4, None).unwrap_err().to_string();
        assert!(error.contains("filter 32026 (blosc2)"), "{error}");
        assert!(Filters::new(vec![filter(32008, &[0, 0, 4, 0, 9])], 4, None).is_err());
        assert!(Filters::new(vec![filter(2, &[4]); 33], 4, None).is_err());
    }

    #[test]
    fn bytes_after_texts_become_zeros() {
        let spaces = Trim { width: 4, after: AfterText::Spaces };
        assert_eq!(
            spaces.decode(b"a b     abcd \0\0\0", 16).unwrap(),
            b"a b\0\0\0\0\0abcd\0\0\0\0"
        );
        assert!(spaces.decode(b"abcd", 3).is_err());
        let zero = Trim { width: 8, after: AfterText::ZeroAndAnything };
        assert_eq!(zero.decode(b"ab\0ger\0\0abcdefgh", 16).unwrap(), b"ab\0\0\0\0\0\0abcdefgh");
    }
}
