//! LZ4 blocks, as numcodecs and HDF5 filter 32004 store them.
//!
//! ```text
//!   numcodecs   u32 decoded length, little-endian; one block
//!   HDF5        u64 decoded length, u32 decoded length of a block, then per block:
//!               u32 stored length, block       all big-endian
//! ```
//!
//! A block of HDF5 that is as long as its decoded bytes is not compressed. The last one may decode to fewer bytes
//! than the others.
//!
//! Sources: `lz4.pyx` of numcodecs; "HDF5 LZ4 filter" in the registry of HDF5 filters.

use super::output::{Fault, Output};
use crate::format::lz4_block::{MOST_RATIO, decompress_into};
use crate::format::wire::to_usize;

/// Decodes one block after its decoded length.
pub(super) fn block(stored: &[u8], output: Output<'_>) -> Result<(), Fault> {
    let (len, block) = stored.split_first_chunk::<4>().ok_or("its length is cut off")?;
    let len = to_usize(u64::from(u32::from_le_bytes(*len)));
    if len > block.len().saturating_mul(MOST_RATIO) {
        let message = format!("{} bytes of LZ4 that claim to be {len} bytes", block.len());
        return Err(Fault::Corrupt(message));
    }
    decode(block, output.claim(len)?)
}

/// Decodes a block to all of `output`.
pub(super) fn decode(block: &[u8], output: &mut [u8]) -> Result<(), Fault> {
    match decompress_into(block, output)
        .ok_or("a part that is cut off, too long or too far back")?
    {
        len if len == output.len() => Ok(()),
        len => Err(Fault::Corrupt(format!("a block of {len} bytes, expected {}", output.len()))),
    }
}

/// Decodes blocks of HDF5.
pub(super) fn frames(stored: &[u8], output: Output<'_>) -> Result<(), Fault> {
    let (len, rest) = stored.split_first_chunk::<8>().ok_or("its length is cut off")?;
    let (size, mut rest) = rest.split_first_chunk::<4>().ok_or("its block size is cut off")?;
    let len = to_usize(u64::from_be_bytes(*len));
    let size = to_usize(u64::from(u32::from_be_bytes(*size))).min(len);
    let mut blocks = output.blocks(len, stored.len())?;
    let mut filled = 0;
    while filled < len {
        let block_len = size.min(len - filled);
        let (block, after) = length_and_block(rest).ok_or("a block that is cut off")?;
        let is_honest = || block_len <= block.len().saturating_mul(MOST_RATIO);
        let place = blocks.block(filled, block_len, is_honest)?;
        if block.len() == block_len {
            place.copy_from_slice(block);
        } else {
            decode(block, place)?;
        }
        // Each block takes 4 bytes at least, so blocks of 0 bytes come to an end.
        (rest, filled) = (after, filled + block_len);
    }
    Ok(())
}

/// Splits off a block after its big-endian length.
pub(super) fn length_and_block(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(to_usize(u64::from(u32::from_be_bytes(*len))))
}
