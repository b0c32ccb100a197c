//! The index of chunks: a B-tree of version 1 (III.A.1).
//!
//! ```text
//!   level 1                    ┌ key │ node │ key │ node │ key ┐
//!                                       │            │
//!   level 0   ┌ key │ chunk │ key │ chunk │ key ┐  ┌ key │ chunk │ … ┐     neighbours refer to each other
//! ```
//!
//! A key has the first cell of what follows, and a byte of the cell. The last key of a node is the first key of the next
//! node of its level. The last key of the tree is in the last chunk, as the library writes it: its cell is that of the
//! chunk, and only the byte is beyond.

use super::{File, UNDEFINED};

/// The most entries of a node that this writer makes, so that small files have several levels.
const ENTRIES: usize = 8;

/// The entries that a node has room for: twice the default of the library.
const ROOM: usize = 64;

/// A chunk, or a node of chunks.
pub(super) struct Entry {
    /// The bytes of the chunk, or of the first chunk of the node.
    pub(super) len: u32,
    /// The key of that chunk.
    pub(super) start: Vec<u64>,
    /// The key beyond the chunk, or beyond the last chunk of the node, if nothing follows.
    pub(super) end: Vec<u64>,
    pub(super) address: u64,
}

/// Makes room for a leaf before the chunks that it will have, so that chunks and nodes alternate as in files of the
/// library. `count` is the number of chunks so far.
pub(super) fn make_room(file: &mut File, count: usize, rank: usize, leaves: &mut Vec<u64>) {
    if count.is_multiple_of(ENTRIES) {
        leaves.push(file.put(&vec![0; node_len(rank)]));
    }
}

/// Writes the nodes of chunks in row-major order, from the leaves to the root. There is room for the leaves. Returns the
/// address of the root.
pub(super) fn write_index(file: &mut File, mut entries: Vec<Entry>, leaves: &[u64]) -> u64 {
    for level in 0.. {
        entries = write_level(file, level, &entries, if level == 0 { leaves } else { &[] });
        match entries.as_slice() {
            [] => return UNDEFINED,
            [root] => return root.address,
            _ => {}
        }
    }
    unreachable!("each level has fewer nodes")
}

/// Writes the nodes of a level, at these places if there are any, and returns them as entries of the next.
fn write_level(file: &mut File, level: u8, entries: &[Entry], places: &[u64]) -> Vec<Entry> {
    let groups: Vec<&[Entry]> = entries.chunks(ENTRIES).collect();
    let mut nodes: Vec<Entry> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let end = groups.get(number + 1).map_or(&last.end, |next| &next[0].start);
        let node = node(level, group, end);
        let place = places.get(number).copied();
        let address = place.unwrap_or_else(|| file.put(&vec![0; node.len()]));
        file.overwrite(address, &node);
        let (start, end) = (first.start.clone(), last.end.clone());
        nodes.push(Entry { len: first.len, start, end, address });
    }
    for (number, node) in nodes.iter().enumerate() {
        let neighbour = |at: Option<usize>| at.and_then(|at| nodes.get(at));
        let around = [number.checked_sub(1), Some(number + 1)].map(neighbour);
        let around = around.map(|node| node.map_or(UNDEFINED, |node| node.address));
        file.overwrite(node.address + NEIGHBOURS, &around.map(u64::to_le_bytes).concat());
    }
    nodes
}

/// Returns the bytes of a node of chunks with this many axes.
fn node_len(rank: usize) -> usize {
    (24 + ROOM * 8 + (ROOM + 1) * (8 + 8 * (rank + 1))).next_multiple_of(8)
}

/// The place of the addresses of a node's neighbours.
const NEIGHBOURS: u64 = 8;

/// Returns a node without its neighbours: a key before each entry, and one after the last.
fn node(level: u8, entries: &[Entry], end: &[u64]) -> Vec<u8> {
    let count = (entries.len() as u16).to_le_bytes();
    let mut bytes = [b"TREE\x01", &[level][..], &count, &[0; 16]].concat();
    for entry in entries {
        bytes.extend(key(entry.len, &entry.start));
        bytes.extend(entry.address.to_le_bytes());
    }
    let last = key(0, end);
    bytes.extend(&last);
    bytes.resize(node_len(end.len() - 1), 0);
    bytes
}

/// Returns a key: the bytes of a chunk, the filters that were left out, a cell, and a byte of the cell.
fn key(len: u32, place: &[u64]) -> Vec<u8> {
    let mut bytes = [len, 0].map(u32::to_le_bytes).concat();
    bytes.extend(place.iter().flat_map(|at| at.to_le_bytes()));
    bytes
}
