//! Rows for cells that are there already: `existing`, `INSERT OVERWRITE`, `REPLACE INTO` and `MERGE INTO`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use url::Url;

use super::append::files;
use super::faults::{Failing, broken_at};
use super::zarr::Case;
use crate::support::{query, reducing, rows_from, sorted_rows_from};

fn joined(parts: impl IntoIterator<Item = impl ToString>, by: &str) -> String {
    parts.into_iter().map(|it| it.to_string()).collect::<Vec<_>>().join(by)
}

type Cells = BTreeMap<Vec<i64>, Option<i64>>;

/// Rows with labels and a value, as a table of this type.
fn rows(cells: &Cells, rank: usize, data_type: &str) -> String {
    let row = |(labels, value): (&Vec<i64>, &Option<i64>)| {
        let value = value.map_or("NULL".to_owned(), |it| it.to_string());
        format!("({}, {value})", joined(labels, ", "))
    };
    let names = joined((0..rank).map(|at| format!("d{at}")), ", ");
    format!(
        "SELECT {names}, arrow_cast(v, '{data_type}') AS v FROM (VALUES {}) t({names}, v)",
        joined(cells.iter().map(row), ", ")
    )
}

/// All cells of an array with these labels, as far as `of` has them.
fn whole(labels: &[Vec<i64>], of: &Cells) -> Cells {
    let mut cells = vec![vec![]];
    for labels in labels {
        let longer = |at: &Vec<i64>| {
            labels.iter().map(|it| [at.as_slice(), &[*it]].concat()).collect::<Vec<_>>()
        };
        cells = cells.iter().flat_map(longer).collect();
    }
    cells.into_iter().map(|at| (at.clone(), of.get(&at).copied().flatten())).collect()
}

/// The labels of rows, along each axis.
fn labels_of(cells: &Cells, rank: usize) -> Vec<BTreeSet<i64>> {
    (0..rank).map(|axis| cells.keys().map(|labels| labels[axis]).collect()).collect()
}

/// Random arrays, and random rows for cells of theirs and for new ones, against a table of all cells.
#[tokio::test]
async fn random_rows_change_their_cells_and_no_others() {
    let mut rng = StdRng::seed_from_u64(4603);
    let (mut refused, mut compared) = (0, 0);
    for round in 0..60 {
        let case = Case::new(reducing(1 + round % 3, 64)).await;
        let rank = rng.random_range(1..=3_usize);
        let data_type = ["Float64", "Float32", "Int32", "Utf8"][round % 4];
        let mut labels: Vec<Vec<i64>> =
            (0..rank).map(|_| (0..rng.random_range(1..7)).map(|at| 2 * at).collect()).collect();
        let mut all = whole(&labels, &Cells::new());
        all.values_mut().for_each(|value| *value = Some(rng.random_range(0..50)));
        let named = |of: &dyn Fn(usize) -> u64| {
            joined((0..rank).map(|at| format!("d{at}={}", of(at))), ",")
        };
        let edges: Vec<u64> = (0..rank).map(|_| rng.random_range(1..5)).collect();
        let mut options = format!(
            "'dimensions' '{}', 'chunks' '{}', 'fill' 'v={}'",
            joined((0..rank).map(|at| format!("d{at}")), ", "),
            named(&|at| edges[at]),
            ["NaN", "NaN", "-1", "none"][round % 4]
        );
        if rng.random_bool(0.3) {
            options += &format!(", 'shards' '{}'", named(&|at| 2 * edges[at]));
        }
        case.copy(&rows(&all, rank, data_type), "x.zarr", &options).await.unwrap();
        for step in 0..5 {
            // Some cells that are there, and perhaps such with new labels along one axis.
            let mut of_rows = labels.clone();
            let longer = rng.random_bool(0.5).then(|| rng.random_range(0..rank));
            if let Some(axis) = longer {
                let last = *labels[axis].last().unwrap();
                of_rows[axis].extend((1..=rng.random_range(1..4)).map(|at| last + at));
            }
            for labels in &mut of_rows {
                labels.shuffle(&mut rng);
                labels.truncate(rng.random_range(1..=labels.len()));
            }
            let mut new = whole(&of_rows, &Cells::new());
            new.retain(|_, _| rng.random_bool(0.7));
            let mode = ["same", "overwrite", "clear"][rng.random_range(0..3)];
            for (at, value) in &mut new {
                let there = all.get(at).copied().filter(|_| mode == "same" && step % 2 == 0);
                let other = rng.random_bool(0.9).then(|| rng.random_range(0..50));
                *value = there.unwrap_or(other);
            }
            if new.is_empty() {
                continue;
            }
            let named = labels_of(&new, rank);
            let before = files(&case.at("x.zarr"));
            let options = format!("'mode' 'append', 'existing' '{mode}'");
            let written = case.copy(&rows(&new, rank, data_type), "x.zarr", &options).await;
            let differs = new.iter().any(|(at, value)| all.get(at).is_some_and(|it| it != value));
            if mode == "same" && differs {
                let error = written.unwrap_err();
                assert!(error.contains("in the array, and"), "{error}");
                assert!(files(&case.at("x.zarr")) == before, "{round} {step}");
                refused += 1;
                continue;
            }
            written.unwrap_or_else(|error| panic!("{round} {step} {mode}: {error}"));
            compared += usize::from(mode == "same");
            for (labels, named) in labels.iter_mut().zip(&named) {
                let last = *labels.last().unwrap();
                labels.extend(named.range(last + 1..));
            }
            if mode == "clear" {
                all.retain(|at, _| !at.iter().zip(&named).all(|(at, named)| named.contains(at)));
            }
            all.extend(new);
            all = whole(&labels, &all);
            let columns = joined((0..rank).map(|at| format!("d{at}")), ", ");
            let expected = format!("SELECT {columns}, v FROM ({})", rows(&all, rank, data_type));
            let expected = sorted_rows_from(&case.ctx, &expected).await;
            let found = case.read("x.zarr", &format!("{columns}, v")).await;
            assert_eq!(found, expected, "{round} {step} {mode}");
            let left = files(&case.at("x.zarr")).into_keys().find(|it| it.contains("gridfusion"));
            assert_eq!(left, None);
            assert!(!case.at("x.zarr").join(".gridfusion-staged").exists());
        }
    }
    assert!(refused > 15 && compared > 15, "{refused} {compared}");
}

/// Each call to a store may fail, before or after its effect: once the next program has written, all cells are old, or all are new.
#[tokio::test]
async fn each_call_may_fail() {
    let place = "mem://bucket/x.zarr";
    let rows = |x: i64, add: i64| {
        format!(
            "SELECT value / 4 AS x, value % 4 AS y, CASE WHEN value % 4 < 2 OR {add} = 0 THEN CAST(value + {add} AS DOUBLE) END AS v FROM range({}, 32)",
            4 * x
        )
    };
    let copy = |rows: &str, options: &str| {
        format!("COPY ({rows}) TO '{place}' STORED AS ZARR OPTIONS ({options})")
    };
    let merge = "'mode' 'append', 'existing' 'overwrite'";
    for (to, first) in [(32, 3), (28, 3)] {
        let (mut old, mut new, mut again) = (0, 0, 0);
        for has_effect in [false, true] {
            for fails in 0.. {
                let store = Arc::new(Failing::new(usize::MAX, has_effect));
                let url = Url::parse("mem://bucket").unwrap();
                let ctx = reducing(2, 16);
                ctx.register_object_store(&url, Arc::clone(&store) as _);
                let there = format!("SELECT * FROM ({}) WHERE x < 7", rows(0, 0));
                let dims = "'dimensions' 'x, y', 'chunks' 'x=2,y=2'";
                query(&ctx, &copy(&there, dims)).await.unwrap();
                let changed = format!("SELECT * FROM ({}) WHERE 4 * x < {to}", rows(first, 1000));
                broken_at(&store, fails);
                let written = query(&ctx, &copy(&changed, merge)).await;
                broken_at(&store, usize::MAX);
                let fresh = reducing(2, 16);
                fresh.register_object_store(&url, Arc::clone(&store) as _);
                // A row that is there, with its value, in a chunk whose other cells change.
                let next =
                    "SELECT CAST(2 AS BIGINT) AS x, CAST(1 AS BIGINT) AS y, CAST(9 AS DOUBLE) AS v";
                let next = copy(next, &format!("{merge}, 'unlock' 'true'"));
                if let Err(error) = query(&fresh, &next).await {
                    assert!(error.to_string().contains("run the statement again"), "{error}");
                    again += 1;
                    query(&fresh, &next).await.unwrap();
                }
                let of_old = sorted_rows_from(&fresh, &there).await;
                let kept = format!(
                    "SELECT * FROM ({}) WHERE x < {first} UNION ALL ({changed})",
                    rows(0, 0)
                );
                let of_new = sorted_rows_from(&fresh, &kept).await;
                let found = format!("SELECT x, y, v FROM read_array('{place}')");
                let found = sorted_rows_from(&fresh, &found).await;
                assert!(found == of_old || found == of_new, "{fails} {has_effect} {found:?}");
                if found == of_new {
                    new += 1
                } else {
                    old += 1
                }
                if written.is_ok() {
                    assert_eq!(found, of_new);
                    break;
                }
            }
        }
        assert!(old > 10 && new > 6 && again > 4, "{old} {new} {again}");
    }
}

const TABLE: &str = "SELECT CAST(value / 3 AS INT) AS day, concat('s', value % 3) AS site, CAST(value AS REAL) AS t, CAST(value AS INT) AS n FROM range(6)";

async fn table(case: &Case) {
    case.copy(TABLE, "x.zarr", "'dimensions' 'day, site', 'chunks' 'day=2', 'fill' 'n=-1'")
        .await
        .unwrap();
    let at = case.at("x.zarr");
    let create = format!("CREATE EXTERNAL TABLE t STORED AS ZARR LOCATION '{}'", at.display());
    query(&case.ctx, &create).await.unwrap();
}

#[tokio::test]
async fn statements_change_cells() {
    let case = Case::new(reducing(2, 512)).await;
    table(&case).await;
    let all = "SELECT day, site, t, n FROM t ORDER BY day, site";
    let check = async |sql: &str, count: &str, expected: &[&str]| {
        assert_eq!(rows_from(&case.ctx, sql).await, [[count]], "{sql}");
        let found: Vec<String> =
            rows_from(&case.ctx, all).await.into_iter().map(|row| row.join(" ")).collect();
        assert_eq!(found, expected, "{sql}");
        let fresh = reducing(1, 64);
        let sql = format!("SELECT * FROM read_array('{}')", case.at("x.zarr").display());
        assert_eq!(rows_from(&fresh, &sql).await.len(), expected.len());
    };
    // The cells of the rows' labels, and no others: (0, s2) has no row.
    check(
        "INSERT OVERWRITE t (day, site, t, n) SELECT * FROM (VALUES (0, 's0', 10, 10), (1, 's0', 13, NULL), (1, 's2', NULL, 15)) r(day, site, t, n)",
        "3",
        &["0 s0 10.0 10", "0 s1 1.0 1", "0 s2 NULL NULL", "1 s0 13.0 NULL", "1 s1 4.0 4", "1 s2 NULL 15"],
    )
    .await;
    check(
        "REPLACE INTO t (day, site, t, n) VALUES (0, 's2', 2, 2), (2, 's1', 7, 7)",
        "2",
        &[
            "0 s0 10.0 10",
            "0 s1 1.0 1",
            "0 s2 2.0 2",
            "1 s0 13.0 NULL",
            "1 s1 4.0 4",
            "1 s2 NULL 15",
            "2 s0 NULL NULL",
            "2 s1 7.0 7",
            "2 s2 NULL NULL",
        ],
    )
    .await;
    // The first clause that applies counts; unmatched rows without a clause are left out.
    check(
        "MERGE INTO t USING (SELECT day, site, 100 AS add FROM t WHERE day < 2) s ON t.day = s.day AND t.site = s.site \
         WHEN MATCHED AND t.n IS NULL THEN UPDATE SET n = s.add \
         WHEN MATCHED AND s.day = 0 THEN UPDATE SET n = t.n + s.add, t = t.t + 1 \
         WHEN NOT MATCHED THEN INSERT (day, site, n) VALUES (s.day, s.site, 0)",
        "4",
        &[
            "0 s0 11.0 110", "0 s1 2.0 101", "0 s2 3.0 102", "1 s0 13.0 100", "1 s1 4.0 4", "1 s2 NULL 15",
            "2 s0 NULL NULL", "2 s1 7.0 7", "2 s2 NULL NULL",
        ],
    )
    .await;
    let plan = rows_from(&case.ctx, "EXPLAIN INSERT OVERWRITE t SELECT * FROM t").await;
    let plan = plan.concat().concat();
    assert!(plan.contains("mode=append, existing=clear, dimensions=[day, site]"), "{plan}");
    // An alias, columns of two tables with one name, and a match by one label only.
    check(
        "MERGE INTO t AS a USING (VALUES (2, 0.5), (3, 0.25)) AS s(day, v) ON a.day = s.day \
         WHEN MATCHED THEN UPDATE SET t = s.v \
         WHEN NOT MATCHED THEN INSERT (t, site, day) VALUES (s.v, 's1', CAST(s.day AS INT))",
        "4",
        &[
            "0 s0 11.0 110",
            "0 s1 2.0 101",
            "0 s2 3.0 102",
            "1 s0 13.0 100",
            "1 s1 4.0 4",
            "1 s2 NULL 15",
            "2 s0 0.5 NULL",
            "2 s1 0.5 7",
            "2 s2 0.5 NULL",
            "3 s0 NULL NULL",
            "3 s1 0.25 NULL",
            "3 s2 NULL NULL",
        ],
    )
    .await;
}

#[tokio::test]
async fn what_cannot_be_merged_is_refused_and_changes_nothing() {
    let case = Case::new(reducing(2, 512)).await;
    table(&case).await;
    let before = files(&case.at("x.zarr"));
    let using = "MERGE INTO t USING (SELECT day, site, n AS v FROM t) s ON t.day = s.day AND t.site = s.site";
    let at = case.at("x.zarr");
    let copy = |rows: &str, options: &str| {
        format!("COPY ({rows}) TO '{}' OPTIONS ({options})", at.display())
    };
    for (sql, message) in [
        (format!("{using} WHEN MATCHED THEN DELETE"), "UPDATE sets its variables to NULL"),
        (format!("{using} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 1"), "WHEN NOT MATCHED BY SOURCE"),
        (format!("{using} WHEN MATCHED THEN UPDATE SET day = 7"), "\"day\" is a label"),
        (format!("{using} WHEN NOT MATCHED THEN INSERT (day, n) VALUES (1, 1)"), "INSERT lacks the label \"site\""),
        (format!("{using} WHEN MATCHED THEN UPDATE SET n = (SELECT max(n) FROM t)"), "subqueries in MERGE"),
        (format!("{using} WHEN MATCHED THEN UPDATE SET n = s.v + 0.5"), "0.5 of \"n\" is no Int32"),
        (format!("{using} WHEN MATCHED THEN UPDATE SET n = 0.5"), "0.5 of \"n\" is no Int32"),
        (format!("{using} WHEN NOT MATCHED THEN INSERT (n, site, day) VALUES (1, 's0', 2.5)").replace("s.day AND", "s.day + 9 AND"), "2.5 of \"day\" is no Int32"),
        (format!("{using} WHEN MATCHED THEN UPDATE SET n = -1"), "-1 would read as NULL"),
        (
            "MERGE INTO t USING (VALUES (1), (1)) s(day) ON t.day = s.day WHEN MATCHED THEN UPDATE SET n = 5".to_owned(),
            "two rows have the labels day=1",
        ),
        ("INSERT OVERWRITE t VALUES (5, 's9', 1, 1)".to_owned(), "day=5 and site=s9 are not in the array"),
        ("INSERT INTO t VALUES (1, 's0', 1, 1)".to_owned(), "'existing' chooses"),
        (copy(TABLE, "'mode' 'append', 'existing' 'other'"), "expected one of refuse, same, overwrite, clear"),
        (copy(TABLE, "'existing' 'same'"), "the option 'existing' needs mode 'append'"),
        (copy(&TABLE.replace("value AS REAL", "value + value / 4 AS REAL"), "'mode' 'append', 'existing' 'same'"), "of \"t\" is 4.0 in the array, and 5.0 in the rows"),
    ] {
        let Err(error) = query(&case.ctx, &sql).await else { panic!("{sql}") };
        assert!(error.to_string().contains(message), "{sql}\n{error}");
        assert!(files(&at) == before, "{sql}");
    }
    // The same rows again change nothing.
    query(&case.ctx, &copy(TABLE, "'mode' 'append', 'existing' 'same'")).await.unwrap();
    assert!(files(&at) == before);
}

/// Objects that a stopped program has staged take their places, and those of others do not.
#[tokio::test]
async fn staged_objects_belong_to_one_writer() {
    let case = Case::new(reducing(2, 512)).await;
    let rows =
        "SELECT value AS x, CAST(value AS DOUBLE) AS v, CAST(value AS DOUBLE) AS w FROM range(6)";
    case.copy(rows, "x.zarr", "'dimensions' 'x', 'chunks' 'x=2', 'codec' 'none'").await.unwrap();
    let store = case.at("x.zarr");
    let stage = |name: &str, cells: [f64; 2]| {
        let at = store.join(".gridfusion-staged").join(name);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, cells.map(f64::to_le_bytes).concat()).unwrap();
    };
    let merge = "'mode' 'append', 'existing' 'overwrite'";
    let one = "SELECT CAST(5 AS BIGINT) AS x, CAST(50 AS DOUBLE) AS v";
    stage("failed/v/c/0", [7.0, 7.0]);
    stage("failed/v/c/1.absent", [0.0, 0.0]);
    case.copy(one, "x.zarr", merge).await.unwrap();
    assert_eq!(case.read("x.zarr", "count(*), sum(v), sum(w)").await, [["6", "60.0", "15.0"]]);
    for is_committed in [false, true] {
        stage("mine/v/c/0", [100.0, 200.0]);
        stage("failed/v/c/0", [7.0, 7.0]);
        let journal = format!(
            "{{\"id\": \"mine\", \"dimension\": \"\", \"from\": 0, \"to\": 0, \"committed\": {is_committed}}}"
        );
        fs::write(store.join(".gridfusion-append"), journal).unwrap();
        let sum = if is_committed {
            let error = case.copy(one, "x.zarr", merge).await.unwrap_err();
            assert!(error.contains("run the statement again"), "{error}");
            "359.0"
        } else {
            "60.0"
        };
        case.copy(one, "x.zarr", merge).await.unwrap();
        assert_eq!(case.read("x.zarr", "count(*), sum(v), sum(w)").await, [["6", sum, "15.0"]]);
        assert!(!store.join(".gridfusion-staged").exists());
    }
}

/// A statement with some of the variables ends the append of all of them.
#[tokio::test]
async fn documents_of_other_variables_are_brought_in_line() {
    let case = Case::new(reducing(2, 512)).await;
    let rows = |from: i64, to: i64| {
        format!(
            "SELECT value AS x, CAST(value AS DOUBLE) AS v, CAST(value AS DOUBLE) AS w FROM range({from}, {to})"
        )
    };
    case.copy(&rows(0, 3), "x.zarr", "'dimensions' 'x', 'chunks' 'x=2'").await.unwrap();
    let store = case.at("x.zarr");
    let old = ["v", "w", "x"].map(|it| (it, fs::read(store.join(it).join("zarr.json")).unwrap()));
    case.copy(&rows(3, 7), "x.zarr", "'mode' 'append'").await.unwrap();
    for (name, bytes) in old {
        fs::write(store.join(name).join("zarr.json"), bytes).unwrap();
    }
    let journal = "{\"dimension\": \"x\", \"from\": 3, \"to\": 7}";
    fs::write(store.join(".gridfusion-append"), journal).unwrap();
    let one = "SELECT CAST(5 AS BIGINT) AS x, CAST(50 AS DOUBLE) AS v";
    case.copy(one, "x.zarr", "'mode' 'append', 'existing' 'overwrite'").await.unwrap();
    case.copy(&rows(7, 9), "x.zarr", "'mode' 'append'").await.unwrap();
    assert_eq!(case.read("x.zarr", "count(*), sum(v), sum(w)").await, [["9", "81.0", "36.0"]]);
}

/// Labels of single precision match as they do in joins; values keep their types, whatever other clauses set.
#[tokio::test]
async fn merged_values_and_labels_keep_their_types() {
    let case = Case::new(reducing(2, 512)).await;
    let rows = "SELECT arrow_cast(50 + value * 0.1, 'Float32') AS lat, CAST(16777217 AS INT) AS n, CAST(value AS REAL) AS t, arrow_cast(value, 'Timestamp(Second, None)') AS at FROM range(3)";
    case.copy(rows, "x.zarr", "'dimensions' 'lat', 'fill' 'n=-1'").await.unwrap();
    let at = case.at("x.zarr");
    let create = format!("CREATE EXTERNAL TABLE t STORED AS ZARR LOCATION '{}'", at.display());
    query(&case.ctx, &create).await.unwrap();
    let all = "SELECT round(lat, 1), n, t, at FROM t ORDER BY lat";
    for (sql, count, expected) in [
        (
            "MERGE INTO t USING (VALUES (50.1, 7)) s(lat, n) ON t.lat = s.lat WHEN MATCHED THEN UPDATE SET n = s.n",
            "1",
            [
                "50.0 16777217 0.0 1970-01-01T00:00:00",
                "50.1 7 1.0 1970-01-01T00:00:01",
                "50.2 16777217 2.0 1970-01-01T00:00:02",
            ],
        ),
        (
            "MERGE INTO t USING t AS s ON t.lat = s.lat WHEN MATCHED AND t.lat > 50.1 THEN UPDATE SET n = round(t.t) WHEN MATCHED THEN UPDATE SET t = 9",
            "3",
            [
                "50.0 16777217 9.0 1970-01-01T00:00:00",
                "50.1 7 9.0 1970-01-01T00:00:01",
                "50.2 2 2.0 1970-01-01T00:00:02",
            ],
        ),
        (
            "MERGE INTO t USING (VALUES (50.2)) s(lat) ON t.lat = s.lat WHEN MATCHED THEN UPDATE SET n = NULL, at = '2024-01-01'",
            "1",
            [
                "50.0 16777217 9.0 1970-01-01T00:00:00",
                "50.1 7 9.0 1970-01-01T00:00:01",
                "50.2 NULL 2.0 2024-01-01T00:00:00",
            ],
        ),
    ] {
        assert_eq!(rows_from(&case.ctx, sql).await, [[count]], "{sql}");
        let found: Vec<String> =
            rows_from(&case.ctx, all).await.into_iter().map(|row| row.join(" ")).collect();
        assert_eq!(found, expected, "{sql}");
    }
    let sql = "MERGE INTO t USING (VALUES (60)) s(lat) ON t.lat = s.lat WHEN NOT MATCHED THEN INSERT (lat, t) VALUES (s.lat, 1)";
    assert_eq!(rows_from(&case.ctx, sql).await, [["1"]]);
    let rows = rows_from(&case.ctx, "SELECT lat, n, t, at FROM t WHERE lat > 55").await;
    assert_eq!(rows, [["60.0", "NULL", "1.0", "NULL"]]);
}
