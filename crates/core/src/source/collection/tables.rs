//! The tables of tables and of differences.

use super::MOST;
use super::known_table::KnownTable;
use crate::source::description::{Fact, PageTable, Side};
use crate::source::mosaic::differences::CountedDifference;
use crate::source::show::shape_text;

/// The most characters of a value on a page. The document has all of it.
const WIDEST: usize = 60;

/// A difference, and whether it stops a table.
pub(super) type Judged = (CountedDifference, bool);

pub(super) fn difference_table(all: &[Judged]) -> PageTable {
    let columns = [
        ("DIFFERENCE", Side::Left),
        ("OF", Side::Left),
        ("FILES", Side::Right),
        ("ONE TABLE", Side::Left),
        ("VALUE", Side::Left),
        ("INSTEAD OF", Side::Left),
        ("FIRST FILE", Side::Left),
    ];
    let rows = all.iter().take(MOST).map(|(it, stops)| {
        let difference = &it.difference;
        [
            Some(difference.property.name().to_owned()),
            difference.of.clone(),
            Some(it.files.to_string()),
            Some(if *stops { "no" } else { "yes" }.to_owned()),
            Some(shortened(&difference.other)),
            Some(shortened(&difference.first)),
            Some(it.file.clone()),
        ]
    });
    PageTable::new(columns, rows).of_all(all.len() as u64)
}

pub(super) fn difference_fact((it, stops): &Judged) -> Fact {
    let difference = &it.difference;
    Fact::Record(vec![
        ("property", difference.property.name().into()),
        ("of", difference.of.as_deref().into()),
        ("files", (it.files as u64).into()),
        ("stops_table", (*stops).into()),
        ("value", difference.other.as_str().into()),
        ("instead_of", difference.first.as_str().into()),
        ("first_file", it.file.as_str().into()),
    ])
}

/// Makes the table of several tables.
pub(super) fn table_of(tables: &[KnownTable]) -> PageTable {
    let columns = [
        ("TABLE", Side::Right),
        ("FILES", Side::Right),
        ("SHAPE", Side::Left),
        ("DIMENSIONS", Side::Left),
        ("VARIABLES", Side::Left),
        ("ALONG", Side::Left),
        ("FIRST", Side::Left),
        ("LAST", Side::Left),
        ("FIRST FILE", Side::Left),
    ];
    let rows = tables.iter().zip(1..).take(MOST).map(|(it, number): (_, usize)| {
        let [along, first, last] = it.concatenated();
        let names: Vec<&str> = it.columns.iter().filter_map(|[name, ..]| name.as_deref()).collect();
        [
            Some(number.to_string()),
            Some(it.files.to_string()),
            Some(shape_text(&it.shape())),
            Some(it.dim_names().join(", ")),
            Some(shortened(&names.join(", "))),
            along,
            first,
            last,
            Some(it.first_file.clone()),
        ]
    });
    PageTable::new(columns, rows).of_all(tables.len() as u64)
}

/// Returns the beginning of a long text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
