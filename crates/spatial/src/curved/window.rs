//! A region as seen in a box.
//!
//! Only the edges in the box are kept. For all that is left of it, the left side tells at which heights
//! it is inside the region. It matters to no place in the box what happens right, above and below.
//!
//! ```text
//!        ╱│         │            steps of the left side, from below: +1, −1
//!   ────┘ │ −1      │            edges: `a`, which rises, so that the region ends at its right
//!         │▒▒▒▒▒╱ a │
//!   ──────│▒▒▒▒╱    │
//!         │ +1      │            inside at a place = base + steps below + edges at its left
//! ```
//!
//! Rings that go around a box therefore cost nothing within it, however many there are.

use super::bounds::Bounds;
use super::convex::Convex;
use crate::region::Region;

/// An edge of the region that is not horizontal.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Edge {
    low: [f64; 2],
    high: [f64; 2],
    /// 1 if the region begins at its right, and -1 if it ends.
    change: f64,
}

/// How often a box's left side is inside the region changes at this height.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    y: f64,
    change: f64,
}

/// The part of a region within a box.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    edges: Vec<Edge>,
    /// Ascending, each strictly within the box.
    steps: Vec<Step>,
    /// How often the lower left corner is inside the region: 1 or 0, but for regions that repeat.
    base: f64,
}

impl Window {
    /// Returns the part of a region, and of its copies whole turns apart, within a box.
    pub(super) fn new(region: &Region, bounds: &Bounds) -> Self {
        let mut all = Self::default();
        let Some(width) = region.width() else { return all };
        let first = ((bounds.west - width.end) / 360.0).ceil();
        let count = ((bounds.east - width.start) / 360.0).floor() - first + 1.0;
        // Less than a dozen, because longitudes have limits.
        for turn in (0..count.max(0.0) as usize).map(|it| 360.0 * (first + it as f64)) {
            for (ring, points) in region.rings() {
                let moved = |[x, y]: [f64; 2]| [x + turn, y];
                let pairs = points.windows(2).map(|it| (moved(it[0]), moved(it[1])));
                all.edges.extend(pairs.filter(|(start, end)| start[1] != end[1]).map(
                    |(start, end)| {
                        if start[1] < end[1] {
                            Edge { low: start, high: end, change: -ring.sign }
                        } else {
                            Edge { low: end, high: start, change: ring.sign }
                        }
                    },
                ));
            }
        }
        let mut window = Self::default();
        all.clip(bounds, [0.0; 2], &mut window);
        window
    }

    /// Whether no place in the box is inside.
    pub(super) fn is_empty(&self) -> bool {
        self.is_uniform() && self.base < 0.5
    }

    /// Whether every place in the box is inside.
    pub(super) fn is_full(&self) -> bool {
        self.is_uniform() && self.base >= 0.5
    }

    fn is_uniform(&self) -> bool {
        self.edges.is_empty() && self.steps.is_empty()
    }

    /// The number of edges and steps, to which the rounding of areas is proportional.
    pub(super) fn len(&self) -> usize {
        self.edges.len() + self.steps.len()
    }

    /// Makes `part` the window of a smaller box, with `offset` as the origin of its coordinates.
    pub(super) fn clip(&self, bounds: &Bounds, offset: [f64; 2], part: &mut Self) {
        part.edges.clear();
        part.steps.clear();
        part.base = self.base;
        for step in &self.steps {
            if step.y <= bounds.south {
                part.base += step.change;
            } else if step.y < bounds.north {
                part.steps.push(Step { y: step.y - offset[1], ..*step });
            }
        }
        let mut at_left = |low: f64, high: f64, change: f64| {
            if low <= bounds.south {
                part.base += change;
            } else {
                part.steps.push(Step { y: low - offset[1], change });
            }
            if high < bounds.north {
                part.steps.push(Step { y: high - offset[1], change: -change });
            }
        };
        for edge in &self.edges {
            let Some(mut edge) = edge.between(bounds.south, bounds.north) else { continue };
            let [west, east] = edge.width();
            if west >= bounds.east {
                continue;
            }
            if east <= bounds.west {
                at_left(edge.low[1], edge.high[1], edge.change);
                continue;
            }
            if west < bounds.west {
                let y = edge.y_at(bounds.west);
                if edge.low[0] < bounds.west {
                    at_left(edge.low[1], y, edge.change);
                    edge.low = [bounds.west, y];
                } else {
                    at_left(y, edge.high[1], edge.change);
                    edge.high = [bounds.west, y];
                }
            }
            if east > bounds.east && edge.low[1] < edge.high[1] {
                let end = [bounds.east, edge.y_at(bounds.east)];
                if edge.low[0] > bounds.east { edge.low = end } else { edge.high = end }
            }
            if edge.low[1] < edge.high[1] {
                part.edges.push(edge.moved(offset));
            }
        }
        part.merge_steps();
    }

    /// Adds up the steps at the same height, most of which cancel each other.
    fn merge_steps(&mut self) {
        self.steps.sort_unstable_by(|a, b| a.y.total_cmp(&b.y));
        self.steps.dedup_by(|next, sum| {
            let same = next.y == sum.y;
            if same {
                sum.change += next.change;
            }
            same
        });
        self.steps.retain(|it| it.change != 0.0);
    }

    /// Whether a place of the box is inside, of which left and lower edges are a part.
    pub(super) fn contains(&self, [x, y]: [f64; 2]) -> bool {
        let steps = self.steps.iter().filter(|it| it.y <= y).map(|it| it.change);
        let edges =
            self.edges.iter().filter(|it| it.low[1] <= y && y < it.high[1] && it.x_at(y) <= x);
        self.base + steps.sum::<f64>() + edges.map(|it| it.change).sum::<f64>() >= 0.5
    }

    /// Returns the area of the part of a polygon in the box that is inside.
    pub(super) fn area_within(&self, polygon: &Convex) -> f64 {
        let above = |step: &Step| step.change * polygon.cut(|it| it[1] - step.y).area();
        let beside = |edge: &Edge| {
            let ([x, y], [width, height]) = (edge.low, edge.size());
            let band = polygon.cut(|it| it[1] - y).cut(|it| edge.high[1] - it[1]);
            edge.change * band.cut(|it| height * (it[0] - x) - width * (it[1] - y)).area()
        };
        self.base * polygon.area()
            + self.steps.iter().map(above).sum::<f64>()
            + self.edges.iter().map(beside).sum::<f64>()
    }
}

impl Edge {
    fn size(&self) -> [f64; 2] {
        [self.high[0] - self.low[0], self.high[1] - self.low[1]]
    }

    fn width(&self) -> [f64; 2] {
        [self.low[0].min(self.high[0]), self.low[0].max(self.high[0])]
    }

    fn moved(self, [x, y]: [f64; 2]) -> Self {
        let moved = |it: [f64; 2]| [it[0] - x, it[1] - y];
        Self { low: moved(self.low), high: moved(self.high), ..self }
    }

    /// Returns the part between two parallels; `None` if it has no height.
    fn between(&self, south: f64, north: f64) -> Option<Self> {
        if self.high[1] <= south || self.low[1] >= north {
            return None;
        }
        let mut part = *self;
        if self.low[1] < south {
            part.low = [self.x_at(south), south];
        }
        if self.high[1] > north {
            part.high = [self.x_at(north), north];
        }
        Some(part)
    }

    fn x_at(&self, y: f64) -> f64 {
        let [west, east] = self.width();
        let [width, height] = self.size();
        (self.low[0] + (y - self.low[1]) / height * width).max(west).min(east)
    }

    /// Returns the height at a meridian that the edge crosses.
    fn y_at(&self, x: f64) -> f64 {
        let [width, height] = self.size();
        (self.low[1] + (x - self.low[0]) / width * height).max(self.low[1]).min(self.high[1])
    }
}
