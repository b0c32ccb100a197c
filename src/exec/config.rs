//! Settings of a session: `SET gridfusion.…`.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;

use super::remote_settings;
use crate::error::{Error, Result as GridResult};
use crate::io::{Remote, Root};
use crate::options::{ArrayOptions, OptionInfo, OptionValue, SESSION};
use crate::source::{Formats, Opening};

/// The settings `gridfusion.…` of a session, and the formats that it reads. `SET … = 'default'` resets a
/// setting.
///
/// ```
/// use datafusion::prelude::SessionConfig;
/// use gridfusion::GridfusionConfig;
///
/// let config = SessionConfig::new().with_option_extension(GridfusionConfig::default());
/// let config = config.set_bool("gridfusion.reduce", false).set_str("gridfusion.io", "pread");
/// # let _ = config;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GridfusionConfig {
    /// Whether aggregations over dimensions run as reductions of the array instead of over rows.
    pub reduce: bool,
    /// Whether reductions weigh groups of cells, for weights, arithmetic and conditions of single aggregates,
    /// instead of evaluating these for each cell.
    pub reduce_weights: bool,
    /// Whether arrays are reduced below joins with tables, instead of above.
    pub eager_aggregation: bool,
    /// Whether arrays that are joined on their dimensions are put side by side, instead of hashed.
    pub align_joins: bool,
    /// Whether aggregates of whole partitions of a window are reductions.
    pub reduce_windows: bool,
    /// Whether rows that cannot be among the first of a window's partition are left out below it.
    pub top_rows: bool,
    /// Whether joins of an array with a table look up rows by label, instead of hashing.
    pub lookup_joins: bool,
    /// Whether windows whose frames move along a dimension run on the array, instead of over sorted rows.
    pub grid_windows: bool,
    /// Bytes that the groups of one reduction may take; an aggregation that needs more runs over rows.
    pub reduce_memory: usize,
    /// Whether scans declare partitions that are ranges of labels as such. Engines that divide plans turn this off.
    pub declare_range: bool,
    /// The access of the session to object stores, with its limits. Clones of these settings share it.
    pub remote: Remote,
    /// The files that the session opens.
    pub opening: Opening,
    /// The folder that local paths of arrays must not leave; `None` by default. SQL cannot set it.
    pub root: Option<Root>,
    /// Default options of tables that are opened from now on; options of a table win over them.
    pub tables: ArrayOptions,
    /// The array formats that the session can open.
    pub formats: Formats,
}

impl Default for GridfusionConfig {
    fn default() -> Self {
        Self {
            reduce: true,
            reduce_weights: true,
            eager_aggregation: true,
            align_joins: true,
            reduce_windows: true,
            grid_windows: true,
            lookup_joins: true,
            top_rows: true,
            reduce_memory: 1 << 30,
            declare_range: true,
            remote: Remote::default(),
            opening: Opening::default(),
            root: None,
            tables: ArrayOptions::default(),
            formats: crate::built_in_formats(),
        }
    }
}

impl ConfigExtension for GridfusionConfig {
    const PREFIX: &'static str = "gridfusion";
}

/// The value that resets a setting, because `RESET` does not work for extensions.
const DEFAULT: &str = "default";

impl GridfusionConfig {
    /// Returns the settings of a session, or the defaults if it has none.
    pub(crate) fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Returns settings under which each reduction that is possible is worth its memory.
    pub(crate) fn unlimited() -> Self {
        Self { reduce_memory: usize::MAX, ..Self::default() }
    }

    /// Sets a setting. The value `default` resets it.
    ///
    /// # Errors
    /// `Usage` if no format has the setting, or it does not accept the value.
    fn try_set(&mut self, name: &str, value: &str) -> GridResult<()> {
        let option = self.formats.setting(name)?;
        let is_default = value == DEFAULT;
        match option.name {
            of_session if SESSION.iter().any(|it| it.name == of_session) => {
                let value = if is_default { option.default.trim_matches('`') } else { value };
                match (of_session, option.value(&value.into())?) {
                    (REDUCE, OptionValue::Flag(reduce)) => self.reduce = reduce,
                    (REDUCE_WEIGHTS, OptionValue::Flag(weigh)) => self.reduce_weights = weigh,
                    (EAGER_AGGREGATION, OptionValue::Flag(eager)) => self.eager_aggregation = eager,
                    (ALIGN_JOINS, OptionValue::Flag(align)) => self.align_joins = align,
                    (REDUCE_WINDOWS, OptionValue::Flag(reduce)) => self.reduce_windows = reduce,
                    (GRID_WINDOWS, OptionValue::Flag(grid)) => self.grid_windows = grid,
                    (TOP_ROWS, OptionValue::Flag(leave_out)) => self.top_rows = leave_out,
                    (LOOKUP_JOINS, OptionValue::Flag(look_up)) => self.lookup_joins = look_up,
                    (DECLARE_RANGE, OptionValue::Flag(declare)) => self.declare_range = declare,
                    (REDUCE_MEMORY, OptionValue::Number(bytes)) => {
                        self.reduce_memory = usize::try_from(bytes).unwrap_or(usize::MAX);
                    }
                    (remote, OptionValue::Number(number)) => {
                        let mut limits = self.remote.limits();
                        remote_settings::set(&mut limits, remote, number)?;
                        self.remote.set_limits(limits);
                    }
                    _ => return Err(Error::internal(format!("setting '{name}' is not stored"))),
                }
            }
            // All other settings are options of tables, which this type stores without knowing them.
            table_option if is_default => self.tables.remove(table_option),
            table_option => {
                let value = option.value(&value.into())?;
                self.tables = std::mem::take(&mut self.tables).with_option(table_option, value);
            }
        }
        Ok(())
    }

    /// Returns the value of a setting as text; `None` if it is not set.
    fn shown(&self, option: &OptionInfo) -> Option<String> {
        match option.name {
            REDUCE => Some(self.reduce.to_string()),
            REDUCE_WEIGHTS => Some(self.reduce_weights.to_string()),
            EAGER_AGGREGATION => Some(self.eager_aggregation.to_string()),
            ALIGN_JOINS => Some(self.align_joins.to_string()),
            REDUCE_WINDOWS => Some(self.reduce_windows.to_string()),
            REDUCE_MEMORY => Some(self.reduce_memory.to_string()),
            GRID_WINDOWS => Some(self.grid_windows.to_string()),
            TOP_ROWS => Some(self.top_rows.to_string()),
            LOOKUP_JOINS => Some(self.lookup_joins.to_string()),
            DECLARE_RANGE => Some(self.declare_range.to_string()),
            other => match remote_settings::get(&self.remote.limits(), other) {
                Some(number) => Some(number.to_string()),
                None => self.tables.get(other).map(ToString::to_string),
            },
        }
    }
}

const REDUCE: &str = "reduce";
const REDUCE_WEIGHTS: &str = "reduce_weights";
const EAGER_AGGREGATION: &str = "eager_aggregation";
const ALIGN_JOINS: &str = "align_joins";
const REDUCE_WINDOWS: &str = "reduce_windows";
const REDUCE_MEMORY: &str = "reduce_memory";
const GRID_WINDOWS: &str = "grid_windows";
const TOP_ROWS: &str = "top_rows";
const LOOKUP_JOINS: &str = "lookup_joins";
const DECLARE_RANGE: &str = "declare_range";

impl ExtensionOptions for GridfusionConfig {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        Ok(self.try_set(key, value)?)
    }

    /// Lists settings with their prefix, so that `SHOW gridfusion.io` finds what `SHOW ALL` lists.
    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |option: &OptionInfo| ConfigEntry {
            key: format!("{}.{}", Self::PREFIX, option.name),
            value: self.shown(option),
            description: option.meaning,
        };
        self.formats.settings().into_iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ValueKind;

    #[test]
    fn every_setting_can_be_set_shown_and_taken_back() {
        for option in GridfusionConfig::default().formats.settings() {
            let mut config = GridfusionConfig::default();
            let value = match option.name {
                "io" => "pread",
                _ if option.kind == ValueKind::Number => "17",
                _ if option.kind == ValueKind::Encoding => "latin1",
                "reduce" | "reduce_weights" | "reduce_windows" | "grid_windows"
                | "eager_aggregation" | "align_joins" | "lookup_joins" | "top_rows"
                | "declare_range" => "false",
                _ => "true",
            };
            config.set(option.name, value).unwrap();
            assert_ne!(config, GridfusionConfig::default(), "{}", option.name);
            let key = format!("gridfusion.{}", option.name);
            let shown = config.entries().into_iter().find(|entry| entry.key == key).unwrap();
            assert_eq!(shown.value.as_deref(), Some(value), "{key}");
            config.set(option.name, "default").unwrap();
            assert_eq!(config, GridfusionConfig::default(), "{}", option.name);
        }
    }
}
