//! Verification of files and arrays: reports every fault, while a query stops at the first.
//!
//! ```text
//!   ArrayGroup::verify ──┬▶ source/tet ──┬─ index     rows, grids, places of payloads
//!                        │               ├─ zones     zone maps, in the file and beside it
//!                        │               ├─ cells     every payload decoded, zone maps recomputed
//!                        │               └─ package   manifests, hashes, other generations
//!                        └▶ source/tiledb ┬ tiles     every tile of every fragment, and its statistics
//!                                         └ sparse    coordinates, their order and their rectangles
//! ```
//!
//! The result is a [`Report`] of named [`Check`]s, which `docs/verify.md` describes.
//! [`Report::of_error`] makes the report on a file that cannot be opened.
//!
//! ```
//! use std::sync::Arc;
//! use datafusion::prelude::SessionContext;
//! use gridfusion::verify::{Depth, Progress};
//! use gridfusion::{ArrayOpener, ArrayOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> gridfusion::Result<()> {
//! let opener = ArrayOpener::of(&SessionContext::new().state());
//! let group = opener.group("examples/data/stations.tet", None, &ArrayOptions::default()).await?;
//! let progress = Arc::new(Progress::default());
//! let reports = group.verify(Depth::Cells, &progress).await;
//! assert!(reports.iter().all(|(_, report)| report.is_ok()));
//! assert_eq!(progress.done(), progress.total());
//! # Ok(())
//! # }
//! ```

mod cell_statistics;
mod check;
mod decoding;
mod finding;
mod pool;
mod progress;
mod report;

pub use cell_statistics::{CellStatistics, is_same, range_text};
pub use check::{Check, counted};
pub use decoding::{Decodable, Decoding, Findings};
pub use finding::{Finding, Severity};
pub use progress::Progress;
pub use report::{Depth, Report};
