//! [`ArrayOptions`] as users write them, and [`ResolvedOptions`] as a format reads them.
//!
//! A name and its value go through two stages. `ArrayOptions` accepts anything, because the format that
//! knows the names is only found when arrays are opened. `ResolvedOptions` is the checked result, and the
//! only form that formats see.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::info::DECODE_TIMES;
use super::overlap::Overlap;
use super::value::{IoMode, OptionValue, Secret};
use crate::array::ReadOptions;
use crate::error::{Error, Result};

/// Options for reading arrays. An option set here wins over the session's setting, and that over the default.
///
/// Common options have methods; [`with_option`](Self::with_option) sets any option. `docs/options.md` lists all options. Names and
/// values are checked when arrays are opened.
///
/// ```
/// use gridfusion_core::options::ArrayOptions;
///
/// let options = ArrayOptions::default()
///     .with_dataset("temperature")
///     .with_index_columns(true)
///     .with_option("timestamp", "2024-03-01");
/// # let _ = options;
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ArrayOptions {
    /// By name, unchecked. A value of SQL is text until it is resolved; a value of Rust may have its kind
    /// already.
    given: BTreeMap<String, OptionValue>,
}

impl ArrayOptions {
    /// Chooses a dataset of a file or an array of a group; commas separate several names.
    #[must_use]
    pub fn with_dataset(self, dataset: impl Into<String>) -> Self {
        self.with_option("dataset", dataset.into())
    }

    /// Chooses the dimension along which several files are concatenated.
    #[must_use]
    pub fn with_concat_dimension(self, dimension: impl Into<String>) -> Self {
        self.with_option("concat_dimension", dimension.into())
    }

    /// Chooses how local files are read.
    #[must_use]
    pub fn with_io(self, io: IoMode) -> Self {
        self.with_option("io", io)
    }

    /// Sets whether NaN and NaT are NULL.
    #[must_use]
    pub fn with_nan_as_null(self, yes: bool) -> Self {
        self.with_option("nan_as_null", yes)
    }

    /// Sets whether the declared fill value is NULL.
    #[must_use]
    pub fn with_fill_as_null(self, yes: bool) -> Self {
        self.with_option("fill_as_null", yes)
    }

    /// Sets whether the table has a column `<dimension>_idx` for each dimension.
    #[must_use]
    pub fn with_index_columns(self, yes: bool) -> Self {
        self.with_option("index_columns", yes)
    }

    /// Sets whether the table has a column `_file` with the path or URL that a row is from.
    #[must_use]
    pub fn with_file_column(self, yes: bool) -> Self {
        self.with_option("file_column", yes)
    }

    /// Sets whether queries use the chunk statistics that the writer stored.
    #[must_use]
    pub fn with_trust_zone_maps(self, yes: bool) -> Self {
        self.with_option("trust_zone_maps", yes)
    }

    /// Sets whether files of other variables are one table. Variables that some files lack are NULL there, and those of fewer
    /// dimensions are repeated along the others. Default: false.
    #[must_use]
    pub fn with_union_by_name(self, yes: bool) -> Self {
        self.with_option("union_by_name", yes)
    }

    /// Sets a new dimension along which files are stacked, and where their labels come from, such as `sst_{time:%Y%m%d}.nc`.
    /// [`Stack::parse`](crate::source::Stack::parse) lists the forms.
    #[must_use]
    pub fn with_stack(self, stack: impl Into<String>) -> Self {
        self.with_option("stack", stack.into())
    }

    /// Sets which file wins where several have the same label. Default: such files are refused.
    #[must_use]
    pub fn with_overlap(self, overlap: Overlap) -> Self {
        self.with_option("overlap", overlap)
    }

    /// Sets whether files of a list or pattern that cannot be opened are left out, with a warning for each. Default: false.
    #[must_use]
    pub fn with_skip_unreadable(self, yes: bool) -> Self {
        self.with_option("skip_unreadable", yes)
    }

    /// Sets the group of a NetCDF-4 or HDF5 file or a Zarr store, such as `forecast/surface`.
    #[must_use]
    pub fn with_group(self, group: impl Into<String>) -> Self {
        self.with_option("group", group.into())
    }

    /// Sets whether all coordinates of NetCDF, HDF5 and Zarr are columns beside variables, or none. By default, those of at most
    /// one dimension are, with the variables of instances in ragged arrays. `with_option("coordinates", "lat, lon")` names some.
    #[must_use]
    pub fn with_coordinates(self, yes: bool) -> Self {
        self.with_option("coordinates", yes)
    }

    /// Sets an option by name, such as `generation` of `.tet` or `timestamp` of TileDB.
    #[must_use]
    pub fn with_option(mut self, name: impl Into<String>, value: impl Into<OptionValue>) -> Self {
        self.given.insert(name.into(), value.into());
        self
    }

    /// Returns the value of an option; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.given.get(name)
    }

    /// Returns the options that are set, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.given.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Unsets an option.
    pub fn remove(&mut self, name: &str) {
        self.given.remove(name);
    }

    /// Unsets the options for which `keep` returns false.
    #[must_use]
    pub fn filtered(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.given.retain(|name, _| keep(name));
        self
    }

    /// Returns the table options of a SQL statement, without the options of object stores. An option may be
    /// written `io`, `format.io` (which DataFusion makes of `io`) or, with the prefix `tet`, `tet.io`. With
    /// these prefixes, `{"tet.io": "pread", "aws.region": "eu-west-1"}` becomes `io = pread`.
    ///
    /// # Errors
    /// `Usage` if two spellings set the same option.
    pub fn from_sql(options: &HashMap<String, String>, prefixes: &[&str]) -> Result<Self> {
        let mut given = BTreeMap::new();
        for (key, value) in options.iter().filter(|(key, _)| !is_of_store(key)) {
            let name = match key.split_once('.') {
                Some((prefix, name)) if prefix == "format" || prefixes.contains(&prefix) => name,
                _ => key,
            };
            if given.insert(name.to_owned(), value.as_str().into()).is_some() {
                return Err(Error::usage(format!("option '{name}' is given twice")));
            }
        }
        Ok(Self { given })
    }
}

/// Prefixes of the options of object stores. DataFusion passes `OPTIONS ('aws.region' …)` to the store, so
/// such an option is no mistake here.
const STORE_PREFIXES: [&str; 5] = ["aws", "azure", "gcp", "google", "http"];

/// Whether `key` is an option of an object store.
pub fn is_of_store(key: &str) -> bool {
    key.split_once('.').is_some_and(|(prefix, _)| STORE_PREFIXES.contains(&prefix))
}

/// Shows names only, because a value may be an encryption key.
impl fmt::Debug for ArrayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.given.keys()).finish()
    }
}

/// Options that one format has resolved: each name is one of its options, and each value has the option's kind.
///
/// A getter returns `None` for an option of another kind, too. So each option must be read with the getter
/// of its [`ValueKind`](super::ValueKind).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolvedOptions {
    values: BTreeMap<&'static str, OptionValue>,
}

impl ResolvedOptions {
    pub(super) fn insert(&mut self, name: &'static str, value: OptionValue) {
        self.values.insert(name, value);
    }

    /// Whether the option is set.
    pub fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns a flag; `None` if it is not set.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.values.get(name) {
            Some(OptionValue::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    /// Returns a number, or a time in milliseconds since 1970; `None` if it is not set.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.values.get(name) {
            Some(OptionValue::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns a name; `None` if it is not set.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some(OptionValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns a key; `None` if it is not set.
    pub fn secret(&self, name: &str) -> Option<&Secret> {
        match self.values.get(name) {
            Some(OptionValue::Secret(secret)) => Some(secret),
            _ => None,
        }
    }

    /// The chosen dataset, or several names with commas between them.
    pub fn dataset(&self) -> Option<&str> {
        self.text("dataset")
    }

    /// How to read local files; by default through a memory mapping. The text always parses, because
    /// resolving has checked it.
    pub fn io(&self) -> IoMode {
        self.text("io").and_then(|io| io.parse().ok()).unwrap_or_default()
    }

    /// Returns how stored data becomes SQL values, with the defaults in `built_in`.
    pub fn read(&self, built_in: &ReadOptions) -> ReadOptions {
        let flag = |name: &str, built_in: bool| self.flag(name).unwrap_or(built_in);
        ReadOptions {
            nan_as_null: flag("nan_as_null", built_in.nan_as_null),
            fill_as_null: flag("fill_as_null", built_in.fill_as_null),
            decode_times: flag(DECODE_TIMES.name, built_in.decode_times),
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
            ArrayOptions::from_sql(&options, &["toy"])
        };
        let given = of(&["format.io", "toy.dataset", "aws.region"]).unwrap();
        assert_eq!(given.iter().map(|it| it.0).collect::<Vec<_>>(), ["dataset", "io"]);
        let other = of(&["tet.dataset"]).unwrap();
        assert_eq!(other.iter().map(|it| it.0).collect::<Vec<_>>(), ["tet.dataset"]);
        let twice = of(&["format.io", "toy.io"]).unwrap_err();
        assert!(twice.to_string().contains("'io' is given twice"));
        let key = ArrayOptions::default().with_option("encryption_key", "0123");
        assert!(!format!("{key:?}").contains("0123"));
    }
}
