//! The cells at points, and the labels at times.
//!
//! | file | contents |
//! |---|---|
//! | `axes` | the nearest cell and the neighbours on a rectilinear grid |
//! | `curvilinear` | the nearest cell of a grid with `lat (y, x)` and `lon (y, x)` |
//! | `tree` | the tree of unit vectors that finds it |
//! | `times` | the nearest and the last label of a time axis |

mod axes;
mod curvilinear;
mod times;
mod tree;

pub use axes::Neighbours;
pub use curvilinear::CurvilinearGrid;
pub use times::TimeAxis;

/// The cell of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearestCell {
    /// The row, in the order of the labels.
    pub row: usize,
    /// The column, in the order of the labels.
    pub column: usize,
    /// How far the cell's labels are from the point: in metres along the great circle, or in the
    /// plane's units.
    pub distance: f64,
}
