//! The check that the rings of a region bound an area: they do not cross, polygons do not overlap, and
//! holes lie inside.
//!
//! A line sweeps from left to right over the edges, and keeps those that it meets in their order from
//! below. In a region, these enter and leave polygons in turn, and the area between two of them belongs
//! to one polygon:
//!
//! ```text
//!     ────────────╲     ← leaves A
//!        ╱──╲      ╲    ← enters A, the hole ends
//!       ╱    ╲      ╲   ← leaves A, the hole begins
//!     ───────────────   ← enters A
//! ```
//!
//! The order changes only where edges begin or end, unless they cross. Edges that cross are neighbours
//! before they do, so it suffices to compare neighbours (Shamos and Hoey, 1976). All signs are exact.
//! Edges that meet at a point or lie upon each other are no fault while the order stays right.

mod blocks;

use std::cmp::Ordering;

use blocks::Blocks;
use gridfusion_core::{Error, Result};

use super::Region;
use super::rings::{Ring, compare, turn};

type Point = [f64; 2];

/// So many edges are searched for one by its number, which is faster than by its place.
const FEW: usize = 64;

/// An edge of a ring, from left to right.
struct Edge {
    left: Point,
    right: Point,
    /// Whether the sweeping line, followed upwards, enters the polygon here.
    enters: bool,
    ring: u32,
    /// The edge before this one in the ring.
    previous: u32,
}

/// Checks a region.
pub(super) fn check(region: &Region) -> Result<()> {
    let (points, edges) = edges_of(region);
    let mut order: Vec<u32> = (0..points.len() as u32).collect();
    order.sort_unstable_by(|a, b| compare(points[*a as usize], points[*b as usize]));

    let mut sweep = Sweep { region, edges: &edges, met: Blocks::default(), at: Vec::new() };
    let mut starting = Vec::new();
    for at_point in order.chunk_by(|a, b| points[*a as usize] == points[*b as usize]) {
        let point = points[at_point[0] as usize];
        let mut ending = None;
        let mut count = 0;
        starting.clear();
        for edge in at_point.iter().flat_map(|it| [edges[*it as usize].previous, *it]) {
            if edges[edge as usize].right == point {
                ending = Some(edge);
                count += 1;
            } else {
                starting.push(edge);
            }
        }
        match (ending, &starting[..]) {
            (Some(from), [to]) if count == 1 && sweep.go_on(point, from, *to)? => {}
            _ => sweep.pass(point, count, &starting)?,
        }
    }
    Ok(())
}

/// Returns the points of all rings, each without those that repeat their neighbour, and the edge that begins
/// at each.
fn edges_of(region: &Region) -> (Vec<Point>, Vec<Edge>) {
    let mut points = Vec::with_capacity(region.points.len());
    let mut edges: Vec<Edge> = Vec::with_capacity(region.points.len());
    for (number, (ring, of_ring)) in region.rings().enumerate() {
        let first = edges.len();
        for pair in of_ring.windows(2) {
            // Minus zero and zero are one number.
            let (a, b) = (pair[0].map(|it| it + 0.0), pair[1].map(|it| it + 0.0));
            let (left, right, rightwards) = match compare(a, b) {
                Ordering::Less => (a, b, true),
                Ordering::Greater => (b, a, false),
                Ordering::Equal => continue,
            };
            let enters = rightwards == (ring.sign > 0.0);
            let previous = (edges.len() as u32).wrapping_sub(1);
            points.push(a);
            edges.push(Edge { left, right, enters, ring: number as u32, previous });
        }
        let last = (edges.len() as u32).wrapping_sub(1);
        if let Some(edge) = edges.get_mut(first) {
            edge.previous = last;
        }
    }
    (points, edges)
}

struct Sweep<'a> {
    region: &'a Region,
    edges: &'a [Edge],
    /// The edges that the line meets, from below.
    met: Blocks,
    /// Edges at one point, kept to spare allocations.
    at: Vec<u32>,
}

impl Sweep<'_> {
    fn edge(&self, index: u32) -> &Edge {
        &self.edges[index as usize]
    }

    fn ring(&self, edge: u32) -> &Ring {
        &self.region.rings[self.edge(edge).ring as usize]
    }

    /// Moves the line over a point at which one edge ends and the next of its ring begins, if no other edge
    /// is there. Returns whether it did.
    fn go_on(&mut self, point: Point, from: u32, to: u32) -> Result<bool> {
        if self.met.len() > FEW {
            return Ok(false);
        }
        let Some(index) = self.met.iter().position(|it| it == from) else { return Ok(false) };
        let side = |index: usize| {
            self.met.get(index).map(|it| turn(self.edge(it).left, self.edge(it).right, point))
        };
        let below = index.checked_sub(1).and_then(side);
        let apart = below.is_none_or(|it| it > 0.0) && side(index + 1).is_none_or(|it| it < 0.0);
        if apart {
            self.met.set(index, to);
            self.check_neighbours(index)?;
            self.check_neighbours(index + 1)?;
        }
        Ok(apart)
    }

    /// Moves the line over a point at which `ending` edges end and `starting` ones begin.
    fn pass(&mut self, point: Point, ending: usize, starting: &[u32]) -> Result<()> {
        let edges = self.edges;
        let side = |it: u32| turn(edges[it as usize].left, edges[it as usize].right, point);
        let low = self.met.partition_point(|it| side(it) > 0.0);
        // Edges that have crossed are in no order.
        let high = self.met.partition_point(|it| side(it) >= 0.0).max(low);
        let mut at = std::mem::take(&mut self.at);
        at.clear();
        let through = |it: &u32| self.edge(*it).right != point;
        at.extend((low..high).filter_map(|it| self.met.get(it)).filter(through));
        if at.len() + ending != high - low {
            // An edge that ends here is not where it should be: it has crossed another.
            return Err(self.lost(point));
        }
        at.extend(starting);
        self.order(point, low, &mut at);
        if at.len() == high - low {
            at.iter().zip(low..).for_each(|(edge, index)| self.met.set(index, *edge));
        } else {
            self.met.replace(low, high, &at);
        }
        let end = low + at.len();
        self.at = at;
        self.check_turns(point, low, end)?;
        self.check_neighbours(low)?;
        if end == low { Ok(()) } else { self.check_neighbours(end) }
    }

    /// Sorts the edges right of a point from below. Edges on one line enter and leave in turn.
    fn order(&self, point: Point, low: usize, at: &mut [u32]) {
        let slope = |a: &u32, b: &u32| {
            0.0.partial_cmp(&turn(point, self.edge(*a).right, self.edge(*b).right))
                .unwrap_or(Ordering::Equal)
        };
        match at {
            [] | [_] => return,
            [a, b] if slope(a, b).is_ne() => {
                if slope(a, b).is_gt() {
                    at.swap(0, 1);
                }
                return;
            }
            _ => at.sort_by(slope),
        }
        let below = low.checked_sub(1).and_then(|it| self.met.get(it));
        let mut inside = below.is_some_and(|it| self.edge(it).enters);
        for line in at.chunk_by_mut(|a, b| slope(a, b).is_eq()) {
            if line.len() > 1 {
                let (enter, leave): (Vec<u32>, Vec<u32>) =
                    line.iter().partition(|it| self.edge(**it).enters);
                let (first, second) = if inside { (leave, enter) } else { (enter, leave) };
                let pairs = first.len().min(second.len());
                let in_turn = first.iter().zip(&second).flat_map(|(a, b)| [*a, *b]);
                let rest = first[pairs..].iter().chain(&second[pairs..]).copied();
                line.iter_mut().zip(in_turn.chain(rest)).for_each(|(to, from)| *to = from);
            }
            inside = line.last().is_some_and(|it| self.edge(*it).enters);
        }
    }

    /// Checks that the edges from `low` to just above `end` enter and leave polygons in turn.
    fn check_turns(&self, point: Point, low: usize, end: usize) -> Result<()> {
        for index in low..self.met.len().min(end + 1) {
            let Some(edge) = self.met.get(index) else { break };
            let below = index.checked_sub(1).and_then(|it| self.met.get(it));
            let enters = self.edge(edge).enters;
            match below {
                None if enters => {}
                None => return Err(self.outside(edge, point)),
                Some(below) if self.edge(below).enters == enters => {
                    return Err(self.crossed(below, edge, point));
                }
                Some(below) if !enters && self.ring(below).polygon != self.ring(edge).polygon => {
                    return Err(self.crossed(below, edge, point));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Checks that the edge at `index` does not cross the one below it.
    fn check_neighbours(&self, index: usize) -> Result<()> {
        let below = index.checked_sub(1).and_then(|it| self.met.get(it));
        let (Some(below), Some(above)) = (below, self.met.get(index)) else { return Ok(()) };
        let (low, high) = (self.edge(below), self.edge(above));
        let crossed = match compare(low.right, high.right) {
            Ordering::Less => turn(high.left, high.right, low.right) > 0.0,
            Ordering::Greater => turn(low.left, low.right, high.right) < 0.0,
            Ordering::Equal => false,
        };
        if crossed { Err(self.crossed(below, above, crossing(low, high))) } else { Ok(()) }
    }

    fn outside(&self, edge: u32, [x, y]: Point) -> Error {
        let ring = self.ring(edge);
        let name = ring.name();
        Error::usage(if ring.is_hole() {
            format!("{name} is not inside its outer ring near ({x}, {y})")
        } else {
            format!("{name} crosses itself near ({x}, {y})")
        })
    }

    fn crossed(&self, a: u32, b: u32, [x, y]: Point) -> Error {
        let (a, b) = if self.edge(a).ring <= self.edge(b).ring { (a, b) } else { (b, a) };
        let same = self.edge(a).ring == self.edge(b).ring;
        let (a, b) = (self.ring(a), self.ring(b));
        let what = match (a.is_hole(), b.is_hole()) {
            _ if same => format!("{} crosses itself", a.name()),
            (false, true) if a.polygon == b.polygon => {
                format!("{} crosses the outer ring", b.name())
            }
            (false, false) => format!("polygons {} and {} overlap", a.polygon + 1, b.polygon + 1),
            _ => format!("{} and {} overlap", a.name(), b.name()),
        };
        Error::usage(format!("{what} near ({x}, {y})"))
    }

    fn lost(&self, point: Point) -> Error {
        let ends = self.met.iter().find(|it| self.edge(*it).right == point);
        match ends {
            Some(edge) => {
                let name = self.ring(edge).name();
                Error::usage(format!("{name} crosses an edge near ({}, {})", point[0], point[1]))
            }
            None => Error::internal("an edge of a region ended that had not begun"),
        }
    }
}

/// Returns about where two edges cross.
fn crossing(a: &Edge, b: &Edge) -> Point {
    let (before, after) = (turn(b.left, b.right, a.left), turn(b.left, b.right, a.right));
    let part = if before == after { 0.5 } else { before / (before - after) };
    [0, 1].map(|it| a.left[it] + part * (a.right[it] - a.left[it]))
}

#[cfg(test)]
mod tests;
