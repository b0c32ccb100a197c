//! Array formats: the meaning of stored bytes. No I/O, no Arrow, no DataFusion.
//!
//! A format never reads. It is a [`Machine`] that requests bytes or listings. A driver fetches them from
//! a mapping, an object store or a test, and passes them to the machine's next step:
//!
//! ```text
//!                    step([])                    step([bytes, bytes])
//!   driver ── machine ───────▶ Read([a 0..64, b 9..20]) ─────▶ List([folder]) ── … ──▶ Done(value)
//!                                  │          ▲
//!                                  ▼          │
//!                             objects, by their names
//! ```
//!
//! An array is one object, whose name is empty ([`tet`], [`netcdf3`]), or a folder of objects (`tiledb`, with the
//! feature of that name). A package of `.tet` files is a folder too, but only one of its objects is read.
//!
//! Every format reads a chunk in two steps:
//!
//! - *locate*: a machine returns a [`StoredChunk`] per requested variable: byte ranges in layers, of which
//!   newer ones override older ones;
//! - *decode*: [`Payload::decode`] turns stored bytes into a tile. A format with an encoding of its own
//!   implements [`PayloadDecoder`].

mod byte_order;
mod codec;
#[cfg(feature = "codecs")]
pub mod codecs;
#[cfg(any(feature = "codecs", feature = "tiledb"))]
#[cfg_attr(not(feature = "tiledb"), allow(dead_code))] // Some functions are used by TileDB only.
mod compress;
mod element;
mod foreign;
#[cfg(feature = "hdf5")]
pub mod hdf5;
pub mod hierarchy;
#[cfg(any(feature = "codecs", feature = "tiledb"))]
mod lz4_block;
mod machine;
#[cfg(any(feature = "codecs", feature = "tiledb"))]
mod matches;
mod memory_budget;
pub mod netcdf3;
mod repeated_cell;
#[cfg(any(feature = "codecs", feature = "tiledb"))]
mod shuffle;
mod storage_order;
mod stored;
pub mod tet;
#[cfg(feature = "tiledb")]
pub mod tiledb;
mod time_unit;
#[cfg_attr(not(feature = "tiledb"), allow(dead_code))] // Some functions are used by TileDB only.
mod wire;
mod write;
#[cfg(feature = "zarr")]
pub mod zarr;
mod zone;

pub use byte_order::ByteOrder;
pub use codec::{Codec, Decoded, PayloadDecoder, Scratch};
pub use element::ElementType;
pub use foreign::Foreign;
pub use machine::{Entry, Location, Machine, NOTHING, Replies, Step};
pub use memory_budget::MemoryBudget;
pub(crate) use repeated_cell::RepeatedCell;
pub use storage_order::StorageOrder;
pub use stored::{Layer, Payload, Placement, StoredChunk};
pub use time_unit::TimeUnit;
pub use write::{Content, Publish, Write, Writer};
pub(crate) use zone::bound;
pub use zone::{Bound, Sum, Zone, Zones};

pub use crate::byte_range::ByteRange;
