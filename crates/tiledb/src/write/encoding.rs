//! [`TileDbEncoding`]: the filters of the cells of a new array.

use gridfusion_core::format::compress::Compressor;
use gridfusion_core::{Error, Result};

use crate::bytes::{Datatype, Filter, Pipeline};

/// A filter of cells. All of them give back exactly the cells that were written.
///
/// ```
/// use gridfusion_tiledb::{TileDbEncoding, TileDbFilter};
///
/// let filters = vec![TileDbFilter::DoubleDelta, TileDbFilter::Zstd(3)];
/// let encoding = TileDbEncoding { filters, ..TileDbEncoding::default() };
/// # let _ = encoding;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TileDbFilter {
    /// Zstandard, of levels -131072 to 22.
    Zstd(i32),
    /// zlib streams, of levels 0 to 9.
    Gzip(i32),
    /// bzip2, of levels 1 to 9.
    Bzip2(i32),
    /// Runs of equal cells.
    RunLength,
    /// Differences of integers and times.
    Delta,
    /// Differences of differences of integers and times.
    DoubleDelta,
    /// Integers and times less the least of a window, in fewer bytes.
    BitWidthReduction,
    /// The first bytes of all numbers, then the second ones, and so on.
    Byteshuffle,
    /// The first bits of all numbers, then the second ones, and so on.
    Bitshuffle,
    /// Each number combined with the one before it by exclusive or.
    Xor,
    /// MD5 of each chunk, which readers verify.
    Md5,
    /// SHA-256 of each chunk, which readers verify.
    Sha256,
}

/// How the cells of a new array are encoded.
///
/// ```
/// use gridfusion_tiledb::{TileDbEncoding, TileDbFilter};
///
/// let encoding = TileDbEncoding::default(); // zstd
/// assert_eq!(encoding.filters, [TileDbFilter::Zstd(3)]);
/// let filters = vec![TileDbFilter::Byteshuffle, TileDbFilter::Zstd(9), TileDbFilter::Sha256];
/// let checked = TileDbEncoding { filters, ..encoding };
/// # let _ = checked;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileDbEncoding {
    /// The filters of attributes, in the order in which they are applied. An attribute has those of them that its type allows: texts
    /// and floats have no differences, for instance.
    pub filters: Vec<TileDbFilter>,
    /// The most bytes of encoded chunks that are held in memory, because they came before chunks that precede them.
    pub max_bytes: u64,
    /// Whether labels can be appended along the first dimension. Its domain is then longer than the labels, and a current domain ends with
    /// them. `false` makes the domain as long as the labels.
    ///
    /// TileDB 2.30 cannot read such an array any more once it has consolidated it, unless the labels fill the last tile.
    pub can_grow: bool,
}

impl Default for TileDbEncoding {
    fn default() -> Self {
        Self { filters: vec![TileDbFilter::Zstd(3)], max_bytes: 1 << 30, can_grow: false }
    }
}

impl TileDbFilter {
    fn stored(self) -> Filter {
        match self {
            Self::Zstd(level) => Filter::Zstd { level },
            Self::Gzip(level) => Filter::Gzip { level },
            Self::Bzip2(level) => Filter::Bzip2 { level },
            Self::RunLength => Filter::RunLength,
            Self::Delta => Filter::Delta { reinterpret: None },
            Self::DoubleDelta => Filter::DoubleDelta { reinterpret: None },
            Self::BitWidthReduction => Filter::BitWidthReduction,
            Self::Byteshuffle => Filter::Byteshuffle,
            Self::Bitshuffle => Filter::Bitshuffle,
            Self::Xor => Filter::Xor,
            Self::Md5 => Filter::Md5,
            Self::Sha256 => Filter::Sha256,
        }
    }

    /// Whether the filter takes bytes of any length, whatever they mean.
    fn is_of_bytes(self) -> bool {
        matches!(self, Self::Zstd(_) | Self::Gzip(_) | Self::Bzip2(_) | Self::Md5 | Self::Sha256)
    }

    /// Whether the filter takes only whole cells, so that no other filter may come before it.
    fn is_of_whole_cells(self) -> bool {
        matches!(self, Self::RunLength | Self::Delta | Self::DoubleDelta | Self::Xor)
    }

    /// Whether the filter encodes values of a type.
    fn takes(self, datatype: Datatype) -> bool {
        match self {
            _ if self.is_of_bytes() => true,
            _ if datatype.is_string() => false,
            Self::RunLength | Self::Byteshuffle | Self::Bitshuffle | Self::Xor => true,
            _ => !datatype.is_float() && datatype != Datatype::Bool,
        }
    }
}

impl TileDbEncoding {
    /// Checks levels, and the order of filters.
    ///
    /// # Errors
    /// `Usage` if they are wrong.
    pub(super) fn check(&self) -> Result<()> {
        for (place, filter) in self.filters.iter().enumerate() {
            let compressor = match filter {
                TileDbFilter::Zstd(level) => Some((Compressor::Zstd, *level)),
                TileDbFilter::Gzip(level) => Some((Compressor::Gzip, *level)),
                TileDbFilter::Bzip2(level) => Some((Compressor::Bzip2, *level)),
                _ => None,
            };
            if let Some((compressor, level)) = compressor {
                compressor.compress(&[], level)?;
            }
            if filter.is_of_whole_cells() && place > 0 {
                return Err(Error::usage(format!(
                    "the filter {} takes whole cells, so it comes first, and not after {place} others",
                    filter.stored().name()
                )));
            }
        }
        /// More filters help nothing, and readers refuse too many.
        const MOST: usize = 16;
        match self.filters.len() > MOST {
            true => {
                let message = format!("{} filters, and at most {MOST}", self.filters.len());
                Err(Error::usage(message))
            }
            false => Ok(()),
        }
    }

    /// Returns the filters of values of a type.
    pub(super) fn pipeline(&self, datatype: Datatype) -> Pipeline {
        let filters = self.filters.iter().filter(|filter| filter.takes(datatype));
        Pipeline { filters: filters.map(|filter| filter.stored()).collect() }
    }

    /// Returns the filters of offsets and of validity: the compressors and checksums.
    pub(super) fn pipeline_of_bytes(&self) -> Pipeline {
        let filters = self.filters.iter().filter(|filter| filter.is_of_bytes());
        Pipeline { filters: filters.map(|filter| filter.stored()).collect() }
    }
}
