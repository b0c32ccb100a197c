//! Text from files, made safe for a terminal.
//!
//! Names, labels and values may contain control characters, and a terminal would obey them: move the cursor,
//! change the title, or answer as if the user typed. Tables, messages and reports show pictures of them instead, which are as
//! wide as one letter: `␛[2J`. CSV, TSV and JSON are for programs and keep every character.

use std::borrow::Cow;

/// Replaces all control characters by their pictures.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, char::is_control)
}

/// Replaces all control characters but line feeds, for texts of several lines.
pub(crate) fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c.is_control() && c != '\n')
}

fn replaced(text: &str, is_wrong: fn(char) -> bool) -> Cow<'_, str> {
    match text.contains(is_wrong) {
        true => text.chars().map(|c| if is_wrong(c) { picture(c) } else { c }).collect(),
        false => text.into(),
    }
}

/// Returns the picture of a control character. Unicode has pictures of those in ASCII only.
fn picture(control: char) -> char {
    match u32::from(control) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_have_nothing_to_obey() {
        let text = "a\u{1b}[2J\r\n\t\u{7f}\u{9b}é";
        assert_eq!(printable(text), "a␛[2J␍␊␉␡\u{fffd}é");
        assert_eq!(printable_lines(text), "a␛[2J␍\n␉␡\u{fffd}é");
        assert!(matches!(printable_lines("plain\ntext"), Cow::Borrowed(_)));
    }
}
