//! [`OpenIcechunk`]: the machine that opens a version of a repository.
//!
//! ```text
//!   repo and, for version 1, refs/branch.main/ref.json ──▶ snapshots/ID ──▶ manifests of small arrays, which may be labels
//! ```
//!
//! These are three round trips. Version 1 takes one more for each snapshot that is later than the option `as_of`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::containers::Containers;
use super::id::ObjectId;
use super::known_manifests::KnownManifests;
use super::places::{ChunksAt, manifest_object};
use super::references::{ReadHistory, reference, reference_object, snapshot_object, whole};
use super::repository::RepositoryObject;
use super::snapshot::Snapshot;
use super::store::IcechunkStore;
use super::version::VersionChoice;
use crate::bytes::open_store::ZarrStore;
use gridfusion_core::format::{Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// The result of opening.
#[derive(Debug)]
pub enum OpenedIcechunk {
    /// The version is here.
    Store(Box<IcechunkStore>),
    /// A repository of version 1 has no such branch or tag, or one that was deleted. A listing tells which there are.
    NoReference,
}

/// A machine that opens a version of a repository.
#[derive(Debug)]
pub struct OpenIcechunk {
    choice: VersionChoice,
    most: u64,
    repository: Option<RepositoryObject>,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// The beginning: the objects that name the snapshot were requested.
    #[default]
    Roots,
    /// Snapshots of version 1 are read until one is early enough.
    History(Box<ReadHistory>, u64),
    /// The snapshot was requested and, for version 1, `config.yaml`.
    Snapshot(ObjectId),
    /// Manifests were requested.
    Manifests(Vec<ObjectId>, Box<(ZarrStore, ChunksAt)>),
}

/// The most manifests that are read together with the opening, and their most bytes.
const MOST_EARLY: usize = 64;
const MOST_EARLY_BYTES: u64 = 4 << 20;

impl OpenIcechunk {
    /// Makes a machine that opens the chosen version. The option `metadata_limit` allows documents of `most` bytes.
    pub fn new(choice: VersionChoice, most: u64) -> Self {
        Self { choice, most, repository: None, state: State::Roots }
    }

    /// Returns the objects that name the snapshot in one version or the other.
    fn roots(&self) -> Vec<Location> {
        let mut all = vec![whole("repo")];
        match self.choice.reference() {
            Some((kind, name)) => {
                let object = reference_object(kind, name);
                let deleted = object.iter().filter(|_| kind == "tag");
                let deleted = deleted.map(|object| whole(format!("{object}.deleted")));
                all.extend(deleted.collect::<Vec<_>>());
                all.extend(object.map(whole));
            }
            None => all.extend(self.chosen_id().map(|id| whole(snapshot_object(&id)))),
        }
        all
    }

    fn chosen_id(&self) -> Option<ObjectId> {
        match &self.choice {
            VersionChoice::Snapshot(id) => Some(*id),
            _ => None,
        }
    }

    /// Finds the snapshot.
    fn found_roots(&mut self, mut replies: Vec<Option<Bytes>>) -> Result<Step<OpenedIcechunk>> {
        let named = match replies.len() {
            1 => None,
            _ => replies.pop().flatten(),
        };
        let is_deleted = replies.len() > 1 && replies.pop().flatten().is_some();
        if let Some(bytes) = replies.pop().flatten() {
            let repository = RepositoryObject::parse(&bytes, self.most);
            let repository = repository.map_err(|error| error.in_file("repo"))?;
            let id = self.choice.find(&repository)?;
            self.repository = Some(repository);
            return Ok(self.snapshot_of(id));
        }
        match (&self.choice, named) {
            (VersionChoice::Snapshot(id), Some(_)) => {
                let id = *id;
                Ok(self.snapshot_of(id))
            }
            (_, None) => Ok(Step::Done(OpenedIcechunk::NoReference)),
            (..) if is_deleted => Ok(Step::Done(OpenedIcechunk::NoReference)),
            (VersionChoice::AsOf(_, time), Some(bytes)) => {
                let (newest, time) = (reference(&bytes)?, *time);
                let history = ReadHistory::new(newest, self.most).until(time);
                self.earlier(Box::new(history), time, Replies::Start)
            }
            (_, Some(bytes)) => {
                let id = reference(&bytes)?;
                Ok(self.snapshot_of(id))
            }
        }
    }

    /// Reads the next snapshot of a history.
    fn earlier(
        &mut self,
        mut history: Box<ReadHistory>,
        time: u64,
        replies: Replies,
    ) -> Result<Step<OpenedIcechunk>> {
        match history.step(replies)? {
            Step::Done(all) => {
                let last = all.last().filter(|it| it.time <= time);
                let id = last.ok_or_else(|| self.choice.too_early())?.id;
                Ok(self.snapshot_of(id))
            }
            Step::Read(locations) => {
                self.state = State::History(history, time);
                Ok(Step::Read(locations))
            }
            _ => Err(Error::internal("a history that reads no snapshot")),
        }
    }

    fn snapshot_of(&mut self, id: ObjectId) -> Step<OpenedIcechunk> {
        self.state = State::Snapshot(id);
        let config = self.repository.is_none().then(|| whole("config.yaml"));
        Step::ReadIfPresent([whole(snapshot_object(&id))].into_iter().chain(config).collect())
    }

    /// Parses the snapshot, and requests manifests that are likely to be needed.
    fn found_snapshot(
        &mut self,
        id: ObjectId,
        replies: Vec<Option<Bytes>>,
    ) -> Result<Step<OpenedIcechunk>> {
        let object = snapshot_object(&id);
        let mut replies = replies.into_iter();
        let bytes = replies.next().flatten().ok_or_else(|| {
            let message = format!("the {} is the snapshot {id}, which is not there", self.choice);
            Error::corrupt_region("repository", message).in_file(&object)
        })?;
        let snapshot = Snapshot::parse(&id, &bytes, self.most);
        let mut snapshot = snapshot.map_err(|error| error.in_file(&object))?;
        let containers = match &self.repository {
            Some(repository) => {
                if let Some(facts) = repository.snapshot(&id) {
                    snapshot.facts = facts.clone();
                }
                repository.containers.clone()
            }
            None => {
                let config = replies.next().flatten();
                config.map(|it| Containers::from_yaml(&it)).unwrap_or_default()
            }
        };
        let store = ZarrStore::from_nodes(std::mem::take(&mut snapshot.documents))?;
        let (known, most) = (KnownManifests::default(), self.most);
        let chunks = ChunksAt { snapshot, containers, known, most };
        let early = early(&store, &chunks);
        let locations: Vec<Location> = early.iter().map(|id| whole(manifest_object(id))).collect();
        self.state = State::Manifests(early, Box::new((store, chunks)));
        match locations.is_empty() {
            true => self.step(Replies::IfPresent(vec![])),
            false => Ok(Step::ReadIfPresent(locations)),
        }
    }
}

/// Returns the manifests of arrays of at most one axis, if they are few and small: opening a table reads labels.
fn early(store: &ZarrStore, chunks: &ChunksAt) -> Vec<ObjectId> {
    let small = store.arrays().iter().filter(|array| array.variable().axes.len() <= 1);
    let lists = small.filter_map(|array| chunks.chunks_of(array).ok());
    let ids: BTreeSet<ObjectId> = lists.flat_map(|it| it.manifests.all()).map(|it| it.id).collect();
    let facts = |id: &ObjectId| chunks.snapshot.manifests.get(id).map(|it| it.bytes);
    let bytes: u64 = ids.iter().filter_map(facts).fold(0, u64::saturating_add);
    match ids.len() <= MOST_EARLY && bytes <= MOST_EARLY_BYTES {
        true => ids.into_iter().collect(),
        false => vec![],
    }
}

impl Machine for OpenIcechunk {
    type Output = OpenedIcechunk;

    fn step(&mut self, replies: Replies) -> Result<Step<OpenedIcechunk>> {
        if let Replies::Start = replies {
            return Ok(Step::ReadIfPresent(self.roots()));
        }
        match std::mem::take(&mut self.state) {
            State::Roots => self.found_roots(replies.into_present()),
            State::History(history, time) => self.earlier(history, time, replies),
            State::Snapshot(id) => self.found_snapshot(id, replies.into_present()),
            State::Manifests(early, opened) => {
                let (store, chunks) = *opened;
                for (id, bytes) in early.iter().zip(replies.into_present()) {
                    // The query that needs a manifest reports that it is damaged or absent.
                    let _ = bytes.map(|bytes| chunks.parse(id, &bytes));
                }
                let (choice, repository) = (self.choice.clone(), self.repository.take());
                let store = IcechunkStore::new(store, Arc::new(chunks), choice, repository);
                Ok(Step::Done(OpenedIcechunk::Store(Box::new(store))))
            }
        }
    }
}
