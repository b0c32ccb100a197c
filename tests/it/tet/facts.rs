//! The table functions about files, compared with what was written into the files.

use std::fs;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use gridfusion::ArrayOptions;
use gridfusion::array::ReadOptions;
use gridfusion::io::MemorySource;
use gridfusion_tet::{ChunkList, StoredCodec, TetReader, dataset_info, dimension_info};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::support::{
    F64, I16, I64, Layout, TempTet, TestDataset, cell, query, reducing, rows_from, session,
    tet_bytes,
};

fn bytes_of<const N: usize, T>(values: &[T], bytes: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(bytes).collect()
}

/// A dataset of 5 × 3 numbers in chunks of 2 × 2, and its coordinate.
fn datasets() -> Vec<TestDataset> {
    let numbers: Vec<i64> = (0..15).map(|at| i64::MAX - at).collect();
    let levels = [1.5_f64, f64::NAN, -0.0];
    vec![
        TestDataset::new("n", I64, &[5, 3], &[2, 2], bytes_of(&numbers, |it| it.to_le_bytes()))
            .with_zstd(true)
            .with_metadata(json!({
                "dim_names": ["row", "level"],
                "attrs": {"units": "m", "long_name": "a number", "comment": "x"},
            })),
        TestDataset::new("level", F64, &[3], &[3], bytes_of(&levels, |it| it.to_le_bytes()))
            .with_metadata(json!({"dim_names": ["level"], "attrs": {"units": "hPa"}})),
    ]
}

fn zone(dataset: u64, chunk: &[u64], cells: u64, nulls: u64, bounds: [&str; 2]) -> Value {
    json!({
        "dataset_id": dataset, "chunk_index": chunk, "element_count": cells, "null_count": nulls,
        "min_le": bounds[0], "max_le": bounds[1],
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn layout(zones: &[Value]) -> Layout {
    Layout {
        history_version: Some(2),
        history: Some(json!([["convert", "nc", "1700000000"], {"source": "pack"}])),
        zones: Some(json!({"version": 1, "chunks": zones})),
        ..Layout::default()
    }
}

fn call(function: &str, columns: &str, file: &TempTet, rest: &str) -> String {
    format!("SELECT {columns} FROM {function}('{}'{rest})", file.location())
}

#[tokio::test]
async fn a_row_per_dataset() {
    let file = TempTet::new(&tet_bytes(&datasets(), &layout(&[])));
    let columns = "dataset, element_type, shape, chunk_shape, dimensions, chunks, stored_chunks, raw_bytes, codec, \
                   units, long_name, is_coordinate, has_zone_maps, warnings";
    let ctx = reducing(2, 8192);
    let rows = rows_from(&ctx, &call("tet_info", columns, &file, "")).await;
    let n = [
        "n",
        "i64",
        "[5, 3]",
        "[2, 2]",
        "[row, level]",
        "6",
        "6",
        "120",
        "zstd",
        "m",
        "a number",
        "false",
        "false",
        "[]",
    ];
    let level = [
        "level", "f64", "[3]", "[3]", "[level]", "1", "1", "24", "raw", "hPa", "NULL", "true",
        "false", "[]",
    ];
    assert_eq!(rows, [n, level]);
    let rows = rows_from(&ctx, &call("tet_info", "dataset, ratio", &file, ", 'level'")).await;
    assert_eq!(rows, [["level", "1.0"]]);
    let ratio = "ratio = CAST(raw_bytes AS DOUBLE) / stored_bytes";
    assert_eq!(cell(&ctx, &call("tet_info", ratio, &file, ", 'n'")).await, "true");
}

#[tokio::test]
async fn a_row_per_stored_chunk_whatever_their_order() {
    let least = hex(&(i64::MAX - 4).to_le_bytes());
    let greatest = hex(&i64::MAX.to_le_bytes());
    let zones = [
        zone(0, &[0, 0], 4, 0, [&least, &greatest]),
        zone(1, &[0], 3, 1, [&hex(&(-0.0_f64).to_le_bytes()), &hex(&1.5_f64.to_le_bytes())]),
    ];
    let columns = "dataset, chunk, raw_bytes, codec, null_count, min_value, max_value";
    let max = i64::MAX.to_string();
    let mut expected: Vec<Vec<String>> = Vec::new();
    for (chunk, cells) in [(0, 4), (1, 2), (2, 4), (3, 2), (4, 2), (5, 1)] {
        let zone = match chunk {
            0 => ["0".to_owned(), (i64::MAX - 4).to_string(), max.clone()],
            _ => ["NULL", "NULL", "NULL"].map(str::to_owned),
        };
        let at = format!("[{}, {}]", chunk / 2, chunk % 2);
        expected.push(
            [vec!["n".into(), at, (8 * cells).to_string(), "zstd".into()], zone.into()].concat(),
        );
    }
    expected.push(["level", "[0]", "24", "raw", "1", "-0.0", "1.5"].map(str::to_owned).into());
    let ctx = reducing(2, 8192);
    for shuffle in [None, Some(StdRng::seed_from_u64(7))] {
        let in_order = shuffle.is_none();
        let bytes = tet_bytes(&datasets(), &Layout { shuffle, ..layout(&zones) });
        let file = TempTet::new(&bytes);
        let all = call("tet_chunks", columns, &file, "");
        let rows = rows_from(&ctx, &format!("{all} ORDER BY dataset DESC, chunk")).await;
        assert_eq!(rows, expected);
        let found = rows_from(&ctx, &all).await;
        assert_eq!(found == expected, in_order, "rows come in the order of the index");
        let one = rows_from(&ctx, &call("tet_chunks", columns, &file, ", 'level'")).await;
        assert_eq!(one, expected[6..]);
        // The payloads are at the offsets in the rows.
        let place = "file_offset, stored_bytes";
        let rows = rows_from(&ctx, &call("tet_chunks", place, &file, ", 'level'")).await;
        let [at, len] = [0, 1].map(|part| rows[0][part].parse::<usize>().unwrap());
        assert_eq!(bytes[at..at + len], datasets()[1].data);
    }
}

/// A file of 300 000 chunks of one element each.
fn many_chunks() -> Vec<u8> {
    let len = 300_000;
    let data = TestDataset::new("many", I16, &[len], &[1], vec![1; 2 * len as usize]);
    tet_bytes(&[data], &Layout::default())
}

#[tokio::test]
async fn chunks_are_streamed() {
    let file = TempTet::new(&many_chunks());
    let ctx = session(1, 8192);
    gridfusion::GridfusionSessionContextExt::enable_gridfusion(&ctx);
    assert_eq!(cell(&ctx, &call("tet_chunks", "count(*)", &file, "")).await, "300000");
    let sum = "count(DISTINCT chunk), sum(stored_bytes), min(stored_bytes)";
    assert_eq!(
        rows_from(&ctx, &call("tet_chunks", sum, &file, "")).await,
        [["300000", "600000", "2"]]
    );
    let batches = query(&ctx, &call("tet_chunks", "chunk", &file, "")).await.unwrap();
    assert!(batches.len() > 30 && batches.iter().all(|batch| batch.num_rows() <= 8192));
    assert_eq!(batches[0].num_columns(), 1, "columns that are not selected are not made");
    let first = query(&ctx, &(call("tet_chunks", "chunk", &file, "") + " LIMIT 3")).await.unwrap();
    assert_eq!(first.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3);
}

#[tokio::test]
async fn a_limit_ends_the_list_early() {
    // Row 299 999 is damaged, so only a query that reaches it fails.
    let mut bytes = many_chunks();
    let codec_at = |row: usize| bytes.len() - 600_000 - (300_000 - row) * 104 + 96;
    let at = codec_at(299_999);
    bytes[at] = 9;
    let file = TempTet::new(&bytes);
    let ctx = reducing(1, 8192);
    let chunks = call("tet_chunks", "chunk", &file, "");
    assert_eq!(rows_from(&ctx, &format!("{chunks} LIMIT 2")).await, [["[0]"], ["[1]"]]);
    let error = query(&ctx, &chunks).await.unwrap_err().to_string();
    assert!(error.contains("chunk [299999] of dataset \"many\": codec 9"), "{error}");
    let error = query(&ctx, &call("tet_info", "*", &file, "")).await.unwrap_err().to_string();
    assert!(
        error.contains("test.tet: corrupt chunk index") && error.contains("codec 9"),
        "{error}"
    );
}

#[tokio::test]
async fn attributes_of_datasets_and_of_the_file() {
    let file = TempTet::new(&tet_bytes(&datasets(), &layout(&[])));
    let ctx = reducing(2, 8192);
    let rows = rows_from(&ctx, &call("tet_attributes", "*", &file, "")).await;
    let expected = [
        ["n", "comment", "x"],
        ["n", "long_name", "a number"],
        ["n", "units", "m"],
        ["level", "units", "hPa"],
        ["NULL", "history.1.op", "convert"],
        ["NULL", "history.1.source", "nc"],
        ["NULL", "history.1.at", "1700000000"],
        ["NULL", "history.2.source", "pack"],
    ];
    assert_eq!(rows, expected);
    let rows = rows_from(&ctx, &call("tet_attributes", "*", &file, ", 'level'")).await;
    assert_eq!(rows, [expected[3]]);
}

#[tokio::test]
async fn odd_facts_are_warnings() {
    let ctx = reducing(2, 8192);
    let warnings = |bytes: Vec<u8>| {
        let ctx = &ctx;
        async move {
            let file = TempTet::new(&bytes);
            cell(ctx, &call("tet_info", "warnings", &file, " , 'n'")).await
        }
    };
    let plain = tet_bytes(&datasets()[..1], &Layout::default());
    assert_eq!(warnings(plain.clone()).await, "[]");

    // Two rows for chunk [0, 0], and none for [0, 1].
    let rows_at = plain.windows(4).position(|bytes| bytes == b"TIDX").unwrap() + 32;
    let mut twice = plain.clone();
    twice.copy_within(rows_at..rows_at + 104, rows_at + 104);
    assert_eq!(warnings(twice).await, "[]", "counting rows does not show this");

    // One row more than there are chunks.
    let both = tet_bytes(&[&datasets()[..1], &datasets()[..1]].concat(), &Layout::default());
    let rows_at = both.windows(4).position(|bytes| bytes == b"TIDX").unwrap() + 32;
    let mut moved = both.clone();
    moved[rows_at + 6 * 104] = 0; // the first chunk of dataset 1 becomes one of dataset 0
    let found = warnings(moved).await;
    assert_eq!(found, "[the index has 1 rows more than there are chunks]");
    let mut moved = both.clone();
    moved[rows_at] = 1;
    let found = warnings(moved).await;
    assert_eq!(found, "[1 of 6 chunks are missing]");
    // A second dataset of the same name.
    let file = TempTet::new(&both);
    let rows = rows_from(&ctx, &call("tet_info", "dataset, warnings", &file, "")).await;
    assert_eq!(rows[0], ["n", "[]"]);
    assert_eq!(rows[1], ["n", "[queries read an earlier dataset with the same name]"]);

    // Invalid zone maps.
    let wrong = [zone(0, &[9, 9], 4, 0, ["", ""])];
    let found = warnings(tet_bytes(&datasets(), &layout(&wrong))).await;
    assert!(found.contains("its zone maps are ignored") && found.contains("[9, 9]"), "{found}");
}

#[tokio::test]
async fn a_dataset_that_cannot_be_read_is_shown_with_the_reason() {
    let mut bytes = tet_bytes(&datasets(), &Layout::default());
    bytes[44] = 11; // the type of the first dataset
    let file = TempTet::new(&bytes);
    let ctx = reducing(2, 8192);
    let columns = "dataset, element_type, shape, chunk_shape, chunks, stored_chunks, codec";
    let rows = rows_from(&ctx, &call("tet_info", columns, &file, "")).await;
    assert_eq!(rows[0], ["n", "NULL", "[5, 3]", "NULL", "NULL", "0", "NULL"]);
    assert_eq!(rows[1][..2], ["level", "f64"]);
    let why = cell(&ctx, &call("tet_info", "warnings[1]", &file, ", 'n'")).await;
    assert!(why.contains("element type 11"), "{why}");
    assert_eq!(cell(&ctx, &call("tet_chunks", "count(*)", &file, "")).await, "1");
}

#[tokio::test]
async fn rows_of_no_dataset_or_chunk_are_errors() {
    let plain = tet_bytes(&datasets(), &Layout::default());
    let rows_at = plain.windows(4).position(|bytes| bytes == b"TIDX").unwrap() + 32;
    let ctx = reducing(2, 8192);
    for (field, value, part) in [
        (0, 99, "a chunk of dataset 99, but there are 2"),
        (8, 3, "chunk [3, 0], but there are [3, 2]"),
    ] {
        let mut bytes = plain.clone();
        bytes[rows_at + field] = value;
        let file = TempTet::new(&bytes);
        for function in ["tet_info", "tet_chunks"] {
            let error = query(&ctx, &call(function, "*", &file, "")).await.unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(" at byte "), "{function}: {error}");
        }
        // They do not affect the chunks of another dataset.
        assert_eq!(cell(&ctx, &call("tet_chunks", "count(*)", &file, ", 'level'")).await, "1");
    }
}

#[tokio::test]
async fn packages_have_zone_maps_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("x.tet.d");
    let generation = root.join("generations/00000003");
    fs::create_dir_all(&generation).unwrap();
    fs::write(generation.join("packed.tet"), tet_bytes(&datasets(), &Layout::default())).unwrap();
    let zones = [zone(1, &[0], 3, 1, [&hex(&1_f64.to_le_bytes()), &hex(&2_f64.to_le_bytes())])];
    let zones = json!({"version": 1, "generation": 3, "chunks": zones});
    fs::write(generation.join("ZONE.json"), zones.to_string()).unwrap();
    fs::write(root.join("PROTOCOL"), r#"{"protocol_version":2}"#).unwrap();
    fs::write(root.join("CURRENT"), "3\n").unwrap();
    let ctx = reducing(2, 8192);
    let location = root.to_str().unwrap();
    let sql = format!("SELECT dataset, has_zone_maps FROM tet_info('{location}', 'generation', 3)");
    assert_eq!(rows_from(&ctx, &sql).await, [["n", "false"], ["level", "true"]]);
    let sql =
        format!("SELECT null_count, min_value, max_value FROM tet_chunks('{location}', 'level')");
    assert_eq!(rows_from(&ctx, &sql).await, [["1", "1.0", "2.0"]]);
    let sql = format!("SELECT count(*) FROM tet_info('{location}', 'generation', '4')");
    let error = query(&ctx, &sql).await.unwrap_err().to_string();
    assert!(error.contains("no generation 4; the package has 3"), "{error}");
}

async fn opened(bytes: Vec<u8>) -> gridfusion::Result<TetReader> {
    TetReader::open(Arc::new(MemorySource::new("memory", bytes))).await
}

#[tokio::test]
async fn dimensions_are_known_once() {
    let file = opened(tet_bytes(&datasets(), &layout(&[]))).await.unwrap();
    let known = dimension_info(&file, &ReadOptions::default()).await;
    let shown: Vec<_> = known
        .iter()
        .map(|it| (&*it.name, it.len, it.first.as_deref(), it.last.as_deref(), it.warnings.len()))
        .collect();
    assert_eq!(
        shown,
        [("row", 5, Some("0"), Some("4"), 0), ("level", 3, Some("1.5"), Some("-0.0"), 0)]
    );
    assert_eq!(known[1].attributes["units"], "hPa");
    let codecs: Vec<_> =
        dataset_info(&file, None).await.unwrap().into_iter().map(|it| it.stored.codec).collect();
    assert_eq!(codecs, [Some(StoredCodec::Zstd), Some(StoredCodec::Raw)]);
}

/// Every truncation and every flipped bit gives an error or an answer, and no panic.
#[tokio::test]
async fn damaged_files_do_no_harm() {
    let zones = [zone(0, &[0, 0], 4, 0, ["0000000000000000", "ffffffffffffff7f"])];
    let whole = tet_bytes(&datasets(), &layout(&zones));
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            damaged.push(bytes);
        }
    }
    let mut answers = 0;
    for bytes in damaged {
        let Ok(file) = opened(bytes).await else { continue };
        let known = dataset_info(&file, None).await;
        answers += usize::from(known.is_ok());
        dimension_info(&file, &ReadOptions::default()).await;
        let mut list = ChunkList::new(&file, None, true);
        while let Ok(Some(chunks)) = list.next().await {
            assert!(!chunks.is_empty());
        }
    }
    assert!(answers > 100, "{answers}");
}

#[tokio::test]
async fn errors_name_the_file_and_what_there_is() {
    let file = TempTet::new(&tet_bytes(&datasets(), &Layout::default()));
    let file = crate::support::open::open_tet(
        file.location(),
        &ArrayOptions::default(),
        &SessionContext::new(),
    )
    .await
    .unwrap();
    let error = file.dataset_id("nope").unwrap_err().to_string();
    assert!(error.contains("no dataset \"nope\"; the file has \"n\", \"level\""), "{error}");
}
