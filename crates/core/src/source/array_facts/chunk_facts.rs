//! The facts about one chunk.

use std::sync::Arc;

use super::columns::Column;
use super::object_sizes::ObjectSizes;
use crate::error::shown_location;
use crate::format::{NOTHING, Payload, StoredChunk};
use crate::tile::Objects;

/// The facts about one chunk of a variable, or about a tile of a sparse array.
#[derive(Debug, Clone)]
pub struct KnownChunk {
    /// The name of its dataset.
    pub dataset: Arc<str>,
    /// The name of its variable.
    pub variable: Arc<str>,
    /// Its coordinates in the chunk grid; in a sparse array, the numbers of the fragment and of the tile.
    pub chunk: Vec<u64>,
    /// The index of its first cell per dimension; `None` in a sparse array.
    pub start: Option<Vec<u64>>,
    /// The cells per dimension; in a sparse array, their number.
    pub shape: Vec<u64>,
    /// Where it is stored; `None` if nothing was asked about that.
    pub stored: Option<StoredFacts>,
    /// The number of cells that are NULL, NaN or the fill value; `None` without statistics.
    pub null_count: Option<u64>,
    /// The least stored element that is not NULL, in decimal; `None` without statistics.
    pub min: Option<String>,
    /// The greatest stored element that is not NULL, in decimal; `None` without statistics.
    pub max: Option<String>,
}

/// Where and how a chunk is stored. `None` stands for what is not known.
#[derive(Debug, Clone, Default)]
pub struct StoredFacts {
    /// The number of byte ranges that hold it; 0 if the chunk is not stored.
    pub pieces: Option<u64>,
    /// The path or URL of the object with the first piece.
    pub object: Option<String>,
    /// The place of the first piece in its object.
    pub file_offset: Option<u64>,
    /// The bytes of all pieces.
    pub stored_bytes: Option<u64>,
    /// The bytes of all pieces after decoding.
    pub raw_bytes: Option<u64>,
    /// The encoding of the first piece.
    pub codec: Option<String>,
}

/// A column of `array_chunks`.
type Fact = Column<KnownChunk>;

/// The columns of `array_chunks`.
pub static ARRAY_CHUNKS: &[Fact] = &[
    Fact::text("dataset", |it| Some(it.dataset.to_string())).required(),
    Fact::text("variable", |it| Some(it.variable.to_string())).required(),
    Fact::numbers("chunk", |it| Some(it.chunk.clone())).required(),
    Fact::numbers("start", |it| it.start.clone()),
    Fact::numbers("shape", |it| Some(it.shape.clone())).required(),
    Fact::number("pieces", |it| it.stored.as_ref()?.pieces).of_stored(),
    Fact::text("object", |it| it.stored.as_ref()?.object.clone()).of_stored(),
    Fact::number("file_offset", |it| it.stored.as_ref()?.file_offset).of_stored(),
    Fact::number("stored_bytes", |it| it.stored.as_ref()?.stored_bytes).of_stored(),
    Fact::number("raw_bytes", |it| it.stored.as_ref()?.raw_bytes).of_stored(),
    Fact::text("codec", |it| it.stored.as_ref()?.codec.clone()).of_stored(),
    Fact::number("null_count", |it| it.null_count).of_statistics(),
    Fact::text("min_value", |it| it.min.clone()).of_statistics(),
    Fact::text("max_value", |it| it.max.clone()).of_statistics(),
];

impl StoredFacts {
    /// Returns the facts about a located chunk. `sizes` are those of objects that are read whole.
    pub(super) fn new(stored: &StoredChunk, objects: &Objects, sizes: &ObjectSizes) -> Self {
        let mut facts = Self { pieces: Some(0), ..Self::default() };
        for layer in &stored.layers {
            for payload in layer.payloads() {
                let size = sizes.of(payload);
                match (size, layer.may_be_absent) {
                    // The object of the chunk is not among those that are listed.
                    (Size::Absent, true) => {}
                    (Size::Nothing, _) => {}
                    (size, may_be_absent) => facts.add(payload, size, may_be_absent, objects),
                }
            }
        }
        facts
    }

    /// Adds a piece, which may not exist if it `may_be_absent` and its size is not known.
    fn add(&mut self, payload: &Payload, size: Size, may_be_absent: bool, objects: &Objects) {
        let is_first = self.pieces == Some(0);
        let (bytes, is_known) = match size {
            Size::Bytes(bytes) => (Some(bytes), true),
            _ => (None, !may_be_absent),
        };
        let raw = payload.codec.knows_length().then_some(payload.raw_len).filter(|_| is_known);
        let sum = |total: Option<u64>, part: Option<u64>| total?.checked_add(part?);
        self.pieces = sum(self.pieces, is_known.then_some(1));
        if is_first {
            (self.stored_bytes, self.raw_bytes) = (bytes, raw);
            self.codec = Some(payload.codec.to_string());
            let is_elsewhere = *payload.at.object != *NOTHING;
            self.object = is_elsewhere.then(|| shown_location(&objects.location_of(&payload.at)));
            self.file_offset = payload.at.range.start().filter(|_| is_elsewhere);
        } else {
            self.stored_bytes = sum(self.stored_bytes, bytes);
            self.raw_bytes = sum(self.raw_bytes, raw);
        }
    }
}

/// The bytes of a piece, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// This number of bytes.
    Bytes(u64),
    /// Its object is not there.
    Absent,
    /// No bytes are stored: the codec makes the cells.
    Nothing,
    /// Nothing tells the length.
    Unknown,
}

impl ObjectSizes {
    /// Returns what is known of the bytes of a piece.
    fn of(&self, payload: &Payload) -> Size {
        if *payload.at.object == *NOTHING {
            return payload.codec.held_bytes().map_or(Size::Nothing, Size::Bytes);
        }
        match payload.at.range.most() {
            Some(bytes) => Size::Bytes(bytes),
            None => self.of_object(&payload.at.object),
        }
    }
}
