//! The version 2 B-tree of chunks, for datasets with several unlimited axes.
//!
//! Format: HDF5 File Format Specification version 3.0, III.A.2, record types 10 and 11.
//!
//! ```text
//!   inner node:  BTIN │ record 0 … record n-1 │ child 0 … child n │ checksum
//!   record:      address of the chunk, (stored bytes, filter mask,) coordinates of the chunk
//! ```
//!
//! Unlike in version 1, inner nodes have records of their own: child i lies between records i - 1 and i. The header and
//! the inner nodes count the records below them, so a search compares these counts on its way.

use super::super::file_bytes::{Fields, FileBytes};
use super::chunk_index::ChunkIndex;
use super::range::Split;
use super::{Entry, check_sum};
use gridfusion_core::Result;

/// The name of the region in errors.
const REGION: &str = "B-tree of chunks";
/// The greatest depth of a tree.
const MAX_DEPTH: u64 = 32;

/// A tree, from its header.
#[derive(Debug)]
pub(super) struct Tree {
    rank: usize,
    is_filtered: bool,
    node_len: u64,
    record_len: u64,
    /// Bytes of the number of stored bytes of a chunk.
    size_width: u8,
    /// The records of all nodes.
    pub(super) records: u64,
}

/// A node, and what its parent knows of it.
#[derive(Debug, Clone)]
pub(super) struct NodeAt {
    address: u64,
    /// The records of the node.
    records: u64,
    /// The records of the node and of all nodes below.
    total: u64,
    depth: u64,
    /// The records of the parent before and after the child.
    around: [Option<Vec<u64>>; 2],
}

/// A node whose records ascend and agree with its parent.
#[derive(Debug)]
pub(super) struct Node {
    /// Chunks by their coordinates.
    pub(super) records: Vec<(Vec<u64>, Entry)>,
    /// One more than records; none of a leaf.
    pub(super) children: Vec<NodeAt>,
}

/// Looks up the chunks with the coordinates `wanted`, which is sorted, and calls `found` with the number of each
/// chunk that is stored.
pub(super) fn lookup(
    file: &FileBytes,
    index: &ChunkIndex,
    wanted: &[Vec<u64>],
    found: &mut impl FnMut(usize, Entry),
) -> Result<()> {
    let Some((tree, root)) = Tree::read(file, index)? else { return Ok(()) };
    let mut nodes = vec![(root, 0..wanted.len())];
    let mut failed = Ok(());
    while let Some((at, range)) = nodes.pop() {
        let node = match tree.node(file, &at) {
            Ok(node) => node,
            Err(error) if file.blocks.has_missed() => {
                failed = Err(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut split = Split::new(wanted, range);
        let mut children = node.children.into_iter();
        let mut push = |range: std::ops::Range<usize>| {
            let child = children.next().filter(|_| !range.is_empty());
            nodes.extend(child.map(|child| (child, range)));
        };
        for (coordinates, entry) in &node.records {
            push(split.below(coordinates));
            split.take(coordinates).into_iter().for_each(|number| found(number, *entry));
        }
        push(split.rest());
    }
    failed
}

impl Tree {
    /// Reads the header. Returns the tree and its root; `None` if the tree is empty.
    pub(super) fn read(file: &FileBytes, index: &ChunkIndex) -> Result<Option<(Self, NodeAt)>> {
        let (address, rank) = (index.address, index.chunk_shape.len());
        let (address_width, length) = (file.widths.address, file.widths.length);
        let len = 22 + u64::from(address_width) + u64::from(length);
        let bytes = file.read(address, len)?;
        check_sum(REGION, &bytes, address)?;
        let mut fields = Fields::new(REGION, address, &bytes);
        fields.magic(b"BTHD\0")?;
        let kind = fields.uint(1)?;
        let (node_len, record_len, depth) = (fields.uint(4)?, fields.uint(2)?, fields.uint(2)?);
        fields.take(2)?;
        let (root, in_root) = (fields.uint(address_width)?, fields.uint(2)?);
        let records = fields.uint(length)?;
        let fixed = u64::from(address_width) + 8 * rank as u64;
        let size_width = match kind {
            10 if record_len == fixed => 0,
            11 if (fixed + 5..=fixed + 12).contains(&record_len) => record_len - fixed - 4,
            _ => {
                let found =
                    format!("records of type {kind} and {record_len} bytes for {rank} axes");
                return Err(fields.corrupt(found));
            }
        };
        if depth > MAX_DEPTH || node_len < 16 {
            return Err(fields.corrupt(format!("{depth} levels of nodes of {node_len} bytes")));
        }
        if file.widths.is_undefined(root) {
            return match records {
                0 => Ok(None),
                _ => Err(fields.corrupt(format!("{records} records without a node"))),
            };
        }
        let (is_filtered, size_width) = (kind == 11, size_width as u8);
        let tree = Self { rank, is_filtered, node_len, record_len, size_width, records };
        let around = [None, None];
        let root = NodeAt { address: root, records: in_root, total: records, depth, around };
        Ok(Some((tree, root)))
    }

    /// Reads a node.
    pub(super) fn node(&self, file: &FileBytes, at: &NodeAt) -> Result<Node> {
        let width = file.widths.address;
        let bytes = file.read(at.address, self.node_len)?;
        let mut fields = Fields::new(REGION, at.address, &bytes);
        fields.magic(if at.depth == 0 { b"BTLF\0" } else { b"BTIN\0" })?;
        fields.take(1)?;
        // The address of a child, its records, and below the lowest level the records of its subtree.
        let [count, total] = if at.depth > 0 { self.widths(width, at.depth) } else { [0, 0] };
        let child_len = u64::from(width) + u64::from(count) + u64::from(total);
        let children_len = if at.depth > 0 { (at.records + 1) * child_len } else { 0 };
        let end = 6 + at.records * self.record_len + children_len + 4;
        let used = usize::try_from(end).ok().and_then(|end| bytes.get(..end));
        let used = used.ok_or_else(|| fields.corrupt("more records than a node has"))?;
        check_sum(REGION, used, at.address)?;

        let records = (0..at.records).map(|_| self.record(&mut fields, file));
        let records = records.collect::<Result<Vec<_>>>()?;
        let mut children = vec![];
        for number in 0..if at.depth > 0 { records.len() + 1 } else { 0 } {
            let (address, below) = (fields.uint(width)?, fields.uint(count)?);
            let total = if at.depth > 1 { fields.uint(total)? } else { below };
            let record = |at: Option<usize>| Some(records.get(at?)?.0.clone());
            let around = [record(number.checked_sub(1)), record(Some(number))];
            children.push(NodeAt { address, records: below, total, depth: at.depth - 1, around });
        }
        let node = Node { records, children };
        node.check(at)?;
        Ok(node)
    }

    fn record(&self, fields: &mut Fields<'_>, file: &FileBytes) -> Result<(Vec<u64>, Entry)> {
        let address = fields.uint(file.widths.address)?;
        let (size, skipped) = match self.is_filtered {
            true => (Some(fields.uint(self.size_width)?), fields.uint(4)? as u32),
            false => (None, 0),
        };
        let coordinates = (0..self.rank).map(|_| fields.uint(8)).collect::<Result<_>>()?;
        if file.widths.is_undefined(address) {
            return Err(fields.corrupt(format!("chunk {coordinates:?} has no address")));
        }
        Ok((coordinates, Entry { address, size, skipped }))
    }

    /// Returns the bytes of the number of records of a child, and of its subtree, in a node of `depth`: as many as
    /// the greatest possible number needs.
    fn widths(&self, address: u8, depth: u64) -> [u8; 2] {
        let bytes = |most: u64| (64 - most.leading_zeros()).div_ceil(8).max(1) as u8;
        let room = self.node_len.saturating_sub(10);
        let most = room / self.record_len;
        let count = bytes(most);
        let (mut subtree, mut total) = (most, 0);
        for _ in 1..depth {
            let pointer = u64::from(address) + u64::from(count) + u64::from(total);
            let records = room.saturating_sub(pointer) / (self.record_len + pointer);
            subtree = (records + 1).saturating_mul(subtree).saturating_add(records);
            total = bytes(subtree);
        }
        [count, total]
    }
}

impl Node {
    /// Fails unless the records ascend between those of the parent, and are as many as it counts.
    fn check(&self, at: &NodeAt) -> Result<()> {
        let corrupt = |message: String| Err(Fields::new(REGION, at.address, &[]).corrupt(message));
        let below = self.children.iter().map(|child| child.total);
        let total = below.fold(self.records.len() as u64, u64::saturating_add);
        if total != at.total {
            let expected = at.total;
            return corrupt(format!("{total} records here and below, expected {expected}"));
        }
        let [first, last] = &at.around;
        let own = self.records.iter().map(|(coordinates, _)| coordinates);
        let all: Vec<&Vec<u64>> = first.iter().chain(own).chain(last).collect();
        match all.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => corrupt(format!("chunk {:?} follows chunk {:?}", pair[1], pair[0])),
            None => Ok(()),
        }
    }
}
