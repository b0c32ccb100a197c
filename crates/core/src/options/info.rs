//! [`OptionInfo`], and the table of options that all formats share.

use super::overlap::Overlap;
use super::value::ValueKind;

/// Where an option may be set.
///
/// `ArrayOpener::schema` and `GridCatalog` refuse options that apply to less than they open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// For one table.
    Table,
    /// For one table of many files, or to describe files that would be one.
    Files,
    /// For a table, or for a schema: one file, package or group with all its tables.
    Place,
    /// For a table, a schema, or a catalog of many files.
    Any,
}

/// An option, with the texts about it in messages and documentation.
///
/// ```
/// use gridfusion_core::options::{OptionInfo, ValueKind};
///
/// const LEVEL: OptionInfo =
///     OptionInfo::new("level", ValueKind::Number, "`0`", "the level of the pyramid to read").in_session();
/// assert!(LEVEL.session);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The name in SQL, Rust and messages.
    pub name: &'static str,
    /// The kind of values that it accepts.
    pub kind: ValueKind,
    /// The default value, in Markdown.
    ///
    /// This is a text for documents: the code that reads an option applies the default itself.
    pub default: &'static str,
    /// The meaning, in a few words of Markdown.
    pub meaning: &'static str,
    /// Whether `SET gridfusion.NAME` sets a default for all tables that are opened afterwards.
    pub session: bool,
    /// Where the option may be set.
    pub scope: Scope,
    /// The name before this one, which still works.
    pub former: Option<&'static str>,
}

impl Scope {
    /// Whether an option applies to less than a schema of several tables.
    #[must_use]
    pub fn is_of_one_table(self) -> bool {
        matches!(self, Self::Table | Self::Files)
    }
}

impl OptionInfo {
    /// Makes an option that may be set for tables, schemas and catalogs, but not for a session.
    pub const fn new(
        name: &'static str,
        kind: ValueKind,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { name, kind, default, meaning, session: false, scope: Scope::Any, former: None }
    }

    /// Lets a session set the option for its tables too.
    #[must_use]
    pub const fn in_session(self) -> Self {
        Self { session: true, ..self }
    }

    /// Lets the option have another name, too, which it had before.
    #[must_use]
    pub const fn formerly(self, name: &'static str) -> Self {
        Self { former: Some(name), ..self }
    }

    /// Whether this is the name of the option, or was it before.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.former == Some(name)
    }

    /// Restricts the option to one table.
    #[must_use]
    pub const fn of_one_table(self) -> Self {
        Self { scope: Scope::Table, ..self }
    }

    /// Restricts the option to one table of many files.
    #[must_use]
    pub const fn of_many_files(self) -> Self {
        Self { scope: Scope::Files, ..self }
    }

    /// Restricts the option to one file, package or group.
    #[must_use]
    pub const fn of_one_place(self) -> Self {
        Self { scope: Scope::Place, ..self }
    }
}

/// An option of formats whose numbers may be times of the CF conventions.
pub const DECODE_TIMES: OptionInfo = OptionInfo::new(
    "decode_times",
    ValueKind::Flag,
    "`true`",
    "numbers with units such as `hours since 2000-01-01` are timestamps",
)
.in_session();

/// An option of formats that may hold text of other encodings than UTF-8.
pub const TEXT_AS_BINARY: OptionInfo = OptionInfo::new(
    "text_as_binary",
    ValueKind::Flag,
    "`false`",
    "shows text as bytes, valid or not",
)
.in_session();

/// An option of formats that hold text, some of it in the character sets of its writers.
pub const TEXT_ENCODING: OptionInfo = OptionInfo::new(
    "text_encoding",
    ValueKind::Encoding,
    "`_Encoding` of the variable, else `utf-8`",
    "the character set of text, such as `latin1` or `windows-1252`",
)
.in_session();

/// An option of formats with metadata documents.
pub const METADATA_LIMIT: OptionInfo = OptionInfo::new(
    "metadata_limit",
    ValueKind::Number,
    "`67108864`",
    "the most bytes of one metadata document, such as `zarr.json`",
)
.in_session();

/// The options that every format has.
///
/// The order is that of messages and documents. `OptionTable::options` relies on the first ones, which choose arrays and
/// combine them.
pub const COMMON: &[OptionInfo] = &[
    OptionInfo::new(
        "dataset",
        ValueKind::Name,
        "all data variables, a column each",
        "the dataset of a file, or array of a group, to read; commas separate several",
    )
    .of_one_table(),
    OptionInfo::new(
        "concat_dimension",
        ValueKind::Name,
        "the one whose labels differ",
        "the dimension along which several files are concatenated",
    )
    .of_many_files(),
    OptionInfo::new(
        "stack",
        ValueKind::Name,
        "none",
        "a new dimension along which files are stacked, and where its labels come from",
    )
    .of_many_files(),
    OptionInfo::new(
        "union_by_name",
        ValueKind::Flag,
        "`false`",
        "variables that some files lack are NULL there; variables of fewer dimensions are repeated along the others",
    )
    .of_many_files(),
    OptionInfo::new(
        "overlap",
        ValueKind::Choice(Overlap::NAMES),
        "`refused`",
        "the file that wins where several have the same label",
    )
    .of_many_files(),
    OptionInfo::new(
        "skip_unreadable",
        ValueKind::Flag,
        "`false`",
        "leaves out files of a list or pattern that cannot be opened, with a warning for each",
    )
    .of_one_table(),
    OptionInfo::new("io", ValueKind::Io, "`mmap`", "how local files are read").in_session(),
    OptionInfo::new("nan_as_null", ValueKind::Flag, "`true`", "NaN and NaT are NULL").in_session(),
    OptionInfo::new("fill_as_null", ValueKind::Flag, "`true`", "the declared fill value is NULL")
        .in_session(),
    OptionInfo::new(
        "index_columns",
        ValueKind::Flag,
        "`false`",
        "adds `<dimension>_idx`, the 0-based index",
    )
    .in_session(),
    OptionInfo::new(
        "file_column",
        ValueKind::Flag,
        "`false`",
        "adds `_file`, the path or URL that a row is from",
    )
    .in_session()
    .of_one_table(),
    OptionInfo::new(
        "trust_zone_maps",
        ValueKind::Flag,
        "`true`",
        "uses the chunk statistics that the writer stored",
    )
    .in_session(),
];
