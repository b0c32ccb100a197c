//! Indexes of chunks: where a dataset stores its chunks.
//!
//! Format: HDF5 File Format Specification version 3.0, VII "Appendix C: Types of Indexes for Dataset Chunks", and
//! III.A for B-trees. A query looks up only the chunks that are wanted, and never reads a whole index.
//!
//! A chunk that an index does not have reads as fill. So each search proves that the chunk is not there: the counts,
//! the keys and the checksums of all nodes and blocks on the way must agree. [`Walk`] visits whole indexes, to verify
//! them.

mod array;
mod btree1;
mod btree2;
mod chunk_index;
mod extensible_array;
mod fixed_array;
mod lookup;
mod numbering;
mod range;
mod walk;

pub(super) use chunk_index::{ChunkIndex, IndexKind};
pub(super) use lookup::lookup;
pub(super) use walk::{Indexed, Walk};

use super::file_bytes::Fields;
use super::parse::checksum;
use gridfusion_core::{Error, Result};

/// Where a chunk is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The HDF5 address of the first byte.
    pub(super) address: u64,
    /// The number of stored bytes; `None` if the chunk has no filters, and so has the bytes of its cells.
    pub(super) size: Option<u64>,
    /// A bit per filter that was not applied.
    pub(super) skipped: u32,
}

/// Fails unless the last four bytes of a part of an index, which lies at `address`, are the checksum of the others.
fn check_sum(region: &'static str, bytes: &[u8], address: u64) -> Result<()> {
    let (content, stored) = bytes.split_last_chunk::<4>().unwrap_or((bytes, &[0; 4]));
    let (found, stored) = (checksum(content), u32::from_le_bytes(*stored));
    if found == stored {
        return Ok(());
    }
    let message = format!("its checksum is {found:08x}, but {stored:08x} is stored");
    Err(Fields::new(region, address, &[]).corrupt(message))
}

/// Whether a bit is set. The first one is the highest of the first byte.
fn is_set(bits: &[u8], at: u64) -> bool {
    let byte = usize::try_from(at / 8).ok().and_then(|byte| bits.get(byte));
    byte.is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0)
}

fn too_far() -> Error {
    Error::corrupt_region("chunk index", "a chunk beyond the largest possible file")
}
