//! Datasets of HDF5 whose cells are in external files. `crates/cf/tests/data/hdf5/external/make.py` writes the files, and what
//! h5py reads from them.

use std::path::Path;

use datafusion::prelude::SessionContext;
use gridfusion::GridfusionSessionContextExt;
use gridfusion::io::RemoteLimits;
use gridfusion::verify::{Depth, Progress, Report};
use gridfusion::{ArrayOpener, ArrayOptions};
use serde_json::Value;

use crate::io::remote::Link;
use crate::sql::ways_in::copy_folder;
use crate::support::object_server::ObjectServer;
use crate::support::{query, reducing, rows_from, shipped};
use crate::verify::tet::{failed, findings};

const FOLDER: &str = "crates/cf/tests/data/hdf5/external";

fn session() -> SessionContext {
    let ctx = reducing(2, 7);
    ctx.enable_gridfusion_urls();
    ctx
}

/// The names of datasets, with their cells in row-major order as h5py reads them.
pub(super) fn expected(path: &str) -> Vec<(String, Vec<Value>)> {
    let json = std::fs::read_to_string(shipped(path)).unwrap();
    let all: serde_json::Map<String, Value> = serde_json::from_str(&json).unwrap();
    all.into_iter().map(|(name, cells)| (name, cells.as_array().unwrap().clone())).collect()
}

/// Compares the cells of a dataset with those that are expected.
pub(super) async fn compare(ctx: &SessionContext, file: &str, name: &str, expected: &[Value]) {
    let columns = rows_from(ctx, &format!("DESCRIBE '{file}#{name}'")).await;
    let value = columns.last().unwrap()[0].clone();
    let dimensions: Vec<String> =
        columns[..columns.len() - 1].iter().map(|it| it[0].clone()).collect();
    let order = match dimensions.is_empty() || name == "lat" {
        true => String::new(),
        false => format!(" ORDER BY {}", dimensions.join(", ")),
    };
    let rows = rows_from(ctx, &format!("SELECT {value} FROM '{file}#{name}'{order}")).await;
    assert_eq!(rows.len(), expected.len(), "{name}");
    for (found, expected) in rows.concat().iter().zip(expected) {
        let is_same = match expected {
            Value::String(text) if found == text => true,
            Value::String(text) => text
                .parse::<f64>()
                .is_ok_and(|it| found.parse::<f64>().unwrap() as f32 == it as f32),
            Value::Number(it) if it.is_f64() => {
                it.as_f64().unwrap() as f32 == found.parse::<f64>().unwrap() as f32
            }
            other => found == &other.to_string(),
        };
        assert!(is_same, "{name}: {found}, expected {expected}");
    }
}

pub(super) async fn verify(file: &str) -> Report {
    let opener = ArrayOpener::from_session(&SessionContext::new().state());
    let group = opener.group(file, None, &ArrayOptions::default()).await.unwrap();
    let progress = std::sync::Arc::new(Progress::default());
    group.verify(Depth::Cells, &progress).await.remove(0).1
}

#[tokio::test]
async fn cells_are_those_that_h5py_reads() {
    let (file, ctx) = (shipped(&format!("{FOLDER}/cells.h5")), session());
    for (name, cells) in expected(&format!("{FOLDER}/cells.json")) {
        compare(&ctx, &file, &name, &cells).await;
    }
    let sql = format!("SELECT value FROM '{file}#temperature' WHERE lat = 20 ORDER BY dim_1");
    assert_eq!(rows_from(&ctx, &sql).await.concat(), ["3", "4"]);
}

#[tokio::test]
async fn what_is_not_read_is_named_and_short_files_are_warnings() {
    let (file, ctx) = (shipped(&format!("{FOLDER}/cells.h5")), session());
    for (name, part) in [
        ("split", "raw/a.raw"),
        ("cut", "within a cell of 4 bytes"),
        ("above", "\"../legal.h5\", which is not below the folder"),
        ("root", "\"/etc/passwd\", which is not below the folder"),
        ("through", "not below the folder"),
        ("escaped", "raw/%2e%2e/%2e%2e/legal.h5"),
        ("missing", "\"raw/none.raw\", which is missing"),
        ("big", "\"raw/big.raw\", which is missing"),
    ] {
        let error = query(&ctx, &format!("SELECT sum(value) FROM '{file}#{name}'")).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("orrupt"), "{name}: {error}");
    }
    let report = verify(&file).await;
    assert_eq!(failed(&report), ["arrays"], "{}", findings(&report));
}

/// Parts of files that begin and end within rows and chunks.
#[tokio::test]
async fn parts_of_files_cross_chunks() {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(Path::new(&shipped(FOLDER)), folder.path());
    let cells: Vec<u8> = (0..400_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(folder.path().join("raw/big.raw"), &cells).unwrap();
    let expected = |at: u32| match at {
        0..25_000 => 200 + at,
        25_000..325_001 => 50_000 + at - 25_000,
        _ => at - 325_001,
    };
    let (ctx, file) = (session(), folder.path().join("cells.h5"));
    let sql = format!("SELECT dim_0 * 500 + dim_1, value FROM '{}#big'", file.display());
    let rows = rows_from(&ctx, &sql).await;
    assert_eq!(rows.len(), 350_000);
    for row in rows {
        let [at, found] = [0, 1].map(|column| row[column].parse::<u32>().unwrap());
        assert_eq!(found, expected(at), "cell {at}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn links_of_the_file_system_lead_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(Path::new(&shipped(FOLDER)), &folder.path().join("inside"));
    let (outside, name) = (folder.path().join("outside.raw"), "inside/raw/a.raw");
    std::fs::rename(folder.path().join(name), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, folder.path().join(name)).unwrap();
    let file = folder.path().join("inside/cells.h5");
    let sql = format!("SELECT sum(value) FROM '{}#whole'", file.display());
    let error = query(&session(), &sql).await.unwrap_err().to_string();
    assert!(error.contains("not below the folder"), "{error}");
}

/// In a store, other files are asked for below the folder of the file only.
#[tokio::test]
async fn files_of_stores_lead_nowhere_else() {
    let mut objects = vec![("bucket/legal.h5".to_owned(), vec![9; 100])];
    for name in ["cells.h5", "raw/a.raw", "raw/b.raw", "raw/text.raw", "raw/lat.raw"] {
        let bytes = std::fs::read(shipped(&format!("{FOLDER}/{name}"))).unwrap();
        objects.push((format!("bucket/inside/{name}"), bytes));
    }
    let link = Link::new(ObjectServer::start(objects));
    let ctx = link.session(RemoteLimits::default());
    ctx.enable_gridfusion_urls();
    let file = "s3://bucket/inside/cells.h5";
    for (name, cells) in expected(&format!("{FOLDER}/cells.json")) {
        compare(&ctx, file, &name, &cells).await;
    }
    for name in ["above", "root", "through", "escaped"] {
        let error = query(&ctx, &format!("SELECT sum(value) FROM '{file}#{name}'")).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("not below the folder"), "{name}: {error}");
    }
    let error = query(&ctx, &format!("SELECT sum(value) FROM '{file}#missing'")).await;
    assert!(error.unwrap_err().to_string().contains("\"raw/none.raw\", which is missing"));
}
