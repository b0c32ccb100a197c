//! Groups of variables as arrays: what Zarr, NetCDF and HDF5 have in common after their bytes are parsed.
//!
//! ```text
//!   VariableStore: a Hierarchy, and the places of chunks      one impl per format
//!         │
//!   roles     which variables are data, and which are coordinates or bounds
//!   labels    the labels of each axis, from coordinate variables
//!   values    cells and attributes as columns: missing data, packing, times (CF conventions)
//!   beside    coordinates as columns of the same table
//!         │
//!   HierarchyGroup: an ArrayGroup, which `describe` describes
//! ```
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
