//! `COPY … TO` groups of Zarr stores, and chunks in Blosc.

use std::path::{Path, PathBuf};

use datafusion::prelude::SessionContext;

use crate::support::{cell, query, reducing, rows_from};

struct Case {
    ctx: SessionContext,
    folder: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        Self { ctx: reducing(2, 64), folder: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn copy(&self, rows: &str, name: &str, options: &str) -> Result<(), String> {
        let to = self.at(name);
        let sql = format!("COPY ({rows}) TO '{}' OPTIONS ({options})", to.display());
        query(&self.ctx, &sql).await.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn sum(&self, name: &str, dataset: &str) -> String {
        let at = self.at(name);
        cell(
            &self.ctx,
            &format!("SELECT sum(value) FROM read_zarr('{}', '{dataset}')", at.display()),
        )
        .await
    }
}

fn rows(factor: u32) -> String {
    format!(
        "SELECT x, y, CAST(x * y * {factor} AS REAL) AS v FROM unnest(range(0, 30)) AS a(x), unnest(range(0, 20)) AS b(y)"
    )
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn grids_of_one_store_have_groups_of_their_own() {
    let case = Case::new();
    let grid = "'dimensions' 'x, y'";
    case.copy(&rows(1), "new.zarr", &format!("{grid}, 'group' 'forecast/daily'")).await.unwrap();
    case.copy(&rows(2), "new.zarr", &format!("{grid}, 'group' '/forecast/hourly/'")).await.unwrap();
    case.copy(&rows(3), "root.zarr", grid).await.unwrap();
    case.copy(&rows(4), "root.zarr", &format!("{grid}, 'group' 'more', 'chunks' 'x=7'"))
        .await
        .unwrap();
    let total = |factor: u32| (435 * 190 * factor).to_string() + ".0";
    for (name, dataset, factor) in [
        ("new.zarr", "forecast/daily/v", 1),
        ("new.zarr", "forecast/hourly/v", 2),
        ("root.zarr", "v", 3),
        ("root.zarr", "more/v", 4),
    ] {
        assert_eq!(case.sum(name, dataset).await, total(factor), "{name} {dataset}");
    }
    let before = files(&case.at("root.zarr"));
    for (options, words) in [
        (format!("{grid}, 'group' 'more'"), "has its group \"more\" already"),
        (format!("{grid}, 'group' 'v/inner'"), "v"),
        (format!("{grid}, 'group' '../out'"), "cannot be the name of a group"),
        (format!("{grid}, 'group' 'other', 'mode' 'overwrite'"), "give one of them"),
        (format!("'group' 'more', 'mode' 'append'"), "is for new arrays"),
        (grid.to_owned(), ""),
    ] {
        let error = case.copy(&rows(5), "root.zarr", &options).await.unwrap_err();
        assert!(error.contains(words), "{options}: {error}");
        assert_eq!(files(&case.at("root.zarr")), before, "{options}");
    }
    // A row that comes twice leaves nothing behind.
    let twice = format!("{} UNION ALL SELECT 1, 1, CAST(1 AS REAL)", rows(1));
    case.copy(&twice, "root.zarr", &format!("{grid}, 'group' 'twice'")).await.unwrap_err();
    assert_eq!(files(&case.at("root.zarr")), before);
}

#[tokio::test]
async fn chunks_are_written_in_blosc() {
    let case = Case::new();
    let total = (435 * 190).to_string() + ".0";
    for (at, (codec, more)) in [
        ("blosc", ""),
        ("blosc:zstd", ", 'level' '9'"),
        ("blosc:lz4", ", 'shards' 'x=20', 'chunks' 'x=5,y=20'"),
        ("blosc:zlib", ", 'level' '0', 'checksums' 'true'"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{at}.zarr");
        let options = format!("'dimensions' 'x, y', 'codec' '{codec}'{more}");
        case.copy(&rows(1), &name, &options).await.unwrap();
        assert_eq!(case.sum(&name, "v").await, total, "{codec}");
        let info = format!(
            "SELECT codec FROM array_info('{}') WHERE dataset = 'v'",
            case.at(&name).display()
        );
        assert!(rows_from(&case.ctx, &info).await[0][0].contains("blosc"), "{codec}");
    }
    for (options, words) in [
        ("'codec' 'blosc:snappy'", "there is no codec 'blosc:snappy'"),
        ("'codec' 'blosc', 'level' '10'", "0 to 9"),
        ("'codec' 'blosc', 'level' '-1'", "0 to 9"),
    ] {
        let options = format!("'dimensions' 'x, y', {options}");
        let error = case.copy(&rows(1), "bad.zarr", &options).await.unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    assert!(!case.at("bad.zarr").exists());
}
