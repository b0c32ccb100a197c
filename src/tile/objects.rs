//! The objects of an array, and the loop that feeds a sans-IO machine from them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::error::{Error, Result};
use crate::format::{Entry, Location, Machine, Replies, Step};
use crate::io::{ByteSource, Folder};

/// The objects that an array is made of.
#[derive(Debug)]
pub enum Objects {
    /// One object, whose path is empty.
    One(Arc<dyn ByteSource>),
    /// The objects of a folder, opened when they are first read.
    Many {
        /// Where they are.
        folder: Arc<dyn Folder>,
        /// Those that are open.
        opened: Mutex<HashMap<Arc<str>, Arc<dyn ByteSource>>>,
    },
    /// The objects of several arrays that are read as one; the number of its array stands before the path of an object.
    Several {
        /// What errors call all of them.
        name: String,
        /// Those of each array.
        members: Vec<Arc<Objects>>,
    },
}

/// What stands around the number of a member before the path of its object: no path has it.
const MARK: char = '\0';

/// What the object at `path` of the member with this number is called among those of several.
pub(crate) fn object_of(member: usize, path: &str) -> Arc<str> {
    format!("{MARK}{member}{MARK}{path}").into()
}

/// The number of the member and the path of its object.
fn member_of(object: &str) -> Option<(usize, &str)> {
    let (member, path) = object.strip_prefix(MARK)?.split_once(MARK)?;
    Some((member.parse().ok()?, path))
}

/// Files held open at once; systems allow more, but not without end.
const MAX_OPEN: usize = 512;
/// Objects read and folders listed at once.
pub(crate) const AT_ONCE: usize = 32;

impl Objects {
    /// The objects of a folder.
    pub fn many(folder: Arc<dyn Folder>) -> Self {
        Self::Many { folder, opened: Mutex::default() }
    }

    /// What errors call the object or the folder.
    pub fn name(&self) -> &str {
        match self {
            Self::One(source) => source.name(),
            Self::Many { folder, .. } => folder.name(),
            Self::Several { name, .. } => name,
        }
    }

    /// Says in `error`, which may name an object, where that object is.
    pub fn named(&self, error: Error) -> Error {
        match self {
            Self::One(source) => error.in_file(source.name()),
            Self::Many { folder, .. } => error.in_folder(folder.name()),
            Self::Several { name, members } => match error.file().and_then(member_of) {
                Some((member, path)) if member < members.len() => {
                    let path = (!path.is_empty()).then(|| path.to_owned());
                    members[member].named(error.in_file_instead(path))
                }
                _ => error.in_file(name),
            },
        }
    }

    /// Whether reading returns without waiting.
    pub fn is_resident(&self) -> bool {
        match self {
            Self::One(source) => source.is_resident(),
            Self::Many { folder, .. } => folder.is_resident(),
            Self::Several { members, .. } => members.iter().all(|member| member.is_resident()),
        }
    }

    /// Reads each location, in order; every reply is exactly as long as its range.
    ///
    /// # Errors
    /// `Io` if the bytes cannot be had.
    pub async fn read(&self, locations: &[Location]) -> Result<Vec<Bytes>> {
        if let Self::One(source) = self {
            let ranges: Vec<Range<u64>> = locations.iter().map(|at| at.range.clone()).collect();
            return source.read(&ranges).await;
        }
        let mut by_object: HashMap<Arc<str>, Wanted> = HashMap::new();
        for (place, Location { object, range }) in locations.iter().enumerate() {
            let wanted = by_object.entry(Arc::clone(object)).or_default();
            wanted.places.push(place);
            wanted.ranges.push(range.clone());
        }
        let reads = by_object.into_iter().map(|(object, wanted)| self.read_one(object, wanted));
        let mut replies = vec![Bytes::new(); locations.len()];
        let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
        while let Some((bytes, places)) = reads.try_next().await? {
            for (bytes, at) in bytes.into_iter().zip(places) {
                replies[at] = bytes;
            }
        }
        drop(reads);
        Ok(replies)
    }

    /// Says that what was read from these locations has been used; with `forget`, that it will not be
    /// wanted again soon.
    ///
    /// # Errors
    /// `Io` if one of the objects was written since it was opened.
    pub fn used(&self, locations: &[Location], forget: bool) -> Result<()> {
        let mut unchanged = None;
        for Location { object, range } in locations {
            let Some(source) = self.opened(object) else { continue };
            if unchanged != Some(object) {
                source.unchanged()?;
                unchanged = Some(object);
            }
            if forget {
                source.forget(range);
            }
        }
        Ok(())
    }

    /// An object that is open.
    fn opened(&self, object: &Arc<str>) -> Option<Arc<dyn ByteSource>> {
        match self {
            Self::One(source) => Some(Arc::clone(source)),
            Self::Many { opened, .. } => {
                opened.lock().unwrap_or_else(PoisonError::into_inner).get(object).cloned()
            }
            Self::Several { members, .. } => {
                let (member, path) = member_of(object)?;
                members.get(member)?.opened(&path.into())
            }
        }
    }

    async fn read_one(&self, object: Arc<str>, wanted: Wanted) -> Result<(Vec<Bytes>, Vec<usize>)> {
        let source = match (self, member_of(&object)) {
            (Self::Several { members, .. }, Some((member, path))) if member < members.len() => {
                members[member].open(&path.into()).await?
            }
            _ => self.open(&object).await?,
        };
        Ok((source.read(&wanted.ranges).await?, wanted.places))
    }

    async fn open(&self, object: &Arc<str>) -> Result<Arc<dyn ByteSource>> {
        let (folder, opened) = match self {
            Self::One(source) => return Ok(Arc::clone(source)),
            Self::Many { folder, opened } => (folder, opened),
            Self::Several { .. } => return Err(Error::internal("an object of no array")),
        };
        let lock = || opened.lock().unwrap_or_else(PoisonError::into_inner);
        let held = lock().get(object).cloned();
        if let Some(source) = held {
            return Ok(source);
        }
        let source = folder.open(object).await?;
        let mut opened = lock();
        if opened.len() >= MAX_OPEN {
            opened.clear(); // whoever reads one of them holds it
        }
        opened.insert(Arc::clone(object), Arc::clone(&source));
        Ok(source)
    }

    /// The entries of each folder.
    ///
    /// # Errors
    /// `Io` if one cannot be listed; `Internal` for a single object.
    pub async fn list(&self, folders: Vec<String>) -> Result<Vec<Vec<Entry>>> {
        let Self::Many { folder, .. } = self else {
            return Err(Error::internal("the format of a single object asked for a listing"));
        };
        let list = |path: String| async move {
            let entries = folder.list(&path).await?.into_iter();
            Ok::<_, Error>(entries.map(|it| Entry { name: it.name, size: it.size }).collect())
        };
        stream::iter(folders.into_iter().map(list)).buffered(AT_ONCE).try_collect().await
    }
}

/// What is wanted of one object, and the places of the replies.
#[derive(Default)]
struct Wanted {
    ranges: Vec<Range<u64>>,
    places: Vec<usize>,
}

/// Runs `machine` to its end, reading what it asks for from `objects`.
///
/// # Errors
/// Those of the machine and of the objects, with the name of the object or folder.
pub async fn drive<M: Machine>(mut machine: M, objects: &Objects) -> Result<M::Output> {
    let mut replies = Replies::Start;
    loop {
        let step = machine.step(replies).map_err(|error| objects.named(error))?;
        replies = match step {
            Step::Read(locations) => Replies::Bytes(objects.read(&locations).await?),
            Step::List(folders) => Replies::Listings(objects.list(folders).await?),
            Step::Done(output) => return Ok(output),
        };
    }
}
