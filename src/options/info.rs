//! Lists the options of every format and the settings of a session.

use super::value::ValueKind;

/// The place that an option may be given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One table.
    Table,
    /// One file, package or group, and so its tables.
    Place,
    /// All of these, and a catalog of many places.
    Any,
}

/// One option, and everything that messages and documentation say of it.
///
/// ```
/// use gridfusion::{OptionInfo, ValueKind};
///
/// const LEVEL: OptionInfo =
///     OptionInfo::new("level", ValueKind::Number, "`0`", "which level of the pyramid").in_session();
/// assert!(LEVEL.session);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ValueKind,
    /// Its default, in Markdown.
    pub default: &'static str,
    /// Its meaning, in a few words of Markdown.
    pub meaning: &'static str,
    /// Whether `SET gridfusion.NAME` sets a default for all tables that are opened after that.
    pub session: bool,
    /// The place that it may be given for.
    pub scope: Scope,
}

impl OptionInfo {
    /// An option of tables.
    pub const fn new(
        name: &'static str,
        kind: ValueKind,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { name, kind, default, meaning, session: false, scope: Scope::Any }
    }

    /// The same, which a session can set for its tables too.
    #[must_use]
    pub const fn in_session(self) -> Self {
        Self { session: true, ..self }
    }

    /// The same, which is about one table.
    #[must_use]
    pub const fn of_one_table(self) -> Self {
        Self { scope: Scope::Table, ..self }
    }

    /// The same, which is about one file, package or group.
    #[must_use]
    pub const fn of_one_place(self) -> Self {
        Self { scope: Scope::Place, ..self }
    }
}

/// The options of tables of every format.
pub const COMMON: &[OptionInfo] = &[
    OptionInfo::new(
        "dataset",
        ValueKind::Name,
        "all data variables, a column each",
        "which dataset of the file, or array of the group, or several with commas between them",
    )
    .of_one_table(),
    OptionInfo::new(
        "concat_dimension",
        ValueKind::Name,
        "the one whose labels differ",
        "the dimension along which several files follow one another",
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

/// The settings of a session that are about queries rather than tables.
pub const SESSION: &[OptionInfo] = &[
    OptionInfo::new(
        "reduce",
        ValueKind::Flag,
        "`true`",
        "aggregates over dimensions are array reductions instead of aggregations over rows",
    )
    .in_session(),
    OptionInfo::new(
        "reduce_memory",
        ValueKind::Number,
        "`1073741824`",
        "bytes that the tables of groups of one reduction may take; larger ones are aggregated over rows",
    )
    .in_session(),
];
