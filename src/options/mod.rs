//! Options: what can be said about how arrays are read, whatever the way it is said.
//!
//! ```text
//!   OptionInfo     name, kind of value, default, meaning: parsers, messages, SHOW ALL and docs share it
//!   OptionTable    the options of one format: the common ones and its own
//!   ArrayOptions   what somebody said: a builder in Rust, OPTIONS (…), named arguments
//!        │ OptionTable::resolve
//!        ▼
//!   ResolvedOptions   each value of its kind, defaults of the session filled in: what a format reads
//! ```
//!
//! Precedence: statement, argument or builder; else the session (`SET gridfusion.…`); else what is built in.

mod array_options;
mod info;
mod table;
mod value;

pub use array_options::{ArrayOptions, ResolvedOptions};
pub use info::{COMMON, OptionInfo, SESSION, Scope};
pub use table::OptionTable;
pub(crate) use table::similar;
pub use value::{IoMode, OptionValue, Secret, ValueKind};
