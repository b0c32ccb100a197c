//! The options of a TileDB table, the same in SQL and in Rust.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

use super::IoMode;
use super::tet_options::{of_sql, parse_bool, set_read};
use crate::error::{Error, Result};
use crate::format::tiledb::{EncryptionKey, OpenOptions};
use crate::scan::TileDbView;

/// How to read a TileDB array as a table.
///
/// | option | values | default | meaning |
/// |---|---|---|---|
/// | `timestamp` | a time | now | the array as it was then |
/// | `timestamp_start` | a time | the beginning | leaves out what was written before |
/// | `encryption_key` | 32 characters | none | the key of an encrypted array |
/// | `full_domain` | `true`, `false` | `false` | shows the whole domain, written or not |
/// | `text_as_binary` | `true`, `false` | `false` | shows text as bytes, valid or not |
/// | `fill_as_null` | `true`, `false` | `false` | the fill value is NULL |
/// | `nan_as_null` | `true`, `false` | `true` | NaN and NaT are NULL |
/// | `index_columns` | `true`, `false` | `false` | adds `<dimension>_idx` columns |
/// | `trust_zone_maps` | `true`, `false` | `true` | believes what fragments note about their tiles |
/// | `io` | `mmap`, `pread` | `mmap` | how local files are read |
///
/// A time is a number of milliseconds since 1970, as TileDB names fragments, or a date and time in
/// UTC: `2024-03-01`, `2024-03-01 06:30:00`, `2024-03-01T06:30:00Z`.
///
/// ```
/// use gridfusion::TileDbReadOptions;
///
/// let options = TileDbReadOptions::default().with_timestamp(20).with_fill_as_null(true);
/// assert_eq!(options.open.end, Some(20));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TileDbReadOptions {
    /// How local files are read.
    pub io: IoMode,
    /// Which fragments are seen, and the key.
    pub open: OpenOptions,
    /// What is shown, and how.
    pub view: TileDbView,
}

impl TileDbReadOptions {
    /// The names that [`TileDbReadOptions::set`] knows.
    pub const NAMES: [&'static str; 10] = [
        "timestamp",
        "timestamp_start",
        "encryption_key",
        "full_domain",
        "text_as_binary",
        "fill_as_null",
        "nan_as_null",
        "index_columns",
        "trust_zone_maps",
        "io",
    ];

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
        self.view.full_domain = yes;
        self
    }

    /// Whether text is shown as bytes, valid or not.
    #[must_use]
    pub fn with_text_as_binary(mut self, yes: bool) -> Self {
        self.view.text_as_binary = yes;
        self
    }

    /// Whether the fill value is NULL.
    #[must_use]
    pub fn with_fill_as_null(mut self, yes: bool) -> Self {
        self.view.read.fill_as_null = yes;
        self
    }

    /// Whether NaN and NaT are NULL.
    #[must_use]
    pub fn with_nan_as_null(mut self, yes: bool) -> Self {
        self.view.read.nan_as_null = yes;
        self
    }

    /// Whether there is a column `<dimension>_idx` for each dimension.
    #[must_use]
    pub fn with_index_columns(mut self, yes: bool) -> Self {
        self.view.read.index_columns = yes;
        self
    }

    /// Whether what fragments note about their tiles is believed.
    #[must_use]
    pub fn with_trust_zone_maps(mut self, yes: bool) -> Self {
        self.view.read.trust_zone_maps = yes;
        self
    }

    /// Chooses how local files are read.
    #[must_use]
    pub fn with_io(mut self, io: IoMode) -> Self {
        self.io = io;
        self
    }

    /// Sets one option by name.
    ///
    /// # Errors
    /// `Usage` for a name or a value that is not known; the message never holds a key.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "timestamp" => self.open.end = Some(parse_time(name, value)?),
            "timestamp_start" => self.open.start = parse_time(name, value)?,
            "encryption_key" => self.open.key = Some(EncryptionKey::new(value.as_bytes())?),
            "full_domain" => self.view.full_domain = parse_bool(name, value)?,
            "text_as_binary" => self.view.text_as_binary = parse_bool(name, value)?,
            "io" => self.io = value.parse()?,
            _ => set_read(&mut self.view.read, name, value, &Self::NAMES)?,
        }
        Ok(())
    }

    /// Reads the options of a SQL statement: `timestamp`, `format.timestamp` (what DataFusion makes of
    /// it) and `tiledb.timestamp`. Options of object stores are left alone.
    ///
    /// # Errors
    /// Those of [`TileDbReadOptions::set`].
    pub fn from_sql(options: &HashMap<String, String>) -> Result<Self> {
        let mut read_options = Self::default();
        for (name, value) in of_sql(options, "tiledb") {
            read_options.set(name, value)?;
        }
        Ok(read_options)
    }
}

/// A time in milliseconds since 1970.
fn parse_time(name: &str, text: &str) -> Result<u64> {
    if let Ok(milliseconds) = text.parse() {
        return Ok(milliseconds);
    }
    let zoned = DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_millis());
    let plain = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let time = plain.or_else(|| date.map(|date| date.and_time(NaiveTime::MIN)));
    let milliseconds = zoned.or_else(|| time.map(|time| time.and_utc().timestamp_millis()));
    milliseconds.and_then(|time| u64::try_from(time).ok()).ok_or_else(|| {
        Error::usage(format!(
            "option '{name}' is '{text}', expected milliseconds since 1970 or a time like '2024-03-01 06:30:00'"
        ))
    })
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
        for prefix in ["", "format.", "tiledb."] {
            for name in TileDbReadOptions::NAMES {
                let value = match name {
                    "timestamp" | "timestamp_start" => "17",
                    "encryption_key" => "0123456789abcdef0123456789ABCDEF",
                    "io" => "pread",
                    "nan_as_null" | "trust_zone_maps" => "false",
                    _ => "TRUE",
                };
                let options = from_sql(&[(&format!("{prefix}{name}"), value)]).unwrap();
                assert_ne!(options, TileDbReadOptions::default(), "{prefix}{name}");
            }
        }
    }

    #[test]
    fn times_in_every_form() {
        for (text, expected) in [
            ("0", 0),
            ("1709274600000", 1_709_274_600_000),
            ("2024-03-01", 1_709_251_200_000),
            ("2024-03-01 06:30:00", 1_709_274_600_000),
            ("2024-03-01T06:30:00.25", 1_709_274_600_250),
            ("2024-03-01T06:30:00Z", 1_709_274_600_000),
            ("2024-03-01T08:30:00+02:00", 1_709_274_600_000),
        ] {
            assert_eq!(parse_time("timestamp", text).unwrap(), expected, "{text}");
        }
        for bad in ["", "yesterday", "-1", "1969-12-31", "2024-13-01"] {
            assert!(parse_time("timestamp", bad).is_err(), "{bad}");
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
