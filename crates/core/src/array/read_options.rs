//! Options for turning stored data into SQL values, common to all formats.

/// Options for turning stored data into SQL values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    /// Shows NaN as NULL. Default: true.
    pub nan_as_null: bool,
    /// Shows the declared fill value as NULL. Default: true.
    pub fill_as_null: bool,
    /// Adds a column `<dimension>_idx` with the 0-based index for each dimension. Default: false.
    pub index_columns: bool,
    /// Uses stored chunk statistics: NULL counts, least and greatest elements. Default: true.
    pub trust_zone_maps: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { nan_as_null: true, fill_as_null: true, index_columns: false, trust_zone_maps: true }
    }
}
