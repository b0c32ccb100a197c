//! The check of a whole R-tree, which reads no cells.

use super::ends::Ends;
use crate::bytes::{DimensionSchema, Fragment, RTree, StoredRTree};
use gridfusion_core::verify::Finding;

/// Returns the faults of the R-tree of a fragment: rectangles that do not surround those below them, and a
/// domain of the fragment that is not the box around all tiles.
pub(in crate::verify) fn rtree_findings(fragment: &Fragment, rtree: &StoredRTree) -> Vec<Finding> {
    let mut findings = vec![];
    let schema = fragment.schema();
    let domain = RTree::from_domains(schema, [fragment]);
    for (axis, dimension) in schema.dimensions.iter().enumerate() {
        let tiles = rtree.levels.last().and_then(|level| box_around(dimension, level, axis));
        let (Some(tiles), Some(domain)) = (tiles, Ends::stored(dimension, &domain, axis, 0)) else {
            continue;
        };
        if !tiles.is_same(&domain) {
            let message = format!("the R-tree has {tiles}, and the fragment's footer has {domain}");
            findings.push(Finding::failure(message).in_dataset(&dimension.name));
        }
    }
    findings.extend(upper_levels(&schema.dimensions, rtree).map(Finding::failure));
    findings.into_iter().map(|finding| finding.in_file(&fragment.name)).collect()
}

/// Returns the ends of all rectangles of a level on an axis; `None` if one of them is NaN.
fn box_around(dimension: &DimensionSchema, level: &RTree, axis: usize) -> Option<Ends> {
    let mut all: Option<Ends> = None;
    for place in 0..level.len() {
        let ends = Ends::stored(dimension, level, axis, place)?;
        if ends.has_nan() {
            return None;
        }
        all = Some(match all {
            Some(all) => all.around(ends),
            None => ends,
        });
    }
    all
}

/// Returns the first fault of each upper level.
fn upper_levels(
    dimensions: &[DimensionSchema],
    rtree: &StoredRTree,
) -> impl Iterator<Item = String> {
    let fanout = (rtree.fanout as usize).max(1);
    let pairs = rtree.levels.iter().zip(rtree.levels.iter().skip(1)).enumerate();
    pairs.filter_map(move |(number, (upper, lower))| {
        let (found, expected) = (upper.len(), lower.len().div_ceil(fanout));
        if found != expected {
            return Some(format!("level {number} has {found} rectangles, expected {expected}"));
        }
        let is_outside =
            |place: &usize| !surrounds(dimensions, (upper, place / fanout), (lower, *place));
        let place = (0..lower.len()).find(is_outside)?;
        let below = number + 1;
        Some(format!("rectangle {place} of level {below} reaches out of that in level {number}"))
    })
}

/// A rectangle of a level, by its number.
type Rectangle<'a> = (&'a RTree, usize);

/// Whether a rectangle surrounds another one. An end that is NaN fits everywhere.
fn surrounds(
    dimensions: &[DimensionSchema],
    (outer, outer_place): Rectangle<'_>,
    (inner, inner_place): Rectangle<'_>,
) -> bool {
    dimensions.iter().enumerate().all(|(axis, dimension)| {
        let outer = Ends::stored(dimension, outer, axis, outer_place);
        let inner = Ends::stored(dimension, inner, axis, inner_place);
        match (outer, inner) {
            (Some(outer), Some(inner)) => {
                outer.has_nan() || inner.has_nan() || inner.is_within(&outer)
            }
            _ => false,
        }
    })
}
