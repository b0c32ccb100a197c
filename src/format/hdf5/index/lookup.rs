//! A query of any kind of index.

use super::super::file_bytes::FileBytes;
use super::super::parse::{self, ArrayIndex};
use super::chunk_index::{ChunkIndex, IndexKind};
use super::{Entry, boxes, btree1, btree2};
use crate::error::{Error, Result};
use crate::grid::ravel;

/// Looks up the chunks with the coordinates `wanted`, which is sorted. Returns an entry per chunk; `None` if the
/// chunk was never written.
pub(in crate::format::hdf5) fn lookup(
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
            *slot = (!file.widths.is_undefined(entry.address)).then_some(entry);
        }
    };
    match index.kind {
        IndexKind::Single { size, skipped } => {
            found(0, Entry { address: index.address, size, skipped });
        }
        IndexKind::Implicit => {
            for (number, chunk) in wanted.iter().enumerate() {
                found(number, implicit(index, chunk)?);
            }
        }
        IndexKind::BTree1 => {
            let first = |chunk: &Vec<u64>| -> Result<Vec<u64>> {
                let places = chunk.iter().zip(&index.chunk_shape);
                places.map(|(at, len)| at.checked_mul(*len).ok_or_else(too_far)).collect()
            };
            let firsts = wanted.iter().map(first).collect::<Result<Vec<_>>>()?;
            let rank = index.chunk_shape.len();
            btree1::lookup(file, index.address, rank, index.has_filters, &firsts, &mut found)?;
        }
        IndexKind::BTree2 => {
            btree2::lookup(file, index.address, index.chunk_shape.len(), wanted, &mut found)?;
        }
        IndexKind::FixedArray => arrays(file, index, ArrayIndex::Fixed, wanted, &mut found)?,
        IndexKind::ExtensibleArray => {
            arrays(file, index, ArrayIndex::Extensible, wanted, &mut found)?;
        }
    }
    Ok(entries)
}

/// Chunks of an implicit index are numbered as if the dataset had its greatest shape.
fn implicit(index: &ChunkIndex, chunk: &[u64]) -> Result<Entry> {
    let counts = index
        .max_shape
        .iter()
        .zip(&index.chunk_shape)
        .map(|(len, chunk)| len.div_ceil(*chunk).max(1));
    let counts: Vec<u64> = counts.collect();
    let all = counts.iter().try_fold(1_u64, |all, count| all.checked_mul(*count));
    all.ok_or_else(too_far)?;
    let at = ravel(chunk, &counts).checked_mul(index.chunk_len);
    let address = at.and_then(|at| at.checked_add(index.address)).ok_or_else(too_far)?;
    Ok(Entry { address, size: None, skipped: 0 })
}

fn arrays(
    file: &FileBytes,
    index: &ChunkIndex,
    kind: ArrayIndex,
    wanted: &[Vec<u64>],
    found: &mut impl FnMut(usize, Entry),
) -> Result<()> {
    let mut failed = Ok(());
    for chunks in boxes(wanted) {
        match parse::array_index(file, index, kind, &chunks) {
            Ok(all) => {
                for (chunk, entry) in all {
                    if let Ok(number) = wanted.binary_search(&chunk) {
                        found(number, entry);
                    }
                }
            }
            Err(error) if file.blocks.has_missed() => failed = Err(error),
            Err(error) => return Err(error),
        }
    }
    failed
}

fn too_far() -> Error {
    Error::corrupt_region("chunk index", "a chunk beyond the largest possible file")
}
