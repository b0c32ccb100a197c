//! The Tetration `.tet` file format, layout version 1. `crates/tet/FORMAT.md` describes every byte.
//!
//! ```text
//!  0          32                        aligned to 8                               end of file
//!  ├ superblock ┼ dataset directory ┼ chunk index (TIDX) ┼ payloads … ┼ spills, JSON, THST tail ┤
//!        │              │                    │                  ▲                │
//!   superblock.rs   directory.rs         index.rs ──────────────┘            footer.rs
//!                              read_index.rs, locate.rs              metadata.rs, zone.rs
//! ```
//!
//! [`OpenFile`] reads the superblock, the directory, the index header and the footer, so opening costs
//! O(datasets). Opening does not read the index: [`TetFile::locate`] reads only the rows of the chunks that
//! a query needs. `labels.rs` finds the names and labels of axes, `read_zones.rs` reads chunk statistics, and
//! `check/` finds faults in a file.
//!
//! A package is a folder with several generations of such a file; [`OpenPackage`] finds the current one.

mod check;
mod directory;
mod file;
mod footer;
mod index;
mod labels;
mod likely_labels;
mod locate;
mod metadata;
mod open_file;
pub(crate) mod open_package;
pub(crate) mod package_names;
mod read_index;
mod read_zones;
mod superblock;
mod zone;

pub use check::{
    CheckFooter, CheckIndex, CheckZoneMaps, CheckedFooter, CheckedRow, CheckedZoneMaps, RowField,
    ZoneFault,
};
pub use directory::Dataset;
pub use file::TetFile;
pub use labels::{DimSpec, LabelSource};
pub use locate::Locate;
pub use metadata::{DatasetMetadata, HistoryEvent};
pub use open_file::OpenFile;
pub use open_package::{Generation, OpenPackage, is_package};
pub use read_index::{IndexEntry, ReadIndex};
pub use read_zones::{ReadAllZoneMaps, ReadZoneMaps};
pub(crate) use superblock::MAGIC;
pub use zone::ZoneMaps;
