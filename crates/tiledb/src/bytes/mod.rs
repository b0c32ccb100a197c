//! TileDB arrays: folders of schemas and fragments. `crates/tiledb/FORMAT.md` describes their bytes.
//!
//! ```text
//!   array/                                open_array.rs ─▶ array.rs
//!   ├── __schema/                         schema/
//!   │   └── __enumerations/               schema/enumeration.rs
//!   ├── __commits/                        folder/visible.rs: which fragments an open sees
//!   ├── __fragments/
//!   │   └── __t1_t2_uuid_v/               fragments/
//!   │       ├── __fragment_metadata.tdb   fragments/footer.rs, tile_index.rs; statistics/
//!   │       └── a0.tdb, a0_var.tdb, …     tiles/: finds those of a chunk; filter/: decodes them;
//!   │                                     sparse/: those of sparse arrays
//!   └── __meta/                           metadata.rs
//! ```
//!
//! Each of these parts uses only parts before it: `filter`, `schema`, `folder`, `fragments`,
//! `array.rs`, `tiles`, `statistics`, `sparse`. All may use `datatype.rs` and `text.rs`. From `schema` on, parts
//! also use `generic_tile.rs`, the envelope of all metadata.
//!
//! [`OpenArray`] reads schemas, commits and the footers of the visible fragments, in at most five round
//! trips. A [`Window`] is the part of a dense array that a table shows; its chunks are the array's
//! tiles. [`TileDbArray::locate`] finds the tiles of each chunk, in one or several fragments. It reads
//! the tile index of a fragment's attribute when a chunk first needs it. A [group](ReadGroup) is a
//! folder that lists arrays and other groups. [`ReadTiles`] finds the stored tiles of one field of a
//! fragment, and [`ReadRTree`] the rectangles of a sparse fragment's tiles, for verification.

mod array;
mod check_tiles;
mod datatype;
mod filter;
mod folder;
mod fragments;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod generic_tile;
mod group;
mod metadata;
mod open_array;
mod schema;
mod sparse;
mod statistics;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(feature = "fuzzing", allow(dead_code))] // Fuzzing builds fewer arrays than the tests.
mod testing;
mod text;
mod tiles;

pub use array::TileDbArray;
pub use check_tiles::{FragmentTiles, ReadTiles};
pub use datatype::Datatype;
pub(crate) use datatype::VARIABLE;
pub use filter::{EncryptionKey, FilterBuffers, Pipeline, TileCodec};
pub(crate) use filter::{Field, Filter, TileEncoder};
pub use folder::{FolderKind, OpenOptions, folder_kind, lists_members};
pub use fragments::{FieldSchema, Fragment};
pub(crate) use generic_tile::encode as encode_generic_tile;
pub use group::{GroupMember, ReadGroup};
pub use metadata::{MetadataValue, ReadMetadata};
pub use open_array::OpenArray;
pub use schema::{
    ArrayKind, ArraySchema, Attribute, CellOrder, CoordinateRange, DimensionDomain, DimensionLabel,
    DimensionLabelOrder, DimensionSchema, Enumeration, ValuesPerCell,
};
pub use sparse::{
    Block, Comparison, Condition, Coordinates, DeleteCondition, RTree, ReadBlocks, ReadRTree,
    ReadSparseZones, StoredRTree,
};
pub use statistics::{ReadZones, StoredStatistics, TileZones};
pub use tiles::{Locate, Window};
