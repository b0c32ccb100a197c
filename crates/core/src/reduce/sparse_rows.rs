//! [`SparseRows`]: a sparse matrix of groups by cells, which is applied to a chunk.
//!
//! ```text
//!              cell 0    1    2                   compressed rows
//!   place 0   [    0.5   ·    1 ]                 places   0        3
//!   place 3   [     ·    2    · ]                 entries  0.5  1   2
//!                                                 cells     0   2   1
//!
//!   one value per position of the other axes      cell 0   [ 7  8  6  … ]
//!   ("lane"), cell by cell                        cell 1   [ 1  ·  2  … ]
//!                                                 cell 2   [ 5  5  5  … ]
//! ```
//!
//! A row of the matrix is a group, and an entry the weight of a cell in it. The matrix is the same at all positions of the axes
//! that it is not over, such as times. So [`LANES`] positions are added at once, which processors do in few instructions.
//!
//! A cell without a value counts nowhere. Its lane has the value 0, which adds nothing because weights are finite.

use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray};
use multiversion::multiversion;

/// The number of positions that are added at once.
pub const LANES: usize = 8;

/// An entry of the matrix: a cell in a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparseEntry {
    /// The part of the group's place that the matrix determines.
    pub place: usize,
    /// The number of the cell among the gathered ones.
    pub cell: u32,
    /// The weight, which must be finite.
    pub weight: f64,
}

/// A sparse matrix of groups by cells, in compressed rows.
///
/// ```
/// use gridfusion_core::reduce::{CellLanes, SparseEntry, SparseRows, SparseSums};
///
/// let entry = |place, cell, weight| SparseEntry { place, cell, weight };
/// let rows = SparseRows::new(vec![entry(3, 1, 2.0), entry(0, 0, 0.5), entry(0, 1, 1.0)]);
/// let mut cells = CellLanes::default();
/// // Two cells at one position.
/// cells.fill(2, 1, |cell, _| Some([10.0, 4.0][cell]));
/// let mut sums = SparseSums::new(4);
/// rows.add(&cells, &[0], &mut sums);
/// assert_eq!(sums.sums, [9.0, 0.0, 0.0, 8.0]);
/// assert_eq!(sums.counts, [2, 0, 0, 1]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct SparseRows {
    runs: Vec<Run>,
    cells: Vec<u32>,
    weights: Vec<f64>,
}

/// The entries of one group.
#[derive(Debug, Clone, Copy)]
struct Run {
    place: usize,
    /// The end of the entries.
    end: usize,
    /// The sum of the weights.
    weights: f64,
}

/// The states of groups, by place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseSums {
    /// The number of entries at positions with a value.
    pub counts: Vec<u64>,
    /// The sums of value × weight.
    pub sums: Vec<f64>,
    /// The sums of the weights of entries at positions with a value.
    pub weights: Vec<f64>,
    /// The least values, of which NaN is the greatest; empty unless wanted. NaN without a value.
    pub mins: Vec<f64>,
    /// The greatest values, of which NaN is the greatest; empty unless wanted. Negative infinity without a value.
    pub maxs: Vec<f64>,
}

impl SparseSums {
    /// Makes the states of so many groups without a value.
    pub fn new(groups: usize) -> Self {
        let zeros = vec![0.0; groups];
        let (sums, weights) = (zeros.clone(), zeros);
        Self { counts: vec![0; groups], sums, weights, mins: vec![], maxs: vec![] }
    }

    /// Adds least values if `min`, and greatest values if `max`.
    #[must_use = "the states are not changed in place"]
    pub fn with_extremes(self, min: bool, max: bool) -> Self {
        let groups = |wanted: bool| if wanted { self.counts.len() } else { 0 };
        let (mins, maxs) = (vec![f64::NAN; groups(min)], vec![f64::NEG_INFINITY; groups(max)]);
        Self { mins, maxs, ..self }
    }

    fn add(&mut self, place: usize, count: u64, sum: f64, weights: f64) {
        self.counts[place] += count;
        self.sums[place] += sum;
        self.weights[place] += weights;
    }
}

/// The values of gathered cells at up to [`LANES`] positions.
#[derive(Debug, Clone, Default)]
pub struct CellLanes {
    /// Per cell a value per position; 0 without a value.
    values: Vec<[f64; LANES]>,
    /// Per cell 1 for each position with a value, and 0 for the others. Empty if all have one.
    known: Vec<[f64; LANES]>,
}

impl CellLanes {
    /// Fills in the values of `cells` at `lanes` positions. `value` takes the number of the cell and that of the position.
    pub fn fill(
        &mut self,
        cells: usize,
        lanes: usize,
        value: impl Fn(usize, usize) -> Option<f64>,
    ) {
        self.values.clear();
        self.known.clear();
        for cell in 0..cells {
            let (mut values, mut known) = ([0.0; LANES], [0.0; LANES]);
            for (lane, (to, is_known)) in values.iter_mut().zip(&mut known).take(lanes).enumerate()
            {
                if let Some(value) = value(cell, lane) {
                    (*to, *is_known) = (value, 1.0);
                }
            }
            self.values.push(values);
            self.known.push(known);
        }
    }

    /// Fills in numbers of a column as doubles. The index of an element is the sum of the offsets of its cell and its position.
    pub fn gather<T: ArrowPrimitiveType>(
        &mut self,
        column: &PrimitiveArray<T>,
        cells: &[usize],
        positions: &[usize],
        double: impl Fn(T::Native) -> f64,
    ) {
        let elements = column.values();
        let number = |at: usize| double(elements[at]);
        if let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) {
            let known = |at: usize| nulls.is_valid(at).then(|| number(at));
            self.fill(cells.len(), positions.len(), |cell, lane| {
                known(cells[cell] + positions[lane])
            });
            return;
        }
        self.known.clear();
        self.values.clear();
        self.values.resize(cells.len(), [0.0; LANES]);
        for (values, cell) in self.values.iter_mut().zip(cells) {
            for (to, position) in values.iter_mut().zip(positions) {
                *to = number(cell + position);
            }
        }
    }
}

impl SparseRows {
    /// Sorts entries by their groups. Entries of a group stay in order.
    pub fn new(mut entries: Vec<SparseEntry>) -> Self {
        entries.sort_by_key(|entry| entry.place);
        let mut runs: Vec<Run> = vec![];
        for (at, entry) in entries.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.place == entry.place => {
                    (run.end, run.weights) = (at + 1, run.weights + entry.weight);
                }
                _ => runs.push(Run { place: entry.place, end: at + 1, weights: entry.weight }),
            }
        }
        let cells = entries.iter().map(|entry| entry.cell).collect();
        Self { runs, cells, weights: entries.iter().map(|entry| entry.weight).collect() }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the bytes that the matrix takes.
    pub fn bytes(&self) -> usize {
        self.runs.len() * size_of::<Run>()
            + self.cells.len() * (size_of::<u32>() + size_of::<f64>())
    }

    /// Adds the values of cells at some positions, whose parts of places are `lanes`: at most [`LANES`].
    pub fn add(&self, cells: &CellLanes, lanes: &[usize], sums: &mut SparseSums) {
        if cells.known.is_empty() {
            add_known(self, cells, lanes, sums);
        } else {
            add_some(self, cells, lanes, sums);
        }
        if !sums.mins.is_empty() {
            let (add, unknown) = (f64::min, f64::NAN);
            self.add_extremes(cells, lanes, &mut sums.mins, unknown, add);
        }
        if !sums.maxs.is_empty() {
            let (add, unknown) = (greatest, f64::NEG_INFINITY);
            self.add_extremes(cells, lanes, &mut sums.maxs, unknown, add);
        }
    }

    /// Adds values to the extremes of groups. `unknown` is the extreme of no value.
    fn add_extremes(
        &self,
        cells: &CellLanes,
        lanes: &[usize],
        extremes: &mut [f64],
        unknown: f64,
        add: impl Fn(f64, f64) -> f64,
    ) {
        let mut start = 0;
        for run in &self.runs {
            let mut found = [unknown; LANES];
            for cell in &self.cells[start..run.end] {
                let cell = *cell as usize;
                let known = cells.known.get(cell);
                for lane in 0..LANES {
                    let is_known = known.is_none_or(|known| known[lane] > 0.0);
                    let value = if is_known { cells.values[cell][lane] } else { unknown };
                    found[lane] = add(found[lane], value);
                }
            }
            for (lane, found) in lanes.iter().zip(found) {
                let extreme = &mut extremes[run.place + lane];
                *extreme = add(*extreme, found);
            }
            start = run.end;
        }
    }

    /// Adds 1 for each cell, at some positions.
    pub fn add_ones(&self, lanes: &[usize], sums: &mut SparseSums) {
        let mut start = 0;
        for run in &self.runs {
            let count = (run.end - start) as u64;
            for lane in lanes {
                sums.add(run.place + lane, count, run.weights, run.weights);
            }
            start = run.end;
        }
    }
}

/// Returns the greater number; NaN is the greatest.
fn greatest(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// Adds cells that all have values.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx2", "x86_64+avx2"))]
fn add_known(rows: &SparseRows, cells: &CellLanes, lanes: &[usize], states: &mut SparseSums) {
    let mut start = 0;
    for run in &rows.runs {
        let entries = rows.cells[start..run.end].iter().zip(&rows.weights[start..run.end]);
        let mut sums = [0.0; LANES];
        for (cell, weight) in entries {
            let values = &cells.values[*cell as usize];
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value * weight;
            }
        }
        let count = (run.end - start) as u64;
        for (lane, sum) in lanes.iter().zip(sums) {
            states.add(run.place + lane, count, sum, run.weights);
        }
        start = run.end;
    }
}

/// Adds cells of which some have no value.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx2", "x86_64+avx2"))]
fn add_some(rows: &SparseRows, cells: &CellLanes, lanes: &[usize], states: &mut SparseSums) {
    let mut start = 0;
    for run in &rows.runs {
        let entries = rows.cells[start..run.end].iter().zip(&rows.weights[start..run.end]);
        let (mut sums, mut weights, mut counts) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for (cell, weight) in entries {
            let (values, known) = (&cells.values[*cell as usize], &cells.known[*cell as usize]);
            for lane in 0..LANES {
                sums[lane] += values[lane] * weight;
                weights[lane] += known[lane] * weight;
                counts[lane] += known[lane];
            }
        }
        for (lane, place) in lanes.iter().enumerate() {
            states.add(run.place + place, counts[lane] as u64, sums[lane], weights[lane]);
        }
        start = run.end;
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Float32Array;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// The same sums, entry by entry.
    fn naive(
        entries: &[SparseEntry],
        lanes: &[usize],
        value: impl Fn(usize, usize) -> Option<f64>,
        sums: &mut SparseSums,
    ) {
        for SparseEntry { place, cell, weight } in entries {
            for (lane, part) in lanes.iter().enumerate() {
                if let Some(value) = value(*cell as usize, lane) {
                    sums.add(place + part, 1, value * weight, *weight);
                    if let Some(min) = sums.mins.get_mut(place + part) {
                        *min = min.min(value);
                    }
                    if let Some(max) = sums.maxs.get_mut(place + part) {
                        *max = max.max(value);
                    }
                }
            }
        }
    }

    #[test]
    fn rows_agree_with_single_entries() {
        let mut rng = StdRng::seed_from_u64(5);
        for _ in 0..300 {
            let (cells, groups) = (rng.random_range(1..20), rng.random_range(1..6));
            let entry = |rng: &mut StdRng| SparseEntry {
                place: rng.random_range(0..groups) * 10,
                cell: rng.random_range(0..cells),
                weight: f64::from(rng.random_range(-4..5)) / 4.0,
            };
            let entries: Vec<_> = (0..rng.random_range(0..60)).map(|_| entry(&mut rng)).collect();
            let lanes: Vec<usize> =
                (0..rng.random_range(1..=LANES)).map(|_| rng.random_range(0..10)).collect();
            let nulls = if rng.random() { 0.3 } else { 0.0 };
            // Cells are every third element, and positions are one element apart.
            let len = cells as usize * 3 + LANES;
            let column: Float32Array = (0..len)
                .map(|_| (!rng.random_bool(nulls)).then(|| rng.random_range(-8..9) as f32))
                .collect();
            let offsets: Vec<usize> = (0..cells as usize).map(|cell| cell * 3).collect();
            let positions: Vec<usize> = (0..lanes.len()).collect();
            let mut gathered = CellLanes::default();
            gathered.gather(&column, &offsets, &positions, f64::from);
            let rows = SparseRows::new(entries.clone());
            let states = || SparseSums::new(60).with_extremes(true, true);
            let (mut found, mut expected) = (states(), states());
            rows.add(&gathered, &lanes, &mut found);
            let value = |cell: usize, lane: usize| {
                let at = cell * 3 + lane;
                column.is_valid(at).then(|| f64::from(column.value(at)))
            };
            naive(&entries, &lanes, value, &mut expected);
            // NaN, which is the least of no value, does not equal itself.
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
            let (mut found, mut expected) = (SparseSums::new(60), SparseSums::new(60));
            rows.add_ones(&lanes, &mut found);
            naive(&entries, &lanes, |_, _| Some(1.0), &mut expected);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn infinities_and_nan_stay_in_their_groups() {
        let entry = |place, cell, weight| SparseEntry { place, cell, weight };
        let rows = SparseRows::new(vec![
            entry(0, 0, 1.0),
            entry(1, 1, 0.0),
            entry(2, 2, 1.0),
            entry(3, 3, 1.0),
        ]);
        let mut cells = CellLanes::default();
        let values = [Some(f64::INFINITY), Some(f64::INFINITY), Some(f64::NAN), None];
        cells.fill(4, 1, |cell, _| values[cell]);
        let mut sums = SparseSums::new(4).with_extremes(true, true);
        rows.add(&cells, &[0], &mut sums);
        assert!(sums.mins[0] == f64::INFINITY && sums.mins[2].is_nan() && sums.maxs[2].is_nan());
        assert!(sums.sums[0] == f64::INFINITY && sums.sums[1].is_nan() && sums.sums[2].is_nan());
        assert!(sums.sums[3] == 0.0 && sums.counts == [1, 1, 1, 0]);
    }
}
