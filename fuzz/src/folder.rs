//! Folders of objects in memory, and a driver that runs machines over them.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::cut::Cut;
use gridfusion_core::format::{Entry, Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};
use gridfusion_tiledb::bytes::fuzzing::envelope;

/// The contents of objects by path.
#[derive(Debug, Clone, Default)]
pub struct Folder(pub BTreeMap<String, Bytes>);

/// The most files to cut from an input.
const MOST_FILES: usize = 64;
/// The most round trips that a machine may need: two for each level of 32 levels of Zarr groups, and a few more.
const MOST_TRIPS: usize = 70;

impl Folder {
    /// Cuts files from an input. A file is a byte, a path and a content; an odd byte puts the content
    /// into an envelope.
    pub fn cut(mut input: Cut<'_>) -> Self {
        let mut folder = Self::default();
        while !input.is_empty() && folder.0.len() < MOST_FILES {
            let (in_envelope, path, content) = (input.byte() & 1 == 1, input.text(), input.piece());
            let content = if in_envelope { envelope(content) } else { content.to_vec() };
            folder.0.insert(path, content.into());
        }
        folder
    }

    /// Runs a machine to its end. Panics if it needs too many round trips, or an object that was never listed.
    pub fn drive<M: Machine>(&self, machine: M) -> Result<M::Output> {
        self.drive_with(machine, |at| Ok(self.read(at)))
    }

    /// As [`Folder::drive`], for machines that read objects by names that other objects have.
    pub fn drive_by_names<M: Machine>(&self, machine: M) -> Result<M::Output> {
        let read = |at: &Location| {
            let read = self.read_if_present(at)?;
            read.ok_or_else(|| Error::corrupt_region("object", "it is absent").in_file(&at.object))
        };
        self.drive_with(machine, read)
    }

    fn drive_with<M: Machine>(
        &self,
        mut machine: M,
        read: impl Fn(&Location) -> Result<Bytes>,
    ) -> Result<M::Output> {
        let mut replies = Replies::Start;
        for _ in 0..=MOST_TRIPS {
            replies = match machine.step(replies)? {
                Step::Done(output) => return Ok(output),
                Step::List(folders) => {
                    Replies::Listings(folders.iter().map(|folder| self.list(folder)).collect())
                }
                Step::Read(wanted) => {
                    Replies::Bytes(wanted.iter().map(&read).collect::<Result<_>>()?)
                }
                Step::ReadIfPresent(wanted) => {
                    let read = wanted.iter().map(|at| self.read_if_present(at));
                    Replies::IfPresent(read.collect::<Result<_>>()?)
                }
            };
        }
        panic!("a machine that does not end");
    }

    /// Returns the bytes of a location. Panics if they do not exist, because a machine must only ask
    /// for bytes of listed objects.
    pub fn read(&self, at: &Location) -> Bytes {
        let object = self.0.get(&*at.object);
        let object = object.unwrap_or_else(|| panic!("{at:?} was never listed"));
        let range = at.range.within(object.len() as u64);
        assert!(range.start <= range.end && range.end <= object.len() as u64, "{at:?}");
        object.slice(range.start as usize..range.end as usize)
    }

    /// Returns the bytes of a location, or `None` if its object is absent. A machine does not know the length of
    /// such an object, so bytes beyond it are an error, as they are when gridfusion reads.
    pub fn read_if_present(&self, at: &Location) -> Result<Option<Bytes>> {
        let Some(object) = self.0.get(&*at.object) else { return Ok(None) };
        let (range, len) = (at.range.within(object.len() as u64), object.len() as u64);
        if range.start > range.end || range.end > len {
            let message = format!("it needs bytes {range:?}, but there are {len}");
            return Err(Error::corrupt_region("object", message).in_file(&at.object));
        }
        Ok(Some(self.read(at)))
    }

    fn list(&self, folder: &str) -> Vec<Entry> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below = |(path, bytes): (&String, &Bytes)| {
            let below = path.strip_prefix(&prefix)?;
            Some(match below.split_once('/') {
                Some((name, _)) => (name.to_owned(), None),
                None => (below.to_owned(), Some(bytes.len() as u64)),
            })
        };
        let entries: BTreeMap<String, Option<u64>> = self.0.iter().filter_map(below).collect();
        entries.into_iter().map(|(name, size)| Entry::new(name, size)).collect()
    }
}
