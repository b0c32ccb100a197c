//! [`CheckedStore`]: a store for other readers, such as DataFusion's Parquet, whose reads are those of arrays.
//!
//! ```text
//!   get a range     ─▶ RemoteStore ─▶ budget, tries, comparison of each reply with the request ─▶ store for reads
//!   get an object   ─▶ ranges, two at a time ─┘
//!   list, head, put, delete, copy, conditions  ─────────────────────────────────────────────────▶ store for the rest
//! ```
//!
//! A store that repeats its requests itself does not compare the rest of a reply that broke with what it asked for. So the store
//! for reads must not repeat them. The parts of an upload can only be repeated by the store itself, so the other one should.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, RenameOptions, Result,
};

use super::fault::Fault;
use super::identity::Identity;
use super::store::RemoteStore;
use crate::io::ByteRange;

/// The parts of a whole object that are requested at the same time.
const PARTS_AT_ONCE: usize = 2;

/// Reads objects within the limits of a session, and compares each reply with the request. All else is left to a second store of
/// the same objects.
///
/// ```
/// use std::sync::Arc;
///
/// use gridfusion_core::io::{CheckedStore, Remote};
/// use object_store::memory::InMemory;
/// use object_store::path::Path;
/// use object_store::{ObjectStore, ObjectStoreExt};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (remote, store): (_, Arc<dyn ObjectStore>) = (Remote::default(), Arc::new(InMemory::new()));
/// let checked = CheckedStore::new(remote.store(Arc::clone(&store)), store);
/// checked.put(&Path::from("a"), "some text".into()).await?;
/// assert_eq!(checked.get_range(&Path::from("a"), 5..9).await?, "text");
/// assert_eq!(remote.counts().bytes_fetched, 4);
/// # Ok::<(), object_store::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CheckedStore {
    reads: RemoteStore,
    rest: Arc<dyn ObjectStore>,
}

impl CheckedStore {
    /// Reads by `reads`, whose store should not repeat requests itself. All other requests go to `rest`, whose store should.
    pub const fn new(reads: RemoteStore, rest: Arc<dyn ObjectStore>) -> Self {
        Self { reads, rest }
    }

    /// Reads a range.
    async fn range(&self, location: &Path, range: &ByteRange) -> Result<GetResult> {
        let got = self.reads.get(location, range, None, u64::MAX).await;
        let (bytes, identity) = got.map_err(unreadable)?;
        let meta = identity.object(location.clone());
        let start = range.within(meta.size).start;
        let range = start..start + bytes.len() as u64;
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, meta, range, attributes: Default::default() })
    }

    /// Reads a whole object in parts. A server that cannot send parts sends it at once.
    async fn whole(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let meta = self.rest.head(location).await?;
        let most = self.reads.limits().merge.max(1);
        let first = 0..meta.size.min(most);
        if first.is_empty() {
            return self.rest.get_opts(location, options).await;
        }
        let identity = Identity::from_object(&meta);
        let begin = match self.reads.get_part(location, &identity, first.clone()).await {
            Ok(begin) => begin,
            Err((fault, _)) if fault.refuses_ranges() => {
                return self.rest.get_opts(location, options).await;
            }
            Err(failed) => return Err(unreadable(failed)),
        };
        let (size, reads, path) = (meta.size, self.reads.clone(), location.clone());
        let starts = (first.end..size).step_by(usize::try_from(most).unwrap_or(usize::MAX));
        let parts = stream::iter(starts).map(move |start| {
            let (reads, path, identity) = (reads.clone(), path.clone(), identity.clone());
            let range: Range<u64> = start..size.min(start.saturating_add(most));
            async move { reads.get_part(&path, &identity, range).await.map_err(unreadable) }
        });
        let parts = stream::iter([Ok(begin)]).chain(parts.buffered(PARTS_AT_ONCE)).boxed();
        let payload = GetResultPayload::Stream(parts);
        Ok(GetResult { payload, range: 0..size, meta, attributes: Default::default() })
    }
}

impl RemoteStore {
    async fn get_part(
        &self,
        path: &Path,
        identity: &Identity,
        range: Range<u64>,
    ) -> Result<Bytes, (Fault, usize)> {
        let range = ByteRange::Bounded(range);
        let got = self.get(path, &range, Some(identity.clone()), u64::MAX).await;
        got.map(|(bytes, _)| bytes)
    }
}

/// Returns the error of the store, so that readers know what is absent; or what is wrong with its replies.
fn unreadable((fault, tries): (Fault, usize)) -> object_store::Error {
    match fault {
        Fault::Store(error) if !matches!(error, object_store::Error::Generic { .. }) => error,
        fault => {
            let source = Box::new(fault.error("read the object", tries));
            object_store::Error::Generic { store: "gridfusion", source }
        }
    }
}

impl fmt::Display for CheckedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rest.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for CheckedStore {
    async fn get_opts(&self, location: &Path, mut options: GetOptions) -> Result<GetResult> {
        let range = options.range.take();
        let GetOptions { if_match, if_none_match, version, head, .. } = &options;
        let times = [options.if_modified_since, options.if_unmodified_since];
        let texts = [if_match, if_none_match, version];
        let is_plain = !head && texts.iter().all(|it| it.is_none()) && times == [None, None];
        match range {
            Some(GetRange::Bounded(range)) if is_plain && !range.is_empty() => {
                self.range(location, &ByteRange::Bounded(range)).await
            }
            Some(GetRange::Suffix(len)) if is_plain => {
                self.range(location, &ByteRange::Suffix(len)).await
            }
            None if is_plain => self.whole(location, options).await,
            range => self.rest.get_opts(location, GetOptions { range, ..options }).await,
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.rest.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.rest.list_with_delimiter(prefix).await
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.reads.forget(location);
        self.rest.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.reads.forget(location);
        self.rest.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let reads = self.reads.clone();
        let locations = locations.inspect(move |location| {
            if let Ok(location) = location {
                reads.forget(location);
            }
        });
        self.rest.delete_stream(locations.boxed())
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.reads.forget(to);
        self.rest.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.reads.forget(from);
        self.reads.forget(to);
        self.rest.rename_opts(from, to, options).await
    }
}
