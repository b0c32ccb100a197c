//! A mosaic combines arrays into one: variables become columns, and files are concatenated.
//!
//! ```text
//!                 temperature      precipitation            chunks of the table end where chunks
//!   2023.tet     ┌────┬────┐      ┌──┬──┬──┬──┐             of all arrays end, so that
//!     time  0    │    │    │      │  │  │  │  │    ┌────┬────┐      each stored chunk lies in one of
//!           ⋮    ├────┼────┤      │  │  │  │  │ ─▶ │    │    │      them and is decoded once
//!         364    └────┴────┘      └──┴──┴──┴──┘    │    │    │
//!   2024.tet     ┌────┬────┐      ┌──┬──┬──┬──┐    ├────┼────┤      a file ends at a border
//!         365    ⋮    ⋮    ⋮      ⋮  ⋮  ⋮  ⋮  ⋮    ⋮    ⋮    ⋮
//! ```
//!
//! A mosaic is a [`GridArray`](crate::array::GridArray) like any other, so pruning, reductions and declared
//! orders work across its files. Only its `ChunkSource` handles the parts: it locates their stored chunks and
//! places them in the chunks of the table.
//!
//! A join and a union would both hide facts from the planner. A union has no common axis, so orders, reductions and masks
//! over labels end at its branches. A join of two scans on all dimensions hashes rows that already correspond.
//!
//! | made once, by `combine` | used by every query |
//! |---|---|
//! | `compat`: may these arrays be one table? | `source`: the chunk source, which asks the parts |
//! | `concat_axis`: the axis, the order of the files, the labels | `layout`: which file and stored chunks? |
//! | `grid`: the chunks of the table | `overlap`: the place of a stored chunk in a chunk of the table |
//! | `layout`: where each file begins | `zones`: chunk statistics of several stored chunks |
//! | `side_by_side`: arrays that a query joins on their dimensions | `sliced`: a part of an array |
//! | `differences`: in what files differ; `survey`, `groups`: which files would be one table | `own_fill`: a file with another fill value |
//! | `known_files`: the facts of all files, for another process | `later`: a file that is opened when it is read |
//! | `common_values`, `common_type`, `units`: what files that store values differently have in common | |
//! | `unite`: files of other variables and ranks; `stack`, `file_label`, `group_pattern`: files and groups along a new dimension | |
//! | `precision`, `repeated_labels`: labels of other types, and those that several files have | |

mod bounds;
mod combine;
mod common_type;
mod common_values;
pub(crate) mod compat;
mod concat_axis;
mod counted_labels;
pub(crate) mod differences;
mod file_arrays;
mod file_label;
mod grid;
mod group_pattern;
mod groups;
mod known_files;
mod later;
mod layout;
mod optional;
mod options;
mod overlap;
mod own_fill;
mod padded;
mod precision;
mod repeated_labels;
mod side_by_side;
mod sliced;
mod source;
mod stack;
pub(crate) mod survey;
mod unite;
mod units;
mod zones;

pub use combine::Arrangement;
pub use file_arrays::FileArrays;
pub use file_label::FileLabel;
pub use group_pattern::GroupPattern;
pub use known_files::KnownFile;
pub use known_files::KnownFiles;
pub use later::OpensFiles;
pub use options::MosaicOptions;
pub use side_by_side::AlignedArray;
pub use stack::{Stack, StackLabels};
