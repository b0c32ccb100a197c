//! Groups of Zarr stores: new ones, and rows that are appended to them.

use std::fs;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use object_store::memory::InMemory;
use serde_json::{Value, json};
use url::Url;

use super::append::files;
use super::faults::{Failing, broken_at};
use super::zarr::Case;
use crate::support::{query, reducing, rows_from};

/// Rows of `x` from one number up to another.
fn rows(from: i64, to: i64) -> String {
    format!("SELECT value AS x, CAST(value AS DOUBLE) AS v FROM range({from}, {to})")
}

/// Options of a group in chunks of two.
fn group(path: &str) -> String {
    format!("'dimensions' 'x', 'chunks' 'x=2', 'group' '{path}'")
}

fn append_to(path: &str) -> String {
    format!("'mode' 'append', 'group' '{path}'")
}

fn overwrite(path: &str) -> String {
    format!("{}, 'mode' 'overwrite'", group(path))
}

fn copy(rows: &str, place: &str, options: &str) -> String {
    format!("COPY ({rows}) TO '{place}' STORED AS ZARR OPTIONS ({options})")
}

fn session(store: &Arc<Failing>) -> SessionContext {
    let ctx = reducing(2, 16);
    ctx.register_object_store(&Url::parse("mem://bucket").unwrap(), Arc::clone(store) as _);
    ctx
}

fn count_of(place: &str, group: &str) -> String {
    format!("SELECT count(*), max(v) FROM read_zarr('{place}', group => '{group}')")
}

/// Removes the metadata of all nodes from the document of a group.
fn without_consolidated(case: &Case, group: &str) {
    let document = case.at(group).join("zarr.json");
    let mut metadata: Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
    metadata.as_object_mut().unwrap().remove("consolidated_metadata");
    fs::write(&document, metadata.to_string()).unwrap();
}

/// The paths that the document of a store lists.
fn listed(case: &Case, store: &str) -> Vec<String> {
    let document = fs::read(case.at(store).join("zarr.json")).unwrap();
    let metadata: Value = serde_json::from_slice(&document).unwrap();
    let all = metadata["consolidated_metadata"]["metadata"].as_object();
    all.into_iter().flat_map(|it| it.keys().cloned()).collect()
}

#[tokio::test]
async fn stores_of_every_kind_get_groups() {
    let case = Case::new(reducing(2, 16)).await;
    case.ctx.register_object_store(
        &Url::parse("mem://bucket").unwrap(),
        Arc::new(InMemory::new()) as _,
    );
    for (name, has_root, is_plain) in [
        ("new.zarr", false, false),
        ("old.zarr", true, false),
        ("plain.zarr", true, true),
        ("mem://bucket/a/new.zarr", false, false),
        ("mem://bucket/a/old.zarr", true, false),
    ] {
        let is_local = !name.starts_with("mem:");
        let place = if is_local { case.at(name).display().to_string() } else { name.to_owned() };
        if has_root {
            query(&case.ctx, &copy(&rows(0, 3), &place, "'dimensions' 'x'")).await.unwrap();
        }
        if is_plain {
            without_consolidated(&case, name);
        }
        // The group above another one is made, and gets arrays of its own only if it has none.
        for (path, to) in [("ocean/deep/cold", 5), ("air", 7), ("ocean/shallow", 4)] {
            query(&case.ctx, &copy(&rows(0, to), &place, &group(path))).await.unwrap();
        }
        let error = query(&case.ctx, &copy(&rows(0, 2), &place, &group("air"))).await.unwrap_err();
        assert!(error.to_string().contains("the group air has '"), "{error}");
        for (path, to) in [("ocean/deep/cold", 5), ("air", 7), ("/ocean/shallow/", 4)] {
            let expected = [[to.to_string(), format!("{:?}", f64::from(to - 1))]];
            assert_eq!(rows_from(&case.ctx, &count_of(&place, path)).await, expected, "{place}");
            query(&case.ctx, &copy(&rows(i64::from(to), 9), &place, &append_to(path)))
                .await
                .unwrap();
            assert_eq!(rows_from(&case.ctx, &count_of(&place, path)).await, [["9", "8.0"]]);
        }
        if has_root {
            // The arrays of groups have labels of their own.
            query(&case.ctx, &copy(&rows(3, 4), &place, "'mode' 'append'")).await.unwrap();
            let root =
                format!("SELECT count(*), max(value) FROM read_zarr('{place}', dataset => 'v')");
            assert_eq!(rows_from(&case.ctx, &root).await, [["4", "3.0"]]);
        }
        let mut expected = vec![
            "air",
            "air/v",
            "air/x",
            "ocean",
            "ocean/deep",
            "ocean/deep/cold",
            "ocean/deep/cold/v",
            "ocean/deep/cold/x",
            "ocean/shallow",
            "ocean/shallow/v",
            "ocean/shallow/x",
        ];
        if is_local {
            expected.extend(if has_root { &["v", "x"][..] } else { &[] });
            let expected = if is_plain { vec![] } else { expected };
            assert_eq!(listed(&case, name), expected, "{name}");
        }
    }
}

/// A group above that the store does not list, such as one that a stopped program has left, is listed as it is.
#[tokio::test]
async fn groups_that_are_not_listed_are() {
    let case = Case::new(reducing(2, 16)).await;
    case.copy(&rows(0, 3), "x.zarr", "'dimensions' 'x'").await.unwrap();
    let node = json!({"zarr_format": 3, "node_type": "group", "attributes": {"a": 7}});
    fs::create_dir(case.at("x.zarr/a")).unwrap();
    fs::write(case.at("x.zarr/a/zarr.json"), node.to_string()).unwrap();
    case.copy(&rows(0, 3), "x.zarr", &group("a/b")).await.unwrap();
    assert_eq!(listed(&case, "x.zarr"), ["a", "a/b", "a/b/v", "a/b/x", "v", "x"]);
    let document = fs::read(case.at("x.zarr/zarr.json")).unwrap();
    let metadata: Value = serde_json::from_slice(&document).unwrap();
    let listed = &metadata["consolidated_metadata"]["metadata"]["a"];
    assert_eq!(listed["attributes"], json!({"a": 7}));
    fs::remove_dir_all(case.at("x.zarr/a")).unwrap();
    let error = case.copy(&rows(0, 3), "x.zarr", &group("a/b")).await.unwrap_err();
    assert!(error.contains("has a/b, which is not there"), "{error}");
}

/// All other bytes of the root's document stay.
#[tokio::test]
async fn documents_of_other_programs_stay() {
    let case = Case::new(reducing(2, 16)).await;
    case.copy(&rows(0, 3), "x.zarr", "'dimensions' 'x'").await.unwrap();
    let document = case.at("x.zarr").join("zarr.json");
    let text = fs::read_to_string(&document).unwrap();
    let text = text.replacen("\"attributes\": {}", "\"attributes\": {\"a\": 1.50, \"b\" : [ ]}", 1);
    fs::write(&document, &text).unwrap();
    case.copy(&rows(0, 4), "x.zarr", &group("g")).await.unwrap();
    let new = fs::read_to_string(&document).unwrap();
    // The end of the list, and of what is around it.
    let end = text.rfind('}').and_then(|end| text[..end].rfind("  }")).unwrap();
    let same = text.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    assert!(text[..end].contains("1.50, \"b\" : [ ]") && same > text.len() / 2, "{same}: {new}");
    assert!(new.contains("1.50, \"b\" : [ ]"));
    assert_eq!(case.read("x.zarr", "count(*)").await, [["3"]]);
}

#[tokio::test]
async fn what_cannot_be_a_group_is_refused_and_changes_nothing() {
    let case = Case::new(reducing(2, 16)).await;
    case.copy(&rows(0, 3), "x.zarr", "'dimensions' 'x'").await.unwrap();
    case.copy(&rows(0, 3), "plain.zarr", "'dimensions' 'x'").await.unwrap();
    without_consolidated(&case, "plain.zarr");
    case.copy(&rows(0, 3), "plain.zarr", &group("own")).await.unwrap();
    for path in ["g", "g/h"] {
        case.copy(&rows(0, 3), "full.zarr", &group(path)).await.unwrap();
    }
    // A program was stopped while it replaced a store, and a group.
    case.copy(&rows(0, 3), "gone.zarr.gridfusion-old", "'dimensions' 'x'").await.unwrap();
    case.copy(&rows(0, 3), "half.zarr", &group("g")).await.unwrap();
    fs::rename(case.at("half.zarr/g"), case.at("half.zarr/g.gridfusion-old")).unwrap();
    fs::create_dir(case.at("two.zarr")).unwrap();
    fs::write(case.at("two.zarr/.zgroup"), "{\"zarr_format\": 2}").unwrap();
    fs::create_dir(case.at("other")).unwrap();
    fs::write(case.at("other/thesis.txt"), "all of it").unwrap();
    let before = files(&case.at(""));
    for (place, options, message) in [
        ("x.zarr", group(""), "'' is no path of a group"),
        ("x.zarr", group("a//b"), "'a//b' is no path of a group"),
        ("x.zarr", group("../b"), "'../b' is no path of a group"),
        ("x.zarr", group("a/__b"), "no path of a group"),
        ("x.zarr", group("é"), "no path of a group"),
        ("x.zarr", group("v"), "the group v has '"),
        ("x.zarr", group("v/w"), "this is an array, and only a group has groups"),
        ("x.zarr/g", "'dimensions' 'x'".to_owned(), "with the group as an option"),
        ("x.zarr/g/h", "'dimensions' 'x'".to_owned(), "with the group as an option"),
        ("x.zarr/g", group("h"), "with the group as an option"),
        ("plain.zarr", group("own"), "the group own has '"),
        ("plain.zarr", group("own/b"), "consolidated metadata of its own"),
        ("two.zarr", group("a"), "a new group in a store of version 2"),
        ("other", group("a"), "the folder has 'thesis.txt', and is no Zarr store"),
        ("x.zarr", overwrite("v"), "v is no group of version 3"),
        ("x.zarr", overwrite("../x.zarr"), "'../x.zarr' is no path of a group"),
        ("x.zarr", overwrite(""), "'' is no path of a group"),
        ("x.zarr", group("g.gridfusion-old"), "no path of a group"),
        ("full.zarr/g", overwrite("h"), "with the group as an option"),
        ("gone.zarr", group("g"), "a program was stopped while it replaced"),
        ("gone.zarr", overwrite("g"), "a program was stopped while it replaced"),
        ("half.zarr", group("g/h"), "a program was stopped while it replaced"),
        ("half.zarr", overwrite("g/h"), "a program was stopped while it replaced"),
        ("full.zarr", overwrite("g"), "the group g has g/h, which is no array"),
        (
            "plain.zarr/own",
            "'mode' 'overwrite', 'dimensions' 'x'".to_owned(),
            "with the group as an option",
        ),
        ("x.zarr", group("zarr.json"), "no path of a group"),
        ("plain.zarr/own", group("b"), "with the group as an option"),
        ("x.zarr", append_to("g"), "x.zarr/g"),
        ("x.zarr", append_to("../x.zarr"), "cannot open the folder"),
        ("new.zarr", format!("{}, 'fill' 'y=1'", group("g")), "'fill' names 'y'"),
    ] {
        let error = case.copy(&rows(0, 4), place, &options).await.unwrap_err();
        assert!(error.contains(message), "{place} {options}: {error}");
        assert!(files(&case.at("")) == before, "{place} {options}");
    }
    let netcdf = copy(&rows(0, 1), &case.at("x.nc").display().to_string(), &group("g"));
    let error = query(&case.ctx, &netcdf.replace("ZARR", "NETCDF")).await.unwrap_err();
    assert!(error.to_string().contains("no option 'group'"), "{error}");
    // A cell that cannot be stored is found late.
    let duplicates = "SELECT value / 2 AS x, 1.5 AS v FROM range(4)";
    for place in ["x.zarr", "new.zarr"] {
        case.copy(duplicates, place, &group("g/h")).await.unwrap_err();
        assert!(files(&case.at("")) == before && !case.at("new.zarr").exists(), "{place}");
    }
    fs::remove_dir_all(case.at("x.zarr/v")).unwrap();
    let error = case.copy(&rows(0, 4), "x.zarr", &group("v")).await.unwrap_err();
    assert!(error.contains("without consolidating"), "{error}");
}

/// Tables of a group take rows, and so does a table that is declared before its group is there.
#[tokio::test]
async fn tables_of_groups_take_rows() {
    let case = Case::new(reducing(2, 16)).await;
    case.copy(&rows(0, 3), "x.zarr", "'dimensions' 'x'").await.unwrap();
    case.copy(&rows(0, 5), "x.zarr", &group("a/b")).await.unwrap();
    let place = case.at("x.zarr").display().to_string();
    let table = |name: &str, columns: &str, options: &str| {
        format!(
            "CREATE EXTERNAL TABLE {name} {columns} STORED AS ZARR LOCATION '{place}' OPTIONS ({options})"
        )
    };
    query(&case.ctx, &table("t", "", "group 'a/b'")).await.unwrap();
    query(&case.ctx, "INSERT INTO t VALUES (5, 5.5), (6, 6.5)").await.unwrap();
    let merge = "MERGE INTO t USING (VALUES (1, 10.0)) s(x, more) ON t.x = s.x WHEN MATCHED THEN UPDATE SET v = t.v + s.more";
    query(&case.ctx, merge).await.unwrap();
    let sum = "SELECT count(*), sum(v) FROM t";
    assert_eq!(rows_from(&case.ctx, sum).await, [["7", "32.0"]]);
    let sum = format!("SELECT count(*), sum(v) FROM read_zarr('{place}', group => 'a/b')");
    assert_eq!(rows_from(&case.ctx, &sum).await, [["7", "32.0"]]);
    let declared = table("d", "(x BIGINT, w REAL)", "group 'd', dimensions 'x'");
    query(&case.ctx, &declared).await.unwrap();
    assert!(rows_from(&case.ctx, "SELECT * FROM d").await.is_empty());
    for row in ["(1, 0.5)", "(2, 1.5)"] {
        query(&case.ctx, &format!("INSERT INTO d VALUES {row}")).await.unwrap();
    }
    let all = "SELECT x, w FROM d ORDER BY x";
    assert_eq!(rows_from(&case.ctx, all).await, [["1", "0.5"], ["2", "1.5"]]);
    let error = query(&case.ctx, &declared.replace(" d ", " e ")).await.unwrap_err().to_string();
    assert!(error.contains("is there"), "{error}");
    assert_eq!(rows_from(&case.ctx, "SELECT count(*) FROM t").await, [["7"]]);
    assert_eq!(case.read("x.zarr", "count(*)").await, [["3"]]);
}

/// The store may fail at each call: readers of the whole store find all rows of a group, or what they found before.
#[tokio::test]
async fn each_call_may_fail() {
    const PLACE: &str = "mem://bucket/x.zarr";
    let (mut created, mut appended, mut left) = ([0; 2], [0; 2], 0);
    for has_effect in [false, true] {
        for fails in 0.. {
            let store = Arc::new(Failing::new(usize::MAX, has_effect));
            let ctx = session(&store);
            query(&ctx, &copy(&rows(0, 3), PLACE, "'dimensions' 'x'")).await.unwrap();
            broken_at(&store, fails);
            let written = query(&ctx, &copy(&rows(0, 5), PLACE, &group("a/b"))).await;
            broken_at(&store, usize::MAX);
            let found = query(&session(&store), &count_of(PLACE, "a/b")).await.is_ok();
            created[usize::from(found)] += 1;
            if written.is_ok() {
                assert!(found);
                break;
            }
            if !found {
                let again = format!("{}, 'unlock' 'true'", group("a/b"));
                let again = query(&session(&store), &copy(&rows(0, 5), PLACE, &again)).await;
                if let Err(error) = again {
                    // A call without an answer leaves its object behind, and the last call all of them.
                    assert!(error.to_string().contains("already; delete it"), "{fails}: {error}");
                    left += 1;
                    continue;
                }
            }
            assert_eq!(rows_from(&session(&store), &count_of(PLACE, "a/b")).await, [["5", "4.0"]]);
        }
        for fails in 0.. {
            let store = Arc::new(Failing::new(usize::MAX, has_effect));
            let ctx = session(&store);
            query(&ctx, &copy(&rows(0, 3), PLACE, "'dimensions' 'x'")).await.unwrap();
            query(&ctx, &copy(&rows(0, 5), PLACE, &group("a/b"))).await.unwrap();
            broken_at(&store, fails);
            let written = query(&ctx, &copy(&rows(5, 8), PLACE, &append_to("a/b"))).await;
            broken_at(&store, usize::MAX);
            let found = rows_from(&session(&store), &count_of(PLACE, "a/b")).await;
            let is_new = found == [["8", "7.0"]];
            assert!(is_new || found == [["5", "4.0"]], "{fails} {has_effect}: {found:?}");
            appended[usize::from(is_new)] += 1;
            if written.is_ok() {
                assert!(is_new);
                break;
            }
            // The group itself may have the rows before the store lists them.
            let own = "SELECT count(*) FROM read_zarr('mem://bucket/x.zarr/a/b')";
            let end = rows_from(&session(&store), own).await[0][0].parse().unwrap();
            let more = format!("{}, 'unlock' 'true'", append_to("a/b"));
            query(&session(&store), &copy(&rows(end, 11), PLACE, &more)).await.unwrap();
            let found = rows_from(&session(&store), &count_of(PLACE, "a/b")).await;
            assert_eq!(found, [["11", "10.0"]], "{fails} {has_effect}");
        }
    }
    assert!(created.iter().chain(&appended).all(|it| *it > 1), "{created:?} {appended:?}");
    assert!(left < created[0] - 5, "{left} {created:?}");
}

/// Another program has changed the store without consolidating its metadata.
#[tokio::test]
async fn listings_of_another_age_are_told() {
    let case = Case::new(reducing(2, 16)).await;
    case.copy(&rows(0, 3), "x.zarr", "'dimensions' 'x'").await.unwrap();
    case.copy(&rows(0, 5), "x.zarr", &group("g")).await.unwrap();
    let document = case.at("x.zarr/zarr.json");
    let text = fs::read_to_string(&document).unwrap();
    for (from, to) in [("\"g/v\"", "\"g/w\""), ("\"float64\"", "\"float32\"")] {
        let (at, _) = text.match_indices(from).last().unwrap();
        let other = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
        fs::write(&document, other).unwrap();
        let before = files(&case.at("x.zarr"));
        let error = case.copy(&rows(5, 7), "x.zarr", &append_to("g")).await.unwrap_err();
        assert!(error.contains("without consolidating"), "{from}: {error}");
        assert!(files(&case.at("x.zarr")) == before, "{from}");
    }
    fs::write(&document, text).unwrap();
    case.copy(&rows(5, 7), "x.zarr", &append_to("g")).await.unwrap();
}

/// Two programs write to two groups of a store, and a third one makes more groups.
#[tokio::test(flavor = "multi_thread")]
async fn writers_of_several_groups_lose_no_listing() {
    let case = Case::new(reducing(2, 16)).await;
    let place = case.at("x.zarr").display().to_string();
    for path in ["a", "b"] {
        query(&case.ctx, &copy(&rows(0, 1), &place, &group(path))).await.unwrap();
    }
    let append = async |path: &str| {
        let ctx = reducing(2, 16);
        for at in 1..12 {
            query(&ctx, &copy(&rows(at, at + 1), &place, &append_to(path))).await.unwrap();
        }
    };
    let create = async || {
        let ctx = reducing(2, 16);
        for at in 0..6 {
            query(&ctx, &copy(&rows(0, 2), &place, &group(&format!("c/{at}")))).await.unwrap();
        }
    };
    tokio::join!(append("a"), append("b"), create());
    for (path, count) in [("a", "12"), ("b", "12"), ("c/0", "2"), ("c/5", "2")] {
        assert_eq!(rows_from(&case.ctx, &count_of(&place, path)).await[0][0], count, "{path}");
    }
    let arrays = listed(&case, "x.zarr").iter().filter(|it| it.ends_with("/v")).count();
    assert_eq!(arrays, 8);
}

/// A program was stopped after the group was complete, and before the store listed it, or was there.
#[tokio::test]
async fn the_next_append_lists_what_a_stopped_program_did_not() {
    let case = Case::new(reducing(2, 16)).await;
    let place = case.at("x.zarr").display().to_string();
    let count =
        async |path: &str| rows_from(&reducing(2, 16), &count_of(&place, path)).await[0][0].clone();
    case.copy(&rows(0, 2), "x.zarr", &group("g")).await.unwrap();
    fs::remove_file(case.at("x.zarr/zarr.json")).unwrap();
    case.copy(&rows(2, 4), "x.zarr", &append_to("g")).await.unwrap();
    assert_eq!(
        (listed(&case, "x.zarr"), count("g").await),
        (vec!["g".into(), "g/v".into(), "g/x".into()], "4".into())
    );
    // A document with one of several groups would hide the others.
    for (store, others) in [("two.zarr", ["g", "h"]), ("below.zarr", ["g", "g/h"])] {
        for path in others {
            case.copy(&rows(0, 2), store, &group(path)).await.unwrap();
        }
        let document = case.at(store).join("zarr.json");
        fs::remove_file(&document).unwrap();
        case.copy(&rows(2, 4), store, &append_to("g")).await.unwrap();
        assert!(!document.exists(), "{store}");
        assert_eq!(case.read(&format!("{store}/g"), "count(*)").await, [["4"]]);
    }
    // The root has arrays of its own, along a dimension of the same name. Its next append mends only these.
    case.copy(&rows(0, 3), "y.zarr", "'dimensions' 'x', 'chunks' 'x=2'").await.unwrap();
    case.copy(&rows(0, 4), "y.zarr", &group("g")).await.unwrap();
    let root = case.at("y.zarr/zarr.json");
    let before = fs::read(&root).unwrap();
    case.copy(&rows(4, 9), "y.zarr", &append_to("g")).await.unwrap();
    fs::write(&root, before).unwrap();
    let journal = "{\"dimension\": \"x\", \"from\": 3, \"to\": 9}";
    fs::write(case.at("y.zarr/.gridfusion-append"), journal).unwrap();
    case.copy(&rows(3, 5), "y.zarr", "'mode' 'append', 'others' 'null'").await.unwrap();
    assert_eq!(case.read("y.zarr/g", "count(*), max(v)").await, [["9", "8.0"]]);
    case.copy(&rows(9, 10), "y.zarr", &append_to("g")).await.unwrap();
    let place = case.at("y.zarr").display().to_string();
    assert_eq!(rows_from(&case.ctx, &count_of(&place, "g")).await, [["10", "9.0"]]);
    assert_eq!(case.read("y.zarr", "count(*), max(v)").await, [["5", "4.0"]]);
    // No rows are no group.
    let create = format!(
        "CREATE EXTERNAL TABLE d (x BIGINT, v REAL) STORED AS ZARR LOCATION '{}' OPTIONS (group 'g', dimensions 'x')",
        case.at("z.zarr").display()
    );
    query(&case.ctx, &create).await.unwrap();
    query(&case.ctx, "INSERT INTO d SELECT * FROM d").await.unwrap();
    assert!(!case.at("z.zarr").exists());
    let error = case.copy(&rows(10, 11), "y.zarr", &append_to("g//h")).await.unwrap_err();
    assert!(error.contains("is no path of a group"), "{error}");
}

/// The new group has another type, other chunks and fewer labels.
#[tokio::test]
async fn groups_are_replaced() {
    let case = Case::new(reducing(2, 16)).await;
    case.ctx.register_object_store(
        &Url::parse("mem://bucket").unwrap(),
        Arc::new(InMemory::new()) as _,
    );
    let other = "SELECT value AS y, concat('n', value) AS w FROM range(2)";
    for (name, is_plain) in
        [("x.zarr", false), ("plain.zarr", true), ("mem://bucket/x.zarr", false)]
    {
        let is_local = !name.starts_with("mem:");
        let place = if is_local { case.at(name).display().to_string() } else { name.to_owned() };
        query(&case.ctx, &copy(&rows(0, 3), &place, "'dimensions' 'x'")).await.unwrap();
        if is_plain {
            without_consolidated(&case, name);
        }
        // The first one makes the group, and the second one replaces it.
        query(&case.ctx, &copy(&rows(0, 9), &place, &overwrite("a/b"))).await.unwrap();
        query(&case.ctx, &copy(&rows(0, 5), &place, &group("a/c"))).await.unwrap();
        let new = "'dimensions' 'y', 'fill' 'w=none', 'group' 'a/b', 'mode' 'overwrite'";
        query(&case.ctx, &copy(other, &place, new)).await.unwrap();
        let all = format!("SELECT y, w FROM read_zarr('{place}', group => 'a/b') ORDER BY y");
        let fresh = rows_from(&case.ctx, &all).await;
        assert_eq!(fresh, [["0", "n0"], ["1", "n1"]], "{place}");
        assert_eq!(rows_from(&case.ctx, &count_of(&place, "a/c")).await, [["5", "4.0"]]);
        let more = "SELECT 2 AS y, 'n2' AS w";
        query(&case.ctx, &copy(more, &place, &append_to("a/b"))).await.unwrap();
        assert_eq!(rows_from(&case.ctx, &all).await.len(), 3, "{place}");
        if is_local {
            let nodes = ["a", "a/b", "a/b/w", "a/b/y", "a/c", "a/c/v", "a/c/x", "v", "x"];
            assert_eq!(listed(&case, name), if is_plain { &[][..] } else { &nodes }, "{name}");
            let own = listed(&case, &format!("{name}/a/b"));
            assert_eq!(own, if is_plain { &["w", "y"][..] } else { &[] });
            let mut left = files(&case.at(name)).into_keys();
            assert_eq!(left.find(|it| it.contains("gridfusion")), None);
            assert_eq!(fs::read_dir(case.at(name).join("a")).unwrap().count(), 3);
        }
    }
}

/// A program was stopped while it wrote the new group, or before the store listed a group again.
#[tokio::test]
async fn stopped_replacements_leave_nothing_behind() {
    let case = Case::new(reducing(2, 16)).await;
    for path in ["g", "u"] {
        case.copy(&rows(0, 3), "x.zarr", &group(path)).await.unwrap();
    }
    // Nor do readers of a store without a listing find the new group.
    case.copy(&rows(0, 3), "plain.zarr", "'dimensions' 'x'").await.unwrap();
    without_consolidated(&case, "plain.zarr");
    case.copy(&rows(0, 2), "plain.zarr", &group("a/b")).await.unwrap();
    case.copy(&rows(0, 5), "new.zarr", "'dimensions' 'x'").await.unwrap();
    fs::rename(case.at("new.zarr"), case.at("plain.zarr/a/b.gridfusion-new")).unwrap();
    let place = case.at("plain.zarr").display().to_string();
    assert_eq!(rows_from(&case.ctx, &count_of(&place, "a/*")).await, [["2", "1.0"]]);
    fs::create_dir_all(case.at("x.zarr/g.gridfusion-new/other/c/0")).unwrap();
    for _ in 0..2 {
        case.copy(&rows(0, 4), "x.zarr", &overwrite("g")).await.unwrap();
        assert_eq!(fs::read_dir(case.at("x.zarr/g")).unwrap().count(), 3);
    }
    assert_eq!(fs::read_dir(case.at("x.zarr")).unwrap().count(), 3);
    // The store does not list the group, until another one is made below it.
    let document = case.at("x.zarr/zarr.json");
    let text = fs::read(&document).unwrap();
    let mut metadata: Value = serde_json::from_slice(&text).unwrap();
    let all = metadata["consolidated_metadata"]["metadata"].as_object_mut().unwrap();
    all.retain(|name, _| !name.starts_with('u'));
    fs::write(&document, metadata.to_string()).unwrap();
    case.copy(&rows(0, 2), "x.zarr", &group("u/w")).await.unwrap();
    let nodes = ["g", "g/v", "g/x", "u", "u/v", "u/w", "u/w/v", "u/w/x", "u/x"];
    assert_eq!(listed(&case, "x.zarr"), nodes);
}

/// A call to the store fails, before or after its effect: readers of the whole store find the old group, the new one or none. The next
/// statement replaces the group.
#[tokio::test]
async fn each_call_of_a_replacement_may_fail() {
    const PLACE: &str = "mem://bucket/x.zarr";
    let [mut old, mut new, mut none] = [0; 3];
    for has_effect in [false, true] {
        for fails in 0.. {
            let store = Arc::new(Failing::new(usize::MAX, has_effect));
            let ctx = session(&store);
            query(&ctx, &copy(&rows(0, 3), PLACE, "'dimensions' 'x'")).await.unwrap();
            query(&ctx, &copy(&rows(0, 9), PLACE, &group("a/b"))).await.unwrap();
            broken_at(&store, fails);
            let written = query(&ctx, &copy(&rows(0, 4), PLACE, &overwrite("a/b"))).await;
            broken_at(&store, usize::MAX);
            match query(&session(&store), &count_of(PLACE, "a/b")).await {
                Err(_) => none += 1,
                Ok(_) => {
                    let found = rows_from(&session(&store), &count_of(PLACE, "a/b")).await;
                    let is_new = found == [["4", "3.0"]];
                    assert!(is_new || found == [["9", "8.0"]], "{fails} {has_effect}: {found:?}");
                    *(if is_new { &mut new } else { &mut old }) += 1;
                }
            }
            if written.is_ok() {
                let found = rows_from(&session(&store), &count_of(PLACE, "a/b")).await;
                assert_eq!(found, [["4", "3.0"]]);
                break;
            }
            let again = format!("{}, 'unlock' 'true'", overwrite("a/b"));
            query(&session(&store), &copy(&rows(0, 6), PLACE, &again)).await.unwrap();
            let found = rows_from(&session(&store), &count_of(PLACE, "a/b")).await;
            assert_eq!(found, [["6", "5.0"]], "{fails} {has_effect}");
        }
    }
    assert!(old > 10 && new > 1 && none > 4, "{old} {new} {none}");
}
