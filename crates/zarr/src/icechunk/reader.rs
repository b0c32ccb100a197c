//! An opened version of a repository as a [`VariableStore`].

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;

use super::check::{Sizes, check_variable};
use super::folder::IcechunkFolder;
use crate::bytes::icechunk::{
    IcechunkStore, KnownReferences, ListReferences, ListedManifest, ObjectId, OpenIcechunk,
    OpenedIcechunk, ReadHistory, SnapshotFacts, VersionChoice,
};
use crate::store::codec;
use arrow::temporal_conversions::timestamp_us_to_datetime;
use gridfusion_cf::conventions::{StoreFacts, StoredTotals, VariableStore, located_totals};
use gridfusion_cf::hierarchy::Hierarchy;
use gridfusion_core::format::{ByteRange, Location, Machine, Replies, Step, StoredChunk};
use gridfusion_core::source::Place;
use gridfusion_core::tile::{Documents, ObjectVersion, Objects, drive, drive_documents};
use gridfusion_core::{Error, ErrorKind, Result};

/// An opened version of a repository.
#[derive(Debug)]
pub(super) struct IcechunkReader {
    pub(super) store: IcechunkStore,
    objects: Arc<Objects>,
    documents: Documents,
    /// Whether the repository itself is in an object store.
    pub(super) is_remote: bool,
    /// The lengths of the objects with chunks, once they were listed.
    pub(super) sizes: OnceLock<Option<Sizes>>,
}

/// The most manifests, and their most bytes, that a description of a remote repository reads.
const MOST_MANIFESTS: usize = 64;
const MOST_BYTES: u64 = 16 << 20;

/// The manifests that are read at once.
const AT_ONCE: usize = 64;

impl IcechunkReader {
    /// Opens the chosen version of the repository at `place`.
    ///
    /// # Errors
    /// `Usage` if there is no repository, or no such version in it; `Corrupt` or `Unsupported` if it cannot be read.
    pub(super) async fn open(place: &Place, choice: VersionChoice) -> Result<Self> {
        Self::open_with(place, OpenIcechunk::new(choice, place.documents().most)).await
    }

    async fn open_with(place: &Place, open: OpenIcechunk) -> Result<Self> {
        let (own, documents) = (place.folder()?, place.documents());
        let objects = Objects::many(Arc::clone(&own));
        let store = match drive_documents(open, &objects, &documents).await? {
            OpenedIcechunk::Store(store) => *store,
            OpenedIcechunk::NoReference(choice) => return Err(absent(&choice, &objects).await),
        };
        let folder = IcechunkFolder::new(place, own, store.names_stores());
        let objects = Arc::new(Objects::many(Arc::new(folder)));
        for remark in store.remarks() {
            log::warn!("{}: {remark}", objects.name());
        }
        let is_remote = place.is_remote();
        let reader = Self { store, objects, documents, is_remote, sizes: OnceLock::new() };
        reader.check_memory()?;
        Ok(reader)
    }

    /// Opens the version that a dataset begins with, such as `main/forecast/t2m` or `v1`, and returns the rest. The branch `main` is
    /// opened for a dataset without a version.
    ///
    /// # Errors
    /// As [`IcechunkReader::open`], and `Usage` if the version is no single one, or has a group or variable with the
    /// path of the dataset.
    pub(super) async fn open_dataset<'a>(
        place: &Place,
        dataset: &'a str,
    ) -> Result<(Self, Option<&'a str>)> {
        let open = OpenIcechunk::of_dataset(dataset, place.documents().most);
        let reader = Self::open_with(place, open).await?;
        let Some(rest) = reader.store.choice().behind(dataset) else {
            return Ok((reader, Some(dataset)));
        };
        let name = &dataset[..dataset.len() - rest.map_or(0, |rest| rest.len() + 1)];
        let name = name.trim_end_matches('/');
        let path = dataset.split(',').next().unwrap_or_default().trim().trim_end_matches('/');
        // Versions of a store mostly have the same groups. The branch `main` is not searched: that takes its snapshot.
        if reader.has_below(path) {
            let message = format!(
                "\"{name}\" is a version of the repository, and \"{path}\" a group or a variable in it, too; choose with an option: \
                 branch => '{name}', tag => '{name}' or branch => 'main'"
            );
            return Err(Error::usage(message).in_file(place.location()));
        }
        Ok((reader, rest))
    }

    /// Whether there is an array or a group at a path, or below it.
    fn has_below(&self, path: &str) -> bool {
        let is_below = |it: &str| {
            it.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let hierarchy = self.hierarchy();
        hierarchy.groups.keys().any(|it| is_below(it))
            || hierarchy.variables.iter().any(|it| is_below(&it.path))
            || hierarchy.unreadable.iter().any(|it| is_below(&it.path))
    }

    /// Fails unless the session has room for the metadata that was parsed since the last call.
    pub(super) fn check_memory(&self) -> Result<()> {
        let checked = self.documents.check_memory(self.store.take_parsed());
        checked.map_err(|error| self.objects.named(error))
    }

    /// Returns the snapshot and those before it, newest first.
    ///
    /// # Errors
    /// As [`IcechunkReader::open`].
    pub(super) async fn history(&self) -> Result<Vec<SnapshotFacts>> {
        if let Some(history) = self.store.history().map_err(|error| self.objects.named(error))? {
            return Ok(history);
        }
        let history = ReadHistory::new(self.store.snapshot().id, self.documents.most);
        drive_documents(history, &self.objects, &self.documents).await
    }

    /// Returns all branches and tags.
    ///
    /// # Errors
    /// `Io` if they must be listed, and cannot.
    pub(super) async fn references(&self) -> Result<KnownReferences> {
        match self.store.references() {
            Some(references) => Ok(references),
            None => {
                drive_documents(ListReferences::default(), &self.objects, &self.documents).await
            }
        }
    }

    /// Returns the facts about a snapshot.
    ///
    /// # Errors
    /// As [`IcechunkReader::open`].
    pub(super) async fn facts_of(&self, id: ObjectId) -> Result<SnapshotFacts> {
        if let Some(facts) = self.store.facts_of(&id) {
            return Ok(facts.clone());
        }
        let one = ReadHistory::only(id, self.documents.most);
        let facts = drive_documents(one, &self.objects, &self.documents).await?.pop();
        facts.ok_or_else(|| Error::internal("a snapshot without facts"))
    }

    /// Reads manifests.
    pub(super) async fn read(&self, manifests: &[&ListedManifest]) -> Result<Vec<Bytes>> {
        let at = |it: &&ListedManifest| Location::new(it.object.as_str(), ByteRange::Whole);
        let read = ReadObjects(manifests.iter().map(at).collect());
        drive_documents(read, &self.objects, &self.documents).await
    }

    /// Adds up what manifests list of a variable.
    async fn listed_totals(
        &self,
        variable: usize,
        manifests: &[ListedManifest],
    ) -> Result<StoredTotals> {
        let mut totals = StoredTotals::default();
        let mut add = |(chunks, bytes): (u64, u64)| {
            totals.chunks += chunks;
            totals.bytes = totals.bytes.saturating_add(bytes);
        };
        let mut unread = vec![];
        for manifest in manifests {
            match self.store.totals(variable, manifest, None)? {
                Some(known) => add(known),
                None => unread.push(manifest),
            }
        }
        for some in unread.chunks(AT_ONCE) {
            for (manifest, bytes) in some.iter().zip(self.read(some).await?) {
                let read = self.store.totals(variable, manifest, Some(&bytes))?;
                add(read.ok_or_else(|| Error::internal("a manifest that was not parsed"))?);
            }
            self.check_memory()?;
        }
        let array = self.store.store().arrays().get(variable);
        let of_chunk = array.and_then(|array| array.chunk_bytes());
        totals.raw_bytes = of_chunk.map(|bytes| bytes.saturating_mul(totals.chunks));
        Ok(totals)
    }
}

/// Returns the error for a repository of version 1 without the branch or tag, and for a place that is none.
async fn absent(choice: &VersionChoice, objects: &Objects) -> Error {
    let known = match drive(ListReferences::default(), objects).await {
        Ok(known) => known,
        Err(error) if error.kind() != ErrorKind::Io => return error,
        // Web servers cannot list.
        Err(_) => KnownReferences::default(),
    };
    let error = match known == KnownReferences::default() {
        false => choice.unknown(&known),
        true => {
            let named = match choice.reference() {
                Some((kind, name)) => format!("\"refs/{kind}.{name}/ref.json\" of version 1"),
                None => "the snapshot".to_owned(),
            };
            Error::usage(format!(
                "there is no Icechunk repository, or a part of it is missing: neither \"repo\" of version 2 nor {named} is there"
            ))
        }
    };
    objects.named(error)
}

/// A machine that reads objects whole.
struct ReadObjects(Vec<Location>);

impl Machine for ReadObjects {
    type Output = Vec<Bytes>;

    fn subject(&self) -> &'static str {
        "manifests"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Vec<Bytes>>> {
        Ok(match replies {
            Replies::Start => Step::Read(std::mem::take(&mut self.0)),
            replies => Step::Done(replies.into_bytes()),
        })
    }
}

/// Returns a time in microseconds since 1970 as text.
fn time_text(microseconds: u64) -> String {
    let time = i64::try_from(microseconds).ok().and_then(timestamp_us_to_datetime);
    time.map_or_else(
        || "an unknown time".to_owned(),
        |time| format!("{}", time.format("%Y-%m-%d %H:%M:%S")),
    )
}

#[async_trait]
impl VariableStore for IcechunkReader {
    fn hierarchy(&self) -> &Hierarchy {
        self.store.store().hierarchy()
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>> {
        let locate = self.store.locate(variable, chunks)?;
        let located = drive_documents(locate, &self.objects, &self.documents).await?;
        self.check_memory()?;
        Ok(located)
    }

    /// A snapshot never changes.
    fn versions(&self) -> Vec<ObjectVersion> {
        let version = format!("snapshot {}", self.store.snapshot().id);
        vec![ObjectVersion { object: self.objects.name().to_owned(), version }]
    }

    fn facts(&self) -> StoreFacts {
        let (version, snapshot) = (self.store.version(), self.store.snapshot());
        let mut more = vec![];
        if let Some((kind, name)) = self.store.choice().reference() {
            more.push(format!("{kind} {name}"));
        }
        more.push(format!("snapshot {} of {}", snapshot.id, time_text(snapshot.time)));
        if !snapshot.message.is_empty() {
            more.push(format!("\"{}\"", snapshot.message));
        }
        StoreFacts {
            format: "icechunk",
            version: version.to_string(),
            noun: format!("Icechunk repository, spec {version}"),
            size: None,
            more,
            warnings: self.store.remarks(),
        }
    }

    fn codec(&self, variable: usize) -> Option<String> {
        codec(self.store.store(), variable)
    }

    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>> {
        let named = |error: Error| self.objects.named(error);
        let array = self.store.store().arrays().get(variable);
        let is_sharded = array.is_some_and(|array| array.shard_shape().is_some());
        let manifests = self.store.manifests(variable).map_err(named)?;
        let bytes = manifests.iter().filter_map(|it| it.bytes).fold(0, u64::saturating_add);
        let are_many = manifests.len() > MOST_MANIFESTS || bytes > MOST_BYTES;
        match (self.is_remote, is_sharded) {
            (true, true) => Ok(None),
            (true, false) if are_many => Ok(None),
            (false, true) => located_totals(self, variable).await,
            (_, false) => self.listed_totals(variable, &manifests).await.map(Some).map_err(named),
        }
    }

    async fn check_index(&self, variable: usize) -> Result<Option<u64>> {
        let checked = check_variable(self, variable).await;
        checked.map(Some).map_err(|error| self.objects.named(error))
    }
}
