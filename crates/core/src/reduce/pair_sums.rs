//! [`Pairs`]: the count, means and spreads of pairs of numbers; [`PairSums`]: the sums of which they are made.
//!
//! Sums of squares lose the digits of a small spread around a large mean. So all numbers are taken from the first pair of their
//! group. The first pair is part of the spread, so the mean of n pairs is at most √n standard deviations away from it.
//! The error of a sum grows with the square of that, at most by n. Nothing is divided before the end.

/// The count, the means and the spreads of pairs of numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pairs {
    /// The number of pairs.
    pub count: u64,
    /// The mean of x.
    pub mean_x: f64,
    /// The mean of y.
    pub mean_y: f64,
    /// The sum of the squared distances of x from its mean.
    pub xx: f64,
    /// The sum of the squared distances of y from its mean.
    pub yy: f64,
    /// The sum of the products of both distances.
    pub xy: f64,
}

impl Pairs {
    /// No pair.
    pub const NONE: Self = Self { count: 0, mean_x: 0.0, mean_y: 0.0, xx: 0.0, yy: 0.0, xy: 0.0 };

    /// Makes one pair.
    #[must_use]
    pub fn from_pair(x: f64, y: f64) -> Self {
        // The spread of a single infinite number is NaN.
        let spread = |a: f64, b: f64| (a * 0.0) * (b * 0.0);
        let (xx, yy, xy) = (spread(x, x), spread(y, y), spread(x, y));
        Self { count: 1, mean_x: x, mean_y: y, xx, yy, xy }
    }

    /// Returns the pairs of both, by Chan's formula.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        // The mean of no pair must not count.
        match (self.count, later.count) {
            (0, _) => return later,
            (_, 0) => return self,
            _ => {}
        }
        let (a, b) = (self.count as f64, later.count as f64);
        let count = a + b;
        let (dx, dy) = (later.mean_x - self.mean_x, later.mean_y - self.mean_y);
        let weight = a * b / count;
        Self {
            count: self.count + later.count,
            mean_x: self.mean_x + dx * (b / count),
            mean_y: self.mean_y + dy * (b / count),
            xx: self.xx + later.xx + dx * dx * weight,
            yy: self.yy + later.yy + dy * dy * weight,
            xy: self.xy + later.xy + dx * dy * weight,
        }
    }

    /// Returns the pairs with x and y exchanged.
    #[must_use]
    pub fn swapped(self) -> Self {
        let Self { count, mean_x, mean_y, xx, yy, xy } = self;
        Self { count, mean_x: mean_y, mean_y: mean_x, xx: yy, yy: xx, xy }
    }

    /// Returns the pairs with `y * scale + offset` in place of y.
    pub(super) fn rescaled(self, scale: f64, offset: f64) -> Self {
        Self {
            mean_y: if self.count == 0 { 0.0 } else { self.mean_y * scale + offset },
            yy: self.yy * scale * scale,
            xy: self.xy * scale,
            ..self
        }
    }
}

/// Returns a number from which distances are taken: 0 in place of an infinite one or NaN, from which all distances would be NaN.
#[inline(always)]
pub(super) fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

/// Sums of the distances of pairs from the first one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PairSums {
    /// The number of pairs.
    pub count: u64,
    /// The first x and y.
    pub first: (f64, f64),
    /// The sum of the distances of x.
    pub x: f64,
    /// The sum of the distances of y.
    pub y: f64,
    /// The sum of the squared distances of x.
    pub xx: f64,
    /// The sum of the squared distances of y.
    pub yy: f64,
    /// The sum of the products of both distances.
    pub xy: f64,
}

impl PairSums {
    /// Adds pairs to those before.
    ///
    /// ```
    /// use gridfusion_core::reduce::{PairSums, Pairs};
    ///
    /// let mut sums = PairSums::default();
    /// [(1.0, 5.0), (3.0, 9.0)].iter().for_each(|(x, y)| sums.add(&Pairs::from_pair(*x, *y)));
    /// let pairs = sums.pairs();
    /// assert_eq!((pairs.mean_x, pairs.mean_y, pairs.xy / pairs.xx), (2.0, 7.0, 2.0));
    /// ```
    pub fn add(&mut self, pairs: &Pairs) {
        if pairs.count == 0 {
            return;
        }
        let (x, y) = (pairs.mean_x, pairs.mean_y);
        if self.count == 0 {
            self.first = (finite(x), finite(y));
        }
        let (first_x, first_y) = self.first;
        let (n, dx, dy) = (pairs.count as f64, x - first_x, y - first_y);
        self.count += pairs.count;
        self.x += n * dx;
        self.y += n * dy;
        self.xx += pairs.xx + n * dx * dx;
        self.yy += pairs.yy + n * dy * dy;
        self.xy += pairs.xy + n * dx * dy;
    }

    /// Returns the pairs.
    pub fn pairs(&self) -> Pairs {
        if self.count == 0 {
            return Pairs::NONE;
        }
        let n = self.count as f64;
        let (x, y) = (self.x / n, self.y / n);
        // Rounding must not make a square negative.
        let square = |sum: f64| if sum < 0.0 { 0.0 } else { sum };
        // Infinite numbers have no spread.
        let (no_x, no_y) = (x * 0.0, y * 0.0);
        Pairs {
            count: self.count,
            mean_x: self.first.0 + x,
            mean_y: self.first.1 + y,
            xx: square(self.xx - x * self.x) + no_x,
            yy: square(self.yy - y * self.y) + no_y,
            xy: self.xy - x * self.y + no_x + no_y,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_pairs_are_those_of_all() {
        let all = [(1.0, 5.0), (2.0, 3.0), (4.0, 4.0)].map(|(x, y)| Pairs::from_pair(x, y));
        let [a, b, c] = all;
        let joined = a.and(b).and(c);
        assert_eq!(joined, Pairs::NONE.and(a.and(b.and(c)).and(Pairs::NONE)));
        let expected =
            Pairs { count: 3, mean_x: 7.0 / 3.0, mean_y: 4.0, xx: 14.0 / 3.0, yy: 2.0, xy: -1.0 };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(joined.xx, expected.xx) && near(joined.xy, expected.xy), "{joined:?}");
        assert_eq!(joined.swapped().swapped(), joined);
        assert_eq!(joined.rescaled(-2.0, 1.0).mean_y, -7.0);
    }
}
