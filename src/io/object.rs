//! An object of an `object_store`: S3, GCS, Azure, HTTP, memory.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, ObjectStore, ObjectStoreExt,
    coalesce_ranges,
};

use super::{ByteRange, ByteSource, check_bounds};
use crate::error::{Error, Result};

/// One object of a store. Ranges that lie close together are fetched with one request.
///
/// Reads fail if the object is replaced after it was opened, instead of mixing old and new bytes: each
/// request requires the entity tag of the opened object. A store without tags cannot check this.
#[derive(Debug)]
pub struct ObjectSource {
    name: String,
    store: Arc<dyn ObjectStore>,
    path: Path,
    size: u64,
    /// The entity tag of the object when it was opened or listed; `None` if the store has none.
    e_tag: Option<String>,
}

impl ObjectSource {
    /// Requests the object's size from the store. Errors call the object `name`.
    ///
    /// # Errors
    /// `Io` if the object does not exist or the store cannot be reached.
    pub async fn open(name: String, store: Arc<dyn ObjectStore>, path: Path) -> Result<Self> {
        let head = store.head(&path).await;
        let head =
            head.map_err(|error| Error::io("cannot open the object", error).in_file(&name))?;
        Ok(Self { name, store, path, size: head.size, e_tag: head.e_tag })
    }

    /// Returns a source for an object from a listing, without a request.
    pub(super) fn listed(name: String, store: Arc<dyn ObjectStore>, object: ObjectMeta) -> Self {
        Self { name, store, path: object.location, size: object.size, e_tag: object.e_tag }
    }

    /// Reads one range by one request. An empty range needs none, and stores refuse it.
    async fn fetch(&self, range: Range<u64>) -> object_store::Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let read = get(&*self.store, &self.path, &range.into(), self.e_tag.clone()).await;
        read.map(|(bytes, _)| bytes)
    }
}

/// Reads bytes of an object, and its metadata. Fails if the object has another entity tag than `e_tag`.
pub(super) async fn get(
    store: &dyn ObjectStore,
    path: &Path,
    range: &ByteRange,
    e_tag: Option<String>,
) -> object_store::Result<(Bytes, ObjectMeta)> {
    let range = match range {
        ByteRange::Bounded(range) => Some(GetRange::Bounded(range.clone())),
        ByteRange::Suffix(len) => Some(GetRange::Suffix(*len)),
        ByteRange::Whole => None,
    };
    let options = GetOptions { range, if_match: e_tag, ..GetOptions::default() };
    let reply = store.get_opts(path, options).await?;
    let object = reply.meta.clone();
    Ok((reply.bytes().await?, object))
}

/// Returns the error for an object that could not be read.
pub(super) fn failed(name: &str, error: object_store::Error) -> Error {
    let what = match error {
        object_store::Error::Precondition { .. } => {
            "the object was replaced after it was opened; open it again"
        }
        _ => "cannot read the object",
    };
    Error::io(what, error).in_file(name)
}

#[async_trait]
impl ByteSource for ObjectSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        check_bounds(self, ranges)?;
        let fetch = |range| self.fetch(range);
        // Ranges with gaps of at most 1 MiB share a request: waiting costs more than unused bytes.
        let replies = coalesce_ranges(ranges, fetch, OBJECT_STORE_COALESCE_DEFAULT).await;
        let replies = replies.map_err(|error| failed(&self.name, error))?;
        let is_complete =
            |(it, range): (&Bytes, &Range<u64>)| it.len() as u64 == range.end - range.start;
        if replies.len() == ranges.len() && replies.iter().zip(ranges).all(is_complete) {
            return Ok(replies);
        }
        let cause = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        Err(Error::io("the store sent fewer bytes than requested", cause).in_file(&self.name))
    }
}
