//! Fill values: zone maps that count them as values, the base64 that xarray writes into Zarr v3, and
//! attributes that cannot be parsed.

use std::path::Path;
use std::sync::Mutex;

use datafusion::prelude::SessionContext;
use gridfusion::verify::{Depth, Report};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use half::f16;
use serde_json::json;
use tetration::catalog::DATASET_DTYPE_TAG_V1;
use tetration::prelude::{TetDatasetStreamSpec, TetDatasetWrite, TetWriterSession};

use crate::support::{F32, F64, I16, Layout, TempTet, TestDataset, reducing, rows_from, tet_bytes};
use crate::verify::tet::{failed, findings, verify};

/// The number of cells per chunk, and the number of chunks.
const CHUNK: usize = 8;
const CHUNKS: usize = 6;

/// Numbers from 60 to 109, and `fill`. The first chunk has no fill value, the second has only fill values,
/// and the others have some.
fn numbers(fill: i64) -> Vec<i64> {
    let number = |cell: usize| match (cell / CHUNK, cell % 3) {
        (0, _) => 60 + (cell * 7 % 50) as i64,
        (1, _) | (_, 0) => fill,
        _ => 60 + (cell * 7 % 50) as i64,
    };
    (0..CHUNK * CHUNKS).map(number).collect()
}

type Element = fn(i64) -> Vec<u8>;

/// All types that the reference writes.
fn types() -> [(&'static str, u32, Element); 10] {
    let tags = DATASET_DTYPE_TAG_V1;
    [
        ("f16", tags.f16, |it| f16::from_f64(it as f64).to_le_bytes().to_vec()),
        ("f32", tags.f32, |it| (it as f32).to_le_bytes().to_vec()),
        ("f64", tags.f64, |it| (it as f64).to_le_bytes().to_vec()),
        ("i16", tags.i16, |it| (it as i16).to_le_bytes().to_vec()),
        ("i32", tags.i32, |it| (it as i32).to_le_bytes().to_vec()),
        ("i64", tags.i64, |it| it.to_le_bytes().to_vec()),
        ("u8", tags.u8, |it| vec![it as u8]),
        ("u16", tags.u16, |it| (it as u16).to_le_bytes().to_vec()),
        ("u32", tags.u32, |it| (it as u32).to_le_bytes().to_vec()),
        ("u64", tags.u64, |it| (it as u64).to_le_bytes().to_vec()),
    ]
}

/// A file that the reference crate writes by a callback: its zone maps count the fill value as a value.
fn streamed(
    folder: &Path,
    tag: u32,
    element: Element,
    attributes: &[(&str, &str)],
    fill: i64,
) -> String {
    let (cells, chunk) = ([(CHUNK * CHUNKS) as u64], [CHUNK as u64]);
    let mut spec = TetDatasetStreamSpec::row_major("v", tag, &cells, &chunk).unwrap();
    let attributes = attributes.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
    spec.attrs = attributes.collect();
    let mut writer = TetWriterSession::create(folder.join("v.tet"));
    writer.push_dataset_streaming(spec).unwrap();
    let numbers = numbers(fill);
    let path = writer.commit_with_fill(1, |job, buffer| {
        let first = job.chunk_coord[0] as usize * CHUNK;
        buffer.copy_from_slice(
            &numbers[first..first + CHUNK].iter().flat_map(|it| element(*it)).collect::<Vec<_>>(),
        );
        Ok(())
    });
    path.unwrap().to_str().unwrap().to_owned()
}

/// The values of cells, as the table shows them.
fn shown(numbers: &[i64], fill: i64, scale: f64, offset: f64) -> Vec<Option<f64>> {
    numbers.iter().map(|it| (*it != fill).then_some(*it as f64 * scale + offset)).collect()
}

async fn numbers_of(ctx: &SessionContext, sql: &str) -> Vec<Vec<Option<f64>>> {
    let number = |text: String| (text != "NULL").then(|| text.parse().unwrap());
    let rows = rows_from(ctx, sql).await;
    rows.into_iter().map(|row| row.into_iter().map(number).collect()).collect()
}

/// Checks all kinds of queries whose answers may come from zone maps.
async fn assert_right(path: &str, expected: &[Option<f64>], what: &str) {
    let mut values: Vec<f64> = expected.iter().copied().flatten().collect();
    values.sort_by(f64::total_cmp);
    let (sum, count) = (values.iter().sum::<f64>(), values.len() as f64);
    let nulls = expected.len() as f64 - count;
    let (least, greatest) = (values[0], values[values.len() - 1]);
    let above = values.iter().filter(|it| **it > 0.0).count() as f64;
    for partitions in [1, 2] {
        let ctx = reducing(partitions, 8192);
        ctx.register_array("t", path, ArrayOptions::default().with_dataset("v")).await.unwrap();
        let all: Vec<Vec<Option<f64>>> = expected.iter().map(|it| vec![*it]).collect();
        assert_eq!(numbers_of(&ctx, "SELECT value FROM t ORDER BY dim_0").await, all, "{what}");
        for (sql, expected) in [
            ("SELECT count(*) FROM t WHERE value IS NULL", vec![nulls]),
            ("SELECT count(*) FROM t WHERE value IS NOT NULL", vec![count]),
            ("SELECT count(value), count(*) FROM t", vec![count, expected.len() as f64]),
            ("SELECT min(value), max(value) FROM t", vec![least, greatest]),
            ("SELECT sum(value::DOUBLE), avg(value::DOUBLE) FROM t", vec![sum, sum / count]),
            (
                "SELECT sum(value::DOUBLE) FROM t WHERE dim_0 < 40",
                vec![expected[..40].iter().flatten().sum()],
            ),
            ("SELECT count(*) FROM t WHERE value > 0", vec![above]),
            ("SELECT count(*) FROM t WHERE value < 0", vec![0.0]),
        ] {
            let expected = expected.into_iter().map(Some).collect::<Vec<_>>();
            assert_eq!(numbers_of(&ctx, sql).await, [expected], "{what}: {sql}");
        }
        let first: Vec<_> = values[..3].iter().map(|it| vec![Some(*it)]).collect();
        let sql = "SELECT value FROM t ORDER BY value LIMIT 3";
        assert_eq!(numbers_of(&ctx, sql).await, first, "{what}: {sql}");
        let last: Vec<_> = values.iter().rev().take(3).map(|it| vec![Some(*it)]).collect();
        let sql = "SELECT value FROM t ORDER BY value DESC NULLS LAST LIMIT 3";
        assert_eq!(numbers_of(&ctx, sql).await, last, "{what}: {sql}");
        let chunks = expected.chunks(CHUNK).map(|of_chunk| {
            let known = || of_chunk.iter().copied().flatten();
            vec![Some(known().count() as f64), known().reduce(f64::min), known().reduce(f64::max)]
        });
        let sql = "SELECT count(value), min(value), max(value) FROM t GROUP BY dim_0 / 8 ORDER BY dim_0 / 8";
        assert_eq!(numbers_of(&ctx, sql).await, chunks.collect::<Vec<_>>(), "{what}: {sql}");
    }
}

async fn verified(path: &str, depth: Depth) -> Report {
    verify(std::fs::read(path).unwrap(), depth).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zone_maps_that_take_the_fill_for_a_value_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    for (name, tag, element) in types() {
        // Fill values below the values, above them, and among them.
        for (fill, text) in [(3, "3"), (120, "120"), (81, "81")] {
            let what = format!("{name}, fill {fill}");
            let path = streamed(folder.path(), tag, element, &[("_FillValue", text)], fill);
            assert_right(&path, &shown(&numbers(fill), fill, 1.0, 0.0), &what).await;
            let deep = verified(&path, Depth::Cells).await;
            let expected = ["zone_maps", "zone_maps_stale"];
            assert_eq!(failed(&deep), expected, "{what}: {}", findings(&deep));
            assert!(
                findings(&deep).contains("; its writer counted the fill value as a value"),
                "{what}"
            );
            let shallow = findings(&verified(&path, Depth::Structure).await);
            assert!(shallow.contains("zone_maps: \"v\", chunk [1]: the map counts "), "{shallow}");
            assert!(!shallow.contains("chunk [0]"), "{shallow}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_are_those_of_packed_values_and_of_other_attributes() {
    let folder = tempfile::tempdir().unwrap();
    for (name, tag, element) in types() {
        for key in ["_FillValue", "missing_value", "fill_value"] {
            let is_packed = !name.starts_with('f');
            let packing = [("scale_factor", "-0.5"), ("add_offset", "100")];
            let packing = packing.into_iter().filter(|_| is_packed);
            let attributes: Vec<_> = packing.chain([(key, "120")]).collect();
            let path = streamed(folder.path(), tag, element, &attributes, 120);
            let (scale, offset) = if is_packed { (-0.5, 100.0) } else { (1.0, 0.0) };
            let expected = shown(&numbers(120), 120, scale, offset);
            assert_right(&path, &expected, &format!("{name}, {key}")).await;
        }
    }
}

/// The chunks that the plan of a query visits, as `EXPLAIN` shows them.
async fn chunks_of(path: &str, condition: &str) -> String {
    let ctx = reducing(1, 8192);
    ctx.register_array("t", path, ArrayOptions::default().with_dataset("v")).await.unwrap();
    let plan = rows_from(&ctx, &format!("EXPLAIN SELECT value FROM t WHERE {condition}")).await;
    let plan = plan.concat().concat();
    let (_, chunks) = plan.split_once("chunks=").unwrap_or_else(|| panic!("{plan}"));
    chunks.split([',', '\n']).next().unwrap().to_owned()
}

#[tokio::test]
async fn maps_of_chunks_without_the_fill_still_rule_out_chunks() {
    let (folder, (_, tag, element)) = (tempfile::tempdir().unwrap(), types()[1]);
    let path = streamed(folder.path(), tag, element, &[("_FillValue", "3")], 3);
    assert_eq!(chunks_of(&path, "value > 200").await, "5/6");
    let data = numbers(3).into_iter().flat_map(element).collect();
    let cells = (CHUNK * CHUNKS) as u64;
    let dataset = TetDatasetWrite::row_major("v", tag, &[cells], &[CHUNK as u64], data).unwrap();
    let mut writer = TetWriterSession::create(folder.path().join("known.tet"));
    writer.push_dataset(dataset.with_attr("_FillValue", "3")).unwrap();
    let known = writer.commit().unwrap();
    assert_eq!(chunks_of(known.to_str().unwrap(), "value > 200").await, "0/6");
}

/// A fill value of NaN is never within bounds, so zone maps are used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zone_maps_beside_a_fill_of_nan_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let (_, tag, element) = types()[1];
    let path = streamed(folder.path(), tag, element, &[("_FillValue", "NaN")], 120);
    assert_right(&path, &shown(&numbers(120), -1, 1.0, 0.0), "NaN").await;
    assert_eq!(failed(&verified(&path, Depth::Cells).await), [""; 0]);
}

/// Calls `run`; returns the log lines that contain `name`.
pub(crate) async fn logged(name: &str, run: impl AsyncFnOnce()) -> Vec<(log::Level, String)> {
    static LINES: Mutex<Vec<(log::Level, String)>> = Mutex::new(vec![]);
    struct Listener;
    impl log::Log for Listener {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &log::Record<'_>) {
            LINES.lock().unwrap().push((record.level(), record.args().to_string()));
        }

        fn flush(&self) {}
    }
    // Another test may have set the logger already.
    let _ = log::set_logger(&Listener).map(|()| log::set_max_level(log::LevelFilter::Warn));
    run().await;
    let lines = LINES.lock().unwrap();
    lines.iter().filter(|(_, line)| line.contains(name)).cloned().collect()
}

/// Numbers in base64, as xarray writes them into Zarr v3.
const MINUS_9999: &str = "AAAAAICHw8A=";
const HALF: &str = "AAAAAAAA4D8=";
const TEN: &str = "AAAAAAAAJEA=";
const NOT_UNDERSTOOD: &str = "minus ten thousand";

fn zarr(datasets: &[TestDataset]) -> TempTet {
    let layout = Layout {
        history_version: Some(2),
        history: Some(json!([["convert", "zarr", "0"]])),
        ..Layout::default()
    };
    TempTet::new(&tet_bytes(datasets, &layout))
}

#[tokio::test]
async fn doubles_in_base64_are_understood() {
    let floats: Vec<u8> = [1_f64, -9999.0, 3.0].iter().flat_map(|it| it.to_le_bytes()).collect();
    let singles: Vec<u8> = [1_f32, -9999.0, 3.0].iter().flat_map(|it| it.to_le_bytes()).collect();
    let shorts: Vec<u8> = [2_i16, -9999, 6].iter().flat_map(|it| it.to_le_bytes()).collect();
    let attributes = |attributes| json!({"dim_names": ["x"], "attrs": attributes});
    let packed = json!({"_FillValue": MINUS_9999, "scale_factor": HALF, "add_offset": TEN});
    let file = zarr(&[
        TestDataset::new("f64", F64, &[3], &[3], floats)
            .with_metadata(attributes(json!({"_FillValue": MINUS_9999}))),
        TestDataset::new("f32", F32, &[3], &[3], singles)
            .with_metadata(attributes(json!({"missing_value": MINUS_9999}))),
        TestDataset::new("i16", I16, &[3], &[3], shorts.clone())
            .with_metadata(attributes(packed.clone())),
        TestDataset::new("x", I16, &[3], &[3], shorts).with_metadata(attributes(packed)),
    ]);
    let ctx = reducing(1, 8192);
    let lines = logged(file.location(), async || {
        ctx.register_array_schema("f", file.location(), ArrayOptions::default()).await.unwrap();
        for (dataset, expected) in [
            ("f64", [["11.0", "1.0"], ["13.0", "3.0"], ["NULL", "NULL"]]),
            ("f32", [["11.0", "1.0"], ["13.0", "3.0"], ["NULL", "NULL"]]),
            ("i16", [["11.0", "11.0"], ["13.0", "13.0"], ["NULL", "NULL"]]),
        ] {
            let sql = format!("SELECT x, value FROM f.{dataset} ORDER BY x");
            assert_eq!(rows_from(&ctx, &sql).await, expected, "{dataset}");
        }
    });
    assert_eq!(lines.await, []);
    assert_eq!(failed(&verified(file.location(), Depth::Cells).await), [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_understood_is_never_silent() {
    let shorts: Vec<u8> = [2_i16, -9999, 6].iter().flat_map(|it| it.to_le_bytes()).collect();
    for key in [
        "_FillValue",
        "missing_value",
        "fill_value",
        "scale_factor",
        "add_offset",
        "tetration_categories",
    ] {
        for dataset in ["v", "x"] {
            let described = |name: &str| match name == dataset {
                true => json!({"dim_names": ["x"], "attrs": {key: NOT_UNDERSTOOD}}),
                false => json!({"dim_names": ["x"]}),
            };
            let made = |name: &str| {
                TestDataset::new(name, I16, &[3], &[3], shorts.clone())
                    .with_metadata(described(name))
            };
            let file = zarr(&[made("v"), made("x")]);
            let ctx = reducing(1, 8192);
            let lines = logged(file.location(), async || {
                let options = ArrayOptions::default().with_dataset("v");
                ctx.register_array("t", file.location(), options).await.unwrap();
            });
            let lines = lines.await;
            assert!(
                matches!(lines.as_slice(), [(log::Level::Error, line)] if line.contains(key)),
                "{lines:?}"
            );
            let report = verified(file.location(), Depth::Structure).await;
            assert_eq!(failed(&report), ["attributes"], "{key} of {dataset}");
            assert!(findings(&report).contains(key), "{}", findings(&report));
        }
    }
}
