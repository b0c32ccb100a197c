//! The options of formats with groups of variables, and the settings that they give.

use gridfusion_core::array::{Encoding, ReadOptions};
use gridfusion_core::options::{
    DECODE_TIMES, METADATA_LIMIT, OptionInfo, ResolvedOptions, TEXT_AS_BINARY, TEXT_ENCODING,
    ValueKind,
};

/// The options of all these formats.
pub const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new(
        "group",
        ValueKind::Name,
        "the root group",
        "the group of a Zarr store, NetCDF or HDF5 file to read, such as `forecast/surface`",
    )
    .of_one_place(),
    OptionInfo::new(
        "dimension_names",
        ValueKind::Name,
        "`dim_0`, `dim_1`, …",
        "the names of dimensions that have none in the file, with commas between them",
    )
    .of_one_place(),
    DECODE_TIMES,
    OptionInfo::new(
        "coordinates",
        ValueKind::Flag,
        "`false`",
        "variables that the attribute `coordinates` names are columns, such as `lat(y, x)`",
    )
    .in_session(),
    TEXT_AS_BINARY,
    TEXT_ENCODING,
    OptionInfo::new(
        "valid_range",
        ValueKind::Flag,
        "`false`",
        "values outside `valid_range`, `valid_min` and `valid_max` are NULL",
    )
    .in_session(),
    METADATA_LIMIT,
];

/// Settings that decide what a table of a variable shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HierarchyView {
    /// The group whose variables are tables, without slashes at its ends; empty for the root.
    pub(crate) group: String,
    /// The names of axes that have none, one per axis.
    pub(crate) dimension_names: Vec<String>,
    /// Whether the coordinates that a variable names are columns beside it.
    pub(crate) coordinates: bool,
    /// Whether the variables of an instance are columns beside its observations, in ragged arrays.
    pub(crate) instances: bool,
    /// Whether text is shown as bytes.
    pub(crate) text_as_binary: bool,
    /// The character set of text; `None` leaves it to the attribute `_Encoding`.
    pub(crate) text_encoding: Option<Encoding>,
    /// Whether values outside of the declared range are NULL.
    pub(crate) valid_range: bool,
    /// How stored data becomes SQL values.
    pub(crate) read: ReadOptions,
}

impl HierarchyView {
    /// Takes the settings from the options.
    pub fn new(options: &ResolvedOptions, defaults: &ReadOptions) -> Self {
        let names = options.text("dimension_names").unwrap_or_default().split(',');
        let names = names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        Self {
            dimension_names: names.collect(),
            group: options.text("group").unwrap_or_default().trim_matches('/').to_owned(),
            coordinates: options.flag("coordinates").unwrap_or(false),
            instances: options.flag("coordinates").unwrap_or(true),
            text_as_binary: options.flag("text_as_binary").unwrap_or(false),
            text_encoding: options.text("text_encoding").and_then(Encoding::from_name),
            valid_range: options.flag("valid_range").unwrap_or(false),
            read: options.read(defaults),
        }
    }
}
