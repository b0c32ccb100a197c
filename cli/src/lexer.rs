//! Splits SQL into words, texts and comments, even if it is unfinished.
//!
//! The parser's tokenizer fails at an open quote, and a line at the prompt often has one while the user
//! types.
//!
//! ```text
//!   SELECT "a b", 'it''s' -- done        Word Space Name Symbol Space Text Space Comment
//! ```
//!
//! `prompt` and `summarize` use it. Statements are split by the parser's tokenizer, in `statement`.

/// The kind of a piece of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SqlTokenKind {
    Space,
    /// From `--` to the end of the line, or from `/*` to `*/`, which nest.
    Comment,
    /// In single quotes.
    Text,
    /// In double quotes.
    Name,
    /// Letters, digits and underscores.
    Word,
    /// Any other character.
    Symbol,
}

/// A piece of SQL. The pieces of a text, joined, are the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SqlToken<'a> {
    pub(crate) kind: SqlTokenKind,
    pub(crate) text: &'a str,
    /// The byte offset in the whole text.
    pub(crate) start: usize,
    /// Whether the piece is complete; `false` for an open quote or block comment.
    pub(crate) is_closed: bool,
}

impl SqlToken<'_> {
    /// Whether the piece is `word`, in upper or lower case.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == SqlTokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub(crate) fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == SqlTokenKind::Symbol && self.text == symbol
    }

    /// Whether the piece is neither blank nor a comment.
    pub(crate) fn is_code(&self) -> bool {
        !matches!(self.kind, SqlTokenKind::Space | SqlTokenKind::Comment)
    }
}

/// Returns the pieces of a text, in order.
pub(crate) fn pieces(sql: &str) -> impl Iterator<Item = SqlToken<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = sql.get(start..).filter(|rest| !rest.is_empty())?;
        let (kind, length, is_closed) = first(rest)?;
        let piece = SqlToken { kind, text: &rest[..length], start, is_closed };
        start += length;
        Some(piece)
    })
}

/// Returns the pieces that are neither blank nor comments.
pub(crate) fn code(sql: &str) -> Vec<SqlToken<'_>> {
    pieces(sql).filter(SqlToken::is_code).collect()
}

/// Returns the kind, the length in bytes and the completeness of the first piece of a text.
fn first(text: &str) -> Option<(SqlTokenKind, usize, bool)> {
    let until = |is_end: fn(char) -> bool| text.find(is_end).unwrap_or(text.len());
    let character = text.chars().next()?;
    Some(match character {
        '\'' => quoted(text, '\'', SqlTokenKind::Text),
        '"' => quoted(text, '"', SqlTokenKind::Name),
        '-' if text.starts_with("--") => (SqlTokenKind::Comment, until(|it| it == '\n'), true),
        '/' if text.starts_with("/*") => block_comment(text),
        it if it.is_whitespace() => (SqlTokenKind::Space, until(|it| !it.is_whitespace()), true),
        it if is_of_word(it) => (SqlTokenKind::Word, until(|it| !is_of_word(it)), true),
        it => (SqlTokenKind::Symbol, it.len_utf8(), true),
    })
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Measures a quoted piece. A doubled quote stands for one quote inside the text.
fn quoted(text: &str, quote: char, kind: SqlTokenKind) -> (SqlTokenKind, usize, bool) {
    let mut rest = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = rest.next() {
        if character != quote {
            continue;
        }
        if rest.next_if(|(_, next)| *next == quote).is_none() {
            return (kind, at + 1, true);
        }
    }
    (kind, text.len(), false)
}

/// Measures a comment from `/*` to the matching `*/`, or to the end of the text.
fn block_comment(text: &str) -> (SqlTokenKind, usize, bool) {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return (SqlTokenKind::Comment, at, true);
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    (SqlTokenKind::Comment, text.len(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text() {
        let sql = "SELECT 'it''s', \"a \"\"b\" -- 'x\n/* /* ; */ é */ FROM größe_1;'open";
        let pieces: Vec<_> = pieces(sql).collect();
        assert_eq!(pieces.iter().map(|piece| piece.text).collect::<String>(), sql);
        let code: Vec<_> = code(sql).into_iter().map(|piece| (piece.kind, piece.text)).collect();
        let expected = [
            (SqlTokenKind::Word, "SELECT"),
            (SqlTokenKind::Text, "'it''s'"),
            (SqlTokenKind::Symbol, ","),
            (SqlTokenKind::Name, "\"a \"\"b\""),
            (SqlTokenKind::Word, "FROM"),
            (SqlTokenKind::Word, "größe_1"),
            (SqlTokenKind::Symbol, ";"),
            (SqlTokenKind::Text, "'open"),
        ];
        assert_eq!(code, expected);
        assert!(!pieces.last().unwrap().is_closed);
    }

    #[test]
    fn every_prefix_is_taken_apart() {
        let sql = "/*/**/ä*/ \"é\"\"\" --\n 'ü''";
        for (end, _) in sql.char_indices() {
            let text: String = pieces(&sql[..end]).map(|piece| piece.text).collect();
            assert_eq!(text, sql[..end]);
        }
        for open in ["'", "\"", "/*", "'a''", "/* /* */"] {
            assert!(!pieces(open).last().unwrap().is_closed, "{open}");
        }
    }
}
