//! The version 1 B-tree of chunks, which most files have.
//!
//! Format: HDF5 File Format Specification version 3.0, III.A.1, node type 1.
//!
//! ```text
//!   node:  TREE, type, level, entries, siblings │ key 0 │ child 0 │ key 1 │ child 1 │ … │ key n
//!   key:   stored bytes, filter mask, first element of the chunk per axis, byte within an element
//! ```
//!
//! Child i holds the chunks from key i to before key i + 1. At level 0, it is the chunk of key i. The last key may be
//! the last chunk itself, and a later byte of an element: keys are compared whole.
//!
//! Nodes have no checksum. But the first and the last key of a node are those around it in its parent, so a node that
//! lost entries is noticed.

use std::ops::Range;

use super::super::file_bytes::{Fields, FileBytes};
use super::chunk_index::ChunkIndex;
use super::range::Split;
use super::{Entry, too_far};
use gridfusion_core::Result;

/// The name of the region in errors.
const REGION: &str = "B-tree of chunks";

/// A place between chunks: an element, and a byte in it.
type Key = Vec<u64>;

/// Returns the key of a chunk.
pub(super) fn key_of(index: &ChunkIndex, chunk: &[u64]) -> Result<Key> {
    let places = chunk.iter().zip(&index.chunk_shape);
    let first = places.map(|(at, len)| at.checked_mul(*len).ok_or_else(too_far));
    first.chain([Ok(0)]).collect()
}

/// A node, and what its parent knows of it.
#[derive(Debug, Clone)]
pub(super) struct NodeAt {
    pub(super) address: u64,
    parent: Option<Parent>,
}

#[derive(Debug, Clone)]
struct Parent {
    level: u64,
    /// The keys on either side of the child.
    around: [Key; 2],
}

impl NodeAt {
    pub(super) fn root(index: &ChunkIndex) -> Self {
        Self { address: index.address, parent: None }
    }
}

/// A node whose keys ascend and agree with its parent.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) level: u64,
    /// The addresses of the nodes of the same level before and after.
    pub(super) siblings: [u64; 2],
    /// One more than entries.
    keys: Vec<Key>,
    entries: Vec<Entry>,
}

impl Node {
    pub(super) fn read(file: &FileBytes, at: &NodeAt, rank: usize) -> Result<Self> {
        let width = file.widths.address;
        let head_len = 8 + 2 * u64::from(width);
        let head = file.read(at.address, head_len)?;
        let mut fields = Fields::new(REGION, at.address, &head);
        fields.magic(b"TREE\x01")?;
        let (level, count) = (fields.uint(1)?, fields.uint(2)?);
        let siblings = [fields.uint(width)?, fields.uint(width)?];
        let key_len = 8 + 8 * (rank as u64 + 1);
        let len = head_len + count * (key_len + u64::from(width)) + key_len;
        let bytes = file.read(at.address, len)?;
        let mut fields = Fields::new(REGION, at.address, &bytes);
        fields.take(head_len as usize)?;
        let (mut keys, mut entries) = (vec![], vec![]);
        for number in 0..=count {
            let (size, skipped) = (Some(fields.uint(4)?), fields.uint(4)? as u32);
            keys.push((0..=rank).map(|_| fields.uint(8)).collect::<Result<Key>>()?);
            if number < count {
                entries.push(Entry { address: fields.uint(width)?, size, skipped });
            }
        }
        let node = Self { level, siblings, keys, entries };
        node.check(file, at)?;
        Ok(node)
    }

    fn check(&self, file: &FileBytes, at: &NodeAt) -> Result<()> {
        let corrupt = |message: String| Err(Fields::new(REGION, at.address, &[]).corrupt(message));
        let mut pairs = self.keys.iter().zip(self.keys.iter().skip(1));
        if let Some((key, next)) = pairs.find(|(key, next)| key >= next) {
            return corrupt(format!("key {next:?} follows key {key:?}"));
        }
        if self.level > 0 && self.entries.is_empty() {
            return corrupt(format!("no entry, at level {}", self.level));
        }
        let lost = |entry: &Entry| file.widths.is_undefined(entry.address);
        if let Some((_, key)) = self.entries.iter().zip(&self.keys).find(|(entry, _)| lost(entry)) {
            return corrupt(format!("key {key:?} has no address"));
        }
        // A chunk begins at the first byte of an element.
        let leaves = self.keys.iter().take(if self.level == 0 { self.entries.len() } else { 0 });
        if let Some(key) = leaves.into_iter().find(|key| key.last() != Some(&0)) {
            return corrupt(format!("key {key:?} is of no chunk"));
        }
        let Some(parent) = &at.parent else { return Ok(()) };
        if self.level + 1 != parent.level {
            let (level, above) = (self.level, parent.level);
            return corrupt(format!("level {level} is not below level {above} of the parent"));
        }
        let [first, last] = &parent.around;
        match (self.keys.first(), self.keys.last()) {
            (Some(from), Some(to)) if (from, to) != (first, last) => corrupt(format!(
                "keys from {from:?} to {to:?}, but the parent has {first:?} to {last:?}"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the children of an inner node; none of a leaf.
    pub(super) fn children(&self) -> impl Iterator<Item = NodeAt> {
        (0..self.entries.len()).filter_map(|number| self.child(number))
    }

    fn child(&self, number: usize) -> Option<NodeAt> {
        let (first, last) = (self.keys.get(number)?.clone(), self.keys.get(number + 1)?.clone());
        let parent = Some(Parent { level: self.level, around: [first, last] });
        let address = self.entries.get(number).filter(|_| self.level > 0)?.address;
        Some(NodeAt { address, parent })
    }

    /// Returns the chunks of a leaf by their first elements; none of an inner node.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (&[u64], Entry)> {
        let count = if self.level == 0 { self.entries.len() } else { 0 };
        let firsts = self.keys.iter().map(|key| key.split_last().map_or(&[][..], |(_, it)| it));
        firsts.zip(self.entries.iter().copied()).take(count)
    }
}

/// Looks up the chunks with these keys, which are sorted, and calls `found` with the number of each chunk that is
/// stored.
pub(super) fn lookup(
    file: &FileBytes,
    index: &ChunkIndex,
    wanted: &[Key],
    found: &mut impl FnMut(usize, Entry),
) -> Result<()> {
    let mut nodes = vec![(NodeAt::root(index), 0..wanted.len())];
    let mut failed = Ok(());
    while let Some((at, range)) = nodes.pop() {
        // After a miss, the other nodes are visited too, so that all missing blocks are requested at once.
        match Node::read(file, &at, index.chunk_shape.len()) {
            Ok(node) => search(&node, wanted, range, &mut nodes, found),
            Err(error) if file.blocks.has_missed() => failed = Err(error),
            Err(error) => return Err(error),
        }
    }
    failed
}

/// Finds wanted chunks in a leaf, or the children of an inner node that have them.
fn search(
    node: &Node,
    wanted: &[Key],
    range: Range<usize>,
    nodes: &mut Vec<(NodeAt, Range<usize>)>,
    found: &mut impl FnMut(usize, Entry),
) {
    let mut split = Split::new(wanted, range);
    let keys = node.keys.iter().zip(node.keys.iter().skip(1));
    for ((number, entry), (key, next)) in node.entries.iter().enumerate().zip(keys) {
        split.below(key);
        if node.level == 0 {
            split.take(key).into_iter().for_each(|number| found(number, *entry));
            continue;
        }
        let range = split.below(next);
        if !range.is_empty() {
            nodes.extend(node.child(number).map(|child| (child, range)));
        }
    }
}
