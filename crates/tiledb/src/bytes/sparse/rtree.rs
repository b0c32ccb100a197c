//! The R-tree of a sparse fragment: a rectangle of coordinates per tile, and rectangles around groups of them.
//!
//! ```text
//!   u32 fanout, u32 levels, then each level from the root: u64 count, and as many rectangles
//!
//!   level 0              ┌──────────────┐            each rectangle is the box around
//!   level 1        ┌─────┴──┐    ┌──────┴─┐          the next `fanout` ones below it
//!   level 2       0 1 2 … 9      10 11 … 15          the last level: tile by tile
//! ```
//!
//! Queries keep only the last level. Comparing all tiles with a box is one vectorised pass, which is faster than
//! walking the tree.

use crate::bytes::datatype::Datatype;
use crate::bytes::filter::EncryptionKey;
use crate::bytes::fragments::Fragment;
use crate::bytes::generic_tile;
use crate::bytes::schema::{ArraySchema, CoordinateRange, read_ranges};
use gridfusion_core::format::wire::Reader;
use gridfusion_core::format::{ZoneBound, bound};
use gridfusion_core::{Error, Result};

/// The rectangles of coordinates of the tiles of one fragment, or of several fragments.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RTree {
    /// The number of levels; 0 if the rectangles do not come from a stored tree.
    pub levels: u32,
    /// Per dimension, the least coordinate of each tile.
    pub least: Vec<Coordinates>,
    /// Per dimension, the greatest coordinate of each tile.
    pub greatest: Vec<Coordinates>,
}

/// Coordinates of one dimension.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Coordinates {
    /// Numbers, dates and times, in the little-endian bytes of their type.
    Fixed(Vec<ZoneBound>),
    /// Texts, as bytes.
    Text(Vec<Vec<u8>>),
}

pub(super) const REGION: &str = "R-tree";

impl Coordinates {
    fn push(&mut self, fixed: Option<ZoneBound>, text: Option<Vec<u8>>) {
        match self {
            Self::Fixed(all) => all.extend(fixed),
            Self::Text(all) => all.extend(text),
        }
    }

    /// Returns the number of coordinates.
    pub fn len(&self) -> usize {
        match self {
            Self::Fixed(all) => all.len(),
            Self::Text(all) => all.len(),
        }
    }

    /// Whether there are no coordinates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl RTree {
    /// Returns rectangles of an array of `schema`, without any yet.
    fn empty(schema: &ArraySchema) -> Self {
        use crate::bytes::schema::DimensionDomain::Text;
        let of = |domain: &_| match domain {
            Text => Coordinates::Text(vec![]),
            _ => Coordinates::Fixed(vec![]),
        };
        let none: Vec<Coordinates> = schema.dimensions.iter().map(|at| of(&at.domain)).collect();
        Self { levels: 0, least: none.clone(), greatest: none }
    }

    /// Returns one rectangle per fragment: its non-empty domain.
    pub fn from_domains<'a>(
        schema: &ArraySchema,
        fragments: impl IntoIterator<Item = &'a Fragment>,
    ) -> Self {
        let mut rectangles = Self::empty(schema);
        for fragment in fragments {
            rectangles.push(schema, fragment.domain.clone());
        }
        rectangles
    }

    /// Returns one rectangle: a range per dimension.
    pub fn from_ranges(schema: &ArraySchema, ranges: &[CoordinateRange]) -> Self {
        let mut rectangles = Self::empty(schema);
        rectangles.push(schema, ranges.to_vec());
        rectangles
    }

    fn push(&mut self, schema: &ArraySchema, ranges: Vec<CoordinateRange>) {
        let lists = self.least.iter_mut().zip(&mut self.greatest);
        for ((range, (least, greatest)), dimension) in
            ranges.into_iter().zip(lists).zip(&schema.dimensions)
        {
            let [low, high] = ends(range, dimension.datatype);
            least.push(low.0, low.1);
            greatest.push(high.0, high.1);
        }
    }

    /// Parses the block of a fragment's R-tree, which begins at byte `offset` of the metadata file.
    ///
    /// # Errors
    /// `Corrupt` if the last level has not one rectangle per tile, or a rectangle ends before it begins.
    pub(in crate::bytes) fn parse(
        fragment: &Fragment,
        offset: u64,
        block: &[u8],
        key: Option<&EncryptionKey>,
    ) -> Result<Self> {
        let content = generic_tile::decode(REGION, offset, block, key)?;
        Self::parse_content(&fragment.schema, fragment.tiles, &content)
    }

    /// Parses the content of the block of a fragment with this many tiles.
    pub(in crate::bytes) fn parse_content(
        schema: &ArraySchema,
        tiles: u64,
        content: &[u8],
    ) -> Result<Self> {
        let (_, mut levels) = Self::parse_levels(schema, tiles, content)?;
        Ok(levels.pop().unwrap_or_else(|| Self::empty(schema)))
    }

    /// Parses the number of rectangles below each one, and the rectangles of all levels, from the root on.
    pub(super) fn parse_levels(
        schema: &ArraySchema,
        tiles: u64,
        content: &[u8],
    ) -> Result<(u32, Vec<Self>)> {
        let mut reader = Reader::new(REGION, 0, content);
        let fanout = reader.u32()?;
        let depth = reader.u32()?;
        let mut levels: Vec<Self> = vec![];
        for _ in 0..depth {
            let mut level = Self { levels: depth, ..Self::empty(schema) };
            let count = reader.u64()?;
            if count == 0 {
                return Err(reader.corrupt("a level without rectangles"));
            }
            // Each rectangle takes bytes, so a wrong count fails where the bytes end.
            for _ in 0..count {
                level.push(schema, read_ranges(&schema.dimensions, &mut reader)?);
            }
            levels.push(level);
        }
        let leaves = levels.last().map_or(0, Self::len) as u64;
        if leaves != tiles {
            return Err(reader.corrupt(format!("{leaves} rectangles, expected {tiles}")));
        }
        reader.end()?;
        Ok((fanout, levels))
    }

    /// Returns the number of rectangles.
    pub fn len(&self) -> usize {
        self.least.first().map_or(0, Coordinates::len)
    }

    /// Whether there are no rectangles.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An end of a range: bytes of fixed size, or those of a text.
type End = (Option<ZoneBound>, Option<Vec<u8>>);

/// Returns both ends of a range in the bytes of `datatype`.
fn ends(range: CoordinateRange, datatype: Datatype) -> [End; 2] {
    match range {
        // The low bytes of a number in two's complement are the same number in a narrower type.
        CoordinateRange::Integer(low, high) => {
            [low, high].map(|end| (Some(bound(&end.to_le_bytes()[..8])), None))
        }
        CoordinateRange::Float(low, high) => [low, high].map(|end| match datatype {
            Datatype::Float32 => (Some(bound(&(end as f32).to_le_bytes())), None),
            _ => (Some(end.to_le_bytes()), None),
        }),
        CoordinateRange::Text(low, high) => [low, high].map(|end| (None, Some(end))),
    }
}

/// The error of a fragment whose rectangles are needed before they were read.
pub(in crate::bytes) fn unread() -> Error {
    Error::internal("an R-tree that was not read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing::{SchemaBytes, generic_tile};

    fn schema() -> ArraySchema {
        ArraySchema::parse(&generic_tile(&SchemaBytes::dense_2d().content()), None).unwrap()
    }

    fn tree(levels: &[&[[i32; 4]]]) -> Vec<u8> {
        let mut bytes = [10_u32.to_le_bytes(), (levels.len() as u32).to_le_bytes()].concat();
        for level in levels {
            bytes.extend((level.len() as u64).to_le_bytes());
            bytes.extend(level.iter().flatten().flat_map(|end| end.to_le_bytes()));
        }
        bytes
    }

    #[test]
    fn the_last_level_has_a_rectangle_per_tile() {
        let bytes = tree(&[&[[1, 5, 1, 7]], &[[1, 2, 1, 7], [3, 5, 2, 6]]]);
        let parsed = RTree::parse_content(&schema(), 2, &bytes).unwrap();
        assert_eq!((parsed.levels, parsed.len()), (2, 2));
        let low = |number: i32| bound(&i64::from(number).to_le_bytes());
        assert_eq!(parsed.least[1], Coordinates::Fixed(vec![low(1), low(2)]));
        assert_eq!(parsed.greatest[0], Coordinates::Fixed(vec![low(2), low(5)]));
        for tiles in [0, 1, 3] {
            assert!(RTree::parse_content(&schema(), tiles, &bytes).is_err());
        }
        for len in 0..bytes.len() {
            assert!(RTree::parse_content(&schema(), 2, &bytes[..len]).is_err());
        }
        let backwards = tree(&[&[[1, 5, 1, 7]], &[[2, 1, 1, 7], [3, 5, 2, 6]]]);
        assert!(RTree::parse_content(&schema(), 2, &backwards).is_err());
    }

    #[test]
    fn counts_of_hostile_trees_take_no_memory() {
        let mut bytes = tree(&[&[[1, 5, 1, 7]]]);
        bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(RTree::parse_content(&schema(), u64::MAX, &bytes).is_err());
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(RTree::parse_content(&schema(), 1, &bytes).is_err());
    }
}
