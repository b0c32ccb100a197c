//! Where the panels of a picture are, and how large the picture is.
//!
//! ```text
//!   title
//!   legend
//!   ┌ panel ┐ ┌ panel ┐ ┌──┐
//!   │       │ │       │ │  │ colours
//!   └───────┘ └───────┘ │  │
//!   ┌ panel ┐           │  │
//!   │       │           │  │
//!   └───────┘           └──┘
//!        x axis
//! ```

use crate::axis::{Axis, Span, fits_above};
use crate::frame::{Frame, GAP, LABEL, MARGIN, TICK, TITLE, draw_upright, label_font};
use crate::scene::{Anchor, Clip, Font, Scene};

/// The width of a panel that is no map, as a multiple of its height.
const USUAL_ASPECT: f64 = 1.5;

/// The parts that a picture needs room for. Sizes are in pixels.
#[derive(Debug)]
pub(crate) struct Needs {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) scale: f64,
    /// The height of title and legend.
    pub(crate) above: f64,
    /// The width of a bar of colours.
    pub(crate) right: f64,
    pub(crate) panels: usize,
    /// The width of a map as a multiple of its height.
    pub(crate) aspect: Option<f64>,
    /// The least width of a picture that may be smaller than `width` and `height`; `None` if it may not.
    pub(crate) fits: Option<f64>,
}

/// The places of all parts.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) frames: Vec<Frame>,
    /// The area of all panels.
    pub(crate) area: Clip,
    scale: f64,
}

/// The panels in rows and columns.
#[derive(Debug, Clone, Copy)]
struct Tiling {
    columns: usize,
    rows: usize,
    width: f64,
    height: f64,
}

impl Layout {
    pub(crate) fn new(needs: &Needs, x: &Span, y: &Span) -> Self {
        let scale = needs.scale;
        let (width, height) = (f64::from(needs.width), f64::from(needs.height));
        let is_faceted = needs.panels > 1;
        let head = if is_faceted { (LABEL + 2.0 * GAP) * scale } else { 0.0 };
        let apart = 24.0 * scale;
        let top = MARGIN * scale + needs.above;
        let below = (MARGIN + TITLE + LABEL + 2.0 * GAP + TICK) * scale;
        let right = (MARGIN * scale + needs.right).max(2.0 * MARGIN * scale);
        let left = (MARGIN + TITLE + 2.0 * GAP + TICK) * scale
            + label_width(y, height - top - below, scale);
        let room = ((width - left - right).max(1.0), (height - top - below).max(1.0));
        let tiling = Tiling::best(needs, room, apart, head);
        let Tiling { columns, rows, width: across, height: up } = tiling;
        let used = (columns as f64 * (across + apart) - apart, rows as f64 * (up + head));
        let spare = (room.0 - used.0, room.1 - used.1);
        let ((width, height), start) = match needs.fits {
            None => ((width, height), (left + spare.0 / 2.0, top + spare.1 / 2.0)),
            Some(least) => {
                let wide = (width - spare.0).max(least).max(200.0).min(width);
                let start = left + (wide - (width - spare.0)) / 2.0;
                ((wide, (height - spare.1).max(200.0).min(height)), (start, top))
            }
        };
        let frame = |number: usize| {
            let (column, row) = (number % columns, number / columns);
            let left = start.0 + column as f64 * (across + apart);
            let top = start.1 + row as f64 * (up + head) + head;
            let area = Clip { left, right: left + across, top, bottom: top + up };
            let mut frame = Frame::new(area.rounded(), x, y, scale);
            if is_faceted {
                frame.has_left_labels = column == 0;
                frame.has_lower_labels = number + columns >= needs.panels;
                frame.overhang = Some(apart / 2.0 - 2.0 * scale);
            }
            frame
        };
        let (right, bottom) = (start.0 + used.0, start.1 + used.1);
        Self {
            width: width.ceil() as u32,
            height: height.ceil() as u32,
            frames: (0..needs.panels).map(frame).collect(),
            area: Clip { left: start.0, right, top: start.1 + head, bottom }.rounded(),
            scale,
        }
    }

    /// Draws the titles of the axes, which all panels share.
    pub(crate) fn draw_titles(&self, scene: &mut Scene, x: &Span, y: &Span) {
        let Clip { left, right, top, bottom } = self.area;
        let font = Font::with_size(TITLE * self.scale);
        let below = bottom + (TICK + LABEL + 2.0 * GAP + TITLE / 2.0) * self.scale;
        scene.text(&x.label, (f64::midpoint(left, right), below), font, Anchor::Middle);
        let ticks = self.frames.iter().flat_map(|frame| &frame.y.ticks);
        let labels =
            ticks.map(|tick| label_font(self.scale).width(&tick.label)).fold(0.0, f64::max);
        let beside = left - labels - (TICK + 2.0 * GAP + TITLE / 2.0) * self.scale;
        draw_upright(scene, &y.label, (beside, f64::midpoint(top, bottom)));
    }
}

impl Tiling {
    /// Returns the tiling with the largest panels.
    fn best(needs: &Needs, room: (f64, f64), apart: f64, head: f64) -> Self {
        let aspect = needs.aspect.unwrap_or(USUAL_ASPECT);
        let tiling = |columns: usize| {
            let rows = needs.panels.div_ceil(columns).max(1);
            let width = (room.0 + apart) / columns as f64 - apart;
            let height = room.1 / rows as f64 - head;
            Self { columns, rows, width: width.max(1.0), height: height.max(1.0) }
        };
        let fitted = |it: Self| Self {
            width: it.width.min(it.height * aspect),
            height: it.height.min(it.width / aspect),
            ..it
        };
        // Of equally large panels, the fewest columns leave the fewest gaps.
        let size = |it: &Self| fitted(*it).width.round();
        let tilings = (1..=needs.panels).rev().map(tiling);
        let best = tilings.max_by(|one, other| size(one).total_cmp(&size(other)));
        let best = best.unwrap_or_else(|| tiling(1));
        if needs.aspect.is_some() { fitted(best) } else { best }
    }
}

/// Returns the width of the labels of an upright axis of this height.
fn label_width(y: &Span, height: f64, scale: f64) -> f64 {
    let axis = Axis::new(y, 0.0, height.max(1.0), fits_above(scale, &y.values));
    axis.ticks.iter().map(|tick| label_font(scale).width(&tick.label)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Values;
    use crate::scene::load_fonts;
    use crate::settings::AxisSettings;

    fn layout(panels: usize, aspect: Option<f64>, fits: Option<f64>) -> Layout {
        load_fonts().unwrap();
        let span = Span::new(
            "a".to_owned(),
            &Values::Numbers,
            (0.0, 9.0),
            &AxisSettings::default(),
            false,
        );
        let span = span.unwrap();
        let (width, height) = (1000, 620);
        let needs =
            Needs { width, height, scale: 1.0, above: 0.0, right: 80.0, panels, aspect, fits };
        Layout::new(&needs, &span, &span)
    }

    #[test]
    fn a_map_has_its_aspect_and_no_empty_margins() {
        for aspect in [0.3, 1.0, 2.0, 5.0] {
            for fits in [None, Some(0.0)] {
                let layout = layout(1, Some(aspect), fits);
                let Clip { left, right, top, bottom } = layout.frames[0].clip();
                let drawn = (right - left) / (bottom - top);
                assert!((drawn / aspect - 1.0).abs() < 0.02, "{aspect}: {drawn}");
                assert!(layout.width <= 1000 && layout.height <= 620);
                let below = f64::from(layout.height) - bottom;
                assert!(fits.is_none() || below < 70.0 || layout.height == 200, "{below}");
            }
        }
        assert_eq!((layout(1, None, None).width, layout(1, None, None).height), (1000, 620));
    }

    #[test]
    fn panels_do_not_overlap() {
        for panels in [2, 3, 4, 7, 12, 30] {
            for aspect in [None, Some(2.0)] {
                let layout = layout(panels, aspect, None);
                let clips: Vec<Clip> = layout.frames.iter().map(Frame::clip).collect();
                assert_eq!(clips.len(), panels);
                for (number, one) in clips.iter().enumerate() {
                    assert!(one.left > 0.0 && one.right < 1000.0 && one.bottom < 620.0);
                    assert!(one.right - one.left > 20.0 && one.bottom - one.top > 20.0, "{one:?}");
                    let is_apart = |it: &Clip| {
                        it.right < one.left
                            || it.left > one.right
                            || it.bottom < one.top
                            || it.top > one.bottom
                    };
                    assert!(clips[..number].iter().all(is_apart));
                }
            }
        }
    }
}
