//! Options that control how arrays are read, and their precedence.
//!
//! ```text
//!   OptionInfo     name, kind of value, default, meaning: parsers, messages, SHOW ALL and docs share it
//!   OptionTable    the options of one format: the common ones and its own
//!   ArrayOptions   unchecked names and values: from a Rust builder, OPTIONS (…), named arguments
//!        │ OptionTable::resolve
//!        ▼
//!   ResolvedOptions   checked values and the session's defaults, for the format to read
//! ```
//!
//! A table's option (statement, argument or builder) wins over the session's (`SET gridfusion.…`), and that
//! over the default.

mod array_options;
mod info;
mod table;
mod value;

pub use array_options::is_of_store;
pub use array_options::{ArrayOptions, ResolvedOptions};
pub use info::{COMMON, OptionInfo, Scope};
pub use info::{METADATA_LIMIT, TEXT_AS_BINARY, TEXT_ENCODING};
pub use table::OptionTable;
pub use table::similar;
pub use value::{IoMode, OptionValue, Secret, ValueKind};
