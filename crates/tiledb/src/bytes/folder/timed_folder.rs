//! Reads folders of small files that update older files: array metadata, and the members of groups.
//!
//! ```text
//!   Start ─▶ the folder: listed ─▶ files and .vac files in the window: read ─▶ Done: files, oldest first
//! ```
//!
//! The caller merges the files in this order ([`map_done`]). Consolidation adds a file that replaces others.
//! For example, `__meta` has files of the times 10, 20 and 10 to 20, and the `.vac` file of the third lists
//! the first two. An open that ends at 20 gets only the third. An open that ends at 15 sees neither the third
//! nor its `.vac` file, and gets the first.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::names::{TimedName, extension, whole_file};
use super::options::OpenOptions;
use super::visible::vacuumed_names;
use crate::bytes::filter::EncryptionKey;
use crate::bytes::generic_tile;
use gridfusion_core::format::{Entry, Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// Reads the files of one folder that lie in an open's window of time, oldest first. Leaves out files that
/// `.vac` files list as replaced.
#[derive(Debug)]
pub(in crate::bytes) struct ReadTimedFolder {
    /// Its path in the folder of the array or group.
    folder: &'static str,
    /// The name of the files' content in errors.
    region: &'static str,
    options: OpenOptions,
    /// The requested files, sorted by time and then by name; empty until the folder is listed.
    asked: Vec<RequestedFile>,
}

/// A requested file: one of the folder's files in the window, or a `.vac` file.
#[derive(Debug)]
struct RequestedFile {
    name: String,
    time: TimedName,
    location: Location,
}

/// A file of the folder.
#[derive(Debug)]
pub(in crate::bytes) struct TimedFile {
    /// Its path, for errors about its content.
    pub(in crate::bytes) object: Arc<str>,
    /// The decoded content of the file's generic tile.
    pub(in crate::bytes) content: Bytes,
}

impl ReadTimedFolder {
    /// Makes a machine that reads `folder`; errors call the content of its files `region`.
    pub(in crate::bytes) fn new(
        folder: &'static str,
        region: &'static str,
        options: OpenOptions,
    ) -> Self {
        Self { folder, region, options, asked: vec![] }
    }

    /// Requests the files whose names have times in the window. Ignores all other entries of the folder.
    fn ask(&mut self, entries: &[Entry]) -> Step<Vec<TimedFile>> {
        for entry in entries {
            let time = TimedName::parse(&entry.name).filter(|time| self.options.contains(*time));
            if let (Some(time), Some(location)) = (time, whole_file(self.folder, entry)) {
                self.asked.push(RequestedFile { name: entry.name.clone(), time, location });
            }
        }
        // Oldest first. The name decides between equal times, so that the order is always the same.
        self.asked.sort_by(|a, b| (a.time.t1, &a.name).cmp(&(b.time.t1, &b.name)));
        match self.asked.is_empty() {
            true => Step::Done(vec![]),
            false => Step::Read(self.asked.iter().map(|asked| asked.location.clone()).collect()),
        }
    }

    /// Decodes the files that no `.vac` file lists. `bytes` are the contents of `asked`.
    fn parse(&self, bytes: &[Bytes]) -> Result<Vec<TimedFile>> {
        if bytes.len() != self.asked.len() {
            return Err(Error::internal("files were asked for and not delivered"));
        }
        let is_vacuum = |asked: &RequestedFile| extension(&asked.name) == Some("vac");
        // All `.vac` files first: one of them may list a file that sorts before it.
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

    fn file(
        &self,
        asked: &RequestedFile,
        bytes: &[u8],
        key: Option<&EncryptionKey>,
    ) -> Result<TimedFile> {
        let object = Arc::clone(&asked.location.object);
        let content = generic_tile::decode(self.region, 0, bytes, key);
        Ok(TimedFile { content: content.map_err(|error| error.about(&object))?, object })
    }
}

impl Machine for ReadTimedFolder {
    type Output = Vec<TimedFile>;

    fn subject(&self) -> &'static str {
        "listing"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Vec<TimedFile>>> {
        // The kind of the replies tells which step comes next, so the machine keeps no state for that.
        match replies {
            Replies::Start => Ok(Step::List(vec![self.folder.to_owned()])),
            Replies::Listings(listings) => Ok(self.ask(&listings.concat())),
            replies => self.parse(&replies.into_bytes()).map(Step::Done),
        }
    }
}

/// Applies `meaning` to the files of a step that is done, and passes other steps on. Machines that wrap a
/// [`ReadTimedFolder`] call this with the function that merges its files.
pub(in crate::bytes) fn map_done<T>(
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
