//! Descriptions as text.

use gridfusion::source::Page;

use super::columns::Columns;
use crate::printable::printable;

/// Joins all pages, with an empty line between them. `all` is the option that shows rows which are left out.
pub(super) fn of(pages: &[Page], all: &str) -> String {
    let pages: Vec<String> = pages.iter().map(|it| page(it, all)).collect();
    pages.join("\n")
}

/// Returns the text of a page: its title, facts, tables and warnings.
fn page(page: &Page, all: &str) -> String {
    let mut text = printable(&page.title).into_owned() + "\n";
    for line in &page.lines {
        text.extend(["  ", &printable(line), "\n"]);
    }
    for table in &page.tables {
        let mut columns = Columns::new(&table.columns);
        table.rows.iter().for_each(|row| columns.add(row.iter().cloned()));
        let mut lines = String::new();
        columns.print(&mut lines);
        if !lines.is_empty() {
            text.extend(["\n", &lines]);
        }
        if table.more > 0 {
            text.push_str(&format!("… and {} more; {all} shows all\n", table.more));
        }
    }
    if !page.warnings.is_empty() {
        text.push_str("\nWARNINGS\n");
        page.warnings.iter().for_each(|warning| text.extend([&printable(warning), "\n"]));
    }
    text
}
