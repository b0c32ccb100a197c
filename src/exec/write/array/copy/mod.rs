//! The rule `GridCopy`: an array becomes another one chunk by chunk, without rows.
//!
//! ```text
//!   DataSinkExec: ArraySink                          DataSinkExec: ArraySink
//!     SortExec: time, lat, lon                         GridCellsExec: chunks=8/8, …
//!       ProjectionExec: time, lat, lon, t2m - 273  ▶
//!         GridScanExec
//!
//!   chunks of the scan       a section: rows of chunks of the new array
//!   ┌────┬────┐              ┌──┬──┬──┬──┐
//!   │    │    │  expressions ├──┼──┼──┼──┤
//!   ├────┼────┤      ──▶     └──┴──┴──┴──┘ ──▶ chunks are encoded and written
//!   │    │    │              the next section …
//!   └────┴────┘
//! ```
//!
//! A query of this kind shows each cell of a box of labels once. So the labels of the new array are known before a cell is read,
//! and each cell has one place. Sections are as large as the memory allows, because a chunk that lies in several ones is read for each of
//! them.
//!
//! | file | contents |
//! |---|---|
//! | `copied_array` | the array that is read, and the places of its labels |
//! | `cells` | the operator in plans, and the rule |
//! | `sections` | the loop over sections |
//! | `section_reader` | the chunks of a section, in several partitions |

mod cells;
mod copied_array;
mod section_reader;
mod sections;

pub(super) use cells::GridCellsExec;
pub(crate) use cells::copy_arrays;
pub(super) use copied_array::CopiedArray;
pub(super) use sections::Sections;
