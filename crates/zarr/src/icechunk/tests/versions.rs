//! Versions, facts about them, and their verification.

use super::*;
use arrow::datatypes::TimestampMicrosecondType;
use gridfusion_core::ErrorKind;
use gridfusion_core::verify::{Depth, Progress};

const SPECS: [&str; 2] = ["spec1", "spec2"];

#[tokio::test]
async fn every_version_has_the_cells_that_the_library_reads() {
    for spec in SPECS {
        for (name, expected) in expected(spec) {
            let option = if name == "v1" { "tag" } else { "branch" };
            let dataset = open(&repository(spec), version(option, &name)).await.unwrap();
            compare(&dataset, &expected, &format!("{spec} {name}")).await;
            for snapshot in &expected.history {
                let by_id = open(&repository(spec), version("snapshot", &snapshot.id)).await;
                let names = by_id.unwrap().names();
                assert_eq!(names.is_empty(), snapshot.message == "Repository initialized");
            }
        }
    }
}

#[tokio::test]
async fn a_time_chooses_a_snapshot_of_a_branch() {
    for spec in SPECS {
        let all = expected(spec);
        let [newest, first, root] = &all["main"].history[..] else { panic!("three snapshots") };
        for (time, expected) in [
            (u64::MAX / 2, "main"),
            (newest.time.div_ceil(1000), "main"),
            (newest.time / 1000 - 1, "v1"),
            (first.time.div_ceil(1000), "v1"),
        ] {
            let options = ArrayOptions::default().with_option("as_of", time);
            let dataset = open(&repository(spec), options).await.unwrap();
            compare(&dataset, &all[expected], &format!("{spec} as of {time}")).await;
        }
        let options = ArrayOptions::default().with_option("as_of", root.time / 1000 - 1);
        let error = open(&repository(spec), options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("the branch main has no snapshot"), "{error}");
    }
}

#[tokio::test]
async fn versions_that_are_not_there_are_named() {
    for spec in SPECS {
        let id = "ZZZZZZZZZZZZZZZZZZZ0";
        for (options, expected) in [
            (version("branch", "none"), "there is no branch \"none\"; there is \"dev\", \"main\""),
            (version("tag", "none"), "there is no tag \"none\"; there is \"v1\""),
            (version("tag", "gone"), "the tag \"gone\" was deleted"),
            (version("branch", "../x"), "there is no branch \"../x\""),
            (version("snapshot", "x"), "'x' is no id of Icechunk"),
            (version("snapshot", id), "there is no snapshot ZZZZZZZZZZZZZZZZZZZ0"),
            (version("tag", "v1").with_option("branch", "main"), "each choose a version"),
        ] {
            let error = open(&repository(spec), options).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{spec}: {error}");
            assert!(error.to_string().contains(expected), "{spec}: {error}");
        }
    }
}

/// Returns a column of text; NULL is empty.
fn texts(rows: &RecordBatch, name: &str) -> Vec<String> {
    let column = rows.column_by_name(name).unwrap().as_string::<i32>();
    column.iter().map(|it| it.unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn histories_and_references_are_tables() {
    for spec in SPECS {
        let all = expected(spec);
        let dataset = open(&repository(spec), version("branch", "dev")).await.unwrap();
        let rows = async |function: &str| {
            let facts = dataset.group().facts(function, None).await.unwrap();
            let columns: Vec<usize> = (0..facts.schema().fields().len()).collect();
            facts.read(&columns).try_collect::<Vec<_>>().await.unwrap().remove(0)
        };
        let history = rows("icechunk_history").await;
        let expected = &all["dev"].history;
        let of =
            |text: fn(&ExpectedSnapshot) -> String| expected.iter().map(text).collect::<Vec<_>>();
        assert_eq!(texts(&history, "snapshot"), of(|it| it.id.clone()));
        assert_eq!(texts(&history, "parent"), of(|it| it.parent.clone().unwrap_or_default()));
        assert_eq!(texts(&history, "message"), of(|it| it.message.clone()));
        let times = history.column_by_name("time").unwrap();
        let times = times.as_primitive::<TimestampMicrosecondType>().values();
        assert_eq!(times.to_vec(), expected.iter().map(|it| it.time as i64).collect::<Vec<_>>());
        for (text, expected) in texts(&history, "metadata").iter().zip(expected) {
            let value: Value = serde_json::from_str(text).unwrap_or_else(|_| serde_json::json!({}));
            assert_eq!(value, expected.metadata, "{spec}");
        }
        let references = rows("icechunk_refs").await;
        assert_eq!(texts(&references, "kind"), ["branch", "branch", "tag"]);
        assert_eq!(texts(&references, "name"), ["dev", "main", "v1"]);
        let ids = ["dev", "main", "v1"].map(|name| all[name].history[0].id.clone());
        assert_eq!(texts(&references, "snapshot"), ids);
        assert!(dataset.group().facts("icechunk_refs", Some("t")).await.is_err());
        let pinned = dataset.group().pinned_options();
        assert_eq!(pinned[0].1.as_ref().unwrap().to_string(), ids[0]);
    }
}

/// Verifies at the greatest depth. Returns what was found.
async fn findings(location: &str) -> Vec<String> {
    let dataset = open(location, ArrayOptions::default()).await.unwrap();
    let reports = dataset.group().verify(Depth::Cells, &Arc::new(Progress::default())).await;
    let findings =
        reports.iter().flat_map(|(_, report)| report.checks()).flat_map(|it| it.findings());
    findings.map(|it| format!("{it:?}")).collect()
}

#[tokio::test]
async fn verification_checks_manifests_and_objects() {
    for spec in SPECS {
        let temporary = tempfile::tempdir().unwrap();
        let copy = temporary.path().join("x.icechunk");
        crate::tests::copy(Path::new(&repository(spec)), &copy);
        let location = copy.to_str().unwrap();
        // Only the references to another version of a file are wrong.
        let found = findings(location).await;
        assert!(found.iter().all(|it| it.contains("changed")) && !found.is_empty(), "{found:?}");
        for object in std::fs::read_dir(copy.join("chunks")).unwrap() {
            let path = object.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        }
        let found = findings(location).await;
        assert!(found.iter().any(|it| it.contains("ends at byte")), "{found:?}");
        std::fs::remove_dir_all(copy.join("chunks")).unwrap();
        let found = findings(location).await;
        assert!(found.iter().any(|it| it.contains("which is not there")), "{found:?}");
    }
}

#[tokio::test]
async fn locations_with_a_dictionary_are_read() {
    let location = folder().join("spec2/compressed.icechunk");
    let dataset = open(location.to_str().unwrap(), ArrayOptions::default()).await.unwrap();
    let found = cells(&dataset.array("v").await.unwrap()).await.unwrap();
    let expected: Vec<Value> = (0..1200).map(|at| f64::from(at % 30 + 2).into()).collect();
    assert_eq!(found, expected);
}

/// A folder with only some of the objects is no empty table.
#[tokio::test]
async fn halves_of_repositories_are_errors() {
    for (spec, root) in [("spec1", "refs"), ("spec2", "repo")] {
        let temporary = tempfile::tempdir().unwrap();
        let copy = temporary.path().join("half");
        crate::tests::copy(Path::new(&repository(spec)), &copy);
        let root = copy.join(root);
        match root.is_dir() {
            true => std::fs::remove_dir_all(root).unwrap(),
            false => std::fs::remove_file(root).unwrap(),
        }
        let error = open(copy.to_str().unwrap(), ArrayOptions::default()).await.unwrap_err();
        assert!(error.to_string().contains("a part of it is missing"), "{error}");
        let copy = temporary.path().join("other");
        crate::tests::copy(Path::new(&repository(spec)), &copy);
        std::fs::remove_dir_all(copy.join("snapshots")).unwrap();
        let error = open(copy.to_str().unwrap(), ArrayOptions::default()).await.unwrap_err();
        assert!(error.to_string().contains("which is not there"), "{error}");
        std::fs::remove_dir_all(copy.join("manifests")).unwrap();
    }
    let zarr = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/sea.zarr");
    assert!(open(zarr, ArrayOptions::default()).await.unwrap().names().contains(&"sst".to_owned()));
}

#[tokio::test]
async fn totals_come_from_manifests() {
    for spec in SPECS {
        let dataset = open(&repository(spec), ArrayOptions::default()).await.unwrap();
        let needs = gridfusion_core::source::Needs { stored: true, statistics: false };
        let facts = dataset.group().info(None, needs).await.unwrap();
        let stored = |name: &str| {
            let found = facts.iter().find(|it| it.name == name).unwrap();
            (found.chunks, found.stored_chunks)
        };
        assert_eq!(stored("split"), (Some(9), Some(4)));
        assert_eq!(stored("virtual"), (Some(5), Some(4)));
        assert_eq!(stored("absent"), (Some(2), Some(0)));
        assert_eq!(stored("deep/inner/sharded"), (Some(6), Some(4)));
        assert_eq!(stored("scalar"), (Some(1), Some(1)));
    }
}
