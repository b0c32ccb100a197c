//! Rings as they are read, one after another, into the points of a region.

use std::cmp::Ordering;
use std::ops::Range;

use gridfusion_core::{Error, Result};
use robust::{Coord, orient2d};

use super::Region;

/// Beyond this, products of coordinates overflow.
const LARGEST: f64 = 1e100;

/// One ring of a region: which polygon it belongs to, and which way it turns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ring {
    start: usize,
    end: usize,
    /// The number of the polygon in the region, from 0.
    pub(crate) polygon: usize,
    /// 0 is the outer ring, and the others are holes.
    pub(crate) number: usize,
    /// -1 for rings to walk backwards, so that outer rings turn left and holes turn right.
    pub(crate) sign: f64,
    /// Whether the region has one polygon, which needs no number.
    alone: bool,
}

impl Ring {
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    pub(crate) fn is_hole(&self) -> bool {
        self.number > 0
    }

    /// Names the ring for errors, as `hole 1 of polygon 2`.
    pub(crate) fn name(&self) -> String {
        let ring = match self.number {
            0 => "the outer ring".to_owned(),
            number => format!("hole {number}"),
        };
        if self.alone { ring } else { format!("{ring} of polygon {}", self.polygon + 1) }
    }

    /// Returns the ring of a copy, `offset` points and `polygons` polygons behind.
    pub(crate) fn moved(&self, offset: usize, polygons: usize) -> Self {
        Self {
            start: self.start + offset,
            end: self.end + offset,
            polygon: self.polygon + polygons,
            ..self.clone()
        }
    }
}

/// Takes the points of rings, and then checks them.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    points: Vec<[f64; 2]>,
    rings: Vec<Ring>,
    polygons: usize,
}

impl Builder {
    /// Begins a polygon, whose rings follow.
    pub(crate) fn begin_polygon(&mut self) {
        self.polygons += 1;
    }

    /// Begins a ring of the last polygon, whose points follow.
    pub(crate) fn begin_ring(&mut self) {
        let polygon = self.polygons.saturating_sub(1);
        let number = match self.rings.last() {
            Some(last) if last.polygon == polygon => last.number + 1,
            _ => 0,
        };
        let start = self.points.len();
        self.rings.push(Ring { start, end: start, polygon, number, sign: 1.0, alone: false });
    }

    /// Adds a point `x, y` to the last ring.
    pub(crate) fn push(&mut self, point: [f64; 2]) {
        self.points.push(point);
        if let Some(ring) = self.rings.last_mut() {
            ring.end = self.points.len();
        }
    }

    /// Returns the region of the rings, if they are closed and do not cross.
    pub(crate) fn finish(mut self) -> Result<Region> {
        if u32::try_from(self.points.len()).is_err() {
            return Err(Error::unsupported(format!(
                "a region of {} points; it may have 4294967295",
                self.points.len()
            )));
        }
        let alone = self.polygons == 1;
        let mut rings = Vec::with_capacity(self.rings.len());
        for index in 0..self.rings.len() {
            let next_is_hole = self.rings.get(index + 1).is_some_and(Ring::is_hole);
            let ring = &mut self.rings[index];
            ring.alone = alone;
            let points = &self.points[ring.range()];
            if points.is_empty() && !ring.is_hole() {
                if next_is_hole {
                    let name = ring.name();
                    return Err(Error::usage(format!(
                        "{name} has no points, but the polygon has a hole"
                    )));
                }
                continue;
            }
            check(ring, points)?;
            ring.sign = if ring.is_hole() { -orientation(points) } else { orientation(points) };
            rings.push(ring.clone());
        }
        Region::try_new(self.points, rings)
    }
}

/// Checks the points of one ring.
fn check(ring: &Ring, points: &[[f64; 2]]) -> Result<()> {
    let name = ring.name();
    if let Some(index) = points.iter().position(|[x, y]| !(x.is_finite() && y.is_finite())) {
        let [x, y] = points[index];
        return Err(Error::usage(format!(
            "point {} of {name} is ({x}, {y}), and coordinates are finite numbers",
            index + 1
        )));
    }
    if let Some([x, y]) = points.iter().find(|[x, y]| x.abs().max(y.abs()) > LARGEST) {
        return Err(Error::usage(format!("({x}, {y}) of {name} is too far away: beyond 1e100")));
    }
    if points.len() < 4 {
        return Err(Error::usage(format!(
            "{name} has {} points, and a ring needs 4, the last of which is the first again",
            points.len()
        )));
    }
    let ([x, y], [last_x, last_y]) = (points[0], points[points.len() - 1]);
    if [x, y] != [last_x, last_y] {
        return Err(Error::usage(format!(
            "{name} is open: it begins at ({x}, {y}) and ends at ({last_x}, {last_y}); \
             repeat its first point at its end"
        )));
    }
    Ok(())
}

/// Returns the area of a ring, which is negative if it turns right. Its first point may be repeated or not.
pub(crate) fn signed_area(points: &[[f64; 2]]) -> f64 {
    let Some([x0, y0]) = points.first() else { return 0.0 };
    let cross = |it: &[[f64; 2]]| {
        let ([ax, ay], [bx, by]) = (it[0], it[1]);
        (ax - x0) * (by - y0) - (bx - x0) * (ay - y0)
    };
    points.windows(2).map(cross).sum::<f64>() / 2.0
}

/// Returns 1 for a ring that turns left, else -1.
///
/// The turn at the lowest left point decides, which is exact, also for slivers and for rings that cross.
/// If the ring passes it twice or returns on the same line, its area decides.
fn orientation(points: &[[f64; 2]]) -> f64 {
    let corner = match corner_turn(points) {
        0.0 => signed_area(points),
        turn => turn,
    };
    if corner < 0.0 { -1.0 } else { 1.0 }
}

/// Returns the turn at the least point of a ring; 0 if there is none or more than one.
fn corner_turn(points: &[[f64; 2]]) -> f64 {
    let open = &points[..points.len() - 1];
    let corner = (0..open.len()).min_by(|a, b| compare(open[*a], open[*b])).unwrap_or(0);
    let (before, after) = open.split_at(corner);
    let again = after[1..].iter().chain(before).filter(|it| **it == open[corner]).count();
    let next = after[1..].iter().chain(before).next();
    let previous = before.iter().rev().chain(after.iter().rev()).next();
    match (previous, next) {
        (Some(previous), Some(next)) if again == 0 => turn(*previous, open[corner], *next),
        _ => 0.0,
    }
}

/// Orders points from left to right, and on one meridian from below.
pub(crate) fn compare(a: [f64; 2], b: [f64; 2]) -> Ordering {
    a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
}

/// Returns a positive number if `c` lies left of the line from `a` to `b`, and exactly 0 on it.
pub(crate) fn turn(a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> f64 {
    let coord = |[x, y]: [f64; 2]| Coord { x, y };
    orient2d(coord(a), coord(b), coord(c))
}
