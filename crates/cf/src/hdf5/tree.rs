//! The paths of objects: from links by address to groups and datasets by path.
//!
//! A group may have several paths, and may be in itself. Its first path is that by which its datasets are found
//! first; the others are added after all first paths. No group is followed within itself, so cycles end.

use std::collections::{HashMap, HashSet, VecDeque};

use super::link::Target;
use super::parse::{Group, Object};
use super::parsed_objects::ParsedObjects;
use gridfusion_core::Error;

/// The most paths of all objects together, and their bytes: of first paths, and again of others.
const MAX_PATHS: usize = 1 << 18;
const MAX_PATH_BYTES: usize = 1 << 27;
/// The most links to paths that lead to one another.
const MAX_LINKS: usize = 16;
/// The most groups within groups in which other paths are followed.
const MAX_DEPTH: usize = 4096;

/// The paths of a file.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The paths of groups and their addresses, in the order of the file. The root group's is empty.
    pub(super) groups: Vec<(String, u64)>,
    /// The paths of datasets, and of objects that cannot be parsed. A dataset may have several paths.
    pub(super) datasets: Vec<(String, u64)>,
    /// Links that cannot be followed, with the reasons.
    pub(super) unreadable: Vec<(String, Error)>,
}

impl Tree {
    /// Follows links from the root.
    pub(super) fn new(root: u64, parsed: &ParsedObjects) -> Self {
        let mut walk = Walk {
            root,
            parsed,
            tree: Self::default(),
            visits: vec![],
            visited: HashSet::new(),
            later: VecDeque::new(),
            names: HashMap::new(),
            resolved: HashMap::new(),
            left: (MAX_PATHS, MAX_PATH_BYTES),
        };
        walk.follow(ObjectPlace { path: String::new(), address: root, parent: None }, false);
        walk.left = (MAX_PATHS, MAX_PATH_BYTES);
        while let Some(later) = walk.later.pop_front() {
            let Some(address) = walk.address(&later) else {
                log::debug!("{} is a link to nothing", later.path);
                continue;
            };
            let place = ObjectPlace { path: later.path, address, parent: Some(later.parent) };
            if !walk.follow(place, true) {
                break;
            }
        }
        walk.tree
    }
}

/// An object to visit.
struct ObjectPlace {
    path: String,
    address: u64,
    /// The visit of the group that it is in.
    parent: Option<usize>,
}

/// A visit of a group, by one of its paths.
struct Visit {
    address: u64,
    parent: Option<usize>,
}

/// A further path of an object.
struct Later<'a> {
    path: String,
    /// The visit of the group with the link.
    parent: usize,
    to: To<'a>,
}

enum To<'a> {
    Address(u64),
    Path(&'a str),
}

struct Walk<'a> {
    root: u64,
    parsed: &'a ParsedObjects,
    tree: Tree,
    visits: Vec<Visit>,
    visited: HashSet<u64>,
    later: VecDeque<Later<'a>>,
    /// The links of groups in which paths were looked up, by name.
    names: HashMap<u64, HashMap<&'a str, &'a Target>>,
    /// The objects that links to paths stand for, by the group and the place of the path in memory. Without these, links to
    /// links take exponential time.
    resolved: HashMap<(u64, *const u8), Option<u64>>,
    /// The paths that may follow, and their bytes.
    left: (usize, usize),
}

impl<'a> Walk<'a> {
    /// Visits an object, and all below it. Puts further paths off unless `all`. Returns whether there was room.
    fn follow(&mut self, place: ObjectPlace, all: bool) -> bool {
        let parsed = self.parsed;
        let mut stack = vec![place];
        while let Some(ObjectPlace { path, address, parent }) = stack.pop() {
            let group = match parsed.get(&address) {
                Some(Ok(Object::Group(group))) => group,
                Some(Ok(Object::Dataset(_)) | Err(_)) => {
                    self.tree.datasets.push((path, address));
                    continue;
                }
                Some(Ok(Object::Other)) | None => continue,
            };
            if !self.visited.insert(address) {
                match parent {
                    Some(parent) if !all => {
                        self.later.push_back(Later { path, parent, to: To::Address(address) });
                        continue;
                    }
                    _ if self.is_within(parent, address) => continue,
                    _ => {}
                }
            }
            let visit = self.visits.len();
            self.visits.push(Visit { address, parent });
            if !self.links(group, &path, visit, &mut stack) {
                let error =
                    Error::unsupported("a group in too many groups, or with too many links");
                self.tree.unreadable.push((path, error));
                return false;
            }
            self.tree.groups.push((path, address));
        }
        true
    }

    /// Puts the objects of a group on the stack. Returns whether there was room.
    fn links(
        &mut self,
        group: &'a Group,
        path: &str,
        visit: usize,
        stack: &mut Vec<ObjectPlace>,
    ) -> bool {
        let first = stack.len();
        for link in &group.links {
            let child = joined(path, &link.name);
            let room = self.left.0.checked_sub(1).zip(self.left.1.checked_sub(child.len()));
            let Some(left) = room else { return false };
            self.left = left;
            match &link.target {
                Target::Object(address) => {
                    stack.push(ObjectPlace { path: child, address: *address, parent: Some(visit) });
                }
                Target::Path(target) => {
                    self.later.push_back(Later {
                        path: child,
                        parent: visit,
                        to: To::Path(target),
                    });
                }
                Target::Unreadable(error) => self.tree.unreadable.push((child, error.clone())),
            }
        }
        // The last one on the stack is visited first.
        if let Some(added) = stack.get_mut(first..) {
            added.reverse();
        }
        true
    }

    /// Whether a group is one of those around a place. A place in too many groups counts as such.
    fn is_within(&self, mut parent: Option<usize>, address: u64) -> bool {
        for _ in 0..MAX_DEPTH {
            match parent.and_then(|visit| self.visits.get(visit)) {
                Some(visit) if visit.address == address => return true,
                Some(visit) => parent = visit.parent,
                None => return false,
            }
        }
        true
    }

    /// Returns the address of the object that a link stands for.
    fn address(&mut self, later: &Later<'a>) -> Option<u64> {
        match later.to {
            To::Address(address) => Some(address),
            To::Path(path) => {
                let group = self.visits.get(later.parent)?.address;
                if let Some(known) = self.resolved.get(&(group, path.as_ptr())) {
                    return *known;
                }
                let found = self.resolved(group, path, MAX_LINKS);
                self.resolved.insert((group, path.as_ptr()), found);
                found
            }
        }
    }

    /// Returns the address of the object at a path in a group.
    fn resolved(&mut self, group: u64, path: &'a str, links: usize) -> Option<u64> {
        let parsed = self.parsed;
        let mut address = if path.starts_with('/') { self.root } else { group };
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            let Some(Ok(Object::Group(group))) = parsed.get(&address) else { return None };
            let names = self.names.entry(address).or_insert_with(|| {
                group.links.iter().map(|link| (link.name.as_str(), &link.target)).collect()
            });
            address = match names.get(part)? {
                Target::Object(address) => *address,
                Target::Path(path) => match self.resolved.get(&(address, path.as_ptr())) {
                    Some(known) => (*known)?,
                    None => {
                        let found = self.resolved(address, path, links.checked_sub(1)?)?;
                        self.resolved.insert((address, path.as_ptr()), Some(found));
                        found
                    }
                },
                Target::Unreadable(_) => return None,
            };
        }
        Some(address)
    }
}

fn joined(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::super::link::Link;
    use super::*;

    fn group(links: Vec<(&str, Target)>) -> gridfusion_core::Result<Object> {
        let link =
            |(name, target): (&str, Target)| Link { name: name.to_owned(), target, order: None };
        let links = links.into_iter().map(link).collect();
        Ok(Object::Group(Group { links, attributes: vec![] }))
    }

    fn path(path: &str) -> Target {
        Target::Path(path.to_owned())
    }

    fn damaged() -> gridfusion_core::Result<Object> {
        Err(Error::corrupt_region("object header", "damaged"))
    }

    fn own(all: &[(&str, u64)]) -> Vec<(String, u64)> {
        all.iter().map(|&(path, address)| (path.to_owned(), address)).collect()
    }

    #[test]
    fn paths_follow_links_and_cycles_end() {
        let root = group(vec![
            ("b", Target::Object(3)),
            ("a", Target::Object(2)),
            ("soft", path("/a/./x")),
            ("chain", path("soft")),
            ("nowhere", path("gone")),
            ("circle", path("circle")),
            ("far", Target::Unreadable(Error::unsupported("a link to the file \"other.h5\""))),
        ]);
        let inner = group(vec![("x", Target::Object(4)), ("up", Target::Object(1))]);
        let parsed: ParsedObjects = [(1, root), (2, inner), (3, damaged()), (4, damaged())].into();
        let tree = Tree::new(1, &parsed);
        assert_eq!(tree.groups, own(&[("", 1), ("a", 2)]));
        let datasets: HashSet<_> = tree.datasets.iter().cloned().collect();
        let expected = own(&[("b", 3), ("a/x", 4), ("soft", 4), ("chain", 4)]);
        assert_eq!(tree.datasets[..2], expected[..2]);
        assert_eq!(datasets, expected.into_iter().collect());
        assert_eq!(tree.unreadable[0].0, "far");
    }

    #[test]
    fn groups_have_several_paths() {
        let root = group(vec![
            ("alias", path("run")),
            ("run", Target::Object(2)),
            ("same", Target::Object(2)),
            ("through", path("alias/inner/../inner/x")),
            ("deep", path("/alias/inner/x")),
        ]);
        let run = group(vec![("inner", Target::Object(3)), ("top", path("/"))]);
        let inner = group(vec![("x", Target::Object(4)), ("back", Target::Object(2))]);
        let parsed: ParsedObjects = [(1, root), (2, run), (3, inner), (4, damaged())].into();
        let tree = Tree::new(1, &parsed);
        let mut groups: Vec<_> = tree.groups.into_iter().map(|(path, _)| path).collect();
        groups.sort();
        assert_eq!(groups, ["", "alias", "alias/inner", "run", "run/inner", "same", "same/inner"]);
        let mut datasets: Vec<_> = tree.datasets.into_iter().map(|(path, _)| path).collect();
        datasets.sort();
        assert_eq!(datasets, ["alias/inner/x", "deep", "run/inner/x", "same/inner/x"]);
    }

    #[test]
    fn any_depth_is_followed() {
        let child = |at: u64| (at, group(vec![("g", Target::Object(at + 1))]));
        let parsed: ParsedObjects = (0..10_000).map(child).collect();
        let tree = Tree::new(0, &parsed);
        assert_eq!((tree.groups.len(), tree.unreadable.len()), (10_000, 0));
    }

    /// Each group has two links to the next, so that there are 2^40 paths.
    #[test]
    fn links_to_one_another_end() {
        let child = |at: u64| (at, group(vec![("a", Target::Object(at + 1)), ("b", path("a"))]));
        let parsed: ParsedObjects = (0..40).map(child).collect();
        let tree = Tree::new(0, &parsed);
        assert!(tree.groups.len() <= MAX_PATHS && tree.unreadable.len() == 1);
        let first: HashSet<u64> = tree.groups[..40].iter().map(|(_, address)| *address).collect();
        assert_eq!(first.len(), 40);
    }
}
