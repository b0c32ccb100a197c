//! [`OptionInfo`], and the tables of options that all formats share and of session settings.

use super::value::ValueKind;

/// Where an option may be set.
///
/// `ArrayOpener::schema` and `GridCatalog` refuse options that apply to less than they open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// For one table.
    Table,
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
    /// This is a text for documents: the code that reads an option applies the default itself. The exceptions
    /// are the settings `reduce` and `reduce_memory`, which `SET … = 'default'` resets to this text.
    pub default: &'static str,
    /// The meaning, in a few words of Markdown.
    pub meaning: &'static str,
    /// Whether `SET gridfusion.NAME` sets a default for all tables that are opened afterwards.
    pub session: bool,
    /// Where the option may be set.
    pub scope: Scope,
}

impl OptionInfo {
    /// Makes an option that may be set for tables, schemas and catalogs, but not for a session.
    pub const fn new(
        name: &'static str,
        kind: ValueKind,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { name, kind, default, meaning, session: false, scope: Scope::Any }
    }

    /// Lets a session set the option for its tables too.
    #[must_use]
    pub const fn in_session(self) -> Self {
        Self { session: true, ..self }
    }

    /// Restricts the option to one table.
    #[must_use]
    pub const fn of_one_table(self) -> Self {
        Self { scope: Scope::Table, ..self }
    }

    /// Restricts the option to one file, package or group.
    #[must_use]
    pub const fn of_one_place(self) -> Self {
        Self { scope: Scope::Place, ..self }
    }
}

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
/// The order is that of messages and documents. `OptionTable::options` relies on the first two, which choose
/// arrays.
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

/// The settings of a session that control queries rather than tables. `GridfusionConfig` stores them in fields
/// of their own.
pub const SESSION: &[OptionInfo] = &[
    OptionInfo::new(
        "reduce",
        ValueKind::Flag,
        "`true`",
        "runs aggregations over dimensions as array reductions instead of over rows",
    )
    .in_session(),
    OptionInfo::new(
        "reduce_weights",
        ValueKind::Flag,
        "`true`",
        "applies weights, arithmetic and conditions to sums of cells instead of to each cell",
    )
    .in_session(),
    OptionInfo::new(
        "eager_aggregation",
        ValueKind::Flag,
        "`true`",
        "reduces an array before it is joined with a table, instead of after",
    )
    .in_session(),
    OptionInfo::new(
        "align_joins",
        ValueKind::Flag,
        "`true`",
        "joins arrays on their dimensions by index instead of by hashing",
    )
    .in_session(),
    OptionInfo::new(
        "reduce_windows",
        ValueKind::Flag,
        "`true`",
        "aggregates whole partitions of a window as a reduction, and joins it with the rows",
    )
    .in_session(),
    OptionInfo::new(
        "top_rows",
        ValueKind::Flag,
        "`true`",
        "leaves out rows that cannot be among the first of their partition, before `row_number` or `rank` sorts them",
    )
    .in_session(),
    OptionInfo::new(
        "lookup_joins",
        ValueKind::Flag,
        "`true`",
        "finds the rows that match a cell by the place of its labels instead of by hashing",
    )
    .in_session(),
    OptionInfo::new(
        "grid_windows",
        ValueKind::Flag,
        "`true`",
        "runs windows whose frames move along a dimension on the array instead of over sorted rows",
    )
    .in_session(),
    OptionInfo::new(
        "reduce_memory",
        ValueKind::Number,
        "`1073741824`",
        "bytes for the groups of one reduction; aggregations that need more run over rows",
    )
    .in_session(),
    OptionInfo::new(
        "declare_range",
        ValueKind::Flag,
        "`true`",
        "declares partitions that are ranges of labels to the planner; engines that divide plans need `false`",
    )
    .in_session(),
    OptionInfo::new(
        "remote_requests",
        ValueKind::Number,
        "`64`",
        "requests to object stores that are in flight at once",
    )
    .in_session(),
    OptionInfo::new(
        "remote_bytes",
        ValueKind::Number,
        "`79691776`",
        "bytes that the requests in flight ask for",
    )
    .in_session(),
    OptionInfo::new(
        "remote_timeout",
        ValueKind::Number,
        "`30`",
        "seconds without progress after which a request fails",
    )
    .in_session(),
    OptionInfo::new("remote_tries", ValueKind::Number, "`4`", "how often a request is tried")
        .in_session(),
    OptionInfo::new(
        "remote_gap",
        ValueKind::Number,
        "`1048576`",
        "the most bytes between two ranges that share a request",
    )
    .in_session(),
    OptionInfo::new(
        "remote_merge",
        ValueKind::Number,
        "`8388608`",
        "the most bytes of one request",
    )
    .in_session(),
    OptionInfo::new(
        "remote_cache",
        ValueKind::Number,
        "`67108864`",
        "bytes of indexes, labels and listings that are kept for later queries",
    )
    .in_session(),
    OptionInfo::new(
        "remote_check",
        ValueKind::Number,
        "`1`",
        "seconds for which a listed or opened object is not checked again when a table is opened",
    )
    .in_session(),
];
