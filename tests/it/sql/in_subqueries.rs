//! `IN` and `NOT IN` over subqueries with NULLs, in every place of a condition. DuckDB counted the rows.

use crate::support::{cell, query, reducing};

const TABLES: [&str; 2] = [
    "CREATE TABLE t(x INT, k INT) AS VALUES (1, 1), (2, 1), (NULL, 1), (1, 2), (2, 2), (NULL, 2), (3, 3), (NULL, 3), (2, NULL), (5, 4)",
    "CREATE TABLE u(c INT, k INT) AS VALUES (1, 1), (NULL, 1), (2, 2), (NULL, 3), (7, 5)",
];

/// Predicates, with `(S)` in the place of a subquery.
const PREDICATES: [&str; 24] = [
    "x IN (S)",
    "x NOT IN (S)",
    "NOT (x IN (S))",
    "NOT (x IN (S) AND x < 10)",
    "x NOT IN (S) OR x > 10",
    "x IN (S) OR x = 5",
    "(x IN (S)) IS NULL",
    "(x IN (S)) IS NOT NULL",
    "(x NOT IN (S)) IS NULL",
    "(x IN (S)) = (k = 1)",
    "CASE WHEN x IN (S) THEN false ELSE true END",
    "CASE WHEN x NOT IN (S) THEN true ELSE false END",
    "NOT (x NOT IN (S) AND k = 2)",
    "(x IN (S)) IS NOT TRUE",
    "(x IN (S)) IS DISTINCT FROM true",
    "coalesce(x IN (S), k > 1)",
    "NOT (x IN (S) OR k = 2)",
    "x + 1 NOT IN (S) OR k = 3",
    "1 NOT IN (S) OR k = 3",
    "NULL NOT IN (S) OR k = 3",
    "(x IN (S)) IS UNKNOWN",
    "x NOT IN (S) AND k > 0",
    "x NOT IN (S) OR x NOT IN (SELECT k FROM u)",
    "k NOT IN (S) OR x > 10",
];

/// Subqueries, and the number of rows that pass each predicate.
const COUNTS: [(&str, &[usize]); 11] = [
    ("SELECT c FROM u", &[5, 0, 0, 0, 0, 6, 5, 5, 5, 2, 5, 0, 9, 5, 5, 9, 0, 2, 2, 2, 5, 0, 0, 0]),
    (
        "SELECT c FROM u WHERE c IS NOT NULL",
        &[5, 2, 2, 2, 2, 6, 3, 7, 3, 4, 5, 2, 9, 5, 5, 7, 2, 6, 2, 2, 3, 2, 2, 3],
    ),
    (
        "SELECT c FROM u WHERE c > 100",
        &[0, 10, 10, 10, 10, 1, 0, 10, 0, 6, 10, 10, 6, 10, 10, 0, 6, 10, 10, 10, 0, 9, 10, 10],
    ),
    (
        "SELECT c FROM u WHERE u.k = t.k",
        &[2, 3, 3, 3, 3, 3, 5, 5, 5, 3, 8, 3, 7, 8, 8, 5, 1, 5, 7, 4, 5, 2, 3, 2],
    ),
    (
        "SELECT c FROM u WHERE u.k < t.k",
        &[1, 4, 4, 4, 4, 2, 5, 5, 5, 0, 9, 4, 7, 9, 9, 6, 3, 6, 6, 6, 5, 3, 4, 4],
    ),
    (
        "SELECT c + 1 FROM u WHERE u.k = t.k",
        &[1, 4, 4, 4, 4, 2, 5, 5, 5, 4, 9, 4, 6, 9, 9, 4, 1, 5, 7, 4, 5, 3, 4, 5],
    ),
    (
        "SELECT max(c) FROM u WHERE u.k = t.k",
        &[2, 2, 2, 2, 2, 3, 6, 4, 6, 2, 8, 2, 7, 8, 8, 6, 1, 5, 5, 2, 6, 2, 2, 0],
    ),
    (
        "SELECT max(c) FROM u GROUP BY k",
        &[5, 0, 0, 0, 0, 6, 5, 5, 5, 2, 5, 0, 9, 5, 5, 9, 0, 2, 2, 2, 5, 0, 0, 0],
    ),
    (
        "SELECT DISTINCT c FROM u WHERE u.k = t.k",
        &[2, 3, 3, 3, 3, 3, 5, 5, 5, 3, 8, 3, 7, 8, 8, 5, 1, 5, 7, 4, 5, 2, 3, 2],
    ),
    (
        "SELECT c FROM u ORDER BY c NULLS FIRST LIMIT 2",
        &[0, 0, 0, 0, 0, 1, 10, 0, 10, 0, 10, 0, 6, 10, 10, 6, 0, 2, 2, 2, 10, 0, 0, 0],
    ),
    (
        "SELECT c FROM u UNION ALL SELECT NULL",
        &[5, 0, 0, 0, 0, 6, 5, 5, 5, 2, 5, 0, 9, 5, 5, 9, 0, 2, 2, 2, 5, 0, 0, 0],
    ),
];

#[tokio::test]
async fn in_knows_null_in_every_condition() {
    for partitions in [1, 3] {
        let ctx = reducing(partitions, 4);
        for table in TABLES {
            query(&ctx, table).await.unwrap();
        }
        for (subquery, counts) in COUNTS {
            for (predicate, count) in PREDICATES.iter().zip(counts) {
                let predicate = predicate.replace("(S)", &format!("({subquery})"));
                let sql = format!("SELECT count(*) FROM t WHERE {predicate}");
                assert_eq!(cell(&ctx, &sql).await, count.to_string(), "{sql}");
            }
        }
        // Groups, and a table whose column is never NULL.
        for (sql, expected) in [
            (
                "SELECT count(*) FROM (SELECT k FROM t GROUP BY k HAVING max(x) NOT IN (SELECT c FROM u) OR k = 4)",
                "1",
            ),
            (
                "SELECT count(*) FROM t WHERE x NOT IN (SELECT value FROM generate_series(1, 2)) OR k = 1",
                "5",
            ),
            (
                "SELECT count(*) FROM (SELECT 1 AS a) WHERE NOT (a IN (SELECT 1) OR a IN (SELECT NULL))",
                "0",
            ),
        ] {
            assert_eq!(cell(&ctx, sql).await, expected, "{sql}");
        }
    }
}

/// DuckDB and the standard agree on these, too.
#[tokio::test]
async fn in_knows_null_at_its_left_and_in_joins() {
    let ctx = reducing(2, 4);
    for table in TABLES {
        query(&ctx, table).await.unwrap();
    }
    for (condition, count) in [
        ("2 NOT IN (SELECT c FROM u WHERE c IS NULL OR c = 1)", "0"),
        ("2 NOT IN (SELECT c FROM u WHERE c = 1)", "10"),
        ("NULL NOT IN (SELECT c FROM u)", "0"),
        ("NOT (NULL IN (SELECT c FROM u))", "0"),
        ("NULL NOT IN (SELECT c FROM u WHERE c > 100)", "10"),
        ("(SELECT max(c) FROM u WHERE c > 100) NOT IN (SELECT c FROM u)", "0"),
        ("(SELECT max(c) FROM u) NOT IN (SELECT c FROM u WHERE c = 1)", "10"),
    ] {
        let sql = format!("SELECT count(*) FROM t WHERE {condition}");
        assert_eq!(cell(&ctx, &sql).await, count, "{sql}");
    }
    let pairs = "(VALUES (1), (NULL)) a(x) JOIN (VALUES (1), (2)) b(y)";
    for (condition, count) in [
        ("x NOT IN (SELECT 5) OR y > 5", "2"),
        ("(x IN (SELECT 77)) IS NULL AND y > 0", "2"),
        ("x = y AND x IN (SELECT 1)", "1"),
        ("x NOT IN (SELECT c FROM u)", "0"),
    ] {
        let sql = format!("SELECT count(*) FROM {pairs} ON {condition}");
        assert_eq!(cell(&ctx, &sql).await, count, "{sql}");
    }
}

/// `PREPARE` optimizes a plan before it is analyzed.
#[tokio::test]
async fn prepared_statements_have_the_same_answers() {
    let ctx = reducing(2, 4);
    for table in TABLES {
        query(&ctx, table).await.unwrap();
    }
    for (at, (sql, values, expected)) in [
        ("SELECT count(*) FROM t WHERE x NOT IN (SELECT 5) OR x > 9", "", "6"),
        ("SELECT count(*) FROM t WHERE x NOT IN (SELECT 5) OR x > $1", "(9)", "6"),
        ("SELECT count(*) FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE c = x)", "", "10"),
        ("SELECT DISTINCT ON (k) k FROM t WHERE k = 2 ORDER BY k", "", "2"),
        ("SELECT sum(x) FROM t WHERE x > $1", "(1.5)", "14"),
    ]
    .into_iter()
    .enumerate()
    {
        query(&ctx, &format!("PREPARE p{at} AS {sql}")).await.unwrap();
        for _ in 0..2 {
            let sql = format!("EXECUTE p{at}{values}");
            assert_eq!(cell(&ctx, &sql).await, expected, "{sql}");
        }
    }
}

/// In an outer reference of two levels, the value would have to be compared inside. That is refused rather than wrong.
#[tokio::test]
async fn what_cannot_be_rewritten_is_refused() {
    let ctx = reducing(1, 4);
    for table in TABLES {
        query(&ctx, table).await.unwrap();
    }
    let sql = "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.x NOT IN (SELECT c FROM u v WHERE v.k = u.k))";
    let error = query(&ctx, sql).await.unwrap_err().to_string();
    assert!(error.contains("exclude NULLs or use EXISTS"), "{error}");
}
