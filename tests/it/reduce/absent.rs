//! Chunks that are not stored: their cells are all fill, so groups are computed from shapes.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridReduceExec, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::random::{compare, tier};
use crate::support::{reducing, rows_from};

/// The element types of stores, and those of their columns.
const TYPES: [(&str, DataType); 7] = [
    ("int8", DataType::Int8),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("uint16", DataType::UInt16),
    ("float16", DataType::Float16),
    ("float32", DataType::Float32),
    ("float64", DataType::Float64),
];

/// Returns the stored bytes of a number.
fn bytes(data_type: &DataType, number: f64) -> Vec<u8> {
    match data_type {
        DataType::Int8 => (number as i8).to_le_bytes().to_vec(),
        DataType::Int32 => (number as i32).to_le_bytes().to_vec(),
        DataType::Int64 => (number as i64).to_le_bytes().to_vec(),
        DataType::UInt16 => (number as u16).to_le_bytes().to_vec(),
        DataType::Float16 => half::f16::from_f64(number).to_le_bytes().to_vec(),
        DataType::Float32 => (number as f32).to_le_bytes().to_vec(),
        _ => number.to_le_bytes().to_vec(),
    }
}

/// A store with `v (t, s)`, of which chunks are absent, and its rows.
struct Store {
    dir: TempDir,
    rows: RecordBatch,
    description: String,
}

/// Writes the metadata of a store with one array.
fn write_metadata(
    dir: &TempDir,
    shape: [usize; 2],
    chunk: [usize; 2],
    name: &str,
    fill: &Value,
    is_null: bool,
) {
    let attributes = if is_null { json!({"_FillValue": fill}) } else { json!({}) };
    let array = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": attributes, "dimension_names": ["t", "s"],
    });
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    fs::create_dir_all(dir.path().join("v")).unwrap();
    fs::write(dir.path().join("zarr.json"), group.to_string()).unwrap();
    fs::write(dir.path().join("v/zarr.json"), array.to_string()).unwrap();
}

impl Store {
    fn random(rng: &mut StdRng) -> Self {
        let (name, data_type) = TYPES.choose(rng).unwrap();
        let shape = [rng.random_range(1..30), rng.random_range(1..30)];
        let chunk = [rng.random_range(1..12), rng.random_range(1..12)];
        let (number, is_null) = match rng.random_range(0..3) {
            0 if data_type.is_floating() => (f64::NAN, false),
            _ => (f64::from(rng.random_range(0..9)), rng.random_bool(0.4)),
        };
        let fill = match (number.is_nan(), data_type.is_floating()) {
            (true, _) => json!("NaN"),
            (_, true) => json!(number),
            _ => json!(number as i64),
        };
        let dir = tempfile::tempdir().unwrap();
        write_metadata(&dir, shape, chunk, name, &fill, is_null);
        let mut cells = vec![number; shape[0] * shape[1]];
        for (a, b) in (0..shape[0].div_ceil(chunk[0]))
            .flat_map(|a| (0..shape[1].div_ceil(chunk[1])).map(move |b| (a, b)))
        {
            if rng.random_bool(0.6) {
                continue;
            }
            let mut stored = vec![];
            for at in 0..chunk[0] * chunk[1] {
                let value =
                    if rng.random_bool(0.2) { number } else { f64::from(rng.random_range(0..20)) };
                stored.extend(bytes(data_type, value));
                let (t, s) = (a * chunk[0] + at / chunk[1], b * chunk[1] + at % chunk[1]);
                if t < shape[0] && s < shape[1] {
                    cells[t * shape[1] + s] = value;
                }
            }
            let folder = dir.path().join(format!("v/c/{a}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(b.to_string()), stored).unwrap();
        }
        let is_missing = |value: f64| value.is_nan() || (is_null && value == number);
        let values = cells.iter().map(|value| (!is_missing(*value)).then_some(*value));
        let values: ArrayRef = Arc::new(values.collect::<Float64Array>());
        let index = |of: fn(usize, usize) -> usize| -> ArrayRef {
            let all = (0..cells.len()).map(|cell| of(cell, shape[1]) as i64);
            Arc::new(Int64Array::from_iter_values(all))
        };
        let rows = RecordBatch::try_from_iter_with_nullable([
            ("t", index(|cell, len| cell / len), true),
            ("s", index(|cell, len| cell % len), true),
            ("value", cast(&values, data_type).unwrap(), true),
        ]);
        let description = format!("{name}, fill {fill}, NULL {is_null}, {shape:?} in {chunk:?}");
        Self { dir, rows: rows.unwrap(), description }
    }

    async fn register(&self, ctx: &SessionContext) {
        let options = ArrayOptions::default().with_dataset("v");
        let path = self.dir.path().to_str().unwrap();
        ctx.register_array("t", path, options).await.unwrap();
    }
}

/// A random aggregation, and the number of its keys.
fn sql(rng: &mut StdRng) -> (String, usize) {
    let keys = ["", "t", "s", "t % 3", "s / 4", "t, s", "t % 3, s"].choose(rng).unwrap();
    let all = [
        "count(value)",
        "sum(value)",
        "avg(value)",
        "min(value)",
        "max(value)",
        "var_samp(value)",
        "stddev_pop(value)",
        "count(*)",
        "max(t)",
        "count(*) FILTER (WHERE value > 4)",
        "sum(value) FILTER (WHERE value <= 5)",
        "avg(value) FILTER (WHERE s > 3)",
        "sum(value * (t + 0.5))",
        "regr_slope(value, t)",
    ];
    let mut aggregates: Vec<&str> =
        (0..rng.random_range(1..5)).map(|_| *all.choose(rng).unwrap()).collect();
    aggregates.sort_unstable();
    aggregates.dedup();
    let filter =
        ["", "", " WHERE t > 3", " WHERE value > 2", " WHERE s % 2 = 1"].choose(rng).unwrap();
    let aggregates = aggregates.join(", ");
    match keys.is_empty() {
        true => (format!("SELECT {aggregates} FROM t{filter}"), 0),
        false => {
            let count = keys.split(", ").count();
            (format!("SELECT {keys}, {aggregates} FROM t{filter} GROUP BY {keys}"), count)
        }
    }
}

/// Random aggregations over stores with absent chunks have the same answers as over rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absent_chunks_agree_with_rows() {
    let mut rng = StdRng::seed_from_u64(23);
    let mut dense = 0;
    for number in 0..80 {
        let store = Store::random(&mut rng);
        let partitions = rng.random_range(1..=4);
        let (ours, theirs) = (reducing(partitions, 64), reducing(1, 8192));
        store.register(&ours).await;
        let table = MemTable::try_new(store.rows.schema(), vec![vec![store.rows.clone()]]).unwrap();
        theirs.register_table("t", Arc::new(table)).unwrap();
        for _ in 0..10 {
            let (sql, keys) = sql(&mut rng);
            if let Err(difference) = compare(&ours, &theirs, &sql, keys, 20.0).await {
                panic!("case {number}, {}: {sql}\n{difference}", store.description);
            }
            dense += usize::from(tier(&ours, &sql).await.contains("dense"));
        }
    }
    assert!(dense > 500, "{dense} were dense");
}

/// Returns a metric of the reduction of a query.
async fn metric(ctx: &SessionContext, sql: &str, name: &str) -> usize {
    fn find(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        if plan.downcast_ref::<GridReduceExec>().is_some() {
            return Some(Arc::clone(plan));
        }
        plan.children().into_iter().find_map(find)
    }
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    find(&plan).unwrap().metrics().unwrap().sum_by_name(name).unwrap().as_usize()
}

/// An array of 2 x 10¹⁰ absent cells is aggregated at once: one cell stands for each chunk.
#[tokio::test]
async fn absent_cells_are_not_visited() {
    let dir = tempfile::tempdir().unwrap();
    write_metadata(&dir, [200_000, 100_000], [10_000, 10_000], "float32", &json!(1.5), false);
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", dir.path().to_str().unwrap(), options).await.unwrap();
    for (sql, expected) in [
        (
            "SELECT count(value), sum(value), max(value), var_pop(value) FROM t",
            "20000000000, 30000000000.0, 1.5, 0.0",
        ),
        (
            "SELECT avg(value), min(t), count(*) FROM t WHERE s % 4 = 1 GROUP BY t % 2 HAVING min(t) = 1",
            "1.5, 1, 2500000000",
        ),
        (
            "SELECT count(*) FILTER (WHERE value > 1.5), count(value) FILTER (WHERE value > 1) FROM t",
            "0, 20000000000",
        ),
    ] {
        let expected: Vec<&str> = expected.split(", ").collect();
        assert_eq!(rows_from(&ctx, sql).await, [expected], "{sql}");
        assert_eq!(metric(&ctx, sql, "chunks_read").await, 200, "{sql}");
        assert_eq!(metric(&ctx, sql, "bytes_decoded").await, 200 * size_of::<f32>(), "{sql}");
    }
    for (sql, expected) in [
        (
            "SELECT max(s), sum(s) FROM t GROUP BY t % 3 HAVING count(t) < 6666650000",
            "99999, 333326666700000",
        ),
        (
            "SELECT max(t), min(s), count(DISTINCT t), sum(t % 2) FROM t",
            "199999, 0, 200000, 10000000000",
        ),
        ("SELECT max(s), count(*), avg(t) FROM t GROUP BY t HAVING t = 7", "99999, 100000, 7.0"),
    ] {
        let rows = rows_from(&ctx, sql).await;
        assert_eq!(rows.concat().join(", "), expected, "{sql}");
        assert_eq!(metric(&ctx, sql, "chunks_read").await, 0, "{sql}");
    }
}
