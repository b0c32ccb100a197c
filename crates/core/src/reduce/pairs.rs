//! Pairs of a cell and a number of its label, for trends and correlations.
//!
//! ```text
//!   regr_slope(value, year) GROUP BY lat, lon
//!
//!   x   1990   a number per label of one axis
//!   y   3.1 2.9 NULL 3.4 …   the cells of that label, each in the group of its column
//! ```
//!
//! All numbers are taken from the first pair of their group, as in [`PairSums`].

use super::batch::{Batch, GroupPlaces};
use super::cell::Cell;
use super::keep::Test;
use super::lanes::{InCacheLines, LANES, ROWS, opaque_lanes};
use super::pair_sums::{PairSums, Pairs, finite};
use super::weighted::RowWeights;

/// The pairs of groups, indexed by place: sums of the distances from a first pair.
#[derive(Debug, Clone, Default)]
pub(super) struct PairStates {
    counts: Vec<f64>,
    /// NaN before the first pair.
    first_x: Vec<f64>,
    first_y: Vec<f64>,
    x: Vec<f64>,
    y: Vec<f64>,
    xx: Vec<f64>,
    yy: Vec<f64>,
    xy: Vec<f64>,
}

impl PairStates {
    /// The words of a group.
    pub(super) const WORDS: u64 = 8;

    pub(super) fn new(groups: usize) -> Self {
        let zeros = || vec![0.0; groups];
        Self {
            counts: zeros(),
            first_x: vec![f64::NAN; groups],
            first_y: zeros(),
            x: zeros(),
            y: zeros(),
            xx: zeros(),
            yy: zeros(),
            xy: zeros(),
        }
    }

    /// Returns the pairs of each group.
    pub(super) fn finish(&self) -> Vec<Pairs> {
        let pairs = |at: usize| {
            let sums = PairSums {
                count: self.counts[at] as u64,
                first: (self.first_x[at], self.first_y[at]),
                x: self.x[at],
                y: self.y[at],
                xx: self.xx[at],
                yy: self.yy[at],
                xy: self.xy[at],
            };
            sums.pairs()
        };
        (0..self.counts.len()).map(pairs).collect()
    }

    /// Adds a pair to a group.
    #[inline(always)]
    fn add(&mut self, place: usize, x: f64, y: f64) {
        if self.counts[place] == 0.0 {
            (self.first_x[place], self.first_y[place]) = (x, finite(y));
        }
        let (x, y) = (x - self.first_x[place], y - self.first_y[place]);
        self.counts[place] += 1.0;
        self.x[place] += x;
        self.y[place] += y;
        self.xx[place] += x * x;
        self.yy[place] += y * y;
        self.xy[place] += x * y;
    }

    /// Makes the first pair of each column that has none yet, from rows that have a number.
    #[inline(always)]
    fn begin<T: Cell, K: Test<T>>(&mut self, at: usize, rows: &[(f64, &[T::Bytes])], test: K) {
        let Some((_, row)) = rows.first() else { return };
        let len = row.len();
        let counts = &self.counts[at..][..len];
        let (first_x, first_y) = (&mut self.first_x[at..][..len], &mut self.first_y[at..][..len]);
        // The last row that is written is the first one with a cell that counts.
        for (x, row) in rows.iter().rev() {
            let row = &row[..len];
            for at in 0..len {
                let cell = T::from_bytes(row[at]);
                let begins = test.keeps(cell) & (counts[at] == 0.0);
                first_x[at] = if begins { *x } else { first_x[at] };
                first_y[at] = if begins { finite(cell.to_f64()) } else { first_y[at] };
            }
        }
    }

    /// Adds rows again to the columns that had no first pair when they were added, which is seldom.
    #[inline(never)]
    fn add_again<T: Cell, K: Test<T>>(&mut self, at: usize, rows: &[(f64, &[T::Bytes])], test: K) {
        let Some((_, row)) = rows.first() else { return };
        let columns = at..at + row.len();
        let Self { counts, x, y, xx, yy, xy, first_x, .. } = &mut *self;
        for sums in [counts, x, y, xx, yy, xy] {
            for (sum, first_x) in sums[columns.clone()].iter_mut().zip(&first_x[columns.clone()]) {
                *sum = sum.zero_unless(!first_x.is_nan());
            }
        }
        self.begin::<T, K>(at, rows, test);
        let began = |place: &usize| self.counts[*place] == 0.0 && !self.first_x[*place].is_nan();
        for place in columns.filter(began).collect::<Vec<_>>() {
            for (x, row) in rows {
                let cell = T::from_bytes(row[place - at]);
                if test.keeps(cell) {
                    self.add(place, *x, cell.to_f64());
                }
            }
        }
    }
}

/// Runs over the columns of some rows, whose numbers and cells have names, as in
/// [`lanes`](super::lanes): then the loop vectorises. Returns whether a column got cells that had no first pair.
macro_rules! add_columns {
    ($states:expr, $at:expr, $len:expr, $test:expr, [$(($x:ident, $row:ident)),+]) => {{
        let (len, test, mut has_new) = ($len, $test, false);
        let PairStates { counts, first_x, first_y, x, y, xx, yy, xy } = $states;
        let (counts, first_x) = (&mut counts[$at..][..len], &first_x[$at..][..len]);
        let (first_y, x) = (&first_y[$at..][..len], &mut x[$at..][..len]);
        let (y, xx) = (&mut y[$at..][..len], &mut xx[$at..][..len]);
        let (yy, xy) = (&mut yy[$at..][..len], &mut xy[$at..][..len]);
        $(let $row = &$row[..len];)+
        for at in 0..len {
            let (mut count, mut sum_x, mut sum_y) = (0.0, 0.0, 0.0);
            let (mut sum_xx, mut sum_yy, mut sum_xy) = (0.0, 0.0, 0.0);
            $(
                let cell = T::from_bytes($row[at]);
                let keeps = test.keeps(cell);
                let dx = ($x - first_x[at]).zero_unless(keeps);
                let dy = (cell.to_f64() - first_y[at]).zero_unless(keeps);
                count += 1.0.zero_unless(keeps);
                sum_x += dx;
                sum_y += dy;
                sum_xx += dx * dx;
                sum_yy += dy * dy;
                sum_xy += dx * dy;
            )+
            has_new |= first_x[at].is_nan() & (count > 0.0);
            counts[at] += count;
            x[at] += sum_x;
            y[at] += sum_y;
            xx[at] += sum_xx;
            yy[at] += sum_yy;
            xy[at] += sum_xy;
        }
        has_new
    }};
}

/// Adds the cells of `batch` that pass `test` to the pairs of their groups, with the numbers of their labels. A label whose number is NaN
/// has none, and its cells do not count.
#[inline(always)]
pub(super) fn add_pairs<T: Cell, K: Test<T>>(
    states: &mut PairStates,
    batch: Batch<'_, T>,
    numbers: &RowWeights<'_>,
    test: K,
) {
    let width = opaque_lanes();
    for segment in batch.inner {
        let inner = numbers.along_row(&segment.cells());
        match &segment.places {
            GroupPlaces::Fixed(place) => {
                for (start, base) in batch.rows.each() {
                    let row = batch.row(&segment.cells(), start);
                    let x = numbers.of_row(start);
                    add_run::<T, K>(states, base + place, row, (x, inner), test, width);
                }
            }
            GroupPlaces::Steps { first, step: 1 } if inner.is_none() => {
                for rows in batch.rows.by_place() {
                    let place = rows.place;
                    let rows = rows.each().map(|(start, _)| {
                        (numbers.of_row(start), batch.row(&segment.cells(), start))
                    });
                    let rows: Vec<(f64, &[T::Bytes])> = rows.filter(|(x, _)| !x.is_nan()).collect();
                    add_rows::<T, K>(states, place + first, &rows, test);
                }
            }
            places => {
                for (start, base) in batch.rows.each() {
                    let of_row = numbers.of_row(start);
                    for (at, cell) in batch.row(&segment.cells(), start).iter().enumerate() {
                        let x = inner.map_or(of_row, |inner| of_row * inner[at]);
                        let cell = T::from_bytes(*cell);
                        if test.keeps(cell) && !x.is_nan() {
                            states.add(base + places.at(at), x, cell.to_f64());
                        }
                    }
                }
            }
        }
    }
}

/// Adds rows that share their groups, a group per column, of which the first is at `at`.
#[inline(always)]
fn add_rows<T: Cell, K: Test<T>>(
    states: &mut PairStates,
    at: usize,
    rows: &[(f64, &[T::Bytes])],
    test: K,
) {
    let Some((_, row)) = rows.first() else { return };
    if states.counts[at..][..row.len()].iter().all(|count| *count == 0.0) {
        states.begin::<T, K>(at, rows, test);
    }
    let len = row.len();
    // The more rows share a pass over the sums, the less often these are loaded and stored.
    let (eights, rest) = rows.as_chunks::<{ 2 * ROWS }>();
    for eight in eights {
        let &[(xa, a), (xb, b), (xc, c), (xd, d), (xe, e), (xf, f), (xg, g), (xh, h)] = eight;
        let has_new = add_columns!(
            &mut *states,
            at,
            len,
            test,
            [(xa, a), (xb, b), (xc, c), (xd, d), (xe, e), (xf, f), (xg, g), (xh, h)]
        );
        if has_new {
            states.add_again::<T, K>(at, eight, test);
        }
    }
    let (fours, rest) = rest.as_chunks::<ROWS>();
    for four in fours {
        let &[(xa, a), (xb, b), (xc, c), (xd, d)] = four;
        if add_columns!(&mut *states, at, len, test, [(xa, a), (xb, b), (xc, c), (xd, d)]) {
            states.add_again::<T, K>(at, four, test);
        }
    }
    for &(xa, a) in rest {
        if add_columns!(&mut *states, at, len, test, [(xa, a)]) {
            states.add_again::<T, K>(at, &[(xa, a)], test);
        }
    }
}

/// Adds a run of cells of one group. Their numbers are `x`, times those along the row, if there are any.
#[inline(always)]
fn add_run<T: Cell, K: Test<T>>(
    states: &mut PairStates,
    place: usize,
    row: &[T::Bytes],
    (x, inner): (f64, Option<&[f64]>),
    test: K,
    width: usize,
) {
    let number = |at: usize| inner.map_or(x, |inner| x * inner[at]);
    if states.counts[place] == 0.0 {
        let begins = |at: &usize| test.keeps(T::from_bytes(row[*at])) && !number(*at).is_nan();
        let Some(at) = (0..row.len()).find(begins) else { return };
        (states.first_x[place], states.first_y[place]) =
            (number(at), finite(T::from_bytes(row[at]).to_f64()));
    }
    let (first_x, first_y) = (states.first_x[place], states.first_y[place]);
    // Independent sums, so that additions need not wait for each other.
    let InCacheLines(sums) = &mut InCacheLines([[0.0; LANES]; 6]);
    let [count, sum_x, sum_y, xx, yy, xy] = &mut *sums;
    let InCacheLines(numbers) = &mut InCacheLines([x; LANES]);
    for (block, cells) in row.chunks(width).enumerate() {
        let len = cells.len();
        if let Some(inner) = inner {
            let inner = &inner[block * width..][..len];
            for at in 0..len {
                numbers[at] = x * inner[at];
            }
        }
        let numbers = &numbers[..len];
        let (count, sum_x, sum_y) = (&mut count[..len], &mut sum_x[..len], &mut sum_y[..len]);
        let (xx, yy, xy) = (&mut xx[..len], &mut yy[..len], &mut xy[..len]);
        for at in 0..len {
            let cell = T::from_bytes(cells[at]);
            let keeps = test.keeps(cell) & !numbers[at].is_nan();
            let dx = (numbers[at] - first_x).zero_unless(keeps);
            let dy = (cell.to_f64() - first_y).zero_unless(keeps);
            count[at] += 1.0.zero_unless(keeps);
            sum_x[at] += dx;
            sum_y[at] += dy;
            xx[at] += dx * dx;
            yy[at] += dy * dy;
            xy[at] += dx * dy;
        }
    }
    let [count, sum_x, sum_y, xx, yy, xy] = sums.map(|lanes| lanes.iter().sum::<f64>());
    states.counts[place] += count;
    states.x[place] += sum_x;
    states.y[place] += sum_y;
    states.xx[place] += xx;
    states.yy[place] += yy;
    states.xy[place] += xy;
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::reduce::batch::{Rows, Segment};
    use crate::reduce::keep::{KeepAll, Numbers};

    /// Adds the numbers of rows of two columns, a group each.
    fn columns(rows: &[(f64, [f64; 2])]) -> Vec<Pairs> {
        let cells = rows.iter().flat_map(|(_, row)| *row);
        let cells: Vec<_> = cells.map(f64::to_bytes).collect();
        let numbers: Vec<f64> = rows.iter().map(|(x, _)| *x).collect();
        let rows = Rows { start: 0, stride: 2, place: 0, step: 0, count: rows.len() };
        let places = GroupPlaces::Steps { first: 0, step: 1 };
        let inner = [Segment { start: 0, len: 2, places }];
        let numbers = RowWeights::of_rows_of(2, &numbers);
        let mut states = PairStates::new(2);
        add_pairs::<f64, _>(
            &mut states,
            Batch { cells: &cells, base: 0, rows, inner: &inner },
            &numbers,
            KeepAll,
        );
        states.finish()
    }

    /// Columns get their first cells in any row, and in any batch.
    #[test]
    fn columns_begin_apart() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..300 {
            let (count, width) = (rng.random_range(1..40), rng.random_range(1..30));
            let missing = [0.0, 0.5, 0.95][rng.random_range(0..3)];
            let cell = |rng: &mut StdRng| match rng.random_bool(missing) {
                true => f64::NAN,
                false => f64::from(rng.random_range(-20..20)) + 1e6,
            };
            let cells: Vec<f64> = (0..count * width).map(|_| cell(&mut rng)).collect();
            let bytes: Vec<_> = cells.iter().map(|cell| cell.to_bytes()).collect();
            let x = |row: usize| 7e5 + row as f64;
            let numbers: Vec<f64> = (0..count).map(x).collect();
            let numbers = RowWeights::of_rows_of(width, &numbers);
            let places = GroupPlaces::Steps { first: 0, step: 1 };
            let inner = [Segment { start: 0, len: width, places }];
            let mut states = PairStates::new(width);
            let mut start = 0;
            while start < count {
                let rows = rng.random_range(1..=count - start);
                let rows =
                    Rows { start: start * width, stride: width, place: 0, step: 0, count: rows };
                let batch = Batch { cells: &bytes, base: 0, rows, inner: &inner };
                add_pairs::<f64, _>(&mut states, batch, &numbers, Numbers);
                start += rows.count;
            }
            for (column, found) in states.finish().into_iter().enumerate() {
                let pairs = (0..count).map(|row| (x(row), cells[row * width + column]));
                let pairs: Vec<_> = pairs.filter(|(_, y)| !y.is_nan()).collect();
                let n = pairs.len().max(1) as f64;
                let mean_x = pairs.iter().map(|(x, _)| x).sum::<f64>() / n;
                let mean_y = pairs.iter().map(|(_, y)| y).sum::<f64>() / n;
                let sum = |of: fn(f64, f64) -> f64| -> f64 {
                    pairs.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum()
                };
                let expected = Pairs {
                    count: pairs.len() as u64,
                    mean_x,
                    mean_y,
                    xx: sum(|x, _| x * x),
                    yy: sum(|_, y| y * y),
                    xy: sum(|x, y| x * y),
                };
                let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
                assert!(
                    found.count == expected.count
                        && near(found.mean_x, expected.mean_x)
                        && near(found.mean_y, expected.mean_y)
                        && near(found.xx, expected.xx)
                        && near(found.yy, expected.yy)
                        && near(found.xy, expected.xy),
                    "{found:?}, not {expected:?}"
                );
            }
        }
    }

    /// Sums of squares of such numbers have no digit of their spread.
    #[test]
    fn large_means_keep_the_spread() {
        let row = |at: u32| (1.6e9 + f64::from(at), [1e9 + 3.0 * f64::from(at), -1e12]);
        let [line, flat] = columns(&[row(4), row(0), row(2), row(9), row(5)])[..] else {
            panic!("two groups")
        };
        assert_eq!((line.mean_x, line.mean_y), (1.6e9 + 4.0, 1e9 + 12.0));
        assert_eq!((line.xx, line.yy, line.xy), (46.0, 414.0, 138.0));
        assert_eq!((flat.mean_y, flat.yy, flat.xy), (-1e12, 0.0, 0.0));
    }

    /// An outlier in front of small numbers is a part of the spread.
    #[test]
    fn a_first_number_far_away_costs_few_digits() {
        let rows: Vec<_> = (0..1000).map(|at| (f64::from(at), [f64::from(at % 7), 1.0])).collect();
        let rows = [&[(5.0, [1e15, 1.0])], &rows[..]].concat();
        let found = columns(&rows)[0];
        let mean = rows.iter().map(|(_, row)| row[0]).sum::<f64>() / 1001.0;
        let spread: f64 = rows.iter().map(|(_, row)| (row[0] - mean).powi(2)).sum();
        assert!((found.yy / spread - 1.0).abs() < 1e-10, "{found:?} {spread}");
    }

    #[test]
    fn infinite_numbers_have_no_spread() {
        // The products of the distances are infinite with either sign.
        let both = columns(&[(1.0, [f64::INFINITY, 1.0]), (0.0, [1.0, f64::NEG_INFINITY])]);
        assert!(both.iter().all(|it| it.yy.is_nan() && it.xy.is_nan()), "{both:?}");
        let found =
            columns(&[(1.0, [f64::INFINITY, 1.0]), (2.0, [1.0, f64::NAN]), (3.0, [2.0, 1.0])]);
        assert!(found.iter().all(|it| it.yy.is_nan() && it.xy.is_nan()), "{found:?}");
        assert!(found.iter().all(|it| (it.mean_x, it.xx) == (2.0, 2.0)), "{found:?}");
        assert_eq!(found[0].mean_y, f64::INFINITY);
    }
}
