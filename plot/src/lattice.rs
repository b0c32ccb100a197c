//! Recognizes the rows and columns of a curvilinear grid in the order of its points.
//!
//! ```text
//!   0──1──2──3──┐      Neighbours in a row follow each other. Each row begins with a step
//!   ┌───────────┘      back. Points of neighbouring rows are neighbours too, so from row to
//!   4──5──6──7         row, and from point to point, steps change little.
//! ```

use std::cmp::Ordering;

/// The most columns of points that are compared for each candidate.
const SAMPLES: usize = 4096;

/// Differences between points. Both axes count alike, whatever their units are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric {
    /// The lengths of both axes.
    lengths: (f64, f64),
    /// Whether x is an angle, so that 359° is next to 0°.
    wraps: bool,
}

impl Metric {
    pub(crate) fn new(points: &[(f64, f64)], wraps: bool) -> Self {
        let length = |of: fn(&(f64, f64)) -> f64| {
            let finite = points.iter().map(of).filter(|it| it.is_finite());
            let (low, high) =
                finite.fold((f64::MAX, f64::MIN), |(low, high), it| (low.min(it), high.max(it)));
            if low < high { high - low } else { 1.0 }
        };
        Self { lengths: (length(|at| at.0), length(|at| at.1)), wraps }
    }

    /// Whether x is an angle.
    pub(crate) fn wraps(&self) -> bool {
        self.wraps
    }

    /// Returns the step from one point to another, in the units of the axes.
    pub(crate) fn step(&self, from: (f64, f64), to: (f64, f64)) -> (f64, f64) {
        let x = to.0 - from.0;
        let x = if self.wraps { (x + 180.0).rem_euclid(360.0) - 180.0 } else { x };
        (x, to.1 - from.1)
    }

    /// Returns the step from one point to another as a share of the axes.
    fn share(&self, from: (f64, f64), to: (f64, f64)) -> (f64, f64) {
        let step = self.step(from, to);
        (step.0 / self.lengths.0, step.1 / self.lengths.1)
    }
}

/// A sum of lengths, and their number.
#[derive(Debug, Clone, Copy, Default)]
struct Mean(f64, f64);

impl Mean {
    fn add(&mut self, length: f64) {
        if length.is_finite() {
            *self = Self(self.0 + length, self.1 + 1.0);
        }
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 - other.0, self.1 - other.1)
    }

    fn value(self) -> f64 {
        if self.1 < 0.5 { 0.0 } else { self.0.max(0.0) / self.1 }
    }
}

/// Returns the length of the rows of a lattice; `None` if the points are none.
pub(crate) fn row_length(points: &[(f64, f64)], metric: &Metric) -> Option<usize> {
    const LEAST: usize = 9;
    let count = points.len();
    if count < LEAST {
        return None;
    }
    let rows = Rows::new(points, metric);
    let widths = (2..=count / 2).filter(|width| count.is_multiple_of(*width));
    let scored = widths.filter_map(|width| Some((rows.roughness(width)?, width)));
    let best = scored.min_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal));
    best.map(|(_, width)| width)
}

/// The points as one long row.
struct Rows<'a> {
    points: &'a [(f64, f64)],
    metric: &'a Metric,
    /// The steps from each point to the next.
    steps: Mean,
    /// The changes of the step at each point.
    turns: Mean,
}

fn length((x, y): (f64, f64)) -> f64 {
    x.hypot(y)
}

fn difference(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    (other.0 - one.0, other.1 - one.1)
}

impl<'a> Rows<'a> {
    fn new(points: &'a [(f64, f64)], metric: &'a Metric) -> Self {
        let mut rows = Self { points, metric, steps: Mean::default(), turns: Mean::default() };
        let (mut steps, mut turns) = (Mean::default(), Mean::default());
        for at in 0..points.len() {
            steps.add(rows.step_after(at));
            turns.add(rows.turn_at(at));
        }
        (rows.steps, rows.turns) = (steps, turns);
        rows
    }

    fn step(&self, from: usize, to: usize) -> (f64, f64) {
        match (self.points.get(from), self.points.get(to)) {
            (Some(from), Some(to)) => self.metric.share(*from, *to),
            _ => (f64::NAN, f64::NAN),
        }
    }

    fn step_after(&self, at: usize) -> f64 {
        length(self.step(at, at + 1))
    }

    fn turn_at(&self, at: usize) -> f64 {
        let Some(before) = at.checked_sub(1) else { return f64::NAN };
        length(difference(self.step(before, at), self.step(at, at + 1)))
    }

    /// Returns how much steps change in rows of this length, as a share of the steps: 0 for a lattice of equal steps. `None`
    /// if the points are no such lattice.
    fn roughness(&self, width: usize) -> Option<f64> {
        /// Between the roughness of real grids, below 0.2, and of others, above 0.7.
        const MOST: f64 = 0.4;
        let (mut steps, mut turns, mut back) = (Mean::default(), Mean::default(), 0.0);
        for start in (width..self.points.len()).step_by(width) {
            steps.add(self.step_after(start - 1));
            turns.add(self.turn_at(start - 1));
            turns.add(self.turn_at(start));
            let (along, to_next) = (self.step(start - 2, start - 1), self.step(start - 1, start));
            let dot = along.0 * to_next.0 + along.1 * to_next.1;
            back += if dot.is_finite() { dot } else { 0.0 };
        }
        let along = self.steps.without(steps).value();
        let in_rows = if width > 2 { self.turns.without(turns).value() / along } else { 0.0 };
        if !(in_rows < MOST && back < 0.0) {
            return None;
        }
        let (mut across, mut bends, mut twists, mut areas) =
            (Mean::default(), Mean::default(), Mean::default(), Mean::default());
        let count = self.points.len() - width;
        for at in (0..count).step_by((count / SAMPLES).max(1)) {
            // A number of samples that divides the rows would see one column only.
            let at = (at + at / 7) % count;
            let down = self.step(at, at + width);
            across.add(length(down));
            bends.add(length(difference(down, self.step(at + width, at + 2 * width))));
            if at % width + 1 < width {
                twists.add(length(difference(down, self.step(at + 1, at + 1 + width))));
                let right = self.step(at, at + 1);
                areas.add((right.0 * down.1 - right.1 * down.0).abs());
            }
        }
        let across = across.value();
        let (bends, twists) = (bends.value() / across, twists.value() / (along + across));
        // A line without a second direction has cells without an area.
        let is_flat = areas.value() < 0.02 * along * across;
        (bends < MOST && twists < MOST && !is_flat).then_some(in_rows + bends + twists)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the points of a grid that is turned, stretched and bent.
    pub(crate) fn bent(rows: usize, width: usize) -> Vec<(f64, f64)> {
        let point = |row: f64, column: f64| {
            let (x, y) = (column * 1.3 - row * 0.4, row * 0.9 + column * 0.3);
            (x + 0.2 * (y / 5.0).sin(), y + 0.3 * (x / 4.0).cos())
        };
        let cells = (0..rows).flat_map(|row| (0..width).map(move |column| (row, column)));
        cells.map(|(row, column)| point(row as f64, column as f64)).collect()
    }

    fn found(points: &[(f64, f64)]) -> Option<usize> {
        row_length(points, &Metric::new(points, false))
    }

    #[test]
    fn rows_are_found_by_their_order() {
        for (rows, width) in
            [(3, 3), (2, 9), (9, 2), (4, 12), (12, 4), (60, 100), (100, 60), (7, 250), (99, 101)]
        {
            assert_eq!(found(&bent(rows, width)), Some(width), "{rows} × {width}");
        }
    }

    #[test]
    fn points_in_no_such_order_are_no_lattice() {
        let noise = |seed: u64| {
            let mut state = seed;
            std::iter::repeat_with(move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as f64 / 2e9
            })
        };
        let random: Vec<_> = noise(1).zip(noise(2)).take(5040).collect();
        assert_eq!(found(&random), None);
        let mut shuffled = bent(30, 40);
        shuffled.sort_by(|one, other| (one.0.sin()).total_cmp(&other.0.sin()));
        assert_eq!(found(&shuffled), None);
        let track: Vec<_> =
            (0..720).map(|at| f64::from(at) / 50.0).map(|at| (at, at.sin())).collect();
        assert_eq!(found(&track), None);
        let circle = (0..720).map(|at| f64::from(at) / 50.0).map(|at| (at.cos(), at.sin()));
        let circle: Vec<_> = circle.collect();
        assert_eq!(found(&circle), None);
        for hostile in
            [(f64::NAN, 1.0), (f64::INFINITY, f64::MIN), (f64::MAX, f64::MIN), (0.0, 0.0)]
        {
            assert_eq!(found(&[hostile; 720]), None);
        }
        assert_eq!(found(&bent(1, 7)), None);
        assert_eq!(found(&bent(1, 997)), None);
    }

    #[test]
    fn a_lattice_may_have_holes_and_cross_the_edge_of_the_map() {
        let mut points = bent(40, 50);
        for at in (0..points.len()).step_by(13) {
            points[at] = (f64::NAN, f64::NAN);
        }
        assert_eq!(found(&points), Some(50));
        let wrapped: Vec<_> = bent(40, 50)
            .into_iter()
            .map(|(x, y)| ((x + 150.0 + 180.0).rem_euclid(360.0) - 180.0, y))
            .collect();
        assert_eq!(row_length(&wrapped, &Metric::new(&wrapped, true)), Some(50));
    }
}
