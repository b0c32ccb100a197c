//! `COPY … TO 'x.zarr'`: the rows of a query become an array, in one of several formats.
//!
//! ```text
//!   COPY (SELECT month, lat, lon, avg(t2m) AS mean …) TO 'mean.zarr' OPTIONS (chunks 'month=1')
//!
//!   rows, sorted by month, lat, lon
//!     │ Labels: a number for each label that is met, per dimension; runs of rows whose numbers follow one another
//!     ▼
//!   StoredRows: values and runs, in memory or in spill files              ──▶ shape, labels
//!     │ read again, a row of chunks at a time
//!     ▼
//!   RowSlabs: the place of each run                                        gaps are NULL, twice the same place is an error
//!     │ chunk by chunk
//!     ▼
//!   ArrayWriter ──▶ objects, and last the one that makes the store visible
//! ```
//!
//! Nothing is known of the rows before they are read: which labels there are, and whether all cells are. So rows are read to their end
//! before the first chunk is written, and a wrong row leaves nothing behind.
//!
//! | file | contents |
//! |---|---|
//! | `format` | the file formats that `COPY` asks for |
//! | `append` | plans for the rows that are inserted into a table |
//! | `targets` | the formats of arrays |
//! | `place` | the folder or file that is written |
//! | `listings` | the metadata of a group in the stores above it |
//! | `replacement` | a folder that takes the place of an array |
//! | `options` | the options |
//! | `attributes` | the attributes of the array and its columns |
//! | `dimensions` | the columns that are dimensions |
//! | `sink` | the operator's sink |
//! | `write_modes` | a new array, another version, or more rows of one |
//! | `labels` | the labels of a dimension |
//! | `new_store` | the loop over rows of chunks |
//! | `row_runs` | the cells of rows, as runs |
//! | `row_slabs` | rows of chunks out of rows |
//! | `copy` | rows of chunks out of an array, without rows |
//! | `stored_rows` | rows that wait for the shape |

mod append;
mod attributes;
mod copy;
mod dimensions;
mod format;
mod labels;
mod listings;
mod new_store;
mod options;
mod place;
mod replacement;
mod row_runs;
mod row_slabs;
mod sink;
mod stored_rows;
mod targets;
mod write_modes;

pub(crate) use append::finds_arrays_by_name;
pub use append::{AfterWrite, AppendPlace, NewArrayPlan, append_plan};
pub(crate) use copy::copy_arrays;
pub use format::{ArrayFormatFactory, is_taken_for_rows};
pub use sink::writes_array;
