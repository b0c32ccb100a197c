//! Text from files, made safe for a terminal.
//!
//! Names, labels and values may contain control characters, and a terminal would obey them: move the cursor,
//! change the title, or answer as if the user typed. Tables, messages and reports show pictures of them instead, which are as
//! wide as one letter: `␛[2J`. Other characters are invisible or turn the direction of the text around, so that one name looks like
//! another. They are shown by number: `\u{202e}`. CSV, TSV and JSON are for programs and keep every character.

use std::borrow::Cow;

use gridfusion_plot::is_invisible;

/// Replaces all control characters by their pictures, and invisible characters by their numbers.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, is_unprintable)
}

/// Replaces characters as [`printable`] does, but keeps line feeds, for texts of several lines.
pub(crate) fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_unprintable(c) && c != '\n')
}

/// Whether a terminal would obey a character, or show nothing for it.
fn is_unprintable(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

fn replaced(text: &str, is_wrong: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(is_wrong) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !is_wrong(c) => shown.push(c),
            c if c.is_control() => shown.push(picture(c)),
            c => shown.extend(c.escape_unicode()),
        }
    }
    shown.into()
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

    #[test]
    fn what_cannot_be_seen_is_shown_by_number() {
        let text = "o\u{200b}slo \u{202e}gnp.\u{2066}x\u{2069} \u{feff}\u{e0041}\u{ad}";
        let shown = r"o\u{200b}slo \u{202e}gnp.\u{2066}x\u{2069} \u{feff}\u{e0041}\u{ad}";
        assert_eq!(printable(text), shown);
        assert_eq!(printable_lines(text), shown);
        for kept in ["שלום", "سلام", "Zürich", "東京", "e\u{301}", "🌍", "a\u{a0}b"] {
            assert!(matches!(printable(kept), Cow::Borrowed(_)), "{kept}");
        }
    }
}
