//! Arrays as tables: dimensions with labels, variables as columns, and a schema.
//!
//! ```text
//!   labels    what a dimension's column shows: listed, counted, text, CF times
//!   values    how the cells of a value become a column: NULL, packing, categories
//!   GridArray both together, over a ChunkSource that finds stored chunks
//!   sparse    arrays of single cells, over a SparseSource that finds tiles
//! ```
//!
//! `broadcast` repeats an array along dimensions that it lacks. A format makes a [`GridArray`] with
//! [`GridArrayBuilder`]. A scan then takes each chunk through it:
//!
//! ```text
//!   ChunkTask ──locate──▶ StoredChunk ──fetch──▶ payloads ──decode──▶ Tile ──ValueColumn::decode──▶ column
//!       └─────────────────────── Labels::select, Labels::slice ───────────────────────▶ dimension columns
//! ```

mod arrow_error;
mod broadcast;
mod builder;
mod calendar;
mod calendar_time;
mod cf_time;
mod chunk_source;
mod column;
mod common_labels;
mod coordinates;
mod counted_times;
mod counter;
mod dimension;
mod element;
mod found_chunks;
mod grid_array;
mod known_cells;
mod label_order;
mod labels;
mod number_attributes;
mod property;
mod read_options;
mod remarks;
mod single_labels;
mod sparse;
mod text_labels;
mod time_reference;
mod value_bounds;
mod values;

pub use arrow_error::failed_to;
pub use builder::GridArrayBuilder;
pub use calendar::{Calendar, CalendarDate};
pub use calendar_time::{CalendarTime, TimePart};
pub use cf_time::TimeUnits;
pub use chunk_source::{ChunkSource, Contents, RepeatedInFiles};
pub(crate) use column::StoredForm;
pub use column::{ColumnSource, Value};
pub use counted_times::{COUNTED_TIMES, CountedTimes, as_numbers};
pub use counter::Counter;
pub use dimension::Dimension;
pub(crate) use element::for_element_type;
pub use element::{Element, ElementVisitor, decimal, visit_element_type};
pub use found_chunks::FoundChunks;
pub use grid_array::{GridArray, Workspace};
pub use known_cells::VariableCells;
pub use label_order::LabelOrder;
pub use label_order::with_one_zero;
pub use label_order::without_negative_zeros;
pub use labels::Labels;
pub use number_attributes::{NUMBER_ATTRIBUTES, NumberKind, attribute_values, mark_numbers};
pub(crate) use property::Property;
pub use read_options::ReadOptions;
pub use remarks::Remarks;
pub(crate) use single_labels::is_mark;
pub use single_labels::{SINGLE_LABELS, is_single_label};
pub use sparse::{
    CellKeys, CellTimes, KeyColumn, SparseArray, SparseFragment, SparseSource, StoredNumbers,
    TileBounds, TileNumber,
};
pub use value_bounds::{ValueBounds, with_both_zeros};
pub use values::{
    CellColumn, CellKind, Charset, Encoding, NumberColumn, Scalar, StructField, Temporal,
    Unreadable, ValueColumn,
};
pub use values::{Form, NOT_A_TIME, declared_fill, element_of};
