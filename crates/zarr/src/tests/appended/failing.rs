//! [`Failing`]: a folder in which a call fails, or a program is killed.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use gridfusion_core::io::{ExistingObject, FolderLock, LocalFolder, Upload, WritableFolder};
use gridfusion_core::{Error, Result};

/// A folder of which one call fails that changes an object.
#[derive(Debug)]
pub(super) struct Failing {
    inner: LocalFolder,
    calls: AtomicUsize,
    /// The call that fails, counted from 0, and all after it if the program is killed.
    fails: usize,
    is_killed: bool,
    /// Whether the first failing call has its effect.
    has_effect: bool,
}

impl Failing {
    pub(super) fn new(path: &Path, fails: usize, is_killed: bool, has_effect: bool) -> Self {
        let inner = LocalFolder::open(path, false).unwrap();
        Self { inner, calls: AtomicUsize::new(0), fails, is_killed, has_effect }
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let fails = number == self.fails || self.is_killed && number > self.fails;
        if fails && !(self.has_effect && number == self.fails) {
            return Err(broken());
        }
        let done = call.await;
        if fails { Err(broken()) } else { done }
    }
}

fn broken() -> Error {
    Error::io("the folder is broken", std::io::Error::other("broken"))
}

#[async_trait]
impl WritableFolder for Failing {
    fn name(&self) -> &str {
        WritableFolder::name(&self.inner)
    }

    async fn put(&self, path: &str, bytes: Bytes, existing: ExistingObject) -> Result<()> {
        self.call(self.inner.put(path, bytes, existing)).await
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.inner.begin(path).await
    }

    async fn update(&self, path: &str, bytes: Bytes, old: &Bytes) -> Result<()> {
        self.call(self.inner.update(path, bytes, old)).await
    }

    async fn lock(&self, path: &str, note: Bytes, takes_over: bool) -> Result<FolderLock> {
        self.inner.lock(path, note, takes_over).await
    }

    async fn unlock(&self, lock: FolderLock) -> Result<()> {
        self.inner.unlock(lock).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.call(self.inner.rename(from, to)).await
    }

    async fn replace(&self, from: &str, to: &str) -> Result<()> {
        self.call(self.inner.replace(from, to)).await
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.call(self.inner.delete(path)).await
    }
}
