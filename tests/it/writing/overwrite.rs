//! `mode 'overwrite'`: a new Zarr store in the place of one that is there.

use std::fs;
use std::sync::Arc;

use gridfusion::core::tile::removals;
use object_store::memory::InMemory;
use url::Url;

use super::append::files;
use super::faults::{Failing, broken_at};
use super::zarr::Case;
use crate::support::{query, reducing, rows_from};

const OVERWRITE: &str = "'mode' 'overwrite', 'dimensions' 'x'";

fn copy(rows: &str, place: &str, options: &str) -> String {
    format!("COPY ({rows}) TO '{place}' STORED AS ZARR OPTIONS ({options})")
}

/// Rows of the old array, in 25 chunks, and of a new one, in two.
const OLD: &str = "SELECT value AS x, value % 2 AS y, value * 0.5 AS v FROM range(50)";
const NEW: &str = "SELECT value AS x, concat('t', value) AS w FROM range(4)";

#[tokio::test]
async fn a_new_array_takes_the_place_of_another() {
    let case = Case::new(reducing(2, 16)).await;
    let store = Arc::new(InMemory::new());
    case.ctx.register_object_store(&Url::parse("mem://bucket").unwrap(), Arc::clone(&store) as _);
    for place in [case.at("x.zarr").display().to_string(), "mem://bucket/a/x.zarr".to_owned()] {
        let answer = format!("SELECT count(*), max(x) FROM read_array('{place}')");
        query(&case.ctx, &copy(OLD, &place, "'dimensions' 'x', 'chunks' 'x=2'")).await.unwrap();
        assert_eq!(rows_from(&case.ctx, &answer).await, [["50", "49"]]);
        // The query reads the array that it overwrites.
        let own = format!("SELECT x, v FROM read_array('{place}') WHERE x % 10 = 3");
        query(&case.ctx, &copy(&own, &place, OVERWRITE)).await.unwrap();
        assert_eq!(rows_from(&case.ctx, &answer).await, [["5", "43"]]);
        query(&case.ctx, &copy(NEW, &place, OVERWRITE)).await.unwrap();
        let all = format!("SELECT x, w FROM read_array('{place}') ORDER BY x");
        assert_eq!(
            rows_from(&case.ctx, &all).await,
            [["0", "t0"], ["1", "t1"], ["2", "t2"], ["3", "t3"]]
        );
        // The first array of a place needs no other one.
        let first = place.replace("x.zarr", "first.zarr");
        query(&case.ctx, &copy(NEW, &first, OVERWRITE)).await.unwrap();
    }
    let found = |name: &str| -> Vec<String> {
        let own = case.at(name).display().to_string();
        files(&case.at(name)).into_keys().map(|it| it.replace(&own, "")).collect()
    };
    assert_eq!(found("x.zarr"), found("first.zarr"));
    let mut above: Vec<_> =
        fs::read_dir(case.at("")).unwrap().map(|it| it.unwrap().file_name()).collect();
    above.sort();
    assert_eq!(above, ["first.zarr", "x.zarr"]);
    let objects = |name: &str| {
        let below = format!("a/{name}/");
        let all = store.as_ref().list(None);
        async move {
            use futures::TryStreamExt;
            let all: Vec<_> = all.try_collect().await.unwrap();
            let all = all.into_iter().map(|it| it.location.to_string());
            let mut all: Vec<String> =
                all.filter_map(|it| it.strip_prefix(&below).map(str::to_owned)).collect();
            all.sort();
            all
        }
    };
    use object_store::ObjectStore;
    assert_eq!(objects("x.zarr").await, objects("first.zarr").await);
    assert!(objects("x.zarr.gridfusion-new").await.is_empty());
}

#[tokio::test]
async fn what_is_there_stays_unless_all_is_written() {
    let case = Case::new(reducing(2, 16)).await;
    let place = case.at("x.zarr").display().to_string();
    query(&case.ctx, &copy(OLD, &place, "'dimensions' 'x', 'chunks' 'x=2'")).await.unwrap();
    let other = case.at("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis.txt"), "all of it").unwrap();
    let before = files(&case.at(""));
    for (sql, message) in [
        (copy(NEW, &other.display().to_string(), OVERWRITE), "only an array is overwritten"),
        (
            copy("SELECT value AS x, CAST(NULL AS INT) AS v FROM range(3)", &place, OVERWRITE),
            "fill",
        ),
        (
            copy("SELECT value % 2 AS x, value AS v FROM range(3)", &place, OVERWRITE),
            "two rows have the labels",
        ),
        (
            copy("SELECT value AS x, 7 / (value - 2) AS v FROM range(3)", &place, OVERWRITE),
            "Divide by zero",
        ),
        (
            copy(
                "SELECT value AS x, CAST(value AS DOUBLE) AS v FROM range(3)",
                &place,
                &format!("{OVERWRITE}, 'fill' '2'"),
            ),
            "cannot be written",
        ),
        (copy(NEW, &place, "'dimensions' 'x'"), "'overwrite' replaces an array"),
    ] {
        let Err(error) = query(&case.ctx, &sql).await else { panic!("{sql}") };
        assert!(error.to_string().contains(message), "{sql}\n{error}");
        removals().await;
        assert!(!case.at("x.zarr.gridfusion-new").exists(), "{sql}");
        assert!(files(&case.at("")) == before, "{sql}");
    }
    // Programs that were stopped have left files, and perhaps a half renamed array.
    fs::create_dir(case.at("x.zarr.gridfusion-new")).unwrap();
    fs::write(case.at("x.zarr.gridfusion-new/old"), "left").unwrap();
    fs::rename(case.at("x.zarr"), case.at("x.zarr.gridfusion-old")).unwrap();
    query(&case.ctx, &copy(NEW, &place, OVERWRITE)).await.unwrap();
    assert!(!case.at("x.zarr.gridfusion-old").exists());
    assert!(files(&case.at("x.zarr")).into_keys().all(|it| !it.ends_with("old")));
}

/// Each call to a store may fail, before or after its effect: the array is absent, old or new, and the next statement writes it.
#[tokio::test]
async fn each_call_may_fail() {
    let place = "mem://bucket/x.zarr";
    let (mut old, mut new, mut absent) = (0, 0, 0);
    for has_effect in [false, true] {
        for fails in 0.. {
            let store = Arc::new(Failing::new(usize::MAX, has_effect));
            let url = Url::parse("mem://bucket").unwrap();
            let ctx = reducing(2, 16);
            ctx.register_object_store(&url, Arc::clone(&store) as _);
            query(&ctx, &copy(OLD, place, "'dimensions' 'x', 'chunks' 'x=20'")).await.unwrap();
            broken_at(&store, fails);
            let written =
                query(&ctx, &copy(NEW, place, &format!("{OVERWRITE}, 'chunks' 'x=2'"))).await;
            broken_at(&store, usize::MAX);
            removals().await;
            let fresh = reducing(2, 16);
            fresh.register_object_store(&url, Arc::clone(&store) as _);
            let answer = format!("SELECT count(*), max(x) FROM read_array('{place}')");
            match query(&fresh, &answer).await {
                Err(_) => absent += 1,
                Ok(_) if rows_from(&fresh, &answer).await == [["50", "49"]] => old += 1,
                Ok(_) => {
                    assert_eq!(rows_from(&fresh, &answer).await, [["4", "3"]]);
                    new += 1;
                }
            }
            let is_done = written.is_ok();
            let again = format!("{OVERWRITE}, 'unlock' 'true'");
            query(&fresh, &copy(NEW, place, &again)).await.unwrap();
            let after = reducing(2, 16);
            after.register_object_store(&url, Arc::clone(&store) as _);
            assert_eq!(rows_from(&after, &answer).await, [["4", "3"]], "{fails} {has_effect}");
            if is_done {
                break;
            }
        }
    }
    assert!(old > 5 && new >= 2 && absent > 5, "{old} {new} {absent}");
}

/// The next program is told of an array that was being replaced.
#[tokio::test]
async fn programs_that_were_stopped_are_told_of() {
    let case = Case::new(reducing(2, 16)).await;
    let store = Arc::new(InMemory::new());
    case.ctx.register_object_store(&Url::parse("mem://bucket").unwrap(), Arc::clone(&store) as _);
    let put = object_store::PutPayload::from_static(b"its objects are being deleted");
    object_store::ObjectStoreExt::put(store.as_ref(), &"x.zarr/.gridfusion-replaced".into(), put)
        .await
        .unwrap();
    let error = query(&case.ctx, &copy(NEW, "mem://bucket/x.zarr", "'mode' 'append'")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a program was stopped while it replaced the array"), "{error}");
    let place = case.at("x.zarr").display().to_string();
    query(&case.ctx, &copy(OLD, &place, "'dimensions' 'x'")).await.unwrap();
    fs::rename(case.at("x.zarr"), case.at("x.zarr.gridfusion-old")).unwrap();
    let error = query(&case.ctx, &copy(NEW, &place, "'dimensions' 'x'")).await.unwrap_err();
    assert!(error.to_string().contains("whose old array is"), "{error}");
    // A live program has the lock of the array.
    let lock = fs::File::create(case.at("x.zarr.gridfusion-old/.gridfusion-lock")).unwrap();
    lock.lock().unwrap();
    let error = query(&case.ctx, &copy(NEW, &place, OVERWRITE)).await.unwrap_err();
    assert!(error.to_string().contains("another program writes here"), "{error}");
    drop(lock);
    query(&case.ctx, &copy(NEW, &place, OVERWRITE)).await.unwrap();
    assert_eq!(case.read("x.zarr", "count(*)").await, [["4"]]);
}
