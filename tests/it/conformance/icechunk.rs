//! Icechunk repositories of both specifications in the suite, with the arrays that the suite writes as Zarr 3.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::format::{Capabilities, FormatUnderTest};
use super::logical::Logical;
use super::zarr::{Zarr3, put, stored_arrays};
use crate::support::icechunk_repository::{IcechunkRepository, snapshot_object};

/// A repository of a specification: 1 or 2.
pub(crate) struct Icechunk(pub(crate) u8);

impl FormatUnderTest for Icechunk {
    fn name(&self) -> &'static str {
        "icechunk"
    }

    fn suffix(&self) -> &'static str {
        ".icechunk"
    }

    /// As in a store of Zarr, but manifests hold some of the chunks.
    fn capabilities(&self) -> Capabilities {
        Capabilities { holds_chunks_in_metadata: true, ..Zarr3.capabilities() }
    }

    fn write(&self, array: &Logical, path: &Path) {
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
        let repository = IcechunkRepository { specification: self.0, rows: 2 };
        for (object, bytes) in repository.objects(&group, &stored_arrays(array)) {
            put(path, &object, &bytes);
        }
    }

    /// The snapshot in specification 1, and `repo` in 2. Both are compressed.
    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        let file = match self.0 {
            1 => path.join(snapshot_object()),
            _ => path.join("repo"),
        };
        let len = std::fs::read(&file).unwrap().len();
        (file, 0..len)
    }
}
