//! Chooses what is drawn: the kind of picture, and for three columns, whether points, cells of a grid or of a curvilinear grid.

use std::collections::HashSet;

use crate::cells::{CellEdges, refuse_twice};
use crate::column::{Column, Values};
use crate::error::{Result, refuse};
use crate::facet::Panel;
use crate::lattice::{Metric, row_length};
use crate::quads::quads;
use crate::settings::Scale;
use crate::spec::{PlotKind, Spec};

/// The corners of a cell of a curvilinear grid; `None` without x or y.
pub(crate) type Quad = Option<[(f64, f64); 4]>;

/// The cells of a curvilinear grid, one per row of the query.
#[derive(Debug, Default)]
pub(crate) struct Quads {
    pub(crate) cells: Vec<Quad>,
    /// The cells in a row of the grid.
    pub(crate) width: usize,
}

/// The kind of marks that a picture has.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Lines, points or bars by x.
    Lines(PlotKind),
    /// Points that are coloured by a third column.
    Points,
    /// A rectangle for each x and y.
    Cells([CellEdges; 2]),
    /// Cells of a curvilinear grid for each panel.
    Quads(Vec<Quads>),
}

impl Shape {
    /// Returns what was requested, or suits the columns. `whole` has the rows of all panels.
    ///
    /// # Errors
    /// `Usage` if the columns do not suit the kind, or a cell has two values.
    pub(crate) fn new(
        whole: &[Column],
        panels: &[Panel],
        spec: &Spec,
        is_map: bool,
    ) -> Result<Self> {
        let count = whole.len();
        let [x, y, ..] = whole else {
            return refuse(format!("a plot needs x and a value, and the query has {count} column"));
        };
        if let (Some(PlotKind::Heatmap), false) = (spec.kind, count == 3) {
            return refuse(format!(
                "a heat map needs three columns, x, y and a value, and the query has {count}"
            ));
        }
        let are_names = [x, y].map(|it| matches!(it.values, Values::Names(_)));
        match spec.kind {
            Some(PlotKind::Heatmap) => return heat(whole, panels, spec, is_map),
            Some(PlotKind::Scatter) if count == 3 && !are_names[1] => return Ok(Self::Points),
            Some(kind) => return Ok(Self::Lines(kind)),
            None => {}
        }
        let repeats = || panels.iter().any(|panel| panel.columns.first().is_some_and(has_repeats));
        if count == 3 && (is_map || repeats() || has_lattice(panels, spec, is_map)) {
            return heat(whole, panels, spec, is_map);
        }
        Ok(Self::Lines(match () {
            () if repeats() || is_map => PlotKind::Scatter,
            () if are_names[0] => PlotKind::Bars,
            () => PlotKind::Line,
        }))
    }
}

fn has_repeats(x: &Column) -> bool {
    let mut seen = HashSet::new();
    x.data.iter().any(|value| value.is_finite() && !seen.insert(value.to_bits()))
}

/// Returns the cells or points of three columns.
fn heat(whole: &[Column], panels: &[Panel], spec: &Spec, is_map: bool) -> Result<Shape> {
    let [x, y, _] = whole else { return refuse("a heat map needs three columns") };
    for panel in panels {
        if let [x, y, _] = &panel.columns[..] {
            refuse_twice([x, y])?;
        }
    }
    let edges = [CellEdges::new(x, spec.x.scale), CellEdges::new(y, spec.y.scale)];
    let density = Density::new(&edges, x, y, panels, spec);
    if density.is_grid() {
        return Ok(Shape::Cells(edges));
    }
    if has_lattice(panels, spec, is_map) {
        let quads = panels.iter().map(|panel| quads_of(&panel.columns, spec, is_map));
        return Ok(Shape::Quads(quads.map(Option::unwrap_or_default).collect()));
    }
    match spec.kind {
        None => Ok(Shape::Points),
        Some(_) if density.is_visible() => Ok(Shape::Cells(edges)),
        Some(_) => refuse(format!(
            "the rows are no grid: they have {} values of \"{}\" and {} of \"{}\", so their cells would be smaller than \
             a pixel; draw points with --kind scatter, or round both and GROUP BY them",
            edges[0].len(),
            x.title.name,
            edges[1].len(),
            y.title.name
        )),
    }
}

/// How the rows fill the pairs of all x and all y.
#[derive(Debug)]
struct Density {
    /// The rows of the largest panel.
    rows: f64,
    /// The numbers of different x and y.
    keys: (f64, f64),
    /// The pixels for each of these.
    pixels: (f64, f64),
    has_names: bool,
}

impl Density {
    fn new(edges: &[CellEdges; 2], x: &Column, y: &Column, panels: &[Panel], spec: &Spec) -> Self {
        let rows = |panel: &Panel| match &panel.columns[..] {
            [x, y, ..] => {
                let pairs = x.data.iter().zip(&y.data);
                pairs.filter(|(x, y)| x.is_finite() && y.is_finite()).count()
            }
            _ => 0,
        };
        let keys = (edges[0].len().max(1) as f64, edges[1].len().max(1) as f64);
        Self {
            rows: panels.iter().map(rows).max().unwrap_or(0) as f64,
            keys,
            pixels: (f64::from(spec.width) / keys.0, f64::from(spec.height) / keys.1),
            has_names: [x, y].iter().any(|it| matches!(it.values, Values::Names(_))),
        }
    }

    /// Whether the rows are a grid, perhaps with gaps: an eighth of the pairs has a row, or cells are large and each x and y
    /// has several rows.
    fn is_grid(&self) -> bool {
        const LARGE: f64 = 4.0;
        let is_full = self.rows >= self.keys.0 * self.keys.1 / 8.0;
        let repeats = self.rows >= 2.0 * self.keys.0.max(self.keys.1);
        self.has_names || is_full || (repeats && self.pixels.0.min(self.pixels.1) >= LARGE)
    }

    /// Whether cells are no smaller than a pixel.
    fn is_visible(&self) -> bool {
        self.pixels.0.min(self.pixels.1) >= 1.0
    }
}

/// Whether the largest panel is a curvilinear grid.
fn has_lattice(panels: &[Panel], spec: &Spec, is_map: bool) -> bool {
    let rows = |panel: &&Panel| panel.columns.first().map_or(0, |column| column.data.len());
    let largest = panels.iter().max_by_key(rows);
    largest.is_some_and(|panel| lattice(&panel.columns, spec, is_map).is_some())
}

/// The places of points, the length of their rows, and how far they are apart.
type Lattice = (Vec<(f64, f64)>, usize, Metric);

fn lattice(columns: &[Column], spec: &Spec, is_map: bool) -> Option<Lattice> {
    let [x, y, value] = columns else { return None };
    let are_places = [x, y].iter().all(|it| !matches!(it.values, Values::Names(_)));
    let is_value = !matches!(value.values, Values::Times(_));
    if !are_places || !is_value {
        return None;
    }
    let places = x.data.iter().zip(&y.data);
    let places: Vec<(f64, f64)> =
        places.map(|(x, y)| (spec.x.scale.place(*x), spec.y.scale.place(*y))).collect();
    let metric = Metric::new(&places, is_map && spec.x.scale == Scale::Linear);
    let width = row_length(&places, &metric)?;
    Some((places, width, metric))
}

fn quads_of(columns: &[Column], spec: &Spec, is_map: bool) -> Option<Quads> {
    let (places, width, metric) = lattice(columns, spec, is_map)?;
    let back = |at: (f64, f64)| (spec.x.scale.value(at.0), spec.y.scale.value(at.1));
    let cells = quads(&places, width, &metric);
    let cells = cells.into_iter().map(|cell| cell.map(|corners| corners.map(back))).collect();
    Some(Quads { cells, width })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::tests::bent;
    use crate::title::Title;

    fn shape(points: &[(f64, f64)], kind: Option<PlotKind>) -> Result<&'static str> {
        let column = |data: Vec<f64>| Column::new(Title::new("c"), Values::Numbers, data);
        let (x, y) = points.iter().copied().unzip();
        let value = column((0..points.len()).map(|at| at as f64).collect());
        let columns = vec![column(x), column(y), value];
        let spec = Spec { kind, ..Spec::new(1000, 620) };
        let panels = [Panel { name: None, columns: columns.clone() }];
        Ok(match Shape::new(&columns, &panels, &spec, false)? {
            Shape::Lines(PlotKind::Line) => "lines",
            Shape::Lines(_) => "other lines",
            Shape::Points => "points",
            Shape::Cells(_) => "cells",
            Shape::Quads(_) => "quads",
        })
    }

    #[test]
    fn three_columns_are_cells_or_points() {
        let heatmap = Some(PlotKind::Heatmap);
        let grid: Vec<_> = (0..600).map(|at| (f64::from(at % 30), f64::from(at / 30))).collect();
        assert_eq!(shape(&grid, None).unwrap(), "cells");
        // Three cells of a hundred remain.
        let sparse = (0..10_000).filter(|at| at * 7919 % 100 < 3);
        let sparse: Vec<_> = sparse.map(|at| (f64::from(at % 100), f64::from(at / 100))).collect();
        assert_eq!(shape(&sparse, None).unwrap(), "cells");
        assert_eq!(shape(&bent(50, 40), None).unwrap(), "quads");
        assert_eq!(shape(&bent(50, 40), heatmap).unwrap(), "quads");
        let noise = |at: u32| f64::from(at.wrapping_mul(2_654_435_761) >> 8);
        let mut random: Vec<_> = (1..3000).map(|at| (noise(at), noise(at + 70_000))).collect();
        assert_eq!(shape(&random, None).unwrap(), "lines");
        assert_eq!(shape(&random, Some(PlotKind::Scatter)).unwrap(), "points");
        let error = shape(&random, heatmap).unwrap_err().to_string();
        assert!(error.starts_with("the rows are no grid: they have 2999 values"), "{error}");
        random.push((random[0].0, 3.0));
        assert_eq!(shape(&random, None).unwrap(), "points");
        random.push(random[0]);
        assert!(shape(&random, None).is_err());
    }
}
