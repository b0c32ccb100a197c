//! The cells along one axis of a grid: labels, and the edges between them.
//!
//! ```text
//!   labels          90      87.5      85           a descending axis of latitudes
//!   midpoints  91.25    88.75    86.25    83.75
//!   edges      90       88.75    86.25    83.75    clamped at the pole
//! ```
//!
//! `edges` checks labels and finds the edges. An axis is kept ascending; `descending` maps its cells to those of the file.

mod edges;

use gridfusion_core::{Error, Result};

pub(crate) use edges::check_edges;
use edges::{check_finite, check_monotonic, edges_of_bounds, midpoints, unwrap_longitudes};

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
/// # Ok::<_, gridfusion_core::Error>(())
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

#[cfg(test)]
mod tests;
