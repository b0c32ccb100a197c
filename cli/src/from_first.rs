//! Queries that begin with `FROM` and have no `SELECT`, as DuckDB has them: they return all columns.
//!
//! ```text
//!   FROM 'x.nc' WHERE lat > 60 LIMIT 3     ──▶     SELECT * FROM 'x.nc' WHERE lat > 60 LIMIT 3
//!   FROM t SELECT a                                stays: the parser reads it
//! ```
//!
//! The parser ends such a query before its `WHERE`, so the text is completed.

use std::borrow::Cow;

use crate::lexer::{SqlToken, code};

/// Words behind which a query begins.
const BEFORE_QUERIES: [&str; 8] =
    ["as", "union", "intersect", "except", "all", "explain", "analyze", "verbose"];

/// Words that combine a query with the next one.
const BETWEEN_QUERIES: [&str; 3] = ["union", "intersect", "except"];

/// How much of a query was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    Nothing,
    /// The names of `WITH`, which may end with a parenthesis: `WITH a AS (…) FROM a`.
    With,
    Query,
}

/// Puts `SELECT *` before each `FROM` that begins a query without `SELECT`.
pub(crate) fn with_select(sql: &str) -> Cow<'_, str> {
    let pieces = code(sql);
    let mut places = vec![];
    // For each open parenthesis.
    let mut begun = vec![Begun::Nothing];
    for (at, piece) in pieces.iter().enumerate() {
        match piece.text {
            "(" => begun.push(Begun::Nothing),
            ")" if begun.len() > 1 => drop(begun.pop()),
            _ => {}
        }
        let Some(begun) = begun.last_mut() else { continue };
        if piece.text == ";" || BETWEEN_QUERIES.iter().any(|word| piece.is_word(word)) {
            *begun = Begun::Nothing;
        } else if piece.is_word("with") && *begun == Begun::Nothing {
            *begun = Begun::With;
        } else if piece.is_word("select") {
            *begun = Begun::Query;
        } else if piece.is_word("from")
            && *begun != Begun::Query
            && begins_query(pieces.get(at.wrapping_sub(1)), *begun)
        {
            *begun = Begun::Query;
            if !has_select(&pieces[at..]) {
                places.push(piece.start);
            }
        }
    }
    if places.is_empty() {
        return sql.into();
    }
    let mut text = sql.to_owned();
    places.into_iter().rev().for_each(|at| text.insert_str(at, "SELECT * "));
    text.into()
}

/// Whether a query may begin behind this piece. The `FROM` of `substring(upper(a) FROM 2)` begins none.
fn begins_query(before: Option<&SqlToken<'_>>, begun: Begun) -> bool {
    before.is_none_or(|it| match it.text {
        "(" | ";" => true,
        ")" => begun == Begun::With,
        _ => BEFORE_QUERIES.iter().any(|word| it.is_word(word)),
    })
}

/// Whether the query that these pieces begin has a `SELECT` of its own.
fn has_select(query: &[SqlToken<'_>]) -> bool {
    let mut depth = 0_usize;
    for piece in query {
        match piece.text {
            "(" => depth += 1,
            ")" | ";" if depth == 0 => return false,
            ")" => depth -= 1,
            _ if depth > 0 => {}
            _ if piece.is_word("select") => return true,
            _ if BETWEEN_QUERIES.iter().any(|word| piece.is_word(word)) => return false,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_select_is_added() {
        for (sql, expected) in [
            ("FROM t", "SELECT * FROM t"),
            (" from 'x.nc' WHERE a > 1 LIMIT 3", " SELECT * from 'x.nc' WHERE a > 1 LIMIT 3"),
            (
                "SELECT count(*) FROM (FROM t WHERE x)",
                "SELECT count(*) FROM (SELECT * FROM t WHERE x)",
            ),
            ("EXPLAIN ANALYZE FROM t", "EXPLAIN ANALYZE SELECT * FROM t"),
            ("CREATE VIEW v AS FROM t", "CREATE VIEW v AS SELECT * FROM t"),
            ("COPY (FROM t) TO 'x.csv'", "COPY (SELECT * FROM t) TO 'x.csv'"),
            ("WITH a AS (FROM t) FROM a", "WITH a AS (SELECT * FROM t) SELECT * FROM a"),
            ("FROM a UNION ALL FROM b", "SELECT * FROM a UNION ALL SELECT * FROM b"),
            ("SELECT 1; FROM t", "SELECT 1; SELECT * FROM t"),
            ("FROM t WHERE x IN (SELECT y FROM u)", "SELECT * FROM t WHERE x IN (SELECT y FROM u)"),
        ] {
            assert_eq!(with_select(sql), expected);
        }
        for sql in [
            "FROM t SELECT a",
            "SELECT f(x) FROM t",
            "SELECT extract(year FROM t) FROM u WHERE a IS DISTINCT FROM b",
            "SELECT a FROM (SELECT b FROM t) UNION SELECT c FROM u",
            "SELECT (SELECT max(x) FROM t) FROM u",
            "SELECT substring(a FROM 2) FROM t -- FROM u",
            "SELECT substring(upper(a) FROM 2 FOR 3), trim(BOTH lower('X') FROM a) FROM t",
            "UPDATE t SET a = (b) FROM u",
            "SELECT 'FROM t'",
            "DELETE FROM t",
            "",
        ] {
            assert!(matches!(with_select(sql), Cow::Borrowed(it) if it == sql), "{sql}");
        }
    }
}
