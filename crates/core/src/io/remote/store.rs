//! [`RemoteStore`]: the requests of a session to one store.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::access::Remote;
use super::cached_range::CachedRange;
use super::counts::RequestCounts;
use super::fault::Fault;
use super::get::{Get, Patience};
use super::identity::Identity;
use super::limits::RemoteLimits;
use super::merge::Requests;
use super::metadata_cache::{Key, MetadataCache};
use super::threads;
use super::under_way::{Began, ended};
use crate::error::Result;
use crate::io::{ByteRange, document_too_long, is_not_found};

/// The bytes that opening an object fetches: both ends of a small file, or the head of a large one.
const OPEN_BYTES: u64 = 128 << 10;
/// The part of the timeout to wait before a request is tried again; it doubles with each try.
const FIRST_PAUSE: u32 = 300;

/// An object store, as a session reads it: see [`Remote::store`].
///
/// `From` makes one that belongs to no session.
#[derive(Debug, Clone)]
pub struct RemoteStore {
    store: Arc<dyn ObjectStore>,
    /// The number of the store in its session.
    number: u64,
    pub(super) remote: Remote,
}

/// An object that was opened.
#[derive(Debug)]
pub(in crate::io) struct OpenedObject {
    pub(in crate::io) identity: Identity,
    /// All bytes, if the server cannot send parts.
    pub(in crate::io) whole: Option<Bytes>,
}

impl From<Arc<dyn ObjectStore>> for RemoteStore {
    fn from(store: Arc<dyn ObjectStore>) -> Self {
        Remote::default().store(store)
    }
}

impl<T: ObjectStore> From<Arc<T>> for RemoteStore {
    fn from(store: Arc<T>) -> Self {
        let store: Arc<dyn ObjectStore> = store;
        store.into()
    }
}

impl Remote {
    /// Returns a store whose requests obey the session's limits, and are counted.
    ///
    /// Another store for the same URL shares nothing with it, because it may have other credentials.
    pub fn store(&self, store: Arc<dyn ObjectStore>) -> RemoteStore {
        RemoteStore { number: self.number(&store), store, remote: self.clone() }
    }
}

impl RemoteStore {
    /// Returns the store itself, for requests that write.
    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    pub(super) fn key(&self, path: &Path) -> Key {
        (self.number, path.clone())
    }

    pub(super) fn limits(&self) -> RemoteLimits {
        self.remote.limits()
    }

    pub(super) fn known(&self) -> &MetadataCache {
        self.remote.known()
    }

    /// Forgets all about an object that is about to be written.
    pub(in crate::io) fn forget(&self, path: &Path) {
        self.known().forget(&self.key(path));
    }

    /// Notes an object of a listing.
    pub(crate) fn learn(&self, object: &ObjectMeta) {
        let (key, identity) = (self.key(&object.location), Identity::from_object(object));
        self.known().learn(&key, identity, self.limits().cache);
    }

    /// Opens an object: finds its identity, with at most one request.
    ///
    /// # Errors
    /// `Io` if the object does not exist or cannot be read.
    pub(in crate::io) async fn open(&self, path: &Path) -> Result<OpenedObject> {
        let key = self.key(path);
        if let Some(identity) = self.known().recent(&key, self.limits().check) {
            return Ok(OpenedObject { identity, whole: None });
        }
        // One byte of a known object shows whether it is still the same.
        let len = if self.known().identity(&key).is_some() { 1 } else { OPEN_BYTES };
        let head = ByteRange::Bounded(0..len);
        let fault = match self.get(path, &head, None, u64::MAX).await {
            Ok((bytes, identity)) => {
                self.known().learn(&key, identity.clone(), self.limits().cache);
                self.keep(&key, &identity, 0, &bytes);
                return Ok(OpenedObject { identity, whole: None });
            }
            Err(failed) => failed,
        };
        let opened = match &fault.0 {
            it if it.refuses_ranges() => self.open_whole(path).await,
            it if it.may_be_beyond() => self.open_empty(path).await.ok_or(fault),
            _ => Err(fault),
        };
        opened.map_err(|(fault, tries)| fault.error("open the object", tries))
    }

    /// Opens an object of which a first part cannot be requested, because it is empty.
    async fn open_empty(&self, path: &Path) -> Option<OpenedObject> {
        let (store, path) = (self.clone(), path.clone());
        let head = async move {
            let patience = Patience::new(store.limits().timeout);
            patience.wait(store.store.head(&path)).await.ok()?.ok()
        };
        let head = threads::run(head).await.ok()??;
        self.remote.count(&RequestCounts { requests: 1, ..Default::default() });
        (head.size == 0)
            .then(|| OpenedObject { identity: Identity::from_object(&head), whole: None })
    }

    /// Returns the present identity of an object; `None` if it is absent. One that was confirmed recently needs no request.
    ///
    /// # Errors
    /// `Io` if the object cannot be read.
    pub(in crate::io) async fn confirm(&self, path: &Path) -> Result<Option<Identity>> {
        match self.open(path).await {
            Ok(opened) => Ok(Some(opened.identity)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads all of an object from a server that cannot send parts.
    async fn open_whole(&self, path: &Path) -> Result<OpenedObject, (Fault, usize)> {
        let most = self.limits().cache as u64;
        let (bytes, identity) = self.get(path, &ByteRange::Whole, None, most).await?;
        Ok(OpenedObject { identity, whole: Some(bytes) })
    }

    /// Returns the identity of an object that was listed or opened; `None` if it must be opened.
    pub(in crate::io) fn listed(&self, path: &Path) -> Option<Identity> {
        self.known().identity(&self.key(path))
    }

    /// Whether a document was absent when the session asked for it.
    pub(in crate::io) fn is_known_absent(&self, path: &Path) -> bool {
        self.known().is_absent(&self.key(path))
    }

    /// Notes that a document is absent.
    pub(in crate::io) fn note_absent(&self, path: &Path) {
        self.known().note_absent(self.key(path));
    }

    /// Forgets which documents below a folder are absent; returns whether any was.
    pub(in crate::io) fn forget_absent(&self, folder: &Path) -> bool {
        self.known().forget_absent(&self.key(folder))
    }

    /// Returns the first bytes of an object, if they are kept.
    pub(in crate::io) fn fetched_head(&self, path: &Path, identity: &Identity) -> Option<Bytes> {
        let head = 0..identity.size.min(OPEN_BYTES);
        self.known().bytes(&self.key(path), identity, &head)
    }

    /// Reads ranges of an open object, in order. Keeps the bytes for later reads if `keep`, which is for
    /// metadata. Payloads that need no request are confirmed by one, unless that was done recently.
    ///
    /// # Errors
    /// `Io` if bytes cannot be read, or the object is another one than when it was opened.
    pub(in crate::io) async fn read(
        &self,
        path: &Path,
        identity: &Identity,
        ranges: &[Range<u64>],
        keep: bool,
    ) -> Result<Vec<Bytes>> {
        let key = self.key(path);
        let held = |range: &Range<u64>| {
            CachedRange::new(range, self.known().pieces(&key, identity, range))
        };
        let hold = || ranges.iter().map(held).collect::<Vec<CachedRange>>();
        let missing = |replies: &[CachedRange]| {
            replies.iter().flat_map(CachedRange::missing).collect::<Vec<_>>()
        };
        let _began = self.begin(&key, || missing(&hold()), keep).await;
        let replies = hold();
        let held: usize = replies.iter().map(CachedRange::len).sum();
        let missing = missing(&replies);
        let is_recent = || self.known().recent(&key, self.limits().check).is_some();
        if missing.is_empty() && held > 0 && !keep && !is_recent() {
            // No request would notice that the object was replaced.
            self.part(path, identity, 0..1).await?;
            self.known().learn(&key, identity.clone(), self.limits().cache);
        }
        // Bytes that are kept are not requested again to join two ranges.
        let is_kept = |gap: &Range<u64>| !self.known().pieces(&key, identity, gap).is_empty();
        let requests = Requests::new(&missing, &self.limits(), is_kept);
        self.remote.count(&RequestCounts {
            bytes_cached: held as u64,
            bytes_wasted: requests.wasted,
            ..Default::default()
        });
        let part = |range: &Range<u64>| self.part(path, identity, range.clone());
        let parts: Vec<_> = requests.ranges.iter().map(part).collect();
        let parts = stream::iter(parts).buffered(self.limits().requests.max(1));
        let parts: Vec<Bytes> = parts.try_collect().await?;
        for (range, bytes) in requests.ranges.iter().zip(&parts).filter(|_| keep) {
            self.keep(&key, identity, range.start, bytes);
        }
        let whole = |reply: CachedRange| reply.whole(|missing| requests.cut(missing, &parts));
        let complete: Option<Vec<Bytes>> = replies.into_iter().map(whole).collect();
        complete.ok_or_else(|| crate::Error::internal("a request lacks bytes of a range"))
    }

    /// Waits for requests for metadata that have some of the missing bytes. Then begins one for the bytes that are still
    /// missing, if they will be kept.
    async fn begin(
        &self,
        key: &Key,
        missing: impl Fn() -> Vec<Range<u64>>,
        keep: bool,
    ) -> Option<Began<'_>> {
        loop {
            let missing = missing();
            if missing.is_empty() {
                return None;
            }
            match self.remote.under_way().begin(key, &missing) {
                Ok(began) => return keep.then_some(began),
                Err(request) => {
                    if !ended(request).await {
                        return None;
                    }
                }
            }
        }
    }

    /// Reads one range of an open object by one request.
    async fn part(&self, path: &Path, identity: &Identity, range: Range<u64>) -> Result<Bytes> {
        let what = ByteRange::Bounded(range.clone());
        match self.get(path, &what, Some(identity.clone()), u64::MAX).await {
            Ok((bytes, _)) => Ok(bytes),
            Err((fault, tries)) => {
                if matches!(fault, Fault::Changed(_)) {
                    self.forget(path);
                }
                Err(fault.error(&format!("read bytes {range:?} of the object"), tries))
            }
        }
    }

    /// Reads an object whole or from its end, without opening it; `None` if the server cannot do this. Keeps the bytes
    /// for later reads if `keep`, which is for metadata.
    ///
    /// # Errors
    /// `Io` if the object does not exist, cannot be read, or has more than `most` bytes.
    pub(in crate::io) async fn read_unopened(
        &self,
        path: &Path,
        range: &ByteRange,
        keep: bool,
        most: u64,
    ) -> Result<Option<Bytes>> {
        let key = self.key(path);
        if let Some(bytes) = self.kept(path, range, keep).await {
            let bytes_cached = bytes.len() as u64;
            self.remote.count(&RequestCounts { bytes_cached, ..Default::default() });
            return Ok(Some(bytes));
        }
        if keep && self.is_listed_absent(path) {
            let source = "a recent listing does not have it".into();
            let absent = StoreError::NotFound { path: path.to_string(), source };
            return Err(Fault::from(absent).error("read the object", 0));
        }
        let identity = self.known().recent(&key, self.limits().check);
        match self.get(path, range, identity, most).await {
            Ok((bytes, identity)) => {
                let start = range.within(identity.size).start;
                self.known().learn(&key, identity.clone(), self.limits().cache);
                if keep {
                    self.keep(&key, &identity, start, &bytes);
                }
                Ok(Some(bytes))
            }
            // A request for the whole object has no range to refuse.
            Err((fault, _)) if fault.refuses_ranges() && *range != ByteRange::Whole => Ok(None),
            Err((Fault::TooLong(size, most), _)) => Err(document_too_long(size, most)),
            Err((fault, tries)) => Err(fault.error("read the object", tries)),
        }
    }

    /// Returns kept bytes of an object that was not opened. If its identity is old and `confirm`, one byte of the object
    /// shows whether it is still the same.
    async fn kept(&self, path: &Path, range: &ByteRange, confirm: bool) -> Option<Bytes> {
        let key = self.key(path);
        let recent = self.known().recent(&key, self.limits().check);
        let is_recent = recent.is_some();
        let identity = recent.or_else(|| self.known().identity(&key).filter(|_| confirm))?;
        let bytes = self.known().bytes(&key, &identity, &range.within(identity.size))?;
        if !is_recent {
            // If the byte cannot be read, reading all of the object will tell why.
            self.part(path, &identity, 0..identity.size.min(1)).await.ok()?;
            self.known().learn(&key, identity, self.limits().cache);
        }
        Some(bytes)
    }

    fn keep(&self, key: &Key, identity: &Identity, start: u64, bytes: &Bytes) {
        self.known().keep(key, identity, start, bytes.clone(), self.limits().cache);
    }

    /// Requests bytes, and tries again after faults. Returns the fault and the number of tries at the end.
    pub(super) async fn get(
        &self,
        path: &Path,
        range: &ByteRange,
        identity: Option<Identity>,
        most: u64,
    ) -> Result<(Bytes, Identity), (Fault, usize)> {
        let (store, path, range) = (self.clone(), path.clone(), range.clone());
        let get = async move { store.get_here(&path, &range, identity, most).await };
        threads::run(get).await.map_err(|error| (Fault::Threads(error), 0))?
    }

    /// As `get`, on the thread of the caller.
    async fn get_here(
        &self,
        path: &Path,
        range: &ByteRange,
        identity: Option<Identity>,
        most: u64,
    ) -> Result<(Bytes, Identity), (Fault, usize)> {
        let budget = self.remote.budget();
        // The length of an object that is read whole is not known yet.
        let _admitted = budget.admit(range.most().unwrap_or(OPEN_BYTES)).await;
        let mut get = Get::new(&*self.store, path, range, identity, self.limits().timeout);
        get.most = most;
        let mut tries = 0;
        loop {
            tries += 1;
            let began = Instant::now();
            let got = Box::pin(get.attempt()).await;
            let time = began.elapsed();
            let bytes_fetched = got.as_ref().map_or(0, |(bytes, _)| bytes.len() as u64);
            let counts = RequestCounts { requests: 1, bytes_fetched, time, ..Default::default() };
            self.remote.count(&counts);
            match got {
                Ok(got) => return Ok(got),
                Err(fault) => self.pause(fault, tries, &get.patience, path).await?,
            }
        }
    }

    /// Waits before the next try of a request; fails if there is none.
    pub(super) async fn pause(
        &self,
        fault: Fault,
        tries: usize,
        patience: &Patience,
        path: &Path,
    ) -> Result<(), (Fault, usize)> {
        if !fault.is_transient() || tries >= self.limits().tries || patience.is_over() {
            return Err((fault, tries));
        }
        log::warn!("try {tries} of a request for {path} failed, and is repeated: {fault:?}");
        self.remote.count(&RequestCounts { retries: 1, ..Default::default() });
        let pause = self.limits().timeout / FIRST_PAUSE;
        tokio::time::sleep(pause * (1 << (tries - 1).min(6))).await;
        Ok(())
    }
}
