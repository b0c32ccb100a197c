//! Arrays as tables see them: dimensions with labels, values as columns, a schema.
//!
//! ```text
//!   labels    what a dimension's column shows: listed, counted, text, CF times
//!   values    how the cells of a value become a column: NULL, packing, categories
//!   GridArray both together, over a ChunkSource that finds stored chunks
//! ```

mod cf_time;
mod chunk_source;
mod column;
mod counter;
mod decimal;
mod dimension;
mod grid_array;
mod labels;
mod read_options;
mod remarks;
mod text_labels;
mod values;

pub(crate) use cf_time::TimeUnits;
pub(crate) use chunk_source::ChunkSource;
pub use column::Column;
pub(crate) use column::Value;
pub use counter::Counter;
pub(crate) use decimal::decimal;
pub use dimension::Dimension;
pub use grid_array::{GridArray, Workspace};
pub use labels::{LabelOrder, Labels};
pub use read_options::ReadOptions;
pub(crate) use remarks::Remarks;
pub use values::{CellColumn, CellKind, Encoding, NumberColumn, Scalar, Temporal, ValueColumn};
pub(crate) use values::{Element, Form, NOT_A_TIME, declared_fill};
