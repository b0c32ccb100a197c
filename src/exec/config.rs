//! Settings of a session: `SET gridfusion.…`.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::config::ConfigOptions;

extensions_options! {
    /// What `SET gridfusion.…` reaches.
    ///
    /// ```
    /// use datafusion::prelude::SessionConfig;
    /// use gridfusion::GridfusionConfig;
    ///
    /// let config = SessionConfig::new().with_option_extension(GridfusionConfig::default());
    /// let config = config.set_bool("gridfusion.reduce", false);
    /// # let _ = config;
    /// ```
    pub struct GridfusionConfig {
        /// Aggregates over dimensions are array reductions instead of aggregations over rows.
        pub reduce: bool, default = true
        /// Bytes that the tables of groups of one reduction may take; larger ones are aggregated over rows.
        pub reduce_memory: usize, default = 1 << 30
    }
}

impl ConfigExtension for GridfusionConfig {
    const PREFIX: &'static str = "gridfusion";
}

impl GridfusionConfig {
    /// The settings of a session, or the defaults if it has none.
    pub(super) fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().cloned().unwrap_or_default()
    }
}
