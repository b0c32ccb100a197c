//! An object store in memory for tests, which records its requests and can fail.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::stream::{BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

/// A store in memory; clones share their objects.
#[derive(Debug, Clone)]
pub(crate) struct TestStore {
    objects: Arc<InMemory>,
    /// The requests, such as `get array/header`; `asked()` takes them.
    asked: Arc<Mutex<Vec<String>>>,
    /// The number of operations that can still write; later ones fail.
    writes_left: Arc<AtomicUsize>,
}

impl TestStore {
    /// Creates an empty store in which only the first `writes` operations that write succeed.
    pub(crate) fn failing_after(writes: usize) -> Self {
        Self {
            objects: Arc::default(),
            asked: Arc::default(),
            writes_left: Arc::new(writes.into()),
        }
    }

    /// Creates an empty store that does not fail.
    pub(crate) fn new() -> Self {
        Self::failing_after(usize::MAX)
    }

    /// Returns the requests since the last call.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    fn ask(&self, what: &str, path: &Path) {
        self.asked.lock().unwrap().push(format!("{what} {path}"));
    }

    /// Counts an operation that writes; fails if none is left.
    fn write(&self) -> Result<()> {
        let left = self
            .writes_left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let failed = |_| object_store::Error::Generic { store: "test", source: "it fails".into() };
        left.map(drop).map_err(failed)
    }
}

impl fmt::Display for TestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestStore")
    }
}

#[async_trait]
impl ObjectStore for TestStore {
    async fn put_opts(&self, at: &Path, it: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.ask("put", at);
        self.write()?;
        self.objects.put_opts(at, it, opts).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.ask("begin", at);
        self.write()?;
        let upload = self.objects.put_multipart_opts(at, opts).await?;
        Ok(Box::new(TestUpload { store: self.clone(), at: at.clone(), upload }))
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.ask(if options.head { "head" } else { "get" }, at);
        self.objects.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.ask("copy", from);
        self.write()?;
        self.objects.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct TestUpload {
    store: TestStore,
    at: Path,
    upload: Box<dyn MultipartUpload>,
}

#[async_trait]
impl MultipartUpload for TestUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.store.ask("part", &self.at);
        match self.store.write() {
            Ok(()) => self.upload.put_part(data),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.store.ask("complete", &self.at);
        self.store.write()?;
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.store.ask("abort", &self.at);
        self.upload.abort().await
    }
}
