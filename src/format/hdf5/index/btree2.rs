//! The version 2 B-tree of chunks, for datasets with several unlimited axes.
//!
//! Format: HDF5 File Format Specification version 3.0, III.A.2, record types 10 and 11.
//!
//! ```text
//!   inner node:  BTIN │ record 0 … record n-1 │ child 0 … child n │ checksum
//!   record:      address of the chunk, (stored bytes, filter mask,) coordinates of the chunk
//! ```
//!
//! Unlike in version 1, inner nodes have records of their own: child i lies between records i - 1 and i.

use std::ops::Range;

use super::super::file_bytes::{Fields, FileBytes};
use super::super::parse::checksum;
use super::Entry;
use super::range::Split;
use crate::error::Result;

/// The name of the region in errors.
const REGION: &str = "B-tree of chunks";
/// The greatest depth of a tree.
const MAX_DEPTH: u64 = 32;

/// A tree, from its header.
struct Tree {
    rank: usize,
    is_filtered: bool,
    node_len: u64,
    record_len: u64,
    /// Bytes of the number of stored bytes of a chunk.
    size_width: u8,
}

/// A node to visit.
struct Visit {
    address: u64,
    records: u64,
    depth: u64,
    range: Range<usize>,
}

/// Looks up the chunks with the coordinates `wanted`, which is sorted, and calls `found` with the number of each
/// chunk that is stored.
pub(in crate::format::hdf5) fn lookup(
    file: &FileBytes,
    header: u64,
    rank: usize,
    wanted: &[Vec<u64>],
    found: &mut impl FnMut(usize, Entry),
) -> Result<()> {
    let Some((tree, root)) = read_header(file, header, rank, wanted.len())? else { return Ok(()) };
    let mut nodes = vec![root];
    let mut failed = Ok(());
    while let Some(node) = nodes.pop() {
        match visit(file, &tree, &node, Split::new(wanted, node.range.clone()), found) {
            Ok(children) => nodes.extend(children),
            Err(error) if file.blocks.has_missed() => failed = Err(error),
            Err(error) => return Err(error),
        }
    }
    failed
}

/// Returns the tree and its root; `None` if the tree is empty.
fn read_header(
    file: &FileBytes,
    address: u64,
    rank: usize,
    wanted: usize,
) -> Result<Option<(Tree, Visit)>> {
    let (address_width, length) = (file.widths.address, file.widths.length);
    let len = 22 + u64::from(address_width) + u64::from(length);
    let bytes = file.read(address, len)?;
    check_sum(&bytes, address)?;
    let mut fields = Fields::new(REGION, address, &bytes);
    fields.magic(b"BTHD\0")?;
    let kind = fields.uint(1)?;
    let (node_len, record_len, depth) = (fields.uint(4)?, fields.uint(2)?, fields.uint(2)?);
    fields.take(2)?;
    let (root, records) = (fields.uint(address_width)?, fields.uint(2)?);
    let fixed = u64::from(address_width) + 8 * rank as u64;
    let size_width = match kind {
        10 if record_len == fixed => 0,
        11 if (fixed + 5..=fixed + 12).contains(&record_len) => record_len - fixed - 4,
        _ => {
            let found = format!("records of type {kind} and {record_len} bytes for {rank} axes");
            return Err(fields.corrupt(found));
        }
    };
    if depth > MAX_DEPTH || node_len < 16 {
        return Err(fields.corrupt(format!("{depth} levels of nodes of {node_len} bytes")));
    }
    if records == 0 || file.widths.is_undefined(root) {
        return Ok(None);
    }
    let size_width = size_width as u8;
    let tree = Tree { rank, is_filtered: kind == 11, node_len, record_len, size_width };
    Ok(Some((tree, Visit { address: root, records, depth, range: 0..wanted })))
}

/// Finds wanted chunks in the records of a node, and returns its children with wanted chunks.
fn visit(
    file: &FileBytes,
    tree: &Tree,
    node: &Visit,
    mut wanted: Split<'_>,
    found: &mut impl FnMut(usize, Entry),
) -> Result<Vec<Visit>> {
    let width = file.widths.address;
    let bytes = file.read(node.address, tree.node_len)?;
    let mut fields = Fields::new(REGION, node.address, &bytes);
    fields.magic(if node.depth == 0 { b"BTLF\0" } else { b"BTIN\0" })?;
    fields.take(1)?;
    // The address of a child, its records, and below the lowest level the records of its subtree.
    let [count, total] = if node.depth > 0 { tree.widths(width, node.depth) } else { [0, 0] };
    let child_len = u64::from(width) + u64::from(count) + u64::from(total);
    let children_len = if node.depth > 0 { (node.records + 1) * child_len } else { 0 };
    let end = 6 + node.records * tree.record_len + children_len + 4;
    let used = usize::try_from(end).ok().and_then(|end| bytes.get(..end));
    check_sum(used.ok_or_else(|| fields.corrupt("more records than a node has"))?, node.address)?;

    let mut ranges = vec![];
    for _ in 0..node.records {
        let (entry, coordinates) = tree.record(&mut fields, width)?;
        ranges.push(wanted.below(&coordinates));
        if let Some(number) = wanted.take(&coordinates) {
            found(number, entry);
        }
    }
    ranges.push(wanted.rest());
    let mut children = vec![];
    if node.depth > 0 {
        for range in ranges {
            let (address, records) = (fields.uint(width)?, fields.uint(count)?);
            fields.uint(total)?;
            if !range.is_empty() && records > 0 {
                children.push(Visit { address, records, depth: node.depth - 1, range });
            }
        }
    }
    Ok(children)
}

impl Tree {
    fn record(&self, fields: &mut Fields<'_>, width: u8) -> Result<(Entry, Vec<u64>)> {
        let address = fields.uint(width)?;
        let (size, skipped) = match self.is_filtered {
            true => (Some(fields.uint(self.size_width)?), fields.uint(4)? as u32),
            false => (None, 0),
        };
        let coordinates = (0..self.rank).map(|_| fields.uint(8)).collect::<Result<_>>()?;
        Ok((Entry { address, size, skipped }, coordinates))
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

/// Fails unless the last four bytes are the checksum of the others.
fn check_sum(bytes: &[u8], address: u64) -> Result<()> {
    let (content, stored) = bytes.split_last_chunk::<4>().unwrap_or((bytes, &[0; 4]));
    if checksum(content) == u32::from_le_bytes(*stored) {
        return Ok(());
    }
    Err(Fields::new(REGION, address, &[]).corrupt("the checksum of a node is wrong"))
}
