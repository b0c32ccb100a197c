//! The files of the corpus.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::variable;

/// The directory of the files.
pub(crate) fn corpus() -> PathBuf {
    let files = Path::new(&variable("GRIDFUSION_CORPUS")).join("tet").join("files");
    assert!(files.is_dir(), "GRIDFUSION_CORPUS is set, but {} is no directory", files.display());
    files
}

pub(crate) fn read_json(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All `.tet` files below `directory`, sorted.
pub(crate) fn tet_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let listed = listing(&directory);
        for path in listed.unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "tet") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn listing(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

/// The path below `files`, with slashes.
pub(crate) fn relative(files: &Path, path: &Path) -> String {
    path.strip_prefix(files).unwrap_or(path).to_string_lossy().replace('\\', "/")
}
