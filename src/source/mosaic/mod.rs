//! Arrays side by side as one table: variables as columns, files one after the other.
//!
//! ```text
//!                 temperature      precipitation            chunks of the table: the coarsest cuts that
//!   2023.tet     ┌────┬────┐      ┌──┬──┬──┬──┐             are borders of every array there, so that
//!     time  0    │    │    │      │  │  │  │  │    ┌────┬────┐      each stored chunk lies in one of
//!           ⋮    ├────┼────┤      │  │  │  │  │ ─▶ │    │    │      them and is decoded once
//!         364    └────┴────┘      └──┴──┴──┴──┘    │    │    │
//!   2024.tet     ┌────┬────┐      ┌──┬──┬──┬──┐    ├────┼────┤      a file ends at a border
//!         365    ⋮    ⋮    ⋮      ⋮  ⋮  ⋮  ⋮  ⋮    ⋮    ⋮    ⋮
//! ```
//!
//! To everything above, a mosaic is a [`GridArray`](crate::array::GridArray) like any other, whose `ChunkSource` finds
//! the stored chunks of its parts and places them in the table's: predicates prune across files,
//! reductions and orders run over all of them.

mod combine;
mod compat;
mod concat_axis;
mod file_arrays;
mod grid;
mod layout;
mod options;
mod overlap;
mod source;
mod zones;

pub use file_arrays::FileArrays;
pub use options::MosaicOptions;
