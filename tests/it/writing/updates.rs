//! `UPDATE` of the cells of arrays.

use super::append::files;
use super::zarr::Case;
use crate::support::{query, reducing, rows_from, sorted_rows_from};

const ROWS: &str = "SELECT CAST(value / 3 AS INT) AS day, concat('s', value % 3) AS site, CAST(value AS REAL) AS t, CAST(value AS INT) AS n, concat('c', value) AS c FROM range(12)";

/// Makes the array and its table `t`.
async fn table(case: &Case, name: &str, format: &str, options: &str) {
    let at = case.at(name).display().to_string();
    let copy = format!(
        "COPY ({ROWS}) TO '{at}' STORED AS {format} OPTIONS ('dimensions' 'day, site', {options})"
    );
    query(&case.ctx, &copy).await.unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{at}' OPTIONS (fill_as_null 'true')"
    );
    query(&case.ctx, &create).await.unwrap();
}

/// The values that `SET` sets, and the condition.
const UPDATES: [(&[(&str, &str)], &str); 15] = [
    (&[("t", "t + 0.5")], "day = 1"),
    (&[("t", "NULL"), ("c", "concat(site, c)")], "t > 4 AND site <> 's1'"),
    (&[("n", "n * 2")], "day IN (SELECT value FROM range(2, 4))"),
    (&[("n", "7"), ("t", "n")], "EXISTS (SELECT 1 FROM u WHERE u.at = t.day AND u.name = t.site)"),
    (&[("t", "(SELECT max(at) FROM u)")], "t < (SELECT avg(value) FROM range(12))"),
    (&[("n", "(SELECT sum(at) FROM u WHERE u.name = t.site)")], "n > 3"),
    (&[("n", "n + 1")], "true"),
    (&[("n", "n + 1")], "NULL"),
    (&[("n", "n + 1")], "n > 1000"),
    (&[("c", "n")], "n % 2 = 0"),
    (&[("n", "'5'")], "site = 's2'"),
    (&[("t", "0.1")], "c LIKE '%1%'"),
    (&[("n", "round(t)")], "t IS NOT NULL"),
    (&[("n", "round(t * -0.0001)")], "t < 5"),
    (&[("t", "t / 3")], "day NOT IN (SELECT at FROM u)"),
];

async fn updates(format: &str, options: &str) {
    let case = Case::new(reducing(2, 512)).await;
    table(&case, "x", format, options).await;
    query(&case.ctx, "CREATE TABLE u AS SELECT * FROM (VALUES (1, 's0'), (3, 's2')) u(at, name)")
        .await
        .unwrap();
    let all = "SELECT day, site, t, n, c FROM t";
    let place = case.at("x").display().to_string();
    let mut changes = 0;
    for (set, condition) in UPDATES {
        let before = sorted_rows_from(&case.ctx, all).await;
        let value = |column: &str, data_type: &str| {
            let found = set.iter().find(|(name, _)| *name == column);
            found.map_or(column.to_owned(), |it| {
                format!("CAST({} AS {data_type}) AS {column}", it.1)
            })
        };
        let columns = [value("t", "REAL"), value("n", "INT"), value("c", "VARCHAR")].join(", ");
        // The rows with the condition, and all others.
        let expected = format!(
            "SELECT day, site, {columns} FROM t WHERE {condition} UNION ALL SELECT t.* FROM ({all}) t \
             LEFT ANTI JOIN (SELECT day, site FROM t WHERE {condition}) h ON t.day = h.day AND t.site = h.site"
        );
        let expected = sorted_rows_from(&case.ctx, &expected).await;
        let counted = format!("SELECT count(*) FROM t WHERE {condition}");
        let counted = rows_from(&case.ctx, &counted).await;
        let sets: Vec<String> =
            set.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let update = format!("UPDATE t SET {} WHERE {condition}", sets.join(", "));
        let written = rows_from(&case.ctx, &update).await;
        assert_eq!(written, counted, "{update}");
        let found = sorted_rows_from(&case.ctx, all).await;
        assert_eq!(found, expected, "{format}: {update}");
        let fresh =
            format!("SELECT day, site, t, n, c FROM read_array('{place}', fill_as_null => true)");
        assert_eq!(sorted_rows_from(&reducing(1, 64), &fresh).await, expected, "{update}");
        changes += usize::from(found != before);
    }
    assert_eq!(changes, UPDATES.len() - 2);
    // An alias, and another table with columns of the same names.
    let shifted = "UPDATE t AS a SET n = (SELECT max(o.n) + 100 FROM t AS o WHERE o.day = a.day - 1 AND o.site = a.site) WHERE a.day = 2";
    query(&case.ctx, "UPDATE t SET n = day * 3").await.unwrap();
    query(&case.ctx, shifted).await.unwrap();
    let found = rows_from(&case.ctx, "SELECT day, n FROM t WHERE site = 's1' ORDER BY day").await;
    assert_eq!(found, [["0", "0"], ["1", "3"], ["2", "103"], ["3", "9"]]);
}

#[tokio::test]
async fn cells_of_zarr_change() {
    updates("ZARR", "'chunks' 'day=3, site=2', 'fill' 'n=-1, c=none'").await;
}

#[cfg(feature = "tiledb")]
#[tokio::test]
async fn cells_of_tiledb_change() {
    updates("TILEDB", "'chunks' 'day=3, site=2', 'fill' 'n=-1, c=none'").await;
}

#[tokio::test]
async fn what_cannot_be_updated_is_refused_and_changes_nothing() {
    let case = Case::new(reducing(2, 512)).await;
    table(&case, "x.zarr", "ZARR", "'fill' 'n=-1, c=none'").await;
    let before = files(&case.at("x.zarr"));
    let declared = format!(
        "CREATE EXTERNAL TABLE d (x BIGINT, v REAL) STORED AS ZARR LOCATION '{}' OPTIONS (dimensions 'x')",
        case.at("new.zarr").display()
    );
    query(&case.ctx, &declared).await.unwrap();
    query(&case.ctx, "CREATE TABLE u AS SELECT * FROM (VALUES (1, 5), (1, 6)) u(at, v)")
        .await
        .unwrap();
    for (sql, message) in [
        ("UPDATE t SET day = 7 WHERE day = 1", "\"day\" is a label"),
        ("UPDATE t SET n = n", "to what it is"),
        ("UPDATE t AS a SET t = a.t, day = a.day + 1", "\"day\" is a label"),
        ("UPDATE t SET n = 1.5", "1.5 of \"n\" is no Int32"),
        ("UPDATE t SET t = t * 1e300 WHERE day = 1", "is no Float32"),
        ("UPDATE t SET n = -0.4 * t", "-0.4"),
        ("UPDATE t SET n = (SELECT 1.5)", "1.5 of \"n\" is no Int32"),
        (
            "UPDATE t SET n = (SELECT avg(v) + 0.25 FROM u WHERE u.at = t.day)",
            "5.75 of \"n\" is no Int32",
        ),
        ("UPDATE t SET t = (SELECT 1e300)", "is no Float32"),
        ("UPDATE t SET n = -1", "-1 would read as NULL"),
        ("UPDATE t SET n = 3000000000", "3000000000"),
        ("UPDATE t SET n = u.v FROM u WHERE t.day = u.at", "UPDATE ... FROM is not supported"),
        ("UPDATE t SET other = 1", "No field named other"),
        ("UPDATE d SET v = 1", "no rows yet"),
        ("DELETE FROM t WHERE day = 1", "UPDATE sets its variables to NULL"),
        ("UPDATE t SET n = 'many'", "Cannot cast string 'many'"),
    ] {
        let Err(error) = query(&case.ctx, sql).await else { panic!("{sql}") };
        assert!(error.to_string().contains(message), "{sql}\n{error}");
        assert!(files(&case.at("x.zarr")) == before, "{sql}");
    }
}
