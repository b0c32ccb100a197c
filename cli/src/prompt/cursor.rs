//! Finds the kind of name at the cursor in unfinished SQL.
//!
//! The pieces before the cursor decide, from right to left: the word being typed, its qualifier, and the word
//! before them. The bar is the cursor:
//!
//! ```text
//!   SELECT * FROM s.te|          start 16, prefix "te", Table(["s"])
//!   SELECT t.|                   start 9,  prefix "",   Member(["t"])
//!   SELECT a, b|                 start 10, prefix "b",  Word
//! ```

use std::ops::Range;

use super::keywords::is_keyword;
use crate::lexer::{SqlToken, SqlTokenKind, code, pieces};

/// The kind of name at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CursorPlace {
    /// A path, whose opening quote is at `start - 1`.
    Path,
    /// A table, after `FROM` or a similar word and these parts of the table's name.
    Table(Vec<String>),
    /// A column after a table's name or alias, or the next part of a table's name.
    Member(Vec<String>),
    /// A column, a function or a keyword.
    Word,
    /// Nothing to complete, inside a comment.
    Nothing,
}

/// The name at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The byte offset of the name.
    pub(super) start: usize,
    /// The part before the cursor, without quotes.
    pub(super) prefix: String,
    pub(super) place: CursorPlace,
}

impl Cursor {
    /// Analyses the text before the cursor.
    pub(super) fn new(before: &str) -> Self {
        let mut all: Vec<SqlToken<'_>> = pieces(before).collect();
        let here = |start: usize, prefix: &str, place: CursorPlace| Self {
            start,
            prefix: prefix.to_owned(),
            place,
        };
        let Some(last) = all.last().copied() else { return here(0, "", CursorPlace::Word) };
        let is_in_line_comment = last.kind == SqlTokenKind::Comment && last.text.starts_with("--");
        // The word being typed; if there is none, the cursor is where one may begin.
        let (start, prefix) = match last.kind {
            SqlTokenKind::Text if !last.is_closed => {
                return here(last.start + 1, &last.text[1..], CursorPlace::Path);
            }
            SqlTokenKind::Comment if !last.is_closed || is_in_line_comment => {
                return here(before.len(), "", CursorPlace::Nothing);
            }
            SqlTokenKind::Name if !last.is_closed => (last.start, &last.text[1..]),
            SqlTokenKind::Word => (last.start, last.text),
            _ => (before.len(), ""),
        };
        if start < before.len() {
            all.pop();
        }
        let parts = qualifier(&mut all);
        let words: Vec<SqlToken<'_>> = all.into_iter().filter(SqlToken::is_code).collect();
        let place = match (is_after_from(&words), parts.is_empty()) {
            (true, _) => CursorPlace::Table(parts),
            (false, false) => CursorPlace::Member(parts),
            (false, true) => CursorPlace::Word,
        };
        here(start, prefix, place)
    }
}

/// Removes the dotted parts of a name from the end of `pieces`, and returns them.
fn qualifier(pieces: &mut Vec<SqlToken<'_>>) -> Vec<String> {
    let mut parts = vec![];
    while let [.., name, dot] = pieces.as_slice()
        && dot.is_symbol(".")
        && let Some(part) = part(name)
    {
        parts.insert(0, part);
        pieces.truncate(pieces.len() - 2);
    }
    parts
}

/// Returns the name in a piece; unquoted names in lower case, as in SQL.
fn part(piece: &SqlToken<'_>) -> Option<String> {
    match piece.kind {
        SqlTokenKind::Word => Some(piece.text.to_lowercase()),
        SqlTokenKind::Name if piece.is_closed => {
            Some(piece.text[1..piece.text.len() - 1].replace("\"\"", "\""))
        }
        _ => None,
    }
}

/// Words that stand before a table.
const BEFORE_TABLES: [&str; 8] =
    ["from", "join", "into", "update", "describe", "summarize", "table", "desc"];

/// Whether a table comes next: after one of [`BEFORE_TABLES`], or after a comma in `FROM`.
fn is_after_from(pieces: &[SqlToken<'_>]) -> bool {
    let Some(last) = pieces.last() else { return false };
    let is_before = |piece: &SqlToken<'_>| BEFORE_TABLES.iter().any(|word| piece.is_word(word));
    if is_before(last) {
        // `DESC` is also the end of an ORDER BY.
        return !last.is_word("desc") || pieces.len() == 1;
    }
    last.is_symbol(",") && clause(pieces).is_some_and(|piece| piece.is_word("from"))
}

/// Returns the keyword of the clause that `pieces` end in, in the same parentheses.
fn clause<'a, 'p>(pieces: &'a [SqlToken<'p>]) -> Option<&'a SqlToken<'p>> {
    let mut depth = 0_usize;
    for piece in pieces.iter().rev() {
        match piece.text {
            ")" => depth += 1,
            "(" if depth == 0 => return None,
            "(" => depth -= 1,
            _ if depth == 0 && is_clause(piece) => return Some(piece),
            _ => {}
        }
    }
    None
}

/// Whether a word begins a clause, so that commas after it belong to that clause.
fn is_clause(piece: &SqlToken<'_>) -> bool {
    const CLAUSES: [&str; 9] =
        ["select", "from", "where", "by", "having", "on", "using", "values", "limit"];
    CLAUSES.iter().any(|word| piece.is_word(word))
}

/// A table, path or table function in the FROM of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation<'a> {
    /// The relation's SQL.
    pub(super) sql: &'a str,
    /// The last part of its name, and its alias if it has one.
    pub(super) names: Vec<String>,
}

/// Returns the relations in the statement at `place`.
pub(super) fn relations(sql: &str, place: usize) -> Vec<Relation<'_>> {
    let range = statement(sql, place);
    let sql = &sql[range];
    let pieces = code(sql);
    let mut relations = vec![];
    for at in 1..pieces.len() {
        if is_after_from(&pieces[..at])
            && let Some(relation) = relation(sql, &pieces[at..])
        {
            relations.push(relation);
        }
    }
    relations
}

/// Returns the range of the statement at `place`, between the semicolons around it.
fn statement(sql: &str, place: usize) -> Range<usize> {
    let mut range = 0..sql.len();
    for semicolon in pieces(sql).filter(|piece| piece.is_symbol(";")) {
        if semicolon.start < place {
            range.start = semicolon.start + 1;
        } else {
            range.end = semicolon.start;
            break;
        }
    }
    range
}

/// Returns the relation at the start of `pieces`.
fn relation<'a>(sql: &'a str, pieces: &[SqlToken<'a>]) -> Option<Relation<'a>> {
    let first = pieces.first()?;
    let mut names = vec![];
    let mut length = 1;
    if first.kind == SqlTokenKind::Text && first.is_closed {
        // A path has no name, but may have an alias.
    } else if let Some(mut name) = part(first).filter(|_| !is_reserved(first)) {
        while let [dot, next, ..] = &pieces[length..]
            && dot.is_symbol(".")
            && let Some(part) = part(next)
        {
            (name, length) = (part, length + 2);
        }
        names.push(name);
        length += arguments(&pieces[length..])?;
    } else {
        return None;
    }
    let last = pieces[length - 1];
    let mut rest = &pieces[length..];
    if let [as_, tail @ ..] = rest
        && as_.is_word("as")
    {
        rest = tail;
    }
    names.extend(rest.first().filter(|piece| !is_reserved(piece)).and_then(part));
    Some(Relation { sql: &sql[first.start..last.start + last.text.len()], names })
}

fn is_reserved(piece: &SqlToken<'_>) -> bool {
    piece.kind == SqlTokenKind::Word && is_keyword(piece.text)
}

/// Returns the number of pieces in the arguments of a table function; `None` if the parentheses are open.
fn arguments(pieces: &[SqlToken<'_>]) -> Option<usize> {
    if !pieces.first().is_some_and(|piece| piece.is_symbol("(")) {
        return Some(0);
    }
    let mut depth = 0_usize;
    for (at, piece) in pieces.iter().enumerate() {
        match piece.text {
            "(" => depth += 1,
            ")" if depth == 1 => return Some(at + 1),
            ")" => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(before: &str) -> (usize, String, CursorPlace) {
        let Cursor { start, prefix, place } = Cursor::new(before);
        (start, prefix, place)
    }

    #[test]
    fn what_is_being_written() {
        let parts = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
        for (before, start, prefix, place) in [
            ("", 0, "", CursorPlace::Word),
            ("SEL", 0, "SEL", CursorPlace::Word),
            ("SELECT ", 7, "", CursorPlace::Word),
            ("SELECT 'a", 8, "a", CursorPlace::Path),
            ("SELECT a -- b", 13, "", CursorPlace::Nothing),
            ("SELECT /* b", 11, "", CursorPlace::Nothing),
            ("SELECT * FROM t", 14, "t", CursorPlace::Table(vec![])),
            ("SELECT * FROM \"So", 14, "So", CursorPlace::Table(vec![])),
            ("SELECT * FROM a, ", 17, "", CursorPlace::Table(vec![])),
            ("SELECT * FROM f(1, ", 19, "", CursorPlace::Word),
            ("SELECT a, b FROM t ORDER BY a DESC", 30, "DESC", CursorPlace::Word),
            ("SELECT a FROM t ORDER BY a DESC, b", 33, "b", CursorPlace::Word),
            ("DESC sta", 5, "sta", CursorPlace::Table(vec![])),
            ("SELECT * FROM Stations.te", 23, "te", CursorPlace::Table(parts(&["stations"]))),
            ("SELECT \"A b\".c.", 15, "", CursorPlace::Member(parts(&["A b", "c"]))),
            ("SELECT 1;\nsummarize ", 20, "", CursorPlace::Table(vec![])),
        ] {
            assert_eq!(cursor(before), (start, prefix.to_owned(), place), "{before}");
        }
    }

    #[test]
    fn what_from_names() {
        let sql = "SELECT x FROM z; SELECT a| FROM t u, 'p.tet' AS \"P\" JOIN s.\"T 2\" ON u.a = 1, \
                   read_tet('b', f(1)) r WHERE a IN (SELECT 1 FROM sub) ORDER BY a; SELECT FROM later";
        let found = relations(sql, sql.find('|').unwrap());
        let found: Vec<_> = found.iter().map(|it| (it.sql, it.names.join(" "))).collect();
        let expected = [("t", "t u"), ("'p.tet'", "P"), ("s.\"T 2\"", "T 2"), ("sub", "sub")];
        assert_eq!(found.len(), 4, "{found:?}");
        for (found, (sql, names)) in found.iter().zip(expected) {
            assert_eq!((found.0, found.1.as_str()), (sql, names));
        }
        let sql = "SELECT | FROM read_tet('b', f(1)) r";
        let expected = Relation {
            sql: "read_tet('b', f(1))",
            names: vec!["read_tet".to_owned(), "r".to_owned()],
        };
        assert_eq!(relations(sql, 7), [expected]);
        for unfinished in ["SELECT a FROM", "SELECT a FROM f(", "FROM (SELECT", "SELECT a FROM 'x"]
        {
            assert_eq!(relations(unfinished, 8), [], "{unfinished}");
        }
    }
}
