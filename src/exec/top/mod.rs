//! The first rows of each partition: leaves out rows that cannot be among them, before rows are sorted.
//!
//! ```text
//!   … WHERE r <= 3, with r = row_number() OVER (PARTITION BY lat ORDER BY value DESC)
//!
//!   Filter  r <= 3                              Filter  r <= 3
//!     BoundedWindowAgg  row_number                BoundedWindowAgg  row_number
//!       Sort  lat, value DESC           ──▶         Sort  lat, value DESC
//!         GridScan                                    GridTop  first=3, by=[value DESC], gby=[lat]
//!
//!   lat    third greatest so far    next cells
//!   50     281.4                    280.9 ✗  283.0 ✓       a cell knows its partition by its indices
//! ```
//!
//! Each partition of the plan keeps the best sort keys of each partition of the window. A row passes if its key is not worse than the
//! last of them. The window above numbers the few rows that are left.
//!
//! | file | contents |
//! |---|---|
//! | `rule` | the optimizer rule |
//! | `top_of`, `grid_top` | the rows to keep |
//! | `best` | the best keys so far |
//! | `node` | the operator |
//! | `stream` | the rows of a partition |

mod best;
mod grid_top;
mod node;
mod rule;
mod stream;
mod top_of;

pub use node::GridTopExec;
pub(super) use rule::leave_out_rows;
pub use top_of::TopOf;
