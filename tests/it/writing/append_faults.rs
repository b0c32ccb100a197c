//! Appends that are stopped, that fail, and that meet others.

use std::fs;
use std::sync::Arc;

use object_store::memory::InMemory;
use url::Url;

use super::append::{APPEND, files};
use super::faults::{Failing, broken_at};
use super::zarr::Case;
use crate::support::{limited, query, reducing, rows_from, sorted_rows_from};

/// A program that was stopped leaves objects behind the array, and perhaps its journal. The next append removes them.
#[tokio::test]
async fn leftovers_are_no_cells() {
    let case = Case::new(reducing(2, 512)).await;
    let sql =
        "SELECT value AS x, CASE WHEN value < 5 THEN CAST(value AS DOUBLE) END AS v FROM range(20)";
    case.copy(
        &format!("SELECT * FROM ({sql}) WHERE x < 5"),
        "x.zarr",
        "'dimensions' 'x', 'chunks' 'x=2', 'codec' 'none'",
    )
    .await
    .unwrap();
    let store = case.at("x.zarr");
    for chunk in 2..9 {
        fs::write(store.join(format!("v/c/{chunk}")), [7; 16]).unwrap();
    }
    // The chunk at the end keeps its old cell.
    fs::write(store.join("v/c/2"), [4.0_f64.to_le_bytes(), [7; 8]].concat()).unwrap();
    fs::write(store.join(".gridfusion-append"), "{\"dimension\": \"x\", \"from\": 5, \"to\": 18}")
        .unwrap();
    fs::write(store.join(".gridfusion-lock"), "process 1 appends").unwrap();
    for draft in [".zarr.json.7-0.draft", "v/c/.3.7-1.draft"] {
        fs::write(store.join(draft), "half").unwrap();
    }
    case.copy(&format!("SELECT * FROM ({sql}) WHERE x BETWEEN 5 AND 11"), "x.zarr", APPEND)
        .await
        .unwrap();
    assert_eq!(case.read("x.zarr", "count(*), count(v), sum(v)").await, [["12", "5", "10.0"]]);
    let mut left: Vec<String> = fs::read_dir(store.join("v/c"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["0", "1", "2"]);
    assert!(!store.join(".zarr.json.7-0.draft").exists());
    assert!(!store.join(".gridfusion-append").exists());
}

/// An append that was stopped between the root's document and the others is finished by the next.
#[tokio::test]
async fn documents_are_brought_in_line() {
    let case = Case::new(reducing(2, 512)).await;
    let sql = "SELECT value AS x, CAST(value AS DOUBLE) AS v FROM range(20)";
    let part = |from: i64, to: i64| format!("SELECT * FROM ({sql}) WHERE x >= {from} AND x < {to}");
    case.copy(&part(0, 5), "x.zarr", "'dimensions' 'x', 'chunks' 'x=4'").await.unwrap();
    let store = case.at("x.zarr");
    let old = fs::read(store.join("v/zarr.json")).unwrap();
    case.copy(&part(5, 9), "x.zarr", APPEND).await.unwrap();
    fs::write(store.join("v/zarr.json"), &old).unwrap();
    let error = case.copy(&part(9, 10), "x.zarr", APPEND).await.unwrap_err();
    assert!(error.contains("another program has written without consolidating"), "{error}");
    fs::write(store.join(".gridfusion-append"), "{\"dimension\": \"x\", \"from\": 5, \"to\": 9}")
        .unwrap();
    case.copy(&part(9, 10), "x.zarr", APPEND).await.unwrap();
    assert_eq!(case.read("x.zarr", "count(*), sum(v)").await, [["10", "45.0"]]);
    let own: serde_json::Value =
        serde_json::from_slice(&fs::read(store.join("v/zarr.json")).unwrap()).unwrap();
    assert_eq!(own["shape"][0], 10);
}

/// An append that was stopped behind the root's document is ended first, also by one that fails, and by one along another dimension.
#[tokio::test]
async fn an_append_that_was_stopped_is_ended_first() {
    let case = Case::new(reducing(2, 512)).await;
    let rows = |x: &str, y: &str, v: &str| {
        format!(
            "SELECT x, y, {v} AS v FROM (SELECT value AS x FROM range({x})) a CROSS JOIN (SELECT value AS y FROM range({y})) b"
        )
    };
    let whole = "CAST(x * 100 + y AS DOUBLE)";
    for (number, next) in [("4, 6", "0, 3"), ("0, 4", "3, 5")].into_iter().enumerate() {
        let name = format!("{number}.zarr");
        case.copy(&rows("0, 2", "0, 3", whole), &name, "'dimensions' 'x, y', 'chunks' 'x=1,y=2'")
            .await
            .unwrap();
        let store = case.at(&name);
        let old: Vec<Vec<u8>> =
            ["v", "x"].map(|it| fs::read(store.join(it).join("zarr.json")).unwrap()).to_vec();
        case.copy(&rows("2, 4", "0, 3", whole), &name, APPEND).await.unwrap();
        for (array, bytes) in ["v", "x"].into_iter().zip(old) {
            fs::write(store.join(array).join("zarr.json"), bytes).unwrap();
        }
        let journal = "{\"dimension\": \"x\", \"from\": 2, \"to\": 4}";
        fs::write(store.join(".gridfusion-append"), journal).unwrap();

        let bad = rows(next.0, next.1, "CASE WHEN x + y > 6 THEN 'text' END");
        case.copy(&bad, &name, APPEND).await.unwrap_err();
        let bad = format!(
            "{0} UNION ALL SELECT * FROM ({0}) WHERE x = 5 OR y = 4",
            rows(next.0, next.1, whole)
        );
        let error = case.copy(&bad, &name, APPEND).await.unwrap_err();
        assert!(error.contains("two rows have the labels"), "{error}");
        assert_eq!(case.read(&name, "count(*), sum(v)").await, [["12", "1812.0"]]);

        case.copy(&rows(next.0, next.1, whole), &name, APPEND).await.unwrap();
        let all =
            if number == 0 { rows("0, 6", "0, 3", whole) } else { rows("0, 4", "0, 5", whole) };
        assert_eq!(case.read(&name, "x, y, v").await, sorted_rows_from(&case.ctx, &all).await);
        let own: serde_json::Value =
            serde_json::from_slice(&fs::read(store.join("v/zarr.json")).unwrap()).unwrap();
        assert_eq!(
            own["shape"],
            if number == 0 { serde_json::json!([6, 3]) } else { serde_json::json!([4, 5]) }
        );
    }
    let journal = "{\"dimension\": \"x\", \"from\": 0, \"to\": 18446744073709551615}";
    fs::write(case.at("0.zarr").join(".gridfusion-append"), journal).unwrap();
    let error = case.copy(&rows("6, 7", "0, 3", whole), "0.zarr", APPEND).await.unwrap_err();
    assert!(error.contains("too many objects"), "{error}");
}

/// Two writers at the same time: one appends, and the other is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_writers_one_wins() {
    let case = Case::new(reducing(2, 16)).await;
    let store = Arc::new(InMemory::new());
    case.ctx.register_object_store(&Url::parse("mem://bucket").unwrap(), Arc::clone(&store) as _);
    for place in [format!("{}", case.at("x.zarr").display()), "mem://bucket/x.zarr".to_owned()] {
        let copy = |from: i64, to: i64, options: &str| {
            format!(
                "COPY (SELECT value AS x, CAST(value AS DOUBLE) AS v FROM range({from}, {to})) TO '{place}' STORED AS ZARR OPTIONS ({options})"
            )
        };
        query(&case.ctx, &copy(0, 3, "'dimensions' 'x', 'chunks' 'x=2'")).await.unwrap();
        let (mut end, mut refused) = (3, 0);
        for _ in 0..20 {
            let sql = copy(end, end + 2, APPEND);
            let (one, other) = tokio::join!(query(&case.ctx, &sql), query(&case.ctx, &sql));
            assert!(one.is_ok() != other.is_ok(), "{place} {one:?} {other:?}");
            let error = one.err().or(other.err()).unwrap().to_string();
            let is_told = ["another program", "nothing is appended"];
            assert!(is_told.iter().any(|it| error.contains(it)), "{error}");
            refused += 1;
            end += 2;
            let sum = (0..end).sum::<i64>() as f64;
            let answer = rows_from(
                &case.ctx,
                &format!("SELECT count(*), sum(v) FROM read_array('{place}')"),
            )
            .await;
            assert_eq!(answer, [[end.to_string(), format!("{sum:?}")]]);
        }
        assert_eq!(refused, 20);
    }
    // A lock that was left in a store is taken on request.
    let sql = "COPY (SELECT 100 AS x, CAST(1 AS DOUBLE) AS v) TO 'mem://bucket/x.zarr' OPTIONS ('mode' 'append')";
    let put = object_store::PutPayload::from_static(b"process 7 appends");
    object_store::ObjectStoreExt::put(store.as_ref(), &"x.zarr/.gridfusion-lock".into(), put)
        .await
        .unwrap();
    let error = query(&case.ctx, sql).await.unwrap_err().to_string();
    assert!(error.contains("process 7 appends") && error.contains("unlock"), "{error}");
    query(&case.ctx, &sql.replace("'append'", "'append', 'unlock' 'true'")).await.unwrap();
}

/// Each call to a store may fail, before or after its effect: the array is the old one or the new one, and the next append works.
#[tokio::test]
async fn each_call_may_fail() {
    /// The lock, the journal, six chunks, labels, the root's document, and those of two arrays.
    const CALLS: usize = 12;
    let copy = |from: i64, to: i64, options: &str| {
        format!(
            "COPY (SELECT value / 4 AS x, value % 4 AS y, CAST(value AS DOUBLE) AS v FROM range({}, {})) TO 'mem://bucket/x.zarr' OPTIONS ({options})",
            4 * from,
            4 * to
        )
    };
    let answer = "SELECT count(*), sum(v) FROM read_array('mem://bucket/x.zarr')";
    let expected = |rows: i64| {
        vec![(4 * rows).to_string(), format!("{:?}", (0..4 * rows).sum::<i64>() as f64)]
    };
    let (mut old, mut new) = (0, 0);
    for has_effect in [false, true] {
        for fails in 0.. {
            let store = Arc::new(Failing::new(usize::MAX, has_effect));
            let ctx = reducing(2, 16);
            ctx.register_object_store(
                &Url::parse("mem://bucket").unwrap(),
                Arc::clone(&store) as _,
            );
            query(&ctx, &copy(0, 3, "'dimensions' 'x, y', 'chunks' 'x=2,y=3'")).await.unwrap();
            broken_at(&store, fails);
            let written = query(&ctx, &copy(3, 8, APPEND)).await;
            broken_at(&store, usize::MAX);
            let fresh = reducing(2, 16);
            fresh.register_object_store(
                &Url::parse("mem://bucket").unwrap(),
                Arc::clone(&store) as _,
            );
            let rows = rows_from(&fresh, answer).await;
            let is_new = rows == [expected(8)];
            assert!(is_new || rows == [expected(3)], "{fails} {has_effect}: {rows:?}");
            if is_new {
                new += 1
            } else {
                old += 1
            }
            if written.is_ok() {
                assert!(is_new && fails == CALLS, "{fails}");
                break;
            }
            let end = if is_new { 8 } else { 3 };
            query(&fresh, &copy(end, 11, "'mode' 'append', 'unlock' 'true'")).await.unwrap();
            assert_eq!(rows_from(&fresh, answer).await, [expected(11)], "{fails} {has_effect}");
        }
    }
    // The last call of those that make the rows visible is there although it failed; two documents follow.
    assert_eq!((old, new), (2 * (CALLS - 3) + 1, 2 * 3 + 1));
}

/// An append touches its own chunks, labels and metadata, and none of the others.
#[tokio::test]
async fn only_what_is_new_is_written() {
    let case = Case::new(reducing(2, 8192)).await;
    let sql = |from: i64, to: i64| {
        format!(
            "SELECT value / 100 AS day, value % 100 AS x, CAST(value AS DOUBLE) AS v FROM range({}, {})",
            100 * from,
            100 * to
        )
    };
    case.copy(&sql(0, 1000), "x.zarr", "'dimensions' 'day, x', 'chunks' 'day=1,x=10'")
        .await
        .unwrap();
    let before = files(&case.at("x.zarr"));
    assert!(before.len() > 10_000, "{}", before.len());
    case.copy(&sql(1000, 1001), "x.zarr", APPEND).await.unwrap();
    let after = files(&case.at("x.zarr"));
    let changed: Vec<&str> = after
        .iter()
        .filter(|(path, bytes)| before.get(*path) != Some(bytes))
        .map(|(path, _)| path.rsplit_once("x.zarr/").unwrap().1)
        .collect();
    assert_eq!(changed.len(), 10 + 1 + 3, "{changed:?}");
    assert!(
        changed
            .iter()
            .all(|it| it.starts_with("v/c/1000/") || it.ends_with("zarr.json") || *it == "day/c/0"),
        "{changed:?}"
    );
    assert_eq!(case.read("x.zarr", "count(*), sum(v)").await, [["100100", "5009954950.0"]]);
}

/// A program that registers a store of its own for local files has its reasons: an append goes through it, too.
#[tokio::test]
async fn stores_of_a_program_are_not_passed_by() {
    let case = Case::new(reducing(2, 16)).await;
    let store = Arc::new(InMemory::new());
    case.ctx.register_object_store(&Url::parse("file:///").unwrap(), Arc::clone(&store) as _);
    let sql = "SELECT value AS x, CAST(value AS DOUBLE) AS v FROM range";
    case.copy(&format!("{sql}(0, 5)"), "x.zarr", "'dimensions' 'x'").await.unwrap();
    // The same path on the disk, to which nothing goes.
    fs::create_dir(case.at("x.zarr")).unwrap();
    case.copy(&format!("{sql}(5, 9)"), "x.zarr", APPEND).await.unwrap();
    assert_eq!(fs::read_dir(case.at("x.zarr")).unwrap().count(), 0);
    let root = case.at("x.zarr/zarr.json");
    let root = object_store::path::Path::from_absolute_path(root).unwrap();
    let root = object_store::ObjectStoreExt::get(store.as_ref(), &root).await.unwrap();
    let root: serde_json::Value = serde_json::from_slice(&root.bytes().await.unwrap()).unwrap();
    assert_eq!(root.pointer("/consolidated_metadata/metadata/v/shape/0"), Some(&9.into()));
}

/// An append that needs more than the memory pool has for several threads takes one, and below that it is refused.
#[tokio::test]
async fn objects_at_the_end_take_less_memory_before_they_are_refused() {
    let sql = "SELECT value / 100 AS x, value % 100 AS y, CAST(value AS DOUBLE) AS v FROM range";
    let case = Case::new(reducing(1, 8192)).await;
    // An object has 4 MB, and takes four times as much.
    let options = "'dimensions' 'x, y', 'chunks' 'x=5000,y=100', 'codec' 'none'";
    case.copy(&format!("{sql}(0, 500000)"), "x.zarr", options).await.unwrap();
    case.copy(&format!("{sql}(500000, 500100)"), "x.zarr", APPEND).await.unwrap();
    // DataFusion's sort takes 10 MB before.
    for (bytes, fits) in [(64 << 20, true), (24 << 20, true), (12 << 20, false)] {
        let ctx = limited(1, 1024, bytes);
        let next = rows_from(
            &case.ctx,
            &format!("SELECT max(x) + 1 FROM read_array('{}')", case.at("x.zarr").display()),
        )
        .await;
        let first: i64 = next[0][0].parse().unwrap();
        let copy = format!(
            "COPY ({sql}({}, {})) TO '{}' OPTIONS ({APPEND})",
            100 * first,
            100 * first + 100,
            case.at("x.zarr").display()
        );
        let appended = query(&ctx, &copy).await.map_err(|error| error.to_string());
        match fits {
            true => drop(appended.unwrap()),
            false => {
                let error = appended.unwrap_err();
                assert!(
                    error.contains("an object at the end of the array does not fit in memory"),
                    "{error}"
                );
            }
        }
    }
}
