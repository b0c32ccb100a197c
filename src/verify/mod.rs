//! Whether a file or an array is what it should be: everything that can be wrong, rather than the first
//! thing that a query trips over.
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

mod batch;
mod decoding;
mod figures;
mod pool;
mod progress;
mod report;

pub(crate) use batch::{Batch, read_each};
pub(crate) use decoding::{Decoded, Decoding, Fault};
pub(crate) use figures::{Figures, is_same, range_text};
pub use progress::Progress;
pub(crate) use report::counted;
pub use report::{Check, Depth, Finding, Report, Severity};
