//! Settings of a session: `SET gridfusion.…`.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;

use crate::error::Error;
use crate::options::{Scope, Slot, TableDefaults};

/// What `SET gridfusion.…` reaches: [`OPTIONS`](crate::options::OPTIONS) for the session. The value
/// `default` takes back what was said.
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
    /// Aggregates over dimensions are array reductions instead of aggregations over rows.
    pub reduce: bool,
    /// Bytes that the tables of groups of one reduction may take; larger ones are aggregated over rows.
    pub reduce_memory: usize,
    /// What tables are told that are opened from now on, unless they are told something else.
    pub tables: TableDefaults,
}

impl Default for GridfusionConfig {
    fn default() -> Self {
        Self { reduce: true, reduce_memory: 1 << 30, tables: TableDefaults::default() }
    }
}

impl ConfigExtension for GridfusionConfig {
    const PREFIX: &'static str = "gridfusion";
}

/// The value that takes a setting back: `RESET` does not reach extensions.
const DEFAULT: &str = "default";

impl GridfusionConfig {
    /// The settings of a session, or the defaults if it has none. Whoever asks for a setting asks here.
    pub(crate) fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        match name {
            "reduce" => Some(Slot::Switch(&mut self.reduce)),
            "reduce_memory" => Some(Slot::Bytes(&mut self.reduce_memory)),
            _ => self.tables.slot(name),
        }
    }

    fn try_set(&mut self, name: &str, value: &str) -> crate::Result<()> {
        let option = Scope::Session.option(name)?;
        let missing = || Error::internal(format!("setting '{name}' is kept nowhere"));
        if value != DEFAULT {
            return self.slot(name).ok_or_else(missing)?.set(name, value);
        }
        match self.slot(name).ok_or_else(missing)?.clear() {
            true => Ok(()),
            false => {
                self.slot(name).ok_or_else(missing)?.set(name, option.default.trim_matches('`'))
            }
        }
    }
}

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

    /// With the prefix, so that `SHOW gridfusion.io` finds what `SHOW ALL` lists.
    fn entries(&self) -> Vec<ConfigEntry> {
        let mut shown = self.clone();
        let entry = |option: &crate::options::OptionInfo| ConfigEntry {
            key: format!("{}.{}", Self::PREFIX, option.name),
            value: shown.slot(option.name).and_then(|slot| slot.text()),
            description: option.meaning,
        };
        Scope::Session.options().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_can_be_set_shown_and_taken_back() {
        for option in Scope::Session.options() {
            let mut config = GridfusionConfig::default();
            let kind = config.slot(option.name).map(|slot| slot.kind());
            assert_eq!(kind, Some(option.kind), "{}", option.name);
            let value = match option.name {
                "io" => "pread",
                "reduce_memory" => "17",
                "reduce" => "false",
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
