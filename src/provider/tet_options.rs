//! The options of a table, the same in SQL `OPTIONS (…)` and in Rust.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::scan::ReadOptions;

/// How a local file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IoMode {
    /// Through a memory mapping, without copies.
    #[default]
    Mmap,
    /// Through positioned reads: a copy, but safe where files are truncated while they are read.
    Pread,
}

impl FromStr for IoMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "mmap" => Ok(Self::Mmap),
            "pread" => Ok(Self::Pread),
            _ => Err(Error::usage(format!("io = '{text}', expected 'mmap' or 'pread'"))),
        }
    }
}

impl fmt::Display for IoMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mmap => "mmap",
            Self::Pread => "pread",
        })
    }
}

/// How to read a `.tet` file, or a `.tet.d` package of them, as a table.
///
/// | option | values | default | meaning |
/// |---|---|---|---|
/// | `dataset` | a name | the only data variable | which dataset of the file |
/// | `generation` | a number | the current one | which generation of a package |
/// | `io` | `mmap`, `pread` | `mmap` | how local files are read |
/// | `nan_as_null` | `true`, `false` | `true` | NaN is NULL |
/// | `fill_as_null` | `true`, `false` | `true` | the declared fill value is NULL |
/// | `index_columns` | `true`, `false` | `false` | adds `<dimension>_idx` columns |
/// | `trust_zone_maps` | `true`, `false` | `true` | believes what the file notes about its chunks |
///
/// ```
/// use gridfusion::TetReadOptions;
///
/// let options = TetReadOptions::default().with_dataset("temperature").with_index_columns(true);
/// assert_eq!(options.dataset.as_deref(), Some("temperature"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TetReadOptions {
    /// Which dataset; `None` means the only data variable of the file.
    pub dataset: Option<String>,
    /// Which generation of a package; `None` means the current one.
    pub generation: Option<u64>,
    /// How local files are read.
    pub io: IoMode,
    /// How stored data becomes SQL values.
    pub read: ReadOptions,
}

/// Prefixes of options that are meant for object stores, not for us.
const STORE_PREFIXES: [&str; 5] = ["aws", "azure", "gcp", "google", "http"];

impl TetReadOptions {
    /// The names that [`TetReadOptions::set`] knows.
    pub const NAMES: [&'static str; 7] = [
        "dataset",
        "generation",
        "io",
        "nan_as_null",
        "fill_as_null",
        "index_columns",
        "trust_zone_maps",
    ];

    /// Chooses the dataset.
    #[must_use]
    pub fn with_dataset(mut self, dataset: impl Into<String>) -> Self {
        self.dataset = Some(dataset.into());
        self
    }

    /// Chooses the generation of a package, which need not be the current one.
    #[must_use]
    pub fn with_generation(mut self, generation: u64) -> Self {
        self.generation = Some(generation);
        self
    }

    /// Chooses how local files are read.
    #[must_use]
    pub fn with_io(mut self, io: IoMode) -> Self {
        self.io = io;
        self
    }

    /// Whether NaN is NULL.
    #[must_use]
    pub fn with_nan_as_null(mut self, yes: bool) -> Self {
        self.read.nan_as_null = yes;
        self
    }

    /// Whether the declared fill value is NULL.
    #[must_use]
    pub fn with_fill_as_null(mut self, yes: bool) -> Self {
        self.read.fill_as_null = yes;
        self
    }

    /// Whether there is a column `<dimension>_idx` for each dimension.
    #[must_use]
    pub fn with_index_columns(mut self, yes: bool) -> Self {
        self.read.index_columns = yes;
        self
    }

    /// Whether the file's zone maps are believed.
    #[must_use]
    pub fn with_trust_zone_maps(mut self, yes: bool) -> Self {
        self.read.trust_zone_maps = yes;
        self
    }

    /// Sets one option by name.
    ///
    /// # Errors
    /// `Usage` for a name or a value that is not known; the message lists what is.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "dataset" => self.dataset = Some(value.to_owned()),
            "generation" => self.generation = Some(parse_generation(value)?),
            "io" => self.io = value.parse()?,
            _ => set_read(&mut self.read, name, value, &Self::NAMES)?,
        }
        Ok(())
    }

    /// Reads the options of a SQL statement, in each spelling that reaches us: `dataset`,
    /// `format.dataset` (what DataFusion makes of it) and `tet.dataset`. Options of object stores
    /// are left alone.
    ///
    /// # Errors
    /// Those of [`TetReadOptions::set`].
    pub fn from_sql(options: &HashMap<String, String>) -> Result<Self> {
        let mut read_options = Self::default();
        for (name, value) in of_sql(options, "tet") {
            read_options.set(name, value)?;
        }
        Ok(read_options)
    }
}

/// The options of a SQL statement that are meant for a table, sorted; `own` is the prefix of its format.
pub(super) fn of_sql<'a>(
    options: &'a HashMap<String, String>,
    own: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut sorted: Vec<_> = options.iter().collect();
    sorted.sort();
    sorted.into_iter().filter_map(move |(key, value)| match key.split_once('.') {
        Some((prefix, name)) if prefix == "format" || prefix == own => Some((name, value.as_str())),
        Some((prefix, _)) if STORE_PREFIXES.contains(&prefix) => None,
        _ => Some((key.as_str(), value.as_str())),
    })
}

/// Sets an option that tables of every format have; `known` are the names that this one has.
pub(super) fn set_read(
    read: &mut ReadOptions,
    name: &str,
    value: &str,
    known: &[&str],
) -> Result<()> {
    let option = match name {
        "nan_as_null" => &mut read.nan_as_null,
        "fill_as_null" => &mut read.fill_as_null,
        "index_columns" => &mut read.index_columns,
        "trust_zone_maps" => &mut read.trust_zone_maps,
        _ => {
            let known = known.join(", ");
            let message = format!("unknown option '{name}'; the options are {known}");
            return Err(Error::usage(message));
        }
    };
    *option = parse_bool(name, value)?;
    Ok(())
}

fn parse_generation(value: &str) -> Result<u64> {
    value
        .parse()
        .map_err(|_| Error::usage(format!("option 'generation' is '{value}', expected a number")))
}

pub(super) fn parse_bool(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::usage(format!("option '{name}' is '{value}', expected 'true' or 'false'"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_sql(pairs: &[(&str, &str)]) -> Result<TetReadOptions> {
        let options =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        TetReadOptions::from_sql(&options)
    }

    #[test]
    fn every_spelling_of_every_option() {
        for prefix in ["", "format.", "tet."] {
            for name in TetReadOptions::NAMES {
                let value = match name {
                    "dataset" => "t",
                    "generation" => "3",
                    "io" => "pread",
                    "index_columns" => "TRUE",
                    _ => "false",
                };
                let options = from_sql(&[(&format!("{prefix}{name}"), value)]).unwrap();
                assert_ne!(options, TetReadOptions::default(), "{prefix}{name}");
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = from_sql(&[("format.datset", "t")]).unwrap_err().to_string();
        assert!(error.contains("'datset'") && error.contains("dataset, generation"), "{error}");
        assert!(from_sql(&[("io", "mmapp")]).is_err());
        let error = from_sql(&[("generation", "latest")]).unwrap_err().to_string();
        assert_eq!(error, "option 'generation' is 'latest', expected a number");
        assert!(from_sql(&[("nan_as_null", "yes")]).unwrap_err().to_string().contains("'yes'"));
        assert!(from_sql(&[("other.thing", "1")]).is_err());
        assert_eq!(from_sql(&[("aws.region", "x")]).unwrap(), TetReadOptions::default());
    }
}
