//! How stored data becomes SQL values, whatever the format.

/// How stored data becomes SQL values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    /// NaN is NULL. Default: true.
    pub nan_as_null: bool,
    /// The declared fill value is NULL. Default: true.
    pub fill_as_null: bool,
    /// Adds a column `<dimension>_idx` with the 0-based index for each dimension. Default: false.
    pub index_columns: bool,
    /// Uses the zone maps of the file: NULL counts, least and greatest values of chunks. Default: true.
    pub trust_zone_maps: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { nan_as_null: true, fill_as_null: true, index_columns: false, trust_zone_maps: true }
    }
}
