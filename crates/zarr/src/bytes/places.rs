//! [`ObjectPlaces`]: where the objects of a store are, if they are not under their own names.
//!
//! ```text
//!   chunk ──▶ its object: a chunk, or the shard that holds it ──▶ tables that may have its place ──▶ bytes that are here, or
//!                                                                 read if they are not known         a range of another object
//! ```
//!
//! Reference files, and every other collection of documents and chunks that lie elsewhere, implement it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::array::ZarrArray;
use gridfusion_core::format::{
    ByteRange, Codec, DecodedPayload, Location, NOTHING, Payload, PayloadDecoder, Scratch,
};
use gridfusion_core::{Error, Result};

/// The places of the objects of a store.
pub trait ObjectPlaces: fmt::Debug + Send + Sync {
    /// Returns the tables that may have the place of an object of `array`, by its coordinates. Without any, the object is
    /// absent.
    ///
    /// # Errors
    /// `Corrupt` if the tables contradict each other; `Unsupported` for objects whose places cannot be found.
    fn tables(&self, array: &ZarrArray, object: &[u64]) -> Result<Vec<KnownTable>>;

    /// Parses the table that was read at `at`. It may be kept, so that it need not be read again.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be parsed.
    fn parse(&self, at: &Location, bytes: Bytes) -> Result<Arc<dyn PlaceTable>> {
        let _ = bytes;
        Err(Error::internal(format!("a table of places at {}", at.object)))
    }
}

/// A table of places, or where it is.
#[derive(Debug, Clone)]
pub enum KnownTable {
    /// The table.
    Here(Arc<dyn PlaceTable>),
    /// It must be read first.
    At(Location),
}

/// The places of some objects.
pub trait PlaceTable: fmt::Debug + Send + Sync {
    /// Returns the place of an object of `array`, by its coordinates; `None` if the table does not have it.
    ///
    /// # Errors
    /// `Corrupt` if the table contradicts itself.
    fn place(&self, array: &ZarrArray, object: &[u64]) -> Result<Option<ObjectPlace>>;
}

/// Where the bytes of an object are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectPlace {
    /// These are the bytes.
    Here(Bytes),
    /// In this range of another object.
    At(Location),
    /// They must be unpacked.
    Packed(PackedObject),
}

/// The way in which one object is packed in other bytes.
pub trait Packing: fmt::Debug + Send + Sync {
    /// Returns the length of the object.
    fn object_len(&self) -> u64;

    /// Returns a part of the object from the bytes that have all of it. May use the memory `spare`.
    ///
    /// # Errors
    /// `Corrupt` if they cannot be unpacked.
    fn unpack(&self, packed: &Bytes, part: Range<u64>, spare: Vec<u8>) -> Result<Bytes>;
}

/// A part of an object that is packed.
#[derive(Debug, Clone)]
pub struct PackedObject {
    at: Location,
    packing: Arc<dyn Packing>,
    part: Range<u64>,
}

impl PackedObject {
    /// Returns an object that is packed in the bytes at a location.
    pub fn new(at: Location, packing: Arc<dyn Packing>) -> Self {
        let part = 0..packing.object_len();
        Self { at, packing, part }
    }
}

impl PartialEq for PackedObject {
    fn eq(&self, other: &Self) -> bool {
        let is_same = Arc::ptr_eq(&self.packing, &other.packing);
        is_same && self.at == other.at && self.part == other.part
    }
}

impl Eq for PackedObject {}

impl ObjectPlace {
    /// Returns the place of a part of the object.
    ///
    /// # Errors
    /// `Corrupt` if the object ends before the part does.
    pub(super) fn part(&self, part: ByteRange) -> Result<Self> {
        let inside = |part: &ByteRange, size: u64| match part.within(size) {
            range if range.start <= range.end && range.end <= size => Ok(range),
            range => {
                let message = format!("bytes {range:?} of an object of {size} bytes");
                Err(Error::corrupt_region("places of chunks", message))
            }
        };
        Ok(match self {
            Self::Here(bytes) => {
                let range = inside(&part, bytes.len() as u64)?;
                Self::Here(bytes.slice(range.start as usize..range.end as usize))
            }
            Self::Packed(packed) => {
                let whole = &packed.part;
                let range = inside(&part, whole.end.saturating_sub(whole.start))?;
                let part = whole.start + range.start..whole.start + range.end;
                Self::Packed(PackedObject { part, ..packed.clone() })
            }
            Self::At(Location { member, object, range: ByteRange::Bounded(whole) }) => {
                let range = inside(&part, whole.end.saturating_sub(whole.start))?;
                let range = whole.start + range.start..whole.start + range.end;
                Self::At(Location {
                    member: *member,
                    object: Arc::clone(object),
                    range: range.into(),
                })
            }
            Self::At(at) => match (&at.range, part) {
                (ByteRange::Whole, part) => Self::At(Location { range: part, ..at.clone() }),
                (_, ByteRange::Whole) => Self::At(at.clone()),
                _ => return Err(Error::internal("a part of the end of an object")),
            },
        })
    }

    /// Returns the location of bytes that must be read to get those of the object.
    pub(super) fn location(&self) -> Option<&Location> {
        match self {
            Self::Here(_) => None,
            Self::At(at) | Self::Packed(PackedObject { at, .. }) => Some(at),
        }
    }

    /// Returns the bytes of the object, from those at its location.
    pub(super) fn bytes(&self, read: Bytes) -> Result<Bytes> {
        match self {
            Self::Here(bytes) => Ok(bytes.clone()),
            Self::At(_) => Ok(read),
            Self::Packed(it) => it.packing.unpack(&read, it.part.clone(), vec![]),
        }
    }

    /// Makes `payload` read its bytes here.
    pub(super) fn fill(self, payload: &mut Payload) {
        match self {
            Self::Packed(packed) => {
                payload.at = packed.at.clone();
                let codec = std::mem::replace(&mut payload.codec, Codec::Raw);
                payload.codec = Codec::Custom(Arc::new(Unpacked { packed, codec }));
            }
            Self::At(at) => payload.at = at,
            Self::Here(bytes) => {
                let codec = std::mem::replace(&mut payload.codec, Codec::Raw);
                payload.codec = Codec::Custom(Arc::new(Inline { bytes, codec }));
                // No bytes are read, and none are at this place.
                payload.at = Location::new(NOTHING, 0..0);
            }
        }
    }
}

/// A decoder of bytes that are here.
#[derive(Debug)]
struct Inline {
    bytes: Bytes,
    codec: Codec,
}

impl fmt::Display for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.codec.fmt(f)
    }
}

impl PayloadDecoder for Inline {
    fn knows_length(&self) -> bool {
        self.codec.knows_length()
    }

    fn held_bytes(&self) -> Option<u64> {
        Some(self.bytes.len() as u64)
    }

    fn decode(
        &self,
        _: &Bytes,
        raw_len: u64,
        _: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        self.codec.decode(self.bytes.clone(), raw_len, 0, spare, scratch)
    }
}

/// A decoder of bytes that must be unpacked first.
#[derive(Debug)]
struct Unpacked {
    packed: PackedObject,
    codec: Codec,
}

impl fmt::Display for Unpacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.codec.fmt(f)
    }
}

/// The greatest ratio of encoded to decoded bytes: codecs may widen numbers eightfold, and write them as text.
const MOST_ENCODED: u64 = 16;

/// The bytes that an encoding may add, however few cells there are.
const OVERHEAD: u64 = 1 << 16;

impl PayloadDecoder for Unpacked {
    fn knows_length(&self) -> bool {
        self.codec.knows_length()
    }

    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let PackedObject { packing, part, .. } = &self.packed;
        let len = part.end.saturating_sub(part.start);
        let most = raw_len.saturating_mul(MOST_ENCODED).saturating_add(OVERHEAD);
        if self.knows_length() && len > most {
            let message = format!("{len} bytes for a chunk of {raw_len} bytes");
            return Err(Error::corrupt("packed chunk", offset, message));
        }
        let (for_packing, for_codec) = match self.codec.is_raw() {
            true => (spare, vec![]),
            false => (vec![], spare),
        };
        let bytes = packing.unpack(stored, part.clone(), for_packing)?;
        self.codec.decode(bytes, raw_len, offset, for_codec, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_objects() {
        let at = |range: ByteRange| ObjectPlace::At(Location::new("x", range));
        let suffix = ByteRange::Suffix(3);
        for (whole, part, expected) in [
            (ByteRange::from(10..20), suffix.clone(), Some(ByteRange::from(17..20))),
            (ByteRange::from(10..20), ByteRange::from(2..10), Some(ByteRange::from(12..20))),
            (ByteRange::from(10..20), ByteRange::from(2..11), None),
            (ByteRange::from(10..20), ByteRange::Whole, Some(ByteRange::from(10..20))),
            (ByteRange::Whole, suffix.clone(), Some(suffix)),
        ] {
            let part = at(whole).part(part).ok();
            assert_eq!(part, expected.map(at));
        }
        let here = ObjectPlace::Here("01234".into());
        assert_eq!(here.part(ByteRange::Suffix(2)).unwrap(), ObjectPlace::Here("34".into()));
        assert!(here.part(ByteRange::from(3..6)).is_err());
    }
}
