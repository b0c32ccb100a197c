//! The loop that applies the writes of a sans-IO writer to a folder.
//!
//! ```text
//!   chunks ──▶ Writer ──Put, Append, …──▶ WriteSession ──▶ WritableFolder     an error, or dropping the
//!                     ──Publish─────────▶                                     session, removes all objects
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt, TryStreamExt};

use tokio::sync::RwLock;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{Content, Move, Publish, Write, Writer};
use crate::io::{ExistingObject, FolderLock, MAX_CONCURRENT_IO, Upload, WritableFolder};

/// Writes all `chunks` and publishes them. If anything fails before publishing, nothing becomes
/// visible.
///
/// # Errors
/// Any error of the chunks, of the writer or of the folder.
pub async fn write_all<W: Writer>(
    mut writer: W,
    chunks: impl Stream<Item = Result<W::Chunk>>,
    folder: Arc<dyn WritableFolder>,
) -> Result<()> {
    let mut session = WriteSession::new(folder);
    let mut chunks = std::pin::pin!(chunks);
    let written = async {
        while let Some(chunk) = chunks.try_next().await? {
            session.write(writer.write(chunk)?).await?;
        }
        let (rest, publish) = writer.finish()?;
        session.write(rest).await?;
        session.publish(publish).await
    };
    match written.await {
        Err(error) => {
            session.abort().await;
            Err(error)
        }
        done => done,
    }
}

type Uploads = BTreeMap<Arc<str>, Box<dyn Upload>>;

/// Writes to a folder that become visible when they are published. Dropping the session earlier removes
/// them.
///
/// ```text
///   Append ──▶ uploads ──Complete──┐
///              no object yet       ├──▶ put: objects that no reader finds ──publish──▶ visible, and kept
///   Put ───────────────────────────┘
/// ```
#[derive(Debug)]
pub struct WriteSession {
    folder: Arc<dyn WritableFolder>,
    /// Objects that are written, but not published. Concurrent puts record themselves, hence the lock.
    put: Arc<Mutex<Vec<Arc<str>>>>,
    /// Each put holds it for reading until it has ended, also if nothing waits for the put any more.
    running: Arc<RwLock<()>>,
    /// Objects that were appended to and are not complete, by path.
    uploads: Uploads,
    /// The lock of the folder, which is released last.
    lock: Option<FolderLock>,
}

impl WriteSession {
    /// Begins a session without writes.
    pub fn new(folder: Arc<dyn WritableFolder>) -> Self {
        let uploads = BTreeMap::new();
        Self { folder, put: Arc::default(), running: Arc::default(), uploads, lock: None }
    }

    /// Locks the folder for this session; see [`WritableFolder::lock`]. The lock ends with the session: with [`WriteSession::release`], or
    /// when the session is aborted or dropped.
    ///
    /// # Errors
    /// `Usage` if another program holds the lock, `Io` if it cannot be written.
    pub async fn lock(&mut self, path: &str, note: Bytes, takes_over: bool) -> Result<()> {
        self.lock = Some(self.folder.lock(path, note, takes_over).await?);
        Ok(())
    }

    /// Releases the lock, if there is one.
    ///
    /// # Errors
    /// `Io` if it cannot be deleted.
    pub async fn release(&mut self) -> Result<()> {
        match self.lock.take() {
            Some(lock) => self.folder.unlock(lock).await,
            None => Ok(()),
        }
    }

    /// Applies writes one after the other.
    ///
    /// # Errors
    /// `Usage` if an object exists already, `Io` if one cannot be written.
    pub async fn write(&mut self, writes: Vec<Write>) -> Result<()> {
        for write in writes {
            match write {
                Write::Put(objects) => self.put(objects, ExistingObject::Refuse, true).await?,
                Write::Overwrite(objects) => {
                    self.put(objects, ExistingObject::Replace, true).await?;
                }
                Write::Replace(objects) => {
                    self.put(objects, ExistingObject::Replace, false).await?;
                }
                Write::Delete(objects) => {
                    let folder = Arc::clone(&self.folder);
                    let running = Arc::clone(&self.running);
                    to_its_end(running, async move { delete_all(&folder, objects).await }).await?;
                }
                Write::Move(moves) => {
                    let folder = Arc::clone(&self.folder);
                    let running = Arc::clone(&self.running);
                    to_its_end(running, async move { move_all(&folder, moves).await }).await?;
                }
                Write::Append(content) => self.append(content).await?,
                Write::Complete(object) => {
                    self.upload(&object)?.complete(ExistingObject::Refuse).await?;
                    record(&self.put, object);
                }
                Write::Rename { from, to } => {
                    self.folder.rename(&from, &to).await?;
                    self.renamed(&from, &to);
                }
            }
        }
        Ok(())
    }

    /// Makes all written objects visible. Afterwards, nothing is removed, even if the result is an `Io`
    /// error.
    ///
    /// # Errors
    /// `Usage` if the object exists already and must not be replaced, `Io` if it cannot be written.
    pub async fn publish(&mut self, publish: Publish) -> Result<()> {
        let (folder, existing) = (Arc::clone(&self.folder), |replace| match replace {
            true => ExistingObject::Replace,
            false => ExistingObject::Refuse,
        });
        // Without an upload, nothing can become visible, and the written objects stay recorded.
        if let Publish::Complete { object, .. } = &publish {
            self.check_begun(object)?;
        }
        // Without a reply, or if this future is dropped, the objects may already be visible. They are
        // removed only if the folder reports that the published name is taken.
        let put = self.take_put();
        let published = match publish {
            Publish::Create(it) => folder.put(&it.object, it.bytes, ExistingObject::Refuse).await,
            Publish::Replace(it) => folder.put(&it.object, it.bytes, ExistingObject::Replace).await,
            // If another program was faster, the objects may be those that it has published by now, so none is removed.
            Publish::Update { content, old } => {
                let update =
                    async move { folder.update(&content.object, content.bytes, &old).await };
                return to_its_end(Arc::clone(&self.running), update).await;
            }
            Publish::Complete { object, replace } => {
                self.upload(&object)?.complete(existing(replace)).await
            }
        };
        if matches!(&published, Err(error) if error.kind() == ErrorKind::Usage) {
            *self.put.lock().unwrap_or_else(PoisonError::into_inner) = put;
        }
        published
    }

    /// Removes everything that was written and not published. Objects that cannot be removed belong to
    /// no array.
    pub async fn abort(mut self) {
        let uploads = std::mem::take(&mut self.uploads);
        // No put writes after the objects are removed.
        let ended = Arc::clone(&self.running).write_owned().await;
        let (put, lock) = (self.take_put(), self.lock.take());
        take_back(Arc::clone(&self.folder), put, uploads, lock).await;
        drop(ended);
    }

    /// Puts objects concurrently, and records those that are written. A local file is written on another thread, which a dropped future
    /// does not stop. So puts are tasks, and removing objects waits for them.
    async fn put(
        &mut self,
        objects: Vec<Content>,
        existing: ExistingObject,
        is_taken_back: bool,
    ) -> Result<()> {
        let put = objects.into_iter().map(|Content { object, bytes }| {
            let (folder, written) = (Arc::clone(&self.folder), Arc::clone(&self.put));
            let running = Arc::clone(&self.running);
            async move {
                let running = running.read_owned().await;
                let task = tokio::spawn(async move {
                    let put = folder.put(&object, bytes, existing).await;
                    if put.is_ok() && is_taken_back {
                        record(&written, object);
                    }
                    drop(running);
                    put
                });
                let failed = |_| Err(Error::internal("a task that writes an object has panicked"));
                task.await.unwrap_or_else(failed)
            }
        });
        // Await all puts even after an error, so that none writes after the objects are removed.
        let put: Vec<Result<()>> =
            stream::iter(put).buffer_unordered(MAX_CONCURRENT_IO).collect().await;
        put.into_iter().collect()
    }

    async fn append(&mut self, Content { object, bytes }: Content) -> Result<()> {
        let upload = match self.uploads.remove(&object) {
            Some(upload) => upload,
            None => self.folder.begin(&object).await?,
        };
        // The upload is in the map again before the wait, so that a drop meanwhile aborts it.
        self.uploads.entry(object).or_insert(upload).append(bytes).await
    }

    /// Takes the upload of an object; fails if nothing was appended to it.
    fn upload(&mut self, object: &str) -> Result<Box<dyn Upload>> {
        self.uploads.remove(object).ok_or_else(|| not_begun(object))
    }

    /// Fails if nothing was appended to an object.
    fn check_begun(&self, object: &str) -> Result<()> {
        if self.uploads.contains_key(object) { Ok(()) } else { Err(not_begun(object)) }
    }

    /// Takes the recorded objects. Afterwards, neither a drop nor `abort` removes them.
    fn take_put(&self) -> Vec<Arc<str>> {
        std::mem::take(&mut *self.put.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Updates the recorded paths of objects at or below `from`, which was renamed.
    fn renamed(&self, from: &str, to: &str) {
        for object in self.put.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            match object.strip_prefix(from) {
                Some("") => *object = to.into(),
                Some(below) if below.starts_with('/') => *object = format!("{to}{below}").into(),
                _ => {}
            }
        }
    }
}

impl Drop for WriteSession {
    fn drop(&mut self) {
        let uploads = std::mem::take(&mut self.uploads);
        let (put, running) = (Arc::clone(&self.put), Arc::clone(&self.running));
        let is_idle = running.try_write().is_ok();
        let held = self.lock.take();
        if is_idle && uploads.is_empty() && held.is_none() && lock(&put).is_empty() {
            return;
        }
        // Without a Tokio runtime, the objects stay; they belong to no array.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let removal = Removal::new();
            let folder = Arc::clone(&self.folder);
            drop(runtime.spawn(async move {
                let ended = running.write_owned().await;
                let put = std::mem::take(&mut *lock(&put));
                take_back(folder, put, uploads, held).await;
                drop((ended, removal));
            }));
        }
    }
}

/// The removals that run in the background.
static REMOVALS: AtomicUsize = AtomicUsize::new(0);

/// A removal that runs.
struct Removal;

impl Removal {
    fn new() -> Self {
        REMOVALS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        REMOVALS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until all that dropped sessions of this process wrote is removed. A program calls it before it ends its runtime.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// gridfusion_core::tile::removals().await; // no session was dropped
/// # }
/// ```
pub async fn removals() {
    const PAUSE: Duration = Duration::from_millis(5);
    while REMOVALS.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(PAUSE).await;
    }
}

fn not_begun(object: &str) -> Error {
    Error::internal(format!("nothing was appended to \"{object}\""))
}

fn lock(put: &Mutex<Vec<Arc<str>>>) -> MutexGuard<'_, Vec<Arc<str>>> {
    put.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does work that goes on if nothing waits for it any more. Removing objects and releasing the lock wait for its end.
async fn to_its_end(
    running: Arc<RwLock<()>>,
    work: impl Future<Output = Result<()>> + Send + 'static,
) -> Result<()> {
    let running = running.read_owned().await;
    let task = tokio::spawn(async move {
        let done = work.await;
        drop(running);
        done
    });
    task.await.unwrap_or_else(|_| Err(Error::internal("a task that writes has panicked")))
}

/// Deletes objects concurrently, if they are there.
async fn delete_all(folder: &Arc<dyn WritableFolder>, objects: Vec<Arc<str>>) -> Result<()> {
    let deleted = objects.into_iter().map(|object| async move { folder.delete(&object).await });
    stream::iter(deleted).buffer_unordered(MAX_CONCURRENT_IO).try_collect().await
}

/// Gives objects other names concurrently.
async fn move_all(folder: &Arc<dyn WritableFolder>, moves: Vec<Move>) -> Result<()> {
    let moved =
        moves.into_iter().map(|Move { from, to }| async move { folder.replace(&from, &to).await });
    stream::iter(moved).buffer_unordered(MAX_CONCURRENT_IO).try_collect().await
}

fn record(written: &Mutex<Vec<Arc<str>>>, object: Arc<str>) {
    written.lock().unwrap_or_else(PoisonError::into_inner).push(object);
}

/// Removes objects and uploads that were not published, and then releases the lock.
async fn take_back(
    folder: Arc<dyn WritableFolder>,
    put: Vec<Arc<str>>,
    uploads: Uploads,
    lock: Option<FolderLock>,
) {
    let deleted = put.into_iter().map(|object| {
        let folder = &folder;
        async move { folder.delete(&object).await }
    });
    let mut results: Vec<Result<()>> =
        stream::iter(deleted).buffer_unordered(MAX_CONCURRENT_IO).collect().await;
    for (_, upload) in uploads {
        results.push(upload.abort().await);
    }
    if let Some(lock) = lock {
        results.push(folder.unlock(lock).await);
    }
    for error in results.into_iter().filter_map(Result::err) {
        log::warn!("could not remove part of an array whose writing was not finished: {error}");
    }
}

#[cfg(test)]
mod tests;
