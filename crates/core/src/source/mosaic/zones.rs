//! Zone maps of a mosaic, merged from the zone maps of the stored chunks.
//!
//! ```text
//!   stored chunks     NULLs   bounds    sum          chunk of the table
//!   [0, 0]            3       -5 … 7    20      ─▶   NULLs 5, bounds -5 … 9, sum 50
//!   [0, 1]            2        0 … 9    30
//! ```
//!
//! A merged value must be true for all cells of the table's chunk, or be missing. So one stored chunk
//! without a zone leaves the table's chunk without a zone, and one without a sum leaves it without a sum.

use std::sync::Arc;

use super::layout::Layout;
use crate::format::{ElementType, Sum, Zone, ZoneBound, Zones};

/// The zone maps of one value of a mosaic.
#[derive(Debug)]
pub(super) struct MosaicZones {
    pub(super) layout: Arc<Layout>,
    pub(super) variable: usize,
    /// Per file: the zone maps of the variable; `None` if there are none, or if the query selects no cell of
    /// the file.
    pub(super) of_files: Vec<Option<Arc<dyn Zones>>>,
    /// The type by which bounds compare.
    pub(super) element: ElementType,
}

impl Zones for MosaicZones {
    fn zone(&self, chunk_number: u64) -> Option<Zone> {
        let coordinates = self.layout.grid().chunk_coordinates(chunk_number);
        let file = self.layout.file_of(&coordinates);
        let zones = self.of_files[file].as_ref()?;
        if let Some(chunk_number) = self.layout.same_chunk(self.variable, file, &coordinates) {
            return zones.zone(chunk_number);
        }
        let grid = self.layout.grid_of(self.variable, file);
        let overlaps = self.layout.overlaps(self.variable, &coordinates, None);
        let mut merged = MergedZone::default();
        for overlap in &overlaps {
            // The zone map of a chunk that reaches beyond the table's chunk is not exact for the cells within.
            let zone = zones.zone(overlap.chunk_number(grid)).filter(|_| overlap.is_all())?;
            merged.add(&zone, zone.null_count < overlap.cells(), self.element);
        }
        // Without stored bounds, a chunk may hold any value. If all its cells are NULL, it cannot widen the
        // bounds.
        let bounds = merged.bounds.filter(|_| !merged.unbounded);
        Some(Zone { null_count: merged.null_count, bounds, sum: merged.sum.unwrap_or_default() })
    }
}

/// The merged zone maps of several stored chunks.
#[derive(Default)]
struct MergedZone {
    null_count: u64,
    /// The least and greatest value of the chunks that hold values.
    bounds: Option<(ZoneBound, ZoneBound)>,
    /// Whether a chunk with values has no bounds, or bounds that do not compare.
    unbounded: bool,
    /// `None` before the first chunk; `Some(None)` if there is no sum.
    sum: Option<Option<Sum>>,
}

impl MergedZone {
    /// Adds the zone of a stored chunk; `has_values` if not all its cells are NULL.
    fn add(&mut self, zone: &Zone, has_values: bool, element: ElementType) {
        self.null_count = self.null_count.saturating_add(zone.null_count);
        self.sum = Some(match self.sum {
            None => zone.sum,
            Some(sum) => sum.zip(zone.sum).and_then(|(a, b)| add(a, b)),
        });
        self.bounds = match (self.bounds, zone.bounds) {
            (Some(a), Some(b)) => {
                let hull = hull(a, b, element);
                self.unbounded |= hull.is_none();
                hull
            }
            (merged, None) => {
                self.unbounded |= has_values;
                merged
            }
            (None, bounds) => bounds,
        };
    }
}

/// Returns the bounds of both chunks together; `None` if the bounds do not compare.
fn hull(
    a: (ZoneBound, ZoneBound),
    b: (ZoneBound, ZoneBound),
    element: ElementType,
) -> Option<(ZoneBound, ZoneBound)> {
    let rank = |bound: &ZoneBound| element.rank(&bound[..element.size() as usize]);
    let least = if rank(&a.0)? <= rank(&b.0)? { a.0 } else { b.0 };
    let greatest = if rank(&a.1)? >= rank(&b.1)? { a.1 } else { b.1 };
    Some((least, greatest))
}

/// Adds sums; `None` if integers overflow, the result is not finite, or the kinds differ.
fn add(a: Sum, b: Sum) -> Option<Sum> {
    match (a, b) {
        (Sum::Signed(a), Sum::Signed(b)) => a.checked_add(b).map(Sum::Signed),
        (Sum::Unsigned(a), Sum::Unsigned(b)) => a.checked_add(b).map(Sum::Unsigned),
        (Sum::Float(a), Sum::Float(b)) => Some(Sum::Float(a + b)).filter(|_| (a + b).is_finite()),
        _ => None,
    }
}
