//! [`OptionTable`]: the options of one format, which it looks up by name and resolves.

use super::array_options::{ArrayOptions, ResolvedOptions};
use super::info::{COMMON, OptionInfo};
use super::value::OptionValue;
use crate::error::{Error, Result};

/// The options of one format: those that every format has, and its own.
///
/// A format may redeclare an option that every format has, with another default. For example,
/// `fill_as_null` is false by default for TileDB.
#[derive(Debug, Clone, Copy)]
pub struct OptionTable {
    own: &'static [OptionInfo],
}

impl OptionTable {
    /// Makes the table of a format from its `own` options.
    pub const fn new(own: &'static [OptionInfo]) -> Self {
        Self { own }
    }

    /// Returns all options: first those that choose arrays, then the format's own, then those about reading.
    pub fn options(self) -> impl Iterator<Item = &'static OptionInfo> {
        // The first ones choose and combine arrays. With the own option `level`, the order is
        // `dataset, concat_dimension, …, level, io, nan_as_null, …`.
        let reading = COMMON.iter().position(|it| it.name == "io").unwrap_or_default();
        let (what, how) = COMMON.split_at(reading);
        let is_common = |option: &&OptionInfo| COMMON.iter().any(|it| it.name == option.name);
        let own = self.own.iter().filter(move |option| !is_common(option));
        what.iter().chain(own).chain(how).map(move |option| self.overridden(option))
    }

    /// Returns the format's redeclaration of `option`, or `option` itself.
    fn overridden(self, option: &'static OptionInfo) -> &'static OptionInfo {
        self.own.iter().find(|own| own.name == option.name).unwrap_or(option)
    }

    /// Returns the option `name`; `None` if the format does not have it.
    pub fn find(self, name: &str) -> Option<&'static OptionInfo> {
        self.options().find(|option| option.name == name)
    }

    /// Checks the options `given` and converts their values. Takes the other options from `defaults`, where
    /// options of other formats are ignored.
    ///
    /// # Errors
    /// `Usage` for a value that its option does not accept. For an option that the format does not have, the
    /// error that `unknown` makes of its name.
    pub fn resolve(
        self,
        given: &ArrayOptions,
        defaults: &ArrayOptions,
        unknown: impl Fn(&str) -> Error,
    ) -> Result<ResolvedOptions> {
        let mut resolved = ResolvedOptions::default();
        for (name, value) in given.iter() {
            let option = self.find(name).ok_or_else(|| unknown(name))?;
            resolved.insert(option.name, option.kind.resolve(name, value)?);
        }
        // The session's settings are for tables of all formats, so an option that this format lacks is no
        // mistake here.
        for (name, value) in defaults.iter() {
            if let Some(option) = self.find(name)
                && !resolved.contains(option.name)
            {
                resolved.insert(option.name, option.kind.resolve(name, value)?);
            }
        }
        Ok(resolved)
    }
}

impl OptionInfo {
    /// Converts `value` to the kind of this option.
    ///
    /// # Errors
    /// `Usage` for a value that the option does not accept.
    pub fn value(&self, value: &OptionValue) -> Result<OptionValue> {
        self.kind.resolve(self.name, value)
    }
}

/// Returns the known name that `name` may be a misspelling of. `datset` is one letter from `dataset`, which
/// has 7, so it is similar. `oi` is two letters from `io`, so it is not.
pub fn similar<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, best) = known
        .iter()
        .map(|known| (strsim::levenshtein(name, known), *known))
        .min_by_key(|it| it.0)?;
    // If more than a third of the letters differ, it is another word.
    (distance * 3 <= best.len().max(name.len())).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ValueKind;

    const OWN: &[OptionInfo] = &[
        OptionInfo::new("level", ValueKind::Number, "`0`", "a level"),
        OptionInfo::new("fill_as_null", ValueKind::Flag, "`false`", "the fill").in_session(),
    ];
    const TABLE: OptionTable = OptionTable::new(OWN);

    #[test]
    fn a_format_overrides_defaults_and_adds_options() {
        let names: Vec<&str> = TABLE.options().map(|option| option.name).collect();
        assert_eq!(names[..2], ["dataset", "concat_dimension"]);
        let level = names.iter().position(|name| *name == "level").unwrap();
        assert_eq!(names[level..level + 2], ["level", "io"]);
        assert_eq!(names.iter().filter(|name| **name == "fill_as_null").count(), 1);
        assert_eq!(TABLE.find("fill_as_null").unwrap().default, "`false`");
    }

    #[test]
    fn given_options_win_over_defaults() {
        let unknown = |name: &str| Error::usage(format!("unknown {name}"));
        let given = ArrayOptions::default().with_index_columns(false).with_option("level", "3");
        let defaults = ArrayOptions::default()
            .with_index_columns(true)
            .with_nan_as_null(false)
            .with_option("of_another_format", 1);
        let resolved = TABLE.resolve(&given, &defaults, unknown).unwrap();
        assert_eq!(resolved.flag("index_columns"), Some(false));
        assert_eq!(resolved.flag("nan_as_null"), Some(false));
        assert_eq!(resolved.number("level"), Some(3));
        assert!(!resolved.contains("of_another_format"));
        let wrong = ArrayOptions::default().with_option("levle", 3);
        assert!(TABLE.resolve(&wrong, &defaults, unknown).is_err());
    }

    #[test]
    fn misspellings_are_near() {
        assert_eq!(similar("datset", &["dataset", "io"]), Some("dataset"));
        assert_eq!(similar("oi", &["dataset", "io"]), None);
    }
}
