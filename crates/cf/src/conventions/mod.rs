//! Groups of variables as arrays: what Zarr, NetCDF and HDF5 have in common after their bytes are parsed.
//!
//! ```text
//!   VariableStore: a Hierarchy, and the places of chunks      one impl per format
//!         │
//!   roles     which variables are data, and which are coordinates or bounds
//!   labels    the labels of each axis, from coordinate variables
//!   values    cells and attributes as columns: missing data, packing, times (CF conventions)
//!   parts     fields of compounds and halves of complex numbers
//!   beside    coordinates as columns of the same table
//!   ragged    the variables of an instance, such as a station, beside its observations
//!         │
//!   HierarchyGroup: an ArrayGroup, which `describe` describes
//! ```
//!
//! - **One meaning.** A dataset that xarray writes as Zarr and as NetCDF must give equal tables. With one implementation
//!   of roles, labels and values, it does. Differences between formats are facts of a `Variable`: `fill_is_missing` tells
//!   whether the fill value is NULL, as in Zarr version 2.
//! - **Columns.** Numbers go through the same `NumberColumn` as those of `.tet` files, so the kernels of reductions
//!   apply. Several missing values, or a valid range, are tested apart, in the tier of accumulators.
//! - **Labels** are read by the code that reads any array. They are ignored if they take far more memory than the bytes
//!   that are stored for them.
//! - **Unreadable variables** are part of a hierarchy, each with its error. They make no other variable fail, and queries
//!   of them return the error.
//!
//! Facts: the CF conventions 1.11 (sections 2.4 to 2.6, 3.1, 4.4, 5, 7.1 and 8.1), and the NetCDF User's Guide,
//! appendix A. Where they leave a choice, xarray decides.

mod beside;
mod chunks;
mod complex;
mod describe;
mod group;
mod labels;
mod options;
mod parts;
mod ragged;
mod records;
mod roles;
mod store;
mod totals;
mod values;
mod variable_array;
mod verify;

pub use group::HierarchyGroup;
pub use options::{HierarchyView, OPTIONS};
pub use store::{StoreFacts, StoredTotals, VariableStore};
pub use totals::located_totals;
