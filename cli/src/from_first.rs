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

/// Puts `SELECT *` before each `FROM` that begins a query without `SELECT`.
pub(crate) fn with_select(sql: &str) -> Cow<'_, str> {
    let pieces = code(sql);
    let mut places = vec![];
    // Whether the query has begun, for each open parenthesis.
    let mut begun = vec![false];
    for (at, piece) in pieces.iter().enumerate() {
        match piece.text {
            "(" => begun.push(false),
            ")" if begun.len() > 1 => drop(begun.pop()),
            _ => {}
        }
        let Some(is_begun) = begun.last_mut() else { continue };
        if piece.text == ";" || BETWEEN_QUERIES.iter().any(|word| piece.is_word(word)) {
            *is_begun = false;
        } else if piece.is_word("select") {
            *is_begun = true;
        } else if piece.is_word("from")
            && !*is_begun
            && begins_query(pieces.get(at.wrapping_sub(1)))
        {
            *is_begun = true;
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

/// Whether a query may begin behind this piece: `WITH a AS (…) FROM a` begins behind a parenthesis.
fn begins_query(before: Option<&SqlToken<'_>>) -> bool {
    before.is_none_or(|it| {
        ["(", ")", ";"].contains(&it.text) || BEFORE_QUERIES.iter().any(|word| it.is_word(word))
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
            "SELECT 'FROM t'",
            "DELETE FROM t",
            "",
        ] {
            assert!(matches!(with_select(sql), Cow::Borrowed(it) if it == sql), "{sql}");
        }
    }
}
