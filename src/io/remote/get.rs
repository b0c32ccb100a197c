//! One request for bytes of an object: tried again after faults, and never waiting for ever.
//!
//! ```text
//!   try 1   ├── 3 MiB ──✕ the connection breaks
//!   try 2               ├──── the rest ────┤      continues, if it is still the same object
//! ```

use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};

use super::fault::Fault;
use super::identity::Identity;
use crate::io::ByteRange;

/// So many bytes count as progress. A server that sends single bytes has stalled too.
const PROGRESS_BYTES: usize = 16 << 10;

/// A request for bytes of an object, and what earlier tries of it have brought.
#[derive(Debug)]
pub(super) struct Get<'a> {
    pub(super) store: &'a dyn ObjectStore,
    pub(super) path: &'a Path,
    pub(super) range: &'a ByteRange,
    /// The identity of the opened object; `None` before it is opened.
    pub(super) identity: Option<Identity>,
    /// The most bytes that may come.
    pub(super) most: u64,
    pub(super) patience: Patience,
    /// The bytes of the object that the request is for, once a reply has told.
    at: Option<Range<u64>>,
    received: BytesMut,
}

impl<'a> Get<'a> {
    pub(super) fn new(
        store: &'a dyn ObjectStore,
        path: &'a Path,
        range: &'a ByteRange,
        identity: Option<Identity>,
        timeout: Duration,
    ) -> Self {
        let (most, patience) = (u64::MAX, Patience::new(timeout));
        Self { store, path, range, identity, most, patience, at: None, received: BytesMut::new() }
    }

    /// Requests the bytes that are missing.
    pub(super) async fn attempt(&mut self) -> Result<(Bytes, Identity), Fault> {
        let range = match (&self.at, self.range) {
            (Some(at), _) => Some(GetRange::Bounded(at.start + self.received.len() as u64..at.end)),
            (None, ByteRange::Bounded(range)) => Some(GetRange::Bounded(range.clone())),
            (None, ByteRange::Suffix(len)) => Some(GetRange::Suffix(*len)),
            (None, ByteRange::Whole) => None,
        };
        let if_match = self.identity.as_ref().and_then(Identity::if_match);
        let options = GetOptions { range, if_match, ..GetOptions::default() };
        let reply = self.patience.wait(self.store.get_opts(self.path, options)).await??;
        let identity = Identity::of(&reply.meta);
        // Not all servers know `If-Match`, so every reply is compared.
        if self.identity.as_ref().is_some_and(|known| !known.is_same(&identity)) {
            return Err(Fault::Changed);
        }
        self.identity = Some(identity.clone());
        let at = self.place(&reply)?;
        let bytes = self.receive(reply, at.end - at.start).await?;
        Ok((bytes, identity))
    }

    /// Returns the range that all tries together ask for. Fails if the reply has other bytes.
    fn place(&mut self, reply: &GetResult) -> Result<Range<u64>, Fault> {
        let (size, got) = (reply.meta.size, reply.range.clone());
        let expected = match &self.at {
            Some(at) => at.start + self.received.len() as u64..at.end,
            None => {
                let all = self.range.within(size);
                all.start..all.end.min(size)
            }
        };
        if got != expected {
            return Err(Fault::Wrong);
        }
        if got.end - got.start > self.most {
            return Err(Fault::TooLong(got.end - got.start, self.most));
        }
        Ok(self.at.get_or_insert(got).clone())
    }

    /// Receives the body of a reply, after which `len` bytes must have come.
    async fn receive(&mut self, reply: GetResult, len: u64) -> Result<Bytes, Fault> {
        let mut body = reply.into_stream();
        while let Some(part) = self.patience.wait(body.next()).await? {
            let part = part?;
            let total = (self.received.len() + part.len()) as u64;
            if total > len {
                return Err(Fault::Wrong);
            }
            self.patience.received(part.len());
            if part.len() as u64 == len {
                return Ok(part);
            }
            if self.received.is_empty() {
                // A server may announce more than it ever sends.
                self.received.reserve(len.min(64 << 20) as usize);
            }
            self.received.extend_from_slice(&part);
        }
        match self.received.len() as u64 {
            got if got == len => Ok(std::mem::take(&mut self.received).freeze()),
            got => Err(Fault::Short(got, len)),
        }
    }
}

/// How long a request waits for progress, over all of its tries.
#[derive(Debug)]
pub(super) struct Patience {
    timeout: Duration,
    /// The end of the time without progress.
    until: Instant,
    /// Bytes that came since the last progress.
    since: usize,
}

impl Patience {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, until: Instant::now() + timeout, since: 0 }
    }

    /// Whether the time without progress is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    fn received(&mut self, bytes: usize) {
        self.since += bytes;
        if self.since >= PROGRESS_BYTES {
            (self.since, self.until) = (0, Instant::now() + self.timeout);
        }
    }

    /// Waits for `work`. A single wait may take half of the time only, so that another try is possible.
    pub(super) async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        let left = self.until.saturating_duration_since(Instant::now());
        let waited = tokio::time::timeout(left.min(self.timeout / 2), work).await;
        waited.map_err(|_| Fault::Stalled(self.timeout))
    }
}
