//! TileDB arrays, groups and folders of arrays.
//!
//! The bytes are parsed in `crate::bytes`. This module finds the arrays of a place, and makes
//! tables, facts and reports of them.
//!
//! ```text
//!   format ──▶ group ──▶ members          which arrays are at the place?
//!                │ reading                options, one array at a time
//!                ▼
//!              reader ──┬─▶ columns, chunks, view ──▶ GridArray    queries of dense arrays
//!                       ├─▶ columns, sparse ──▶ SparseArray        queries of sparse arrays
//!                       ├─▶ fact_rows                              tiledb_info, tiledb_fragments, …
//!                       ├─▶ described ──▶ describe                 gridfusion info
//!                       └─▶ verify                                 gridfusion verify
//! ```

pub mod bytes;
mod chunks;
mod columns;
mod describe;
mod described;
mod fact_rows;
mod format;
mod group;
mod members;
mod reader;
mod reading;
mod sparse;
mod verify;
mod view;

pub use format::TileDb;
pub use reader::TileDbReader;
pub use verify::verify;
pub use view::TileDbView;
