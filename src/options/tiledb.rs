//! The options of a TileDB table.

use std::collections::HashMap;

use super::common::{CommonOptions, TableDefaults, common_builder};
use super::names::{Scope, of_sql};
use super::slot::{IoMode, Slot};
use crate::error::{Error, Result};
use crate::format::tiledb::{EncryptionKey, OpenOptions};
use crate::source::{MosaicOptions, TileDbView};

/// How to read a TileDB array as a table. [`OPTIONS`](super::OPTIONS) says what there is to say.
///
/// What is not said is as the session says, where there is one, or as built in. A time is a number of
/// milliseconds since 1970, as TileDB names fragments, or a date and time in UTC: `2024-03-01`,
/// `2024-03-01 06:30:00`, `2024-03-01T06:30:00Z`.
///
/// ```
/// use gridfusion::TileDbReadOptions;
///
/// let options = TileDbReadOptions::default().with_timestamp(20).with_fill_as_null(true);
/// assert_eq!(options.open.end, Some(20));
/// assert!(options.view().read.fill_as_null);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TileDbReadOptions {
    /// Which array of a group or folder, or several with commas between them; `None` means all that are
    /// not coordinates.
    pub dataset: Option<String>,
    /// Which fragments are seen, and the key.
    pub open: OpenOptions,
    /// Shows the whole domain, written or not.
    pub full_domain: Option<bool>,
    /// Shows text as bytes, valid or not.
    pub text_as_binary: Option<bool>,
    /// Shows dates and times as the integers that are stored.
    pub time_as_integer: Option<bool>,
    /// Along which dimension several arrays follow one another; `None`: the one whose labels differ.
    pub concat_dimension: Option<String>,
    /// What tables of every format can be told.
    pub common: CommonOptions,
}

common_builder!(TileDbReadOptions);

impl TileDbReadOptions {
    /// Chooses the array of a group or folder, or several with commas between them.
    #[must_use]
    pub fn with_dataset(mut self, dataset: impl Into<String>) -> Self {
        self.dataset = Some(dataset.into());
        self
    }

    /// The array as it was at `end`, in milliseconds since 1970.
    #[must_use]
    pub fn with_timestamp(mut self, end: u64) -> Self {
        self.open.end = Some(end);
        self
    }

    /// Leaves out what was written before `start`, in milliseconds since 1970.
    #[must_use]
    pub fn with_timestamp_start(mut self, start: u64) -> Self {
        self.open.start = start;
        self
    }

    /// The key of an encrypted array.
    #[must_use]
    pub fn with_encryption_key(mut self, key: EncryptionKey) -> Self {
        self.open.key = Some(key);
        self
    }

    /// Whether the whole domain is shown, written or not.
    #[must_use]
    pub fn with_full_domain(mut self, yes: bool) -> Self {
        self.full_domain = Some(yes);
        self
    }

    /// Whether text is shown as bytes, valid or not.
    #[must_use]
    pub fn with_text_as_binary(mut self, yes: bool) -> Self {
        self.text_as_binary = Some(yes);
        self
    }

    /// Whether dates and times are shown as the integers that are stored.
    #[must_use]
    pub fn with_time_as_integer(mut self, yes: bool) -> Self {
        self.time_as_integer = Some(yes);
        self
    }

    /// What is shown, and how.
    pub fn view(&self) -> TileDbView {
        let built_in = TileDbView::default();
        TileDbView {
            full_domain: self.full_domain.unwrap_or(built_in.full_domain),
            text_as_binary: self.text_as_binary.unwrap_or(built_in.text_as_binary),
            time_as_integer: self.time_as_integer.unwrap_or(built_in.time_as_integer),
            read: self.common.read(&built_in.read),
        }
    }

    /// How arrays become one table.
    pub(crate) fn mosaic(&self) -> MosaicOptions {
        self.common.mosaic(self.concat_dimension.as_ref(), &self.view().read)
    }

    /// What is said here, and for the rest what `defaults` say.
    #[must_use]
    pub fn with_defaults(mut self, defaults: &TableDefaults) -> Self {
        self.common = self.common.or(&defaults.common);
        self.full_domain = self.full_domain.or(defaults.full_domain);
        self.text_as_binary = self.text_as_binary.or(defaults.text_as_binary);
        self.time_as_integer = self.time_as_integer.or(defaults.time_as_integer);
        self
    }

    /// Sets one option by name.
    ///
    /// # Errors
    /// `Usage` for a name or a value that is not known; the message never holds a key.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        Scope::TileDb.option(name)?;
        let missing = || Error::internal(format!("option '{name}' is kept nowhere"));
        self.slot(name).ok_or_else(missing)?.set(name, value)
    }

    /// Reads the options of a SQL statement: `timestamp`, `format.timestamp` (what DataFusion makes of
    /// it) and `tiledb.timestamp`. Options of object stores are left alone.
    ///
    /// # Errors
    /// Those of [`TileDbReadOptions::set`], and `Usage` for an option that is given twice.
    pub fn from_sql(options: &HashMap<String, String>) -> Result<Self> {
        let mut read_options = Self::default();
        for (name, value) in of_sql(options, "tiledb")? {
            read_options.set(name, value)?;
        }
        Ok(read_options)
    }

    fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        Some(match name {
            "dataset" => Slot::Name(&mut self.dataset),
            "timestamp" => Slot::Time(&mut self.open.end),
            "timestamp_start" => Slot::Since(&mut self.open.start),
            "encryption_key" => Slot::Key(&mut self.open.key),
            "full_domain" => Slot::Flag(&mut self.full_domain),
            "text_as_binary" => Slot::Flag(&mut self.text_as_binary),
            "time_as_integer" => Slot::Flag(&mut self.time_as_integer),
            "concat_dimension" => Slot::Name(&mut self.concat_dimension),
            _ => return self.common.slot(name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_sql(pairs: &[(&str, &str)]) -> Result<TileDbReadOptions> {
        let options =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        TileDbReadOptions::from_sql(&options)
    }

    #[test]
    fn every_spelling_of_every_option() {
        for option in Scope::TileDb.options() {
            let kind = TileDbReadOptions::default().slot(option.name).map(|slot| slot.kind());
            assert_eq!(kind, Some(option.kind), "{}", option.name);
            let value = match option.name {
                "timestamp" | "timestamp_start" => "17",
                "encryption_key" => "0123456789abcdef0123456789ABCDEF",
                "io" => "pread",
                "dataset" | "concat_dimension" => "t",
                _ => "TRUE",
            };
            for prefix in ["", "format.", "tiledb."] {
                let options = from_sql(&[(&format!("{prefix}{}", option.name), value)]).unwrap();
                assert_ne!(options, TileDbReadOptions::default(), "{prefix}{}", option.name);
            }
        }
    }

    #[test]
    fn the_table_says_what_is_built_in() {
        let view = TileDbReadOptions::default().view();
        for (name, built_in) in [
            ("full_domain", view.full_domain.to_string()),
            ("text_as_binary", view.text_as_binary.to_string()),
            ("time_as_integer", view.time_as_integer.to_string()),
            ("nan_as_null", view.read.nan_as_null.to_string()),
            ("fill_as_null", view.read.fill_as_null.to_string()),
            ("index_columns", view.read.index_columns.to_string()),
            ("trust_zone_maps", view.read.trust_zone_maps.to_string()),
        ] {
            assert!(
                Scope::TileDb.option(name).unwrap().default.ends_with(&format!("`{built_in}`")),
                "{name}"
            );
        }
    }

    #[test]
    fn mistakes_are_named_and_keys_are_not() {
        let error = from_sql(&[("timestmp", "1")]).unwrap_err().to_string();
        assert!(error.contains("'timestmp'") && error.contains("timestamp_start"), "{error}");
        let error = from_sql(&[("encryption_key", "secret!")]).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        let key = from_sql(&[("encryption_key", "0123456789abcdef0123456789ABCDEF")]).unwrap();
        assert!(!format!("{key:?}").contains("0123456789"));
    }
}
