//! A query of any kind of index.

use super::super::file_bytes::FileBytes;
use super::array::{self, ChunkArray};
use super::chunk_index::{ChunkIndex, IndexKind};
use super::extensible_array::ExtensibleArray;
use super::fixed_array::FixedArray;
use super::numbering::Numbering;
use super::{Entry, btree1, btree2, too_far};
use gridfusion_core::{Error, Result};

/// Looks up the chunks with the coordinates `wanted`, which is sorted. Returns an entry per chunk; `None` if the
/// chunk was never written.
///
/// # Errors
/// `Corrupt` if the index contradicts itself where it is searched.
pub(in crate::hdf5) fn lookup(
    file: &FileBytes,
    index: &ChunkIndex,
    wanted: &[Vec<u64>],
) -> Result<Vec<Option<Entry>>> {
    let mut entries = vec![None; wanted.len()];
    if file.widths.is_undefined(index.address) || wanted.is_empty() {
        return Ok(entries);
    }
    let mut found = |number: usize, entry: Entry| {
        if let Some(slot) = entries.get_mut(number) {
            let size = entry.size.filter(|_| index.has_filters);
            *slot = Some(Entry { size, ..entry });
        }
    };
    match index.kind {
        IndexKind::Single { .. } | IndexKind::Implicit => {
            for (number, chunk) in wanted.iter().enumerate() {
                found(number, placed(index, chunk)?);
            }
        }
        IndexKind::BTree1 => {
            let keys = wanted.iter().map(|chunk| btree1::key_of(index, chunk));
            let keys = keys.collect::<Result<Vec<_>>>()?;
            btree1::lookup(file, index, &keys, &mut found)?;
        }
        IndexKind::BTree2 => btree2::lookup(file, index, wanted, &mut found)?,
        IndexKind::FixedArray => {
            let array = FixedArray::read(file, index)?;
            arrays(file, index, array, wanted, &mut found)?;
        }
        IndexKind::ExtensibleArray => {
            let array = ExtensibleArray::read(file, index)?;
            arrays(file, index, array, wanted, &mut found)?;
        }
    }
    Ok(entries)
}

/// Returns the entry of a chunk whose place follows from its coordinates.
pub(super) fn placed(index: &ChunkIndex, chunk: &[u64]) -> Result<Entry> {
    let (number, size, skipped) = match index.kind {
        IndexKind::Single { size, skipped } if chunk.iter().all(|&at| at == 0) => {
            (0, size, skipped)
        }
        IndexKind::Single { .. } => {
            let message = format!("a single chunk has no other at {chunk:?}");
            return Err(Error::corrupt("chunk index", index.address, message));
        }
        _ => (Numbering::new(index).number(chunk)?, None, 0),
    };
    let at = number.checked_mul(index.chunk_len);
    let address = at.and_then(|at| at.checked_add(index.address)).ok_or_else(too_far)?;
    Ok(Entry { address, size, skipped })
}

fn arrays(
    file: &FileBytes,
    index: &ChunkIndex,
    array: Option<impl ChunkArray>,
    wanted: &[Vec<u64>],
    found: &mut impl FnMut(usize, Entry),
) -> Result<()> {
    let Some(mut array) = array else { return Ok(()) };
    let numbering = Numbering::new(index);
    let numbers = wanted.iter().zip(0..).map(|(chunk, at)| Ok((numbering.number(chunk)?, at)));
    let mut numbers = numbers.collect::<Result<Vec<(u64, usize)>>>()?;
    numbers.sort_unstable();
    array::lookup(file, &mut array, &numbers, found)
}
