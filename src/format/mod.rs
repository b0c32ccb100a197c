//! Array formats: what stored bytes mean. No I/O, no Arrow, no DataFusion.
//!
//! A format never reads. It is a [`Machine`] that says which bytes or listings it needs next; whoever
//! drives it fetches them from a mapping, an object store or a test, and hands them back:
//!
//! ```text
//!                    step([])                    step([bytes, bytes])
//!   driver ── machine ───────▶ Read([a 0..64, b 9..20]) ─────▶ List([folder]) ── … ──▶ Done(value)
//!                                  │          ▲
//!                                  ▼          │
//!                             objects, by their names
//! ```
//!
//! An array is one object ([`tet`], whose object has the empty name) or a folder of them (`tiledb`, with
//! the feature of that name). A package of `.tet` files is a folder too, in which one object is chosen.
//!
//! Reading a chunk has the same shape for every format: *locate* (a machine that ends in a
//! [`StoredChunk`] for each value that is wanted: byte ranges, and how they lie over one another),
//! and then *decode* ([`Payload::decode`]). A format with an encoding of its own is a [`PayloadDecoder`].

mod byte_order;
mod codec;
mod element;
mod foreign;
mod machine;
mod memory_budget;
mod storage_order;
mod stored;
pub mod tet;
#[cfg(feature = "tiledb")]
pub mod tiledb;
mod time_unit;
#[cfg_attr(not(feature = "tiledb"), allow(dead_code))] // TileDB has more kinds of numbers.
mod wire;
mod write;
mod zone;

pub use byte_order::ByteOrder;
pub use codec::{Codec, Decoded, PayloadDecoder, Scratch};
pub use element::ElementType;
pub use foreign::Foreign;
pub use machine::{Entry, Location, Machine, Replies, Step};
pub use memory_budget::MemoryBudget;
pub use storage_order::StorageOrder;
pub use stored::{Layer, Payload, Placement, StoredChunk};
pub use time_unit::TimeUnit;
pub use write::{Content, Publish, Write, Writer};
pub(crate) use zone::bound;
pub use zone::{Bound, Sum, Zone, Zones};

pub use crate::byte_range::ByteRange;
