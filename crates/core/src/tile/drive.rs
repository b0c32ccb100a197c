//! The loop that feeds a sans-IO machine from objects.
//!
//! This is the only place where a machine's requests become reads. A machine with n steps costs n round
//! trips, because the requests of one step run side by side.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use super::objects::{MOST_OF_DOCUMENT, Objects};
use crate::error::{ErrorKind, Result};
use crate::format::{ByteRange, Location, Machine, Replies, Step};

/// Runs `machine` to its end, with the reads and listings that it requests from `objects`.
///
/// # Errors
/// The errors of the machine and of the objects, with the name of the object or folder.
pub async fn drive<M: Machine>(machine: M, objects: &Objects) -> Result<M::Output> {
    drive_documents(machine, objects, &Documents::default()).await
}

/// Accounts for the memory of documents.
pub trait ReservesMemory: Debug + Send + Sync {
    /// Reserves bytes until the result is dropped.
    ///
    /// # Errors
    /// If there is not so much memory.
    fn reserve(&self, bytes: u64) -> Result<Box<dyn Send + Sync>>;
}

/// How metadata documents are read: objects that a machine requests whole.
#[derive(Debug, Clone)]
pub struct Documents {
    /// The most bytes of one document.
    pub most: u64,
    /// Accounts for their memory, if set.
    pub(crate) memory: Option<Arc<dyn ReservesMemory>>,
}

impl Default for Documents {
    fn default() -> Self {
        Self { most: MOST_OF_DOCUMENT, memory: None }
    }
}

impl Documents {
    /// Fails unless the pool has room for this many bytes of parsed metadata.
    pub fn check_memory(&self, bytes: u64) -> Result<()> {
        match &self.memory {
            Some(memory) if bytes >= LARGE => memory.reserve(bytes).map(drop),
            _ => Ok(()),
        }
    }

    /// Reserves the memory of the documents among the replies to `locations`.
    fn reserve<'a>(
        &self,
        locations: &[Location],
        replies: impl Iterator<Item = Option<&'a Bytes>>,
    ) -> Result<Option<Box<dyn Send + Sync>>> {
        let is_whole = |(at, _): &(&Location, Option<&Bytes>)| at.range == ByteRange::Whole;
        let documents = locations.iter().zip(replies).filter(is_whole);
        let bytes: u64 = documents.filter_map(|(_, bytes)| Some(bytes?.len() as u64)).sum();
        match &self.memory {
            Some(memory) if bytes >= LARGE => {
                memory.reserve(bytes.saturating_mul(PARSED)).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Documents with fewer bytes are not accounted for.
const LARGE: u64 = 1 << 20;

/// The bytes of a parsed document for each byte of its text.
const PARSED: u64 = 4;

/// As [`drive`], with limits on documents.
pub async fn drive_documents<M: Machine>(
    mut machine: M,
    objects: &Objects,
    documents: &Documents,
) -> Result<M::Output> {
    let mut replies = Replies::Start;
    // Held until the machine ends, because it may keep what it parses.
    let mut reserved = vec![];
    loop {
        let step = machine.step(replies).map_err(|error| objects.named(error))?;
        let read = match step {
            Step::Read(locations) => {
                let read = objects.read_present(&locations, documents.most).await;
                if let Ok(read) = &read {
                    reserved.push(documents.reserve(&locations, read.iter().map(Some))?);
                }
                read.map(Replies::Bytes)
            }
            Step::ReadIfPresent(locations) => {
                let read = objects.read_documents(&locations, true, documents.most).await;
                if let Ok(read) = &read {
                    reserved.push(documents.reserve(&locations, read.iter().map(Option::as_ref))?);
                }
                read.map(Replies::IfPresent)
            }
            Step::List(folders) => objects.list(folders).await.map(Replies::Listings),
            Step::Done(output) => return Ok(output),
        };
        replies = read.map_err(|error| match error.kind() {
            // A failed request has only a range of bytes, so the error names their content.
            ErrorKind::Io if objects.is_remote() => error.about(machine.subject()),
            _ => error,
        })?;
    }
}
