//! `COPY … TO` Zarr stores with chunks in Blosc.

use std::path::PathBuf;

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
