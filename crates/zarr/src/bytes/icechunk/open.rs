//! [`OpenIcechunk`]: the machine that opens a version of a repository.
//!
//! ```text
//!   repo and, for version 1, refs/branch.main/ref.json ──▶ snapshots/ID ──▶ manifests of small arrays, which may be labels
//! ```
//!
//! These are three round trips. Version 1 takes one more for each snapshot that is later than the option `as_of`. A
//! dataset that may begin with a version takes no more: all objects that may name its snapshot are requested together.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;

use super::containers::Containers;
use super::id::ObjectId;
use super::known_manifests::KnownManifests;
use super::places::{ChunksAt, manifest_object};
use super::references::{
    KnownReferences, NamedSnapshot, ReadHistory, deleted, reference, reference_objects,
    snapshot_object, whole,
};
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
    NoReference(VersionChoice),
}

/// A machine that opens a version of a repository.
#[derive(Debug)]
pub struct OpenIcechunk {
    choice: VersionChoice,
    /// A dataset that may begin with another version.
    dataset: Option<String>,
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
        Self { choice, dataset: None, most, repository: None, state: State::Roots }
    }

    /// Makes a machine that opens the version that a dataset begins with, or else the branch `main`.
    pub fn of_dataset(dataset: &str, most: u64) -> Self {
        Self { dataset: Some(dataset.to_owned()), ..Self::new(VersionChoice::default(), most) }
    }

    /// Returns the objects that name the snapshot in one version or the other.
    fn roots(&self) -> Vec<Arc<str>> {
        let mut all: Vec<Arc<str>> = vec!["repo".into()];
        for choice in self.choices() {
            let Some((kind, name)) = choice.reference() else {
                all.extend(chosen_id(&choice).map(|id| snapshot_object(&id).into()));
                continue;
            };
            for object in reference_objects(kind, name) {
                all.extend((kind == "tag").then(|| deleted(&object).into()));
                all.push(object.into());
            }
        }
        all
    }

    /// Returns the versions that may be meant.
    fn choices(&self) -> Vec<VersionChoice> {
        let mut all = vec![self.choice.clone()];
        let first = self.dataset.as_deref().and_then(|it| it.split('/').next());
        // A list of many variables is no name, and too long for one.
        if let Some(name) = first.filter(|it| it.len() <= LONGEST_NAME) {
            let named = [VersionChoice::Branch(name.to_owned()), VersionChoice::Tag(name.into())];
            all.extend(named.into_iter().filter(|it| *it != self.choice));
            all.extend(ObjectId::parse(name).ok().map(VersionChoice::Snapshot));
        }
        all
    }

    /// Finds the snapshot.
    fn found_roots(&mut self, replies: Vec<Option<Bytes>>) -> Result<Step<OpenedIcechunk>> {
        let found = self.roots().into_iter().zip(replies);
        let found: Roots = found.filter_map(|(object, it)| Some((object, it?))).collect();
        if let Some(bytes) = found.get("repo") {
            let repository = RepositoryObject::parse(bytes, self.most);
            let repository = repository.map_err(|error| error.in_file("repo"))?;
            self.choose(|| Ok(repository.references()))?;
            let id = self.choice.find(&repository)?;
            self.repository = Some(repository);
            return Ok(self.snapshot_of(id));
        }
        let choices = self.choices();
        self.choose(|| known(&choices, &found))?;
        let Some(id) = snapshot(&self.choice, &found)? else {
            return Ok(Step::Done(OpenedIcechunk::NoReference(self.choice.clone())));
        };
        match self.choice {
            VersionChoice::AsOf(_, time) => {
                let history = ReadHistory::new(id, self.most).until(time);
                self.earlier(Box::new(history), time, Replies::Start)
            }
            _ => Ok(self.snapshot_of(id)),
        }
    }

    /// Chooses the version that the dataset begins with, if it begins with one.
    fn choose(&mut self, known: impl FnOnce() -> Result<KnownReferences>) -> Result<()> {
        if let Some(dataset) = &self.dataset
            && let Some((choice, _)) = known()?.split(dataset)?
        {
            self.choice = choice;
        }
        Ok(())
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
        let of_repository = self.repository.as_ref().map_or(0, |it| it.memory);
        let parsed = AtomicU64::new(snapshot.memory.saturating_add(of_repository));
        let chunks = ChunksAt { snapshot, containers, known, most, parsed };
        let early = early(&store, &chunks);
        let locations: Vec<Location> = early.iter().map(|id| whole(manifest_object(id))).collect();
        self.state = State::Manifests(early, Box::new((store, chunks)));
        match locations.is_empty() {
            true => self.step(Replies::IfPresent(vec![])),
            false => Ok(Step::ReadIfPresent(locations)),
        }
    }
}

/// The objects that name snapshots, of those that were requested.
type Roots = HashMap<Arc<str>, Bytes>;

/// The most bytes of a name in version 1: a file of this name has a longer one.
const LONGEST_NAME: usize = 200;

fn chosen_id(choice: &VersionChoice) -> Option<ObjectId> {
    match choice {
        VersionChoice::Snapshot(id) => Some(*id),
        _ => None,
    }
}

/// Returns the snapshot of a version; `None` if there is none, or the tag was deleted.
fn snapshot(choice: &VersionChoice, found: &Roots) -> Result<Option<ObjectId>> {
    let Some((kind, name)) = choice.reference() else {
        let is_there = |id: &ObjectId| found.contains_key(snapshot_object(id).as_str());
        return Ok(chosen_id(choice).filter(is_there));
    };
    let objects = reference_objects(kind, name);
    let is_deleted = |object: &String| found.contains_key(deleted(object).as_str());
    if kind == "tag" && objects.iter().any(is_deleted) {
        return Ok(None);
    }
    let object = objects.iter().find_map(|it| Some((it, found.get(it.as_str())?)));
    let id = object.map(|(object, it)| reference(it).map_err(|error| error.in_file(object)));
    id.transpose()
}

/// Returns the branches and tags among the choices that are there.
fn known(choices: &[VersionChoice], found: &Roots) -> Result<KnownReferences> {
    let mut known = KnownReferences::default();
    for choice in choices {
        if let (Some((kind, name)), Some(id)) = (choice.reference(), snapshot(choice, found)?) {
            known.named.push(NamedSnapshot { kind, name: name.to_owned(), id });
        }
    }
    Ok(known)
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
            return Ok(Step::ReadIfPresent(self.roots().into_iter().map(whole).collect()));
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
