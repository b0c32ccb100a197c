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

use multiversion::multiversion;

use super::cell_lanes::{CellLanes, LANES};
use super::group_stats::RequestedStats;
use super::moments::Moments;

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
/// use gridfusion_core::reduce::{CellLanes, SparseEntry, SparseRowsBuilder, SparseSums};
///
/// let entry = |place, cell, weight| SparseEntry { place, cell, weight };
/// let entries = [entry(3, 1, 2.0), entry(0, 0, 0.5), entry(0, 1, 1.0)];
/// let rows = SparseRowsBuilder::new(4).rows(entries.into_iter());
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
    /// The sums of value × weight; empty unless wanted.
    pub sums: Vec<f64>,
    /// The sums of the weights of entries at positions with a value; empty unless wanted.
    pub weights: Vec<f64>,
    /// The least values, of which NaN is the greatest; empty unless wanted. NaN without a value.
    pub mins: Vec<f64>,
    /// The greatest values, of which NaN is the greatest; empty unless wanted. Negative infinity without a value.
    pub maxs: Vec<f64>,
    /// The means and spreads of value × weight; empty unless wanted.
    pub spreads: Vec<Moments>,
}

impl SparseSums {
    /// Makes the states of so many groups without a value.
    pub fn new(groups: usize) -> Self {
        Self { sums: vec![0.0; groups], weights: vec![0.0; groups], ..Self::counts(groups) }
    }

    /// Makes the states of so many groups without a value, which only count.
    pub fn counts(groups: usize) -> Self {
        Self { counts: vec![0; groups], ..Self::default() }
    }

    /// Adds the least values, the greatest values and the spreads that are requested.
    #[must_use = "the states are not changed in place"]
    pub fn with(self, requested: RequestedStats) -> Self {
        let groups = |wanted: bool| if wanted { self.counts.len() } else { 0 };
        Self {
            mins: vec![f64::NAN; groups(requested.min)],
            maxs: vec![f64::NEG_INFINITY; groups(requested.max)],
            spreads: vec![Moments::default(); groups(requested.spread)],
            ..self
        }
    }

    pub(super) fn add(&mut self, place: usize, count: u64, sum: f64, weights: f64) {
        self.counts[place] += count;
        if !self.sums.is_empty() {
            self.sums[place] += sum;
            self.weights[place] += weights;
        }
    }
}

/// Makes matrices of the same groups, one after another.
#[derive(Debug)]
pub struct SparseRowsBuilder {
    /// The entries of each place while a matrix is made, then the index of the next one.
    counts: Vec<usize>,
}

impl SparseRowsBuilder {
    /// Makes a builder for so many groups.
    pub fn new(groups: usize) -> Self {
        Self { counts: vec![0; groups] }
    }

    /// Sorts entries by their groups. Entries of a group stay in order. The entries are counted first, so their iterator runs twice.
    ///
    /// # Panics
    /// Panics if an entry is of no group.
    pub fn rows(&mut self, entries: impl Iterator<Item = SparseEntry> + Clone) -> SparseRows {
        let mut places = vec![];
        for entry in entries.clone() {
            let count = &mut self.counts[entry.place];
            if *count == 0 {
                places.push(entry.place);
            }
            *count += 1;
        }
        places.sort_unstable();
        let mut end = 0;
        let mut runs: Vec<Run> = Vec::with_capacity(places.len());
        for place in places {
            let start = end;
            end += std::mem::replace(&mut self.counts[place], start);
            runs.push(Run { place, end, weights: 0.0 });
        }
        let (mut cells, mut weights) = (vec![0; end], vec![0.0; end]);
        for entry in entries {
            let at = &mut self.counts[entry.place];
            (cells[*at], weights[*at]) = (entry.cell, entry.weight);
            *at += 1;
        }
        let mut start = 0;
        for run in &mut runs {
            self.counts[run.place] = 0;
            run.weights = weights[start..run.end].iter().sum();
            start = run.end;
        }
        SparseRows { runs, cells, weights }
    }
}

/// The entries of one group.
pub(super) struct RowGroup<'a> {
    pub(super) place: usize,
    pub(super) cells: &'a [u32],
    pub(super) weights: &'a [f64],
    /// The sum of the weights.
    pub(super) sum: f64,
}

impl SparseRows {
    /// Returns the groups by ascending places.
    pub(super) fn groups(&self) -> impl Iterator<Item = RowGroup<'_>> {
        let starts = std::iter::once(0).chain(self.runs.iter().map(|run| run.end));
        self.runs.iter().zip(starts).map(|(run, start)| RowGroup {
            place: run.place,
            cells: &self.cells[start..run.end],
            weights: &self.weights[start..run.end],
            sum: run.weights,
        })
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The most bytes of an entry, which may be the only one of its group.
    pub const ENTRY_BYTES: usize = size_of::<u32>() + size_of::<f64>() + size_of::<Run>();

    /// Adds the values of cells at some positions, whose parts of places are `lanes`: at most [`LANES`].
    pub fn add(&self, cells: &CellLanes, lanes: &[usize], sums: &mut SparseSums) {
        match (cells.width, cells.known.is_empty()) {
            (1, true) => add_values::<1, true>(self, cells, lanes, sums),
            (1, false) => add_values::<1, false>(self, cells, lanes, sums),
            (_, true) => add_values::<LANES, true>(self, cells, lanes, sums),
            (_, false) => add_values::<LANES, false>(self, cells, lanes, sums),
        }
        if !sums.spreads.is_empty() {
            match cells.width {
                1 => add_spreads::<1>(self, cells, lanes, &mut sums.spreads),
                _ => add_spreads::<LANES>(self, cells, lanes, &mut sums.spreads),
            }
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
        let (width, mut start) = (cells.width, 0);
        for run in &self.runs {
            let mut found = [unknown; LANES];
            for cell in &self.cells[start..run.end] {
                for (lane, found) in found[..width].iter_mut().enumerate() {
                    let at = *cell as usize * width + lane;
                    let is_known = cells.known.get(at).is_none_or(|known| *known > 0.0);
                    *found = add(*found, if is_known { cells.values[at] } else { unknown });
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
            let weights = &self.weights[start..run.end];
            for lane in lanes {
                sums.add(run.place + lane, weights.len() as u64, run.weights, run.weights);
            }
            if !sums.spreads.is_empty() {
                let spread = Moments::of(weights);
                lanes.iter().for_each(|lane| sums.spreads[run.place + lane].merge(spread));
            }
            start = run.end;
        }
    }
}

/// Returns the greater number; NaN is the greatest.
fn greatest(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// Adds the products of cells and weights. `ALL_KNOWN` tells that each cell has a value, so that a run has its own count and weights.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx2", "x86_64+avx2"))]
fn add_values<const WIDTH: usize, const ALL_KNOWN: bool>(
    rows: &SparseRows,
    cells: &CellLanes,
    lanes: &[usize],
    states: &mut SparseSums,
) {
    let ((all_values, _), mut start) = (cells.values.as_chunks::<WIDTH>(), 0);
    let (all_known, _) = cells.known.as_chunks::<WIDTH>();
    for run in &rows.runs {
        let entries = rows.cells[start..run.end].iter().zip(&rows.weights[start..run.end]);
        let (mut sums, mut weights, mut counts) = ([0.0; WIDTH], [0.0; WIDTH], [0.0; WIDTH]);
        for (cell, weight) in entries {
            for (sum, value) in sums.iter_mut().zip(&all_values[*cell as usize]) {
                *sum += value * weight;
            }
            if !ALL_KNOWN {
                let known = &all_known[*cell as usize];
                for lane in 0..WIDTH {
                    weights[lane] += known[lane] * weight;
                    counts[lane] += known[lane];
                }
            }
        }
        if ALL_KNOWN {
            (counts, weights) = ([(run.end - start) as f64; WIDTH], [run.weights; WIDTH]);
        }
        for (lane, place) in lanes.iter().enumerate() {
            states.add(run.place + place, counts[lane] as u64, sums[lane], weights[lane]);
        }
        start = run.end;
    }
}

/// Adds the means and spreads of products. A run takes two passes, so large means cost no digits of small spreads.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx2", "x86_64+avx2"))]
fn add_spreads<const WIDTH: usize>(
    rows: &SparseRows,
    cells: &CellLanes,
    lanes: &[usize],
    spreads: &mut [Moments],
) {
    let ((all_values, _), mut start) = (cells.values.as_chunks::<WIDTH>(), 0);
    let (all_known, _) = cells.known.as_chunks::<WIDTH>();
    let known = |cell: u32| all_known.get(cell as usize).copied().unwrap_or([1.0; WIDTH]);
    for run in &rows.runs {
        let of_run = || rows.cells[start..run.end].iter().zip(&rows.weights[start..run.end]);
        let (mut counts, mut means) = ([0.0; WIDTH], [0.0; WIDTH]);
        for (cell, weight) in of_run() {
            let (values, known) = (&all_values[*cell as usize], known(*cell));
            for lane in 0..WIDTH {
                counts[lane] += known[lane];
                means[lane] += values[lane] * weight;
            }
        }
        for lane in 0..WIDTH {
            means[lane] /= counts[lane].max(1.0);
        }
        let mut squares = [0.0; WIDTH];
        for (cell, weight) in of_run() {
            let (values, known) = (&all_values[*cell as usize], known(*cell));
            for lane in 0..WIDTH {
                let distance = values[lane] * weight - means[lane];
                squares[lane] += if known[lane] > 0.0 { distance * distance } else { 0.0 };
            }
        }
        for (lane, place) in lanes.iter().enumerate() {
            let (count, mean, m2) = (counts[lane] as u64, means[lane], squares[lane]);
            spreads[run.place + place].merge(Moments { count, mean, m2 });
        }
        start = run.end;
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::array::{NumberColumn, ReadOptions};
    use crate::format::ElementType;
    use crate::reduce::cell_reader;
    use crate::tile::Tile;

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

    /// Compares the spread of a group with that of its products, one by one.
    fn assert_spread(
        found: &Moments,
        place: usize,
        entries: &[SparseEntry],
        lanes: &[usize],
        value: impl Fn(usize, usize) -> Option<f64>,
    ) {
        let mut products = vec![];
        for entry in entries {
            for (lane, part) in lanes.iter().enumerate() {
                let value = value(entry.cell as usize, lane);
                let value = value.filter(|_| entry.place + part == place);
                products.extend(value.map(|it| it * entry.weight));
            }
        }
        let mean = products.iter().sum::<f64>() / products.len().max(1) as f64;
        let m2: f64 = products.iter().map(|it| (it - mean) * (it - mean)).sum();
        assert_eq!(found.count, products.len() as u64);
        assert!((found.mean - mean).abs() < 1e-12 && (found.m2 - m2).abs() < 1e-9);
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
            // Cells are every third element, or follow one another. Positions are one element apart.
            let step = if rng.random() { 3 } else { 1 };
            let len = cells as usize * step + LANES;
            let values: Vec<Option<f32>> = (0..len)
                .map(|_| (!rng.random_bool(nulls)).then(|| rng.random_range(-8..9) as f32))
                .collect();
            let single = |cell: usize| cell * step..cell * step + 1;
            let runs: Vec<_> = match step {
                1 => std::iter::once(0..cells as usize).collect(),
                _ => (0..cells as usize).map(single).collect(),
            };
            let positions: Vec<usize> = (0..lanes.len()).collect();
            let bytes = values.iter().flat_map(|it| it.unwrap_or(f32::NAN).to_le_bytes());
            let tile = Tile::fixed(bytes.collect::<Vec<u8>>().into(), 4);
            let column = NumberColumn::with_nulls(ElementType::F32, &[], &ReadOptions::default());
            let mut reader = cell_reader(&column).unwrap();
            let mut gathered = CellLanes::default();
            let opened = reader.open(&tile, nulls > 0.0);
            opened.read(&runs, &positions, &mut gathered).unwrap();
            let mut builder = SparseRowsBuilder::new(60);
            builder.rows([SparseEntry { place: 7, cell: 0, weight: 1.0 }].into_iter());
            let rows = builder.rows(entries.iter().copied());
            let extremes = RequestedStats { min: true, max: true, ..RequestedStats::default() };
            let states = || SparseSums::new(60).with(extremes);
            let (mut found, mut expected) = (states(), states());
            rows.add(&gathered, &lanes, &mut found);
            let value = |cell: usize, lane: usize| values[cell * step + lane].map(f64::from);
            naive(&entries, &lanes, value, &mut expected);
            // NaN, which is the least of no value, does not equal itself.
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
            let spread = RequestedStats { spread: true, ..RequestedStats::default() };
            let mut spreads = SparseSums::new(60).with(spread);
            rows.add(&gathered, &lanes, &mut spreads);
            for (place, found) in spreads.spreads.iter().enumerate() {
                assert_spread(found, place, &entries, &lanes, value);
            }
            let (mut found, mut expected) = (SparseSums::new(60).with(spread), SparseSums::new(60));
            rows.add_ones(&lanes, &mut found);
            for (place, found) in std::mem::take(&mut found.spreads).iter().enumerate() {
                assert_spread(found, place, &entries, &lanes, |_, _| Some(1.0));
            }
            naive(&entries, &lanes, |_, _| Some(1.0), &mut expected);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn infinities_and_nan_stay_in_their_groups() {
        let entry = |place, cell, weight| SparseEntry { place, cell, weight };
        let entries = [entry(0, 0, 1.0), entry(1, 1, 0.0), entry(2, 2, 1.0), entry(3, 3, 1.0)];
        let rows = SparseRowsBuilder::new(4).rows(entries.into_iter());
        let mut cells = CellLanes::default();
        let values = [Some(f64::INFINITY), Some(f64::INFINITY), Some(f64::NAN), None];
        cells.fill(4, 1, |cell, _| values[cell]);
        let extremes = RequestedStats { min: true, max: true, ..RequestedStats::default() };
        let mut sums = SparseSums::new(4).with(extremes);
        rows.add(&cells, &[0], &mut sums);
        assert!(sums.mins[0] == f64::INFINITY && sums.mins[2].is_nan() && sums.maxs[2].is_nan());
        assert!(sums.sums[0] == f64::INFINITY && sums.sums[1].is_nan() && sums.sums[2].is_nan());
        assert!(sums.sums[3] == 0.0 && sums.counts == [1, 1, 1, 0]);
    }
}
