//! Zarr stores in zip files in the suite: the stores of version 3, packed.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::format::{Capabilities, FormatUnderTest};
use super::logical::Logical;
use super::zarr::Zarr3;
use crate::support::zip_archive::{HEADER, ZipArchive};

pub(crate) struct ZarrInZip;

/// The document of the store.
const DOCUMENT: &str = "zarr.json";

impl FormatUnderTest for ZarrInZip {
    fn name(&self) -> &'static str {
        "zarr"
    }

    fn suffix(&self) -> &'static str {
        ".zarr.zip"
    }

    fn capabilities(&self) -> Capabilities {
        Zarr3.capabilities()
    }

    /// Every second chunk or shard is deflated. The document comes last.
    fn write(&self, array: &Logical, path: &Path) {
        let store = tempfile::tempdir().unwrap();
        Zarr3.write(array, store.path());
        let mut archive = ZipArchive::default();
        let (mut files, mut number) = (files(store.path()), 0);
        files.sort_by_key(|file| (file == DOCUMENT, file.clone()));
        for file in files {
            let content = std::fs::read(store.path().join(&file)).unwrap();
            archive.add(&file, &content, file != DOCUMENT && number % 2 == 1);
            number += 1;
        }
        std::fs::write(path, archive.finish()).unwrap();
    }

    /// The document with its header, and the directory behind it.
    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        let archive = std::fs::read(path).unwrap();
        let start = archive.windows(HEADER.len()).rposition(|bytes| bytes == HEADER).unwrap();
        (path.to_owned(), start..archive.len())
    }
}

/// Returns the paths of all files in a folder, relative to it.
fn files(folder: &Path) -> Vec<String> {
    let (mut files, mut folders) = (vec![], vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    files.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned())
                }
            }
        }
    }
    files
}
