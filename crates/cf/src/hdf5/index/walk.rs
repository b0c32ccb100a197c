//! A walk through a whole index, to verify it.
//!
//! A query reads only the parts of an index that it needs. The walk reads all of them, level by level, and compares the
//! counts of the index with what it finds. So each chunk that it returns can be looked up as a query does.

use std::collections::VecDeque;

use super::super::file_bytes::{Fields, FileBytes};
use super::array::{ChunkArray, Elements, PageRun};
use super::chunk_index::{ChunkIndex, IndexKind};
use super::extensible_array::ExtensibleArray;
use super::fixed_array::FixedArray;
use super::lookup::placed;
use super::numbering::Numbering;
use super::{Entry, btree1, btree2};
use gridfusion_core::{Error, Result};

/// The parts that are visited together.
const PARTS_AT_ONCE: usize = 64;

/// A chunk of an index: its coordinates, and its entry.
pub(in crate::hdf5) type Indexed = (Vec<u64>, Entry);

/// A walk through an index. It reads from known blocks, and goes on when those that it missed are known.
#[derive(Debug, Default)]
pub(in crate::hdf5) struct Walk {
    kind: Option<WalkKind>,
    pending: VecDeque<IndexPart>,
    /// The node of a version 1 B-tree that was visited last.
    last: Option<Neighbour>,
    /// The number of chunks so far.
    count: u64,
}

/// The facts of an index as a whole.
#[derive(Debug)]
enum WalkKind {
    /// An index without counts of all chunks.
    Uncounted,
    Tree2(btree2::Tree),
    Array(Array),
}

#[derive(Debug)]
struct Array {
    elements: Elements,
    numbering: Numbering,
    /// The number of the last element that was ever written, and 1.
    end: u64,
}

/// A part of an index that is read as one.
#[derive(Debug)]
enum IndexPart {
    /// A chunk whose place follows from its coordinates.
    Chunk(Vec<u64>),
    Node1(btree1::NodeAt),
    Node2(btree2::NodeAt),
    Run(PageRun),
}

/// The content of a part: chunks, and the parts below.
#[derive(Debug, Default)]
struct Content {
    chunks: Vec<Indexed>,
    below: Vec<IndexPart>,
    node: Option<Neighbour>,
}

/// A node of a version 1 B-tree among those of its level.
#[derive(Debug)]
struct Neighbour {
    address: u64,
    level: u64,
    siblings: [u64; 2],
}

impl Walk {
    /// Returns the chunks of the next parts of the index; `None` after the last ones.
    ///
    /// # Errors
    /// `Corrupt` if the index contradicts itself. After a miss, the result does not count, and the next call visits the
    /// same parts.
    pub(in crate::hdf5) fn next(
        &mut self,
        file: &FileBytes,
        index: &ChunkIndex,
    ) -> Result<Option<Vec<Indexed>>> {
        if file.widths.is_undefined(index.address) {
            return Ok(None);
        }
        if self.kind.is_none() {
            let (kind, parts) = start(file, index)?;
            if file.blocks.has_missed() {
                return Ok(None);
            }
            (self.kind, self.pending) = (Some(kind), parts.into());
        }
        let parts = self.pending.iter().take(PARTS_AT_ONCE);
        // All parts are read before any error counts, so that all missing blocks are requested at once.
        let read: Vec<_> = parts.map(|part| self.read(file, index, part)).collect();
        if file.blocks.has_missed() {
            return Ok(None);
        }
        if read.is_empty() {
            return self.finish(index).map(|()| None);
        }
        self.pending.drain(..read.len());
        let mut chunks = vec![];
        for content in read {
            let content = content?;
            content.node.map_or(Ok(()), |node| self.step_to(file, node))?;
            self.pending.extend(content.below);
            chunks.extend(content.chunks);
        }
        self.count += chunks.len() as u64;
        Ok(Some(chunks))
    }

    fn read(&self, file: &FileBytes, index: &ChunkIndex, part: &IndexPart) -> Result<Content> {
        match (part, &self.kind) {
            (IndexPart::Chunk(chunk), _) => {
                let chunks = vec![(chunk.clone(), placed(index, chunk)?)];
                Ok(Content { chunks, ..Content::default() })
            }
            (IndexPart::Node1(at), _) => {
                let node = btree1::Node::read(file, at, index.chunk_shape.len())?;
                let chunk = |(first, entry)| Ok((chunk_at(index, first)?, entry));
                let chunks = node.chunks().map(chunk).collect::<Result<_>>()?;
                let below = node.children().map(IndexPart::Node1).collect();
                let (address, level, siblings) = (at.address, node.level, node.siblings);
                Ok(Content { chunks, below, node: Some(Neighbour { address, level, siblings }) })
            }
            (IndexPart::Node2(at), Some(WalkKind::Tree2(tree))) => {
                let node = tree.node(file, at)?;
                let below = node.children.into_iter().map(IndexPart::Node2).collect();
                Ok(Content { chunks: node.records, below, node: None })
            }
            (IndexPart::Run(run), Some(WalkKind::Array(array))) => {
                let elements = run.read(file, array.elements)?;
                let elements = (run.first..).zip(elements);
                let chunks = elements.filter_map(|(number, entry)| {
                    let entry = entry?;
                    Some(array.chunk(index, number).map(|chunk| (chunk, entry)))
                });
                Ok(Content { chunks: chunks.collect::<Result<_>>()?, ..Content::default() })
            }
            _ => Err(Error::internal("a part of another index")),
        }
    }

    /// Compares a node with the one before it. An address of nothing is accepted, because no search uses it.
    fn step_to(&mut self, file: &FileBytes, node: Neighbour) -> Result<()> {
        let last = self.last.take().filter(|last| last.level == node.level);
        let left = node.siblings[0];
        if let Some(last) = last {
            let right = last.siblings[1];
            let is_other =
                |found: u64, expected| !file.widths.is_undefined(found) && found != expected;
            if is_other(left, last.address) || is_other(right, node.address) {
                let message = format!(
                    "neighbours at {left} and {right}, but the parent has {} and {}",
                    last.address, node.address
                );
                return Err(Fields::new("B-tree of chunks", node.address, &[]).corrupt(message));
            }
        }
        self.last = Some(node);
        Ok(())
    }

    /// Compares the counts of the whole index.
    fn finish(&self, index: &ChunkIndex) -> Result<()> {
        match &self.kind {
            Some(WalkKind::Tree2(tree)) if tree.records != self.count => {
                let message = format!("{} chunks, but it counts {}", self.count, tree.records);
                Err(Error::corrupt("B-tree of chunks", index.address, message))
            }
            _ => Ok(()),
        }
    }
}

impl Array {
    /// Returns the chunk of an element that has an address.
    fn chunk(&self, index: &ChunkIndex, number: u64) -> Result<Vec<u64>> {
        let chunk = self.numbering.chunk(number).filter(|_| number < self.end);
        chunk.ok_or_else(|| {
            let message = format!("element {number} is beyond the last one that was written");
            Error::corrupt("chunk index", index.address, message)
        })
    }
}

/// Returns the facts of an index, and its first parts.
fn start(file: &FileBytes, index: &ChunkIndex) -> Result<(WalkKind, Vec<IndexPart>)> {
    let numbering = Numbering::new(index);
    Ok(match index.kind {
        IndexKind::Single { .. } => {
            (WalkKind::Uncounted, vec![IndexPart::Chunk(vec![0; index.chunk_shape.len()])])
        }
        IndexKind::Implicit => {
            // If the last chunk is in the file, all are.
            let last = numbering.chunks().and_then(|all| numbering.chunk(all.checked_sub(1)?));
            (WalkKind::Uncounted, last.into_iter().map(IndexPart::Chunk).collect())
        }
        IndexKind::BTree1 => {
            (WalkKind::Uncounted, vec![IndexPart::Node1(btree1::NodeAt::root(index))])
        }
        IndexKind::BTree2 => {
            let (tree, root) = btree2::Tree::read(file, index)?.unzip();
            let kind = tree.map_or(WalkKind::Uncounted, WalkKind::Tree2);
            (kind, root.into_iter().map(IndexPart::Node2).collect())
        }
        IndexKind::FixedArray => match FixedArray::read(file, index)? {
            Some(mut array) => {
                let (elements, runs) = (array.elements(), array.runs(file)?);
                let array = Array { elements, numbering, end: u64::MAX };
                (WalkKind::Array(array), runs.into_iter().map(IndexPart::Run).collect())
            }
            None => (WalkKind::Uncounted, vec![]),
        },
        IndexKind::ExtensibleArray => match ExtensibleArray::read(file, index)? {
            Some(mut array) => {
                let (elements, end, runs) = (array.elements(), array.end(), array.runs(file)?);
                let array = Array { elements, numbering, end };
                (WalkKind::Array(array), runs.into_iter().map(IndexPart::Run).collect())
            }
            None => (WalkKind::Uncounted, vec![]),
        },
    })
}

/// Returns the coordinates of the chunk with this first element.
fn chunk_at(index: &ChunkIndex, first: &[u64]) -> Result<Vec<u64>> {
    let axes = first.iter().zip(&index.chunk_shape);
    let chunk =
        axes.map(|(at, len)| at.checked_rem(*len).filter(|&rest| rest == 0).map(|_| at / len));
    chunk.collect::<Option<_>>().ok_or_else(|| {
        let message = format!("{first:?} begins no chunk of shape {:?}", index.chunk_shape);
        Error::corrupt("chunk index", index.address, message)
    })
}
