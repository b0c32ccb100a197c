//! Settings of a session: `SET gridfusion.…`.

use std::any::Any;
use std::borrow::Cow;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;

use crate::error::Result as GridResult;
use crate::io::{Remote, Root};
use crate::options::{ArrayOptions, OptionInfo};
use crate::settings::{self, OptimizerSettings};
use crate::source::{Formats, OpeningCounter};

/// The settings `gridfusion.…` of a session, and the formats that it reads. `SET … = 'default'` resets a
/// setting.
///
/// ```
/// use datafusion::prelude::SessionConfig;
/// use gridfusion::GridfusionConfig;
///
/// let config = SessionConfig::new().with_option_extension(GridfusionConfig::default());
/// let config = config
///     .set_bool("gridfusion.optimizer.enable_reduce", false)
///     .set_str("gridfusion.io", "pread");
/// # let _ = config;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GridfusionConfig {
    /// The settings of plans over arrays.
    pub optimizer: OptimizerSettings,
    /// The access of the session to object stores, with its limits. Clones of these settings share it.
    pub remote: Remote,
    /// The files that the session opens.
    pub opening: OpeningCounter,
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
            optimizer: OptimizerSettings::default(),
            remote: Remote::default(),
            opening: OpeningCounter::default(),
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
    pub(crate) fn from_options(options: &ConfigOptions) -> Cow<'_, Self> {
        let own = options.extensions.get::<Self>();
        own.map_or_else(|| Cow::Owned(Self::default()), Cow::Borrowed)
    }

    /// Returns settings under which each reduction that is possible is worth its memory, and may weigh groups or not.
    pub(crate) fn unlimited(weighs: bool) -> Self {
        let mut config = Self::default();
        config.optimizer.reduce_memory = usize::MAX;
        config.optimizer.enable_reduce_weights = weighs;
        config
    }

    /// Whether each reduction that is possible is worth its memory, and the coordinates that it reads.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.optimizer.reduce_memory == usize::MAX
    }

    /// Sets a setting. The value `default` resets it.
    ///
    /// # Errors
    /// `Usage` if no format has the setting, or it does not accept the value.
    fn try_set(&mut self, name: &str, value: &str) -> GridResult<()> {
        let is_default = value == DEFAULT;
        if let Some(setting) = settings::find(name) {
            if setting.info.name != name {
                let now = setting.info.name;
                log::warn!("the setting 'gridfusion.{name}' is now 'gridfusion.{now}'");
            }
            if is_default {
                setting.reset(&mut self.optimizer, &self.remote);
                return Ok(());
            }
            return setting.set(&mut self.optimizer, &self.remote, value);
        }
        // All other settings are options of tables, which this type stores without knowing them.
        let option = self.formats.setting(name)?;
        match is_default {
            true => self.tables.remove(option.name),
            false => {
                let value = option.value(&value.into())?;
                self.tables = std::mem::take(&mut self.tables).with_option(option.name, value);
            }
        }
        Ok(())
    }

    /// Returns the value of a setting as text; `None` if it is not set.
    fn shown(&self, option: &OptionInfo) -> Option<String> {
        match settings::find(option.name) {
            Some(setting) => Some(setting.value(self.optimizer, self.remote.limits()).to_string()),
            None => self.tables.get(option.name).map(ToString::to_string),
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

    fn shown(config: &GridfusionConfig, name: &str) -> Option<String> {
        let key = format!("gridfusion.{name}");
        config.entries().into_iter().find(|entry| entry.key == key).unwrap().value
    }

    #[test]
    fn every_setting_can_be_set_shown_and_taken_back() {
        for option in GridfusionConfig::default().formats.settings() {
            let mut config = GridfusionConfig::default();
            let default = shown(&config, option.name);
            if settings::find(option.name).is_some() {
                assert_eq!(default.as_deref(), Some(option.default.trim_matches('`')), "documents");
            }
            let value = match (option.kind, default.as_deref()) {
                (ValueKind::Number, _) => "17",
                (ValueKind::Encoding, _) => "latin1",
                (ValueKind::Io, _) => "pread",
                (_, Some("true")) => "false",
                _ => "true",
            };
            for name in [Some(option.name), option.former].into_iter().flatten() {
                config.set(name, value).unwrap();
                assert_ne!(config, GridfusionConfig::default(), "{name}");
                assert_eq!(shown(&config, option.name).as_deref(), Some(value), "{name}");
                config.set(name, DEFAULT).unwrap();
                assert_eq!(config, GridfusionConfig::default(), "{name}");
            }
        }
    }

    #[test]
    fn settings_are_listed_by_their_present_names() {
        let entries = GridfusionConfig::default().entries();
        let is_listed = |name: &str| entries.iter().any(|entry| entry.key == name);
        assert!(is_listed("gridfusion.optimizer.enable_lookup_joins"));
        assert!(!is_listed("gridfusion.lookup_joins"));
        let error = GridfusionConfig::default().set("lookup_join", "true").unwrap_err().to_string();
        let expected = "did you mean 'gridfusion.optimizer.enable_lookup_joins'?";
        assert!(error.contains(expected), "{error}");
    }
}
