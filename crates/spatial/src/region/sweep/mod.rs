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

use std::cmp::Ordering;

use gridfusion_core::{Error, Result};

use super::Region;
use super::rings::{Ring, compare, turn};

/// An edge of a ring, from left to right.
struct Edge {
    left: [f64; 2],
    right: [f64; 2],
    /// Whether the sweeping line, followed upwards, enters the polygon here.
    enters: bool,
    ring: u32,
}

/// Checks a region.
pub(super) fn check(region: &Region) -> Result<()> {
    let edges = edges_of(region);
    let mut sweep = Sweep { region, edges: &edges, met: Vec::new(), at: Vec::new() };
    let mut starts: Vec<u32> = (0..edges.len() as u32).collect();
    let mut ends = starts.clone();
    starts.sort_unstable_by(|a, b| compare(edges[*a as usize].left, edges[*b as usize].left));
    ends.sort_unstable_by(|a, b| compare(edges[*a as usize].right, edges[*b as usize].right));

    let (mut starts, mut ends) = (&starts[..], &ends[..]);
    while let Some(end) = ends.first() {
        let end = edges[*end as usize].right;
        let start = starts.first().map(|it| edges[*it as usize].left);
        let point = start.filter(|it| compare(*it, end).is_lt()).unwrap_or(end);
        let is_here = |it: [f64; 2]| compare(it, point).is_eq();
        let ending = ends.iter().take_while(|it| is_here(edges[**it as usize].right)).count();
        let starting = starts.iter().take_while(|it| is_here(edges[**it as usize].left)).count();
        sweep.pass(point, ending, &starts[..starting])?;
        (starts, ends) = (&starts[starting..], &ends[ending..]);
    }
    Ok(())
}

fn edges_of(region: &Region) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(region.points.len());
    for (number, (ring, points)) in region.rings().enumerate() {
        for pair in points.windows(2) {
            // Minus zero and zero are one number.
            let (a, b) = (pair[0].map(|it| it + 0.0), pair[1].map(|it| it + 0.0));
            let (left, right, rightwards) = match compare(a, b) {
                Ordering::Less => (a, b, true),
                Ordering::Greater => (b, a, false),
                Ordering::Equal => continue,
            };
            let enters = rightwards == (ring.sign > 0.0);
            edges.push(Edge { left, right, enters, ring: number as u32 });
        }
    }
    edges
}

struct Sweep<'a> {
    region: &'a Region,
    edges: &'a [Edge],
    /// The edges that the line meets, from below.
    met: Vec<u32>,
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

    /// Moves the line over a point at which `ending` edges end and `starting` ones begin.
    fn pass(&mut self, point: [f64; 2], ending: usize, starting: &[u32]) -> Result<()> {
        let edges = self.edges;
        let side = |it: &u32| turn(edges[*it as usize].left, edges[*it as usize].right, point);
        let low = self.met.partition_point(|it| side(it) > 0.0);
        let high = low + self.met[low..].partition_point(|it| side(it) == 0.0);
        let mut at = std::mem::take(&mut self.at);
        at.clear();
        let through = |it: &&u32| compare(self.edge(**it).right, point).is_ne();
        at.extend(self.met[low..high].iter().filter(through));
        if at.len() + ending != high - low {
            // An edge that ends here is not where it should be: it has crossed another.
            return Err(self.lost(point));
        }
        at.extend(starting);
        self.order(point, low, &mut at);
        if at.len() == high - low {
            self.met[low..high].copy_from_slice(&at);
        } else {
            self.met.splice(low..high, at.iter().copied());
        }
        let end = low + at.len();
        self.at = at;
        self.check_turns(point, low, end)?;
        self.check_neighbours(low)?;
        if end == low { Ok(()) } else { self.check_neighbours(end) }
    }

    /// Sorts the edges right of a point from below. Edges on one line enter and leave in turn.
    fn order(&self, point: [f64; 2], low: usize, at: &mut [u32]) {
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
        let mut inside = low > 0 && self.edge(self.met[low - 1]).enters;
        for index in 0..at.len() {
            let same = at[index..].iter().take_while(|it| slope(&at[index], it).is_eq());
            let wanted = same.enumerate().find(|(_, it)| self.edge(**it).enters != inside);
            if let Some((offset, _)) = wanted {
                at.swap(index, index + offset);
            }
            inside = self.edge(at[index]).enters;
        }
    }

    /// Checks that the edges from `low` to just above `end` enter and leave polygons in turn.
    fn check_turns(&self, point: [f64; 2], low: usize, end: usize) -> Result<()> {
        for index in low..self.met.len().min(end + 1) {
            let edge = self.met[index];
            let below = index.checked_sub(1).map(|it| self.met[it]);
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
        if index == 0 || index >= self.met.len() {
            return Ok(());
        }
        let (below, above) = (self.met[index - 1], self.met[index]);
        let (low, high) = (self.edge(below), self.edge(above));
        let crossed = match compare(low.right, high.right) {
            Ordering::Less => turn(high.left, high.right, low.right) > 0.0,
            Ordering::Greater => turn(low.left, low.right, high.right) < 0.0,
            Ordering::Equal => false,
        };
        if crossed { Err(self.crossed(below, above, crossing(low, high))) } else { Ok(()) }
    }

    fn outside(&self, edge: u32, [x, y]: [f64; 2]) -> Error {
        let ring = self.ring(edge);
        let name = ring.name();
        Error::usage(if ring.is_hole() {
            format!("{name} is not inside its outer ring near ({x}, {y})")
        } else {
            format!("{name} crosses itself near ({x}, {y})")
        })
    }

    fn crossed(&self, a: u32, b: u32, [x, y]: [f64; 2]) -> Error {
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

    fn lost(&self, point: [f64; 2]) -> Error {
        let ends = self.met.iter().find(|it| self.edge(**it).right == point);
        match ends {
            Some(edge) => {
                let name = self.ring(*edge).name();
                Error::usage(format!("{name} crosses an edge near ({}, {})", point[0], point[1]))
            }
            None => Error::internal("an edge of a region ended that had not begun"),
        }
    }
}

/// Returns about where two edges cross.
fn crossing(a: &Edge, b: &Edge) -> [f64; 2] {
    let (before, after) = (turn(b.left, b.right, a.left), turn(b.left, b.right, a.right));
    let part = if before == after { 0.5 } else { before / (before - after) };
    [0, 1].map(|it| a.left[it] + part * (a.right[it] - a.left[it]))
}

#[cfg(test)]
mod tests;
