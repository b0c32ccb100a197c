//! Random arrays and random queries: the table against a MemTable that holds the same rows.
//!
//! The rows are made cell by cell from the same numbers that were written, by code that shares
//! nothing with the library.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use gridfusion::{GridfusionSessionContextExt, IoMode, TetReadOptions};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};

use crate::support::{
    F32, F64, I16, I32, I64, Layout, TempTet, TestDataset, positions, query, rows_of, session,
    tet_bytes,
};

/// How the labels of one dimension were made.
enum Axis {
    /// No labels: the index.
    Index(u64),
    /// Text labels in the footer.
    Text(Vec<String>),
    /// Numbers in a sibling dataset.
    Numbers(Vec<f64>),
    /// `hours since 2024-01-01` in a sibling dataset.
    Hours(Vec<i32>),
}

const EPOCH_2024: i64 = 1_704_067_200_000_000;

impl Axis {
    /// Ascending, descending, unsorted or repeating labels.
    fn random(rng: &mut StdRng, len: u64) -> Self {
        let order = rng.random_range(0..4);
        let number = |i: u64, rng: &mut StdRng| match order {
            0 => i as i32 * 3 - 4,
            1 => 9 - i as i32 * 2,
            2 => (i as i32 * 7) % 11 - 3,
            _ => rng.random_range(0..3),
        };
        let numbers: Vec<i32> = (0..len).map(|i| number(i, rng)).collect();
        match rng.random_range(0..4) {
            0 => Self::Index(len),
            1 => Self::Text(numbers.iter().map(|n| format!("s{n}")).collect()),
            2 => Self::Numbers(numbers.iter().map(|&n| f64::from(n) / 4.0).collect()),
            _ => Self::Hours(numbers),
        }
    }

    /// The column of labels at these positions.
    fn column(&self, at: impl Iterator<Item = u64>) -> ArrayRef {
        match self {
            Self::Index(_) => Arc::new(Int64Array::from_iter_values(at.map(|i| i as i64))),
            Self::Text(labels) => {
                Arc::new(StringViewArray::from_iter_values(at.map(|i| &labels[i as usize])))
            }
            Self::Numbers(labels) => {
                Arc::new(Float64Array::from_iter_values(at.map(|i| labels[i as usize])))
            }
            Self::Hours(labels) => Arc::new(TimestampMicrosecondArray::from_iter_values(
                at.map(|i| EPOCH_2024 + i64::from(labels[i as usize]) * 3_600_000_000),
            )),
        }
    }

    /// A dataset that carries the labels, for those that need one.
    fn dataset(&self, name: &str) -> Option<TestDataset> {
        let metadata = |attrs: Value| json!({"dim_names": [name], "attrs": attrs});
        Some(match self {
            Self::Index(_) | Self::Text(_) => return None,
            Self::Numbers(labels) => {
                let data = labels.iter().flat_map(|n| n.to_le_bytes()).collect();
                let len = labels.len() as u64;
                TestDataset::new(name, F64, &[len], &[3], data).with_metadata(metadata(json!({})))
            }
            Self::Hours(labels) => {
                let data = labels.iter().flat_map(|n| n.to_le_bytes()).collect();
                let units = json!({"units": "hours since 2024-01-01"});
                let len = labels.len() as u64;
                TestDataset::new(name, I32, &[len], &[len], data).with_metadata(metadata(units))
            }
        })
    }

    /// A literal near the labels.
    fn literal(&self, rng: &mut StdRng) -> String {
        match self {
            Self::Index(_) => rng.random_range(-1..9).to_string(),
            Self::Text(_) => format!("'s{}'", rng.random_range(-4..10)),
            Self::Numbers(_) => (f64::from(rng.random_range(-20..40)) / 4.0).to_string(),
            Self::Hours(_) => {
                let hour = rng.random_range(-8..30);
                format!("TIMESTAMP '2024-01-01' + INTERVAL '{hour} hours'")
            }
        }
    }

    /// A predicate over this dimension alone.
    fn predicate(&self, name: &str, rng: &mut StdRng) -> String {
        let a = self.literal(rng);
        let b = self.literal(rng);
        let special = match self {
            Self::Index(_) => format!("{name} % 3 = 1"),
            Self::Text(_) => format!("{name} LIKE '%{}'", rng.random_range(0..5)),
            Self::Numbers(_) => format!("abs({name}) < {}", rng.random_range(0..4)),
            Self::Hours(_) => format!("date_part('hour', {name}) < {}", rng.random_range(0..24)),
        };
        let choices = [
            format!("{name} = {a}"),
            format!("{name} <> {a}"),
            format!("{name} < {a}"),
            format!("{name} >= {a}"),
            format!("{name} BETWEEN {a} AND {b}"),
            format!("{name} IN ({a}, {b})"),
            format!("NOT ({name} > {a})"),
            format!("({name} < {a} OR {name} = {b})"),
            format!("CASE WHEN {name} > {a} THEN true ELSE {name} < {b} END"),
            format!("{name} IS NOT NULL"),
            special,
        ];
        choices.choose(rng).unwrap().clone()
    }
}

/// One random array, as a file and as rows.
struct Case {
    axes: Vec<Axis>,
    file: TempTet,
    rows: RecordBatch,
    description: String,
}

fn name(axis: usize) -> String {
    format!("d{axis}")
}

impl Case {
    fn random(rng: &mut StdRng) -> Self {
        let rank = rng.random_range(1..=4);
        let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..8)).collect();
        let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..9)).collect();
        let axes: Vec<Axis> = shape.iter().map(|&len| Axis::random(rng, len)).collect();
        let cells = positions(&shape);
        let tag = *[F32, F64, I16, I32, I64].choose(rng).unwrap();
        let (data, values) = random_values(rng, tag, cells.len());

        let mut metadata = Map::new();
        metadata.insert("dim_names".into(), (0..rank).map(name).collect());
        metadata.insert("attrs".into(), json!({"_FillValue": "-99"}));
        let text: Map<String, Value> = axes
            .iter()
            .enumerate()
            .filter_map(|(axis, labels)| match labels {
                Axis::Text(labels) => Some((name(axis), json!({"labels": labels}))),
                _ => None,
            })
            .collect();
        metadata.insert("coords".into(), text.into());
        let mut datasets = vec![
            TestDataset::new("v", tag, &shape, &chunk, data)
                .with_zstd(rng.random_bool(0.5))
                .with_metadata(metadata.into()),
        ];
        datasets.extend(
            axes.iter().enumerate().filter_map(|(axis, labels)| labels.dataset(&name(axis))),
        );
        let shuffle = rng.random_bool(0.5).then(|| StdRng::seed_from_u64(rng.random()));
        let layout =
            Layout { shuffle, history_version: Some(rng.random_range(1..=2)), ..Layout::default() };

        let mut columns: Vec<ArrayRef> = axes
            .iter()
            .enumerate()
            .map(|(axis, labels)| labels.column(cells.iter().map(|cell| cell[axis])))
            .collect();
        columns.push(values);
        let names = (0..rank).map(name).chain(["value".to_owned()]);
        let fields: Vec<Field> = names
            .zip(&columns)
            .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
            .collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let description = format!("shape {shape:?}, chunk {chunk:?}, element type {tag}");
        Self { axes, file: TempTet::new(&tet_bytes(&datasets, &layout)), rows, description }
    }

    async fn contexts(&self, rng: &mut StdRng) -> (SessionContext, SessionContext) {
        let partitions = rng.random_range(1..5);
        let batch_size = *[1, 3, 16, 8192].choose(rng).unwrap();
        let ours = session(partitions, batch_size);
        let io = if rng.random_bool(0.5) { IoMode::Mmap } else { IoMode::Pread };
        let options = TetReadOptions::default().with_dataset("v").with_io(io);
        ours.register_tet("t", self.file.location(), options).await.unwrap();
        let theirs = session(1, 8192);
        let table = MemTable::try_new(self.rows.schema(), vec![vec![self.rows.clone()]]).unwrap();
        theirs.register_table("t", Arc::new(table)).unwrap();
        (ours, theirs)
    }

    /// A random SELECT whose result does not depend on the order of rows.
    fn query(&self, rng: &mut StdRng) -> String {
        let rank = self.axes.len();
        let mut conditions: Vec<String> = Vec::new();
        for _ in 0..rng.random_range(0..4) {
            let axis = rng.random_range(0..rank);
            let one = self.axes[axis].predicate(&name(axis), rng);
            let other = rng.random_range(0..rank);
            let two = self.axes[other].predicate(&name(other), rng);
            conditions.push(match rng.random_range(0..6) {
                0 => format!("({one} OR {two})"),
                1 => format!("({one} OR value > 2)"),
                2 => format!("NOT ({one} AND {two})"),
                3 => "value BETWEEN -2 AND 3".into(),
                _ => one,
            });
        }
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let mut columns: Vec<String> = (0..rank).map(name).chain(["value".into()]).collect();
        columns.retain(|_| rng.random_bool(0.7));
        let key = name(rng.random_range(0..rank));
        match rng.random_range(0..7) {
            _ if columns.is_empty() => format!("SELECT count(*) FROM t{filter}"),
            0 => format!(
                "SELECT count(*), count({0}), count(DISTINCT {0}), min({0}), max({0}) FROM t{filter}",
                columns[0]
            ),
            1 => format!(
                "SELECT {key}, count(value), min(value), max(value) FROM t{filter} GROUP BY {key}"
            ),
            2 => format!("SELECT DISTINCT {key} FROM t{filter}"),
            3 => format!(
                "SELECT count(*) FROM (SELECT * FROM t{filter} LIMIT {})",
                rng.random_range(0..50)
            ),
            4 => format!("SELECT min({key}), max({key}), count(DISTINCT {key}) FROM t{filter}"),
            _ => format!("SELECT {} FROM t{filter}", columns.join(", ")),
        }
    }
}

/// Small numbers, some of them NaN or the fill value; the column has NULL for those.
fn random_values(rng: &mut StdRng, tag: u32, count: usize) -> (Vec<u8>, ArrayRef) {
    let nulls = *[0.0, 0.1, 0.9].choose(rng).unwrap();
    let float = tag == F32 || tag == F64;
    let stored: Vec<f64> = (0..count)
        .map(|_| match (rng.random_bool(nulls), float && rng.random_bool(0.5)) {
            (true, true) => f64::NAN,
            (true, false) => -99.0,
            _ => f64::from(rng.random_range(-6..7)),
        })
        .collect();
    let bytes = stored
        .iter()
        .flat_map(|&value| match tag {
            F32 => (value as f32).to_le_bytes().to_vec(),
            F64 => value.to_le_bytes().to_vec(),
            I16 => (value as i16).to_le_bytes().to_vec(),
            I32 => (value as i32).to_le_bytes().to_vec(),
            _ => (value as i64).to_le_bytes().to_vec(),
        })
        .collect();
    let shown: Float64Array =
        stored.iter().map(|&value| (!value.is_nan() && value != -99.0).then_some(value)).collect();
    let data_type = match tag {
        F32 => DataType::Float32,
        F64 => DataType::Float64,
        I16 => DataType::Int16,
        I32 => DataType::Int32,
        _ => DataType::Int64,
    };
    (bytes, cast(&shown, &data_type).unwrap())
}

#[tokio::test]
async fn random_queries_agree_with_rows_in_memory() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut not_empty = 0;
    for number in 0..250 {
        let case = Case::random(&mut rng);
        let (ours, theirs) = case.contexts(&mut rng).await;
        for _ in 0..12 {
            let sql = case.query(&mut rng);
            let [found, expected] = [&ours, &theirs].map(|ctx| query(ctx, &sql));
            let (found, expected) = (found.await, expected.await);
            let (found, expected) = match (found, expected) {
                (Ok(found), Ok(expected)) => (found, expected),
                (Err(_), Err(_)) => continue,
                (found, expected) => panic!(
                    "case {number}, {}: {sql}\nours: {:?}\ntheirs: {:?}",
                    case.description,
                    found.map(|_| ()),
                    expected.map(|_| ())
                ),
            };
            let (mut found, mut expected) = (rows_of(&found), rows_of(&expected));
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "case {number}, {}: {sql}", case.description);
            not_empty += usize::from(!found.is_empty());
        }
    }
    assert!(not_empty > 1_500, "only {not_empty} queries had rows; they test little");
}

/// Index columns show where a cell is, whatever its labels are.
#[tokio::test]
async fn index_columns_agree_too() {
    let mut rng = StdRng::seed_from_u64(6);
    for _ in 0..60 {
        let case = Case::random(&mut rng);
        let ctx = session(2, 5);
        let options = TetReadOptions::default().with_dataset("v").with_index_columns(true);
        ctx.register_tet("t", case.file.location(), options).await.unwrap();
        let rank = case.axes.len();
        let keys: Vec<String> = (0..rank).map(|axis| format!("d{axis}_idx")).collect();
        let at = rng.random_range(0..3);
        let sql =
            format!("SELECT {0}, value FROM t WHERE d0_idx >= {at} ORDER BY {0}", keys.join(", "));
        let found = rows_of(&query(&ctx, &sql).await.unwrap());
        let values = rows_of(&[case.rows.project(&[rank]).unwrap()]);
        let shape: Vec<u64> = case
            .axes
            .iter()
            .map(|axis| match axis {
                Axis::Index(len) => *len,
                Axis::Text(labels) => labels.len() as u64,
                Axis::Numbers(labels) => labels.len() as u64,
                Axis::Hours(labels) => labels.len() as u64,
            })
            .collect();
        let expected: Vec<Vec<String>> = positions(&shape)
            .iter()
            .zip(values)
            .filter(|(cell, _)| cell[0] >= at)
            .map(|(cell, value)| cell.iter().map(u64::to_string).chain(value).collect())
            .collect();
        assert_eq!(found, expected, "{}", case.description);
    }
}
