//! Zarr stores in other places: in a zip file, and in an Icechunk repository.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::support::icechunk_repository::{IcechunkRepository, StoredArray};
use super::support::zip_archive::ZipArchive;

/// Objects, by their paths.
pub(crate) type Objects = Vec<(String, Bytes)>;

/// Reads the arrays of a store of version 3 whose metadata is consolidated.
pub(crate) fn stored_arrays(store: &Path) -> Vec<StoredArray> {
    let root = std::fs::read(store.join("zarr.json")).unwrap();
    let mut root: Value = serde_json::from_slice(&root).unwrap();
    let Value::Object(nodes) = root["consolidated_metadata"]["metadata"].take() else {
        panic!("{} has no consolidated metadata", store.display());
    };
    let array = |(name, document): (String, Value)| {
        let mut objects = vec![];
        let chunks = store.join(&name).join("c");
        add_chunks(&chunks, &mut vec![], &mut objects);
        StoredArray { name, document, objects }
    };
    nodes.into_iter().map(array).collect()
}

/// Adds the chunks in a folder, whose names are the coordinates behind these.
fn add_chunks(folder: &Path, above: &mut Vec<u64>, objects: &mut Vec<(Vec<u64>, Vec<u8>)>) {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        above.push(path.file_name().unwrap().to_str().unwrap().parse().unwrap());
        match path.is_dir() {
            true => add_chunks(&path, above, objects),
            false => objects.push((above.clone(), std::fs::read(&path).unwrap())),
        }
        above.pop();
    }
}

/// Returns the objects of a Zarr store, whose metadata is consolidated. The document comes last.
pub(crate) fn store_objects(arrays: Vec<StoredArray>) -> Objects {
    let (mut nodes, mut objects) = (Map::new(), vec![]);
    for StoredArray { name, document, objects: chunks } in arrays {
        objects.extend(chunks.into_iter().map(|(at, bytes)| {
            let at: Vec<String> = at.iter().map(u64::to_string).collect();
            (format!("{name}/c/{}", at.join("/")), bytes.into())
        }));
        nodes.insert(name, document);
    }
    let root = json!({
        "zarr_format": 3, "node_type": "group", "attributes": {},
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": nodes},
    });
    objects.push(("zarr.json".to_owned(), root.to_string().into()));
    objects
}

/// Returns a zip file of a store, whose objects are not compressed again.
pub(crate) fn zipped(store: &Objects) -> Bytes {
    let mut archive = ZipArchive::default();
    store.iter().for_each(|(path, bytes)| archive.add(path, bytes, false));
    archive.finish().into()
}

/// Returns the objects of a repository of specification 2, with so many rows of chunks in a manifest.
pub(crate) fn icechunk(arrays: &[StoredArray], rows: u64) -> Objects {
    let repository = IcechunkRepository { specification: 2, rows };
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let objects = repository.objects(&group, arrays).into_iter();
    objects.map(|(path, bytes)| (path, bytes.into())).collect()
}
