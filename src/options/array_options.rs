//! Options of tables: as users write them, and as one format resolves them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::value::{IoMode, OptionValue, Secret};
use crate::array::ReadOptions;
use crate::error::{Error, Result};

/// How to read arrays: what is said here, else what the session says, else what is built in.
///
/// Methods set the options of every format; [`with_option`](Self::with_option) sets those that one format
/// has. `docs/options.md` lists all. Whoever opens the arrays checks names and values.
///
/// ```
/// use gridfusion::ArrayOptions;
///
/// let options = ArrayOptions::default()
///     .with_dataset("temperature")
///     .with_index_columns(true)
///     .with_option("timestamp", "2024-03-01");
/// # let _ = options;
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ArrayOptions {
    said: BTreeMap<String, OptionValue>,
}

impl ArrayOptions {
    /// Chooses a dataset of a file or an array of a group, or several with commas between them.
    #[must_use]
    pub fn with_dataset(self, dataset: impl Into<String>) -> Self {
        self.with_option("dataset", dataset.into())
    }

    /// Chooses the dimension along which several files or arrays follow one another.
    #[must_use]
    pub fn with_concat_dimension(self, dimension: impl Into<String>) -> Self {
        self.with_option("concat_dimension", dimension.into())
    }

    /// Chooses how local files are read.
    #[must_use]
    pub fn with_io(self, io: IoMode) -> Self {
        self.with_option("io", io)
    }

    /// Whether NaN and NaT are NULL.
    #[must_use]
    pub fn with_nan_as_null(self, yes: bool) -> Self {
        self.with_option("nan_as_null", yes)
    }

    /// Whether the declared fill value is NULL.
    #[must_use]
    pub fn with_fill_as_null(self, yes: bool) -> Self {
        self.with_option("fill_as_null", yes)
    }

    /// Whether there is a column `<dimension>_idx` for each dimension.
    #[must_use]
    pub fn with_index_columns(self, yes: bool) -> Self {
        self.with_option("index_columns", yes)
    }

    /// Whether there is a column `_file` with the path or URL that a row is from.
    #[must_use]
    pub fn with_file_column(self, yes: bool) -> Self {
        self.with_option("file_column", yes)
    }

    /// Whether queries use the chunk statistics that the writer stored.
    #[must_use]
    pub fn with_trust_zone_maps(self, yes: bool) -> Self {
        self.with_option("trust_zone_maps", yes)
    }

    /// Sets an option by name, perhaps of one format: `generation` of `.tet`, `timestamp` of TileDB.
    #[must_use]
    pub fn with_option(mut self, name: impl Into<String>, value: impl Into<OptionValue>) -> Self {
        self.said.insert(name.into(), value.into());
        self
    }

    /// The value given for an option.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.said.get(name)
    }

    /// All that is said, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.said.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Takes an option back.
    pub(crate) fn remove(&mut self, name: &str) {
        self.said.remove(name);
    }

    /// The same without the options for which `keep` is false.
    #[must_use]
    pub fn filtered(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.said.retain(|name, _| keep(name));
        self
    }

    /// The options of a SQL statement that are meant for a table, in each spelling that reaches us: `io`,
    /// `format.io` (what DataFusion makes of it) and, for the prefix `tet`, `tet.io`. Options of object
    /// stores are left out.
    ///
    /// # Errors
    /// `Usage` if the same option is given in two spellings.
    pub(crate) fn of_sql(options: &HashMap<String, String>, prefixes: &[&str]) -> Result<Self> {
        let mut said = Self::default();
        for (key, value) in options.iter().filter(|(key, _)| !is_of_store(key)) {
            let name = match key.split_once('.') {
                Some((prefix, name)) if prefix == "format" || prefixes.contains(&prefix) => name,
                _ => key,
            };
            if said.said.insert(name.to_owned(), value.as_str().into()).is_some() {
                return Err(Error::usage(format!("option '{name}' is given twice")));
            }
        }
        Ok(said)
    }
}

/// Prefixes of options that are meant for object stores, not for us.
const STORE_PREFIXES: [&str; 5] = ["aws", "azure", "gcp", "google", "http"];

/// Whether an option is meant for an object store.
fn is_of_store(key: &str) -> bool {
    key.split_once('.').is_some_and(|(prefix, _)| STORE_PREFIXES.contains(&prefix))
}

/// Shows names only: a value may be a key.
impl fmt::Debug for ArrayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.said.keys()).finish()
    }
}

/// Options resolved for one format: each name is one of its options, and each value of the option's kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolvedOptions {
    values: BTreeMap<&'static str, OptionValue>,
}

impl ResolvedOptions {
    pub(super) fn insert(&mut self, name: &'static str, value: OptionValue) {
        self.values.insert(name, value);
    }

    /// Whether something is said of an option.
    pub fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// A flag, if it is said.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.values.get(name) {
            Some(OptionValue::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    /// A number, or a time in milliseconds since 1970, if it is said.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.values.get(name) {
            Some(OptionValue::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// A name, if it is said.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some(OptionValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A key, if it is said.
    pub fn secret(&self, name: &str) -> Option<&Secret> {
        match self.values.get(name) {
            Some(OptionValue::Secret(secret)) => Some(secret),
            _ => None,
        }
    }

    /// Which dataset, or several with commas between them.
    pub fn dataset(&self) -> Option<&str> {
        self.text("dataset")
    }

    /// How local files are read.
    pub fn io(&self) -> IoMode {
        self.text("io").and_then(|io| io.parse().ok()).unwrap_or_default()
    }

    /// How stored data becomes SQL values; what is not said is as in `built_in`.
    pub fn read(&self, built_in: &ReadOptions) -> ReadOptions {
        let flag = |name: &str, built_in: bool| self.flag(name).unwrap_or(built_in);
        ReadOptions {
            nan_as_null: flag("nan_as_null", built_in.nan_as_null),
            fill_as_null: flag("fill_as_null", built_in.fill_as_null),
            index_columns: flag("index_columns", built_in.index_columns),
            trust_zone_maps: flag("trust_zone_maps", built_in.trust_zone_maps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_option_are_one() {
        let of = |keys: &[&str]| {
            let options = keys.iter().map(|key| ((*key).to_owned(), "1".to_owned())).collect();
            ArrayOptions::of_sql(&options, &["toy"])
        };
        let said = of(&["format.io", "toy.dataset", "aws.region"]).unwrap();
        assert_eq!(said.iter().map(|it| it.0).collect::<Vec<_>>(), ["dataset", "io"]);
        let other = of(&["tet.dataset"]).unwrap();
        assert_eq!(other.iter().map(|it| it.0).collect::<Vec<_>>(), ["tet.dataset"]);
        let twice = of(&["format.io", "toy.io"]).unwrap_err();
        assert!(twice.to_string().contains("'io' is given twice"));
        let key = ArrayOptions::default().with_option("encryption_key", "0123");
        assert!(!format!("{key:?}").contains("0123"));
    }
}
