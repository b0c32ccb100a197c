//! Folders of TileDB arrays in memory, whose files tests damage.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gridfusion::Error;
use gridfusion::io::{ByteSource, Folder, FolderEntry, MemorySource};

use crate::support::tiledb_writer::Files;

/// A folder of files in memory, which records the opened files.
#[derive(Debug)]
pub(super) struct MemoryFolder {
    pub(super) files: Files,
    pub(super) opened: Mutex<BTreeSet<String>>,
}

/// The name of the folder in errors.
pub(crate) const NAME: &str = "damaged";

#[async_trait]
impl Folder for MemoryFolder {
    fn name(&self) -> &str {
        NAME
    }

    fn is_resident(&self) -> bool {
        true
    }

    async fn list(&self, path: &str) -> gridfusion::Result<Vec<FolderEntry>> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let mut entries = BTreeMap::new();
        for (path, bytes) in &self.files {
            let Some(below) = path.strip_prefix(&prefix) else { continue };
            match below.split_once('/') {
                Some((folder, _)) => entries.insert(folder.to_owned(), None),
                None => entries.insert(below.to_owned(), Some(bytes.len() as u64)),
            };
        }
        Ok(entries.into_iter().map(|(name, size)| FolderEntry::new(name, size)).collect())
    }

    async fn open(&self, path: &str) -> gridfusion::Result<Arc<dyn ByteSource>> {
        self.opened.lock().unwrap().insert(path.to_owned());
        let name = format!("{NAME}/{path}");
        match self.files.get(path) {
            Some(bytes) => Ok(Arc::new(MemorySource::new(name, bytes.clone()))),
            None => {
                let error = std::io::Error::from(std::io::ErrorKind::NotFound);
                Err(Error::io("cannot open the file", error).in_file(&name))
            }
        }
    }
}

/// All files below a folder.
pub(crate) fn files_below(folder: &Path) -> Files {
    let mut files = Files::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        match path.is_dir() {
            true => {
                let below = files_below(&path).into_iter();
                files.extend(below.map(|(path, bytes)| (format!("{name}/{path}"), bytes)));
            }
            false => _ = files.insert(name, std::fs::read(&path).unwrap()),
        }
    }
    files
}
