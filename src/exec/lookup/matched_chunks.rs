//! [`matched_tasks`]: the chunks of a partition that have a cell with a match.
//!
//! ```text
//!   labels with a match   lat 0, 5   lon 0, 5        chunks of 3 × 3 cells
//!   rows                  (0, 0), (5, 5)             a ·     a and d have a match; the labels alone keep
//!                                                    · d     all four
//! ```

use datafusion::common::{HashMap, HashSet};

use super::build_side::BuildSide;
use super::grid_lookup::GridLookup;
use crate::plan::{ScanPlan, TaskNumber};
use crate::reduce::AxisGroups;

/// The most combinations of rows and chunks that are looked at.
const MOST: usize = 1 << 20;

/// Returns the tasks of the only partition of `plan` whose chunks have a cell with a match. It may return others, too, if finding
/// these out costs much.
pub(in crate::exec) fn matched_tasks(
    lookup: &GridLookup,
    built: &BuildSide,
    plan: &ScanPlan,
) -> Vec<TaskNumber> {
    let Some(matched) = MatchedChunks::find(lookup, built) else { return plan.tasks(0).collect() };
    plan.tasks(0).filter(|task| matched.contains(&plan.task(*task).coordinates)).collect()
}

/// The chunks with a match along the axes of the join.
struct MatchedChunks {
    /// The axes of the join, and the distance of neighbouring chunks along each.
    axes: Vec<(usize, u64)>,
    /// The sums of the distances to the chunks.
    places: HashSet<u64>,
}

impl MatchedChunks {
    /// Finds the chunks. `None` if the labels of single axes tell as much, as for one chunk along each, or if there are too many.
    fn find(lookup: &GridLookup, built: &BuildSide) -> Option<Self> {
        if lookup.keys.len() < 2 {
            return None;
        }
        let chunks_per_axis = lookup.scan.plan().grid().chunks_per_axis();
        let (mut axes, mut stride) = (vec![], 1_u64);
        for keys in &lookup.keys {
            axes.push((keys.axis, stride));
            stride = stride.checked_mul(chunks_per_axis[keys.axis])?;
        }
        let is_match = |row: usize| built.numbers.iter().all(|numbers| numbers[row].is_some());
        if stride == 1 && (0..built.rows.num_rows()).any(is_match) {
            return None;
        }
        let of_axes: Vec<HashMap<u32, Vec<u64>>> = (0..axes.len())
            .map(|at| chunks_of_numbers(lookup, built, at))
            .collect::<Option<_>>()?;
        let (mut places, mut work) = (HashSet::new(), 0);
        let (mut of_row, mut with_axis, mut before) = (vec![], vec![], vec![]);
        for row in 0..built.rows.num_rows() {
            of_row.clear();
            of_row.push(0);
            for ((of_numbers, numbers), (_, stride)) in
                of_axes.iter().zip(&built.numbers).zip(&axes)
            {
                let chunks = numbers[row].and_then(|number| of_numbers.get(&number));
                let chunks = chunks.map_or(&[][..], Vec::as_slice);
                work += of_row.len() * chunks.len();
                if work > MOST {
                    return None;
                }
                let places = |place: &u64| {
                    let place = *place;
                    chunks.iter().map(move |chunk| place + chunk * stride)
                };
                with_axis.clear();
                with_axis.extend(of_row.iter().flat_map(places));
                std::mem::swap(&mut of_row, &mut with_axis);
            }
            // Neighbouring rows are often in the same chunks.
            if of_row != before {
                places.extend(of_row.iter().copied());
                std::mem::swap(&mut of_row, &mut before);
            }
        }
        Some(Self { axes, places })
    }

    /// Whether the chunk with these coordinates has a match.
    fn contains(&self, coordinates: &[u64]) -> bool {
        let place = self.axes.iter().map(|(axis, stride)| coordinates[*axis] * stride);
        self.places.contains(&place.sum::<u64>())
    }
}

/// Returns the chunks along an axis that have labels of each number in the rows; `None` if the axis is long.
fn chunks_of_numbers(
    lookup: &GridLookup,
    built: &BuildSide,
    at: usize,
) -> Option<HashMap<u32, Vec<u64>>> {
    let axis = lookup.keys[at].axis;
    let plan = lookup.scan.plan();
    let selection = &plan.selection().axes()[axis];
    if selection.count() > MOST as u64 {
        return None;
    }
    let mut chunks: HashMap<u32, Vec<u64>> = HashMap::new();
    for number in built.numbers[at].iter().flatten() {
        chunks.entry(*number).or_default();
    }
    let indices = selection.ranges().iter().cloned().flatten();
    for (rank, index) in indices.enumerate() {
        let number = match &lookup.groups[axis] {
            AxisGroups::One => 0,
            AxisGroups::Each => rank as u32,
            AxisGroups::Numbered { numbers, .. } => numbers[rank],
        };
        let Some(chunks) = chunks.get_mut(&number) else { continue };
        let chunk = plan.grid().chunk_of(axis, index);
        if chunks.last() != Some(&chunk) {
            chunks.push(chunk);
        }
    }
    Some(chunks)
}
