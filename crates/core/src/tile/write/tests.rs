use std::path::Path;

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

/// Returns a local folder and one of a store, each to write and to read.
fn folders(path: &Path, store: &TestStore) -> [(Arc<dyn WritableFolder>, Arc<dyn Folder>); 2] {
    let (local, remote) = (local(path), remote(store));
    [(Arc::clone(&local) as _, local), (Arc::clone(&remote) as _, remote)]
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
    let (dir, store) = (tempfile::tempdir().unwrap(), TestStore::new());
    for (to, from) in folders(dir.path(), &store) {
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
    let (dir, store) = (tempfile::tempdir().unwrap(), TestStore::new());
    for (to, from) in folders(dir.path(), &store) {
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
    let (dir, store) = (tempfile::tempdir().unwrap(), TestStore::new());
    for (to, from) in folders(dir.path(), &store) {
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

    async fn update(&self, path: &str, bytes: Bytes, old: &Bytes) -> Result<()> {
        self.0.update(path, bytes, old).await
    }

    async fn lock(&self, path: &str, note: Bytes, takes_over: bool) -> Result<FolderLock> {
        self.0.lock(path, note, takes_over).await
    }

    async fn unlock(&self, lock: FolderLock) -> Result<()> {
        self.0.unlock(lock).await
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.0.begin(path).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.0.rename(from, to).await
    }

    async fn replace(&self, from: &str, to: &str) -> Result<()> {
        self.0.replace(from, to).await
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

/// Objects of a session may be those that another program has published by now.
#[tokio::test]
async fn nothing_is_removed_if_another_program_was_faster() {
    let (dir, store) = (tempfile::tempdir().unwrap(), TestStore::new());
    for (to, from) in folders(dir.path(), &store) {
        let old = Bytes::from_static(b"old");
        to.put("root", old.clone(), ExistingObject::Replace).await.unwrap();
        for there in [&b"old"[..], b"theirs"] {
            to.put("root", Bytes::from_static(there), ExistingObject::Replace).await.unwrap();
            let mut session = WriteSession::new(Arc::clone(&to));
            session.lock(".lock", Bytes::from_static(b"ours"), false).await.unwrap();
            let cells = Write::Overwrite(vec![Content::new("c/7", Bytes::from_static(b"cells"))]);
            session.write(vec![cells]).await.unwrap();
            let content = Content::new("root", Bytes::from_static(b"new"));
            let published = session.publish(Publish::Update { content, old: old.clone() }).await;
            assert_eq!(published.is_ok(), there == b"old");
            session.abort().await;
            assert_eq!(objects(&*from, "").await, ["c/7", "root"]);
            let expected = if there == b"old" { b"new" } else { there };
            assert_eq!(text(&*from, "root").await, expected);
        }
    }
}

#[tokio::test]
async fn a_lock_is_released_by_its_holder_only() {
    let (dir, store) = (tempfile::tempdir().unwrap(), TestStore::new());
    for (to, from) in folders(dir.path(), &store) {
        let note = |text: &'static str| Bytes::from_static(text.as_bytes());
        let mut first = WriteSession::new(Arc::clone(&to));
        first.lock(".lock", note("first"), false).await.unwrap();
        let mut second = WriteSession::new(Arc::clone(&to));
        let error = second.lock(".lock", note("second"), false).await.unwrap_err();
        assert!(error.to_string().contains("says \"first\""), "{error}");
        second.lock(".lock", note("second"), true).await.unwrap();
        first.release().await.unwrap();
        assert_eq!(text(&*from, ".lock").await, b"second");
        second.release().await.unwrap();
        assert_eq!(objects(&*from, "").await, Vec::<String>::new());
        // The lock of a session that is dropped is released, too.
        let mut third = WriteSession::new(Arc::clone(&to));
        third.lock(".lock", note("third"), false).await.unwrap();
        drop(third);
        tasks_end().await;
        assert_eq!(objects(&*from, "").await, Vec::<String>::new());
    }
}
