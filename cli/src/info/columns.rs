//! Tables of text with aligned columns.

use gridfusion::source::Side;

use crate::printable::printable;

/// The text of an empty cell.
const NOTHING: &str = "-";

/// A table without borders: a header, and cells as wide as the widest cell of their column.
pub(super) struct Columns {
    /// The name of each column, and the side to which its cells are aligned.
    header: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub(super) fn new(header: &[(&'static str, Side)]) -> Self {
        Self { header: header.to_vec(), rows: vec![] }
    }

    /// Adds a row. Missing cells are empty.
    pub(super) fn add(&mut self, cells: impl IntoIterator<Item = Option<String>>) {
        let shown = |cell: Option<String>| match cell {
            Some(text) if !text.is_empty() => printable(&text).into_owned(),
            _ => NOTHING.to_owned(),
        };
        let cells = cells.into_iter().chain(std::iter::repeat(None)).take(self.header.len());
        self.rows.push(cells.map(shown).collect());
    }

    /// Appends the table to `text`, unless it has no rows. Leaves out empty columns, except the first.
    pub(super) fn print(&self, text: &mut String) {
        let has_text =
            |column: &usize| self.rows.iter().any(|row| row[*column] != NOTHING) || *column == 0;
        let columns: Vec<usize> = (0..self.header.len()).filter(has_text).collect();
        if self.rows.is_empty() {
            return;
        }
        let header: Vec<String> = self.header.iter().map(|(name, _)| (*name).to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&header).chain(&self.rows).collect();
        let width = |column: usize| lines.iter().map(|line| length(&line[column])).max();
        let widths: Vec<usize> = columns.iter().map(|&at| width(at).unwrap_or(0)).collect();
        for line in lines {
            let mut shown = String::new();
            for (&column, width) in columns.iter().zip(&widths) {
                let cell = &line[column];
                let blank = " ".repeat(width - length(cell));
                match self.header[column].1 {
                    Side::Left => shown.extend([cell, blank.as_str(), "  "]),
                    Side::Right => shown.extend([blank.as_str(), cell, "  "]),
                }
            }
            text.push_str(shown.trim_end());
            text.push('\n');
        }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_aligned_and_harmless() {
        let mut table =
            Columns::new(&[("NAME", Side::Left), ("N", Side::Right), ("NO", Side::Left)]);
        table.add([Some("grün".into()), Some("7".into()), None]);
        table.add([Some("\u{1b}[2J".into()), Some("123".into()), Some(String::new())]);
        let mut text = String::new();
        table.print(&mut text);
        assert_eq!(text, "NAME    N\ngrün    7\n␛[2J  123\n");
        Columns::new(&[("NAME", Side::Left)]).print(&mut text);
        assert_eq!(text.lines().count(), 3);
    }
}
