//! Icechunk: repositories of Zarr version 3 with commits, branches and tags.
//!
//! ```text
//!   repo                branches, tags, all snapshots; in version 1: refs/branch.main/ref.json and config.yaml
//!   snapshots/ID        groups and arrays: zarr.json, and the manifests of each array
//!   manifests/ID        chunks: bytes, an object of the repository, or a range of any object
//!   chunks/ID           bytes of a chunk
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `header`, `flat`, `id` | what begins each object; FlatBuffers; ids as names of objects |
//! | `flex`, `containers` | values of configurations and of metadata; where virtual chunks are |
//! | `repository`, `references` | branches, tags and histories: of version 2, of version 1 |
//! | `version` | the version that options choose |
//! | `snapshot`, `manifest_refs` | one version, and which manifest lists a chunk |
//! | `manifest`, `known_manifests` | where chunks are; manifests that were read |
//! | `places` | the chunks as tables of places, for the machine that finds chunks |
//! | `open`, `store` | the machine that opens a version, and the version |
//!
//! Objects are never written again, except for `repo` and those of branches. No checksum protects metadata: a flipped
//! bit in an id, an offset or a length shows only if the object there is absent, too short or does not decode.
//!
//! Facts: the specifications of Icechunk, versions 1, 2 and 2.1, its FlatBuffers schemas, and repositories that
//! versions 1.1 and 2.3 of its library wrote.

mod containers;
mod flat;
mod flex;
mod header;
mod id;
mod known_manifests;
mod manifest;
mod manifest_refs;
mod open;
mod places;
mod references;
mod repository;
mod snapshot;
mod store;
mod version;

use gridfusion_core::format::Entry;

pub use id::ObjectId;
pub use open::{OpenIcechunk, OpenedIcechunk};
pub(crate) use places::VirtualObject;
pub use references::{KnownReferences, ListReferences, NamedSnapshot, ReadHistory};
pub use repository::SnapshotFacts;
pub use store::{IcechunkStore, ListedChunk, ListedManifest};
pub use version::VersionChoice;

/// Whether a folder with these entries is a repository, or what is left of one.
pub fn is_icechunk(entries: &[Entry]) -> bool {
    let folder = |name: &str| entries.iter().any(|it| it.name == name && it.size.is_none());
    let file = |name: &str| entries.iter().any(|it| it.name == name && it.size.is_some());
    let is_zarr = ["zarr.json", ".zgroup", ".zarray", ".zmetadata"].into_iter().any(file);
    let roots = usize::from(file("repo") || folder("refs"));
    let others = ["snapshots", "manifests", "transactions"].into_iter().filter(|it| folder(it));
    !is_zarr && roots + others.count() >= 2
}
