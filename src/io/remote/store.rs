//! [`RemoteStore`]: the requests of a session to one store.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::access::Remote;
use super::counts::RequestCounts;
use super::fault::Fault;
use super::get::{Get, Patience};
use super::identity::Identity;
use super::known::{Key, Known};
use super::limits::RemoteLimits;
use super::listing::Listing;
use super::merge::Requests;
use super::threads;
use crate::error::Result;
use crate::io::{ByteRange, FolderEntry, document_too_long, is_not_found};

/// The bytes that opening an object fetches: both ends of a small file, or the head of a large one.
const OPEN_BYTES: u64 = 128 << 10;
/// The most objects of one listing of everything below a folder. Stores return as many per request.
const TREE_OBJECTS: usize = 1000;
/// The part of the timeout to wait before a request is tried again; it doubles with each try.
const FIRST_PAUSE: u32 = 300;
/// Listings may take several requests, so they get this many times the time of a read.
const LISTING_TIME: u32 = 4;

/// An object store, as a session reads it: see [`Remote::store`].
///
/// `From` makes one that belongs to no session.
#[derive(Debug, Clone)]
pub struct RemoteStore {
    store: Arc<dyn ObjectStore>,
    /// The number of the store in its session.
    number: u64,
    remote: Remote,
}

/// An object that was opened.
#[derive(Debug)]
pub(in crate::io) struct Opened {
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

    fn key(&self, path: &Path) -> Key {
        (self.number, path.clone())
    }

    fn limits(&self) -> RemoteLimits {
        self.remote.limits()
    }

    fn known(&self) -> &Known {
        self.remote.known()
    }

    /// Forgets all about an object that is about to be written.
    pub(in crate::io) fn forget(&self, path: &Path) {
        self.known().forget(&self.key(path));
    }

    /// Notes an object of a listing.
    pub(crate) fn learn(&self, object: &ObjectMeta) {
        let (key, identity) = (self.key(&object.location), Identity::of(object));
        self.known().learn(&key, identity, self.limits().cache);
    }

    /// Opens an object: finds its identity, with at most one request.
    ///
    /// # Errors
    /// `Io` if the object does not exist or cannot be read.
    pub(in crate::io) async fn open(&self, path: &Path) -> Result<Opened> {
        let key = self.key(path);
        if let Some(identity) = self.known().recent(&key, self.limits().check) {
            return Ok(Opened { identity, whole: None });
        }
        // One byte of a known object shows whether it is still the same.
        let len = if self.known().identity(&key).is_some() { 1 } else { OPEN_BYTES };
        let head = ByteRange::Bounded(0..len);
        let fault = match self.get(path, &head, None, u64::MAX).await {
            Ok((bytes, identity)) => {
                self.known().learn(&key, identity.clone(), self.limits().cache);
                self.keep(&key, &identity, 0, &bytes);
                return Ok(Opened { identity, whole: None });
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
    async fn open_empty(&self, path: &Path) -> Option<Opened> {
        let (store, path) = (self.clone(), path.clone());
        let head = async move {
            let patience = Patience::new(store.limits().timeout);
            patience.wait(store.store.head(&path)).await.ok()?.ok()
        };
        let head = threads::run(head).await.ok()??;
        self.remote.count(&RequestCounts { requests: 1, ..Default::default() });
        (head.size == 0).then(|| Opened { identity: Identity::of(&head), whole: None })
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
    async fn open_whole(&self, path: &Path) -> Result<Opened, (Fault, usize)> {
        let most = self.limits().cache as u64;
        let (bytes, identity) = self.get(path, &ByteRange::Whole, None, most).await?;
        Ok(Opened { identity, whole: Some(bytes) })
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
        let cached = |range| self.known().bytes(&key, identity, range);
        let mut replies: Vec<Option<Bytes>> = ranges.iter().map(cached).collect();
        let held: usize = replies.iter().flatten().map(Bytes::len).sum();
        let is_missing =
            |(range, reply): (&Range<u64>, &Option<Bytes>)| reply.is_none().then(|| range.clone());
        let missing: Vec<Range<u64>> = ranges.iter().zip(&replies).filter_map(is_missing).collect();
        let is_recent = || self.known().recent(&key, self.limits().check).is_some();
        if missing.is_empty() && held > 0 && !keep && !is_recent() {
            // No request would notice that the object was replaced.
            self.part(path, identity, 0..1).await?;
            self.known().learn(&key, identity.clone(), self.limits().cache);
        }
        let requests = Requests::of(&missing, &self.limits());
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
        for (range, reply) in ranges.iter().zip(&mut replies) {
            if reply.is_none() {
                *reply = requests.cut(range, &parts);
            }
        }
        let complete: Option<Vec<Bytes>> = replies.into_iter().collect();
        complete.ok_or_else(|| crate::Error::internal("a request lacks bytes of a range"))
    }

    /// Reads one range of an open object by one request.
    async fn part(&self, path: &Path, identity: &Identity, range: Range<u64>) -> Result<Bytes> {
        let what = ByteRange::Bounded(range.clone());
        match self.get(path, &what, Some(identity.clone()), u64::MAX).await {
            Ok((bytes, _)) => Ok(bytes),
            Err((fault, tries)) => {
                if matches!(fault, Fault::Changed) {
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
    async fn get(
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
    async fn pause(
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

    /// Lists a folder, without the contents of its subfolders.
    ///
    /// # Errors
    /// `Io` if the store cannot list it.
    pub(in crate::io) async fn list(&self, path: &Path) -> Result<Vec<FolderEntry>> {
        if let Some(entries) = self.listed_before(path) {
            return Ok(entries);
        }
        // An array is a tree of small folders, which one request lists with all below.
        let (level, tree) = futures::join!(self.level(path), self.tree(path));
        let listing = match tree {
            Some(tree) => tree,
            None => level.map_err(|(fault, tries)| fault.error("list the folder", tries))?,
        };
        self.known().keep_listing(&self.key(path), Arc::clone(&listing), self.limits().cache);
        Ok(listing.entries(path))
    }

    /// Lists one folder, and nothing below it.
    ///
    /// # Errors
    /// As [`RemoteStore::list`].
    pub(crate) async fn entries(&self, path: &Path) -> Result<Vec<FolderEntry>> {
        if let Some(entries) = self.listed_before(path) {
            return Ok(entries);
        }
        let listing = Box::pin(self.level(path)).await;
        let listing = listing.map_err(|(fault, tries)| fault.error("list the folder", tries))?;
        self.known().keep_listing(&self.key(path), Arc::clone(&listing), self.limits().cache);
        Ok(listing.entries(path))
    }

    /// Lists all objects below a folder, however many there are.
    ///
    /// # Errors
    /// As [`RemoteStore::list`].
    pub(crate) async fn objects_below(&self, path: &Path) -> Result<Vec<Path>> {
        let (store, path) = (self.clone(), path.clone());
        threads::run(async move { store.objects_below_here(&path).await }).await?
    }

    /// As `objects_below`, on the thread of the caller.
    async fn objects_below_here(&self, path: &Path) -> Result<Vec<Path>> {
        let budget = self.remote.budget();
        let _admitted = budget.admit(0).await;
        let mut listed = self.store.list(Some(path));
        let (mut objects, began) = (vec![], Instant::now());
        let patience = Patience::new(self.limits().timeout * LISTING_TIME);
        let failed = |fault: Fault| fault.error("list the objects", 1);
        while let Some(object) = patience.wait(listed.next()).await.map_err(failed)? {
            let object = object.map_err(|error| failed(error.into()))?;
            self.learn(&object);
            objects.push(object.location);
        }
        let requests = objects.len().div_ceil(TREE_OBJECTS).max(1) as u64;
        self.remote.count(&RequestCounts { requests, time: began.elapsed(), ..Default::default() });
        Ok(objects)
    }

    /// Returns the entries of a folder, if a recent listing has them.
    fn listed_before(&self, path: &Path) -> Option<Vec<FolderEntry>> {
        let age = self.limits().check;
        if let Some(listing) = self.known().listing(&self.key(path), age) {
            return Some(listing.entries(path));
        }
        let parts: Vec<_> = path.parts().collect();
        let above =
            (0..parts.len()).rev().map(|len| parts[..len].iter().cloned().collect::<Path>());
        above
            .filter_map(|folder| self.known().listing(&self.key(&folder), age))
            .find(|listing| matches!(**listing, Listing::Tree(_)))
            .map(|tree| tree.entries(path))
    }

    /// Whether a recent listing of its folder lacks an object. Formats ask for metadata that only some arrays have.
    fn is_listed_absent(&self, path: &Path) -> bool {
        let parts: Vec<_> = path.parts().collect();
        let Some((name, folder)) = parts.split_last() else { return false };
        let entries = self.listed_before(&folder.iter().cloned().collect());
        entries.is_some_and(|all| all.iter().all(|entry| entry.name != name.as_ref()))
    }

    /// Lists one folder.
    async fn level(&self, path: &Path) -> Result<Arc<Listing>, (Fault, usize)> {
        let (store, path) = (self.clone(), path.clone());
        let level = async move { store.level_here(&path).await };
        threads::run(level).await.map_err(|error| (Fault::Threads(error), 0))?
    }

    /// As `level`, on the thread of the caller.
    async fn level_here(&self, path: &Path) -> Result<Arc<Listing>, (Fault, usize)> {
        let patience = Patience::new(self.limits().timeout * LISTING_TIME);
        let budget = self.remote.budget();
        let _admitted = budget.admit(0).await;
        let mut tries = 0;
        loop {
            tries += 1;
            let began = Instant::now();
            let listed = patience.wait(self.store.list_with_delimiter(Some(path))).await;
            let counts = RequestCounts { requests: 1, time: began.elapsed(), ..Default::default() };
            self.remote.count(&counts);
            match listed.and_then(|listed| Ok(listed?)) {
                Ok(listed) => {
                    listed.objects.iter().for_each(|object| self.learn(object));
                    return Ok(Arc::new(Listing::level(&listed)));
                }
                Err(fault) => self.pause(fault, tries, &patience, path).await?,
            }
        }
    }

    /// Returns objects below a folder, at most `most`. So many take one request if there are no more than 1000.
    ///
    /// # Errors
    /// `Io` if the store cannot list them.
    pub(in crate::io) async fn some_below(&self, path: &Path, most: usize) -> Result<Vec<Path>> {
        let store = self.clone();
        let listed = self.store.list(Some(path)).take(most);
        let objects = async move {
            let budget = store.remote.budget();
            let _admitted = budget.admit(0).await;
            let (patience, began) = (Patience::new(store.limits().timeout), Instant::now());
            let objects = patience.wait(listed.try_collect::<Vec<_>>()).await;
            let time = began.elapsed();
            store.remote.count(&RequestCounts { requests: 1, time, ..Default::default() });
            objects
                .and_then(|objects| Ok(objects?))
                .map_err(|fault| fault.error("list the objects", 1))
        };
        let objects: Vec<ObjectMeta> = threads::run(objects).await??;
        Ok(objects.into_iter().map(|object| object.location).collect())
    }

    /// Lists all objects below a folder; `None` if they are too many for one request, or the store cannot.
    async fn tree(&self, path: &Path) -> Option<Arc<Listing>> {
        if !lists_trees(&self.store) {
            return None;
        }
        let store = self.clone();
        let listed = self.store.list(Some(path)).take(TREE_OBJECTS);
        let objects = async move {
            let budget = store.remote.budget();
            let _admitted = budget.admit(0).await;
            let (patience, began) = (Patience::new(store.limits().timeout), Instant::now());
            let objects = patience.wait(listed.try_collect::<Vec<_>>()).await;
            let time = began.elapsed();
            store.remote.count(&RequestCounts { requests: 1, time, ..Default::default() });
            objects.ok()?.ok()
        };
        let objects = threads::run(objects).await.ok()??;
        if objects.len() >= TREE_OBJECTS {
            return None;
        }
        objects.iter().for_each(|object| self.learn(object));
        Some(Arc::new(Listing::tree(&objects)))
    }
}

/// Whether a store lists a folder with all folders below it in few requests. A web server would walk through all of them.
///
/// `object_store` tells the kind of a store only in its text, which other stores may wrap. So only known kinds count.
fn lists_trees(store: &Arc<dyn ObjectStore>) -> bool {
    const KNOWN: [&str; 5] =
        ["AmazonS3", "GoogleCloudStorage", "InMemory", "LocalFileSystem", "MicrosoftAzure"];
    let text = store.to_string();
    !text.contains("HttpStore") && KNOWN.iter().any(|kind| text.contains(kind))
}

#[cfg(test)]
mod tests {
    use object_store::limit::LimitStore;
    use object_store::memory::InMemory;
    use object_store::prefix::PrefixStore;

    use super::*;

    #[test]
    fn only_known_stores_list_trees() {
        let memory = InMemory::new;
        assert!(lists_trees(&(Arc::new(memory()) as _)));
        assert!(lists_trees(&(Arc::new(LimitStore::new(memory(), 2)) as _)));
        // The text of this store does not tell what it wraps.
        assert!(!lists_trees(&(Arc::new(PrefixStore::new(memory(), "a")) as _)));
    }

    #[cfg(feature = "http")]
    #[test]
    fn no_web_server_lists_trees() {
        let server = || {
            let builder = object_store::http::HttpBuilder::new().with_url("https://AmazonS3.test");
            builder.build().unwrap()
        };
        assert!(!lists_trees(&(Arc::new(server()) as _)));
        assert!(!lists_trees(&(Arc::new(LimitStore::new(server(), 2)) as _)));
        assert!(!lists_trees(&(Arc::new(PrefixStore::new(server(), "a")) as _)));
    }
}
