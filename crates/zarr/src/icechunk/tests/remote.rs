//! Repositories in object stores: the number of requests, and what they may refer to.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use super::*;
use crate::bytes::icechunk::VersionChoice;
use crate::icechunk::reader::IcechunkReader;
use gridfusion_core::io::{Remote, RemoteLimits, RemoteStore};
use gridfusion_core::source::{Formats, Place, Stores};

/// A store in memory that notes what it is asked, and may refuse to list.
#[derive(Debug)]
struct NotingStore {
    inner: InMemory,
    asked: Mutex<Vec<String>>,
    lists: bool,
    trips: RoundTrips,
}

/// Counts round trips: requests wait for others that are made at the same time.
///
/// ```text
///   request a ──┐ window          a  b ──▶ one round trip
///   request b ──┤
///               └──▶ both go on   c, which needs the reply to a ──▶ the next one
/// ```
///
/// A busy machine makes a request late, which counts as one more. So the fewest of some tries are right.
#[derive(Debug, Clone, Default)]
struct RoundTrips(Arc<Mutex<(usize, Option<Instant>)>>);

impl RoundTrips {
    const WINDOW: Duration = Duration::from_millis(100);

    async fn join(&self) {
        let end = {
            let (count, end) = &mut *self.0.lock().unwrap();
            let now = Instant::now();
            match *end {
                Some(end) if now < end => end,
                _ => {
                    *count += 1;
                    *end.insert(now + Self::WINDOW)
                }
            }
        };
        tokio::time::sleep_until(end.into()).await;
    }

    /// Returns the number until now, and counts anew.
    fn take(&self) -> usize {
        std::mem::take(&mut self.0.lock().unwrap().0)
    }
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
        Arc::new(Self { inner, asked: Mutex::default(), lists, trips: RoundTrips::default() })
    }

    /// Returns the objects that were read since the last call.
    fn asked(&self) -> Vec<String> {
        let asked = self.asked_and_listed().into_iter();
        asked.filter(|it| !it.starts_with("list ")).collect()
    }

    fn asked_and_listed(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn note_list(&self, prefix: Option<&ObjectPath>) {
        let prefix = prefix.map(ToString::to_string).unwrap_or_default();
        self.asked.lock().unwrap().push(format!("list {prefix}"));
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
        self.trips.join().await;
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
        self.note_list(prefix);
        if !self.lists {
            return stream::once(async { Err(no_lists()) }).boxed();
        }
        let (trips, listed) = (self.trips.clone(), self.inner.list(prefix));
        let waited = async move {
            trips.join().await;
            listed
        };
        stream::once(waited).flatten().boxed()
    }

    async fn list_with_delimiter(
        &self,
        prefix: Option<&ObjectPath>,
    ) -> object_store::Result<ListResult> {
        self.note_list(prefix);
        self.trips.join().await;
        match self.lists {
            true => self.inner.list_with_delimiter(prefix).await,
            false => Err(no_lists()),
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

fn no_lists() -> object_store::Error {
    object_store::Error::NotImplemented { operation: "list".into(), implementer: "test".into() }
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

/// A session with one store.
#[derive(Debug)]
struct One(RemoteStore);

impl Stores for One {
    fn store(&self, _: &Url) -> Result<RemoteStore> {
        Ok(self.0.clone())
    }
}

/// The round trips of opening a table.
const TRIPS: usize = 3;

/// The times that a table is opened at most, until no request of it was late.
const TRIES: usize = 8;

/// Opens a table as `FROM` does, in a new session. Returns all requests, and the number of round trips.
async fn requests(store: &Arc<NotingStore>, options: &ArrayOptions) -> (Vec<String>, usize) {
    let mut made = requests_once(store, options).await;
    for _ in 1..TRIES {
        if made.1 <= TRIPS {
            break;
        }
        made = requests_once(store, options).await;
    }
    made
}

async fn requests_once(store: &Arc<NotingStore>, options: &ArrayOptions) -> (Vec<String>, usize) {
    store.asked();
    store.trips.take();
    let session = Remote::default().store(Arc::clone(store) as Arc<dyn ObjectStore>);
    let place = Place::new("s3://repo/small.icechunk", Arc::new(One(session))).unwrap();
    let formats = Formats::new(vec![Arc::new(Zarr), Arc::new(Icechunk)]);
    let found = formats.recognise(&place).await.unwrap().format;
    let options = formats.resolve(&found, options, &ArrayOptions::default()).unwrap();
    formats.table(&found, &place, &options).await.unwrap();
    let mut asked = store.asked_and_listed();
    asked.sort_unstable();
    (asked, store.trips.take())
}

#[tokio::test]
async fn a_version_before_the_dataset_takes_the_same_requests_as_an_option() {
    for spec in ["spec1", "spec2"] {
        let (store, _) = remote(spec, true).await;
        let id = &expected(spec)["v1"].history[0].id;
        for (option, name) in
            [("branch", "dev"), ("tag", "v1"), ("snapshot", id), ("branch", "main")]
        {
            let options = version(option, name).with_option("dataset", "t");
            let (by_option, trips) = requests(&store, &options).await;
            let options = version("dataset", &format!("{name}/t"));
            let (by_dataset, trips_of_dataset) = requests(&store, &options).await;
            assert_eq!(by_dataset, by_option, "{spec} {name}");
            let most = if spec == "spec1" { 12 } else { 11 };
            assert!(by_option.len() <= most, "{spec} {name}: {by_option:?}");
            assert_eq!(trips_of_dataset, trips, "{spec} {name}");
        }
    }
}

/// The listing that recognises a repository goes together with the objects that name its versions.
#[tokio::test]
async fn opening_takes_three_round_trips() {
    for spec in ["spec1", "spec2"] {
        let (store, _) = remote(spec, true).await;
        for dataset in ["t", "main/t"] {
            let (asked, trips) = requests(&store, &version("dataset", dataset)).await;
            assert_eq!(trips, TRIPS, "{spec} {dataset}: {asked:?}");
        }
    }
}

#[tokio::test]
async fn a_version_with_a_group_of_the_whole_name_is_an_error() {
    let (store, _) = remote("spec1", true).await;
    let at =
        |name: &str| ObjectPath::parse(format!("small.icechunk/refs/{name}/ref.json")).unwrap();
    let main = store.get(&at("branch.main")).await.unwrap().bytes().await.unwrap();
    store.put(&at("tag.deep"), main.into()).await.unwrap();
    let session = Remote::default().store(Arc::clone(&store) as Arc<dyn ObjectStore>);
    let place = Place::new("s3://repo/small.icechunk", Arc::new(One(session))).unwrap();
    for (dataset, is_clear) in [
        ("deep/t", true),
        ("deep/deep/inner/sharded", true),
        ("main/deep/inner/sharded", true),
        ("deep/inner/sharded", false),
        ("deep", false),
    ] {
        let opened = IcechunkReader::open_dataset(&place, dataset).await;
        assert_eq!(opened.is_ok(), is_clear, "{dataset}");
        let Err(error) = opened else { continue };
        assert!(error.to_string().contains("choose with an option"), "{error}");
    }
}

/// The library writes names with escapes: to local folders as names of files, and to stores as paths.
#[tokio::test]
async fn versions_have_names_beyond_ascii() {
    let name = "größe#2";
    let tag = VersionChoice::Tag(name.to_owned());
    let temporary = tempfile::tempdir().unwrap();
    let copy = temporary.path().join("x.icechunk");
    crate::tests::copy(Path::new(&repository("spec1")), &copy);
    let (store, _) = remote("spec1", true).await;
    let main = std::fs::read(copy.join("refs/branch.main/ref.json")).unwrap();
    let (from, to) = (copy.join("refs/tag.v1"), copy.join("refs/tag.gr%C3%B6%C3%9Fe%232"));
    crate::tests::copy(&from, &to);
    let at = format!("small.icechunk/refs/tag.{name}/ref.json");
    store.put(&ObjectPath::from(at), main.into()).await.unwrap();
    let session = Remote::default().store(Arc::clone(&store) as Arc<dyn ObjectStore>);
    let session = Arc::new(One(session));
    for location in [copy.to_str().unwrap(), "s3://repo/small.icechunk"] {
        let place = Place::new(location, Arc::clone(&session) as Arc<dyn Stores>).unwrap();
        let reader = IcechunkReader::open(&place, tag.clone()).await.unwrap();
        let references = reader.references().await.unwrap();
        let names: Vec<&str> = references.named.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["dev", "main", name, "v1"], "{location}");
        assert_eq!(references.deleted, ["gone"]);
        let dataset = format!("{name}/t");
        let (_, rest) = IcechunkReader::open_dataset(&place, &dataset).await.unwrap();
        assert_eq!(rest, Some("t"), "{location}");
    }
}

/// The names of versions are looked up one by one where nothing can be listed.
#[tokio::test]
async fn versions_before_datasets_need_no_listing() {
    for spec in ["spec1", "spec2"] {
        let (store, _) = remote(spec, false).await;
        let table = async |dataset: &str| {
            let session = Remote::default().store(Arc::clone(&store) as Arc<dyn ObjectStore>);
            let place = Place::new("s3://repo/small.icechunk", Arc::new(One(session))).unwrap();
            let formats = Formats::new(vec![Arc::new(Icechunk)]);
            let format = Arc::clone(formats.get("icechunk").unwrap());
            let options = version("dataset", dataset);
            let options = formats.resolve(&format, &options, &ArrayOptions::default()).unwrap();
            store.trips.take();
            formats.table(&format, &place, &options).await.map(|_| store.trips.take())
        };
        for dataset in ["v1/t", "dev/t", "t", "main/names", "v1/t, v1/t", "t, v1/t"] {
            let mut opened = table(dataset).await.ok();
            for _ in 1..TRIES {
                if opened.is_none_or(|trips| trips <= TRIPS) {
                    break;
                }
                opened = table(dataset).await.ok();
            }
            assert_eq!(opened, (dataset != "t, v1/t").then_some(TRIPS), "{spec} {dataset}");
        }
        // A deleted tag is none.
        assert!(table("gone/t").await.is_err());
    }
}

/// A repository in a store must not read local files.
#[tokio::test]
async fn remote_repositories_name_no_local_file() {
    use crate::bytes::icechunk::VirtualObject;
    use crate::icechunk::folder::IcechunkFolder;
    use gridfusion_core::io::Folder;

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
