//! Reads folders of small files that update older files: array metadata, and the members of groups.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::names::{TimedName, extension, whole_file};
use super::options::OpenOptions;
use super::visible::vacuumed_names;
use crate::error::{Error, Result};
use crate::format::tiledb::filter::EncryptionKey;
use crate::format::tiledb::generic_tile;
use crate::format::{Entry, Location, Machine, Replies, Step};

/// Reads the files of one folder that lie in an open's window of time, oldest first. Leaves out files that
/// `.vac` files list as replaced.
#[derive(Debug)]
pub(in crate::format::tiledb) struct ReadTimedFolder {
    folder: &'static str,
    region: &'static str,
    options: OpenOptions,
    asked: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    name: String,
    time: TimedName,
    location: Location,
}

/// A file of the folder.
#[derive(Debug)]
pub(in crate::format::tiledb) struct TimedFile {
    pub(in crate::format::tiledb) object: Arc<str>,
    /// The decoded content of the file's generic tile.
    pub(in crate::format::tiledb) content: Bytes,
}

impl ReadTimedFolder {
    /// Makes a machine that reads `folder`; errors call the content of its files `region`.
    pub(in crate::format::tiledb) fn new(
        folder: &'static str,
        region: &'static str,
        options: OpenOptions,
    ) -> Self {
        Self { folder, region, options, asked: vec![] }
    }

    fn ask(&mut self, entries: &[Entry]) -> Step<Vec<TimedFile>> {
        for entry in entries {
            let time = TimedName::parse(&entry.name).filter(|time| self.options.contains(*time));
            if let (Some(time), Some(location)) = (time, whole_file(self.folder, entry)) {
                self.asked.push(Asked { name: entry.name.clone(), time, location });
            }
        }
        // Oldest first.
        self.asked.sort_by(|a, b| (a.time.t1, &a.name).cmp(&(b.time.t1, &b.name)));
        match self.asked.is_empty() {
            true => Step::Done(vec![]),
            false => Step::Read(self.asked.iter().map(|asked| asked.location.clone()).collect()),
        }
    }

    fn parse(&self, bytes: &[Bytes]) -> Result<Vec<TimedFile>> {
        if bytes.len() != self.asked.len() {
            return Err(Error::internal("files were asked for and not delivered"));
        }
        let is_vacuum = |asked: &Asked| extension(&asked.name) == Some("vac");
        let mut replaced = HashSet::new();
        for (asked, content) in self.asked.iter().zip(bytes) {
            if is_vacuum(asked) {
                replaced.extend(vacuumed_names(content)?);
            }
        }
        let left = self
            .asked
            .iter()
            .zip(bytes)
            .filter(|(asked, _)| !is_vacuum(asked) && !replaced.contains(asked.name.as_str()));
        left.map(|(asked, bytes)| self.file(asked, bytes, self.options.key.as_ref())).collect()
    }

    fn file(&self, asked: &Asked, bytes: &[u8], key: Option<&EncryptionKey>) -> Result<TimedFile> {
        let object = Arc::clone(&asked.location.object);
        let content = generic_tile::decode(self.region, 0, bytes, key);
        Ok(TimedFile { content: content.map_err(|error| error.about(&object))?, object })
    }
}

impl Machine for ReadTimedFolder {
    type Output = Vec<TimedFile>;

    fn step(&mut self, replies: Replies) -> Result<Step<Vec<TimedFile>>> {
        match replies {
            Replies::Start => Ok(Step::List(vec![self.folder.to_owned()])),
            Replies::Listings(listings) => Ok(self.ask(&listings.concat())),
            replies => self.parse(&replies.into_bytes()).map(Step::Done),
        }
    }
}

/// Applies `meaning` to the files of a step that is done, and passes other steps on.
pub(in crate::format::tiledb) fn map_done<T>(
    step: Step<Vec<TimedFile>>,
    meaning: impl FnOnce(Vec<TimedFile>) -> Result<T>,
) -> Result<Step<T>> {
    Ok(match step {
        Step::Read(locations) => Step::Read(locations),
        Step::ReadIfPresent(locations) => Step::ReadIfPresent(locations),
        Step::List(folders) => Step::List(folders),
        Step::Done(files) => Step::Done(meaning(files)?),
    })
}
