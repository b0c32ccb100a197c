//! The least and the greatest coordinate of cells and of stored rectangles, to compare the two.
//!
//! ```text
//!   cells of a tile   5  5  9     5 to 9
//!   R-tree                        5 to 9     the same: a larger rectangle makes scans read too much,
//!   domain                        1 to 10    a smaller one loses cells
//! ```

use std::fmt;

use crate::bytes::{
    ArraySchema, CoordinateRange, Coordinates, DimensionDomain, DimensionSchema, RTree,
};
use crate::verify::stored_tile::number_type;
use gridfusion_core::Result;
use gridfusion_core::format::{ElementType, ZoneBound, bound};
use gridfusion_core::grid::AxisSelection;
use gridfusion_core::tile::Tile;
use gridfusion_core::verify::{CellStatistics, is_same, range_text};

/// The least and the greatest of some coordinates of one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ends {
    /// Of numbers, dates or times, as stored.
    Numbers(ElementType, (ZoneBound, ZoneBound)),
    /// Of texts, which compare byte by byte.
    Texts(Vec<u8>, Vec<u8>),
}

/// The ends of the coordinates of a tile.
#[derive(Debug)]
pub(super) struct CellEnds {
    /// `None` if all coordinates are NaN.
    pub(super) ends: Option<Ends>,
    /// Whether a coordinate is NaN. Writers accept NaN, but neither order nor rectangles have a place for it.
    pub(super) has_nan: bool,
    /// Whether all texts are ASCII. Others have no reliable order, because writers compare signed bytes.
    pub(super) is_ascii: bool,
}

impl CellEnds {
    /// Returns the ends of the decoded coordinates of a dimension.
    pub(super) fn try_new(dimension: &DimensionSchema, tile: &Tile) -> Result<Self> {
        let is_text = dimension.domain == DimensionDomain::Text;
        match number_type(dimension.datatype).filter(|_| !is_text) {
            Some(element) => {
                let found = CellStatistics::new(element, tile.bytes(), None, None);
                let ends = found.bounds.map(|bounds| Ends::Numbers(element, bounds));
                Ok(Self { ends, has_nan: found.nulls > 0, is_ascii: true })
            }
            None => Self::from_texts(tile),
        }
    }

    fn from_texts(tile: &Tile) -> Result<Self> {
        let (spans, content) = tile.spans(&[AxisSelection::all(tile.cells() as u64)])?;
        let ranges = spans.iter().map(|span| span.start as usize..span.end as usize);
        let texts: Vec<&[u8]> =
            ranges.map(|range| content.get(range).unwrap_or_default()).collect();
        let ends = texts.iter().min().zip(texts.iter().max());
        let ends = ends.map(|(least, greatest)| Ends::Texts(least.to_vec(), greatest.to_vec()));
        Ok(Self { ends, has_nan: false, is_ascii: texts.iter().all(|text| text.is_ascii()) })
    }
}

impl Ends {
    /// Returns the ends of rectangle number `place` on an axis; `None` if there is no such rectangle.
    pub(super) fn stored(
        dimension: &DimensionSchema,
        rectangles: &RTree,
        axis: usize,
        place: usize,
    ) -> Option<Self> {
        match (rectangles.least.get(axis)?, rectangles.greatest.get(axis)?) {
            (Coordinates::Fixed(least), Coordinates::Fixed(greatest)) => {
                let element = number_type(dimension.datatype)?;
                // Rectangles extend small integers to eight bytes, and statistics pad them with zeros.
                let end = |all: &[ZoneBound]| Some(bound(all.get(place)?.get(..width(element))?));
                Some(Self::Numbers(element, (end(least)?, end(greatest)?)))
            }
            (Coordinates::Text(least), Coordinates::Text(greatest)) => {
                Some(Self::Texts(least.get(place)?.clone(), greatest.get(place)?.clone()))
            }
            _ => None,
        }
    }

    /// Whether an end is NaN.
    pub(super) fn has_nan(&self) -> bool {
        match self {
            Self::Numbers(element, ends) => {
                [&ends.0, &ends.1].into_iter().any(|end| rank(*element, end).is_none())
            }
            Self::Texts(..) => false,
        }
    }

    /// Whether both ends are the same coordinates; both zeros of floats are.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Numbers(element, mine), Self::Numbers(_, theirs)) => {
                is_same(*element, &mine.0, &theirs.0) && is_same(*element, &mine.1, &theirs.1)
            }
            _ => self == other,
        }
    }

    /// Whether both ends lie between those of `outer`.
    pub(super) fn is_within(&self, outer: &Self) -> bool {
        match (self, outer) {
            (Self::Numbers(element, (least, greatest)), Self::Numbers(_, outer)) => {
                element.is_within(least, outer) && element.is_within(greatest, outer)
            }
            (Self::Texts(least, greatest), Self::Texts(outer_least, outer_greatest)) => {
                outer_least <= least && greatest <= outer_greatest
            }
            _ => false,
        }
    }

    /// Returns the ends of the coordinates of both. NaN is less than all numbers.
    #[must_use]
    pub(super) fn around(self, other: Self) -> Self {
        match (self, other) {
            (Self::Numbers(element, mine), Self::Numbers(_, theirs)) => {
                let by_rank = |end: &ZoneBound| rank(element, end);
                let least = [mine.0, theirs.0].into_iter().min_by_key(by_rank);
                let greatest = [mine.1, theirs.1].into_iter().max_by_key(by_rank);
                let ends = (least.unwrap_or(mine.0), greatest.unwrap_or(mine.1));
                Self::Numbers(element, ends)
            }
            (Self::Texts(least, greatest), Self::Texts(other_least, other_greatest)) => {
                Self::Texts(least.min(other_least), greatest.max(other_greatest))
            }
            // Ends of one dimension have one type.
            (mine, _) => mine,
        }
    }
}

fn width(element: ElementType) -> usize {
    element.size() as usize
}

fn rank(element: ElementType, end: &ZoneBound) -> Option<i128> {
    element.rank(end.get(..width(element))?)
}

/// Returns the domain of an array as one rectangle. Its ends mean nothing for dimensions of text.
pub(super) fn domain(schema: &ArraySchema) -> RTree {
    let range = |dimension: &DimensionSchema| match dimension.domain {
        DimensionDomain::Integer { low, high, .. } => CoordinateRange::Integer(low, high),
        DimensionDomain::Float { low, high, .. } => CoordinateRange::Float(low, high),
        DimensionDomain::Text => CoordinateRange::Text(vec![], vec![]),
    };
    let ranges: Vec<CoordinateRange> = schema.dimensions.iter().map(range).collect();
    RTree::from_ranges(schema, &ranges)
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers(element, ends) => f.write_str(&range_text(*element, &Some(*ends))),
            Self::Texts(least, greatest) => {
                let (least, greatest) = (least.escape_ascii(), greatest.escape_ascii());
                write!(f, "texts from \"{least}\" to \"{greatest}\"")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(least: f32, greatest: f32) -> Ends {
        let [least, greatest] = [least, greatest].map(|end| bound(&end.to_le_bytes()));
        Ends::Numbers(ElementType::F32, (least, greatest))
    }

    fn texts(least: &str, greatest: &str) -> Ends {
        Ends::Texts(least.into(), greatest.into())
    }

    #[test]
    fn ends_are_compared_by_their_values() {
        assert!(numbers(-0.0, 2.0).is_same(&numbers(0.0, 2.0)));
        assert!(!numbers(-1.0, 2.0).is_same(&numbers(0.0, 2.0)));
        assert!(numbers(-1.0, 2.0).is_within(&numbers(-1.0, 3.0)));
        assert!(!numbers(-1.0, 2.0).is_within(&numbers(-1.0, 1.0)));
        assert!(numbers(f32::NAN, 1.0).has_nan() && !numbers(0.0, 1.0).has_nan());
        assert!(
            texts("", "b").is_within(&texts("", "b")) && !texts("", "c").is_within(&texts("", "b"))
        );
        assert!(!texts("a", "b").has_nan());
    }

    #[test]
    fn the_box_of_two_has_the_outer_ends() {
        assert_eq!(numbers(-1.0, 2.0).around(numbers(-5.0, 1.0)), numbers(-5.0, 2.0));
        assert_eq!(texts("a", "c").around(texts("", "b")), texts("", "c"));
        assert_eq!(numbers(-1.0, 2.5).to_string(), "values from -1.0 to 2.5");
        assert_eq!(texts("a\n", "c").to_string(), "texts from \"a\\n\" to \"c\"");
    }
}
