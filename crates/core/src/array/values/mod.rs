//! Columns of variables: decoded cells as SQL values.
//!
//! ```text
//!   Tile ──┬─ numbers ───▶ NumberColumn   NaN and fill are NULL, CF packing; the kernels reduce them
//!          └─ all else ──▶ CellColumn     truth values, dates, text, bytes, lists, structs, enumerations
//! ```

mod cells;
mod composite;
mod declarations;
mod encoding;
mod number;
mod packed;
mod properties;
mod scalar;
mod stored_numbers;
mod temporal;
mod text;
mod value_column;

pub use cells::{CellColumn, CellKind, Unreadable};
pub use composite::StructField;
pub use declarations::{declared_fill, element_of};
pub use encoding::{Charset, Encoding};
pub use number::Form;
pub use number::NumberColumn;
pub use scalar::Scalar;
pub use temporal::NOT_A_TIME;
pub use temporal::Temporal;
pub use value_column::ValueColumn;
