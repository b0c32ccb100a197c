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
//! An array is one object, whose name is empty (`.tet`, NetCDF, HDF5), or a folder of objects (TileDB, Zarr). A package of `.tet` files is a folder too, but only one of its objects is read.
//!
//! Every format reads a chunk in two steps:
//!
//! - *locate*: a machine returns a [`StoredChunk`] per requested variable: byte ranges in layers, of which
//!   newer ones override older ones;
//! - *decode*: [`Payload::decode`] turns stored bytes into a tile. A format with an encoding of its own
//!   implements [`PayloadDecoder`].
//!
//! So no code exists both in a synchronous and in an asynchronous version, and the tests open thousands of damaged files
//! from memory. A reply for an object that may be absent is `None`, and a chunk then loses that layer. Reading an object
//! whole or from its end takes one request, because nothing asks for its length first.

mod byte_order;
mod codec;
#[cfg(feature = "codecs")]
pub mod codecs;
#[cfg(feature = "codecs")]
pub mod compress;
mod element;
mod foreign;
#[cfg(feature = "codecs")]
mod lz4_block;
mod machine;
#[cfg(feature = "codecs")]
mod matches;
mod memory_budget;
mod repeated_cell;
#[cfg(feature = "codecs")]
pub mod shuffle;
mod storage_order;
mod stored;
mod time_unit;
pub mod wire;
mod write;
mod zone;

pub use byte_order::ByteOrder;
pub use codec::{Codec, DecodedPayload, PayloadDecoder, Scratch};
pub use element::ElementType;
pub use foreign::Foreign;
pub use machine::{Entry, Location, Machine, NOTHING, Replies, Step};
pub use memory_budget::MemoryBudget;
pub use repeated_cell::RepeatedCell;
pub use storage_order::StorageOrder;
pub use stored::{Layer, Payload, Placement, StoredChunk};
pub use time_unit::TimeUnit;
pub use write::{Content, Move, Publish, Write, Writer};
pub use zone::bound;
pub use zone::{Sum, Zone, ZoneBound, Zones};

pub use crate::byte_range::ByteRange;
