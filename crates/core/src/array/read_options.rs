//! Options for turning stored data into SQL values, common to all formats.

/// Options for turning stored data into SQL values.
///
/// ```
/// use gridfusion_core::array::ReadOptions;
///
/// let options = ReadOptions::default().with_nan_as_null(false);
/// assert!(options.fill_as_null);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Shows NaN as NULL. Default: true.
    pub nan_as_null: bool,
    /// Shows the declared fill value as NULL. Default: true.
    pub fill_as_null: bool,
    /// Shows numbers with the units of CF times as timestamps. Default: true.
    pub decode_times: bool,
    /// Adds a column `<dimension>_idx` with the 0-based index for each dimension. Default: false.
    pub index_columns: bool,
    /// Uses stored chunk statistics: NULL counts, least and greatest elements. Default: true.
    pub trust_zone_maps: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            nan_as_null: true,
            fill_as_null: true,
            decode_times: true,
            index_columns: false,
            trust_zone_maps: true,
        }
    }
}

impl ReadOptions {
    /// Sets whether NaN is shown as NULL.
    #[must_use]
    pub fn with_nan_as_null(self, nan_as_null: bool) -> Self {
        Self { nan_as_null, ..self }
    }

    /// Sets whether the declared fill value is shown as NULL.
    #[must_use]
    pub fn with_fill_as_null(self, fill_as_null: bool) -> Self {
        Self { fill_as_null, ..self }
    }

    /// Sets whether CF times are timestamps.
    #[must_use]
    pub fn with_decode_times(self, decode_times: bool) -> Self {
        Self { decode_times, ..self }
    }

    /// Sets whether each dimension has a column with the index.
    #[must_use]
    pub fn with_index_columns(self, index_columns: bool) -> Self {
        Self { index_columns, ..self }
    }

    /// Sets whether stored chunk statistics are used.
    #[must_use]
    pub fn with_trust_zone_maps(self, trust_zone_maps: bool) -> Self {
        Self { trust_zone_maps, ..self }
    }
}
