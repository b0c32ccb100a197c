//! The names of folders and files in a package.

pub(crate) const PROTOCOL: &str = "PROTOCOL";
pub(crate) const CURRENT: &str = "CURRENT";
/// The folder of all generations.
pub(crate) const GENERATIONS: &str = "generations";
/// The folder of generations that are being published.
pub(crate) const PUBLISHING: &str = "publishing";
/// The folder of parts that no generation has yet.
pub(crate) const STAGING: &str = "staging";

// The files of a generation.
pub(crate) const PACKED_FILE: &str = "packed.tet";
pub(crate) const ZONE_FILE: &str = "ZONE.json";
pub(crate) const MANIFEST_FILE: &str = "MANIFEST.json";
pub(crate) const INDEX_FILE: &str = "INDEX.json";
pub(crate) const SEMANTICS_FILE: &str = "SEMANTICS.json";

/// The version of the package rules that gridfusion reads and writes.
pub(crate) const PROTOCOL_VERSION: u64 = 2;

/// Returns the folder of a generation: `generations/00000007`, with more digits for a longer number.
pub(crate) fn folder_of(generation: u64) -> String {
    format!("{GENERATIONS}/{generation:08}")
}
