//! Damaged `.tet` files: every truncation and every flipped byte of small files, and impossible sizes.
//!
//! The rule: no panic, no hang, no huge allocation, and never a wrong number of rows. A flipped byte in a
//! payload changes a value, which a format without checksums cannot notice. The tests therefore check the
//! number of rows, and not the values.

use std::sync::Arc;

use futures::FutureExt;
use gridfusion::array::ReadOptions;
use gridfusion::io::MemorySource;
use gridfusion::{Error, ErrorKind, GridTable};
use gridfusion_tet::{TetReader, open_dataset};
use serde_json::json;

use crate::support::{F32, I16, Layout, TestDataset, cell, query, session, tet_bytes};

/// Opens bytes as a file and reads every dataset. Returns the rows of each, or the first error.
async fn read_all(bytes: Vec<u8>) -> Result<Vec<usize>, String> {
    let source = Arc::new(MemorySource::new("damaged.tet", bytes));
    let file = TetReader::open(source).await.map_err(|error| named(&error))?;
    let mut counts = Vec::new();
    for dataset in file.dataset_names() {
        let array = open_dataset(&file, &dataset, &ReadOptions::default())
            .await
            .map_err(|error| named(&error))?;
        let expected = array.grid().cells();
        let ctx = session(1, 64);
        ctx.register_table("t", Arc::new(GridTable::new(Arc::new(array))))
            .map_err(|e| e.to_string())?;
        if expected > 10_000 {
            // A damaged shape may be of any size, so the rows are only counted.
            assert_eq!(cell(&ctx, "SELECT count(*) FROM t").await, expected.to_string());
            continue;
        }
        let batches = query(&ctx, "SELECT * FROM t").await.map_err(|error| error.to_string())?;
        let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(rows as u64, expected, "rows of \"{dataset}\"");
        counts.push(rows);
    }
    Ok(counts)
}

/// The text of an error, which must name the file and must not be `Internal`.
fn named(error: &Error) -> String {
    assert_eq!(error.file(), Some("damaged.tet"), "{error}");
    assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
    error.to_string()
}

/// Three small files: raw data with labels, zstd with a footer of version 1, and no footer.
fn small_files() -> [Vec<u8>; 3] {
    let floats = |n: usize| (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect::<Vec<u8>>();
    let shorts = |n: usize| (0..n).flat_map(|i| (i as i16).to_le_bytes()).collect::<Vec<u8>>();
    let labelled =
        TestDataset::new("value", F32, &[2, 3], &[1, 2], floats(6)).with_metadata(json!({
            "dim_names": ["time", "x"], "attrs": {"_FillValue": "-1"},
            "coords": {"time": {"labels": ["2024-01-01", "2024-01-02"]}},
        }));
    let packed = TestDataset::new("p", F32, &[5], &[2], floats(5)).with_zstd(true);
    let x = TestDataset::new("x", I16, &[3], &[3], shorts(3))
        .with_metadata(json!({"dim_names": ["x"]}));
    let zones = json!({"version": 1, "chunks": [
        {"dataset_id": 0, "chunk_index": [0, 0], "element_count": 2, "null_count": 0}]});
    let with = |version| Layout { history_version: Some(version), ..Layout::default() };
    [
        tet_bytes(&[labelled, x.clone()], &Layout { zones: Some(zones), ..with(2) }),
        tet_bytes(std::slice::from_ref(&packed), &with(1)),
        tet_bytes(&[x, packed], &Layout::default()),
    ]
}

#[tokio::test]
async fn every_truncation_is_an_error() {
    for file in small_files() {
        assert!(read_all(file.clone()).await.is_ok());
        for len in 0..file.len() {
            let result = read_all(file[..len].to_vec()).await;
            assert!(result.is_err(), "a file cut at byte {len} of {} still reads", file.len());
        }
    }
}

#[tokio::test]
async fn every_flipped_byte_is_survived() {
    let (mut refused, mut total) = (0, 0);
    for file in small_files() {
        for at in 0..file.len() {
            for flip in [0x01, 0x80, 0xFF] {
                let mut bytes = file.clone();
                bytes[at] ^= flip;
                let outcome = std::panic::AssertUnwindSafe(read_all(bytes)).catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_| panic!("byte {at} ^ {flip:#x}: a panic"));
                refused += usize::from(outcome.is_err());
                total += 1;
            }
        }
    }
    assert!(refused > total / 5, "only {refused} of {total} damaged files were noticed");
}

/// Overwrites eight bytes.
fn with_u64(mut file: Vec<u8>, at: usize, value: u64) -> Vec<u8> {
    file[at..at + 8].copy_from_slice(&value.to_le_bytes());
    file
}

#[tokio::test]
async fn lies_about_sizes_are_refused_with_their_place() {
    let data = (0..4_u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    let file = tet_bytes(&[TestDataset::new("value", F32, &[4], &[2], data)], &Layout::default());
    // Superblock 32, directory length 8, one record of 40, then the index header and two rows.
    let (record, index) = (40, 80);
    assert_eq!(&file[index..index + 4], b"TIDX");
    let row = index + 32;
    for (at, value, expected) in [
        (16, u64::MAX, "chunk index of"),
        (24, 7, "chunk index"),
        (32, 1 << 60, "dataset records"),
        (record, u64::from(u32::MAX), "needs 4294967295 bytes"),
        (index + 8, u64::MAX / 2, "do not fill"),
        (row + 72, u64::MAX, "payloads end at byte"),
        (row + 80, 1 << 50, "expected 8"),
        (row + 88, 1 << 50, "of a raw tile"),
        (row + 96, 9, "codec 9, expected 0 (raw) or 1 (zstd)"),
        (row, 5, "no row for chunk [0]"),
        (row + 8, 1, "no row for chunk [0]"),
    ] {
        let error = read_all(with_u64(file.clone(), at, value)).await.unwrap_err();
        assert!(error.contains(expected) && error.contains("damaged.tet"), "byte {at}: {error}");
        assert!(error.contains("at byte"), "byte {at}: {error}");
    }
}

/// Arrays with shapes that no memory could hold open and count their rows; reading values is an error.
#[tokio::test]
async fn impossible_shapes_cost_nothing() {
    let file =
        tet_bytes(&[TestDataset::new("value", F32, &[1], &[1], vec![0; 4])], &Layout::default());
    let (shape, chunk) = (40 + 16 + 8, 40 + 16 + 16);
    for (len, edge) in [(1 << 60, 1), (1 << 61, 1 << 61), (1 << 40, 1 << 40), (u64::MAX, 1), (3, 0)]
    {
        let file = with_u64(with_u64(file.clone(), shape, len), chunk, edge);
        let source = Arc::new(MemorySource::new("huge.tet", file));
        let opened = TetReader::open(source).await.unwrap();
        let Ok(array) = open_dataset(&opened, "value", &ReadOptions::default()).await else {
            continue;
        };
        let ctx = session(2, 8192);
        ctx.register_table("t", Arc::new(GridTable::new(Arc::new(array)))).unwrap();
        assert_eq!(cell(&ctx, "SELECT count(*) FROM t").await, len.to_string());
        for sql in ["SELECT sum(value) FROM t", "SELECT value FROM t WHERE dim_0 = 5"] {
            let error = query(&ctx, sql).await.unwrap_err().to_string();
            assert!(error.contains("huge.tet") && error.contains("at byte"), "{error}");
        }
    }
}

/// Axes that no memory could list are never listed, with no cells and with a single chunk.
#[tokio::test]
async fn long_axes_are_never_listed() {
    let dataset = TestDataset::new("value", F32, &[1, 1], &[1, 1], vec![0; 4]);
    let file = tet_bytes(&[dataset], &Layout::default());
    let (shape, chunk) = (64, 80);
    let empty = with_u64(with_u64(file.clone(), shape, 1 << 60), shape + 8, 0);
    let wide = with_u64(with_u64(file, shape, 1 << 40), chunk, 1 << 40);
    for (bytes, count) in [(empty, 0_u64), (wide, 1 << 40)] {
        let opened = TetReader::open(Arc::new(MemorySource::new("long.tet", bytes))).await.unwrap();
        let array = open_dataset(&opened, "value", &ReadOptions::default()).await.unwrap();
        let ctx = session(2, 8192);
        ctx.register_table("t", Arc::new(GridTable::new(Arc::new(array)))).unwrap();
        assert_eq!(cell(&ctx, "SELECT count(*) FROM t").await, count.to_string());
        let batches = query(&ctx, "SELECT dim_0, dim_1 FROM t LIMIT 10").await.unwrap();
        let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(rows as u64, count.min(10));
        query(&ctx, "EXPLAIN SELECT * FROM t WHERE dim_1 = 0 OR dim_0 = 7").await.unwrap();
    }
}

/// A tile that declares a terabyte, but has four megabytes, does not allocate a terabyte.
#[tokio::test]
async fn a_decompression_bomb_is_cut_off() {
    let zeros = vec![0_u8; 4_000_000];
    let dataset = TestDataset::new("value", F32, &[1_000_000], &[1_000_000], zeros).with_zstd(true);
    let file = tet_bytes(&[dataset], &Layout::default());
    let (shape, chunk, raw_len) = (64, 72, 80 + 32 + 80);
    // The frame has four megabytes, but the file now declares one kilobyte: the rest is not decoded.
    let small = with_u64(with_u64(with_u64(file.clone(), shape, 256), chunk, 256), raw_len, 1024);
    let error = read_all(small).await.unwrap_err();
    assert!(
        error.contains("corrupt chunk payload") && error.contains("expected 1024 bytes"),
        "{error}"
    );
    let large =
        with_u64(with_u64(with_u64(file, shape, 1 << 38), chunk, 1 << 38), raw_len, 1 << 40);
    let source = Arc::new(MemorySource::new("bomb.tet", large));
    let opened = TetReader::open(source).await.unwrap();
    let array = open_dataset(&opened, "value", &ReadOptions::default()).await.unwrap();
    let ctx = session(1, 8192);
    ctx.register_table("t", Arc::new(GridTable::new(Arc::new(array)))).unwrap();
    let error = query(&ctx, "SELECT value FROM t LIMIT 1").await.unwrap_err().to_string();
    assert!(error.contains("4000000 bytes after decompression"), "{error}");
}

/// One bad dataset or chunk leaves the rest readable.
#[tokio::test]
async fn damage_is_contained() {
    let data = || (0..4_u8).flat_map(|i| f32::from(i).to_le_bytes()).collect::<Vec<u8>>();
    let datasets = ["a", "b"].map(|name| TestDataset::new(name, F32, &[4], &[2], data()));
    let mut file = tet_bytes(&datasets, &Layout::default());
    file[44] = 77; // the element type of "a"
    let opened = TetReader::open(Arc::new(MemorySource::new("x.tet", file))).await.unwrap();
    let error = open_dataset(&opened, "a", &ReadOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("\"a\" cannot be read: element type 77, expected 1 to 10"),
        "{error}"
    );
    let array = open_dataset(&opened, "b", &ReadOptions::default()).await.unwrap();
    let ctx = session(1, 8192);
    ctx.register_table("b", Arc::new(GridTable::new(Arc::new(array)))).unwrap();
    assert_eq!(cell(&ctx, "SELECT sum(value) FROM b").await, "6.0");

    let mut file = tet_bytes(&datasets[..1], &Layout::default());
    let first_row = 80 + 32;
    file[first_row + 96] = 2; // the codec of the first chunk
    let opened = TetReader::open(Arc::new(MemorySource::new("x.tet", file))).await.unwrap();
    let array = open_dataset(&opened, "a", &ReadOptions::default()).await.unwrap();
    let ctx = session(1, 8192);
    ctx.register_table("a", Arc::new(GridTable::new(Arc::new(array)))).unwrap();
    assert_eq!(cell(&ctx, "SELECT sum(value) FROM a WHERE dim_0 >= 2").await, "5.0");
    assert!(query(&ctx, "SELECT sum(value) FROM a").await.is_err());
}
