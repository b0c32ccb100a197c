//! The coastlines of the world.

use std::sync::OnceLock;

use crate::frame::Frame;
use crate::scene::{Color, Scene};
use crate::segments::{apart, inside, is_longer};

/// The lines as `plot/data/coastlines.py` wrote them.
const BYTES: &[u8] = include_bytes!("../data/coastlines.bin");

const DARK: Color = Color(40, 40, 45);
const PALE: Color = Color(150, 150, 156);
const LIGHT: Color = Color(240, 240, 240);

/// Points of a coast, as longitude from -180 to 180 and latitude.
type Line = Vec<(f64, f64)>;

/// Draws the coastlines in a map. Over a picture they are dark with a light edge, so that they show on all colours. Otherwise
/// they are pale.
pub(crate) fn draw(scene: &mut Scene, frame: &Frame, is_over: bool) {
    let scale = scene.scale;
    let clip = frame.clip();
    let mut parts = vec![];
    for turn in [-360.0, 0.0, 360.0] {
        for line in lines() {
            let points = line.iter().map(|(x, y)| frame.at(x + turn, *y));
            let points = apart(points, 0.5 * scale);
            if is_longer(&points, 2.0 * scale) {
                parts.extend(inside(&points, clip));
            }
        }
    }
    if is_over {
        for part in &parts {
            scene.path(part.clone(), 2.2 * scale, LIGHT, clip);
        }
    }
    for part in parts {
        scene.path(part, 1.0 * scale, if is_over { DARK } else { PALE }, clip);
    }
}

fn lines() -> &'static [Line] {
    static LINES: OnceLock<Vec<Line>> = OnceLock::new();
    LINES.get_or_init(|| decoded(BYTES).unwrap_or_default())
}

/// Decodes all lines; `None` if the bytes end early.
fn decoded(mut bytes: &[u8]) -> Option<Vec<Line>> {
    let (mut lines, mut x, mut y) = (vec![], 0, 0);
    while !bytes.is_empty() {
        let count = number(&mut bytes)?;
        let mut line = Vec::with_capacity(count.min(bytes.len()));
        for _ in 0..count {
            x += difference(&mut bytes)?;
            y += difference(&mut bytes)?;
            line.push((f64::from(x) / 100.0, f64::from(y) / 100.0));
        }
        lines.push(line);
    }
    Some(lines)
}

fn number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..28).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 127) << shift;
        if *byte < 128 {
            return Some(number);
        }
    }
    None
}

fn difference(bytes: &mut &[u8]) -> Option<i32> {
    let coded = i32::try_from(number(bytes)?).ok()?;
    Some(if coded % 2 == 0 { coded / 2 } else { -(coded / 2) - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Span;
    use crate::column::Values;
    use crate::scene::{Clip, Mark};
    use crate::settings::AxisSettings;

    #[test]
    fn the_world_is_whole() {
        let lines = decoded(BYTES).unwrap();
        assert!(BYTES.len() < 100_000 && lines.len() > 500);
        let points: Vec<_> = lines.iter().flatten().collect();
        assert!(points.iter().all(|at| at.0.abs() <= 180.0 && at.1.abs() <= 90.0));
        let distance = |x: f64, y: f64| {
            let away = points.iter().map(|at| (at.0 - x).hypot(at.1 - y));
            away.fold(f64::MAX, f64::min)
        };
        // Cape Agulhas, Land's End, North Cape, Cape Horn, Cape York, Point Conception.
        for (x, y) in [
            (20.0, -34.8),
            (-5.7, 50.1),
            (25.8, 71.1),
            (-67.3, -56.0),
            (142.5, -10.7),
            (-120.5, 34.5),
        ] {
            assert!(distance(x, y) < 0.5, "{x}, {y}: {}", distance(x, y));
        }
        // The middle of the Pacific and of Siberia.
        assert!(distance(-140.0, 0.0) > 2.0 && distance(90.0, 62.0) > 5.0);
        // The edge of the map is no coast.
        let is_edge = |pair: &[(f64, f64)]| {
            pair.iter().all(|at| at.0.abs() > 179.99) || pair.iter().all(|at| at.1 < -89.9)
        };
        assert!(!lines.iter().any(|line| line.windows(2).any(is_edge)));
        assert_eq!(decoded(&BYTES[..BYTES.len() - 1]), None);
        assert_eq!(decoded(&[255; 9]), None);
    }

    /// Both kinds of longitudes have the same coasts, and none are outside the frame.
    #[test]
    fn longitudes_may_be_from_0_or_from_minus_180() {
        let drawn = |from: f64, to: f64| {
            let settings = AxisSettings::default();
            let span = |low, high| {
                Span::new(String::new(), &Values::Numbers, (low, high), &settings, false).unwrap()
            };
            let area = Clip { left: 100.0, right: 500.0, top: 50.0, bottom: 250.0 };
            crate::scene::load_fonts().unwrap();
            let frame = Frame::new(area, &span(from, to), &span(30.0, 60.0), 1.0);
            let mut scene = Scene::new(600, 300, 1.0);
            draw(&mut scene, &frame, false);
            let marks = scene.marks.into_iter().map(|mark| match mark {
                Mark::Path { points, .. } => points,
                other => panic!("{other:?}"),
            });
            let marks: Vec<Vec<(f64, f64)>> = marks.collect();
            let is_inside =
                |at: &(f64, f64)| (99.9..500.1).contains(&at.0) && (49.9..250.1).contains(&at.1);
            assert!(marks.iter().flatten().all(is_inside));
            marks
        };
        let (west, east) = (drawn(-130.0, -110.0), drawn(230.0, 250.0));
        assert!(!west.is_empty() && west.len() == east.len());
        let near = |one: &(f64, f64), other: &(f64, f64)| (one.0 - other.0).abs() < 1e-6;
        let pairs = west.iter().flatten().zip(east.iter().flatten());
        assert!(pairs.into_iter().all(|(one, other)| near(one, other)));
    }
}
