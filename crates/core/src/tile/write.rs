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

use futures::stream::{self, Stream, StreamExt, TryStreamExt};

use tokio::sync::RwLock;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{Content, Publish, Write, Writer};
use crate::io::{ExistingObject, MAX_CONCURRENT_IO, Upload, WritableFolder};

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
}

impl WriteSession {
    /// Begins a session without writes.
    pub fn new(folder: Arc<dyn WritableFolder>) -> Self {
        Self { folder, put: Arc::default(), running: Arc::default(), uploads: BTreeMap::new() }
    }

    /// Applies writes one after the other.
    ///
    /// # Errors
    /// `Usage` if an object exists already, `Io` if one cannot be written.
    pub async fn write(&mut self, writes: Vec<Write>) -> Result<()> {
        for write in writes {
            match write {
                Write::Put(objects) => self.put(objects).await?,
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
        take_back(Arc::clone(&self.folder), self.take_put(), uploads).await;
        drop(ended);
    }

    /// Puts objects concurrently, and records those that are written. A local file is written on another thread, which a dropped future
    /// does not stop. So puts are tasks, and removing objects waits for them.
    async fn put(&mut self, objects: Vec<Content>) -> Result<()> {
        let put = objects.into_iter().map(|Content { object, bytes }| {
            let (folder, written) = (Arc::clone(&self.folder), Arc::clone(&self.put));
            let running = Arc::clone(&self.running);
            async move {
                let running = running.read_owned().await;
                let task = tokio::spawn(async move {
                    let put = folder.put(&object, bytes, ExistingObject::Refuse).await;
                    let put = put.map(|()| record(&written, object));
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
        if is_idle && uploads.is_empty() && lock(&put).is_empty() {
            return;
        }
        // Without a Tokio runtime, the objects stay; they belong to no array.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let removal = Removal::new();
            let folder = Arc::clone(&self.folder);
            drop(runtime.spawn(async move {
                let ended = running.write_owned().await;
                let put = std::mem::take(&mut *lock(&put));
                take_back(folder, put, uploads).await;
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

fn record(written: &Mutex<Vec<Arc<str>>>, object: Arc<str>) {
    written.lock().unwrap_or_else(PoisonError::into_inner).push(object);
}

/// Removes objects and uploads that were not published.
async fn take_back(folder: Arc<dyn WritableFolder>, put: Vec<Arc<str>>, uploads: Uploads) {
    let deleted = put.into_iter().map(|object| {
        let folder = &folder;
        async move { folder.delete(&object).await }
    });
    let mut results: Vec<Result<()>> =
        stream::iter(deleted).buffer_unordered(MAX_CONCURRENT_IO).collect().await;
    for (_, upload) in uploads {
        results.push(upload.abort().await);
    }
    for error in results.into_iter().filter_map(Result::err) {
        log::warn!("could not remove part of an array whose writing was not finished: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bytes::Bytes;
    use object_store::ObjectStore;

    use super::*;
    use crate::io::testing::TestStore;
    use crate::io::{Folder, LocalFolder, StoreFolder};

    /// Puts two blocks per chunk, appends to a log, and writes a header last.
    struct Blocks {
        written: u64,
        /// Whether completing the log publishes the blocks, instead of the header.
        by_log: bool,
        replace: bool,
    }

    impl Blocks {
        const HEADER: Self = Self { written: 0, by_log: false, replace: false };
    }

    impl Writer for Blocks {
        type Chunk = Bytes;

        fn write(&mut self, chunk: Bytes) -> Result<Vec<Write>> {
            let number = self.written;
            self.written += 1;
            let log = Content::new("log", format!("{number}\n"));
            let blocks = ["a", "b"].map(|value| format!("draft/{number}/{value}"));
            let blocks = blocks.map(|object| Content::new(object, chunk.clone()));
            Ok(vec![Write::Append(log), Write::Put(blocks.to_vec())])
        }

        fn finish(&mut self) -> Result<(Vec<Write>, Publish)> {
            let moved = |number| {
                let [from, to] = ["draft", "blocks"].map(|at| format!("{at}/{number}/a").into());
                Write::Rename { from, to }
            };
            let mut writes: Vec<Write> = (0..self.written).map(moved).collect();
            let header = Content::new("header", format!("{} blocks", self.written));
            Ok(if self.by_log {
                (writes, Publish::Complete { object: "log".into(), replace: self.replace })
            } else {
                writes.push(Write::Complete("log".into()));
                let publish = if self.replace { Publish::Replace } else { Publish::Create };
                (writes, publish(header))
            })
        }
    }

    async fn run(writer: Blocks, folder: Arc<dyn WritableFolder>) -> Result<()> {
        let chunks = (0..3).map(|byte| Ok(Bytes::from(vec![byte; 5])));
        write_all(writer, stream::iter(chunks), folder).await
    }

    fn local(path: &Path) -> Arc<LocalFolder> {
        Arc::new(LocalFolder::open(path, true).unwrap())
    }

    fn remote(store: &TestStore) -> Arc<StoreFolder> {
        let store: Arc<dyn ObjectStore> = Arc::new(store.clone());
        Arc::new(StoreFolder::new("test://".into(), store, "array".into()))
    }

    /// Returns all objects below `path`.
    async fn objects(folder: &dyn Folder, path: &str) -> Vec<String> {
        let mut found = vec![];
        for entry in folder.list(path).await.unwrap() {
            let path = format!("{path}{}", entry.name);
            match entry.size {
                Some(_) => found.push(path),
                None => found.extend(Box::pin(objects(folder, &format!("{path}/"))).await),
            }
        }
        found.sort();
        found
    }

    async fn text(folder: &dyn Folder, path: &str) -> Vec<u8> {
        let source = folder.open(path).await.unwrap();
        source.read(std::slice::from_ref(&(0..source.size()))).await.unwrap()[0].to_vec()
    }

    #[tokio::test]
    async fn what_is_written_is_there_and_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let (local, remote) = (local(dir.path()), remote(&TestStore::new()));
        let folders: [(Arc<dyn WritableFolder>, Arc<dyn Folder>); 2] =
            [(Arc::clone(&local) as _, local), (Arc::clone(&remote) as _, remote)];
        for (to, from) in folders {
            run(Blocks::HEADER, Arc::clone(&to)).await.unwrap();
            let expected = [
                "blocks/0/a",
                "blocks/1/a",
                "blocks/2/a",
                "draft/0/b",
                "draft/1/b",
                "draft/2/b",
                "header",
                "log",
            ];
            assert_eq!(objects(&*from, "").await, expected);
            assert_eq!(text(&*from, "header").await, b"3 blocks");
            assert_eq!(text(&*from, "blocks/2/a").await, [2; 5]);
            assert_eq!(text(&*from, "log").await, b"0\n1\n2\n");

            // A second writer changes nothing.
            let error = run(Blocks::HEADER, Arc::clone(&to)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
            assert!(error.to_string().contains("exists already"), "{error}");
            assert_eq!(objects(&*from, "").await, expected);
        }
    }

    #[tokio::test]
    async fn publishing_replaces_only_if_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let (local, remote) = (local(dir.path()), remote(&TestStore::new()));
        let folders: [(Arc<dyn WritableFolder>, Arc<dyn Folder>); 2] =
            [(Arc::clone(&local) as _, local), (Arc::clone(&remote) as _, remote)];
        for (to, from) in folders {
            for (by_log, object) in [(true, "log"), (false, "header")] {
                let old = Bytes::from_static(b"old");
                to.put(object, old, ExistingObject::Replace).await.unwrap();
                let writer = |replace| Blocks { written: 0, by_log, replace };
                let error = run(writer(false), Arc::clone(&to)).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
                assert_eq!(objects(&*from, "").await, [object]);
                assert_eq!(text(&*from, object).await, b"old");
                run(writer(true), Arc::clone(&to)).await.unwrap();
                assert_ne!(text(&*from, object).await, b"old");
                for object in objects(&*from, "").await {
                    to.delete(&object).await.unwrap();
                }
            }
        }
    }

    #[tokio::test]
    async fn publishing_an_object_without_content_removes_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let folder = local(dir.path());
        let mut session = WriteSession::new(Arc::clone(&folder) as _);
        let put = Write::Put(vec![Content::new("a", Bytes::from_static(b"1"))]);
        session.write(vec![put]).await.unwrap();
        let publish = Publish::Complete { object: "log".into(), replace: false };
        let error = session.publish(publish).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        session.abort().await;
        assert!(objects(&*folder, "").await.is_empty());
    }

    #[tokio::test]
    async fn a_store_that_fails_at_any_moment_shows_nothing() {
        for by_log in [false, true] {
            for writes in 0.. {
                let store = TestStore::failing_after(writes);
                let folder = remote(&store);
                let writer = Blocks { by_log, ..Blocks::HEADER };
                let written = run(writer, Arc::clone(&folder) as _).await;
                let there = objects(&*folder, "").await;
                if written.is_ok() {
                    assert!(writes > 10 && there.len() >= 7, "{writes} {there:?}");
                    break;
                }
                let shown = if by_log { "log" } else { "header" };
                assert!(!there.iter().any(|object| object == shown), "{writes} {there:?}");
                // Objects stay only if publishing itself failed: they may be visible.
                let asked = store.asked();
                let publishing = asked
                    .iter()
                    .any(|it| it == "put array/header" || (by_log && it == "part array/log"));
                assert!(there.is_empty() || publishing, "{writes} {there:?} {asked:?}");
            }
        }
    }

    /// Waits until all other tasks have ended, also those that drops have begun.
    async fn tasks_end() {
        while tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_session_that_is_dropped_takes_all_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = TestStore::new();
        let (local, remote) = (local(dir.path()), remote(&store));
        let folders: [(Arc<dyn WritableFolder>, Arc<dyn Folder>); 2] =
            [(Arc::clone(&local) as _, local), (Arc::clone(&remote) as _, remote)];
        for (to, from) in folders {
            let mut session = WriteSession::new(to);
            let mut writer = Blocks::HEADER;
            session.write(writer.write(Bytes::from_static(b"cells")).unwrap()).await.unwrap();
            let is_block = |object: &String| object.starts_with("draft/");
            assert_eq!(objects(&*from, "").await.iter().filter(|it| is_block(it)).count(), 2);
            drop(session);
            tasks_end().await;
            assert_eq!(objects(&*from, "").await, Vec::<String>::new());
        }
        assert!(store.asked().contains(&"abort array/log".to_owned()));
    }

    #[tokio::test]
    async fn an_error_of_the_chunks_takes_all_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = local(dir.path());
        let chunks = [Ok(Bytes::from_static(b"cells")), Err(Error::usage("no more"))];
        let to: Arc<dyn WritableFolder> = Arc::clone(&folder) as _;
        // In its own task, like the sink of a query.
        let writing = tokio::spawn(write_all(Blocks::HEADER, stream::iter(chunks), to));
        let error = writing.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(objects(&*folder, "").await, Vec::<String>::new());
    }

    /// Writes every object, but never replies to the put that publishes.
    #[derive(Debug)]
    struct Silent(Arc<StoreFolder>);

    #[async_trait::async_trait]
    impl WritableFolder for Silent {
        fn name(&self) -> &str {
            "silent"
        }

        async fn put(&self, path: &str, bytes: Bytes, existing: ExistingObject) -> Result<()> {
            self.0.put(path, bytes, existing).await?;
            match path {
                "header" => std::future::pending().await,
                _ => Ok(()),
            }
        }

        async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
            self.0.begin(path).await
        }

        async fn rename(&self, from: &str, to: &str) -> Result<()> {
            self.0.rename(from, to).await
        }

        async fn delete(&self, path: &str) -> Result<()> {
            self.0.delete(path).await
        }
    }

    #[tokio::test]
    async fn a_writer_that_is_dropped_while_it_publishes_takes_nothing_back() {
        let folder = remote(&TestStore::new());
        let written = tokio::spawn(run(Blocks::HEADER, Arc::new(Silent(Arc::clone(&folder)))));
        while !objects(&*folder, "").await.contains(&"header".to_owned()) {
            tokio::task::yield_now().await;
        }
        written.abort();
        assert!(written.await.is_err());
        tasks_end().await;
        assert_eq!(objects(&*folder, "").await.len(), 8);
    }
}
