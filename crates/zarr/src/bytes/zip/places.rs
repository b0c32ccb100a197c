//! [`ZipPlaces`]: members as objects of a store.
//!
//! Chunks in shards need the places of their bytes, and so do parts of chunks that are not encoded. Then the headers of members
//! are read first, all at once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::directory::ZipDirectory;
use super::entry::Member;
use crate::bytes::array::ZarrArray;
use crate::bytes::places::{
    KnownTable, ObjectPlace, ObjectPlaces, PackedObject, Packing, PlaceTable,
};
use gridfusion_core::format::Location;
use gridfusion_core::{Error, Result};

/// The members of a folder in an archive as the objects of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ZipPlaces {
    directory: Arc<ZipDirectory>,
    /// The folder.
    folder: Arc<str>,
    /// Whether headers are cheap to read.
    reads_headers: bool,
}

impl ZipPlaces {
    /// Returns the places of the store in a folder. `reads_headers` tells that they are read first for all chunks that gain by it.
    pub fn new(directory: Arc<ZipDirectory>, folder: &str, reads_headers: bool) -> Self {
        Self { directory, folder: folder.into(), reads_headers }
    }

    /// Returns the number of the member that is an object of an array.
    fn member_of(&self, array: &ZarrArray, object: &[u64]) -> Option<(u32, &Member)> {
        let name = array.object(object);
        let number = match self.folder.is_empty() {
            true => self.directory.number(&name),
            false => self.directory.number(&format!("{}/{name}", self.folder)),
        }?;
        Some((number, self.directory.member(number)?))
    }

    fn packed(&self, number: u32) -> PackedMember {
        PackedMember { directory: Arc::clone(&self.directory), number }
    }

    /// Whether the place of the data must be known before chunks of the array are read.
    fn needs_header(&self, array: &ZarrArray, member: &Member) -> bool {
        let is_cut = array.shard_shape().is_some() || (self.reads_headers && array.is_raw());
        is_cut && member.is_stored() && member.data.load(Ordering::Relaxed) == 0
    }
}

impl ObjectPlaces for ZipPlaces {
    fn tables(&self, array: &ZarrArray, object: &[u64]) -> Result<Vec<KnownTable>> {
        let Some((number, member)) = self.member_of(array, object) else { return Ok(vec![]) };
        let readable = member.check_readable();
        readable.map_err(|error| error.about(&self.directory.shown(member)))?;
        Ok(vec![match self.needs_header(array, member) {
            true => KnownTable::At(Location::new("", member.header_span())),
            false => KnownTable::Here(Arc::new(self.packed(number))),
        }])
    }

    fn parse(&self, at: &Location, bytes: Bytes) -> Result<Arc<dyn PlaceTable>> {
        let number = self.directory.at(at.start());
        let member = number.and_then(|number| Some((number, self.directory.member(number)?)));
        let (number, member) = member.ok_or_else(|| Error::internal("a header of no member"))?;
        let len = self.directory.header_len(member, &bytes)?;
        self.directory.note_data(number, member.header + len);
        Ok(Arc::new(self.packed(number)))
    }
}

/// A member in its span, which is the place of one object.
#[derive(Debug, Clone)]
struct PackedMember {
    directory: Arc<ZipDirectory>,
    number: u32,
}

impl PackedMember {
    fn member(&self) -> Result<&Member> {
        let member = self.directory.member(self.number);
        member.ok_or_else(|| Error::internal("a member that does not exist"))
    }
}

impl PlaceTable for PackedMember {
    fn place(&self, _: &ZarrArray, _: &[u64]) -> Result<Option<ObjectPlace>> {
        let member = self.member()?;
        let data = member.data.load(Ordering::Relaxed);
        if data > 0 {
            let range = data..data + member.stored_len();
            return Ok(Some(ObjectPlace::At(Location::new("", range))));
        }
        let at = Location::new("", member.span());
        Ok(Some(ObjectPlace::Packed(PackedObject::new(at, Arc::new(self.clone())))))
    }
}

impl Packing for PackedMember {
    fn object_len(&self) -> u64 {
        self.member().map_or(0, Member::len)
    }

    fn unpack(&self, stored: &Bytes, part: Range<u64>, spare: Vec<u8>) -> Result<Bytes> {
        self.directory.part(self.member()?, stored, part, spare)
    }
}
