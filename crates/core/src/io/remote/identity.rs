//! [`Identity`]: tells whether an object is still the one that was opened.

use chrono::DateTime;
use object_store::ObjectMeta;
use object_store::path::Path;

use crate::io::ObjectStamp;

/// The length, tag and time of an object. Two replies with the same identity have bytes of the same object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::io) struct Identity {
    /// The length of the object in bytes.
    pub(in crate::io) size: u64,
    /// The entity tag, if the store has one.
    e_tag: Option<String>,
    /// The time of the last write in seconds, if the store has one. HTTP headers have no fractions of them.
    modified: Option<i64>,
}

impl Identity {
    pub(in crate::io) fn from_object(object: &ObjectMeta) -> Self {
        // `object_store` reports the beginning of 1970 if a reply has no time.
        let modified = Some(object.last_modified.timestamp()).filter(|seconds| *seconds != 0);
        Self { size: object.size, e_tag: object.e_tag.clone(), modified }
    }

    /// Returns what a store would tell of the object.
    pub(super) fn object(self, location: Path) -> ObjectMeta {
        let last_modified = self.modified.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        let last_modified = last_modified.unwrap_or_default();
        ObjectMeta { location, last_modified, size: self.size, e_tag: self.e_tag, version: None }
    }

    /// Returns the tag for `If-Match`. Weak tags never match there, whether the object changed or not.
    pub(super) fn if_match(&self) -> Option<String> {
        self.e_tag.clone().filter(|tag| !tag.starts_with("W/"))
    }

    /// Returns the length with the tag or, without one, the time; `None` without both.
    pub(in crate::io) fn version(&self) -> Option<String> {
        let size = self.size;
        match (&self.e_tag, self.modified) {
            (Some(tag), _) => Some(format!("{size} bytes, tag {}", opaque(tag))),
            (None, Some(modified)) => Some(format!("{size} bytes, {modified}")),
            (None, None) => None,
        }
    }

    /// Returns the tag as the store tells it.
    pub(in crate::io) fn tag(&self) -> Option<String> {
        self.e_tag.clone()
    }

    /// Returns the time of the last write in seconds.
    pub(in crate::io) fn modified(&self) -> Option<i64> {
        self.modified
    }

    /// Returns the length with what decides whether objects are the same, in the form for objects of any kind.
    pub(in crate::io) fn stamp(&self) -> ObjectStamp {
        ObjectStamp::from_stored(self.size, self.e_tag.as_deref().map(opaque), self.modified)
    }

    /// Returns both values of the first part that differs, for messages.
    pub(super) fn difference(&self, other: &Self) -> String {
        let tag = |it: &Self| it.e_tag.as_deref().map(|tag| opaque(tag).to_owned());
        match (tag(self), tag(other)) {
            _ if self.size != other.size => {
                format!("it had {} bytes, and now has {}", self.size, other.size)
            }
            (Some(mine), Some(theirs)) => format!("its tag was {mine}, and now is {theirs}"),
            _ => {
                let time = |it: &Self| it.modified.map_or("none".to_owned(), |at| at.to_string());
                format!("its time was {}, and now is {}", time(self), time(other))
            }
        }
    }

    /// Whether a reply with the identity `other` is of the same object. Times decide only without tags,
    /// because servers behind one address may disagree on times.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.size == other.size
            && match (&self.e_tag, &other.e_tag) {
                (Some(mine), Some(theirs)) => opaque(mine) == opaque(theirs),
                _ => match (self.modified, other.modified) {
                    (Some(mine), Some(theirs)) => mine == theirs,
                    _ => true,
                },
            }
    }
}

/// Returns a tag without its weakness and its quotes, which listings may leave out.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_decide_before_times() {
        let identity = |size, tag: Option<&str>, modified| Identity {
            size,
            e_tag: tag.map(str::to_owned),
            modified,
        };
        let a = identity(7, Some("\"a\""), Some(1));
        assert!(a.is_same(&identity(7, Some("W/\"a\""), Some(2))));
        assert!(a.is_same(&identity(7, Some("a"), None)));
        assert!(!a.is_same(&identity(7, Some("\"b\""), Some(1))));
        assert!(!a.is_same(&identity(8, Some("\"a\""), Some(1))));
        assert!(a.is_same(&identity(7, None, Some(1))));
        assert!(!a.is_same(&identity(7, None, Some(2))));
        assert!(a.is_same(&identity(7, None, None)));
        assert_eq!(a.if_match().as_deref(), Some("\"a\""));
        assert_eq!(identity(7, Some("W/\"a\""), None).if_match(), None);
    }
}
