//! [`LocalStore`]: local files for DataFusion's formats and `COPY`. It refuses pipes and devices, and what is outside of a root.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use gridfusion::Root;
use gridfusion::io::refuse_special;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// The local file system, without pipes and devices, and without the files outside of a root. Paths stay absolute.
#[derive(Debug)]
pub(super) struct LocalStore {
    files: Arc<LocalFileSystem>,
    root: Option<Root>,
}

impl LocalStore {
    pub(super) fn new(root: Option<Root>) -> Self {
        Self { files: Arc::new(LocalFileSystem::new()), root }
    }

    /// Fails for a path outside of the root, also by symbolic links, and for a pipe or a device.
    fn check(&self, path: &Path) -> Result<()> {
        let local = self.files.path_to_filesystem(path)?;
        check(&local, self.root.as_ref()).map_err(|error| object_store::Error::PermissionDenied {
            path: path.to_string(),
            source: Box::new(error),
        })
    }
}

/// Fails for a path outside of a root, also by symbolic links, and for a pipe or a device.
pub(super) fn check(path: &std::path::Path, root: Option<&Root>) -> gridfusion::Result<()> {
    root.map_or(Ok(()), |root| root.check(path))?;
    refuse_special(path)
}

impl fmt::Display for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            // Without limits, writers may use the file system itself, which has locks.
            None => write!(f, "{}", self.files),
            Some(_) => write!(f, "Local({})", self.files),
        }
    }
}

#[async_trait]
impl ObjectStore for LocalStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.check(location)?;
        self.files.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.check(location)?;
        self.files.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.check(location)?;
        self.files.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.check(location)?;
        self.files.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let checked = Self { files: Arc::clone(&self.files), root: self.root.clone() };
        let locations = locations.map(move |location| {
            let location = location?;
            checked.check(&location).map(|()| location)
        });
        self.files.delete_stream(locations.boxed())
    }

    /// Lists the files below a folder in the root. Links may lead out of it: then reading what they name fails.
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.check(prefix.unwrap_or(&Path::default())) {
            Ok(()) => self.files.list(prefix),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.check(prefix.unwrap_or(&Path::default()))?;
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.check(from)?;
        self.check(to)?;
        self.files.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.check(from)?;
        self.check(to)?;
        self.files.rename_opts(from, to, options).await
    }
}
