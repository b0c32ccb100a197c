//! Polygons: cut at the frame, and as pixels.

use crate::scene::Clip;
use crate::stroke::PixelRun;

/// Returns the part of a convex polygon that is in an area; empty if there is none.
pub(crate) fn clipped(points: &[(f64, f64)], clip: Clip) -> Vec<(f64, f64)> {
    let Clip { left, right, top, bottom } = clip;
    let inside = |(x, y): (f64, f64)| (left..=right).contains(&x) && (top..=bottom).contains(&y);
    if points.iter().all(|at| inside(*at)) {
        return points.to_vec();
    }
    // How far a point is inside of each side.
    let sides: [&dyn Fn((f64, f64)) -> f64; 4] =
        [&|at| at.0 - left, &|at| right - at.0, &|at| at.1 - top, &|at| bottom - at.1];
    let mut kept = points.to_vec();
    for inward in sides {
        let mut next = Vec::with_capacity(kept.len() + 1);
        for (number, one) in kept.iter().enumerate() {
            let other = kept[(number + 1) % kept.len()];
            let (from, to) = (inward(*one), inward(other));
            if from >= 0.0 {
                next.push(*one);
            }
            if (from < 0.0) != (to < 0.0) {
                let share = from / (from - to);
                next.push((one.0 + share * (other.0 - one.0), one.1 + share * (other.1 - one.1)));
            }
        }
        kept = next;
    }
    kept
}

/// Returns the pixels whose centres are in a convex polygon, a run per column. Polygons that share a side have no pixel in
/// common, and leave none between them.
pub(crate) fn runs(points: &[(f64, f64)]) -> impl Iterator<Item = PixelRun> {
    let least = points.iter().map(|at| at.0).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|at| at.0).fold(f64::NEG_INFINITY, f64::max);
    columns(least, most).filter_map(move |x| {
        let across = f64::from(x) + 0.5;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (number, one) in points.iter().enumerate() {
            let other = points[(number + 1) % points.len()];
            // The same order for both polygons at a side gives both the same place.
            let (from, to) = if one.0 <= other.0 { (*one, other) } else { (other, *one) };
            if from.0 <= across && across < to.0 {
                let y = from.1 + (across - from.0) / (to.0 - from.0) * (to.1 - from.1);
                (low, high) = (low.min(y), high.max(y));
            }
        }
        let rows = columns(low, high);
        (!rows.is_empty()).then_some(PixelRun { x, top: rows.start, bottom: rows.end })
    })
}

/// Returns the pixels with centres from one place up to, but without, another.
fn columns(from: f64, to: f64) -> std::ops::Range<i32> {
    let first = |at: f64| (at - 0.5).ceil() as i32;
    if from < to { first(from)..first(to) } else { 0..0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_no_pixel_and_leave_none() {
        // A lattice of 9 × 7 skewed cells covers each pixel in its middle once.
        let corner = |row: i32, column: i32| {
            let (x, y) = (f64::from(column) * 5.3, f64::from(row) * 4.1);
            (x + y * 0.4 + 3.0, y - x * 0.2 + 12.0 + (x * 0.3).sin())
        };
        let mut hits = std::collections::HashMap::new();
        for (row, column) in (0..7).flat_map(|row| (0..9).map(move |column| (row, column))) {
            let cell = [(0, 0), (0, 1), (1, 1), (1, 0)].map(|(y, x)| corner(row + y, column + x));
            for run in runs(&cell) {
                (run.top..run.bottom).for_each(|y| *hits.entry((run.x, y)).or_insert(0) += 1);
            }
        }
        assert!(hits.values().all(|count| *count == 1), "{hits:?}");
        let middle = (15..40).flat_map(|x| (14..22).map(move |y| (x, y)));
        assert!(middle.clone().all(|at| hits.contains_key(&at)), "{hits:?}");
    }

    #[test]
    fn polygons_are_cut_at_the_frame() {
        let clip = Clip { left: 0.0, right: 10.0, top: 0.0, bottom: 10.0 };
        let area = |points: &[(f64, f64)]| {
            let next = points.iter().cycle().skip(1);
            let sum: f64 = points.iter().zip(next).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum();
            (sum / 2.0).abs()
        };
        for (points, expected) in [
            ([(2.0, 2.0), (4.0, 2.0), (4.0, 4.0), (2.0, 4.0)], 4.0),
            ([(-5.0, -5.0), (5.0, -5.0), (5.0, 5.0), (-5.0, 5.0)], 25.0),
            ([(-50.0, -50.0), (50.0, -50.0), (50.0, 50.0), (-50.0, 50.0)], 100.0),
            ([(5.0, -5.0), (15.0, 5.0), (5.0, 15.0), (-5.0, 5.0)], 100.0),
            ([(20.0, 20.0), (30.0, 20.0), (30.0, 30.0), (20.0, 30.0)], 0.0),
        ] {
            assert!((area(&clipped(&points, clip)) - expected).abs() < 1e-9, "{points:?}");
        }
        let nothing = [(f64::NAN, 1.0), (2.0, f64::NAN), (3.0, 3.0), (1.0, 3.0)];
        assert!(runs(&clipped(&nothing, clip)).count() < 20);
    }
}
