//! Columns of the same name on both sides of a join.

use crate::support::{reducing, rows_from};

const T: &str = "read_tet('examples/data/stations.tet', dataset => 'temperature')";
const P: &str = "read_tet('examples/data/stations.tet', dataset => 'precipitation')";

/// The least value so far of one side must not leave out chunks by the values of the other side.
#[tokio::test]
async fn first_rows_by_one_side() {
    let ctx = reducing(2, 100);
    let from = format!("{T} t JOIN {P} p ON t.time = p.time AND t.station = p.station");
    for (column, side) in ["t", "p"].into_iter().enumerate() {
        for order in ["ASC", "DESC NULLS LAST"] {
            let sql = format!("SELECT t.value, p.value FROM {from} ORDER BY {side}.value {order}");
            let all = rows_from(&ctx, &sql).await;
            let first = rows_from(&ctx, &format!("{sql} LIMIT 5")).await;
            // Rows with equal values have no order.
            let values = |rows: &[Vec<String>]| -> Vec<String> {
                rows[..5].iter().map(|row| row[column].clone()).collect()
            };
            assert_eq!(values(&first), values(&all), "{sql}");
        }
    }
}

/// The condition that finds rows without a match must not reach the rows themselves.
#[tokio::test]
async fn rows_without_a_match() {
    let ctx = reducing(2, 100);
    // A filter that is known only while the query runs.
    let a =
        format!("(SELECT * FROM {T} WHERE time < (SELECT min(time) + INTERVAL '2 days' FROM {T}))");
    let matches = "a.time = r.time AND a.station = r.station";
    let condition = "r.value > -5";
    let exists = format!(
        "SELECT count(r.time), min(r.time) FROM {T} r WHERE {condition} AND NOT EXISTS (SELECT 1 FROM {a} a WHERE {matches})"
    );
    let expected = rows_from(&ctx, &exists).await;
    assert_ne!(expected[0][0], "0");
    for join in [format!("{a} a RIGHT JOIN {T} r"), format!("{T} r LEFT JOIN {a} a")] {
        let sql = format!(
            "SELECT count(r.time), min(r.time) FROM {join} ON {matches} WHERE a.time IS NULL AND {condition}"
        );
        assert_eq!(rows_from(&ctx, &sql).await, expected, "{sql}");
    }
}

/// A filter over the key of rows that are returned must not reach another column of the side that only decides about them.
#[tokio::test]
async fn keys_of_semi_joins() {
    let ctx = reducing(2, 100);
    let other = format!(
        "(SELECT time, CASE station WHEN 'Tromso' THEN 'Bergen' ELSE 'zz' END AS next, station FROM {P})"
    );
    let matches = "p.next = t.station AND p.station <> t.station || 'q'";
    let rows =
        format!("SELECT * FROM {T} t WHERE EXISTS (SELECT 1 FROM {other} p WHERE {matches})");
    let expected =
        rows_from(&ctx, &format!("SELECT count(*) FROM {T} WHERE station = 'Bergen'")).await;
    assert_ne!(expected, [["0"]]);
    ctx.sql("CREATE TABLE d AS SELECT column1 AS s FROM VALUES ('Bergen')").await.unwrap();
    let joined = format!("SELECT count(*) FROM d JOIN ({rows}) a ON a.station = d.s");
    assert_eq!(rows_from(&ctx, &joined).await, expected);
    let sql = format!("SELECT count(*) FROM ({rows}) a WHERE a.station > 'A'");
    assert_eq!(rows_from(&ctx, &sql).await, expected);
}
