//! Whether a file or an array is what it should be: everything that can be wrong, rather than the first
//! thing that a query trips over.
//!
//! ```text
//!   OpenedFile::verify ────▶ tet ──┬─ index       rows, grids, places of payloads
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
//! use gridfusion::scan::verify::{Depth, Progress};
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

mod batch;
mod cells;
mod decoding;
mod extents;
mod figures;
mod index;
mod package;
mod pool;
mod progress;
mod report;
mod sidecars;
mod sums;
mod tet;
mod tiledb;
mod tiles;
mod zones;

pub use progress::Progress;
pub use report::{Check, Depth, Finding, Report, Severity};
