//! TileDB arrays: folders of schemas and fragments. The bytes are described in
//! `docs/format-tiledb.md`.
//!
//! ```text
//!   array/                                open_array.rs ─▶ array.rs
//!   ├── __schema/                         schema/
//!   │   └── __enumerations/               schema/enumeration.rs
//!   ├── __commits/                        folder/visible.rs: which fragments an open sees
//!   ├── __fragments/
//!   │   └── __t1_t2_uuid_v/               fragments/
//!   │       ├── __fragment_metadata.tdb   fragments/footer.rs, tile_index.rs; statistics/
//!   │       └── a0.tdb, a0_var.tdb, …     tiles/: which of them a chunk needs; filter/: their bytes
//!   └── __meta/                           metadata.rs
//! ```
//!
//! Each folder of this module uses those before it only: `filter`, `schema`, `folder`, `fragments`,
//! `array.rs`, `tiles`, `statistics`. Below them are `datatype.rs`, `text.rs` and `generic_tile.rs`, the
//! envelope of all metadata.
//!
//! [`OpenArray`] reads schemas, commits and the footers of the fragments that are visible, in a handful
//! of round trips. A [`Window`] makes a table of a dense array: its tiles are the chunks.
//! [`TileDbArray::locate`] finds the tiles that lie over one another in a chunk, and reads where
//! they are stored when a fragment's attribute is first wanted. A [group](ReadGroup) is a folder
//! that lists arrays and other groups. `check_tiles.rs` is for those who report on an array.

mod array;
mod check_tiles;
mod datatype;
mod filter;
mod folder;
mod fragments;
#[cfg(fuzzing)]
pub mod fuzzing;
mod generic_tile;
mod group;
mod metadata;
mod open_array;
mod schema;
mod statistics;
#[cfg(any(test, fuzzing))]
#[cfg_attr(fuzzing, allow(dead_code))] // Fuzzing builds fewer arrays than the tests.
mod testing;
mod text;
mod tiles;

pub use array::TileDbArray;
pub use check_tiles::{FragmentTiles, ReadTiles};
pub use datatype::Datatype;
pub use filter::{EncryptionKey, FilterBuffers, Pipeline, TileCodec};
pub use folder::{FolderKind, OpenOptions, folder_kind};
pub use fragments::Fragment;
pub use group::{GroupMember, ReadGroup};
pub use metadata::{MetadataValue, ReadMetadata};
pub use open_array::OpenArray;
pub use schema::{
    ArrayKind, ArraySchema, Attribute, CellOrder, DimensionDomain, DimensionLabel,
    DimensionLabelOrder, DimensionSchema, Enumeration, ValuesPerCell,
};
pub use statistics::{NotedFigures, ReadZones, TileZones};
pub use tiles::{Locate, Window};
