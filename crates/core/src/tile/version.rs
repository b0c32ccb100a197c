//! [`ObjectVersion`]: tells whether an object is the one that another process opened.

use crate::error::{Error, Result};

/// An object, and a text that differs if the object was written again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectVersion {
    /// The path or URL of the object, or of the folder of several.
    pub object: String,
    /// Its length with its entity tag or its time, or a digest of what was read of it.
    pub version: String,
}

impl ObjectVersion {
    /// Fails unless the objects `here` are those that were `planned`. `name` is that of all of them.
    ///
    /// # Errors
    /// `Io` for an object that was written since the plan was made, or is another one here.
    pub fn compare(name: &str, planned: &[Self], here: &[Self]) -> Result<()> {
        let differ = |object: &str, planned: &str, here: &str| {
            let reason = format!(
                "the query was planned with another version of it: {planned}, and here it is {here}"
            );
            Err(Self::changed(object, &reason))
        };
        if planned.len() != here.len() {
            let count = |versions: &[Self]| format!("{} objects", versions.len());
            return differ(name, &count(planned), &count(here));
        }
        match planned.iter().zip(here).find(|(planned, here)| planned.version != here.version) {
            Some((planned, here)) => differ(&planned.object, &planned.version, &here.version),
            None => Ok(()),
        }
    }

    /// Returns the error for an object that is another one than when the query was planned, for this `reason`.
    pub(crate) fn changed(object: &str, reason: &str) -> Error {
        let cause = std::io::Error::other(format!("{reason}; run the query again"));
        Error::io("the object has changed", cause).in_file(object)
    }
}
