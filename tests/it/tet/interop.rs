//! Files written by the reference crate, in every type, codec and rank, checked cell by cell.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use half::f16;
use tetration::catalog::{CHUNK_PAYLOAD_CODEC_V1, CoordAxisV1, DATASET_DTYPE_TAG_V1};
use tetration::prelude::{TetDatasetWrite, TetWriterSession};

use crate::support::{positions, query, rows_from, session};

const TYPES: [(&str, DataType); 10] = [
    ("f32", DataType::Float32),
    ("f64", DataType::Float64),
    ("i32", DataType::Int32),
    ("i64", DataType::Int64),
    ("u8", DataType::UInt8),
    ("u16", DataType::UInt16),
    ("i16", DataType::Int16),
    ("u32", DataType::UInt32),
    ("f16", DataType::Float16),
    ("u64", DataType::UInt64),
];

fn tag(name: &str) -> u32 {
    let tags = DATASET_DTYPE_TAG_V1;
    match name {
        "f32" => tags.f32,
        "f64" => tags.f64,
        "i32" => tags.i32,
        "i64" => tags.i64,
        "u8" => tags.u8,
        "u16" => tags.u16,
        "i16" => tags.i16,
        "u32" => tags.u32,
        "f16" => tags.f16,
        _ => tags.u64,
    }
}

/// The element of cell `i`, as bytes and as a number: small, and exact in every type.
fn element(name: &str, i: u64) -> (Vec<u8>, f64) {
    let value = (i * 37 % 120) as f64;
    let signed = if i.is_multiple_of(3) { -value } else { value };
    match name {
        "f32" => ((signed / 2.0) as f32).to_le_bytes().to_vec().pair(signed / 2.0),
        "f64" => (signed / 4.0).to_le_bytes().to_vec().pair(signed / 4.0),
        "i32" => (signed as i32).to_le_bytes().to_vec().pair(signed),
        "i64" => (signed as i64).to_le_bytes().to_vec().pair(signed),
        "i16" => (signed as i16).to_le_bytes().to_vec().pair(signed),
        "u8" => vec![value as u8].pair(value),
        "u16" => (value as u16).to_le_bytes().to_vec().pair(value),
        "u32" => (value as u32).to_le_bytes().to_vec().pair(value),
        "f16" => f16::from_f64(signed / 2.0).to_le_bytes().to_vec().pair(signed / 2.0),
        _ => (value as u64).to_le_bytes().to_vec().pair(value),
    }
}

trait Pair: Sized {
    fn pair(self, value: f64) -> (Self, f64) {
        (self, value)
    }
}

impl Pair for Vec<u8> {}

fn shape_of_rank(rank: usize) -> (Vec<u64>, Vec<u64>) {
    // Every rank has edge chunks; rank 3 also a chunk larger than its axis.
    let shapes: [&[u64]; 8] = [
        &[23],
        &[5, 7],
        &[3, 4, 5],
        &[2, 3, 3, 4],
        &[2, 1, 3, 2, 3],
        &[2, 2, 1, 3, 2, 2],
        &[2, 1, 2, 1, 3, 1, 2],
        &[1, 2, 1, 2, 1, 2, 1, 3],
    ];
    let chunks: [&[u64]; 8] = [
        &[4],
        &[2, 3],
        &[2, 9, 2],
        &[1, 2, 3, 3],
        &[1, 1, 2, 2, 2],
        &[1, 2, 1, 2, 2, 1],
        &[2, 1, 1, 1, 2, 1, 2],
        &[1, 1, 1, 2, 1, 2, 1, 2],
    ];
    (shapes[rank - 1].to_vec(), chunks[rank - 1].to_vec())
}

fn column(batches: &[RecordBatch], at: usize) -> Vec<f64> {
    let floats = |batch: &RecordBatch| cast(batch.column(at), &DataType::Float64).unwrap();
    batches
        .iter()
        .flat_map(|batch| floats(batch).as_primitive::<Float64Type>().values().to_vec())
        .collect()
}

#[tokio::test]
async fn every_type_codec_and_rank() {
    for (name, data_type) in TYPES {
        for rank in 1..=8 {
            for codec in [CHUNK_PAYLOAD_CODEC_V1.raw, CHUNK_PAYLOAD_CODEC_V1.zstd] {
                let (shape, chunk) = shape_of_rank(rank);
                let cells: u64 = shape.iter().product();
                let (data, expected): (Vec<_>, Vec<_>) =
                    (0..cells).map(|i| element(name, i)).unzip();
                let mut dataset =
                    TetDatasetWrite::row_major("v", tag(name), &shape, &chunk, data.concat())
                        .unwrap();
                dataset.chunk_codec = codec;
                let dir = tempfile::tempdir().unwrap();
                let mut writer = TetWriterSession::create(dir.path().join("v.tet"));
                writer.push_dataset(dataset).unwrap();
                let path = writer.commit().unwrap();

                let ctx = session(2, 8);
                ctx.register_array(
                    "v",
                    path.to_str().unwrap(),
                    ArrayOptions::default().with_dataset("v"),
                )
                .await
                .unwrap();
                let dims: Vec<String> = (0..rank).map(|axis| format!("dim_{axis}")).collect();
                let sql = format!("SELECT {0}, value FROM v ORDER BY {0}", dims.join(", "));
                let batches = query(&ctx, &sql).await.unwrap();
                let case = format!("{name}, rank {rank}, codec {codec}");
                assert_eq!(batches[0].schema().field(rank).data_type(), &data_type, "{case}");
                assert_eq!(column(&batches, rank), expected, "{case}");
                let cells = positions(&shape);
                for axis in 0..rank {
                    let expected: Vec<f64> = cells.iter().map(|cell| cell[axis] as f64).collect();
                    assert_eq!(column(&batches, axis), expected, "{case}, axis {axis}");
                }
            }
        }
    }
}

#[tokio::test]
async fn labels_fills_and_attributes_come_along() {
    let data =
        [1.5_f32, -9.0, f32::NAN, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut dataset = TetDatasetWrite::f32_row_major("deep/temp été", &[2, 3], &[1, 2], data)
        .unwrap()
        .with_attr("units", "K")
        .with_attr("_FillValue", "-9");
    dataset.dim_names = Some(vec!["day".into(), "Station".into()]);
    let labels =
        |labels: &[&str]| CoordAxisV1 { labels: labels.iter().map(|l| (*l).to_owned()).collect() };
    dataset.coords = Some(BTreeMap::from([
        ("day".to_owned(), labels(&["2024-02-29", "2024-03-01"])),
        ("Station".to_owned(), labels(&["007", "Zürich", "007"])),
    ]));
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TetWriterSession::create(dir.path().join("v.tet"));
    writer.push_dataset(dataset).unwrap();
    let path = writer.commit().unwrap();

    let ctx = session(1, 8192);
    ctx.register_array_schema("f", path.to_str().unwrap(), ArrayOptions::default()).await.unwrap();
    let sql = r#"SELECT day, "Station", value FROM f."deep/temp été" WHERE day > '2024-02-28' ORDER BY 1, 2, 3"#;
    let expected = [
        ["2024-02-29", "007", "1.5"],
        ["2024-02-29", "007", "NULL"],
        ["2024-02-29", "Zürich", "NULL"],
        ["2024-03-01", "007", "4.0"],
        ["2024-03-01", "007", "6.0"],
        ["2024-03-01", "Zürich", "5.0"],
    ];
    assert_eq!(rows_from(&ctx, sql).await, expected);
    let table = ctx.table(r#"f."deep/temp été""#).await.unwrap();
    let field = table.schema().field(2);
    assert_eq!(field.metadata().get("units").map(String::as_str), Some("K"));
    let kept = ArrayOptions::default().with_nan_as_null(false).with_fill_as_null(false);
    let frame = ctx.read_array(path.to_str().unwrap(), kept).await.unwrap();
    let values = column(&frame.collect().await.unwrap(), 2);
    assert!(values.contains(&-9.0) && values.iter().any(|value| value.is_nan()));
}

/// Integers are never converted to doubles on the way.
#[tokio::test]
async fn integers_beyond_doubles_are_exact() {
    let big = 9_007_199_254_740_993_i64;
    let data = [big, -big, i64::MIN, i64::MAX].iter().flat_map(|v| v.to_le_bytes()).collect();
    let dataset = TetDatasetWrite::row_major("v", tag("i64"), &[4], &[2], data).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TetWriterSession::create(dir.path().join("v.tet"));
    writer.push_dataset(dataset).unwrap();
    let path = writer.commit().unwrap();
    let ctx = session(1, 8192);
    ctx.register_array("v", path.to_str().unwrap(), ArrayOptions::default().with_dataset("v"))
        .await
        .unwrap();
    let batches = query(&ctx, "SELECT value FROM v ORDER BY dim_0").await.unwrap();
    let values: Vec<i64> = batches
        .iter()
        .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    assert_eq!(values, [big, -big, i64::MIN, i64::MAX]);
    assert_eq!(batches[0].column(0).null_count(), 0);
}
