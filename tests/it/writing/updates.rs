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
    let create = format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{at}'");
    query(&case.ctx, &create).await.unwrap();
}

/// What `SET` sets, the rows that it takes, and the same as a query over the table before.
const UPDATES: [(&str, &str); 14] = [
    ("t = t + 0.5", "day = 1"),
    ("t = NULL, c = concat(site, c)", "t > 4 AND site <> 's1'"),
    ("n = n * 2", "day IN (SELECT value FROM range(2, 4))"),
    ("n = 7, t = n", "EXISTS (SELECT 1 FROM u WHERE u.at = t.day AND u.name = t.site)"),
    ("t = (SELECT max(at) FROM u)", "t < (SELECT avg(value) FROM range(12))"),
    ("n = n + 1", "true"),
    ("n = n + 1", "NULL"),
    ("n = n + 1", "n > 1000"),
    ("c = CAST(n AS VARCHAR)", "n % 2 = 0"),
    ("t = t", "day = 0"),
    ("n = '5'", "site = 's2'"),
    ("t = 0.1", "c LIKE '%1%'"),
    ("n = round(t)", "t IS NOT NULL"),
    ("t = t / 3", "day NOT IN (SELECT at FROM u)"),
];

async fn updates(format: &str, options: &str) {
    let case = Case::new(reducing(2, 512)).await;
    table(&case, "x", format, options).await;
    query(&case.ctx, "CREATE TABLE u AS SELECT * FROM (VALUES (1, 's0'), (3, 's2')) u(at, name)")
        .await
        .unwrap();
    let all = "SELECT * FROM t";
    let place = case.at("x").display().to_string();
    let mut changes = 0;
    for (set, condition) in UPDATES {
        let before = sorted_rows_from(&case.ctx, all).await;
        let value = |column: &str, data_type: &str| {
            let pairs = set.split(", ").filter_map(|it| it.split_once(" = "));
            let found = pairs.filter(|(name, _)| *name == column).map(|(_, value)| value).next();
            let value = found.map_or(column.to_owned(), |it| format!("CAST({it} AS {data_type})"));
            format!("CASE WHEN {condition} THEN {value} ELSE {column} END AS {column}")
        };
        let columns = [value("t", "REAL"), value("n", "INT"), value("c", "VARCHAR")].join(", ");
        let expected = format!("SELECT day, site, {columns} FROM t");
        let expected = sorted_rows_from(&case.ctx, &expected).await;
        let counted = format!("SELECT count(*) FROM t WHERE {condition}");
        let counted = rows_from(&case.ctx, &counted).await;
        if set == "t = t" {
            let error = query(&case.ctx, &format!("UPDATE t SET {set}")).await.unwrap_err();
            assert!(error.to_string().contains("to what it is"), "{error}");
            continue;
        }
        let update = format!("UPDATE t SET {set} WHERE {condition}");
        let written = rows_from(&case.ctx, &update).await;
        assert_eq!(written, counted, "{update}");
        let found = sorted_rows_from(&case.ctx, all).await;
        assert_eq!(found, expected, "{format}: {update}");
        let fresh = format!("SELECT * FROM read_array('{place}')");
        assert_eq!(sorted_rows_from(&reducing(1, 64), &fresh).await, expected, "{update}");
        changes += usize::from(found != before);
    }
    assert_eq!(changes, UPDATES.len() - 3);
    // Values of another table, and an alias. A row without a match stays.
    query(
        &case.ctx,
        "UPDATE t AS a SET n = u.at * 100 + a.day FROM u WHERE a.day = u.at AND a.site = u.name",
    )
    .await
    .unwrap();
    let found = rows_from(&case.ctx, "SELECT n FROM t WHERE n >= 100 ORDER BY n").await;
    assert_eq!(found, [["101"], ["303"]]);
    // Nor does another row of a table that has columns of the same names.
    query(
        &case.ctx,
        "UPDATE t SET n = o.n FROM t AS o WHERE t.day = o.day + 1 AND t.site = o.site",
    )
    .await
    .unwrap();
    let found = rows_from(&case.ctx, "SELECT day, site FROM t WHERE n >= 100 ORDER BY n").await;
    assert_eq!(found, [["2", "s0"]]);
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
    let place = case.at("x.zarr").display().to_string();
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
        ("UPDATE t SET day = u.at FROM u", "\"day\" is a label"),
        ("UPDATE t SET n = 1.5", "1.5 of \"n\" is no Int32"),
        ("UPDATE t SET n = -1", "-1 would read as NULL"),
        ("UPDATE t SET n = 3000000000", "3000000000"),
        ("UPDATE t SET n = u.v FROM u WHERE t.day = u.at", "two rows have the labels day=1"),
        ("UPDATE t SET other = 1", "other"),
        ("UPDATE d SET v = 1", "no rows yet"),
        ("DELETE FROM t WHERE day = 1", "UPDATE sets its variables to NULL"),
        (&format!("UPDATE '{place}' SET n = 'x'"), "x"),
    ] {
        let Err(error) = query(&case.ctx, sql).await else { panic!("{sql}") };
        assert!(error.to_string().contains(message), "{sql}\n{error}");
        assert!(files(&case.at("x.zarr")) == before, "{sql}");
    }
}
