//! [`ZarrBlosc`]: how the codec `blosc` encodes chunks, and its metadata.

use gridfusion_core::Result;
use gridfusion_core::format::codecs::{BloscCompressor, BloscEncoder, BloscShuffle};
use serde_json::{Value, json};

/// The settings of the codec `blosc`.
///
/// ```
/// use gridfusion_core::format::codecs::BloscCompressor;
/// use gridfusion_zarr::{ZarrBlosc, ZarrCompressor, ZarrEncoding};
///
/// // As `zarr.codecs.BloscCodec()` of zarr-python.
/// let blosc = ZarrCompressor::Blosc(ZarrBlosc::new(BloscCompressor::Zstd, 5));
/// let encoding = ZarrEncoding { compressor: Some(blosc), ..ZarrEncoding::default() };
/// # let _ = encoding;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZarrBlosc {
    compressor: BloscCompressor,
    level: u8,
    /// `None` to choose by the bytes of a cell.
    shuffle: Option<BloscShuffle>,
    /// The bytes of an element, where an array has others than its cells.
    element: Option<u8>,
    /// The bytes of a block; 0 to choose them.
    block_len: u32,
}

impl ZarrBlosc {
    /// Makes settings of a compressor at a level from 0 to 9. Cells of several bytes are shuffled by bytes.
    pub fn new(compressor: BloscCompressor, level: u8) -> Self {
        Self { compressor, level, shuffle: None, element: None, block_len: 0 }
    }

    /// Sets the order of bytes for cells of all lengths.
    #[must_use]
    pub fn with_shuffle(self, shuffle: BloscShuffle) -> Self {
        Self { shuffle: Some(shuffle), ..self }
    }

    /// Returns the encoder of chunks whose cells have `word` bytes.
    ///
    /// # Errors
    /// `Usage` for a level above 9.
    pub(super) fn encoder(&self, word: usize) -> Result<BloscEncoder> {
        let element = self.element.unwrap_or(u8::try_from(word).unwrap_or(1));
        let encoder =
            BloscEncoder::try_new(self.compressor, self.level, self.shuffle(word), element)?;
        Ok(encoder.with_block_len(self.block_len))
    }

    fn shuffle(&self, word: usize) -> BloscShuffle {
        let chosen = if word > 1 { BloscShuffle::Bytes } else { BloscShuffle::None };
        self.shuffle.unwrap_or(chosen)
    }

    /// Returns the codec as metadata lists it.
    pub(super) fn codec(&self, word: usize) -> Value {
        let name = |(_, name): &(BloscCompressor, &'static str)| *name;
        let compressor = COMPRESSORS.iter().find(|it| it.0 == self.compressor).map(name);
        let shuffle = self.shuffle(word);
        json!({"name": "blosc", "configuration": {
            "typesize": self.element.map_or(word, usize::from),
            "cname": compressor,
            "clevel": self.level,
            "shuffle": SHUFFLES.iter().find(|it| it.0 == shuffle).map(|it| it.1),
            "blocksize": self.block_len,
        }})
    }

    /// Reads the configuration of the codec; `None` if chunks cannot be written so.
    pub(super) fn from_configuration(configuration: &Value) -> Option<Self> {
        let text = |name: &str| configuration[name].as_str();
        let compressor = match text("cname") {
            // Both write one format, in which LZ4HC only searches for longer.
            Some("lz4hc") => BloscCompressor::Lz4,
            name => COMPRESSORS.iter().find(|it| Some(it.1) == name)?.0,
        };
        let shuffle = SHUFFLES.iter().find(|it| Some(it.1) == text("shuffle"))?.0;
        let number = |name: &str| configuration[name].as_u64();
        let level = u8::try_from(number("clevel")?).ok();
        let element = match (number("typesize"), shuffle) {
            (None, BloscShuffle::None) => 1,
            (element, _) => u8::try_from(element?).ok().filter(|it| *it > 0)?,
        };
        Some(Self {
            compressor,
            level: level.filter(|level| *level <= BloscEncoder::MOST_LEVEL)?,
            shuffle: Some(shuffle),
            element: Some(element),
            block_len: u32::try_from(number("blocksize").unwrap_or(0)).ok()?,
        })
    }
}

const COMPRESSORS: [(BloscCompressor, &str); 3] = [
    (BloscCompressor::Zstd, "zstd"),
    (BloscCompressor::Lz4, "lz4"),
    (BloscCompressor::Zlib, "zlib"),
];

const SHUFFLES: [(BloscShuffle, &str); 3] = [
    (BloscShuffle::None, "noshuffle"),
    (BloscShuffle::Bytes, "shuffle"),
    (BloscShuffle::Bits, "bitshuffle"),
];
