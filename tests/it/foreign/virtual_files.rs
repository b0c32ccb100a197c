//! Virtual datasets of HDF5, whose cells are in other files. `crates/cf/tests/data/hdf5/virtual/make.py` writes the files.

use std::path::Path;

use datafusion::prelude::SessionContext;
use gridfusion::GridfusionSessionContextExt;

use super::external_files::{compare, expected as expected_by_h5py, verify};
use crate::sql::ways_in::copy_folder;
use crate::support::{query, reducing, rows_from, shipped};
use crate::verify::tet::findings;

const FOLDER: &str = "crates/cf/tests/data/hdf5/virtual";

/// A session in which quoted paths are tables.
fn session(partitions: usize, batch_size: usize) -> SessionContext {
    let ctx = reducing(partitions, batch_size);
    ctx.enable_gridfusion_urls();
    ctx
}

/// Cell (y, x) of a part.
fn part(number: i64, y: i64, x: i64) -> i64 {
    100 * number + 5 * y + x
}

/// The cells of a virtual dataset in row-major order, as the script defines them.
fn expected(dataset: &str) -> Vec<i64> {
    let grid = |ys: i64, xs: i64, cell: &dyn Fn(i64, i64) -> i64| -> Vec<i64> {
        (0..ys * xs).map(|at| cell(at / xs, at % xs)).collect()
    };
    match dataset {
        "stack" => (0..4)
            .flat_map(|at| grid(4, 5, &|y, x| if at < 3 { part(at, y, x) } else { -1 }))
            .collect(),
        "rows" => grid(12, 5, &|y, x| part(y / 4, y % 4, x)),
        "every_second" => grid(1, 12, &|_, x| if x % 2 == 0 { x / 2 } else { -1 }),
        "strided" => grid(2, 3, &|y, x| part(1, 1 + 2 * y, 2 * x)),
        "inner" => grid(6, 6, &|y, x| match (y, x) {
            (1..3, 2..5) => part(2, y + 1, x - 1),
            _ => -1,
        }),
        "second" => grid(4, 5, &|y, x| part(0, y, x) + 50),
        "column" => grid(1, 4, &|_, y| part(0, y, 3)),
        _ => unreachable!(),
    }
}

async fn cells(file: &str, dataset: &str, partitions: usize) -> Vec<i64> {
    let ctx = session(partitions, 7);
    let rank = match dataset {
        "stack" => "dim_0, dim_1, dim_2",
        "every_second" | "own" | "column" => "dim_0",
        _ => "dim_0, dim_1",
    };
    let sql = format!("SELECT value FROM '{file}#{dataset}' ORDER BY {rank}");
    let rows = rows_from(&ctx, &sql).await;
    rows.into_iter().map(|row| row[0].parse().unwrap()).collect()
}

#[tokio::test]
async fn cells_are_those_of_the_other_datasets() {
    for file in ["old.h5", "latest.h5"] {
        let file = shipped(&format!("{FOLDER}/{file}"));
        for dataset in ["stack", "rows", "every_second", "strided", "inner", "second", "column"] {
            for partitions in [1, 3] {
                let found = cells(&file, dataset, partitions).await;
                assert_eq!(found, expected(dataset), "{file} {dataset}");
            }
        }
        let ctx = session(2, 8192);
        let sql = format!("SELECT value FROM '{file}#texts' ORDER BY dim_0, dim_1");
        let texts = rows_from(&ctx, &sql).await.concat();
        assert_eq!(texts, ["0 0", "0 1", "0 2", "1 0", "1 1", "1 2"]);
        let sql = format!("SELECT sum(value) FROM '{file}#rows' WHERE dim_0 = 6 AND dim_1 > 2");
        assert_eq!(rows_from(&ctx, &sql).await[0][0], (part(1, 2, 3) + part(1, 2, 4)).to_string());
    }
}

#[tokio::test]
async fn what_is_not_read_is_named_and_hides_nothing() {
    let ctx = session(1, 8192);
    for file in ["old.h5", "latest.h5"] {
        let file = shipped(&format!("{FOLDER}/{file}"));
        for (dataset, part) in [
            ("wide", "maps cells of shape [4, 5] to cells of shape [20]"),
            ("above", "not below the folder"),
            ("root", "not below the folder"),
            ("through", "not below the folder"),
        ] {
            let sql = format!("SELECT sum(value) FROM '{file}#{dataset}'");
            let error = query(&ctx, &sql).await.unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("orrupt"), "{dataset}: {error}");
        }
        assert_eq!(cells(&file, "own", 1).await, [0, 1, 2, 3, 4, 5]);
    }
}

/// Virtual datasets of virtual ones, with cells of other types, single cells of the last axis, and cells that were never
/// written.
#[tokio::test]
async fn virtual_datasets_of_virtual_datasets() {
    let (ctx, file) = (session(2, 7), shipped(&format!("{FOLDER}/nested.h5")));
    for (name, cells) in expected_by_h5py(&format!("{FOLDER}/nested.json")) {
        compare(&ctx, &file, &name, &cells).await;
    }
    for (name, part) in [
        ("deep_16", "more than 16 deep"),
        ("self", "whose cells are its own"),
        ("self_by_name", "whose cells are its own"),
        ("here", "whose cells are its own"),
        ("there", "whose cells are its own"),
        ("of_half", "cells of f32, which are f16 in \"half\""),
        ("of_nan", "NaN in cells of f64 as i32"),
        ("of_refused", "not below the folder"),
        ("pieces", "more than 65536 pieces"),
    ] {
        let error = query(&ctx, &format!("SELECT sum(value) FROM '{file}#{name}'")).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("orrupt"), "{name}: {error}");
    }
    // Unsupported cells are warnings, whenever they show.
    let report = verify(&file).await;
    assert!(report.is_ok(), "{}", findings(&report));
    assert!(findings(&report).contains("more than 65536 pieces"), "{}", findings(&report));
}

/// Virtual datasets whose lengths are those of their sources, which grew after the lengths were stored, and of numbered
/// sources. `crates/cf/tests/data/hdf5/growing/make.py` writes them.
#[tokio::test]
async fn virtual_datasets_grow_with_their_sources() {
    const GROWING: &str = "crates/cf/tests/data/hdf5/growing";
    let ctx = session(2, 7);
    let mut seen = 0;
    for (name, known) in expected_by_h5py(&format!("{GROWING}/virtual.json")) {
        let shape: Vec<u64> = serde_json::from_value(known[0].clone()).unwrap();
        let cells = known[1].as_array().unwrap();
        for file in ["virtual.h5", "latest.h5"] {
            let file = shipped(&format!("{GROWING}/{file}"));
            if ["twice", "fixed_of_line", "more_of_line"].contains(&name.as_str()) {
                // Cells that h5py reads depend on whether the other dataset is open.
                let sql = format!("SELECT sum(value) FROM '{file}#{name}'");
                let error = query(&ctx, &sql).await.unwrap_err().to_string();
                assert!(error.contains("the virtual dataset \"line\", which grows"), "{error}");
                continue;
            }
            compare(&ctx, &file, &name, cells).await;
            let found = shape_of(&ctx, &file, &name, shape.len()).await;
            assert_eq!(found, shape, "{name}");
            seen += 1;
        }
    }
    assert_eq!(seen, 2 * 27);
    let report = verify(&shipped(&format!("{GROWING}/virtual.h5"))).await;
    let said = findings(&report);
    assert_eq!(said.trim().lines().count(), 4, "{said}");
    assert_eq!(said.matches("which grows").count(), 3, "{said}");
    assert!(said.contains("\"shorts\", whose 2 cells end within the first"), "{said}");
}

/// Labels that grow are those of the data that grow with them.
#[tokio::test]
async fn labels_grow_with_their_data() {
    let file = shipped("crates/cf/tests/data/hdf5/growing/labels.h5");
    let sql = format!("SELECT hours, value FROM '{file}#warmth' WHERE hours > 4 ORDER BY hours");
    assert_eq!(rows_from(&session(2, 7), &sql).await, [["5", "5.0"], ["6", "6.0"]]);
}

/// One more than the greatest number along each axis, which no cell has if an axis is empty.
async fn shape_of(ctx: &SessionContext, file: &str, name: &str, rank: usize) -> Vec<u64> {
    let ends = (0..rank).map(|axis| format!("coalesce(max(dim_{axis}) + 1, 0)"));
    let ends = ends.collect::<Vec<_>>().join(", ");
    let rows = rows_from(ctx, &format!("SELECT {ends} FROM '{file}#{name}'")).await;
    rows[0].iter().map(|end| end.parse().unwrap()).collect()
}

/// Numbers of files end where one is missing, whenever a table is opened.
#[tokio::test]
async fn numbered_sources_may_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(Path::new(&shipped("crates/cf/tests/data/hdf5/growing")), folder.path());
    let file = folder.path().join("virtual.h5").display().to_string();
    let part = |number: u64| folder.path().join(format!("parts/part_{number}.h5"));
    let stack = async || {
        let ctx = session(1, 8192);
        let sql = format!("SELECT count(*), sum(value) FROM '{file}#stack'");
        rows_from(&ctx, &sql).await.remove(0)
    };
    assert_eq!(stack().await, ["18", "1845"]);
    // Number 4 is there, so number 3 joins it.
    std::fs::copy(part(2), part(3)).unwrap();
    assert_eq!(stack().await, ["30", "5475"]);
    std::fs::remove_file(part(1)).unwrap();
    assert_eq!(stack().await, ["6", "15"]);
    std::fs::remove_file(part(0)).unwrap();
    assert_eq!(stack().await[0], "0");
}

/// A link in the folder does not open the files beside the folder.
#[cfg(unix)]
#[tokio::test]
async fn links_of_the_file_system_lead_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(Path::new(&shipped(FOLDER)), &folder.path().join("inside"));
    let (outside, name) = (folder.path().join("outside.h5"), "inside/parts/part_0.h5");
    std::fs::rename(folder.path().join(name), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, folder.path().join(name)).unwrap();
    let file = folder.path().join("inside/old.h5");
    let sql = format!("SELECT sum(value) FROM '{}#stack'", file.display());
    let error = query(&session(1, 8192), &sql).await.unwrap_err().to_string();
    assert!(error.contains("not below the folder"), "{error}");
}

/// The signature lies behind the bytes that tell what other files are.
#[tokio::test]
async fn hdf5_lies_behind_user_blocks_of_any_length() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(shipped("crates/cf/tests/data/hdf5/legal.h5")).unwrap();
    let file = folder.path().join("moved.h5");
    for len in [512, 64 << 10, 256 << 10] {
        std::fs::write(&file, [&vec![7; len][..], &bytes].concat()).unwrap();
        let ctx = session(1, 8192);
        let sql = format!("SELECT sum(value) FROM '{}#a'", file.display());
        assert_eq!(rows_from(&ctx, &sql).await, [["6.0"]], "{len}");
        let sql = format!(
            "SELECT sum(value) FROM read_netcdf('{}', dataset => 'y', \"group\" => 'same/inner')",
            file.display()
        );
        assert_eq!(rows_from(&ctx, &sql).await, [["1"]], "{len}");
    }
}
