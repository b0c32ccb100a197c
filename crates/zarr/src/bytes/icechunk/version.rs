//! [`VersionChoice`]: the version of a repository that a table shows.

use std::collections::BTreeSet;
use std::fmt;

use super::id::ObjectId;
use super::references::KnownReferences;
use super::repository::RepositoryObject;
use gridfusion_core::{Error, Result};

/// The branch that is read if nothing is chosen.
const MAIN: &str = "main";

/// A chosen version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionChoice {
    /// The newest snapshot of a branch.
    Branch(String),
    /// The newest snapshot of a branch that is not later than a time, in microseconds since 1970.
    AsOf(String, u64),
    /// The snapshot of a tag.
    Tag(String),
    /// The snapshot with this id.
    Snapshot(ObjectId),
}

impl Default for VersionChoice {
    fn default() -> Self {
        Self::Branch(MAIN.to_owned())
    }
}

impl fmt::Display for VersionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Branch(name) | Self::AsOf(name, _) => write!(f, "branch {name}"),
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Snapshot(_) => f.write_str("snapshot"),
        }
    }
}

impl VersionChoice {
    /// Takes the choice from the options of a table. The time is in milliseconds since 1970, and snapshots have microseconds: those of
    /// the same millisecond are not later.
    ///
    /// # Errors
    /// `Usage` for options that exclude each other.
    pub fn new(
        branch: Option<&str>,
        tag: Option<&str>,
        snapshot: Option<&str>,
        as_of: Option<u64>,
    ) -> Result<Self> {
        let given = [("branch", branch.is_some()), ("tag", tag.is_some())];
        let more = [("snapshot", snapshot.is_some()), ("as_of", as_of.is_some())];
        let given: Vec<&str> =
            given.into_iter().chain(more).filter(|(_, it)| *it).map(|(name, _)| name).collect();
        if let ([first, .., last], false) = (given.as_slice(), given == ["branch", "as_of"]) {
            return Err(Error::usage(format!(
                "the options '{first}' and '{last}' each choose a version; give one of them, or 'branch' with 'as_of'"
            )));
        }
        let branch = branch.unwrap_or(MAIN).to_owned();
        Ok(match (tag, snapshot, as_of) {
            (Some(tag), ..) => Self::Tag(tag.to_owned()),
            (_, Some(id), _) => Self::Snapshot(ObjectId::parse(id)?),
            (.., Some(time)) => Self::AsOf(branch, time.saturating_mul(1000).saturating_add(999)),
            _ => Self::Branch(branch),
        })
    }

    /// Returns the kind and the name of the branch or tag; `None` for the id of a snapshot.
    pub fn reference(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Branch(name) | Self::AsOf(name, _) => Some(("branch", name)),
            Self::Tag(name) => Some(("tag", name)),
            Self::Snapshot(_) => None,
        }
    }

    /// Finds the snapshot in a repository of version 2.
    ///
    /// # Errors
    /// `Usage` if there is none; the message lists some that are there.
    pub(super) fn find(&self, repository: &RepositoryObject) -> Result<ObjectId> {
        let known = || repository.references();
        let named = |all: &[(String, usize)], name: &str| {
            let (_, number) = all.iter().find(|(it, _)| it == name)?;
            Some(repository.snapshots.get(*number)?.id)
        };
        match self {
            Self::Snapshot(id) => match repository.snapshot(id) {
                Some(facts) => Ok(facts.id),
                None => {
                    let mut all: Vec<_> = repository.snapshots.iter().collect();
                    all.sort_by_key(|it| std::cmp::Reverse(it.time));
                    let ids = all.iter().map(|it| it.id.to_string());
                    Err(Error::usage(format!("there is no snapshot {id}; {}", some_of(ids))))
                }
            },
            Self::Tag(name) => named(&repository.tags, name).ok_or_else(|| self.unknown(&known())),
            Self::Branch(name) => {
                named(&repository.branches, name).ok_or_else(|| self.unknown(&known()))
            }
            Self::AsOf(name, time) => {
                let newest = named(&repository.branches, name);
                let newest = newest.ok_or_else(|| self.unknown(&known()))?;
                let history = repository.history(&newest)?;
                let found = history.iter().find(|it| it.time <= *time);
                found.map(|it| it.id).ok_or_else(|| self.too_early())
            }
        }
    }

    /// Returns the error for a branch or tag that is none of the `known` ones.
    pub fn unknown(&self, known: &KnownReferences) -> Error {
        let (kind, name) = match self {
            Self::Snapshot(id) => {
                let ids: BTreeSet<_> = known.named.iter().map(|it| it.id).collect();
                let ids = some_of(ids.iter().map(ToString::to_string));
                return Error::usage(format!("there is no snapshot {id}; {ids}"));
            }
            Self::Tag(name) => ("tag", name),
            Self::Branch(name) | Self::AsOf(name, _) => ("branch", name),
        };
        if kind == "tag" && known.deleted.contains(name) {
            return Error::usage(format!("the tag \"{name}\" was deleted"));
        }
        let names = known.named.iter().filter(|it| it.kind == kind);
        let names = names.map(|it| format!("\"{}\"", it.name));
        Error::usage(format!("there is no {kind} \"{name}\"; {}", some_of(names)))
    }

    /// Returns the error for a time before the first snapshot.
    pub(super) fn too_early(&self) -> Error {
        Error::usage(format!(
            "the {self} has no snapshot that is not later than the option 'as_of'"
        ))
    }
}

/// Returns the end of a sentence that names some of those that are there.
fn some_of(names: impl Iterator<Item = String>) -> String {
    /// The most names in it.
    const MOST: usize = 5;
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    match (names.is_empty(), more) {
        (true, _) => "there are none".to_owned(),
        (false, 0) => format!("there is {}", names.join(", ")),
        (false, more) => format!("there is {}, and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_choose_one_version() {
        let new = VersionChoice::new;
        assert_eq!(new(None, None, None, None).unwrap(), VersionChoice::Branch("main".into()));
        let as_of = new(Some("dev"), None, None, Some(2)).unwrap();
        assert_eq!(as_of, VersionChoice::AsOf("dev".into(), 2999));
        assert_eq!(new(None, Some("v1"), None, None).unwrap(), VersionChoice::Tag("v1".into()));
        let error = new(None, Some("a"), None, Some(1)).unwrap_err().to_string();
        assert!(error.starts_with("the options 'tag' and 'as_of' each choose"), "{error}");
        assert!(new(Some("a"), None, Some("b"), Some(1)).is_err());
        assert!(new(None, None, Some("b"), None).is_err());
    }

    #[test]
    fn messages_list_some_names() {
        let named = |count: usize| some_of((0..count).map(|it| it.to_string()));
        assert_eq!(named(0), "there are none");
        assert_eq!(named(2), "there is 0, 1");
        assert_eq!(named(7), "there is 0, 1, 2, 3, 4, and 2 more");
        let known = KnownReferences { named: vec![], deleted: vec!["old".into()] };
        let message = |tag: &str| VersionChoice::Tag(tag.into()).unknown(&known).to_string();
        assert_eq!(message("old"), "the tag \"old\" was deleted");
        assert_eq!(message("new"), "there is no tag \"new\"; there are none");
    }
}
