//! [`Listing`]: the entries of a folder, or all objects below it.

use std::collections::{BTreeMap, HashSet};

use object_store::path::Path;
use object_store::{ListResult, ObjectMeta};

use crate::io::FolderEntry;

/// A listing of a store.
#[derive(Debug)]
pub(super) enum Listing {
    /// The entries of a folder.
    Level(Vec<FolderEntry>),
    /// All objects below a folder, with their lengths, by path.
    Tree(BTreeMap<String, u64>),
}

impl Listing {
    /// Makes the listing of a folder.
    pub(super) fn level(listed: &ListResult) -> Self {
        let name = |path: &Path| path.filename().unwrap_or_default().to_owned();
        let folders = listed.common_prefixes.iter();
        let folders = folders.map(|path| FolderEntry { name: name(path), size: None });
        let objects = listed.objects.iter();
        let objects =
            objects.map(|it| FolderEntry { name: name(&it.location), size: Some(it.size) });
        Self::Level(folders.chain(objects).collect())
    }

    /// Makes the listing of all objects below a folder.
    pub(super) fn tree(objects: &[ObjectMeta]) -> Self {
        let object = |it: &ObjectMeta| (it.location.as_ref().to_owned(), it.size);
        Self::Tree(objects.iter().map(object).collect())
    }

    /// Returns the entries of the folder at `path`. A level must be that of this folder.
    pub(super) fn entries(&self, path: &Path) -> Vec<FolderEntry> {
        let objects = match self {
            Self::Level(entries) => return entries.clone(),
            Self::Tree(objects) => objects,
        };
        let prefix = match path.as_ref() {
            "" => String::new(),
            path => format!("{path}/"),
        };
        let below = objects.range(prefix.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&prefix));
        let mut seen = HashSet::new();
        let mut entry = |(path, size): (&String, &u64)| match path[prefix.len()..].split_once('/') {
            Some((folder, _)) if !seen.insert(folder.to_owned()) => None,
            Some((folder, _)) => Some(FolderEntry { name: folder.to_owned(), size: None }),
            None => Some(FolderEntry { name: path[prefix.len()..].to_owned(), size: Some(*size) }),
        };
        below.filter_map(&mut entry).collect()
    }

    /// Returns about how many bytes of memory the listing takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Level(entries) => {
                entries.iter().map(|entry| entry.name.len() + size_of::<FolderEntry>()).sum()
            }
            Self::Tree(objects) => objects.keys().map(|path| path.len() + 64).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_entries_of_every_folder() {
        let objects = ["a/b.c", "a/b/x", "a/b/y/z", "a/b/w", "a/b", "b/q"];
        let tree = Listing::Tree(objects.iter().map(|path| ((*path).to_owned(), 1)).collect());
        let names = |path: &str| {
            let mut names: Vec<String> = tree
                .entries(&Path::from(path))
                .into_iter()
                .map(|it| if it.size.is_some() { it.name } else { it.name + "/" })
                .collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(names(""), "a/ b/");
        assert_eq!(names("a"), "b b.c b/");
        assert_eq!(names("a/b"), "w x y/");
        assert_eq!((names("b"), names("c")), ("q".into(), String::new()));
    }
}
