//! Stores that fail while an array is written: each call in turn, before or after its effect, and writers that are dropped.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use gridfusion::core::tile::removals;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use url::Url;

use crate::support::{query, reducing, rows_from};

/// A store of which one call fails that puts or copies an object.
#[derive(Debug)]
pub(super) struct Failing {
    inner: InMemory,
    /// The calls so far.
    calls: AtomicUsize,
    /// The call that fails, counted from 0.
    fails: AtomicUsize,
    /// Whether the object is there although the call fails.
    has_effect: bool,
}

impl Failing {
    pub(super) fn new(fails: usize, has_effect: bool) -> Self {
        let (calls, fails) = (AtomicUsize::new(0), AtomicUsize::new(fails));
        Self { inner: InMemory::new(), calls, fails, has_effect }
    }
}

impl Failing {
    async fn call<T>(
        &self,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> object_store::Result<T> {
        let fails = self.calls.fetch_add(1, Ordering::SeqCst) == self.fails.load(Ordering::SeqCst);
        if fails && !self.has_effect {
            return Err(broken());
        }
        let done = call.await;
        if fails { Err(broken()) } else { done }
    }
}

/// Lets the call with this number fail, counted from now on.
pub(super) fn broken_at(store: &Failing, fails: usize) {
    store.calls.store(0, Ordering::SeqCst);
    store.fails.store(fails, Ordering::SeqCst);
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a failing store")
    }
}

#[async_trait]
impl ObjectStore for Failing {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.call(self.inner.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.call(self.inner.copy_opts(from, to, options)).await
    }
}

fn broken() -> object_store::Error {
    object_store::Error::Generic { store: "test", source: "the cable is cut".into() }
}

const COPY: &str = "COPY (SELECT value % 10 AS x, value / 10 AS y, value * 0.5 AS v, value AS n FROM range(100)) TO 'mem://bucket/a/x.zarr' OPTIONS ('dimensions' 'x,y', 'chunks' 'x=4,y=5')";
const ANSWER: &str = "SELECT count(*), sum(v), sum(n) FROM read_array('mem://bucket/a/x.zarr')";

/// The call that makes the array visible: it comes after twelve chunks, two of labels and four documents.
const LAST: usize = 18;

/// The objects of a store.
async fn objects(store: &dyn ObjectStore) -> Vec<String> {
    store.list(None).map_ok(|it| it.location.to_string()).try_collect().await.unwrap()
}

#[tokio::test]
async fn each_call_may_fail() {
    let (mut complete, mut absent) = (0, 0);
    for has_effect in [false, true] {
        for fails in 0.. {
            let store = Arc::new(Failing::new(fails, has_effect));
            let ctx = reducing(2, 16);
            let url = Url::parse("mem://bucket").unwrap();
            ctx.register_object_store(&url, Arc::clone(&store) as _);
            let written = query(&ctx, COPY).await;
            let left = objects(store.as_ref()).await;
            if left.iter().any(|it| it == "a/x.zarr/zarr.json") {
                complete += 1;
                assert_eq!(rows_from(&ctx, ANSWER).await, [["100", "2475.0", "4950"]], "{fails}");
            } else {
                absent += 1;
                assert!(query(&ctx, ANSWER).await.is_err(), "{fails}");
                // A call without a known result may have had an effect. If that call would have made the array visible, all must stay.
                let most = if fails == LAST { LAST } else { usize::from(has_effect) };
                assert!(left.len() <= most, "{fails}: {left:?}");
            }
            match written {
                Ok(_) => {
                    assert!(store.calls.load(Ordering::SeqCst) <= fails, "{fails}");
                    break;
                }
                Err(error) => assert!(error.to_string().contains("the cable is cut"), "{error}"),
            }
        }
    }
    // The last document is there although its call failed.
    assert_eq!((absent, complete), (2 * LAST + 1, 3));
}

/// A writer that is dropped removes its objects in the background.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_writers_leave_nothing() {
    let mut dropped = 0;
    for wait in 0..60 {
        let store = Arc::new(InMemory::new());
        let ctx = reducing(2, 16);
        ctx.register_object_store(&Url::parse("mem://bucket").unwrap(), Arc::clone(&store) as _);
        let turns = async {
            for _ in 0..20 * wait {
                tokio::task::yield_now().await;
            }
        };
        let written = tokio::select! {
            written = query(&ctx, COPY) => Some(written.unwrap()),
            () = turns => None,
        };
        removals().await;
        let left = objects(store.as_ref()).await;
        match written {
            Some(_) => assert!(store.head(&"a/x.zarr/zarr.json".into()).await.is_ok()),
            // The last call may have been under way.
            None if left.iter().any(|it| it == "a/x.zarr/zarr.json") => {}
            None => {
                dropped += 1;
                assert!(left.is_empty(), "{left:?}");
            }
        }
    }
    assert!(dropped > 3, "{dropped}");
}
