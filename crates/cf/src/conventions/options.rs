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
        "the group of a Zarr store, NetCDF or HDF5 file to read, such as `forecast/surface`, or a pattern for several, such as `swath_*`",
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
        ValueKind::Names(&["cheap", "true", "false"]),
        "`cheap`",
        "the coordinates beside variables: those of at most one dimension, all, or none",
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

/// The coordinates that are columns beside the variables that name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Coordinates {
    /// Coordinates of at most one dimension. A table does without them rather than fail.
    Cheap,
    All,
    None,
    /// The variables of these names, whether attributes name them or not.
    Named(Vec<String>),
}

impl Coordinates {
    fn from_text(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "cheap" => Self::Cheap,
            "true" => Self::All,
            "false" => Self::None,
            _ => Self::Named(text.split(',').map(|name| name.trim().to_owned()).collect()),
        }
    }
}

/// Settings that decide what a table of a variable shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HierarchyView {
    /// The group whose variables are tables, without slashes at its ends; empty for the root.
    pub(crate) group: String,
    /// The names of axes that have none, one per axis.
    pub(crate) dimension_names: Vec<String>,
    /// The coordinates that are columns beside a variable.
    pub(crate) coordinates: Coordinates,
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
            coordinates: Coordinates::from_text(options.text("coordinates").unwrap_or("cheap")),
            text_as_binary: options.flag("text_as_binary").unwrap_or(false),
            text_encoding: options.text("text_encoding").and_then(Encoding::from_name),
            valid_range: options.flag("valid_range").unwrap_or(false),
            read: options.read(defaults),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_than_the_documented_ones_are_names() {
        assert_eq!(Coordinates::from_text("True"), Coordinates::All);
        assert_eq!(Coordinates::from_text("cheap"), Coordinates::Cheap);
        assert_eq!(Coordinates::from_text("false"), Coordinates::None);
        for text in ["all", "none"] {
            assert_eq!(Coordinates::from_text(text), Coordinates::Named(vec![text.to_owned()]));
        }
        let named = ["lat", "lon"].map(str::to_owned).to_vec();
        assert_eq!(Coordinates::from_text("lat, lon"), Coordinates::Named(named));
    }
}
