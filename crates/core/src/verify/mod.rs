//! Verification of files and arrays: reports every fault, while a query stops at the first.
//!
//! ```text
//!   ArrayGroup::verify ──┬▶ tet ─────────┬─ index     rows, grids, places of payloads
//!                        │               ├─ zones     zone maps, in the file and beside it
//!                        │               ├─ cells     every payload decoded, zone maps recomputed
//!                        │               └─ package   manifests, hashes, other generations
//!                        ├▶ tiledb ──────┬─ tiles     every tile of every fragment, and its statistics
//!                        │               └─ sparse    coordinates, their order and their rectangles
//!                        └▶ all others ──── chunks    every chunk located and decoded; of HDF5 also whole indexes
//! ```
//!
//! Checks and queries share parsers, but judge differently: a fault that queries can ignore is a warning.
//!
//! The result is a [`Report`] of named [`Check`]s, which `docs/verify.md` and the `FORMAT.md` of formats describe.
//! [`Report::from_error`] makes the report on a file that cannot be opened.
//!
//! ```
//! use std::sync::Arc;
//! use gridfusion_core::read::Dataset;
//! use gridfusion_core::verify::{Depth, Progress};
//!
//! async fn is_whole(dataset: &Dataset) -> bool {
//!     let reports = dataset.group().verify(Depth::Cells, &Arc::new(Progress::default())).await;
//!     reports.iter().all(|(_, report)| report.is_ok())
//! }
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
