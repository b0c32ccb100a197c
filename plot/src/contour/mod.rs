//! Contour lines over the cells of a heat map, with labels.
//!
//! ```text
//!   cells ──▶ field: lines by marching squares ──▶ Contours: lines in pixels ──▶ labels
//! ```
//!
//! A line has a colour that contrasts with the colour of its value, because cells of this colour are beside it.

mod field;
mod grid;
mod labels;
#[cfg(test)]
mod tests;

pub(crate) use field::Field;

use self::labels::LabelRoom;
use crate::colors::over;
use crate::frame::{Frame, LABEL};
use crate::key::Key;
use crate::scene::{Anchor, Font, Scene};
use crate::segments::{apart, inside, is_longer};
use crate::settings::Scale;

/// The lines of all levels in the pixels of a frame.
#[derive(Debug, Default)]
pub(crate) struct ContourLines {
    /// The number of a level, and the points of a line.
    lines: Vec<(usize, Vec<(f64, f64)>)>,
}

impl ContourLines {
    /// Finds the lines of a field, whose points are places on these scales. On a map, lines show at all turns around the globe.
    pub(crate) fn new(
        field: &Field,
        key: &Key,
        frame: &Frame,
        (across, up): (Scale, Scale),
        is_map: bool,
        scale: f64,
    ) -> Self {
        let turns: &[f64] = if is_map { &[-360.0, 0.0, 360.0] } else { &[0.0] };
        let mut lines = vec![];
        for (number, level) in key.contours.iter().enumerate() {
            for line in field.lines(key.place(level.at)) {
                for turn in turns {
                    let places = line.iter().map(|(x, y)| (across.value(*x) + turn, up.value(*y)));
                    let points = apart(places.map(|(x, y)| frame.at(x, y)), 0.5 * scale);
                    if is_longer(&points, 2.0 * scale) {
                        let parts = inside(&points, frame.clip());
                        lines.extend(parts.into_iter().map(|part| (number, part)));
                    }
                }
            }
        }
        Self { lines }
    }

    /// Draws the lines.
    pub(crate) fn draw(&self, scene: &mut Scene, frame: &Frame, key: &Key) {
        for (number, points) in &self.lines {
            let color = key.contours.get(*number).and_then(|level| key.color(level.at));
            if let Some(color) = color {
                let width = 1.3 * scene.scale;
                scene.path(points.clone(), width, over(color), frame.clip());
            }
        }
    }

    /// Draws the value of a line on it, on each line that is long enough and has room.
    pub(crate) fn draw_labels(&self, scene: &mut Scene, frame: &Frame, key: &Key) {
        let scale = scene.scale;
        let font = Font::with_size(LABEL * 0.85 * scale);
        let mut room = LabelRoom::new(frame.clip(), scale);
        for (number, points) in &self.lines {
            room.add(*number, points);
        }
        for (number, points) in &self.lines {
            let Some(level) = key.contours.get(*number) else { continue };
            let Some(color) = key.color(level.at) else { continue };
            let size = (font.width(&level.label) + 4.0 * scale, font.size * 1.15);
            if let Some((x, y)) = room.take(*number, points, size) {
                let (half, up) = (size.0 / 2.0, size.1 / 2.0);
                scene.rect((x - half, x + half), (y - up, y + up), color);
                scene.text_in(over(color), &level.label, (x, y), font, Anchor::Middle);
            }
        }
    }
}
