//! Chunks that are read together, so that small ones do not cost a request each.

use bytes::Bytes;

use crate::error::Result;
use crate::format::Location;
use crate::tile::Objects;

/// Stored bytes and chunks that are read at once, unless a single chunk has more.
const MOST_BYTES: u64 = 4 << 20;
const MOST_CHUNKS: usize = 256;

/// Chunks that wait until there are enough of them.
#[derive(Debug)]
pub(crate) struct Batch<T> {
    chunks: Vec<T>,
    bytes: u64,
}

impl<T> Batch<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: vec![], bytes: 0 }
    }

    /// Adds a chunk of so many stored bytes; gives all that wait if they are enough.
    pub(crate) fn add(&mut self, chunk: T, bytes: u64) -> Option<Vec<T>> {
        self.chunks.push(chunk);
        self.bytes = self.bytes.saturating_add(bytes);
        let enough = self.bytes >= MOST_BYTES || self.chunks.len() >= MOST_CHUNKS;
        enough.then(|| self.take())
    }

    /// All that wait.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.bytes = 0;
        std::mem::take(&mut self.chunks)
    }
}

/// Reads what each chunk has of payloads. If that fails, each is read alone, which shows whose fault it is.
pub(crate) async fn read_each(
    objects: &Objects,
    wanted: &[Vec<Location>],
) -> Vec<Result<Vec<Bytes>>> {
    if let Ok(read) = objects.read(&wanted.concat()).await {
        let mut read = read.into_iter();
        return wanted.iter().map(|at| Ok(read.by_ref().take(at.len()).collect())).collect();
    }
    let mut replies = Vec::with_capacity(wanted.len());
    for at in wanted {
        replies.push(objects.read(at).await);
    }
    replies
}
