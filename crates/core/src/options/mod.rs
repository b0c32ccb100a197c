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
//!
//! An option that names one thing (`dataset`, `timestamp`) cannot be set for a session. Only `Formats::resolve` knows the
//! format. It refuses options that the format does not have, because an ignored option silently gives another answer. The
//! session's settings are for tables of all formats, so a format ignores those that it does not have.

mod array_options;
mod info;
mod overlap;
mod table;
mod value;

pub use array_options::is_of_store;
pub use array_options::{ArrayOptions, ResolvedOptions};
pub use info::{COMMON, OptionInfo, Scope};
pub use info::{DECODE_TIMES, METADATA_LIMIT, TEXT_AS_BINARY, TEXT_ENCODING};
pub use overlap::Overlap;
pub use table::OptionTable;
pub use table::similar;
pub use value::{IoMode, OptionValue, Secret, ValueKind};
