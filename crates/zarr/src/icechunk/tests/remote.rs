//! Repositories in object stores: the number of requests, and what they may refer to.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use super::*;
use gridfusion_core::io::RemoteLimits;

/// A store in memory that notes what it is asked, and may refuse to list.
#[derive(Debug)]
struct NotingStore {
    inner: InMemory,
    asked: Mutex<Vec<String>>,
    lists: bool,
}

impl fmt::Display for NotingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NotingStore")
    }
}

impl NotingStore {
    /// Takes a copy of a local folder.
    async fn of_folder(folder: &Path, prefix: &str, lists: bool) -> Arc<Self> {
        let inner = InMemory::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(next).unwrap().map(std::result::Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                let at = ObjectPath::parse(format!("{prefix}/{name}")).unwrap();
                inner.put(&at, std::fs::read(&path).unwrap().into()).await.unwrap();
            }
        }
        Arc::new(Self { inner, asked: Mutex::default(), lists })
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

#[async_trait]
impl ObjectStore for NotingStore {
    async fn put_opts(
        &self,
        at: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &ObjectPath,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(
        &self,
        at: &ObjectPath,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.asked.lock().unwrap().push(at.to_string());
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<ObjectPath>>,
    ) -> BoxStream<'static, object_store::Result<ObjectPath>> {
        self.inner.delete_stream(paths)
    }

    fn list(
        &self,
        prefix: Option<&ObjectPath>,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(
        &self,
        prefix: Option<&ObjectPath>,
    ) -> object_store::Result<ListResult> {
        match self.lists {
            true => self.inner.list_with_delimiter(prefix).await,
            false => Err(object_store::Error::NotImplemented {
                operation: "list".into(),
                implementer: "test".into(),
            }),
        }
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

async fn remote(spec: &str, lists: bool) -> (Arc<NotingStore>, Opener) {
    let folder = PathBuf::from(repository(spec));
    let store = NotingStore::of_folder(&folder, "small.icechunk", lists).await;
    let opener = opener(ArrayOptions::default()).await;
    let url = Url::parse("s3://repo/").unwrap();
    (Arc::clone(&store), opener.with_store(&url, Arc::clone(&store) as Arc<dyn ObjectStore>))
}

#[tokio::test]
async fn opening_takes_few_requests_and_a_chunk_takes_one() {
    for (spec, most) in [("spec1", 14), ("spec2", 13)] {
        for lists in [true, false] {
            let (store, opener) = remote(spec, lists).await;
            let dataset = opener.open("s3://repo/small.icechunk").await.unwrap();
            let asked = store.asked();
            assert!(asked.len() <= most, "{asked:?}");
            let reader = dataset.array("t").await.unwrap();
            // Labels are in manifests that were read before.
            assert_eq!(store.asked(), Vec::<String>::new());
            cells(&reader).await.unwrap();
            let mut asked = store.asked();
            // A manifest, the chunk that is an object, and none for the inline one.
            assert_eq!(asked.len(), 2, "{asked:?}");
            asked.retain(|it| it.starts_with("small.icechunk/chunks/"));
            assert_eq!(asked.len(), 1);
            // The manifest is known now, and chunks are not kept.
            cells(&reader).await.unwrap();
            assert!(store.asked().iter().all(|it| it.starts_with("small.icechunk/chunks/")));
        }
    }
}

#[tokio::test]
async fn remote_repositories_have_the_same_cells() {
    for spec in ["spec1", "spec2"] {
        let (_, opener) = remote(spec, true).await;
        let dataset = opener.open("s3://repo/small.icechunk").await.unwrap();
        compare(&dataset, &expected(spec)["main"], spec).await;
    }
}

/// A session asks again whether a branch has moved once its last reply is old.
#[tokio::test]
async fn a_branch_that_moves_is_another_snapshot() {
    let (store, opener) = remote("spec1", true).await;
    let opener = opener.with_limits(RemoteLimits::default().with_check(Duration::ZERO));
    let all = expected("spec1");
    let before = opener.open("s3://repo/small.icechunk").await.unwrap();
    let at = ObjectPath::parse("small.icechunk/refs/branch.main/ref.json").unwrap();
    let text = format!("{{\"snapshot\": \"{}\"}}", all["v1"].history[0].id);
    store.put(&at, text.into_bytes().into()).await.unwrap();
    let after = opener.open("s3://repo/small.icechunk").await.unwrap();
    compare(&after, &all["v1"], "after").await;
    compare(&before, &all["main"], "before").await;
}

/// A repository in a store must not read local files.
#[tokio::test]
async fn remote_repositories_name_no_local_file() {
    use crate::bytes::icechunk::VirtualObject;
    use crate::icechunk::folder::IcechunkFolder;
    use gridfusion_core::io::RemoteStore;
    use gridfusion_core::io::{Folder, Remote};
    use gridfusion_core::source::{Place, Stores};

    #[derive(Debug)]
    struct One(RemoteStore);

    impl Stores for One {
        fn store(&self, _: &Url) -> Result<RemoteStore> {
            Ok(self.0.clone())
        }
    }

    let temporary = tempfile::tempdir().unwrap();
    let secret = temporary.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let url = format!("file://{}", secret.display());
    assert_eq!(VirtualObject::parse(&url).unwrap().url, url);
    assert!(VirtualObject::parse("chunks/1CECHNKREP0F1RSTCMT0").is_none());
    let stores = Arc::new(One(Remote::default().store(Arc::new(InMemory::new()))));
    let place = Place::new("s3://repo/x", stores).unwrap();
    let folder = IcechunkFolder::new(&place, place.folder().unwrap(), true);
    let error = folder.open(&url).await.unwrap_err().to_string();
    assert!(error.contains("refers to the local file"), "{error}");
}
