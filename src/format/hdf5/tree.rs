//! The paths of objects: from links by address to groups and datasets by path.

use std::collections::{HashMap, HashSet};

use super::parse::{Object, Target};
use super::parsed::Parsed;

/// The most groups within groups.
const MAX_DEPTH: usize = 64;
/// The most paths of all objects together, and their bytes.
const MAX_PATHS: usize = 1 << 18;
const MAX_PATH_BYTES: usize = 1 << 27;
/// The most links to paths that lead to one another.
const MAX_LINKS: usize = 16;

/// The paths of a file.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The paths of groups and their addresses, in the order of the file. The root group's is empty.
    pub(super) groups: Vec<(String, u64)>,
    /// The paths of datasets, and of objects that cannot be parsed. A dataset may have several paths.
    pub(super) datasets: Vec<(String, u64)>,
    /// Links to other files: their paths and the files.
    pub(super) other_files: Vec<(String, String)>,
    /// Groups that are too deep.
    pub(super) too_deep: Vec<String>,
}

/// A link to a path: its own path, its group and the path that it stands for.
struct PathLink {
    path: String,
    group: String,
    target: String,
}

impl Tree {
    /// Follows links from the root. A group is visited once, so that cycles end.
    pub(super) fn new(root: u64, parsed: &Parsed) -> Self {
        let (mut tree, mut links) = (Self::default(), vec![]);
        let mut visited: HashSet<u64> = HashSet::new();
        let mut stack = vec![(String::new(), root, 0)];
        // Links may give an object any number of paths, and a long name to each.
        let (mut paths, mut bytes) = (0, 0);
        while let Some((path, address, depth)) = stack.pop() {
            let group = match parsed.get(&address) {
                Some(Ok(Object::Group(group))) => group,
                Some(Ok(Object::Dataset(_)) | Err(_)) => {
                    tree.datasets.push((path, address));
                    continue;
                }
                Some(Ok(Object::Other)) | None => continue,
            };
            if !visited.insert(address) {
                continue;
            }
            if depth > MAX_DEPTH {
                tree.too_deep.push(path);
                continue;
            }
            // The last one pushed is visited first.
            for link in group.links.iter().rev() {
                paths += 1;
                bytes += path.len() + link.name.len();
                if paths > MAX_PATHS || bytes > MAX_PATH_BYTES {
                    tree.too_deep.push(path);
                    return tree;
                }
                let child = joined(&path, &link.name);
                match &link.target {
                    Target::Object(address) => stack.push((child, *address, depth + 1)),
                    Target::Path(target) => links.push(PathLink {
                        path: child,
                        group: path.clone(),
                        target: target.clone(),
                    }),
                    Target::OtherFile(file) => tree.other_files.push((child, file.clone())),
                }
            }
            tree.groups.push((path, address));
        }
        tree.add_links(links);
        tree
    }

    /// Adds the datasets that links to paths stand for. Links to groups would show their datasets twice.
    fn add_links(&mut self, mut links: Vec<PathLink>) {
        let mut found: HashMap<String, u64> = self.datasets.iter().cloned().collect();
        for _ in 0..MAX_LINKS {
            let before = links.len();
            links.retain(|link| {
                let target = absolute(&link.group, &link.target);
                let Some(&address) = found.get(&target) else { return true };
                found.insert(link.path.clone(), address);
                self.datasets.push((link.path.clone(), address));
                false
            });
            if links.len() == before {
                break;
            }
        }
        for link in links {
            log::debug!("{} is a link to {}, which is no dataset", link.path, link.target);
        }
    }
}

fn joined(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
}

/// Returns a path from the root, without empty parts.
fn absolute(group: &str, path: &str) -> String {
    let base = if path.starts_with('/') { "" } else { group };
    let parts = base.split('/').chain(path.split('/'));
    parts.filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Group, Link};
    use super::*;
    use crate::error::Error;

    fn group(links: Vec<(&str, Target)>) -> crate::error::Result<Object> {
        let links = links.into_iter().map(|(name, target)| Link { name: name.to_owned(), target });
        Ok(Object::Group(Group { links: links.collect(), attributes: vec![] }))
    }

    #[test]
    fn paths_follow_links_and_cycles_end() {
        let path = |path: &str| Target::Path(path.to_owned());
        let root = group(vec![
            ("b", Target::Object(3)),
            ("a", Target::Object(2)),
            ("soft", path("/a/./x")),
            ("chain", path("soft")),
            ("nowhere", path("gone")),
            ("circle", path("circle")),
            ("far", Target::OtherFile("other.h5".to_owned())),
        ]);
        let inner = group(vec![("x", Target::Object(4)), ("up", Target::Object(1))]);
        let damaged = || Err(Error::corrupt_region("object header", "damaged"));
        let parsed: Parsed = [(1, root), (2, inner), (3, damaged()), (4, damaged())].into();
        let tree = Tree::new(1, &parsed);
        let own = |all: &[(&str, u64)]| -> Vec<(String, u64)> {
            all.iter().map(|&(path, address)| (path.to_owned(), address)).collect()
        };
        assert_eq!(tree.groups, own(&[("", 1), ("a", 2)]));
        assert_eq!(tree.datasets, own(&[("b", 3), ("a/x", 4), ("soft", 4), ("chain", 4)]));
        assert_eq!(tree.other_files, [("far".to_owned(), "other.h5".to_owned())]);
    }

    #[test]
    fn deep_groups_are_not_followed() {
        let child = |at: u64| (at, group(vec![("g", Target::Object(at + 1))]));
        let parsed: Parsed = (0..1000).map(child).collect();
        let tree = Tree::new(0, &parsed);
        assert_eq!((tree.groups.len(), tree.too_deep.len()), (MAX_DEPTH + 1, 1));
    }
}
