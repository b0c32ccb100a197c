//! The versions of objects as messages, and back.

use super::messages::VersionOf;
use crate::error::shown_location;
use crate::tile::ObjectVersion;

/// Returns the version of an object as a message.
pub(super) fn version_message(version: &ObjectVersion) -> VersionOf {
    let ObjectVersion { object, version } = version;
    VersionOf { object: shown_location(object), version: version.clone() }
}

/// Returns the versions of objects of a message.
pub(super) fn versions_of(message: &[VersionOf]) -> Vec<ObjectVersion> {
    let version = |VersionOf { object, version }: &VersionOf| ObjectVersion {
        object: object.clone(),
        version: version.clone(),
    };
    message.iter().map(version).collect()
}
