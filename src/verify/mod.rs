//! Verification of files and arrays: all that is wrong with them, rather than the first thing that a query
//! meets.
//!
//! ```text
//!   TetReader::verify ────▶ tet ──┬─ index       rows, grids, places of payloads
//!                                  ├─ zones       zone maps, in the file and beside it
//!                                  ├─ cells       every payload decoded, zone maps made again
//!                                  └─ package     manifests, hashes, other generations
//!   OpenedTileDb::verify ──▶ tiledb ─ tiles       every tile of every fragment, and its figures
//! ```
//!
//! The result is a [`Report`] of named [`Check`]s; `docs/verify.md` says what each is about. A file that
//! cannot be opened has one too: [`Report::of_error`].
//!
//! ```
//! use std::sync::Arc;
//! use gridfusion::verify::{Depth, Progress};
//! use gridfusion::{TetReadOptions, open};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> gridfusion::Result<()> {
//! let runtime = Default::default();
//! let file = open("examples/data/stations.tet", &TetReadOptions::default(), &runtime).await?;
//! let progress = Arc::new(Progress::default());
//! let report = file.verify(Depth::Cells, &progress).await;
//! assert!(report.is_ok());
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

pub(crate) use cell_statistics::{CellStatistics, is_same, range_text};
pub use check::{Check, counted};
pub(crate) use decoding::{Decodable, Decoding};
pub use finding::{Finding, Severity};
pub use progress::Progress;
pub use report::{Depth, Report};
