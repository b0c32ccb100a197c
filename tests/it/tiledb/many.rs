//! Several TileDB arrays as one table, concatenated or side by side, compared with the rows of the naive
//! model of each array.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use crate::support::tiledb_model::Seen;
use crate::support::tiledb_writer::{
    Cell, FLOAT64, Filters, INT16, INT32, INT64, TestArray, TestAttribute, TestDimension,
    TestFragment, TestSchema, TestStatistics, UTF8, put_in_folder,
};
use crate::support::{query, reducing, rows_of, session};

type Range = (i128, i128);

/// The first `count` of the attributes that the arrays have.
fn attributes(rng: &mut StdRng, count: usize) -> Vec<TestAttribute> {
    let mut filters = || *[Filters::None, Filters::Zstd, Filters::ShuffleZstd].choose(rng).unwrap();
    let attribute = |name: &str, code, values, nullable, fill: &[u8], filters| TestAttribute {
        name: name.into(),
        code,
        values,
        nullable,
        fill: fill.into(),
        fill_valid: false,
        filters,
    };
    let mut all = vec![
        attribute("v", INT32, Some(1), false, &(-7_i32).to_le_bytes(), filters()),
        attribute("f", FLOAT64, Some(1), true, &f64::NAN.to_le_bytes(), filters()),
        attribute("s", UTF8, None, true, b"?", Filters::Zstd),
    ];
    all.truncate(count);
    all
}

/// A random cell of an attribute. Numbers are whole, so that sums are exact in any order.
fn cell(rng: &mut StdRng, attribute: &TestAttribute) -> Cell {
    if attribute.nullable && rng.random_bool(0.2) {
        return None;
    }
    let number: i32 = rng.random_range(-9..10);
    Some(match attribute.code {
        INT32 => number.to_le_bytes().to_vec(),
        FLOAT64 => f64::from(number).to_le_bytes().to_vec(),
        _ => "äbc".chars().take(rng.random_range(0..4)).collect::<String>().into_bytes(),
    })
}

/// An array over these ranges of `x` and `y`, with random tile extents and overlapping fragments.
fn array(rng: &mut StdRng, ranges: [Range; 2], attribute_count: usize) -> TestArray {
    let dimensions = [("x", INT64), ("y", INT16)].into_iter().zip(ranges);
    let dimensions = dimensions.map(|((name, code), (low, high))| TestDimension {
        name: name.into(),
        code,
        domain: (low - rng.random_range(0..3), high + rng.random_range(0..3)),
        extent: rng.random_range(1..5),
    });
    let dimensions = dimensions.collect();
    // Without a current domain the table shows the written range, so the first fragment covers all.
    let has_domain = rng.random_bool(0.5);
    let schema = TestSchema {
        time: 1,
        dimensions,
        attributes: attributes(rng, attribute_count),
        column_major: [rng.random(), rng.random()],
        current_domain: has_domain.then(|| ranges.to_vec()),
        offsets: Filters::Zstd,
        validity: Filters::Zstd,
    };
    let count = rng.random_range(usize::from(!has_domain)..4);
    let fragments = (0..count).map(|number| {
        let whole = number == 0 && !has_domain;
        let part = |rng: &mut StdRng, (low, high): Range| {
            let (a, b) = (rng.random_range(low..=high), rng.random_range(low..=high));
            if whole { (low, high) } else { (a.min(b), a.max(b)) }
        };
        let ranges = ranges.map(|range| part(rng, range)).to_vec();
        let len: i128 = ranges.iter().map(|(low, high)| high - low + 1).product();
        let cells = schema
            .attributes
            .iter()
            .map(|attribute| (0..len).map(|_| cell(rng, attribute)).collect());
        let cells = cells.collect();
        let statistics = *[TestStatistics::Absent, TestStatistics::Right].choose(rng).unwrap();
        let time = 10 + number as u64;
        TestFragment { times: (time, time), schema: 0, ranges, cells, statistics }
    });
    let fragments = fragments.collect();
    TestArray { schemas: vec![schema], fragments, vacuums: vec![], commit_list: false }
}

/// The rows of a table over the array alone.
fn rows(array: &TestArray) -> RecordBatch {
    Seen::new(array, &ArrayOptions::default()).rows().unwrap()
}

fn write(rng: &mut StdRng, array: &TestArray, folder: &Path) {
    put_in_folder(&array.files(rng), folder);
}

/// The rows with another column after their own.
fn with_column(rows: &RecordBatch, name: &str, column: ArrayRef) -> RecordBatch {
    let mut fields: Vec<Field> =
        rows.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    fields.push(Field::new(name, column.data_type().clone(), true));
    let columns = rows.columns().iter().cloned().chain([column]).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn in_memory(rows: RecordBatch) -> SessionContext {
    let ctx = session(1, 8192);
    let table = MemTable::try_new(rows.schema(), vec![vec![rows]]).unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    ctx
}

/// Compares the answers of two sessions; returns the number of queries with rows.
async fn compare(
    ours: &SessionContext,
    theirs: &SessionContext,
    queries: &[String],
    what: &dyn std::fmt::Debug,
) -> usize {
    let mut not_empty = 0;
    for sql in queries {
        let of = async |ctx: &SessionContext| match query(ctx, sql).await {
            Ok(batches) => {
                let mut rows = rows_of(&batches);
                rows.sort();
                rows
            }
            Err(error) => panic!("{sql}: {error}\n{what:#?}"),
        };
        let (found, expected) = (of(ours).await, of(theirs).await);
        assert_eq!(found, expected, "{sql}\n{what:#?}");
        not_empty += usize::from(!found.is_empty());
    }
    not_empty
}

/// Arrays that follow one another along `x` or `y`. Their folders `a-0`, `a-1`, … are in another order.
#[tokio::test]
async fn arrays_that_follow_one_another() {
    let mut rng = StdRng::seed_from_u64(21);
    let mut not_empty = 0;
    for case in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let along = rng.random_range(0..2);
        let other = (-2, rng.random_range(-1..6));
        let mut numbers: Vec<usize> = (0..rng.random_range(1..4)).collect();
        numbers.shuffle(&mut rng);
        let (mut arrays, mut all) = (vec![], vec![]);
        let mut next = rng.random_range(-20..20);
        for number in &numbers {
            let range = (next, next + rng.random_range(0..9));
            // Some arrays begin where the one before ends, some leave a gap.
            next = range.1 + 1 + rng.random_range(0..2) * rng.random_range(0..4);
            let ranges = if along == 0 { [range, other] } else { [other, range] };
            let array = array(&mut rng, ranges, 3);
            let location = at(&format!("a-{number}"));
            write(&mut rng, &array, location.as_ref());
            let rows = rows(&array);
            let files = StringViewArray::from_iter_values(vec![&location; rows.num_rows()]);
            all.push(with_column(&rows, "_file", Arc::new(files)));
            arrays.push(array);
        }
        let theirs = in_memory(concat_batches(&all[0].schema(), &all).unwrap());
        let ours = reducing(rng.random_range(1..4), *[1, 7, 8192].choose(&mut rng).unwrap());
        let name = ["x", "y"][along];
        let door = match case % 3 {
            0 => {
                let options = ArrayOptions::default().with_file_column(true);
                let options = options.with_concat_dimension(name);
                ours.register_array("t", at("a-*"), options).await.unwrap();
                None
            }
            1 => Some(format!(
                "CREATE EXTERNAL TABLE t STORED AS TILEDB LOCATION '{}'
                 OPTIONS (concat_dimension '{name}', file_column true)",
                at("a-*")
            )),
            _ => {
                let list: Vec<String> = numbers
                    .iter()
                    .map(|number| format!("'{}'", at(&format!("a-{number}"))))
                    .collect();
                Some(format!(
                    "CREATE VIEW t AS SELECT * FROM read_tiledb([{}], concat_dimension => '{name}', file_column => true)",
                    list.join(", ")
                ))
            }
        };
        if let Some(sql) = door {
            query(&ours, &sql).await.unwrap();
        }
        let (a, b) = (rng.random_range(-25..40), rng.random_range(0..12));
        let queries = [
            "SELECT * FROM t".to_owned(),
            format!(
                "SELECT count(*), count(f), sum(v), min(f), max(v), count(s) FROM t WHERE x BETWEEN {a} AND {}",
                a + b
            ),
            "SELECT _file, sum(v), count(f), max(s) FROM t GROUP BY _file".to_owned(),
            "SELECT y, sum(f), min(v), avg(v) FROM t GROUP BY y".to_owned(),
            format!("SELECT x, y, v, s FROM t WHERE v > {}", rng.random_range(-9..9)),
            format!("SELECT x, y FROM t WHERE f = {} OR s IS NULL", rng.random_range(-9..9)),
            "SELECT x, sum(v * f) FROM t GROUP BY x ORDER BY x DESC LIMIT 3".to_owned(),
            "SELECT x, y, s FROM t ORDER BY x, y LIMIT 5".to_owned(),
            format!(
                "SELECT min(x), max(x), count(DISTINCT _file) FROM t WHERE y > {}",
                rng.random_range(-3..4)
            ),
        ];
        not_empty += compare(&ours, &theirs, &queries, &arrays).await;
    }
    assert!(not_empty > 400, "{not_empty}");
}

/// The arrays of a folder as columns of one table, and several such folders concatenated.
#[tokio::test]
async fn arrays_side_by_side() {
    let mut rng = StdRng::seed_from_u64(22);
    let mut not_empty = 0;
    for case in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let y = (3, rng.random_range(3..9));
        let (mut arrays, mut all) = (vec![], vec![]);
        let mut next = -4;
        for number in 0..rng.random_range(1..3) {
            let ranges = [(next, next + rng.random_range(0..9)), y];
            next = ranges[0].1 + 1;
            let folder = dir.path().join(format!("g-{number}"));
            let (rain, both) = (array(&mut rng, ranges, 1), array(&mut rng, ranges, 3));
            write(&mut rng, &rain, &folder.join("rain"));
            write(&mut rng, &both, &folder.join("wind"));
            // A one-dimensional array named like its dimension is a coordinate, not a column.
            let mut labels = array(&mut rng, ranges, 1);
            labels.schemas[0].dimensions.truncate(1);
            labels.schemas[0].current_domain = Some(vec![ranges[0]]);
            labels.fragments.clear();
            write(&mut rng, &labels, &folder.join("x"));
            // An array's only attribute is a column with the array's name; several keep their own names.
            let wind = rows(&both);
            let alone = rows(&rain);
            let mut wide = RecordBatch::try_new(
                Arc::new(Schema::new(vec![
                    alone.schema().field(0).clone(),
                    alone.schema().field(1).clone(),
                    alone.schema().field(2).clone().with_name("rain"),
                ])),
                alone.columns().to_vec(),
            )
            .unwrap();
            for name in ["v", "f", "s"] {
                wide = with_column(&wide, name, Arc::clone(wind.column_by_name(name).unwrap()));
            }
            all.push(wide);
            arrays.extend([rain, both]);
        }
        let theirs = in_memory(concat_batches(&all[0].schema(), &all).unwrap());
        let ours = reducing(rng.random_range(1..4), *[1, 7, 8192].choose(&mut rng).unwrap());
        let options = match case % 2 {
            0 => ArrayOptions::default(),
            _ => ArrayOptions::default().with_dataset("rain, wind"),
        };
        let pattern = dir.path().join(if all.len() == 1 { "g-0" } else { "g-*" });
        let pattern = pattern.to_str().unwrap();
        let concat = options.with_concat_dimension("x");
        ours.register_array("t", pattern, concat).await.unwrap();
        let queries = [
            "SELECT * FROM t".to_owned(),
            "SELECT y, sum(rain * v), count(f), max(s) FROM t GROUP BY y".to_owned(),
            format!("SELECT x, rain, s FROM t WHERE v <= rain AND x > {}", rng.random_range(-5..9)),
            "SELECT count(*), sum(rain), avg(f), min(v) FROM t WHERE y < 6".to_owned(),
            "SELECT x, y, rain, f FROM t ORDER BY x DESC, y DESC LIMIT 4".to_owned(),
        ];
        not_empty += compare(&ours, &theirs, &queries, &arrays).await;
    }
    assert!(not_empty > 150, "{not_empty}");
}
