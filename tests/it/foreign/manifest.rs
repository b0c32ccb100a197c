//! Lists of variables, with the files of their expected cells.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One variable of a dataset.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Entry {
    pub(super) file: String,
    /// The path of the variable in the file.
    pub(super) table: String,
    /// The file of its expected cells; none if no table has the variable.
    pub(super) csv: Option<PathBuf>,
    /// The step between the rows that are expected, in row-major order. Large variables have a sample.
    #[serde(default = "all")]
    pub(super) every: usize,
    /// Whether floats are compared with a tolerance.
    #[serde(default)]
    pub(super) packed: bool,
    /// The amount of the `add_offset` of packed numbers, if it is large.
    #[serde(default)]
    pub(super) offset: f64,
    pub(super) dtype: Option<String>,
    /// The type in the file, if it differs from that of the expected cells.
    pub(super) stored: Option<String>,
    /// The names of integers.
    #[serde(rename = "enum", default)]
    pub(super) names: BTreeMap<String, String>,
}

/// The step of a sample that has all rows.
fn all() -> usize {
    1
}

/// Reads the list of a folder.
pub(super) fn entries(folder: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A field of a CSV file; `None` without quotes and text.
pub(super) type Field = Option<String>;

/// Parses a CSV file: the header, and the rows. Fields in quotes may have line breaks.
pub(super) fn csv(path: &Path) -> (Vec<Field>, Vec<Vec<Field>>) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let (mut rows, mut row, mut field) = (vec![], vec![], String::new());
    let (mut quoted, mut was_quoted) = (false, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
            '"' => {
                quoted = !quoted;
                was_quoted = true;
            }
            ',' | '\n' if !quoted => {
                let is_null = field.is_empty() && !was_quoted;
                row.push((!is_null).then(|| std::mem::take(&mut field)));
                was_quoted = false;
                if letter == '\n' {
                    rows.push(std::mem::take(&mut row));
                }
            }
            _ => field.push(letter),
        }
    }
    assert!(!quoted && field.is_empty() && row.is_empty(), "{path:?} ends in a row");
    let header = rows.remove(0);
    (header, rows)
}
