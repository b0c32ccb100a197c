//! `.tet.d` packages that `COPY` makes and adds generations to, read back, verified, and published to by the reference.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use gridfusion::core::io::LocalFolder;
use gridfusion::core::tile::removals;
use gridfusion::verify::{Depth, Progress};
use gridfusion::{ArrayOptions, GridfusionDataFrameExt};
use gridfusion_tet::{TetReader, verify};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use tetration::catalog::TetPackage;
use tetration::prelude::{TetDatasetWrite, TetWriterSession};
use tetration::verify::{VerifyOptions, verify_tet_package_with_options};
use url::Url;

use super::append::files;
use super::faults::{Failing, broken_at};
use super::zarr::Case;
use crate::support::{query, reducing, rows_from};
use crate::verify::tet::findings;

const OVERWRITE: &str = "'mode' 'overwrite', 'dimensions' 'x'";

/// A statement that writes `len` cells, which are `factor` times their labels.
fn copy(factor: u32, len: u32, place: &str, options: &str) -> String {
    format!(
        "COPY (SELECT value AS x, value * {factor}.5 AS v FROM range({len})) TO '{place}' OPTIONS ({options})"
    )
}

/// The cells and the sum of an array.
async fn sum(case: &Case, place: &str, option: &str) -> Vec<Vec<String>> {
    let sql = format!("SELECT count(*), sum(v) FROM read_array('{place}'{option})");
    rows_from(&case.ctx, &sql).await
}

/// Asserts that a package has no fault, as gridfusion and the reference see it.
async fn assert_sound(path: &Path) {
    let options = VerifyOptions { deep_decode: true };
    let report = verify_tet_package_with_options(path, options).unwrap();
    assert!(report.ok && report.recommendations.is_empty(), "{report:#?}");
    let folder = Arc::new(LocalFolder::open(path, false).unwrap());
    let package = TetReader::open_package(folder, None).await.unwrap();
    let report = verify(&package, Depth::Cells, &Arc::new(Progress::default())).await;
    assert_eq!(findings(&report), "", "{}", path.display());
}

/// Publishes a generation of two cells with the reference.
fn publish_with_the_reference(path: &Path) {
    let package = TetPackage::open(path).unwrap();
    let number = package.next_generation().unwrap();
    let file = tempfile::tempdir().unwrap();
    let file = file.path().join("v.tet");
    let mut session = TetWriterSession::create(&file);
    let cells = [7.0_f64, 8.0].iter().flat_map(|it| it.to_le_bytes()).collect();
    session.push_dataset(TetDatasetWrite::f64_row_major("v", &[2], &[2], cells).unwrap()).unwrap();
    session.commit().unwrap();
    package.begin_publish(number).unwrap();
    package.seal_generation(number, &file, vec![]).unwrap();
}

#[tokio::test]
async fn generations_are_added_and_stay() {
    let case = Case::new(reducing(2, 16)).await;
    let store = Arc::new(InMemory::new());
    case.ctx.register_object_store(&Url::parse("mem://bucket").unwrap(), Arc::clone(&store) as _);
    let local = case.at("x.tet.d").display().to_string();
    for place in [local.clone(), "mem://bucket/a/x.tet.d".to_owned()] {
        query(&case.ctx, &copy(1, 50, &place, "'dimensions' 'x', 'chunks' 'x=7'")).await.unwrap();
        assert_eq!(sum(&case, &place, "").await, [["50", "1837.5"]]);
        let error = query(&case.ctx, &copy(1, 5, &place, "'dimensions' 'x'")).await.unwrap_err();
        let expected = "delete it first, or add a version: OPTIONS (mode 'overwrite')";
        assert!(error.to_string().contains(expected), "{error}");
        query(&case.ctx, &copy(2, 4, &place, OVERWRITE)).await.unwrap();
        // The query reads the generation before.
        let own = format!(
            "COPY (SELECT x, v + 1 AS v FROM read_array('{place}')) TO '{place}' STORED AS TET OPTIONS (mode 'overwrite')"
        );
        query(&case.ctx, &own).await.unwrap();
        assert_eq!(sum(&case, &place, "").await, [["4", "19.0"]]);
        assert_eq!(sum(&case, &place, ", generation => 2").await, [["4", "15.0"]]);
        assert_eq!(sum(&case, &place, ", generation => 1").await, [["50", "1837.5"]]);
    }
    assert_sound(Path::new(&local)).await;
    // Both programs add to the package of the other.
    publish_with_the_reference(Path::new(&local));
    assert_eq!(sum(&case, &local, "").await, [["2", "15.0"]]);
    query(&case.ctx, &copy(3, 3, &local, OVERWRITE)).await.unwrap();
    assert_eq!(sum(&case, &local, "").await, [["3", "10.5"]]);
    publish_with_the_reference(Path::new(&local));
    assert_eq!(fs::read_to_string(case.at("x.tet.d/CURRENT")).unwrap(), "6\n");
    query(&case.ctx, &copy(4, 3, &local, OVERWRITE)).await.unwrap();
    assert_sound(Path::new(&local)).await;
    let reference = case.at("of_reference.tet.d");
    TetPackage::create(&reference).unwrap();
    query(&case.ctx, &copy(1, 3, reference.to_str().unwrap(), OVERWRITE)).await.unwrap();
    assert_sound(&reference).await;
    publish_with_the_reference(&reference);
    query(&case.ctx, &copy(1, 3, reference.to_str().unwrap(), OVERWRITE)).await.unwrap();
    assert_sound(&reference).await;
}

#[tokio::test]
async fn packages_need_their_name_and_their_claim() {
    let case = Case::new(reducing(2, 16)).await;
    let at = |name: &str| case.at(name).display().to_string();
    let place = at("x.tet.d");
    query(&case.ctx, &copy(1, 5, &place, "'dimensions' 'x'")).await.unwrap();
    fs::create_dir_all(case.at("other.tet.d/notes")).unwrap();
    fs::write(case.at("other.tet.d/notes/a.txt"), "text").unwrap();
    // Another program claims the next generation.
    let package = TetPackage::open(&place).unwrap();
    package.begin_publish(2).unwrap();
    let before = files(&case.at(""));
    for (place, options, message) in [
        (at("x.d"), "'dimensions' 'x'".to_owned(), "a package of Tetration files ends with .tet.d"),
        (at("x.tet"), "'dimensions' 'x', 'unlock' 'true'".to_owned(), "this is one file"),
        (at("other.tet.d"), OVERWRITE.to_owned(), "this is no .tet.d package: it has no PROTOCOL"),
        (place.clone(), OVERWRITE.to_owned(), "another program publishes generation 2"),
        (
            place.clone(),
            "'mode' 'append', 'dimensions' 'x'".to_owned(),
            "the format tet.d has create and overwrite",
        ),
    ] {
        let error = query(&case.ctx, &copy(2, 5, &place, &options)).await.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(files(&case.at("")), before, "{place}");
    }
    let unlocked = format!("{OVERWRITE}, 'unlock' 'true'");
    query(&case.ctx, &copy(2, 4, &place, &unlocked)).await.unwrap();
    assert_eq!(sum(&case, &place, "").await, [["4", "15.0"]]);
    assert_sound(Path::new(&place)).await;
    // A program that embeds gridfusion names packages as well.
    let rows = case.ctx.sql("SELECT value AS x, value * 3.0 AS v FROM range(3)").await.unwrap();
    let options = ArrayOptions::default().with_option("dimensions", "x");
    let options = options.with_option("mode", "overwrite");
    assert_eq!(rows.write_array(&place, options).await.unwrap(), 3);
    assert_eq!(sum(&case, &place, "").await, [["3", "9.0"]]);
}

/// Each call fails in turn. Readers find the old generation or the new one, and the next statement removes what is left.
#[tokio::test]
async fn each_call_may_fail() {
    let place = "mem://bucket/a/x.tet.d";
    let (mut old, mut new) = (0, 0);
    for has_effect in [false, true] {
        for fails in 0.. {
            let store = Arc::new(Failing::new(usize::MAX, has_effect));
            let case = Case::new(reducing(2, 16)).await;
            let url = Url::parse("mem://bucket").unwrap();
            case.ctx.register_object_store(&url, Arc::clone(&store) as _);
            query(&case.ctx, &copy(1, 4, place, "'dimensions' 'x'")).await.unwrap();
            broken_at(&store, fails);
            let written = query(&case.ctx, &copy(2, 3, place, OVERWRITE)).await;
            removals().await;
            broken_at(&store, usize::MAX);
            match sum(&case, place, "").await[0][0].as_str() {
                "4" => old += 1,
                "3" => new += 1,
                other => panic!("{fails}: {other}"),
            }
            if written.is_ok() {
                break;
            }
            // The lock of a store stays if its call has an effect and no answer.
            let unlocked = format!("{OVERWRITE}, 'unlock' 'true'");
            query(&case.ctx, &copy(3, 2, place, &unlocked)).await.unwrap();
            assert_eq!(sum(&case, place, "").await, [["2", "3.5"]]);
            let objects: Vec<_> = store.list(None).try_collect().await.unwrap();
            let objects: Vec<String> =
                objects.into_iter().map(|it| it.location.to_string()).collect();
            let leftovers = |it: &&String| it.contains("HEARTBEAT") || it.contains(".gridfusion");
            assert_eq!(objects.iter().filter(leftovers).count(), 0, "{fails}: {objects:?}");
            let sealed = objects.iter().filter(|it| it.ends_with("packed.tet")).count();
            let manifests = objects.iter().filter(|it| it.ends_with("MANIFEST.json")).count();
            assert_eq!(sealed, manifests, "{fails}: {objects:?}");
        }
    }
    assert!(old > 8 && new > 2, "{old} {new}");
}

/// A program that was killed has no time to remove anything: its claim tells the next one what to remove.
#[tokio::test]
async fn a_killed_program_leaves_what_the_next_one_removes() {
    let case = Case::new(reducing(2, 16)).await;
    let place = case.at("x.tet.d").display().to_string();
    fs::create_dir(&place).unwrap();
    fs::write(case.at("x.tet.d/.gridfusion-lock"), "process 1 writes").unwrap();
    query(&case.ctx, &copy(1, 4, &place, "'dimensions' 'x'")).await.unwrap();
    let put = |name: &str, bytes: &str| {
        let path = case.at("x.tet.d").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    // It was killed before generation 2 was current, and another one after it was.
    for name in [".gridfusion-1", ".gridfusion-2", "00000002/HEARTBEAT"] {
        put(&format!("publishing/{name}"), "1700000000\n");
    }
    put("generations/00000002/packed.tet", "half");
    // A call without an answer had an effect.
    put("generations/00000003/MANIFEST.json", "{}");
    assert_eq!(sum(&case, &place, "").await, [["4", "9.0"]]);
    query(&case.ctx, &copy(2, 3, &place, OVERWRITE)).await.unwrap();
    assert_eq!(sum(&case, &place, "").await, [["3", "7.5"]]);
    assert_eq!(sum(&case, &place, ", generation => 1").await, [["4", "9.0"]]);
    assert_eq!(fs::read_to_string(case.at("x.tet.d/CURRENT")).unwrap(), "2\n");
    assert_sound(Path::new(&place)).await;
    let left: Vec<_> = fs::read_dir(case.at("x.tet.d/publishing")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Each of two writers at the same time adds a generation, or is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_writers_do_not_lose_a_generation() {
    let case = Case::new(reducing(2, 16)).await;
    let store = Arc::new(InMemory::new());
    case.ctx.register_object_store(&Url::parse("mem://bucket").unwrap(), store);
    for place in [case.at("x.tet.d").display().to_string(), "mem://bucket/x.tet.d".to_owned()] {
        query(&case.ctx, &copy(1, 4, &place, "'dimensions' 'x'")).await.unwrap();
        let mut added = 0;
        for _ in 0..10 {
            let statement = copy(2, 3, &place, OVERWRITE);
            let both = tokio::join!(query(&case.ctx, &statement), query(&case.ctx, &statement));
            for written in [both.0, both.1] {
                match written {
                    Ok(_) => added += 1,
                    Err(error) => assert!(error.to_string().contains("writ"), "{error}"),
                }
            }
        }
        assert!(added >= 10, "{added}");
        let last = format!(", generation => {}", added + 1);
        assert_eq!(sum(&case, &place, &last).await, sum(&case, &place, "").await);
        let none = format!("SELECT 1 FROM read_array('{place}', generation => {})", added + 2);
        assert!(query(&case.ctx, &none).await.is_err());
    }
}
