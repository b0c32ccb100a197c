//! [`ZipFolder`]: the members of an archive as objects of a folder, for metadata.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::bytes::{ZipDirectory, is_zarr};
use gridfusion_core::format::Entry;
use gridfusion_core::io::{ByteSource, Folder, FolderEntry};
use gridfusion_core::source::holds;
use gridfusion_core::{Error, Result};

/// The most folders around a store.
const MOST_FOLDERS: usize = 32;

/// Returns the folder of an archive that is a Zarr store: the root, or the only store in the only folders around it.
///
/// # Errors
/// `Usage` if there is none, or if there are several.
pub(super) fn store_folder(directory: &ZipDirectory) -> Result<String> {
    let mut folder = String::new();
    for _ in 0..MOST_FOLDERS {
        let entries = directory.list(&folder);
        if is_zarr(&entries) {
            return Ok(folder);
        }
        let inner = |entry: &&Entry| entry.size.is_none();
        let below = |entry: &Entry| match folder.is_empty() {
            true => entry.name.clone(),
            false => format!("{folder}/{}", entry.name),
        };
        let folders: Vec<String> = entries.iter().filter(inner).map(below).collect();
        let is_store = |folder: &&String| is_zarr(&directory.list(folder));
        let stores: Vec<&String> = folders.iter().filter(is_store).collect();
        folder = match (stores.as_slice(), folders.as_slice()) {
            ([store], _) => (*store).clone(),
            ([], [only]) => only.clone(),
            ([], _) => return Err(no_store(&folder, &entries)),
            (stores, _) => {
                let all = stores.iter().take(10).map(|it| format!("\"{it}\"")).collect::<Vec<_>>();
                let (count, all) = (stores.len(), all.join(", "));
                return Err(Error::usage(format!(
                    "this archive holds {count} Zarr stores ({all}); unpack it, and read them one by one"
                )));
            }
        };
    }
    Err(no_store(&folder, &directory.list(&folder)))
}

fn no_store(folder: &str, entries: &[Entry]) -> Error {
    let inside =
        if folder.is_empty() { String::new() } else { format!("in its folder \"{folder}\", ") };
    Error::usage(format!(
        "this archive holds no Zarr store: none of zarr.json, .zgroup, .zarray and .zmetadata exists; {inside}{}",
        holds(entries)
    ))
}

/// A folder of an archive.
#[derive(Debug)]
pub(super) struct ZipFolder {
    source: Arc<dyn ByteSource>,
    directory: Arc<ZipDirectory>,
    folder: String,
    /// The archive and the folder, for errors.
    name: String,
}

impl ZipFolder {
    pub(super) fn new(
        source: Arc<dyn ByteSource>,
        directory: Arc<ZipDirectory>,
        folder: &str,
    ) -> Self {
        let name = match folder.is_empty() {
            true => source.name().to_owned(),
            false => format!("{}/{folder}", source.name()),
        };
        Self { source, directory, folder: folder.to_owned(), name }
    }

    /// Returns the name of a member or folder in the archive.
    fn at(&self, path: &str) -> String {
        let parts = [self.folder.as_str(), path].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("/")
    }
}

#[async_trait]
impl Folder for ZipFolder {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_resident(&self) -> bool {
        self.source.is_resident()
    }

    fn is_remote(&self) -> bool {
        self.source.is_remote()
    }

    async fn list(&self, path: &str) -> Result<Vec<FolderEntry>> {
        let entries = self.directory.list(&self.at(path)).into_iter();
        Ok(entries.map(|it| FolderEntry::new(it.name, it.size)).collect())
    }

    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>> {
        let (name, member) = (self.location_of(path), self.at(path));
        let Some(size) = self.directory.get(&member).map(|member| member.len()) else {
            let absent = io::Error::from(io::ErrorKind::NotFound);
            return Err(Error::io("the archive has no such member", absent).in_file(&name));
        };
        let (source, directory) = (Arc::clone(&self.source), Arc::clone(&self.directory));
        Ok(Arc::new(MemberSource { name, source, directory, member, size }))
    }
}

/// A member that is read as a whole.
#[derive(Debug)]
struct MemberSource {
    name: String,
    source: Arc<dyn ByteSource>,
    directory: Arc<ZipDirectory>,
    member: String,
    size: u64,
}

impl MemberSource {
    /// Reads and unpacks the member. The reader of documents has compared its length with the limit.
    async fn whole(&self) -> Result<Bytes> {
        let member = self.directory.get(&self.member);
        let member = member.ok_or_else(|| Error::internal("a member that is gone"))?;
        let span = self.source.read_metadata(&[member.span()]).await?.pop().unwrap_or_default();
        self.directory.document(member, &span).map_err(|error| error.in_file(&self.name))
    }
}

#[async_trait]
impl ByteSource for MemberSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn is_remote(&self) -> bool {
        self.source.is_remote()
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let whole = self.whole().await?;
        let part = |range: &Range<u64>| {
            let is_within = range.start <= range.end && range.end <= self.size;
            let beyond = || Error::internal("bytes beyond a member").in_file(&self.name);
            let part = is_within.then(|| whole.slice(range.start as usize..range.end as usize));
            part.ok_or_else(beyond)
        };
        ranges.iter().map(part).collect()
    }

    fn unchanged(&self) -> Result<()> {
        self.source.unchanged()
    }
}
