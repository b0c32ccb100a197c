//! Access to all levels of the R-tree of a fragment, for verification.
//!
//! Queries keep only the last level, and read no R-tree of a fragment with one tile.

use std::sync::Arc;

use bytes::Bytes;

use super::blocks::Block;
use super::rtree::{REGION, RTree, unread};
use crate::bytes::array::TileDbArray;
use crate::bytes::generic_tile;
use gridfusion_core::Result;
use gridfusion_core::format::{Location, Machine, Replies, Step};

/// The R-tree of a fragment, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRTree {
    /// The number of rectangles in the next level that a rectangle surrounds. The last one may surround fewer.
    pub fanout: u32,
    /// The rectangles of each level, from the root on. The last level has one per tile.
    pub levels: Vec<RTree>,
}

/// A machine that reads the R-tree of a fragment. Made by [`TileDbArray::read_rtree`].
#[derive(Debug)]
pub struct ReadRTree {
    array: Arc<TileDbArray>,
    /// The number of the fragment in the array.
    fragment: usize,
    /// The block of the R-tree.
    locations: Vec<Location>,
}

impl TileDbArray {
    /// Makes a machine that reads the R-tree of a fragment, which must have tiles. The array does not keep
    /// the result.
    ///
    /// # Errors
    /// `Internal` for dense arrays, `Usage` if there is no such fragment, and `Corrupt` if the footer gives an
    /// impossible offset.
    pub fn read_rtree(self: &Arc<Self>, fragment: usize) -> Result<ReadRTree> {
        self.check_sparse()?;
        let locations = self.block_locations(Block::RTree(fragment))?;
        Ok(ReadRTree { array: Arc::clone(self), fragment, locations })
    }
}

impl ReadRTree {
    fn finish(&self, blocks: &[Bytes]) -> Result<StoredRTree> {
        let fragment = self.array.fragment(self.fragment)?;
        let (at, block) = self.locations.first().zip(blocks.first()).ok_or_else(unread)?;
        let parse = || {
            let key = self.array.options.key.as_ref();
            let content = generic_tile::decode(REGION, at.start(), block, key)?;
            RTree::parse_levels(&fragment.schema, fragment.tiles, &content)
        };
        let (fanout, levels) = parse().map_err(|error| error.about(&fragment.metadata_object()))?;
        Ok(StoredRTree { fanout, levels })
    }
}

impl Machine for ReadRTree {
    type Output = StoredRTree;

    fn subject(&self) -> &'static str {
        "R-tree"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<StoredRTree>> {
        match replies {
            Replies::Start => Ok(Step::Read(self.locations.clone())),
            replies => self.finish(&replies.into_bytes()).map(Step::Done),
        }
    }
}
