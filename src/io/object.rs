//! An object of an `object_store`: S3, GCS, Azure, HTTP, memory.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::{ByteSource, check_bounds};
use crate::error::{Error, Result};

/// One object of a store. Ranges that lie close together are fetched with one request.
#[derive(Debug)]
pub struct ObjectSource {
    name: String,
    store: Arc<dyn ObjectStore>,
    path: Path,
    size: u64,
}

impl ObjectSource {
    /// Asks the store for the object's size; `name` is what errors call it.
    ///
    /// # Errors
    /// `Io` if the object is not there or the store cannot be reached.
    pub async fn open(name: String, store: Arc<dyn ObjectStore>, path: Path) -> Result<Self> {
        let head = store.head(&path).await;
        let size =
            head.map_err(|error| Error::io("cannot open the object", error).in_file(&name))?.size;
        Ok(Self { name, store, path, size })
    }
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
        let failed = |error| Error::io("cannot read the object", error).in_file(&self.name);
        let replies = self.store.get_ranges(&self.path, ranges).await.map_err(failed)?;
        let complete = replies.len() == ranges.len()
            && replies
                .iter()
                .zip(ranges)
                .all(|(it, range)| it.len() as u64 == range.end - range.start);
        if complete {
            return Ok(replies);
        }
        let cause = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        Err(Error::io("the store sent fewer bytes than were asked for", cause).in_file(&self.name))
    }
}
