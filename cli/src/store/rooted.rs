//! [`RootedStore`]: the local file system below one folder, for DataFusion's formats and `COPY`.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use gridfusion::Root;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// The local file system, without the files outside of a root. Paths stay absolute.
#[derive(Debug)]
pub(super) struct RootedStore {
    files: Arc<LocalFileSystem>,
    root: Root,
}

impl RootedStore {
    pub(super) fn new(root: Root) -> Self {
        Self { files: Arc::new(LocalFileSystem::new()), root }
    }

    /// Fails for a path outside of the root, also by symbolic links.
    fn check(&self, path: &Path) -> Result<()> {
        let local = self.files.path_to_filesystem(path)?;
        self.root.check(&local).map_err(|error| object_store::Error::PermissionDenied {
            path: path.to_string(),
            source: Box::new(error),
        })
    }
}

impl fmt::Display for RootedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rooted({})", self.files)
    }
}

#[async_trait]
impl ObjectStore for RootedStore {
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

    /// Lists what is below a folder in the root. Links may lead out of it: then reading what they name fails.
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
}
