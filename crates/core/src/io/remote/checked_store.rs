//! [`CheckedStore`]: a store for other readers, such as DataFusion's Parquet, whose reads are those of arrays.
//!
//! ```text
//!   get a range or an object ─▶ parts, two at a time ─▶ RemoteStore ─▶ budget, tries, comparison with the request ─▶ store for reads
//!   list, head, put, delete, copy, conditions ──────────────────────────────────────────────────────────────────▶ store for the rest
//! ```
//!
//! A store that repeats its requests itself does not compare the rest of a reply that broke with what it asked for. So the store
//! for reads must not repeat them. The parts of an upload can only be repeated by the store itself, so the other one should.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    Result,
};

use super::fault::Fault;
use super::store::RemoteStore;
use crate::io::ByteRange;

/// The parts of a range that are requested at the same time.
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

    /// Reads a range in parts. The first tells what the object is, and the others must be of the same one.
    async fn parts(&self, location: &Path, asked: Range<u64>) -> Result<GetResult, (Fault, usize)> {
        let most = self.reads.limits().merge.max(1);
        let first = asked.start..asked.end.min(asked.start.saturating_add(most));
        let first = ByteRange::Bounded(first);
        let (begin, identity) = self.reads.get(location, &first, None, u64::MAX).await?;
        let range = asked.start..asked.end.min(identity.size);
        let meta = identity.clone().object(location.clone());
        let (reads, path, end) = (self.reads.clone(), location.clone(), range.end);
        let starts = asked.start + begin.len() as u64..end;
        let starts = starts.step_by(usize::try_from(most).unwrap_or(usize::MAX));
        let parts = stream::iter(starts).map(move |start| {
            let (reads, path, identity) = (reads.clone(), path.clone(), identity.clone());
            let part = ByteRange::Bounded(start..end.min(start.saturating_add(most)));
            async move {
                let got = reads.get(&path, &part, Some(identity), u64::MAX).await;
                got.map(|(bytes, _)| bytes).map_err(unreadable)
            }
        });
        let parts = stream::iter([Ok(begin)]).chain(parts.buffered(PARTS_AT_ONCE)).boxed();
        let payload = GetResultPayload::Stream(parts);
        Ok(GetResult { payload, range, meta, attributes: Default::default() })
    }

    /// Reads bytes at the end of an object.
    async fn suffix(&self, location: &Path, len: u64) -> Result<GetResult, (Fault, usize)> {
        let range = ByteRange::Suffix(len);
        let (bytes, identity) = self.reads.get(location, &range, None, u64::MAX).await?;
        let range = range.within(identity.size);
        let meta = identity.object(location.clone());
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, range, meta, attributes: Default::default() })
    }

    /// Reads a whole object. A server that cannot send parts sends it at once, and an empty object has none.
    async fn whole(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match self.parts(location, 0..u64::MAX).await {
            Err((fault, _)) if fault.refuses_ranges() || fault.may_be_beyond() => {
                self.rest.get_opts(location, options).await
            }
            read => read.map_err(unreadable),
        }
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
                self.parts(location, range).await.map_err(unreadable)
            }
            Some(GetRange::Suffix(len)) if is_plain => {
                self.suffix(location, len).await.map_err(unreadable)
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
