//! The one table of options.

use std::collections::HashMap;

use datafusion::common::utils::datafusion_strsim::levenshtein;

use super::slot::ValueKind;
use crate::error::{Error, Result};

/// What an option is said about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A table or schema of a `.tet` file or package.
    Tet,
    /// A table or schema of TileDB arrays.
    TileDb,
    /// A session: `SET gridfusion.…`. An option of tables that can be set here is the default of all
    /// tables that are opened after that.
    Session,
}

/// One option, and everything that messages and documentation say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// What its value may be.
    pub kind: ValueKind,
    /// Its value where nothing is said, in Markdown.
    pub default: &'static str,
    /// What it means, in a few words of Markdown.
    pub meaning: &'static str,
    /// What it can be said about.
    pub scopes: &'static [Scope],
}

const TET: &[Scope] = &[Scope::Tet];
const TILEDB: &[Scope] = &[Scope::TileDb];
const BOTH: &[Scope] = &[Scope::Tet, Scope::TileDb];
const SESSION: &[Scope] = &[Scope::Session];
const TABLES: &[Scope] = &[Scope::Tet, Scope::TileDb, Scope::Session];
const TILEDB_TABLES: &[Scope] = &[Scope::TileDb, Scope::Session];

/// All options.
pub const OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        name: "dataset",
        kind: ValueKind::Name,
        default: "all data variables, a column each",
        meaning: "which dataset of the file, or array of the group, or several with commas between them",
        scopes: BOTH,
    },
    OptionInfo {
        name: "generation",
        kind: ValueKind::Number,
        default: "the current one",
        meaning: "which generation of a `.tet.d` package",
        scopes: TET,
    },
    OptionInfo {
        name: "concat_dimension",
        kind: ValueKind::Name,
        default: "the one whose labels differ",
        meaning: "the dimension along which several files follow one another",
        scopes: BOTH,
    },
    OptionInfo {
        name: "timestamp",
        kind: ValueKind::Time,
        default: "now",
        meaning: "the array as it was then",
        scopes: TILEDB,
    },
    OptionInfo {
        name: "timestamp_start",
        kind: ValueKind::Time,
        default: "the beginning",
        meaning: "leaves out what was written before",
        scopes: TILEDB,
    },
    OptionInfo {
        name: "encryption_key",
        kind: ValueKind::Key,
        default: "none",
        meaning: "the key of an encrypted array",
        scopes: TILEDB,
    },
    OptionInfo {
        name: "full_domain",
        kind: ValueKind::Flag,
        default: "`false`",
        meaning: "shows the whole domain, written or not",
        scopes: TILEDB_TABLES,
    },
    OptionInfo {
        name: "text_as_binary",
        kind: ValueKind::Flag,
        default: "`false`",
        meaning: "shows text as bytes, valid or not",
        scopes: TILEDB_TABLES,
    },
    OptionInfo {
        name: "time_as_integer",
        kind: ValueKind::Flag,
        default: "`false`",
        meaning: "shows dates and times as the integers that are stored",
        scopes: TILEDB_TABLES,
    },
    OptionInfo {
        name: "io",
        kind: ValueKind::Io,
        default: "`mmap`",
        meaning: "how local files are read",
        scopes: TABLES,
    },
    OptionInfo {
        name: "nan_as_null",
        kind: ValueKind::Flag,
        default: "`true`",
        meaning: "NaN and NaT are NULL",
        scopes: TABLES,
    },
    OptionInfo {
        name: "fill_as_null",
        kind: ValueKind::Flag,
        default: "`true`; of TileDB `false`",
        meaning: "the declared fill value is NULL",
        scopes: TABLES,
    },
    OptionInfo {
        name: "index_columns",
        kind: ValueKind::Flag,
        default: "`false`",
        meaning: "adds `<dimension>_idx`, the 0-based index",
        scopes: TABLES,
    },
    OptionInfo {
        name: "file_column",
        kind: ValueKind::Flag,
        default: "`false`",
        meaning: "adds `_file`, the path or URL that a row is from",
        scopes: TABLES,
    },
    OptionInfo {
        name: "trust_zone_maps",
        kind: ValueKind::Flag,
        default: "`true`",
        meaning: "believes what was noted about chunks when they were written",
        scopes: TABLES,
    },
    OptionInfo {
        name: "reduce",
        kind: ValueKind::Flag,
        default: "`true`",
        meaning: "aggregates over dimensions are array reductions instead of aggregations over rows",
        scopes: SESSION,
    },
    OptionInfo {
        name: "reduce_memory",
        kind: ValueKind::Number,
        default: "`1073741824`",
        meaning: "bytes that the tables of groups of one reduction may take; larger ones are aggregated over rows",
        scopes: SESSION,
    },
];

impl Scope {
    /// The options that can be said about it.
    pub fn options(self) -> impl Iterator<Item = &'static OptionInfo> {
        OPTIONS.iter().filter(move |option| option.scopes.contains(&self))
    }

    /// What is called `name` here.
    ///
    /// # Errors
    /// `Usage` if there is no such option; the message lists those there are, and the one that may be
    /// meant.
    pub fn option(self, name: &str) -> Result<&'static OptionInfo> {
        self.options().find(|option| option.name == name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(self, name: &str) -> Error {
        let (noun, prefix) = match self {
            Self::Tet | Self::TileDb => ("option", ""),
            Self::Session => ("setting", "gridfusion."),
        };
        let known: Vec<&str> = self.options().map(|option| option.name).collect();
        let elsewhere = OPTIONS.iter().find(|option| option.name == name);
        let hint = match (elsewhere, similar(name, &known)) {
            (Some(option), _) => format!(", which is for {} only", option.whereabouts()),
            (None, Some(similar)) => format!(", did you mean '{prefix}{similar}'?"),
            (None, None) => String::new(),
        };
        let stop = if hint.ends_with('?') { " The" } else { "; the" };
        let known = known.join(", ");
        Error::usage(format!("unknown {noun} '{prefix}{name}'{hint}{stop} {noun}s are {known}"))
    }
}

impl OptionInfo {
    /// What the option can be said about, in words.
    pub fn whereabouts(&self) -> String {
        let word = |scope: &Scope| match scope {
            Scope::Tet => ".tet tables",
            Scope::TileDb => "TileDB tables",
            Scope::Session => "SET gridfusion.…",
        };
        self.scopes.iter().map(word).collect::<Vec<_>>().join(" and ")
    }
}

/// The name that `name` may be a misspelling of.
fn similar<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, best) =
        known.iter().map(|known| (levenshtein(name, known), *known)).min_by_key(|it| it.0)?;
    // More than a third of the letters wrong is another word.
    (distance * 3 <= best.len().max(name.len())).then_some(best)
}

/// Prefixes of options that are meant for object stores, not for us.
const STORE_PREFIXES: [&str; 5] = ["aws", "azure", "gcp", "google", "http"];

/// The options of a SQL statement that are meant for a table, sorted, in each spelling that reaches us:
/// `io`, `format.io` (what DataFusion makes of it) and, if `own` is `tet`, `tet.io`. Options of object
/// stores are left out.
///
/// # Errors
/// `Usage` if the same option is given in two spellings.
pub(super) fn of_sql<'a>(
    options: &'a HashMap<String, String>,
    own: &str,
) -> Result<Vec<(&'a str, &'a str)>> {
    let named = options.iter().filter_map(|(key, value)| match key.split_once('.') {
        Some((prefix, name)) if prefix == "format" || prefix == own => Some((name, value.as_str())),
        Some((prefix, _)) if STORE_PREFIXES.contains(&prefix) => None,
        _ => Some((key.as_str(), value.as_str())),
    });
    let mut sorted: Vec<_> = named.collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Error::usage(format!("option '{}' is given twice", pair[0].0))),
        None => Ok(sorted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(scope: Scope, name: &str) -> String {
        scope.option(name).unwrap_err().to_string()
    }

    #[test]
    fn what_is_unknown_is_explained() {
        let found = unknown(Scope::Tet, "datset");
        assert!(
            found.starts_with(
                "unknown option 'datset', did you mean 'dataset'? The options are dataset, generation, concat_dimension, "
            ),
            "{found}"
        );
        let found = unknown(Scope::Tet, "timestamp");
        assert!(found.contains("'timestamp', which is for TileDB tables only; the"), "{found}");
        let found = unknown(Scope::Session, "oi");
        assert!(found.starts_with("unknown setting 'gridfusion.oi'; the settings are"), "{found}");
        let found = unknown(Scope::Session, "nan_is_null");
        assert!(found.contains("did you mean 'gridfusion.nan_as_null'?"), "{found}");
        assert!(unknown(Scope::TileDb, "").contains("unknown option ''; the options are"));
    }

    #[test]
    fn spellings_of_one_option_are_one() {
        let options = |keys: &[&str]| -> HashMap<String, String> {
            keys.iter().map(|key| ((*key).to_owned(), "1".to_owned())).collect()
        };
        let two = options(&["format.io", "tet.dataset", "aws.region"]);
        assert_eq!(of_sql(&two, "tet").unwrap(), [("dataset", "1"), ("io", "1")]);
        let other = options(&["tet.dataset"]);
        assert_eq!(of_sql(&other, "tiledb").unwrap(), [("tet.dataset", "1")]);
        let twice = options(&["format.io", "tet.io"]);
        assert!(of_sql(&twice, "tet").unwrap_err().to_string().contains("'io' is given twice"));
    }
}
