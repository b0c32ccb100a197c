//! [`ObjectVersion`]: tells whether an object is the one that another process opened.

/// An object, and a text that differs if the object was written again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectVersion {
    /// The path or URL of the object, or of the folder of several.
    pub object: String,
    /// Its length with its entity tag or its time, or a digest of what was read of it.
    pub version: String,
}
