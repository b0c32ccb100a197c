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
use object_store::{Attribute, GetOptions, GetRange, GetResult, ObjectStore};

use super::fault::Fault;
use super::identity::Identity;
use crate::io::ByteRange;

/// So many bytes within the timeout count as progress. A server that sends single bytes has stalled too.
const PROGRESS_BYTES: usize = 16 << 10;
/// Encodings of replies that leave the bytes as they are. Some clients of S3 store the name of their way of uploading.
const NO_ENCODINGS: [&str; 3] = ["", "identity", "aws-chunked"];

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
        self.patience.begin_try();
        let reply = self.patience.wait(self.store.get_opts(self.path, options)).await??;
        check_content(&reply)?;
        let identity = Identity::from_object(&reply.meta);
        // Not all servers know `If-Match`, so every reply is compared.
        if let Some(known) = self.identity.as_ref().filter(|known| !known.is_same(&identity)) {
            return Err(Fault::Changed(known.difference(&identity)));
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
            let text =
                format!("it has bytes {got:?} of the object, and {expected:?} were asked for");
            return Err(Fault::Lie(text));
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
                return Err(Fault::Lie(format!("it announces {len} bytes, and has more")));
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
            // A connection that breaks is an error of the stream. This reply is complete, and too short.
            got => Err(Fault::Lie(format!("it announces {len} bytes, and ends after {got}"))),
        }
    }
}

/// Refuses a reply whose bytes are not those of the object: they are encoded, or in several parts.
fn check_content(reply: &GetResult) -> Result<(), Fault> {
    let attribute = |name| reply.attributes.get(&name).map(|value| value.as_ref().trim());
    let encoding = attribute(Attribute::ContentEncoding).unwrap_or_default();
    let is_none = |part: &str| NO_ENCODINGS.contains(&part.trim().to_ascii_lowercase().as_str());
    if !encoding.split(',').all(is_none) {
        return Err(Fault::Encoded(encoding.to_owned()));
    }
    match attribute(Attribute::ContentType) {
        Some(kind) if kind.to_ascii_lowercase().starts_with("multipart/byteranges") => {
            Err(Fault::Lie("it has several parts, and one was asked for".to_owned()))
        }
        _ => Ok(()),
    }
}

/// How long a request waits for progress, over all of its tries.
///
/// ```text
///   try 1   ├─ 9 KiB ─┼ 1 KiB ─┤            half of the timeout with few bytes: stalled, as without any
///   try 2                      ├── … ──┤    the other half
/// ```
#[derive(Debug)]
pub(super) struct Patience {
    timeout: Duration,
    /// The end of the time without progress.
    until: Instant,
    /// Bytes that came since the last progress.
    since: usize,
    /// The end of the time of this try, and the bytes that came in it; `None` for listings.
    of_try: Option<(Instant, usize)>,
}

impl Patience {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, until: Instant::now() + timeout, since: 0, of_try: None }
    }

    /// Whether the time without progress is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Begins a try. It may go on for half of the time while few bytes come, so that another try is possible.
    fn begin_try(&mut self) {
        self.of_try = Some((Instant::now() + self.timeout / 2, 0));
    }

    fn received(&mut self, bytes: usize) {
        let now = Instant::now();
        self.since += bytes;
        if self.since >= PROGRESS_BYTES {
            (self.since, self.until) = (0, now + self.timeout);
        }
        if let Some((until, since)) = &mut self.of_try {
            *since += bytes;
            if *since >= PROGRESS_BYTES / 2 {
                (*until, *since) = (now + self.timeout / 2, 0);
            }
        }
    }

    /// Waits for `work`. A single wait may take half of the time only, so that another try is possible.
    pub(super) async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        let until = self.of_try.map_or(self.until, |(until, _)| until.min(self.until));
        let left = until.saturating_duration_since(Instant::now());
        let waited = tokio::time::timeout(left.min(self.timeout / 2), work).await;
        let got = self.of_try.map_or(0, |(_, got)| got);
        waited.map_err(|_| Fault::Stalled(self.timeout, got))
    }
}
