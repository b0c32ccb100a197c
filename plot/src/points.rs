//! Points that are coloured by a value, and the size of points.

use crate::column::Column;
use crate::frame::Frame;
use crate::key::Key;
use crate::scene::Scene;

/// Returns the radius of points of which so many are in a frame, in pixels. Many points are small, so that they do not hide each
/// other, and few are large.
pub(crate) fn radius(frame: &Frame, count: usize, scale: f64) -> f64 {
    let ((left, right), (top, bottom)) = (frame.width(), frame.height());
    let room = (right - left) * (bottom - top) / count.max(1) as f64;
    (room.sqrt() * 0.4).clamp(0.9 * scale, 3.0 * scale)
}

/// Draws a point per row that has x, y and a value, and returns the number of points.
pub(crate) fn draw(
    scene: &mut Scene,
    frame: &Frame,
    key: &Key,
    [x, y, value]: [&Column; 3],
) -> usize {
    let radius = radius(frame, x.data.len(), scene.scale);
    let mut drawn = 0;
    for ((x, y), value) in x.data.iter().zip(&y.data).zip(&value.data) {
        if let Some(color) = key.color(*value).filter(|_| frame.holds(*x, *y)) {
            scene.dot(frame.at(*x, *y), radius, color);
            drawn += 1;
        }
    }
    drawn
}
