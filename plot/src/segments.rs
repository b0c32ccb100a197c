//! Lines cut at the frame, and without what does not show.

use crate::scene::Clip;

/// Returns the parts of a line that are in an area. A line that never leaves it is one part.
pub(crate) fn inside(points: &[(f64, f64)], clip: Clip) -> Vec<Vec<(f64, f64)>> {
    let mut parts: Vec<Vec<(f64, f64)>> = vec![];
    let mut is_open = false;
    for pair in points.windows(2) {
        let Some((from, to)) = cut(pair[0], pair[1], clip) else {
            is_open = false;
            continue;
        };
        match parts.last_mut().filter(|_| is_open && from == pair[0]) {
            Some(part) => part.push(to),
            None => parts.push(vec![from, to]),
        }
        is_open = to == pair[1];
    }
    parts
}

/// Returns the part of a line between two points that is in an area.
fn cut(from: (f64, f64), to: (f64, f64), clip: Clip) -> Option<((f64, f64), (f64, f64))> {
    let (along, up) = (to.0 - from.0, to.1 - from.1);
    let (mut start, mut end) = (0.0_f64, 1.0_f64);
    for (step, room) in [
        (-along, from.0 - clip.left),
        (along, clip.right - from.0),
        (-up, from.1 - clip.top),
        (up, clip.bottom - from.1),
    ] {
        if step == 0.0 && room < 0.0 || step.is_nan() || room.is_nan() {
            return None;
        } else if step < 0.0 {
            start = start.max(room / step);
        } else if step > 0.0 {
            end = end.min(room / step);
        }
    }
    let at = |share: f64| (from.0 + share * along, from.1 + share * up);
    let first = if start > 0.0 { at(start) } else { from };
    let last = if end < 1.0 { at(end) } else { to };
    (start <= end).then_some((first, last))
}

/// Whether a line is longer than a speck of `least` pixels.
pub(crate) fn is_longer(points: &[(f64, f64)], least: f64) -> bool {
    let first = points.first();
    first.is_some_and(|first| {
        points.iter().any(|at| (at.0 - first.0).abs().max((at.1 - first.1).abs()) >= least)
    })
}

/// Leaves out points that are nearer than `least` pixels to the one before.
pub(crate) fn apart(points: impl Iterator<Item = (f64, f64)>, least: f64) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = vec![];
    let mut last = None;
    for point in points {
        let is_near = |it: &(f64, f64)| (it.0 - point.0).hypot(it.1 - point.1) < least;
        last = Some(point);
        if !kept.last().is_some_and(is_near) {
            kept.push(point);
        }
    }
    kept.extend(last.filter(|last| kept.last() != Some(last)));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_frame() {
        let clip = Clip { left: 0.0, right: 10.0, top: 0.0, bottom: 10.0 };
        let within = [(1.0, 1.0), (9.0, 2.0), (5.0, 10.0)];
        assert_eq!(inside(&within, clip), [within.to_vec()]);
        let through = [(-5.0, 5.0), (5.0, 5.0), (5.0, 15.0), (8.0, 15.0), (8.0, 5.0)];
        let parts = [vec![(0.0, 5.0), (5.0, 5.0), (5.0, 10.0)], vec![(8.0, 10.0), (8.0, 5.0)]];
        assert_eq!(inside(&through, clip), parts);
        let touching = [(-4.0, 5.0), (0.0, 5.0), (4.0, 5.0), (10.0, 5.0), (14.0, 5.0)];
        let parts = inside(&touching, clip);
        assert!(parts.iter().flatten().all(|at| (0.0..=10.0).contains(&at.0)), "{parts:?}");
        assert_eq!(inside(&[(-5.0, -1.0), (20.0, -1.0)], clip), Vec::<Vec<_>>::new());
        assert_eq!(inside(&[(1.0, 1.0)], clip), Vec::<Vec<_>>::new());
        assert!(inside(&[(f64::NAN, 1.0), (2.0, f64::INFINITY)], clip).is_empty());
    }
}
