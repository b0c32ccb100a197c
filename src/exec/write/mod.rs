//! `COPY` and `INSERT`: the types and texts that other programs read from the files.
//!
//! ```text
//!   COPY … TO 'x.parquet'   seconds ──▶ milliseconds           Parquet has no type for seconds
//!   COPY … TO 'x.json'      infinity ──▶ "Infinity"            JSON has no number for it; null would be another value
//!   COPY … TO 'x.zarr'      rows ──▶ cells                     an array again
//!   COPY … TO 'x.csv'       rows ──▶ lines                     the text of Arrow's writer, in less time
//! ```

mod array;
mod csv;
mod in_order;
mod json_values;
mod parquet_rule;
mod parquet_types;
mod text_rule;
mod text_sink;
mod times;

pub use array::{
    AfterWrite, AppendPlace, ArrayFormatFactory, NewArrayPlan, append_plan, is_taken_for_rows,
    writes_array,
};
pub(crate) use array::{copy_arrays, finds_arrays_by_name};
pub use csv::CsvFormatter;
pub(crate) use in_order::read_in_order;
pub use json_values::JsonValues;
pub use parquet_rule::ParquetTypesRule;
pub use parquet_types::parquet_type;
#[cfg(feature = "codec")]
pub(crate) use text_rule::with_plain_sink;
pub(crate) use text_rule::with_text_formatters;
