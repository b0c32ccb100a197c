//! The cells along one axis of a grid: labels, and the edges between them.
//!
//! ```text
//!   labels          90      87.5      85           a descending axis of latitudes
//!   midpoints  91.25    88.75    86.25    83.75
//!   edges      90       88.75    86.25    83.75    clamped at the pole
//! ```
//!
//! An axis is kept ascending; `descending` maps its cells to those of the file.

use gridfusion_core::{Error, Result};

/// Longitudes beyond these are no longitudes: `-180..180`, `0..360` and one turn across the date line fit.
pub(crate) const LONGITUDES: [f64; 2] = [-360.0, 720.0];

/// Neighbouring bounds may differ by this part of a cell, because files round them.
const ROUNDING: f64 = 1e-3;

/// The quantity that the labels of an [`Axis`] measure, which decides how its outer edges are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AxisKind {
    /// Coordinates of a plane, such as metres of a projection.
    Plane,
    /// Latitudes in degrees north: no cell reaches beyond a pole.
    Latitude,
    /// Longitudes in degrees east: labels may jump by 360°, and the last cell may touch the first.
    Longitude,
}

impl AxisKind {
    fn name(self) -> &'static str {
        match self {
            Self::Plane => "coordinate",
            Self::Latitude => "latitude",
            Self::Longitude => "longitude",
        }
    }
}

/// The cells along one axis of a rectilinear grid.
///
/// ```
/// use gridfusion_spatial::{Axis, AxisKind};
///
/// let lat = Axis::new(AxisKind::Latitude, &[90.0, 87.5, 85.0], None)?;
/// assert_eq!(lat.cell(0), [88.75, 90.0]);
/// assert_eq!(lat.cell(2), [83.75, 86.25]);
/// # Ok::<_, gridfusion_spatial::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    kind: AxisKind,
    /// Ascending.
    labels: Vec<f64>,
    /// Ascending, one more than labels; empty without labels.
    edges: Vec<f64>,
    descending: bool,
}

impl Axis {
    /// Returns the axis with these labels, ascending or descending, regular or not.
    ///
    /// Edges are the `bounds`, which are the two edges of each cell in either order. Without them, edges
    /// lie in the middle between labels, and the outer cells reach as far outwards as inwards.
    /// Latitudes stop at the poles. The outer cells of a Gaussian grid reach the pole if less than half
    /// a cell is missing. Longitudes may jump by 360°, as in `358, 359, 0, 1`. They go around the
    /// globe if the last label is one step before the first.
    pub fn new(kind: AxisKind, labels: &[f64], bounds: Option<&[[f64; 2]]>) -> Result<Self> {
        let mut labels = labels.to_vec();
        check_finite(kind, &labels)?;
        if kind == AxisKind::Longitude {
            unwrap_longitudes(&mut labels);
        }
        let descending = labels.len() > 1 && labels[0] > labels[1];
        check_monotonic(kind, &labels, descending)?;
        let edges = match bounds {
            _ if labels.is_empty() => Vec::new(),
            Some(bounds) => edges_of_bounds(kind, &labels, bounds, descending)?,
            None => {
                if descending {
                    labels.reverse();
                }
                let edges = midpoints(kind, &labels)?;
                if descending {
                    labels.reverse();
                }
                edges
            }
        };
        if descending {
            labels.reverse();
        }
        let mut axis = Self { kind, labels, edges, descending };
        axis.fit_edges()?;
        check_edges(kind, &axis.edges)?;
        Ok(axis)
    }

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether the axis has no cells.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Returns the quantity that the labels measure.
    pub fn kind(&self) -> AxisKind {
        self.kind
    }

    /// Returns the lower and the upper edge of a cell.
    ///
    /// # Panics
    ///
    /// Panics if `index` is not less than [`Axis::len`].
    pub fn cell(&self, index: usize) -> [f64; 2] {
        let index = self.position(index);
        [self.edges[index], self.edges[index + 1]]
    }

    /// Whether the axis is one of longitudes that go around the globe.
    pub fn is_circle(&self) -> bool {
        let (Some(first), Some(last)) = (self.edges.first(), self.edges.last()) else {
            return false;
        };
        self.kind == AxisKind::Longitude && *last == first + 360.0
    }

    /// The labels, ascending.
    pub(crate) fn labels(&self) -> &[f64] {
        &self.labels
    }

    /// The edges, ascending.
    pub(crate) fn edges(&self) -> &[f64] {
        &self.edges
    }

    pub(crate) fn is_descending(&self) -> bool {
        self.descending
    }

    /// Maps a cell of the file to its ascending position, and back.
    pub(crate) fn position(&self, index: usize) -> usize {
        if self.descending { self.len() - 1 - index } else { index }
    }

    /// Returns the place by which the rule `centre` judges a cell, ascending.
    ///
    /// It is the label. A label on an edge, such as 90° north, stands for the middle of the cell.
    pub(crate) fn centre(&self, position: usize) -> f64 {
        let [low, high] = [self.edges[position], self.edges[position + 1]];
        let label = self.labels[position];
        if low < label && label < high { label } else { low + (high - low) / 2.0 }
    }

    /// Moves the outer edges to the poles, or to where the circle closes.
    fn fit_edges(&mut self) -> Result<()> {
        let (Some(&first), Some(&last)) = (self.edges.first(), self.edges.last()) else {
            return Ok(());
        };
        let end = self.edges.len() - 1;
        match self.kind {
            AxisKind::Plane => {}
            AxisKind::Latitude => {
                self.edges[0] = first.max(-90.0);
                self.edges[end] = last.min(90.0);
            }
            AxisKind::Longitude => {
                let narrowest = self.edges.windows(2).map(|it| it[1] - it[0]).fold(360.0, f64::min);
                let missing = first + 360.0 - last;
                if missing.abs() <= ROUNDING * narrowest {
                    self.edges[end] = first + 360.0;
                } else if missing < 0.0 {
                    return Err(Error::usage(format!(
                        "the longitudes from {first} to {last} go around the globe more than once: \
                         leave out the columns that are repeated"
                    )));
                }
            }
        }
        Ok(())
    }
}

fn check_finite(kind: AxisKind, labels: &[f64]) -> Result<()> {
    let (limits, hint) = match kind {
        AxisKind::Plane => ([-1e100, 1e100], ""),
        AxisKind::Latitude => ([-90.0, 90.0], "; are rows and columns swapped?"),
        AxisKind::Longitude => (LONGITUDES, ""),
    };
    match labels.iter().position(|it| !(limits[0]..=limits[1]).contains(it)) {
        None => Ok(()),
        Some(index) => Err(Error::usage(format!(
            "{} {index} of the grid is {}, outside {} to {}{hint}",
            kind.name(),
            labels[index],
            limits[0],
            limits[1],
        ))),
    }
}

/// Checks that each cell has a width, which labels that nearly equal each other do not give.
pub(crate) fn check_edges(kind: AxisKind, edges: &[f64]) -> Result<()> {
    match edges.windows(2).find(|it| it[0] >= it[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::usage(format!(
            "a cell of the grid reaches from {} {} to {}, which is no width",
            kind.name(),
            pair[0],
            pair[1],
        ))),
    }
}

/// Adds or takes 360° behind the one jump of longitudes that cross the date line or Greenwich.
fn unwrap_longitudes(labels: &mut [f64]) {
    let falls = labels.windows(2).filter(|it| it[1] < it[0]).count();
    let rises = labels.windows(2).filter(|it| it[1] > it[0]).count();
    let (jumps_down, turn) = match (rises, falls) {
        (2.., 1) => (true, 360.0),
        (1, 2..) => (false, -360.0),
        _ => return,
    };
    let jump = labels.windows(2).position(|it| (it[1] < it[0]) == jumps_down && it[1] != it[0]);
    for label in jump.map_or(&mut [][..], |at| &mut labels[at + 1..]) {
        *label += turn;
    }
}

fn check_monotonic(kind: AxisKind, labels: &[f64], descending: bool) -> Result<()> {
    let wrong = labels.windows(2).position(|it| it[0] == it[1] || (it[0] > it[1]) != descending);
    match wrong {
        None => Ok(()),
        Some(at) => Err(Error::usage(format!(
            "the {} labels of the grid do not only {}: {} at {at} is followed by {}",
            kind.name(),
            if descending { "fall" } else { "rise" },
            labels[at],
            labels[at + 1],
        ))),
    }
}

/// Returns the edges halfway between ascending labels.
fn midpoints(kind: AxisKind, labels: &[f64]) -> Result<Vec<f64>> {
    let &[first, second, ..] = labels else {
        return Err(Error::usage(format!(
            "the grid has one {} label, {}: the edges of its cell need a variable of bounds",
            kind.name(),
            labels[0],
        )));
    };
    let end = labels.len() - 1;
    let (last, before) = (labels[end], labels[end - 1]);
    let mut outer = [first - (second - first) / 2.0, last + (last - before) / 2.0];
    match kind {
        AxisKind::Plane => {}
        AxisKind::Latitude if labels.len() > 2 => {
            let spacings =
                [[second - first, labels[2] - second], [last - before, before - labels[end - 2]]];
            // Latitudes of a Gaussian grid are roots of a polynomial: near the poles they lie closer.
            let gaussian = spacings.map(|[outer, next]| (outer / next - 1.0).abs() > 1e-3);
            if gaussian[0] && outer[0] + 90.0 < spacings[0][0] / 2.0 {
                outer[0] = -90.0;
            }
            if gaussian[1] && 90.0 - outer[1] < spacings[1][0] / 2.0 {
                outer[1] = 90.0;
            }
        }
        AxisKind::Latitude => {}
        AxisKind::Longitude => {
            let widest = labels.windows(2).map(|it| it[1] - it[0]).fold(0.0, f64::max);
            let across = first + 360.0 - last;
            if across > 0.0 && across <= 1.5 * widest {
                outer = [first - across / 2.0, first - across / 2.0 + 360.0];
            }
        }
    }
    let inner = labels.windows(2).map(|it| it[0] + (it[1] - it[0]) / 2.0);
    Ok([outer[0]].into_iter().chain(inner).chain([outer[1]]).collect())
}

/// Returns the ascending edges of cells that touch each other.
fn edges_of_bounds(
    kind: AxisKind,
    labels: &[f64],
    bounds: &[[f64; 2]],
    descending: bool,
) -> Result<Vec<f64>> {
    let name = kind.name();
    if bounds.len() != labels.len() {
        return Err(Error::usage(format!(
            "the grid has {} {name} labels and bounds of {} cells",
            labels.len(),
            bounds.len(),
        )));
    }
    let mut cells = Vec::with_capacity(bounds.len());
    for (index, (&label, &[one, other])) in labels.iter().zip(bounds).enumerate() {
        let near = |edge: f64| match kind {
            AxisKind::Longitude => edge + 360.0 * ((label - edge) / 360.0).round(),
            AxisKind::Plane | AxisKind::Latitude => edge,
        };
        let cell = [near(one).min(near(other)), near(one).max(near(other))];
        let slack = ROUNDING * (cell[1] - cell[0]);
        if !(cell[1] > cell[0] && cell[1] - cell[0] < 1e101) {
            return Err(Error::usage(format!(
                "the bounds of {name} {label} at {index} are {one} and {other}, which is no cell"
            )));
        }
        if label < cell[0] - slack || label > cell[1] + slack {
            return Err(Error::usage(format!(
                "{name} {label} at {index} is not within its bounds {one} and {other}"
            )));
        }
        cells.push(cell);
    }
    if descending {
        cells.reverse();
    }
    let mut edges = vec![cells[0][0]];
    for (index, pair) in cells.windows(2).enumerate() {
        let ([low, end], [start, high]) = (pair[0], pair[1]);
        if (end - start).abs() > ROUNDING * (end - low).min(high - start) {
            let index = if descending { cells.len() - 2 - index } else { index };
            return Err(Error::unsupported(format!(
                "the cells of {name} {index} and {} do not touch: one is {low} to {end}, the other {start} to {high}",
                index + 1,
            )));
        }
        edges.push(start + (end - start) / 2.0);
    }
    edges.push(cells[cells.len() - 1][1]);
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(kind: AxisKind, labels: &[f64]) -> Vec<f64> {
        Axis::new(kind, labels, None).unwrap().edges
    }

    fn error(kind: AxisKind, labels: &[f64], bounds: Option<&[[f64; 2]]>) -> String {
        Axis::new(kind, labels, bounds).unwrap_err().to_string()
    }

    #[test]
    fn edges_lie_between_labels() {
        use AxisKind::*;
        assert_eq!(edges(Plane, &[0.0, 1.0, 3.0]), [-0.5, 0.5, 2.0, 4.0]);
        assert_eq!(edges(Plane, &[3.0, 1.0, 0.0]), [-0.5, 0.5, 2.0, 4.0]);
        assert_eq!(edges(Latitude, &[-90.0, 0.0, 90.0]), [-90.0, -45.0, 45.0, 90.0]);
        assert_eq!(
            edges(Longitude, &[0.0, 90.0, 180.0, 270.0]),
            [-45.0, 45.0, 135.0, 225.0, 315.0]
        );
        assert_eq!(edges(Longitude, &[10.0, 20.0]), [5.0, 15.0, 25.0]);
        assert_eq!(edges(Plane, &[]), [0.0; 0]);
    }

    #[test]
    fn gaussian_latitudes_reach_the_pole() {
        let lat = [85.76, 80.27, 74.74, 69.21];
        let edges = edges(AxisKind::Latitude, &lat);
        assert_eq!(edges[4], 90.0);
        assert!((edges[0] - 66.445).abs() < 1e-12);
    }

    #[test]
    fn longitudes_may_jump() {
        let axis = Axis::new(AxisKind::Longitude, &[358.0, 359.0, 0.0, 1.0], None).unwrap();
        assert_eq!(axis.edges, [357.5, 358.5, 359.5, 360.5, 361.5]);
        let axis = Axis::new(AxisKind::Longitude, &[1.0, 0.0, 359.0, 358.0], None).unwrap();
        assert_eq!(axis.edges, [-2.5, -1.5, -0.5, 0.5, 1.5]);
        let bounds = [[359.5, 0.5], [0.5, 1.5], [1.5, 2.5]];
        let axis = Axis::new(AxisKind::Longitude, &[0.0, 1.0, 2.0], Some(&bounds)).unwrap();
        assert_eq!(axis.edges, [-0.5, 0.5, 1.5, 2.5]);
    }

    #[test]
    fn circles_close_exactly() {
        // Labels in single precision.
        let labels: Vec<f64> = (0..3600).map(|i| f64::from(i as f32 * 0.1)).collect();
        let axis = Axis::new(AxisKind::Longitude, &labels, None).unwrap();
        assert!(axis.is_circle());
        assert!(!Axis::new(AxisKind::Longitude, &labels[..3500], None).unwrap().is_circle());
        let repeated: Vec<f64> = (0..=36).map(|i| f64::from(i) * 10.0).collect();
        assert_eq!(
            error(AxisKind::Longitude, &repeated, None),
            "the longitudes from -5 to 365 go around the globe more than once: leave out the columns that are repeated"
        );
    }

    #[test]
    fn bounds_in_either_order() {
        let labels = [2.5, 1.5, 0.5];
        for bounds in [[[3.0, 2.0], [2.0, 1.0], [1.0, 0.0]], [[2.0, 3.0], [1.0, 2.0], [0.0, 1.0]]] {
            let axis = Axis::new(AxisKind::Plane, &labels, Some(&bounds)).unwrap();
            assert_eq!(
                (axis.edges.as_slice(), axis.cell(0)),
                (&[0.0, 1.0, 2.0, 3.0][..], [2.0, 3.0])
            );
        }
        let one = Axis::new(AxisKind::Plane, &[5.0], Some(&[[4.0, 7.0]])).unwrap();
        assert_eq!(one.cell(0), [4.0, 7.0]);
    }

    #[test]
    fn errors_name_labels() {
        use AxisKind::*;
        assert_eq!(
            error(Latitude, &[0.0, 120.0], None),
            "latitude 1 of the grid is 120, outside -90 to 90; are rows and columns swapped?"
        );
        assert_eq!(
            error(Plane, &[0.0, 2.0, 1.0], None),
            "the coordinate labels of the grid do not only rise: 2 at 1 is followed by 1"
        );
        assert_eq!(
            error(Plane, &[0.0, 0.0], None),
            "the coordinate labels of the grid do not only rise: 0 at 0 is followed by 0"
        );
        assert!(
            error(Plane, &[0.0, f64::NAN], None).starts_with("coordinate 1 of the grid is NaN")
        );
        assert!(error(Plane, &[4.0], None).ends_with("need a variable of bounds"));
        assert_eq!(
            error(Plane, &[0.5, 2.5], Some(&[[0.0, 1.0], [2.0, 3.0]])),
            "the cells of coordinate 0 and 1 do not touch: one is 0 to 1, the other 2 to 3"
        );
        assert_eq!(
            error(Plane, &[0.5, 2.5], Some(&[[0.0, 1.0], [1.0, 2.0]])),
            "coordinate 2.5 at 1 is not within its bounds 1 and 2"
        );
        assert!(error(Plane, &[0.5], Some(&[[f64::NAN, 1.0]])).ends_with("which is no cell"));
        assert!(error(Plane, &[0.5], Some(&[])).ends_with("and bounds of 0 cells"));
    }
}
