//! The version 1 B-tree of chunks, which most files have.
//!
//! Format: HDF5 File Format Specification version 3.0, III.A.1, node type 1.
//!
//! ```text
//!   node:  TREE, type, level, entries, siblings │ key 0 │ child 0 │ key 1 │ child 1 │ … │ key n
//!   key:   stored bytes, filter mask, first element of the chunk per axis, 0
//! ```
//!
//! Child i holds the chunks from key i to before key i + 1. At level 0, it is the chunk of key i.

use std::ops::Range;

use super::super::file_bytes::{Fields, FileBytes};
use super::Entry;
use super::range::Split;
use crate::error::Result;

/// The name of the region in errors.
const REGION: &str = "B-tree of chunks";

/// Looks up the chunks whose first elements are `wanted`, which is sorted, and calls `found` with the number of
/// each chunk that is stored. Filtered chunks have sizes of their own.
pub(in crate::format::hdf5) fn lookup(
    file: &FileBytes,
    root: u64,
    rank: usize,
    has_filters: bool,
    wanted: &[Vec<u64>],
    found: &mut impl FnMut(usize, Entry),
) -> Result<()> {
    let mut nodes = vec![(root, None, 0..wanted.len())];
    let mut failed = Ok(());
    while let Some((address, level, range)) = nodes.pop() {
        // After a miss, the other nodes are visited too, so that all missing blocks are requested at once.
        match visit(file, address, rank, level, Split::new(wanted, range)) {
            Ok(Node::Inner(children, level)) => nodes.extend(
                children.into_iter().map(|(address, range)| (address, Some(level - 1), range)),
            ),
            Ok(Node::Leaf(entries)) => entries.into_iter().for_each(|(number, entry)| {
                let size = entry.size.filter(|_| has_filters);
                found(number, Entry { size, ..entry });
            }),
            Err(error) if file.blocks.has_missed() => failed = Err(error),
            Err(error) => return Err(error),
        }
    }
    failed
}

/// The wanted parts of a node.
enum Node {
    /// Addresses of children and the wanted chunks in each, and the node's level.
    Inner(Vec<(u64, Range<usize>)>, u64),
    /// Wanted chunks.
    Leaf(Vec<(usize, Entry)>),
}

fn visit(
    file: &FileBytes,
    address: u64,
    rank: usize,
    level: Option<u64>,
    mut wanted: Split<'_>,
) -> Result<Node> {
    let width = file.widths.address;
    let head_len = 8 + 2 * u64::from(width);
    let head = file.read(address, head_len)?;
    let mut fields = Fields::new(REGION, address, &head);
    fields.magic(b"TREE\x01")?;
    let (found, entries) = (fields.uint(1)?, fields.uint(2)?);
    if level.is_some_and(|level| level != found) {
        return Err(fields.corrupt(format!("level {found} is not below that of the parent")));
    }
    let key_len = 8 + 8 * (rank as u64 + 1);
    let len = head_len + entries * (key_len + u64::from(width)) + key_len;
    let bytes = file.read(address, len)?;
    let mut fields = Fields::new(REGION, address, &bytes);
    fields.take(head_len as usize)?;
    let (mut children, mut leaves) = (vec![], vec![]);
    let mut key = Key::read(&mut fields, rank)?;
    for _ in 0..entries {
        let child = fields.uint(width)?;
        let next = Key::read(&mut fields, rank)?;
        wanted.below(&key.first);
        if found > 0 {
            let range = wanted.below(&next.first);
            if !range.is_empty() {
                children.push((child, range));
            }
        } else if let Some(number) = wanted.take(&key.first) {
            let (size, skipped) = (Some(key.size), key.skipped);
            leaves.push((number, Entry { address: child, size, skipped }));
        }
        if wanted.is_done() {
            break;
        }
        key = next;
    }
    Ok(if found > 0 { Node::Inner(children, found) } else { Node::Leaf(leaves) })
}

struct Key {
    size: u64,
    skipped: u32,
    first: Vec<u64>,
}

impl Key {
    fn read(fields: &mut Fields<'_>, rank: usize) -> Result<Self> {
        let (size, skipped) = (fields.uint(4)?, fields.uint(4)? as u32);
        let first = (0..rank).map(|_| fields.uint(8)).collect::<Result<_>>()?;
        fields.take(8)?;
        Ok(Self { size, skipped, first })
    }
}
