//! Contour lines of a grid of points, by marching squares.
//!
//! ```text
//!    1 ──●── 3 ───── 4      The line of level 2 crosses the edges between a point below 2 and one
//!    │    ╲  │       │      that is not below. Four crossings of a square are a saddle: the mean of
//!    0 ───── 1 ──●── 3      the corners tells which two belong together.
//! ```
//!
//! Squares with a corner without a value have no lines, so lines break there.

use std::collections::HashMap;

use crate::lattice::Metric;

/// A point in the plane.
type Point = (f64, f64);

/// Values at the points of a grid, row by row.
#[derive(Debug)]
pub(crate) struct Field {
    points: Vec<Point>,
    /// NaN where a point has no value.
    values: Vec<f64>,
    width: usize,
    metric: Metric,
    /// The squares in a row: one more than usual if the last column is next to the first.
    across: usize,
}

impl Field {
    /// A grid with rows of `width` points.
    pub(crate) fn new(points: Vec<Point>, values: Vec<f64>, width: usize, metric: Metric) -> Self {
        let mut field = Self { points, values, width, metric, across: width.saturating_sub(1) };
        if metric.wraps() && width > 3 && field.is_closed() {
            field.across = width;
        }
        field
    }

    /// Whether rows go around the globe: the last point of a row is about as near to the first as neighbours are.
    fn is_closed(&self) -> bool {
        let (mut around, mut along) = (0.0, 0.0);
        for row in self.points.chunks_exact(self.width) {
            let length = |from: Point, to: Point| self.metric.step(from, to).0.abs();
            let steps: f64 = row.windows(2).map(|pair| length(pair[0], pair[1])).sum();
            let last = length(row[self.width - 1], row[0]);
            if steps.is_finite() && last.is_finite() {
                (around, along) = (around + last, along + steps);
            }
        }
        along > 0.0 && around <= 2.0 * along / (self.width - 1) as f64
    }

    /// Returns the lines along which the value is `level`. A closed line ends where it begins; one around the globe ends a turn further.
    pub(crate) fn lines(&self, level: f64) -> Vec<Vec<Point>> {
        let mut chains = Chains::default();
        let rows = self.points.len() / self.width.max(1);
        for row in 0..rows.saturating_sub(1) {
            for column in 0..self.across {
                for (one, other) in self.crossings(row, column, level).into_iter().flatten() {
                    chains.link(one, other);
                }
            }
        }
        let line = |edges: Vec<Edge>| self.unrolled(edges.into_iter().map(|it| self.at(it, level)));
        chains.into_edges().into_iter().map(line).collect()
    }

    /// Returns the pairs of edges of a square that a line joins.
    fn crossings(&self, row: usize, column: usize, level: f64) -> [Option<(Edge, Edge)>; 2] {
        let next = (column + 1) % self.width;
        let corner = |row: usize, column: usize| row * self.width + column;
        // In turn around the square; edge n is from corner n to the next.
        let corners = [
            corner(row, column),
            corner(row, next),
            corner(row + 1, next),
            corner(row + 1, column),
        ];
        let values = corners.map(|at| self.values[at]);
        if corners.iter().any(|at| !self.values[*at].is_finite() || !finite(self.points[*at])) {
            return [None; 2];
        }
        let is_above = values.map(|value| value >= level);
        let edge = |side: usize| {
            let (one, other) = (corners[side], corners[(side + 1) % 4]);
            (one.min(other), one.max(other))
        };
        let mut crossed = (0..4).filter(|side| is_above[*side] != is_above[(side + 1) % 4]);
        match (crossed.next(), crossed.next(), crossed.next()) {
            (Some(one), Some(other), None) => [Some((edge(one), edge(other))), None],
            (Some(_), ..) => {
                // Quarters, because the sum of huge numbers would be infinite.
                let mean: f64 = values.iter().map(|value| value / 4.0).sum();
                // The lines cut off the corners on the other side of the mean.
                let from = if (mean >= level) == is_above[0] { 0 } else { 3 };
                let pair = |side: usize| Some((edge(side % 4), edge((side + 1) % 4)));
                [pair(from), pair(from + 2)]
            }
            _ => [None; 2],
        }
    }

    /// Returns the point of an edge where the value is `level`.
    fn at(&self, (from, to): Edge, level: f64) -> Point {
        let [low, high, level] = [self.values[from], self.values[to], level].map(|it| it / 2.0);
        let share = (level - low) / (high - low);
        // Halves of the least numbers are equal.
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 };
        let (from, step) =
            (self.points[from], self.metric.step(self.points[from], self.points[to]));
        (from.0 + share * step.0, from.1 + share * step.1)
    }

    /// Continues a line beyond the edge of the map, instead of going back to the other edge.
    fn unrolled(&self, points: impl Iterator<Item = Point>) -> Vec<Point> {
        if !self.metric.wraps() {
            return points.collect();
        }
        let mut line: Vec<Point> = vec![];
        for point in points {
            let next = line.last().map_or(point, |last| {
                let step = self.metric.step(*last, point);
                (last.0 + step.0, last.1 + step.1)
            });
            line.push(next);
        }
        line
    }
}

fn finite(point: Point) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

/// The numbers of two neighbouring points, in ascending order.
type Edge = (usize, usize);

/// Edges that lines join. Each edge is a side of at most two squares, and has as many neighbours.
#[derive(Debug, Default)]
struct Chains {
    neighbors: HashMap<Edge, [Option<Edge>; 2]>,
    /// All edges in the order of the rows, so that pictures of equal rows are equal.
    order: Vec<Edge>,
}

impl Chains {
    fn link(&mut self, one: Edge, other: Edge) {
        for (from, to) in [(one, other), (other, one)] {
            let neighbors = self.neighbors.entry(from).or_default();
            match neighbors {
                [first @ None, _] => {
                    *first = Some(to);
                    self.order.push(from);
                }
                [_, second] => *second = Some(to),
            }
        }
    }

    /// Returns the edges of each line in turn: first of the open lines, then of the closed ones.
    fn into_edges(mut self) -> Vec<Vec<Edge>> {
        let ends = |it: &&Edge| self.neighbors.get(*it).is_some_and(|near| near[1].is_none());
        let open: Vec<Edge> = self.order.iter().filter(ends).copied().collect();
        let starts = open.into_iter().chain(std::mem::take(&mut self.order));
        starts.map(|start| self.chain(start)).filter(|chain| chain.len() > 1).collect()
    }

    /// Takes the edges of the line from a start on.
    fn chain(&mut self, start: Edge) -> Vec<Edge> {
        let mut chain = vec![start];
        let (mut before, mut next) =
            (start, self.neighbors.remove(&start).and_then(|near| near[0]));
        while let Some(edge) = next {
            chain.push(edge);
            let Some(near) = self.neighbors.remove(&edge) else { break };
            next = near.into_iter().flatten().find(|it| *it != before);
            before = edge;
        }
        chain
    }
}
