//! The SQL keywords that the prompt completes and highlights.
//!
//! The parser has a thousand keywords, among them `time` and `value`. This list has only common ones.

/// Keywords in upper case, sorted.
pub(super) const KEYWORDS: &[&str] = &[
    "ALL",
    "ANALYZE",
    "AND",
    "ANTI",
    "ANY",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COPY",
    "CREATE",
    "CROSS",
    "CUBE",
    "CURRENT",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "ESCAPE",
    "EXCEPT",
    "EXCLUDE",
    "EXISTS",
    "EXPLAIN",
    "EXTERNAL",
    "FALSE",
    "FILTER",
    "FIRST",
    "FOLLOWING",
    "FROM",
    "FULL",
    "FUNCTIONS",
    "GROUP",
    "GROUPING",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LAST",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOCATION",
    "NATURAL",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PARTITIONED",
    "PRECEDING",
    "QUALIFY",
    "RANGE",
    "REPLACE",
    "RESET",
    "RIGHT",
    "ROLLUP",
    "ROWS",
    "SELECT",
    "SEMI",
    "SET",
    "SETS",
    "SHOW",
    "SIMILAR",
    "STORED",
    "SUMMARIZE",
    "TABLE",
    "TABLES",
    "THEN",
    "TO",
    "TRUE",
    "UNBOUNDED",
    "UNION",
    "UNNEST",
    "USING",
    "VALUES",
    "VIEW",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
    "WITHIN",
];

/// Whether a word is one of [`KEYWORDS`], in any case.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word.to_ascii_uppercase().as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_in_order() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("select") && is_keyword("Where"));
        assert!(!is_keyword("time") && !is_keyword("value") && !is_keyword(""));
    }
}
