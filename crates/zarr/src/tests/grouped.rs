//! Arrays that are written to groups of stores.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use gridfusion_core::io::LocalFolder;
use gridfusion_core::tile::Objects;
use gridfusion_core::{ErrorKind, Result};
use serde_json::Value;

use super::appended::{Failing, append, make, read_in, write};
use crate::{ZarrEncoding, ZarrGroup, open};

fn local(path: &Path) -> Arc<LocalFolder> {
    Arc::new(LocalFolder::open(path, false).unwrap())
}

async fn group(path: &Path, name: &str) -> Result<ZarrGroup> {
    ZarrGroup::open(&Objects::many_rewritten(local(path)), name).await
}

async fn put(path: &Path, name: &str) -> Result<()> {
    write(local(path), ZarrEncoding::default(), group(path, name).await?).await
}

async fn names(path: &Path) -> Vec<String> {
    open(path.to_str().unwrap()).await.unwrap().names().iter().map(ToString::to_string).collect()
}

/// Returns the arrays of these groups, whose paths end in `/`.
fn arrays(groups: &[&str]) -> Vec<String> {
    let arrays =
        groups.iter().flat_map(|group| ["v", "w", "x", "y"].map(|it| format!("{group}{it}")));
    let mut arrays: Vec<String> = arrays.collect();
    arrays.sort();
    arrays
}

async fn sorted_names(path: &Path) -> Vec<String> {
    let mut names = names(path).await;
    names.sort();
    names
}

#[tokio::test]
async fn groups_are_written_beside_each_other() {
    for is_consolidated in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        make(path, ZarrEncoding::default(), is_consolidated).await;
        let mut there = vec![""];
        for name in ["forecast/daily/", "forecast/hourly/", "other/"] {
            put(path, name).await.unwrap();
            there.push(name);
            assert_eq!(sorted_names(path).await, arrays(&there), "{is_consolidated}");
            let first = read_in(path, "").await.unwrap();
            assert_eq!(read_in(path, name).await.unwrap(), first, "{name}");
        }
        let root: Value =
            serde_json::from_slice(&fs::read(path.join("zarr.json")).unwrap()).unwrap();
        assert_eq!(root.get("consolidated_metadata").is_some(), is_consolidated);
    }
}

#[tokio::test]
async fn a_new_store_begins_with_a_group() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "forecast/daily").await.unwrap();
    assert_eq!(sorted_names(folder.path()).await, arrays(&["forecast/daily/"]));
    assert_eq!(read_in(folder.path(), "forecast/daily/").await.unwrap().len(), 24);
    for path in ["", "forecast", "forecast/daily"] {
        assert!(folder.path().join(path).join("zarr.json").exists(), "{path}");
    }
}

#[tokio::test]
async fn groups_that_have_no_place_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    make(path, ZarrEncoding::default(), true).await;
    put(path, "a/b").await.unwrap();
    fs::create_dir_all(path.join("left/c")).unwrap();
    fs::write(path.join("left/c/0"), "half").unwrap();
    fs::create_dir_all(path.join("stale")).unwrap();
    fs::copy(path.join("a/zarr.json"), path.join("stale/zarr.json")).unwrap();
    for (name, message) in [
        ("", "has its root already"),
        ("a", "has its group \"a\" already"),
        ("a/b", "has its group \"a/b\" already"),
        ("v", "\"v\" is no group"),
        ("a/b/v/c", "\"a/b/v\" is no group"),
        ("left", "is in its folder; remove the folder"),
        ("stale/d", "does not list the group \"stale\""),
        ("a//b", "\"\" cannot be the name of a group"),
        ("a/..", "\"..\" cannot be the name of a group"),
        ("__a", "\"__a\" cannot be"),
    ] {
        let error = put(path, name).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{name}: {error}");
        assert!(error.to_string().contains(message), "{name}: {error}");
    }
    put(path, "a/d").await.unwrap();
    assert_eq!(sorted_names(path).await, arrays(&["", "a/b/", "a/d/"]));
}

/// A dimension of a group is another one than that of the root, if the group has its labels.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_root_becomes_longer_beside_groups() {
    for is_consolidated in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        make(path, ZarrEncoding::default(), is_consolidated).await;
        put(path, "a/b").await.unwrap();
        append(path, &[3, 4], None).await.unwrap();
        assert_eq!(read_in(path, "").await.unwrap().len(), 40);
        assert_eq!(read_in(path, "a/b/").await.unwrap().len(), 24);
    }
}

/// Each call fails before or after its effect: the group is there as a whole, or no part of it is.
#[tokio::test]
async fn each_call_may_fail() {
    for is_consolidated in [true, false] {
        for (is_killed, has_effect) in [(false, false), (false, true), (true, false), (true, true)]
        {
            let mut seen = [0, 0];
            for fails in 0.. {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path();
                make(path, ZarrEncoding::default(), is_consolidated).await;
                let failing = Arc::new(Failing::new(path, fails, is_killed, has_effect));
                let place = group(path, "a/b").await.unwrap();
                let written = write(failing, ZarrEncoding::default(), place).await;
                let found = sorted_names(path).await;
                let is_there = found == arrays(&["", "a/b/"]);
                assert!(is_there || found == arrays(&[""]), "{fails} {found:?}");
                seen[usize::from(is_there)] += 1;
                if is_there {
                    let first = read_in(path, "").await.unwrap();
                    assert_eq!(read_in(path, "a/b/").await.unwrap(), first);
                }
                if written.is_ok() {
                    assert!(is_there);
                    break;
                }
            }
            assert_eq!(seen[1], 1 + usize::from(has_effect));
        }
    }
}

#[tokio::test]
async fn of_two_programs_one_wins() {
    for (is_consolidated, other, is_refused) in
        [(true, "b", true), (true, "c", true), (false, "a", true)]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        make(path, ZarrEncoding::default(), is_consolidated).await;
        let (first, second) = (group(path, "b").await.unwrap(), group(path, other).await.unwrap());
        put(path, if is_consolidated { "b" } else { "a" }).await.unwrap();
        drop(first);
        let outcome = write(local(path), ZarrEncoding::default(), second).await;
        assert_eq!(outcome.is_err(), is_refused, "{other}");
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Usage);
        let there = if is_consolidated { "b/" } else { "a/" };
        assert_eq!(sorted_names(path).await, arrays(&["", there]), "{other}");
        assert_eq!(read_in(path, there).await.unwrap(), read_in(path, "").await.unwrap());
    }
}

#[tokio::test]
#[ignore = "needs GRIDFUSION_READERS_PYTHON: a Python with zarr and xarray"]
async fn zarr_python_reads_groups() {
    let folder = tempfile::tempdir().unwrap();
    for (name, is_consolidated) in
        [("0.zarr", Some(true)), ("1.zarr", Some(false)), ("2.zarr", None)]
    {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        if let Some(is_consolidated) = is_consolidated {
            make(&path, ZarrEncoding::default(), is_consolidated).await;
        }
        put(&path, "forecast/daily").await.unwrap();
        put(&path, "forecast/hourly").await.unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/foreign/read_groups.py");
    let python = std::env::var("GRIDFUSION_READERS_PYTHON").unwrap();
    let outcome = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    let [text, errors] = [&outcome.stdout, &outcome.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(outcome.status.success(), "{text}{errors}");
    assert!(text.contains("3 stores"), "{text}");
}
