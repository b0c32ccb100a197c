//! Random variables in random files as one table, against a MemTable that holds the same rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use gridfusion::scan::{FileArrays, GridArray, MosaicOptions, OpenedFile, ReadOptions};
use gridfusion::{GridTable, io::MemorySource};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde_json::{Map, json};

use crate::cases::{Axis, name};
use crate::support::{
    F64, I32, Layout, TestDataset, positions, query, reducing, rows_of, session, tet_bytes,
};

/// Files of variables over the same dimensions, and the rows that they are as one table.
struct Mosaic {
    /// Location and bytes, in any order.
    files: Vec<(String, Vec<u8>)>,
    /// The dimension along which they follow one another.
    along: usize,
    axes: Vec<Axis>,
    variables: Vec<String>,
    rows: RecordBatch,
    description: String,
}

impl Mosaic {
    fn random(rng: &mut StdRng) -> Self {
        let rank = rng.random_range(1..=3);
        let along = rng.random_range(0..rank);
        let lens: Vec<u64> = (0..rng.random_range(1..=4)).map(|_| rng.random_range(1..6)).collect();
        let mut shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..8)).collect();
        shape[along] = lens.iter().sum();
        let mut axes: Vec<Axis> = shape.iter().map(|&len| Axis::random(rng, len)).collect();
        axes[along] = labels_along(rng, &lens);
        let count = rng.random_range(1..=3);
        let variables: Vec<String> =
            ["alpha", "beta", "gamma"][..count].iter().map(|it| (*it).into()).collect();
        // Whole numbers, so that sums are exact in any order.
        let cells = positions(&shape);
        let values: Vec<Vec<Option<i32>>> = (0..count)
            .map(|_| {
                cells
                    .iter()
                    .map(|_| rng.random_bool(0.8).then(|| rng.random_range(-9..10)))
                    .collect()
            })
            .collect();
        let tags: Vec<u32> = (0..count).map(|_| *[F64, I32].choose(rng).unwrap()).collect();

        let mut files = Vec::new();
        let mut description = format!("shape {shape:?} along {along} by {lens:?}");
        let mut start = 0;
        for (number, &len) in lens.iter().enumerate() {
            let of_file = start..start + len;
            start += len;
            let mut part = shape.clone();
            part[along] = len;
            let mut datasets = Vec::new();
            for (variable, values) in values.iter().enumerate() {
                let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..9)).collect();
                description += &format!(", {} {chunk:?}", variables[variable]);
                let of_part =
                    cells.iter().zip(values).filter(|(at, _)| of_file.contains(&at[along]));
                let data = of_part.flat_map(|(_, value)| bytes(tags[variable], *value)).collect();
                let dataset =
                    TestDataset::new(&variables[variable], tags[variable], &part, &chunk, data);
                datasets.push(
                    dataset.with_zstd(rng.random()).with_metadata(metadata(&axes, along, &of_file)),
                );
            }
            for (axis, labels) in axes.iter().enumerate() {
                let labels = if axis == along { &cut(labels, &of_file) } else { labels };
                datasets.extend(labels.dataset(&name(axis)));
            }
            let shuffle = rng.random_bool(0.3).then(|| StdRng::seed_from_u64(rng.random()));
            let layout = Layout { shuffle, history_version: Some(1), ..Layout::default() };
            files.push((format!("part-{number}.tet"), tet_bytes(&datasets, &layout)));
        }

        let mut columns: Vec<(String, ArrayRef)> = (0..rank)
            .map(|axis| (name(axis), axes[axis].column(cells.iter().map(|cell| cell[axis]))))
            .collect();
        for (variable, values) in values.iter().enumerate() {
            let column: ArrayRef = match tags[variable] {
                F64 => {
                    Arc::new(values.iter().map(|it| it.map(f64::from)).collect::<Float64Array>())
                }
                _ => Arc::new(values.iter().copied().collect::<Int32Array>()),
            };
            let alone = if count == 1 { "value".to_owned() } else { variables[variable].clone() };
            columns.push((alone, column));
        }
        let index = |axis: usize| cells.iter().map(move |cell| cell[axis] as i64);
        for axis in 0..rank {
            columns.push((
                format!("d{axis}_idx"),
                Arc::new(Int64Array::from_iter_values(index(axis))),
            ));
        }
        let ends: Vec<u64> = lens
            .iter()
            .scan(0, |end, len| {
                *end += len;
                Some(*end)
            })
            .collect();
        let file_of = |cell: &Vec<u64>| {
            format!("part-{}.tet", ends.partition_point(|end| *end <= cell[along]))
        };
        columns.push((
            "_file".into(),
            Arc::new(StringViewArray::from_iter_values(cells.iter().map(file_of))),
        ));
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
            .collect();
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        files.shuffle(rng);
        let variables = if count == 1 { vec!["value".into()] } else { variables };
        Self { files, along, axes, variables, rows, description }
    }

    /// The files as one table.
    async fn array(&self) -> gridfusion::Result<GridArray> {
        let mut files = Vec::new();
        for (location, bytes) in &self.files {
            let source = MemorySource::new(location.clone(), bytes::Bytes::from(bytes.clone()));
            let file = OpenedFile::open(Arc::new(source)).await?;
            let mut arrays = Vec::new();
            for variable in file.data_variables() {
                arrays.push(file.array(&variable, &ReadOptions::default()).await?);
            }
            files.push(FileArrays { name: location.clone(), arrays });
        }
        let options = MosaicOptions {
            concat_dimension: Some(name(self.along)),
            file_column: true,
            index_columns: true,
        };
        GridArray::side_by_side("all".into(), files, &options)
    }

    async fn contexts(&self, rng: &mut StdRng) -> (SessionContext, SessionContext) {
        let batch_size = *[1, 3, 16, 8192].choose(rng).unwrap();
        let ours = reducing(rng.random_range(1..5), batch_size);
        let table = GridTable::new(Arc::new(self.array().await.unwrap()));
        ours.register_table("t", Arc::new(table)).unwrap();
        let theirs = session(1, 8192);
        let table = MemTable::try_new(self.rows.schema(), vec![vec![self.rows.clone()]]).unwrap();
        theirs.register_table("t", Arc::new(table)).unwrap();
        (ours, theirs)
    }

    fn query(&self, rng: &mut StdRng) -> String {
        let rank = self.axes.len();
        let mut conditions: Vec<String> = Vec::new();
        for _ in 0..rng.random_range(0..3) {
            let axis = rng.random_range(0..rank);
            let of_axis = self.axes[axis].predicate(&name(axis), rng);
            let value = self.variables.choose(rng).unwrap();
            let other = self.variables.choose(rng).unwrap();
            conditions.push(match rng.random_range(0..7) {
                0 => format!("{value} > {}", rng.random_range(-9..9)),
                1 => format!("{value} <= {other}"),
                2 => format!("_file = 'part-{}.tet'", rng.random_range(0..4)),
                3 => format!("({of_axis} OR _file LIKE '%{}.tet')", rng.random_range(0..4)),
                _ => of_axis,
            });
        }
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(" AND ")),
        };
        let all: Vec<String> = (0..rank).map(name).chain(self.variables.clone()).collect();
        let columns: Vec<String> = all.iter().filter(|_| rng.random_bool(0.6)).cloned().collect();
        let (value, other) =
            (self.variables.choose(rng).unwrap(), self.variables.choose(rng).unwrap());
        let keys: Vec<String> = (0..rank).map(name).chain(["_file".into()]).collect();
        let key = keys.choose(rng).unwrap();
        let axes: Vec<String> = (0..rank).map(|axis| format!("d{axis}_idx")).collect();
        match rng.random_range(0..8) {
            0 => format!("SELECT count(*), count({value}), sum({other}) FROM t{filter}"),
            1 => format!(
                "SELECT {key}, count(*), sum({value}), min({other}), max({value}), avg({other}) FROM t{filter} GROUP BY {key}"
            ),
            2 => format!(
                "SELECT {key}, sum({value} * {other}), count(DISTINCT {value}) FROM t{filter} GROUP BY {key}"
            ),
            3 => format!(
                "SELECT {0}, {value} FROM t{filter} ORDER BY {0} LIMIT {1}",
                axes.join(", "),
                rng.random_range(1..9)
            ),
            4 => format!(
                "SELECT {value} FROM t{filter} ORDER BY {value} DESC NULLS LAST LIMIT {}",
                rng.random_range(1..9)
            ),
            5 => format!(
                "SELECT min({key}), max({key}), count(DISTINCT {key}), min({value}) FROM t{filter}"
            ),
            _ if columns.is_empty() => format!("SELECT count(*) FROM t{filter}"),
            _ => format!("SELECT {}, _file FROM t{filter}", columns.join(", ")),
        }
    }
}

/// Labels that do not repeat, sorted either way.
fn labels_along(rng: &mut StdRng, lens: &[u64]) -> Axis {
    let len = lens.iter().sum();
    let mut numbers: Vec<i32> = (0..len as i32).map(|at| at * 2 - 5).collect();
    // Of labels that are alone in their files, nobody knows that they descend.
    if rng.random() && lens.iter().any(|len| *len > 1) {
        numbers.reverse();
    }
    match rng.random_range(0..4) {
        0 => Axis::Index(len),
        1 => Axis::Numbers(numbers.iter().map(|&number| f64::from(number) / 4.0).collect()),
        _ => Axis::Hours(numbers),
    }
}

/// The labels of some elements.
fn cut(labels: &Axis, elements: &std::ops::Range<u64>) -> Axis {
    let range = elements.start as usize..elements.end as usize;
    match labels {
        Axis::Index(_) => Axis::Index(elements.end - elements.start),
        Axis::Text(labels) => Axis::Text(labels[range].to_vec()),
        Axis::Numbers(labels) => Axis::Numbers(labels[range].to_vec()),
        Axis::Hours(labels) => Axis::Hours(labels[range].to_vec()),
    }
}

fn metadata(axes: &[Axis], along: usize, elements: &std::ops::Range<u64>) -> serde_json::Value {
    let mut coords = Map::new();
    for (axis, labels) in axes.iter().enumerate() {
        let labels = if axis == along { &cut(labels, elements) } else { labels };
        if let Axis::Text(labels) = labels {
            coords.insert(name(axis), json!({"labels": labels}));
        }
    }
    let names: Vec<String> = (0..axes.len()).map(name).collect();
    json!({"dim_names": names, "coords": coords, "attrs": {"_FillValue": "-99"}})
}

fn bytes(tag: u32, value: Option<i32>) -> Vec<u8> {
    let value = value.unwrap_or(-99);
    if tag == F64 { f64::from(value).to_le_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
}

#[tokio::test]
async fn random_queries_agree_with_rows_in_memory() {
    let mut rng = StdRng::seed_from_u64(11);
    let mut not_empty = 0;
    for number in 0..150 {
        let case = Mosaic::random(&mut rng);
        let (ours, theirs) = case.contexts(&mut rng).await;
        for _ in 0..12 {
            let sql = case.query(&mut rng);
            let context = || format!("case {number}, {}: {sql}", case.description);
            let found = query(&ours, &sql).await;
            let expected = query(&theirs, &sql).await;
            let (found, expected) = match (found, expected) {
                (Ok(found), Ok(expected)) => (found, expected),
                (Err(_), Err(_)) => continue,
                (found, expected) => panic!(
                    "{}\nours: {:?}\ntheirs: {:?}",
                    context(),
                    found.map(|_| ()),
                    expected.map(|_| ())
                ),
            };
            let (mut found, mut expected) = (rows_of(&found), rows_of(&expected));
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{}", context());
            not_empty += usize::from(!found.is_empty());
        }
    }
    assert!(not_empty > 1_000, "only {not_empty} queries had rows; they test little");
}
