//! Convex polygons, and the parts of them on one side of a line.

use crate::region::signed_area;

/// A quadrilateral and three cuts have at most 7 points. The others are for angles that rounding turns
/// outwards.
const MOST_POINTS: usize = 12;

/// A convex polygon of few points, which turns left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Convex {
    points: [[f64; 2]; MOST_POINTS],
    len: usize,
}

impl Convex {
    pub(super) fn new(points: &[[f64; 2]]) -> Self {
        let mut polygon = Self { points: [[0.0; 2]; MOST_POINTS], len: 0 };
        points.iter().for_each(|it| polygon.push(*it));
        polygon
    }

    fn push(&mut self, point: [f64; 2]) {
        // More points than these are less than a rounding apart.
        if let Some(place) = self.points.get_mut(self.len) {
            *place = point;
            self.len += 1;
        }
    }

    /// Returns the area, which is negative for points that turn right.
    pub(super) fn area(&self) -> f64 {
        signed_area(&self.points[..self.len])
    }

    /// Returns the part in which `depth` is positive. It must be a linear function of the place.
    pub(super) fn cut(&self, depth: impl Fn([f64; 2]) -> f64) -> Self {
        let mut part = Self { points: [[0.0; 2]; MOST_POINTS], len: 0 };
        let Some(mut start) = self.points[..self.len].last().copied() else { return part };
        let mut start_depth = depth(start);
        for &end in &self.points[..self.len] {
            let end_depth = depth(end);
            if (start_depth > 0.0) != (end_depth > 0.0) {
                let way = start_depth / (start_depth - end_depth);
                part.push([0, 1].map(|it| start[it] + way * (end[it] - start[it])));
            }
            if end_depth > 0.0 {
                part.push(end);
            }
            (start, start_depth) = (end, end_depth);
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_square() {
        let square = Convex::new(&[[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]);
        assert_eq!(square.area(), 4.0);
        assert_eq!(square.cut(|it| it[0] - 0.5).area(), 3.0);
        assert_eq!(square.cut(|it| it[0] + it[1] - 1.0).area(), 3.5);
        assert_eq!(square.cut(|it| it[0] + it[1] - 1.0).cut(|it| 1.0 - it[1]).area(), 1.5);
        assert_eq!(square.cut(|it| it[0] - 2.0).area(), 0.0);
        assert_eq!(square.cut(|it| it[0]).area(), 4.0);
        assert_eq!(square.cut(|_| -1.0).cut(|it| it[0]).area(), 0.0);
    }
}
