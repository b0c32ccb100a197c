//! One cell: its outline in the plane of longitudes and latitudes, and the convex pieces that it consists of.
//!
//! ```text
//!    quadrilateral       concave: two        around a pole: the pieces        a corner at a pole:
//!                        triangles           between its edges and 90°        edges follow meridians
//!     3───────2           3                   90 ┬──┬────┬──┬──┐               90 ┌──────┐
//!    ╱       ╱            │╲╲                    │  │  ╱2╲  │  │                  │      │
//!   0───────1             │ 1 ╲ ╲                │ ╱1    ╲3 │ ╱0                  1╲    ╱3
//!                         0─────── 2             0          0                       ╲0╱
//! ```

use super::bounds::{Bounds, turns_to};
use super::convex::Convex;
use crate::region::signed_area;
use crate::sphere::EARTH_RADIUS;

/// Beyond this latitude a place is the pole: it is a tenth of a millimetre away.
const POLE: f64 = 90.0 - 1e-9;

/// Four corners, and one more with two at the pole where the outline goes around the globe.
const MOST_POINTS: usize = 7;

/// The reason why a cell can be covered by no region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// A corner is not known.
    Missing,
    /// It has no area.
    Degenerate,
    /// Its edges cross.
    Crossed,
}

/// The outline of a cell, and its pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// Longitude and latitude of each point, longitudes in the turn of the first. Either way around.
    outline: [[f64; 2]; MOST_POINTS],
    len: usize,
    /// Convex quadrilaterals with the lower left corner of `bounds` as their origin. They turn left,
    /// except those to be taken away.
    pieces: [[[f64; 2]; 4]; 4],
    piece_count: usize,
    area: f64,
    bounds: Bounds,
}

impl Cell {
    /// Returns the cell with these corners, as longitude and latitude, in their order around it.
    pub(super) fn new(corners: [[f64; 2]; 4]) -> Result<Self, Flaw> {
        if !corners.iter().flatten().all(|it| it.is_finite()) {
            return Err(Flaw::Missing);
        }
        let corners = corners
            .map(|[lon, lat]| [lon, if lat.abs() >= POLE { 90f64.copysign(lat) } else { lat }]);
        let at = |pole: f64| corners.iter().filter(|it| it[1] == pole).count();
        match (at(90.0), at(-90.0)) {
            (0, 0) => Self::without_pole(corners),
            (_, 0) => Self::at_pole(corners, 90.0),
            (0, _) => Self::at_pole(corners, -90.0),
            // From pole to pole, only the longitudes of its corners tell where its edges are.
            _ => Self::without_pole(corners),
        }
    }

    fn without_pole(mut corners: [[f64; 2]; 4]) -> Result<Self, Flaw> {
        let [first, .., last] = corners;
        let around = unwrap(&mut corners) + turns_of_step(last[0], first[0]);
        if around == 0.0 {
            return Self::quadrilateral(corners);
        }
        // The edges go around the globe once, and the cell is all beyond them.
        let end = [first[0] + around, first[1]];
        let pole = 90f64.copysign(corners.iter().map(|it| it[1]).sum());
        let chain = [corners[0], corners[1], corners[2], corners[3], end];
        if [[0, 2], [1, 3]].iter().any(|it| cross(&chain, *it)) {
            return Err(Flaw::Crossed);
        }
        Self::beside_pole(&chain, pole)
    }

    /// Returns a cell of which one or more corners are the pole, whose longitudes mean nothing.
    fn at_pole(corners: [[f64; 2]; 4], pole: f64) -> Result<Self, Flaw> {
        let is_pole = |index: usize| corners[index % 4][1] == pole;
        let first = (0..4).find(|it| is_pole(it + 3) && !is_pole(*it)).ok_or(Flaw::Degenerate)?;
        let mut others = [[0.0; 2]; 3];
        let mut len = 0;
        for index in (first..first + 3).take_while(|it| !is_pole(*it)) {
            others[len] = corners[index % 4];
            len += 1;
        }
        if (first + len..first + 4).any(|it| !is_pole(it)) {
            return Err(Flaw::Degenerate);
        }
        unwrap(&mut others[..len]);
        Self::beside_pole(&others[..len], pole)
    }

    /// Returns the cell between a chain of edges and the line of the pole.
    fn beside_pole(chain: &[[f64; 2]], pole: f64) -> Result<Self, Flaw> {
        let [first, .., last] = chain else { return Err(Flaw::Degenerate) };
        let mut outline = [[0.0; 2]; MOST_POINTS];
        outline[..chain.len()].copy_from_slice(chain);
        outline[chain.len()] = [last[0], pole];
        outline[chain.len() + 1] = [first[0], pole];
        let mut pieces = [[[0.0; 2]; 4]; 4];
        for (piece, edge) in pieces.iter_mut().zip(chain.windows(2)) {
            *piece = [edge[0], edge[1], [edge[1][0], pole], [edge[0][0], pole]];
        }
        Self::finish(&outline[..chain.len() + 2], &pieces[..chain.len() - 1])
    }

    fn quadrilateral([a, b, c, d]: [[f64; 2]; 4]) -> Result<Self, Flaw> {
        // One diagonal at least divides a polygon into two triangles that turn the same way.
        let halves = [[[a, b, c], [a, c, d]], [[b, c, d], [b, d, a]]];
        let areas = halves.map(|it| it.map(|it| signed_area(&it)));
        let rounding = 1e-13 * areas.iter().flatten().map(|it| it.abs()).sum::<f64>();
        let divides =
            areas.map(|[one, other]| one * other >= 0.0 || one.abs().min(other.abs()) <= rounding);
        let triangles =
            |[one, other]: [[[f64; 2]; 3]; 2]| [one, other].map(|[a, b, c]| [a, b, c, c]);
        let outline = [a, b, c, d];
        match divides {
            [true, true] => Self::finish(&outline, &[outline]),
            [true, false] => Self::finish(&outline, &triangles(halves[0])),
            [false, true] => Self::finish(&outline, &triangles(halves[1])),
            [false, false] => Err(Flaw::Crossed),
        }
    }

    fn finish(outline: &[[f64; 2]], pieces: &[[[f64; 2]; 4]]) -> Result<Self, Flaw> {
        let bounds = Bounds::around(outline);
        let mut cell = Self {
            outline: [[0.0; 2]; MOST_POINTS],
            len: outline.len(),
            pieces: [[[0.0; 2]; 4]; 4],
            piece_count: pieces.len(),
            area: 0.0,
            bounds,
        };
        cell.outline[..outline.len()].copy_from_slice(outline);
        for (to, from) in cell.pieces.iter_mut().zip(pieces) {
            *to = from.map(|it| [it[0] - bounds.west, it[1] - bounds.south]);
            cell.area += signed_area(&*to);
        }
        if cell.area < 0.0 {
            cell.area = -cell.area;
            cell.pieces[..pieces.len()].iter_mut().for_each(|it| it.reverse());
        }
        // NaN is no area, too.
        if cell.rounding() < 1e-3 { Ok(cell) } else { Err(Flaw::Degenerate) }
    }

    /// The box around the cell.
    pub(super) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Returns the pieces, each with 1 to add or -1 to take it away. Their origin is the lower left corner
    /// of the bounds.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (f64, Convex)> + '_ {
        self.pieces[..self.piece_count].iter().map(|piece| {
            if signed_area(piece) >= 0.0 {
                return (1.0, Convex::new(piece));
            }
            let mut left = *piece;
            left.reverse();
            (-1.0, Convex::new(&left))
        })
    }

    /// The area in square degrees.
    pub(super) fn area(&self) -> f64 {
        self.area
    }

    /// The part of the cell that the rounding of longitudes may hide.
    pub(super) fn rounding(&self) -> f64 {
        let Bounds { west, east, south, north } = self.bounds;
        16.0 * f64::EPSILON * 360.0 * ((east - west) + (north - south)) / self.area
    }

    /// Returns the place by which the rule `centre` judges the cell.
    ///
    /// It is the label, or the mean of the outline's points if there is none within the cell.
    pub(super) fn centre(&self, label: Option<[f64; 2]>) -> [f64; 2] {
        let outline = &self.outline[..self.len];
        let middle = [0, 1].map(|axis| {
            let parts = outline.iter().map(|it| it[axis] - outline[0][axis]);
            outline[0][axis] + parts.sum::<f64>() / outline.len() as f64
        });
        let label = label.map(|[lon, lat]| [lon + turns_to(self.bounds.middle(), lon), lat]);
        label.filter(|it| self.encloses(*it)).unwrap_or(middle)
    }

    /// Whether a place is inside and not on the edge.
    fn encloses(&self, [x, y]: [f64; 2]) -> bool {
        let mut inside = false;
        for index in 0..self.len {
            let (a, b) = (self.outline[index], self.outline[(index + 1) % self.len]);
            let (low, high) = if a[1] <= b[1] { (a, b) } else { (b, a) };
            let side = (high[0] - low[0]) * (y - low[1]) - (high[1] - low[1]) * (x - low[0]);
            let between =
                |axis: usize, at: f64| a[axis].min(b[axis]) <= at && at <= a[axis].max(b[axis]);
            if side == 0.0 && between(0, x) && between(1, y) {
                return false;
            }
            inside ^= low[1] <= y && y < high[1] && side < 0.0;
        }
        inside
    }

    /// Returns the area on the sphere in square metres, within edges that are straight in the plane.
    ///
    /// By Green's theorem it is the integral of the sine of the latitude over the longitude, along the outline.
    /// The sine at one latitude of the cell is taken away before, lest small cells lose digits.
    pub(super) fn area_on_sphere(&self) -> f64 {
        let origin =
            (self.bounds.south + (self.bounds.north - self.bounds.south) / 2.0).to_radians();
        let mut sum = 0.0;
        for index in 0..self.len {
            let (a, b) = (self.outline[index], self.outline[(index + 1) % self.len]);
            let half = ((b[1] - a[1]) / 2.0).to_radians();
            let middle = (a[1] + (b[1] - a[1]) / 2.0).to_radians();
            let above = 2.0 * ((middle + origin) / 2.0).cos() * ((middle - origin) / 2.0).sin();
            sum += (b[0] - a[0]).to_radians() * (above + middle.sin() * sine_ratio_less_1(half));
        }
        EARTH_RADIUS * EARTH_RADIUS * sum.abs()
    }
}

/// Returns `sin(x) / x - 1`.
fn sine_ratio_less_1(x: f64) -> f64 {
    if x.abs() > 0.1 {
        return x.sin() / x - 1.0;
    }
    let square = x * x;
    let terms = [7.0 * 6.0, 9.0 * 8.0, 11.0 * 10.0].iter().rev();
    let rest = terms.fold(1.0, |sum, it| 1.0 - square / it * sum);
    -square / 6.0 * (1.0 - square / 20.0 * rest)
}

/// Brings each longitude to half a turn or less from the one before. Returns the turns of the last one.
///
/// The longitudes as given decide about each step. So the way of half a turn is the same edge for both
/// cells beside it.
fn unwrap(points: &mut [[f64; 2]]) -> f64 {
    let mut turns = 0.0;
    let Some(mut before) = points.first().map(|it| it[0]) else { return turns };
    for point in points {
        turns += turns_of_step(before, point[0]);
        before = point[0];
        point[0] += turns;
    }
    turns
}

/// Returns the turns, in degrees, that make the step between two longitudes one of half a turn or less.
fn turns_of_step(from: f64, to: f64) -> f64 {
    if (to - from).abs() > 180.0 { turns_to(from, to) } else { 0.0 }
}

/// Whether two edges of a chain cross, which may be whole turns apart.
fn cross(chain: &[[f64; 2]; 5], edges: [usize; 2]) -> bool {
    let side = |a: [f64; 2], b: [f64; 2], c: [f64; 2]| signed_area(&[a, b, c]);
    [-360.0, 0.0, 360.0].iter().any(|turn| {
        let [a, b] = [chain[edges[0]], chain[edges[0] + 1]];
        let [c, d] = [chain[edges[1]], chain[edges[1] + 1]].map(|[x, y]| [x + turn, y]);
        side(a, b, c) * side(a, b, d) < 0.0 && side(c, d, a) * side(c, d, b) < 0.0
    })
}
