//! The options of one format, looked up by name.

use super::array_options::{ArrayOptions, ResolvedOptions};
use super::info::{COMMON, OptionInfo};
use super::value::OptionValue;
use crate::error::{Error, Result};

/// The options that tables of one format take: those of every format, and its own.
///
/// A format may declare an option of every format again, with another default.
#[derive(Debug, Clone, Copy)]
pub struct OptionTable {
    own: &'static [OptionInfo],
}

impl OptionTable {
    /// The options of a format that has these of its `own`.
    pub const fn new(own: &'static [OptionInfo]) -> Self {
        Self { own }
    }

    /// All options: what to open, the format's own, then how it is read.
    pub fn options(self) -> impl Iterator<Item = &'static OptionInfo> {
        let (what, how) = COMMON.split_at(2);
        let is_common = |option: &&OptionInfo| COMMON.iter().any(|it| it.name == option.name);
        let own = self.own.iter().filter(move |option| !is_common(option));
        what.iter().chain(own).chain(how).map(move |option| self.overridden(option))
    }

    /// An option of every format, as this format has it.
    fn overridden(self, option: &'static OptionInfo) -> &'static OptionInfo {
        self.own.iter().find(|own| own.name == option.name).unwrap_or(option)
    }

    /// Finds the option called `name`.
    pub fn find(self, name: &str) -> Option<&'static OptionInfo> {
        self.options().find(|option| option.name == name)
    }

    /// Resolves the options `said` for this format, and takes the rest from `defaults`. Ignores defaults that
    /// the
    /// format does not know.
    ///
    /// # Errors
    /// `Usage` for an option that is not known, which `unknown` describes, or a value that it cannot have.
    pub fn resolve(
        self,
        said: &ArrayOptions,
        defaults: &ArrayOptions,
        unknown: impl Fn(&str) -> Error,
    ) -> Result<ResolvedOptions> {
        let mut resolved = ResolvedOptions::default();
        for (name, value) in said.iter() {
            let option = self.find(name).ok_or_else(|| unknown(name))?;
            resolved.insert(option.name, option.kind.resolve(name, value)?);
        }
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
    /// The value of this option, of its kind.
    ///
    /// # Errors
    /// `Usage` for a value that it cannot have.
    pub fn value(&self, value: &OptionValue) -> Result<OptionValue> {
        self.kind.resolve(self.name, value)
    }
}

/// The name that `name` may be a misspelling of.
pub(crate) fn similar<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, best) = known
        .iter()
        .map(|known| (strsim::levenshtein(name, known), *known))
        .min_by_key(|it| it.0)?;
    // More than a third of the letters wrong is another word.
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
        assert_eq!(names[..4], ["dataset", "concat_dimension", "level", "io"]);
        assert_eq!(names.iter().filter(|name| **name == "fill_as_null").count(), 1);
        assert_eq!(TABLE.find("fill_as_null").unwrap().default, "`false`");
    }

    #[test]
    fn what_is_said_counts_more_than_defaults() {
        let unknown = |name: &str| Error::usage(format!("unknown {name}"));
        let said = ArrayOptions::default().with_index_columns(false).with_option("level", "3");
        let defaults = ArrayOptions::default()
            .with_index_columns(true)
            .with_nan_as_null(false)
            .with_option("of_another_format", 1);
        let resolved = TABLE.resolve(&said, &defaults, unknown).unwrap();
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
