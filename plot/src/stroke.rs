//! Lines as pixels: each part of a line covers what is nearer to it than half of its width.
//!
//! ```text
//!   plotters' mitres at a sharp corner       round joins
//!         ╱╲    above the greatest value
//!        ╱╱╲╲                                    ╭╮
//!       ╱╱  ╲╲                                  ╱╱╲╲
//! ```
//!
//! So a line goes beyond its points by half of its width at most, and never beyond the clip.

use crate::scene::Clip;

/// A run of pixels in one column: those from `top` up to, but without, `bottom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PixelRun {
    pub(crate) x: i32,
    pub(crate) top: i32,
    pub(crate) bottom: i32,
}

/// Returns the pixels whose centres a line between two points covers, a run per column.
pub(crate) fn runs(
    from: (f64, f64),
    to: (f64, f64),
    width: f64,
    clip: Clip,
) -> impl Iterator<Item = PixelRun> {
    let radius = width / 2.0;
    let (left, right) = (from.0.min(to.0) - radius, from.0.max(to.0) + radius);
    let columns = pixels(left.max(clip.left), right.min(clip.right));
    columns.filter_map(move |x| {
        let (low, high) = covered(from, to, radius, f64::from(x) + 0.5)?;
        let rows = pixels(low.max(clip.top), high.min(clip.bottom));
        (!rows.is_empty()).then_some(PixelRun { x, top: rows.start, bottom: rows.end })
    })
}

/// Returns the pixels with centres between two places.
pub(crate) fn pixels(from: f64, to: f64) -> std::ops::Range<i32> {
    (from - 0.5).ceil() as i32..((to - 0.5).floor() as i32).saturating_add(1)
}

/// Returns the lowest and highest place at `x` that is at most `radius` away from a line; `None` if there is none. These places
/// have no gap, because the area around a line is convex.
fn covered(from: (f64, f64), to: (f64, f64), radius: f64, x: f64) -> Option<(f64, f64)> {
    let mut found: Option<(f64, f64)> = None;
    let mut add = |y: f64| {
        let (low, high) = found.unwrap_or((y, y));
        found = Some((low.min(y), high.max(y)));
    };
    for end in [from, to] {
        let across = x - end.0;
        if across.abs() <= radius {
            let up = (radius * radius - across * across).sqrt();
            add(end.1 - up);
            add(end.1 + up);
        }
    }
    let (along, up) = (to.0 - from.0, to.1 - from.1);
    let length = along.hypot(up);
    if length > 0.0 {
        // The two edges of the line, beside it.
        let beside = (-up / length * radius, along / length * radius);
        for side in [-1.0, 1.0] {
            let (start, end) = (from.0 + side * beside.0, to.0 + side * beside.0);
            if along != 0.0 && (start.min(end)..=start.max(end)).contains(&x) {
                add(from.1 + side * beside.1 + (x - start) / along * up);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIP: Clip = Clip { left: 0.0, right: 20.0, top: 0.0, bottom: 20.0 };

    /// Compares the runs with the distance of each pixel.
    #[test]
    fn pixels_near_the_line_are_covered() {
        for (from, to, width) in [
            ((3.0, 4.0), (17.0, 9.0), 3.0),
            ((5.5, 2.0), (5.5, 18.0), 2.0),
            ((2.0, 15.5), (15.0, 15.5), 1.0),
            ((8.0, 8.0), (8.0, 8.0), 6.0),
            ((10.0, 19.0), (9.0, -40.0), 4.0),
            ((-30.0, 3.0), (50.0, 12.0), 2.5),
        ] {
            let runs: Vec<PixelRun> = runs(from, to, width, CLIP).collect();
            for (x, y) in (-5..25).flat_map(|x| (-5..25).map(move |y| (x, y))) {
                let at = (f64::from(x) + 0.5, f64::from(y) + 0.5);
                let (along, up) = (to.0 - from.0, to.1 - from.1);
                let square = (along * along + up * up).max(f64::MIN_POSITIVE);
                let share = ((at.0 - from.0) * along + (at.1 - from.1) * up) / square;
                let share = share.clamp(0.0, 1.0);
                let near = (from.0 + share * along, from.1 + share * up);
                let away = (at.0 - near.0).hypot(at.1 - near.1);
                let is_inside = (0..20).contains(&x) && (0..20).contains(&y);
                let is_covered =
                    runs.iter().any(|it| it.x == x && (it.top..it.bottom).contains(&y));
                if (away - width / 2.0).abs() > 1e-9 {
                    assert_eq!(is_covered, is_inside && away < width / 2.0, "{x}, {y}: {away}");
                }
            }
        }
    }
}
