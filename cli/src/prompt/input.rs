//! Distinguishes SQL, commands and unfinished statements at the prompt.

use crate::lexer::{SqlTokenKind, pieces};

/// The kind of input at the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input<'a> {
    /// Blanks and comments only.
    Nothing,
    /// A command and its argument, without the semicolon.
    Command(&'a str, &'a str),
    /// SQL up to a semicolon.
    Sql(&'a str),
    /// SQL without its end.
    Unfinished,
}

impl<'a> Input<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let trimmed = text.trim();
        let line = trimmed.trim_end_matches([';', ' ']);
        if is_command(line) {
            let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            return Self::Command(command, argument.trim());
        }
        let mut last = None;
        for piece in pieces(text) {
            if !piece.is_closed {
                return Self::Unfinished;
            }
            if piece.is_code() {
                last = Some(piece);
            }
        }
        match last {
            None => Self::Nothing,
            Some(last) if last.kind == SqlTokenKind::Symbol && last.text == ";" => Self::Sql(text),
            Some(_) => Self::Unfinished,
        }
    }
}

/// Whether a line is for the prompt rather than for the engine.
fn is_command(line: &str) -> bool {
    let is_word =
        ["help", "exit", "quit", "clear"].iter().any(|word| line.eq_ignore_ascii_case(word));
    // No statement begins with a dot. But a line inside a statement may begin with a number such as `.5`.
    let is_dotted =
        line.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    is_word || line.starts_with('\\') || is_dotted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_need_no_semicolon() {
        for (text, command, argument) in [
            ("help", "help", ""),
            ("  EXIT ; ", "EXIT", ""),
            ("quit;;", "quit", ""),
            ("\\d", "\\d", ""),
            (".schema  \"My table\" ;", ".schema", "\"My table\""),
            ("\\pset   format csv", "\\pset", "format csv"),
            ("\\", "\\", ""),
        ] {
            assert_eq!(Input::new(text), Input::Command(command, argument), "{text}");
        }
    }

    #[test]
    fn statements_end_with_a_semicolon() {
        for text in
            ["SELECT 1;", "SELECT ';' ; -- done", "SELECT 1; /* ; */\n", "help me;", "SELECT .5;"]
        {
            assert_eq!(Input::new(text), Input::Sql(text), "{text}");
        }
        for text in [
            "SELECT 1",
            "SELECT ';",
            "SELECT 1 -- ;",
            "SELECT \";",
            "SELECT 1; /* more",
            "helpful",
            "SELECT 1; SELECT",
            "quit now",
            "SELECT 'a\n;\nb",
        ] {
            assert_eq!(Input::new(text), Input::Unfinished, "{text}");
        }
        for text in ["", " \n", "-- nothing", "/* ; */"] {
            assert_eq!(Input::new(text), Input::Nothing, "{text}");
        }
    }
}
