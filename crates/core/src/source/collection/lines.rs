//! Lines of text about the files of a collection.

use super::known_table::KnownTable;
use crate::source::show::{shape_text, size_text};
use crate::verify::counted;

/// Returns the line with the numbers of files, and their size.
pub(super) fn of_files(
    formats: &[(&'static str, &'static str, u64)],
    size: Option<u64>,
    is_least: bool,
    unreadable: usize,
) -> String {
    let mut line: Vec<String> =
        formats.iter().map(|(_, noun, files)| counted(*files, noun)).collect();
    let at_least = if is_least { "at least " } else { "" };
    line.extend(size.map(|size| format!("{at_least}{}", size_text(size))));
    if unreadable > 0 {
        line.push(format!("{} that cannot be opened", counted(unreadable as u64, "file")));
    }
    line.join(", ")
}

/// Returns the lines on the tables that the files would be.
pub(super) fn of_tables(tables: &[KnownTable]) -> Vec<String> {
    let table = match tables {
        [] => return vec![],
        [one] if one.problem.is_none() => one,
        [_] => return vec!["the files cannot be one table".to_owned()],
        several => {
            let which = match several.iter().filter(|it| it.problem.is_some()).count() {
                0 => "each of files that fit together".to_owned(),
                1 => "one of which has files that do not fit together".to_owned(),
                more => format!("{more} of which have files that do not fit together"),
            };
            return vec![format!("{} tables, {which}", several.len())];
        }
    };
    let (names, shape) = (table.dim_names().join(" × "), shape_text(&table.shape()));
    let mut lines = vec![match shape.is_empty() {
        true => "one table".to_owned(),
        false => format!("one table, {names}: {shape}"),
    }];
    if let [Some(along), first, last] = table.concatenated() {
        let text = |label: Option<String>| label.unwrap_or_else(|| "NULL".to_owned());
        let (first, last) = (text(first), text(last));
        lines.push(format!("files follow one another along {along}, from {first} to {last}"));
    }
    lines
}

/// Returns the line on entries that are no arrays.
pub(super) fn of_others(others: &[String]) -> String {
    /// The most names.
    const NAMED: usize = 5;
    let shown = others.iter().take(NAMED).map(String::as_str);
    let shown: Vec<&str> = shown.collect();
    let more = others.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("other entries: {}{more}", shown.join(", "))
}
