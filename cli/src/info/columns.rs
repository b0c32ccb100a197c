//! Aligned columns, and numbers as people read them.

use std::fmt::Write;

use gridfusion::source::Side;

/// What stands in a cell that has nothing to say.
const NOTHING: &str = "-";

/// A table without lines: a header, and cells as wide as the widest of their column.
pub(super) struct Columns {
    header: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub(super) fn new(header: &[(&'static str, Side)]) -> Self {
        Self { header: header.to_vec(), rows: vec![] }
    }

    /// Adds a row with a cell for each column of the header.
    pub(super) fn add(&mut self, cells: impl IntoIterator<Item = Option<String>>) {
        let shown = |cell: Option<String>| match cell {
            Some(text) if !text.is_empty() => printable(&text),
            _ => NOTHING.to_owned(),
        };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Appends the table, unless it has no rows; columns in which nothing stands are left out.
    pub(super) fn print(&self, text: &mut String) {
        let says_something =
            |column: &usize| self.rows.iter().any(|row| row[*column] != NOTHING) || *column == 0;
        let columns: Vec<usize> = (0..self.header.len()).filter(says_something).collect();
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

/// Text of which nothing reaches the terminal as a command: names come from files.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// `512 B`, `1.5 GiB`: three digits or more.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut size = count as f64;
    let mut unit = "B";
    for larger in UNITS {
        // What would be shown as 1024.0 is one of the next.
        if size < 1023.95 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    format!("{size:.1} {unit}")
}

/// `1440 × 6`.
pub(super) fn shape(lengths: &[u64]) -> String {
    let mut text = String::new();
    for (axis, length) in lengths.iter().enumerate() {
        let separator = if axis == 0 { "" } else { " × " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{length}");
    }
    text
}

/// `1 array`, `2 arrays`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536 << 20, "1.5 GiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn cells_are_aligned_and_harmless() {
        let mut table =
            Columns::new(&[("NAME", Side::Left), ("N", Side::Right), ("NO", Side::Left)]);
        table.add([Some("grün".into()), Some("7".into()), None]);
        table.add([Some("\u{1b}[2J".into()), Some("123".into()), Some(String::new())]);
        let mut text = String::new();
        table.print(&mut text);
        assert_eq!(text, "NAME         N\ngrün         7\n\\u{1b}[2J  123\n");
        Columns::new(&[("NAME", Side::Left)]).print(&mut text);
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn shapes_and_counts() {
        assert_eq!((shape(&[1440, 6]), shape(&[])), ("1440 × 6".to_owned(), String::new()));
        assert_eq!(
            (counted(1, "array"), counted(0, "array")),
            ("1 array".into(), "0 arrays".into())
        );
    }
}
