//! Reads from the objects of an array, or of several arrays that are read as one.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::open_folder::{OpenFolder, Purpose, RequestedRanges, read_ranges};
use super::request::Request;
use super::seen::Seen;
use super::version::ObjectVersion;
use crate::error::{Error, Result};
use crate::format::{Entry, Location, NOTHING};
use crate::io::{ByteSource, Folder, FolderEntry, MAX_CONCURRENT_IO, MAX_OPEN_OBJECTS, Subfolder};

/// The stored objects of an array: one object, those of a folder, or those of several arrays that are read as one.
#[derive(Debug)]
pub struct Objects(Kind);

#[derive(Debug)]
enum Kind {
    /// One object, whose path is empty.
    One(Arc<dyn ByteSource>),
    /// The objects of a folder.
    Many(Box<OpenFolder>),
    /// The objects of several arrays that are read as one, told apart by [`Location::member`].
    Several {
        /// The name of all of them, for errors.
        name: String,
        /// The objects of each array. [`Objects::several`] checks that no member is itself `Several`.
        members: Vec<Arc<Objects>>,
    },
    /// The objects of an array that is opened when its first chunk is located.
    Later(LaterObjects),
}

/// The most bytes of a document that is read whole, unless an option sets another number: 64 MiB.
pub const MOST_OF_DOCUMENT: u64 = 64 << 20;

/// Objects that may not be open yet, and what is known of them.
#[derive(Debug)]
struct LaterObjects {
    /// The name of the object or the folder.
    name: String,
    is_resident: bool,
    is_remote: bool,
    /// The objects, once they are open; never `Several`. Locations exist only from then on.
    opened: OnceLock<Arc<Objects>>,
}

/// So many objects are opened together before they are read.
const MANY_OBJECTS: usize = 32;

impl Objects {
    /// Returns one object, whose path is empty.
    pub fn one(source: Arc<dyn ByteSource>) -> Self {
        Self(Kind::One(source))
    }

    /// Returns the objects of a folder, which opens them when they are first read.
    pub fn many(folder: Arc<dyn Folder>) -> Self {
        Self(Kind::Many(Box::new(OpenFolder::new(folder, None))))
    }

    /// Returns the objects of a folder of a format that writes objects again under the same names. Queries fail if they
    /// may have read several versions.
    pub fn many_rewritten(folder: Arc<dyn Folder>) -> Self {
        Self(Kind::Many(Box::new(OpenFolder::new(folder, Some(Seen::default())))))
    }

    /// Returns the objects of the folder at `path` in this folder.
    ///
    /// # Errors
    /// `Internal` if these are not the objects of a folder.
    pub fn below(&self, path: &str) -> Result<Self> {
        match &self.0 {
            Kind::Many(folder) => {
                Ok(Self::many(Arc::new(Subfolder::new(Arc::clone(&folder.folder), path))))
            }
            _ => Err(Error::internal(format!("the folder {path} in no folder"))),
        }
    }

    /// Returns the objects of several arrays that are read as one, told apart by [`Location::member`]. Errors that
    /// concern all of them have the name `name`.
    ///
    /// # Errors
    /// `Internal` if a member is itself of several arrays: a location has one number.
    pub fn several(name: impl Into<String>, members: Vec<Arc<Self>>) -> Result<Self> {
        let name = name.into();
        match members.iter().any(|member| member.members().is_some()) {
            true => Err(Error::internal(format!("objects of {name} within objects of several"))),
            false => Ok(Self(Kind::Several { name, members })),
        }
    }

    /// Returns the objects of an array that is opened when its first chunk is located: see [`Objects::set_opened`].
    pub(crate) fn later(name: String, is_resident: bool, is_remote: bool) -> Self {
        Self(Kind::Later(LaterObjects { name, is_resident, is_remote, opened: OnceLock::new() }))
    }

    /// Sets the objects of an array that is open now. Objects that are set already stay.
    ///
    /// # Errors
    /// `Internal` if these are not [`Objects::later`], or `opened` is of several arrays or opened later itself.
    pub(crate) fn set_opened(&self, opened: &Arc<Self>) -> Result<()> {
        let Kind::Later(later) = &self.0 else {
            return Err(Error::internal("an array was opened twice"));
        };
        if let Kind::Several { .. } | Kind::Later(_) = opened.0 {
            return Err(Error::internal("one array was opened as several, or not at all"));
        }
        later.opened.get_or_init(|| Arc::clone(opened));
        Ok(())
    }

    /// Returns the length of the object in bytes; `None` for objects of a folder, or of several arrays.
    pub fn size(&self) -> Option<u64> {
        match &self.0 {
            Kind::One(source) => Some(source.size()),
            Kind::Many(_) | Kind::Several { .. } | Kind::Later(_) => None,
        }
    }

    /// Returns the objects of each array, if several are read as one.
    pub fn members(&self) -> Option<&[Arc<Self>]> {
        match &self.0 {
            Kind::Several { members, .. } => Some(members),
            Kind::One(_) | Kind::Many(_) | Kind::Later(_) => None,
        }
    }

    /// Whether [`Objects::check_read`] checks anything.
    pub fn are_rewritten(&self) -> bool {
        match &self.0 {
            Kind::One(_) => false,
            Kind::Many(folder) => folder.seen.is_some(),
            Kind::Several { members, .. } => members.iter().any(|member| member.are_rewritten()),
            Kind::Later(later) => later.opened.get().is_some_and(|it| it.are_rewritten()),
        }
    }

    /// Returns the number of the store of a member, if its objects may be written again. Arrays of one store have the same.
    pub fn rewritten_store(&self, member: u32) -> Option<u64> {
        match &self.member(member)?.0 {
            Kind::Many(folder) => folder.seen.as_ref().map(Seen::number),
            _ => None,
        }
    }

    /// Checks, once a query has read `objects` of a member, that these and the member's metadata are still the same.
    ///
    /// # Errors
    /// `Io` for an object that was written, added or deleted since it was first read.
    pub async fn check_read(&self, member: u32, objects: &[Arc<str>]) -> Result<()> {
        match self.member(member).map(|it| &it.0) {
            Some(Kind::Many(folder)) => {
                let checked = folder.check_read(objects).await;
                checked.map_err(|error| self.named_in(member, error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the versions of all objects below a folder; see [`Folder::versions_below`].
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed, or an object was written since it was read.
    pub fn versions_below(
        &self,
        path: &str,
        most: usize,
    ) -> Result<Option<Vec<crate::io::VersionBelow>>> {
        match &self.0 {
            Kind::Many(folder) => {
                folder.versions_below(path, most).map_err(|error| self.named(error))
            }
            _ => Ok(None),
        }
    }

    /// Forgets which documents are known to be absent; returns whether any was.
    pub fn forget_absent(&self) -> bool {
        matches!(&self.0, Kind::Many(folder) if folder.forget_absent())
    }

    /// Returns the paths of objects below a folder; see [`Folder::some_below`].
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed; `Internal` if the array is not a folder.
    pub async fn some_below(&self, path: &str, most: usize) -> Result<Vec<String>> {
        match &self.0 {
            Kind::Many(open) => open.folder.some_below(path, most).await,
            _ => Err(Error::internal("a listing of an array that is not a folder")),
        }
    }

    /// Returns the name of the object or the folder, for errors.
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::One(source) => source.name(),
            Kind::Many(open) => open.folder.name(),
            Kind::Several { name, .. } => name,
            Kind::Later(later) => &later.name,
        }
    }

    /// Returns the path or URL of an object, as errors name it.
    pub fn location_of(&self, at: &Location) -> String {
        match self.member(at.member).map(|member| &member.0) {
            Some(Kind::Many(open)) => open.folder.location_of(&at.object),
            Some(Kind::One(source)) => source.name().to_owned(),
            _ => self.name().to_owned(),
        }
    }

    /// Returns the versions of objects that were opened one by one. Only a format knows what it has read of a folder.
    pub fn versions(&self) -> Vec<ObjectVersion> {
        match &self.0 {
            Kind::One(source) => {
                let object = source.name().to_owned();
                source
                    .version()
                    .map(|version| ObjectVersion { object, version })
                    .into_iter()
                    .collect()
            }
            Kind::Many(_) => vec![],
            Kind::Several { members, .. } => {
                members.iter().flat_map(|member| member.versions()).collect()
            }
            Kind::Later(later) => later.opened.get().map_or(vec![], |it| it.versions()),
        }
    }

    /// Adds the location of these objects to `error`, which may already name one of them.
    pub fn named(&self, error: Error) -> Error {
        match &self.0 {
            Kind::One(source) => error.in_file(source.name()),
            Kind::Many(open) => error.in_folder(open.folder.name()),
            Kind::Several { name, .. } => error.in_file(name),
            Kind::Later(later) => match later.opened.get() {
                Some(objects) => objects.named(error),
                None => error.in_file(&later.name),
            },
        }
    }

    /// Like [`Objects::named`], for an error about the objects of `member`.
    pub fn named_in(&self, member: u32, error: Error) -> Error {
        match self.member(member) {
            Some(objects) => objects.named(error),
            None => self.named(error),
        }
    }

    /// Returns the objects of one array of several; an array that is read alone returns its own.
    fn member(&self, member: u32) -> Option<&Self> {
        match &self.0 {
            Kind::One(_) | Kind::Many(_) => Some(self),
            Kind::Several { members, .. } => members.get(member as usize)?.member(0),
            Kind::Later(later) => later.opened.get()?.member(member),
        }
    }

    /// Whether reads return without waiting.
    pub fn is_resident(&self) -> bool {
        match &self.0 {
            Kind::One(source) => source.is_resident(),
            Kind::Many(open) => open.folder.is_resident(),
            Kind::Several { members, .. } => members.iter().all(|member| member.is_resident()),
            Kind::Later(later) => later.is_resident,
        }
    }

    /// Whether reads are requests over a network.
    pub fn is_remote(&self) -> bool {
        match &self.0 {
            Kind::One(source) => source.is_remote(),
            Kind::Many(open) => open.folder.is_remote(),
            Kind::Several { members, .. } => members.iter().any(|member| member.is_remote()),
            Kind::Later(later) => later.is_remote,
        }
    }

    /// Reads each location, in order.
    ///
    /// # Errors
    /// `Io` if bytes cannot be read; `Corrupt` if they lie beyond the end of their object.
    pub async fn read(&self, locations: &[Location]) -> Result<Vec<Bytes>> {
        self.read_present(locations, MOST_OF_DOCUMENT).await
    }

    /// As [`Objects::read`], for documents of at most `most` bytes.
    pub(super) async fn read_present(
        &self,
        locations: &[Location],
        most: u64,
    ) -> Result<Vec<Bytes>> {
        let read = self.read_documents(locations, false, most).await?;
        let all: Option<Vec<Bytes>> = read.into_iter().collect();
        all.ok_or_else(|| {
            self.named(Error::internal("a source did not return all requested bytes"))
        })
    }

    /// Reads each location, in order; `None` where the object is absent.
    ///
    /// # Errors
    /// `Io` if the bytes of a present object cannot be read; `Corrupt` if they lie beyond its end.
    pub async fn read_if_present(&self, locations: &[Location]) -> Result<Vec<Option<Bytes>>> {
        self.read_documents(locations, true, MOST_OF_DOCUMENT).await
    }

    /// Reads metadata at each location, in order; `None` where the object is absent and may be. An object that is read whole
    /// is a document of at most `most` bytes.
    ///
    /// # Errors
    /// As [`Objects::read`], and `Unsupported` for a longer document.
    pub(super) async fn read_documents(
        &self,
        locations: &[Location],
        may_be_absent: bool,
        most: u64,
    ) -> Result<Vec<Option<Bytes>>> {
        let requests = locations.iter().map(|at| (at, may_be_absent)).collect();
        self.read_each(requests, Purpose::Metadata { most }).await
    }

    /// Reads each request, in order; `None` where an object is absent and may be.
    ///
    /// # Errors
    /// `Io` if bytes cannot be read; `Corrupt` if they lie beyond the end of their object.
    pub async fn fetch(&self, requests: &[Request]) -> Result<Vec<Option<Bytes>>> {
        self.read_each(
            requests.iter().map(|it| (&it.at, it.may_be_absent)).collect(),
            Purpose::Cells,
        )
        .await
    }

    /// As [`Objects::fetch`], for bytes that later queries are likely to need, such as labels.
    ///
    /// # Errors
    /// As [`Objects::fetch`].
    pub async fn fetch_metadata(&self, requests: &[Request]) -> Result<Vec<Option<Bytes>>> {
        self.read_each(
            requests.iter().map(|it| (&it.at, it.may_be_absent)).collect(),
            Purpose::Labels,
        )
        .await
    }

    /// Reads each location, in order; the flag tells whether its object may be absent. Metadata may be kept
    /// for later reads.
    ///
    /// Each object gets all its ranges in one call, so that it is opened once and can join nearby ranges:
    ///
    /// ```text
    /// requests   a 0..8, b 0..4, a 8..9
    /// reads      a [0..8, 8..9] for the places 0 and 2, beside b [0..4] for the place 1
    /// ```
    async fn read_each(
        &self,
        requests: Vec<(&Location, bool)>,
        purpose: Purpose,
    ) -> Result<Vec<Option<Bytes>>> {
        if let Kind::One(source) = &self.0
            && requests.iter().all(|(at, _)| *at.object != *NOTHING)
        {
            let ranges: Vec<_> = requests.iter().map(|(at, _)| at.range.clone()).collect();
            return Ok(read_ranges(&**source, &ranges, purpose)
                .await?
                .into_iter()
                .map(Some)
                .collect());
        }
        let mut by_object: HashMap<(u32, Arc<str>), RequestedRanges> = HashMap::new();
        let mut replies = vec![None; requests.len()];
        for (place, (Location { member, object, range }, may_be_absent)) in
            requests.iter().enumerate()
        {
            if **object == *NOTHING {
                replies[place] = Some(Bytes::new());
                continue;
            }
            if *may_be_absent && self.absent_above(*member, object, purpose).is_some() {
                continue;
            }
            let requested = by_object.entry((*member, Arc::clone(object))).or_default();
            requested.places.push(place);
            requested.ranges.push(range.clone());
            requested.is_needed |= !may_be_absent;
            requested.purpose = purpose;
        }
        // The objects of a member follow one another, so that they are opened together.
        let mut by_object: Vec<_> = by_object.into_iter().collect();
        by_object.sort_unstable_by_key(|((member, _), _)| *member);
        let mut by_object = by_object.into_iter();
        while by_object.len() > 0 {
            let some: Vec<_> = by_object.by_ref().take(MAX_OPEN_OBJECTS / 2).collect();
            self.open_many(&some).await?;
            let reads =
                some.into_iter().map(|(object, requested)| self.read_one(object, requested));
            let mut reads = stream::iter(reads).buffer_unordered(MAX_CONCURRENT_IO);
            while let Some((bytes, places)) = reads.try_next().await? {
                for (bytes, place) in bytes.into_iter().flatten().zip(places) {
                    replies[place] = Some(bytes);
                }
            }
        }
        Ok(replies)
    }

    /// Opens objects before they are read, if there are many and that is faster.
    async fn open_many(&self, requests: &[((u32, Arc<str>), RequestedRanges)]) -> Result<()> {
        if requests.len() < MANY_OBJECTS {
            return Ok(());
        }
        for of_one in requests.chunk_by(|a, b| a.0.0 == b.0.0) {
            if let Some(Kind::Many(folder)) = self.member(of_one[0].0.0).map(|it| &it.0) {
                let requests = of_one.iter().map(|((_, object), requested)| (object, requested));
                folder.open_all(requests).await?;
            }
        }
        Ok(())
    }

    /// Returns the absent folder above a chunk that is known to be absent.
    fn absent_above(&self, member: u32, object: &Arc<str>, purpose: Purpose) -> Option<Arc<str>> {
        match (self.member(member).map(|it| &it.0), purpose) {
            (Some(Kind::Many(folder)), Purpose::Cells) => folder.absent_above(object),
            _ => None,
        }
    }

    /// Returns the object whose stamp shows that an absent chunk is still absent: a folder that is absent, or the object
    /// itself.
    pub fn checked_for_absent(&self, at: &Location) -> Arc<str> {
        let above = self.absent_above(at.member, &at.object, Purpose::Cells);
        above.unwrap_or_else(|| Arc::clone(&at.object))
    }

    /// Reads the ranges requested of one object, and returns them with the places of the replies.
    async fn read_one(
        &self,
        (member, object): (u32, Arc<str>),
        requested: RequestedRanges,
    ) -> Result<(Option<Vec<Bytes>>, Vec<usize>)> {
        let read = match self.member(member).map(|it| &it.0) {
            Some(Kind::Many(folder)) => folder.read_if_present(&object, &requested).await?,
            Some(Kind::One(source)) => {
                Some(read_ranges(&**source, &requested.ranges, requested.purpose).await?)
            }
            _ => return Err(Error::internal("a location in an array that does not exist")),
        };
        Ok((read, requested.places))
    }

    /// Checks, once the bytes at `locations` have been used, that their objects are unchanged. With
    /// `forget`, mappings release the memory of these bytes.
    ///
    /// # Errors
    /// `Io` if one of the objects was written since it was opened.
    pub fn used(&self, locations: &[Location], forget: bool) -> Result<()> {
        // Locations of one object usually follow one another, so one check serves all of them.
        let mut unchanged = None;
        for Location { member, object, range } in locations {
            let source = match self.member(*member).map(|it| &it.0) {
                Some(Kind::One(source)) => Some(Arc::clone(source)),
                Some(Kind::Many(folder)) => folder.opened.get(object),
                _ => None,
            };
            let Some(source) = source else { continue };
            if unchanged != Some((member, object)) {
                source.unchanged()?;
                unchanged = Some((member, object));
            }
            if forget {
                source.forget(&range.within(source.size()));
            }
        }
        Ok(())
    }

    /// Lists the entries of each folder.
    ///
    /// # Errors
    /// `Io` if a folder cannot be listed; `Internal` if the array is not a folder.
    pub async fn list(&self, folders: Vec<String>) -> Result<Vec<Vec<Entry>>> {
        let Kind::Many(open) = &self.0 else {
            return Err(Error::internal(
                "a listing was requested from an array that is not a folder",
            ));
        };
        let entry = |it: FolderEntry| Entry { name: it.name, size: it.size };
        let listed = open.folder.list_all(&folders).await?.into_iter();
        Ok(listed.map(|entries| entries.into_iter().map(entry).collect()).collect())
    }
}

#[cfg(test)]
mod tests {
    use object_store::{ObjectStore, ObjectStoreExt};

    use super::*;
    use crate::error::ErrorKind;
    use crate::format::ByteRange;
    use crate::io::is_not_found;
    use crate::io::testing::TestStore;
    use crate::io::{LocalFolder, StoreFolder};

    async fn store() -> TestStore {
        let store = TestStore::new();
        for (path, bytes) in [("a/x", "0123456789"), ("a/c/y", "abc"), ("b/x", "other")] {
            store.put(&path.into(), bytes.into()).await.unwrap();
        }
        store.asked();
        store
    }

    fn folder(store: &TestStore, prefix: &str) -> StoreFolder {
        let store: Arc<dyn ObjectStore> = Arc::new(store.clone());
        StoreFolder::new(format!("test://{prefix}"), store, prefix.into())
    }

    fn at(object: &str, range: impl Into<ByteRange>) -> Location {
        Location::new(object, range)
    }

    #[tokio::test]
    async fn an_object_that_is_read_whole_takes_one_request() {
        let store = store().await;
        let objects = Objects::many(Arc::new(folder(&store, "a")));
        let read = objects.read(&[at("x", ByteRange::Whole)]).await.unwrap();
        assert_eq!(
            (read, store.asked()),
            (vec![Bytes::from("0123456789")], vec!["get a/x".into()])
        );
        // The session keeps the bytes.
        let read = objects.read(&[at("x", ByteRange::Suffix(3)), at("x", 1..3)]).await.unwrap();
        assert_eq!((read, store.asked()), (vec!["789".into(), "12".into()], vec![]));
        // Opening an object fetches its first bytes.
        let ranges = [at("x", ByteRange::Suffix(99)), at("c/y", 0..1), at("x", ByteRange::Whole)];
        let read = objects.read(&ranges).await.unwrap();
        assert_eq!(read, ["0123456789", "a", "0123456789"]);
        assert_eq!(store.asked(), ["get a/c/y"]);
        // The reply to a suffix read has the object's length, so the next range needs no opening.
        let objects = Objects::many(Arc::new(folder(&store, "a")));
        objects.read(&[at("x", ByteRange::Suffix(3))]).await.unwrap();
        objects.read(&[at("x", 1..3)]).await.unwrap();
        assert_eq!(store.asked(), ["get a/x"; 2]);
    }

    #[tokio::test]
    async fn a_store_of_whole_objects_is_enough() {
        let store = store().await;
        let objects = Objects::many(Arc::new(folder(&store, "a").of_whole_objects()));
        let ranges = [at("x", 2..4), at("x", ByteRange::Suffix(1)), at("c/y", ByteRange::Whole)];
        assert_eq!(objects.read(&ranges).await.unwrap(), ["23", "9", "abc"]);
        let mut asked = store.asked();
        asked.sort();
        assert_eq!(asked, ["get a/c/y", "get a/x"]);
    }

    #[tokio::test]
    async fn only_objects_that_may_be_absent_are_left_out() {
        let store = store().await;
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x"), "0123456789").unwrap();
        let folders: [Arc<dyn Folder>; 4] = [
            Arc::new(folder(&store, "a")),
            Arc::new(folder(&store, "a").of_whole_objects()),
            Arc::new(LocalFolder::open(dir.path(), true).unwrap()),
            Arc::new(LocalFolder::open(dir.path(), false).unwrap()),
        ];
        for folder in folders {
            let objects = Objects::many(folder);
            for range in [ByteRange::Whole, ByteRange::Suffix(2), ByteRange::Bounded(0..2)] {
                let wanted =
                    [at("none", range.clone()), at("x", 0..2), at("c/none/0", range.clone())];
                let read = objects.read_if_present(&wanted).await.unwrap();
                assert_eq!(read, [None, Some(Bytes::from("01")), None]);
                let error = objects.read(&wanted).await.unwrap_err();
                assert!(is_not_found(&error), "{error}");
                // If one of the requests needs the object, its absence is an error.
                let at = wanted[0].clone();
                let request =
                    |may_be_absent| Request { at: at.clone(), may_be_absent, expected: 1 };
                assert_eq!(
                    objects.fetch(&[request(true), request(true)]).await.unwrap(),
                    [None, None]
                );
                assert!(objects.fetch(&[request(true), request(false)]).await.is_err());
            }
            // Other errors remain: a folder is not an object, and no bytes exist beyond the end.
            if objects.name().starts_with('/') {
                std::fs::create_dir_all(dir.path().join("folder")).unwrap();
                assert!(objects.read_if_present(&[at("folder", 0..1)]).await.is_err());
            }
            let error = objects.read_if_present(&[at("x", 5..50)]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
    }

    #[tokio::test]
    async fn an_object_that_was_there_and_is_gone_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x"), "abc").unwrap();
        let files = crate::io::OpenFiles::new(false, 1);
        let folder = crate::io::LocalFolder::open_among(dir.path(), &files).unwrap();
        let objects = Objects::many(Arc::new(folder));
        let at = [at("x", 0..3)];
        assert!(objects.read_if_present(&at).await.unwrap()[0].is_some());
        std::fs::write(dir.path().join("other"), "abc").unwrap();
        let other = crate::io::ReopenedSource::open(&dir.path().join("other"), &files).unwrap();
        drop(other); // only one file is kept open, now this one
        std::fs::remove_file(dir.path().join("x")).unwrap();
        assert!(objects.read_if_present(&at).await.is_err());
    }

    #[tokio::test]
    async fn members_differ_by_number() {
        let store = store().await;
        let members =
            ["a", "b"].map(|prefix| Arc::new(Objects::many(Arc::new(folder(&store, prefix)))));
        let objects = Objects::several("both", members.to_vec()).unwrap();
        let of = |member| Location { member, ..at("x", ByteRange::Whole) };
        assert_eq!(objects.read(&[of(1), of(0)]).await.unwrap(), ["other", "0123456789"]);
        objects.used(&[of(0), of(1)], true).unwrap();
        let error = objects.named_in(1, Error::usage("wrong").in_file("x")).to_string();
        assert!(error.starts_with("test://b/x: "), "{error}");
        assert!(objects.named(Error::usage("wrong")).to_string().starts_with("both: "));
        assert!(objects.read(&[of(2)]).await.is_err());
        // A location has one number, so members have none of their own.
        assert!(Objects::several("more", vec![Arc::new(objects)]).is_err());
        let later = Objects::later("later".into(), true, false);
        assert!(later.set_opened(&Arc::new(Objects::several("two", vec![]).unwrap())).is_err());
        later.set_opened(&members[1]).unwrap();
        assert_eq!(later.read(&[of(0)]).await.unwrap(), ["other"]);
    }
}
