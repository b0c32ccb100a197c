//! The parts that all panels of a picture share: the kind, the axes and the colours.

use crate::axis::{Span, widened};
use crate::column::{Column, Values};
use crate::contour::{ContourLines, Field};
use crate::error::{Result, refuse};
use crate::facet::Panel;
use crate::frame::Frame;
use crate::key::Key;
use crate::lines::{Lines, Order, across_of, bar_width, up_of};
use crate::polygon::clipped;
use crate::role::Role;
use crate::scene::{Color, Scene};
use crate::settings::{Contours, Scale};
use crate::shape::{Quads, Shape};
use crate::spec::{PlotKind, Spec};
use crate::{cells, coast, map, points};

/// The parts that all panels of a picture share.
#[derive(Debug)]
pub(crate) struct Plan {
    shape: Shape,
    order: Order,
    /// The room for bars at each x.
    room: f64,
    pub(crate) x: Span,
    pub(crate) y: Span,
    /// The colours of values.
    pub(crate) key: Option<Key>,
    /// The names of lines, if there are several.
    pub(crate) names: Vec<(String, Color)>,
    /// The width of a map as a multiple of its height.
    pub(crate) aspect: Option<f64>,
    has_coast: bool,
}

impl Plan {
    /// Chooses what suits the columns. `whole` has the rows of all panels.
    ///
    /// # Errors
    /// `Usage` if the columns do not suit the kind of picture or its settings, or there is nothing to draw.
    pub(crate) fn new(whole: &[Column], panels: &[Panel], spec: &Spec, scale: f64) -> Result<Self> {
        let is_linear = [&spec.x, &spec.y].iter().all(|axis| axis.scale == Scale::Linear);
        let is_map = match places(whole, spec.kind) {
            Some([x, y]) if is_linear => map::is_map(x, y, spec.coastlines)?,
            _ if spec.coastlines == Some(true) => {
                return refuse(
                    "coastlines need a map: longitude, latitude and perhaps a value, without log scales",
                );
            }
            _ => false,
        };
        let shape = Shape::new(whole, panels, spec, is_map)?;
        let mut plan = match &shape {
            Shape::Lines(kind) => Self::of_lines(whole, *kind, spec, is_map)?,
            _ => Self::of_colors(whole, &shape, spec, is_map, scale)?,
        };
        plan.shape = shape;
        if let Some(contours) = &spec.contours {
            plan.set_contours(contours, whole)?;
        }
        if is_map {
            plan.aspect = Some(map::shape(&mut plan.x, &mut plan.y));
            plan.has_coast = spec.coastlines != Some(false);
        }
        Ok(plan)
    }

    fn of_lines(whole: &[Column], kind: PlotKind, spec: &Spec, is_map: bool) -> Result<Self> {
        let [x, .., last] = whole else { return refuse("there are no columns") };
        let is_down = whole[1..]
            .iter()
            .all(|it| it.title.role == Role::Down || matches!(it.values, Values::Names(_)));
        let order = match is_map {
            true => Order::Rows,
            false if is_down && kind == PlotKind::Line => Order::Y,
            false => Order::X,
        };
        let lines = Lines::new(whole, order)?;
        let ranges =
            (spec.x.scale.range(x.data.iter().copied()), spec.y.scale.range(lines.values()));
        let (Some(across), Some(up)) = ranges else { return refuse(nothing(x, spec)) };
        let room = bar_width(x);
        let across = across_of(kind, &x.values, across, spec.x.scale, room);
        let mut up = up_of(kind, up, spec.y.scale);
        if is_map {
            up = map::limited(up, true);
        }
        let is_turned = is_down && kind != PlotKind::Bars;
        let names = if lines.lines.len() > 1 {
            lines.lines.iter().map(|line| (line.name.clone(), line.color)).collect()
        } else {
            vec![]
        };
        Ok(Self {
            shape: Shape::Lines(kind),
            order,
            room,
            x: Span::new(x.label(), &x.values, across, &spec.x, false)?,
            y: Span::new(lines.label, &last.values, up, &spec.y, is_turned)?,
            key: None,
            names,
            aspect: None,
            has_coast: false,
        })
    }

    fn of_colors(
        whole: &[Column],
        shape: &Shape,
        spec: &Spec,
        is_map: bool,
        scale: f64,
    ) -> Result<Self> {
        let [x, y, value] = whole else { return refuse("a heat map needs three columns") };
        let key = Key::new(value, &spec.color, f64::from(spec.height), scale)?;
        let Some((across, up)) = ranges([x, y], shape, spec, is_map) else {
            return refuse("there is nothing to plot: no row has both x and y");
        };
        let limited = |range, is_y| if is_map { map::limited(range, is_y) } else { range };
        let (across, up) = (limited(across, false), limited(up, true));
        // Names on an upright axis run from top to bottom.
        let is_turned = matches!(y.values, Values::Names(_))
            || matches!(y.title.role, Role::Down | Role::Vertical);
        Ok(Self {
            shape: Shape::Points,
            order: Order::X,
            room: 0.0,
            x: Span::new(x.label(), &x.values, across, &spec.x, false)?,
            y: Span::new(y.label(), &y.values, up, &spec.y, is_turned)?,
            key: Some(key),
            names: vec![],
            aspect: None,
            has_coast: false,
        })
    }

    /// Chooses the values of contour lines.
    ///
    /// # Errors
    /// `Usage` if the picture has no cells, or none between two others.
    fn set_contours(&mut self, contours: &Contours, whole: &[Column]) -> Result<()> {
        let Some(key) =
            self.key.as_mut().filter(|_| matches!(self.shape, Shape::Cells(_) | Shape::Quads(_)))
        else {
            return refuse(
                "contour lines need the cells of a heat map: x, y and a value on a grid",
            );
        };
        let is_name = |column: &&Column| matches!(column.values, Values::Names(_));
        if let Some(names) = whole[..2].iter().find(is_name) {
            return refuse(format!(
                "contour lines need axes of numbers or times, and \"{}\" is text",
                names.title.name
            ));
        }
        key.set_contours(contours)
    }

    /// Returns the contour lines of a panel.
    fn contours(
        &self,
        frame: &Frame,
        number: usize,
        columns: &[Column],
        scale: f64,
    ) -> Option<ContourLines> {
        let is_map = self.aspect.is_some();
        let key = self.key.as_ref().filter(|key| !key.contours.is_empty())?;
        let [x, y, value] = columns else { return None };
        let scales = (self.x.scale, self.y.scale);
        let field = match &self.shape {
            Shape::Cells([columns, rows]) => {
                Field::from_cells([columns, rows], [x, y, value], key, scales, is_map)
            }
            Shape::Quads(panels) => {
                let width = panels.get(number).map(|it| it.width).filter(|width| *width > 0)?;
                Field::from_points([x, y, value], width, key, scales, is_map)
            }
            Shape::Points | Shape::Lines(_) => return None,
        };
        Some(ContourLines::new(&field, key, frame, scales, is_map, scale))
    }

    /// The kind of picture.
    pub(crate) fn kind(&self) -> PlotKind {
        match &self.shape {
            Shape::Lines(kind) => *kind,
            Shape::Points => PlotKind::Scatter,
            Shape::Cells(_) | Shape::Quads(_) => PlotKind::Heatmap,
        }
    }

    /// Draws the rows of a panel in its frame, and returns the number of values.
    ///
    /// # Errors
    /// `Usage` if the values are not numbers.
    pub(crate) fn draw(
        &self,
        scene: &mut Scene,
        frame: &Frame,
        number: usize,
        columns: &[Column],
    ) -> Result<usize> {
        let is_over = self.key.is_some();
        let drawn = match (&self.shape, &self.key, columns) {
            (Shape::Cells(edges), Some(key), [x, y, value]) => {
                cells::draw(scene, frame, key, [&edges[0], &edges[1]], [x, y, value])
            }
            (Shape::Quads(panels), Some(key), [x, y, value]) => match panels.get(number) {
                Some(quads) if !quads.cells.is_empty() => {
                    scene.rect(frame.width(), frame.height(), key.nothing());
                    draw_quads(scene, frame, key, quads, value, self.aspect.is_some())
                }
                _ => points::draw(scene, frame, key, [x, y, value]),
            },
            (Shape::Points, Some(key), [x, y, value]) => {
                frame.draw_grid(scene, true);
                points::draw(scene, frame, key, [x, y, value])
            }
            _ => {
                let kind = self.kind();
                frame.draw_grid(scene, kind != PlotKind::Bars);
                if self.has_coast {
                    coast::draw(scene, frame, false);
                }
                let lines = Lines::new(columns, self.order)?;
                lines.draw(scene, frame, kind, self.order, self.room)
            }
        };
        let contours = self.contours(frame, number, columns, scene.scale);
        let contours = contours.as_ref().zip(self.key.as_ref());
        if let Some((contours, key)) = contours {
            contours.draw(scene, frame, key);
        }
        if self.has_coast && is_over {
            coast::draw(scene, frame, true);
        }
        // Labels are above coastlines, so that they can be read.
        if let Some((contours, key)) = contours {
            contours.draw_labels(scene, frame, key);
        }
        frame.draw_axes(scene, is_over || self.aspect.is_some());
        Ok(drawn)
    }
}

/// Returns the columns that are places if they are longitudes and latitudes; `None` if the picture has another y, too.
fn places(whole: &[Column], kind: Option<PlotKind>) -> Option<[&Column; 2]> {
    let is_name = |column: &Column| matches!(column.values, Values::Names(_));
    match whole {
        _ if kind == Some(PlotKind::Bars) => None,
        [x, y] => Some([x, y]),
        [x, names, y] if is_name(names) => Some([x, y]),
        [x, y, _] if kind != Some(PlotKind::Line) => Some([x, y]),
        _ => None,
    }
}

fn nothing(x: &Column, spec: &Spec) -> &'static str {
    let has_x = x.data.iter().any(|it| it.is_finite());
    let is_log = spec.x.scale == Scale::Log || spec.y.scale == Scale::Log;
    match is_log && has_x {
        true => {
            "there is nothing to plot: no value is above zero, and a logarithmic axis shows no others"
        }
        false => "there is nothing to plot: all values are NULL",
    }
}

/// The ends of both axes.
type Ranges = ((f64, f64), (f64, f64));

/// Returns the ranges of x and y; `None` if no row has both.
fn ranges([x, y]: [&Column; 2], shape: &Shape, spec: &Spec, is_map: bool) -> Option<Ranges> {
    let (across, up) = (spec.x.scale, spec.y.scale);
    let pairs = x.data.iter().copied().zip(y.data.iter().copied());
    let placed = |it: &(f64, f64)| across.place(it.0).is_finite() && up.place(it.1).is_finite();
    let placed: Vec<(f64, f64)> = pairs.filter(placed).collect();
    let range = |of: fn(&(f64, f64)) -> f64, scale: Scale| scale.range(placed.iter().map(of));
    let (xs, ys) = (range(|it| it.0, across)?, range(|it| it.1, up)?);
    Some(match shape {
        Shape::Cells([columns, rows]) => (columns.range(), rows.range()),
        Shape::Quads(panels) => {
            let corners = || panels.iter().flat_map(|it| &it.cells).flatten().flatten();
            let xs = across.range(corners().map(|it| it.0)).unwrap_or(xs);
            let turned = across.range(corners().map(|it| it.0.rem_euclid(360.0)));
            // A swath across the edge of the map is in one piece on another map.
            let xs = match turned {
                Some(turned) if is_map && turned.1 - turned.0 < xs.1 - xs.0 - 60.0 => turned,
                _ => xs,
            };
            (xs, up.range(corners().map(|it| it.1)).unwrap_or(ys))
        }
        Shape::Points | Shape::Lines(_) => {
            let up = match &y.values {
                Values::Names(names) => (-0.5, names.len() as f64 - 0.5),
                _ => widened(ys, 0.02, up),
            };
            (across_of(PlotKind::Scatter, &x.values, xs, across, 0.0), up)
        }
    })
}

/// Draws the cells of a curvilinear grid, and returns the number of cells. On a map, cells show at all turns around the globe.
fn draw_quads(
    scene: &mut Scene,
    frame: &Frame,
    key: &Key,
    quads: &Quads,
    value: &Column,
    is_map: bool,
) -> usize {
    let clip = frame.clip();
    let turns: &[f64] = if is_map { &[-360.0, 0.0, 360.0] } else { &[0.0] };
    let mut drawn = 0;
    for (cell, value) in quads.cells.iter().zip(&value.data) {
        let Some(cell) = cell else { continue };
        drawn += 1;
        let Some(color) = key.color(*value) else { continue };
        for turn in turns {
            let corners = cell.map(|(x, y)| frame.at(x + turn, y));
            let inside = clipped(&corners, clip);
            if inside.len() > 2 {
                scene.polygon(inside, color);
            }
        }
    }
    drawn
}
