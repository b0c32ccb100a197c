//! Reads the blocks of sparse fragments that queries need: R-trees, tile indexes, applied delete conditions.
//!
//! ```text
//!   Start ──▶ the blocks that were not read yet, of all fragments at once ──▶ Done
//! ```
//!
//! The array keeps what is read, so a second query over the same fragments makes no request.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::rtree::{RTree, unread};
use crate::bytes::array::TileDbArray;
use crate::bytes::fragments::{Fragment, TileIndex, block_locations};
use crate::bytes::generic_tile;
use crate::bytes::text::text64;
use crate::bytes::tiles::field_of;
use gridfusion_core::format::wire::Reader;
use gridfusion_core::format::{Layer, Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// Blocks of a fragment's metadata; each names the fragment by its number in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Block {
    /// The R-tree. A fragment of one tile needs none, because its domain is the tile's rectangle.
    RTree(usize),
    /// The tile index of a field.
    Tiles(usize, usize),
    /// The delete conditions that consolidation has applied to the fragment.
    AppliedConditions(usize),
}

/// A machine that reads blocks, and keeps them in the array. Made by [`TileDbArray::read_blocks`].
#[derive(Debug)]
pub struct ReadBlocks {
    array: Arc<TileDbArray>,
    asked: Vec<(Block, Vec<Location>)>,
}

impl TileDbArray {
    /// Returns a machine that reads those of `blocks` that were not read yet.
    ///
    /// # Errors
    /// `Internal` for dense arrays, and `Corrupt` if a footer gives an impossible offset.
    pub fn read_blocks(
        self: &Arc<Self>,
        blocks: impl IntoIterator<Item = Block>,
    ) -> Result<ReadBlocks> {
        self.check_sparse()?;
        let mut asked = vec![];
        for block in blocks {
            if !self.knows(block) {
                asked.push((block, self.block_locations(block)?));
            }
        }
        Ok(ReadBlocks { array: Arc::clone(self), asked })
    }

    /// Whether a block was read before, or need not be read.
    fn knows(&self, block: Block) -> bool {
        let is_one_tile = |at: usize| self.fragments.get(at).is_some_and(|it| it.tiles <= 1);
        match block {
            Block::RTree(at) => {
                is_one_tile(at) || self.rtree(at).is_some_and(|it| it.get().is_some())
            }
            Block::Tiles(at, field) => self.tile_index(at, field).is_some(),
            Block::AppliedConditions(at) => self.processed(at).is_some_and(|it| it.get().is_some()),
        }
    }

    /// Returns the locations that a block is parsed from; none if the fragment's format lacks the block.
    pub(super) fn block_locations(&self, block: Block) -> Result<Vec<Location>> {
        let (fragment, offset) = match block {
            Block::Tiles(at, field) => return block_locations(self.fragment(at)?, field),
            Block::RTree(at) => (self.fragment(at)?, Some(self.fragment(at)?.footer.rtree)),
            Block::AppliedConditions(at) => {
                (self.fragment(at)?, self.fragment(at)?.footer.processed_conditions)
            }
        };
        let Some(offset) = offset else { return Ok(vec![]) };
        let object: Arc<str> = fragment.metadata_object().into();
        let range = fragment.footer.block(offset).map_err(|error| error.about(&object))?;
        Ok(vec![Location::new(object, range)])
    }

    /// Returns the rectangles of the tiles of a fragment, whose block was read.
    ///
    /// # Errors
    /// `Internal` if the block was not read.
    pub fn tile_rectangles(&self, fragment: usize) -> Result<Arc<RTree>> {
        let of = self.fragment(fragment)?;
        if of.tiles <= 1 {
            let tiles = if of.tiles == 0 { None } else { Some(of) };
            return Ok(Arc::new(RTree::from_domains(&self.schema, tiles)));
        }
        let read = self.rtree(fragment).and_then(|rtree| rtree.get());
        read.cloned().ok_or_else(unread)
    }

    /// Returns the location of a tile of one field of a sparse fragment, whose tile index was read.
    ///
    /// # Errors
    /// `Corrupt` if a file is missing or too short; `Internal` if the index was not read.
    pub fn sparse_tile(&self, fragment: usize, field: usize, tile: u64) -> Result<Layer> {
        let index = self.tile_index(fragment, field);
        let index = index.ok_or_else(|| Error::internal("a tile index that was not read"))?;
        let (values, content, validity) = index.payloads(tile)?;
        Ok(Layer::whole(values).with_content(content).with_validity(validity))
    }

    /// Returns the field of a fragment that holds an attribute of the array; `None` if the fragment was
    /// written without it.
    ///
    /// # Errors
    /// `Unsupported` if the fragment's values have another type.
    pub fn field_of(&self, attribute: usize, fragment: usize) -> Result<Option<usize>> {
        field_of(&self.schema, attribute, self.fragment(fragment)?)
    }

    /// Returns the markers of the delete conditions that consolidation has applied to a fragment.
    ///
    /// # Errors
    /// `Internal` if the block was not read.
    pub fn applied_conditions(&self, fragment: usize) -> Result<Arc<HashSet<String>>> {
        let read = self.processed(fragment).and_then(|it| it.get()).cloned();
        read.ok_or_else(|| Error::internal("conditions that were not read"))
    }
}

impl ReadBlocks {
    /// Whether there is nothing to read.
    pub fn is_done(&self) -> bool {
        self.asked.is_empty()
    }

    /// Parses the replies, and keeps them in the array.
    fn keep(&mut self, blocks: &[Bytes]) -> Result<()> {
        let mut rest = blocks;
        for (block, locations) in std::mem::take(&mut self.asked) {
            let (own, others) = rest
                .split_at_checked(locations.len())
                .ok_or_else(|| Error::internal("blocks were requested and not read"))?;
            rest = others;
            self.keep_block(block, &locations, own)?;
        }
        Ok(())
    }

    fn keep_block(&self, block: Block, locations: &[Location], bytes: &[Bytes]) -> Result<()> {
        let (array, key) = (&self.array, self.array.options.key.as_ref());
        let single = locations.first().map(Location::start).zip(bytes.first());
        // Another query may have set a block first; both are equal.
        match block {
            Block::Tiles(at, field) => {
                let index = TileIndex::parse(array.fragment(at)?, field, locations, bytes, key)?;
                array.keep_tile_index(at, field, index);
            }
            Block::RTree(at) => {
                let fragment = array.fragment(at)?;
                let (offset, bytes) = single.ok_or_else(unread)?;
                let rtree = RTree::parse(fragment, offset, bytes, key)
                    .map_err(|error| error.about(&fragment.metadata_object()))?;
                if let Some(place) = array.rtree(at) {
                    let _ = place.set(Arc::new(rtree));
                }
            }
            Block::AppliedConditions(at) => {
                let fragment = array.fragment(at)?;
                let markers = match single {
                    Some((offset, bytes)) => markers(fragment, offset, bytes, key)?,
                    // Before format 16, no condition could be applied.
                    None => HashSet::new(),
                };
                if let Some(place) = array.processed(at) {
                    let _ = place.set(Arc::new(markers));
                }
            }
        }
        Ok(())
    }
}

/// Parses the block of applied conditions: a count, and the name of each condition's file.
fn markers(
    fragment: &Fragment,
    offset: u64,
    block: &[u8],
    key: Option<&crate::bytes::EncryptionKey>,
) -> Result<HashSet<String>> {
    const REGION: &str = "applied delete conditions";
    let parse = || {
        let content = generic_tile::decode(REGION, offset, block, key)?;
        let mut reader = Reader::new(REGION, 0, &content);
        let mut markers = HashSet::new();
        for _ in 0..reader.u64()? {
            markers.insert(text64(&mut reader, "the condition's name")?);
        }
        reader.end()?;
        Ok(markers)
    };
    parse().map_err(|error: Error| error.about(&fragment.metadata_object()))
}

impl Machine for ReadBlocks {
    type Output = ();

    fn subject(&self) -> &'static str {
        "fragment metadata"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<()>> {
        match replies {
            Replies::Start => {}
            replies => self.keep(&replies.into_bytes())?,
        }
        // Fragments before format 16 have no block of conditions: nothing is requested for these.
        if self.asked.iter().all(|(_, locations)| locations.is_empty()) {
            self.keep(&[])?;
            return Ok(Step::Done(()));
        }
        let locations = self.asked.iter().flat_map(|(_, locations)| locations.iter().cloned());
        Ok(Step::Read(locations.collect()))
    }
}
