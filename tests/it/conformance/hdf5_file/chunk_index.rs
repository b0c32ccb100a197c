//! The index of chunks: a B-tree of version 1 (III.A.1).
//!
//! ```text
//!   level 1                    ┌ key │ node │ key │ node │ key ┐
//!                                       │            │
//!   level 0   ┌ key │ chunk │ key │ chunk │ key ┐  ┌ key │ chunk │ … ┐     neighbours refer to each other
//! ```
//!
//! A key has the first cell of what follows; the last key of a node is beyond all of its chunks.

use super::{File, UNDEFINED};

/// The most entries of a node that this writer makes, so that small files have several levels.
const ENTRIES: usize = 8;

/// The entries that a node has room for: twice the default of the library.
const ROOM: usize = 64;

/// A chunk, or a node of chunks.
pub(super) struct Entry {
    /// The bytes of the chunk, or of the first chunk of the node.
    pub(super) len: u32,
    /// The first cell of that chunk.
    pub(super) start: Vec<u64>,
    /// The cell beyond the chunk, or beyond the last chunk of the node.
    pub(super) end: Vec<u64>,
    pub(super) address: u64,
}

/// Writes the nodes of chunks in row-major order, from the leaves to the root. Returns the address of the root.
pub(super) fn write_index(file: &mut File, mut entries: Vec<Entry>) -> u64 {
    for level in 0.. {
        entries = write_level(file, level, &entries);
        match entries.as_slice() {
            [] => return UNDEFINED,
            [root] => return root.address,
            _ => {}
        }
    }
    unreachable!("each level has fewer nodes")
}

/// Writes the nodes of a level, one after another, and returns them as entries of the next.
fn write_level(file: &mut File, level: u8, entries: &[Entry]) -> Vec<Entry> {
    let groups: Vec<&[Entry]> = entries.chunks(ENTRIES).collect();
    let mut nodes: Vec<Entry> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let node = node(level, group);
        let address = file.put(&node);
        let left = nodes.last().map_or(UNDEFINED, |left| left.address);
        // The next node follows immediately, because the length is a multiple of eight.
        let is_last = number + 1 == groups.len();
        let right = if is_last { UNDEFINED } else { address + node.len() as u64 };
        file.overwrite(address + NEIGHBOURS, &[left, right].map(u64::to_le_bytes).concat());
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let (start, end) = (first.start.clone(), last.end.clone());
        nodes.push(Entry { len: first.len, start, end, address });
    }
    nodes
}

/// The place of the addresses of a node's neighbours.
const NEIGHBOURS: u64 = 8;

/// Returns a node without its neighbours: a key before each entry, and one after the last.
fn node(level: u8, entries: &[Entry]) -> Vec<u8> {
    let count = (entries.len() as u16).to_le_bytes();
    let mut bytes = [b"TREE\x01", &[level][..], &count, &[0; 16]].concat();
    for entry in entries {
        bytes.extend(key(entry.len, &entry.start));
        bytes.extend(entry.address.to_le_bytes());
    }
    let last = key(0, &entries[entries.len() - 1].end);
    bytes.extend(&last);
    bytes.resize((24 + ROOM * 8 + (ROOM + 1) * last.len()).next_multiple_of(8), 0);
    bytes
}

/// Returns a key: the bytes of a chunk, the filters that were left out, and a cell. The last axis has the bytes of a
/// cell.
fn key(len: u32, cell: &[u64]) -> Vec<u8> {
    let mut bytes = [len, 0].map(u32::to_le_bytes).concat();
    bytes.extend(cell.iter().chain(&[0]).flat_map(|at| at.to_le_bytes()));
    bytes
}
