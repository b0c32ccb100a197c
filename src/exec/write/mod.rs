//! `COPY` and `INSERT`: the types and texts that other programs read from the files.
//!
//! ```text
//!   COPY … TO 'x.parquet'   seconds ──▶ milliseconds           Parquet has no type for seconds
//!   COPY … TO 'x.json'      infinity ──▶ "Infinity"            JSON has no number for it; null would be another value
//! ```

mod json_floats;
mod json_rule;
mod json_sink;
mod parquet_rule;
mod parquet_types;

pub use json_floats::JsonFloats;
pub(super) use json_rule::with_json_floats;
pub use parquet_rule::ParquetTypesRule;
pub use parquet_types::parquet_type;
