//! The text of a sparse scan in `EXPLAIN`.

use super::plan::{SparsePlan, TileCounts};
use crate::array::SparseArray;

/// Returns `array=points, fragments=2/3, tiles=14/124, merged_tiles=6, filter=x@0 < 5`.
pub(super) fn parts(array: &SparseArray, plan: &SparsePlan) -> Vec<String> {
    let counts: TileCounts = plan.counts();
    let mut parts = vec![
        format!("array={}", array.name()),
        format!("fragments={}/{}", counts.fragments_read, counts.fragments),
        format!("tiles={}/{}", counts.read(), counts.tiles),
    ];
    if counts.merged > 0 {
        parts.push(format!("merged_tiles={}", counts.merged));
    }
    let filters = [&plan.filters.dimensions, &plan.filters.values];
    let filters: Vec<String> =
        filters.into_iter().flatten().map(|filter| filter.predicate.to_string()).collect();
    if !filters.is_empty() {
        parts.push(format!("filter={}", filters.join(" AND ")));
    }
    parts
}
