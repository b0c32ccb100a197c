//! Stores that [`ZarrWriter`] writes, as the reader reads them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray, new_null_array,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use gridfusion_core::ErrorKind;
use gridfusion_core::format::codecs::BloscCompressor;
use gridfusion_core::io::LocalFolder;
use gridfusion_core::tile::write_all;
use gridfusion_core::write::{
    ArrayWriter, NewArray, NewChunk, NewDimension, NewVariable, cells_of_box,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::{ZarrBlosc, ZarrCompressor, ZarrEncoding, ZarrWriter, open};

/// The types that a store has, with whether its cells can be NULL without a fill value of the caller.
const TYPES: [(DataType, bool); 17] = [
    (DataType::Boolean, false),
    (DataType::Int8, false),
    (DataType::Int16, false),
    (DataType::Int32, false),
    (DataType::Int64, false),
    (DataType::UInt8, false),
    (DataType::UInt16, false),
    (DataType::UInt32, false),
    (DataType::UInt64, false),
    (DataType::Float16, true),
    (DataType::Float32, true),
    (DataType::Float64, true),
    (DataType::Utf8, false),
    (DataType::LargeUtf8, false),
    (DataType::Utf8View, false),
    (DataType::Timestamp(TimeUnit::Second, None), true),
    (DataType::Timestamp(TimeUnit::Nanosecond, None), true),
];

fn blosc(compressor: BloscCompressor, level: u8) -> ZarrCompressor {
    ZarrCompressor::Blosc(ZarrBlosc::new(compressor, level))
}

fn dimension(name: &str, len: u64) -> NewDimension {
    let labels = Arc::new(Int64Array::from_iter_values((0..len).map(|at| 10 * at as i64)));
    NewDimension { name: name.to_owned(), labels, attributes: BTreeMap::new() }
}

fn variable(name: &str, data_type: DataType, fill: Option<ArrayRef>) -> NewVariable {
    NewVariable { name: name.to_owned(), data_type, fill, attributes: BTreeMap::new() }
}

/// Small numbers as cells of a type, a part of which is NULL.
fn cells(rng: &mut SmallRng, data_type: &DataType, len: u64, nulls: f64) -> ArrayRef {
    let numbers = (0..len).map(|_| {
        let number = rng.random_range(1..100_i64);
        (!rng.random_bool(nulls)).then_some(number)
    });
    let numbers: ArrayRef = Arc::new(numbers.collect::<Int64Array>());
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = numbers.as_primitive::<Int64Type>().iter();
            let texts = texts.map(|it| it.map(|it| "é".repeat(it as usize % 5) + &it.to_string()));
            cast(&(Arc::new(texts.collect::<StringArray>()) as ArrayRef), data_type).unwrap()
        }
        DataType::Boolean => cast(&numbers, data_type).unwrap(),
        _ => cast(&numbers, data_type).unwrap(),
    }
}

/// Returns every chunk of a variable, in the shape that the writer takes.
fn chunks(writer: &ZarrWriter, number: usize, cells: &ArrayRef) -> Vec<NewChunk> {
    let grid = writer.array().grid();
    let chunk = |at: u64| {
        let coordinates = grid.chunk_coordinates(at);
        let ranges: Vec<_> =
            (0..grid.rank()).map(|axis| grid.axis_range(axis, coordinates[axis])).collect();
        let cells = cells_of_box(cells, grid.shape(), &ranges).unwrap();
        NewChunk { variable: number, coordinates, cells, given: None }
    };
    (0..grid.chunks()).map(chunk).collect()
}

async fn written(
    path: &Path,
    writer: ZarrWriter,
    chunks: Vec<NewChunk>,
) -> gridfusion_core::Result<()> {
    std::fs::create_dir_all(path).unwrap();
    let folder = Arc::new(LocalFolder::open(path, true)?);
    write_all(writer, futures::stream::iter(chunks.into_iter().map(Ok)), folder).await
}

/// Reads a variable, as the texts of its cells, row by row; `None` for NULL.
async fn read(path: &Path, name: &str, shape: &[u64]) -> Vec<Option<String>> {
    let reader = open(path.to_str().unwrap()).await.unwrap().array(name).await.unwrap();
    let batches: Vec<_> = reader.batches().try_collect().await.unwrap();
    let total = shape.iter().product::<u64>() as usize;
    let mut found = vec![None; total];
    let Some(first) = batches.first() else { return found };
    let batch = concat_batches(&first.schema(), &batches).unwrap();
    assert_eq!(batch.num_rows(), total);
    let values = batch.column(shape.len());
    for row in 0..total {
        let place = shape.iter().enumerate().fold(0, |place, (axis, len)| {
            let label = batch.column(axis).as_primitive::<Int64Type>().value(row);
            place * *len as usize + label as usize / 10
        });
        let value = (!values.is_null(row)).then(|| array_value_to_string(values, row).unwrap());
        found[place] = value;
    }
    found
}

fn texts(cells: &ArrayRef) -> Vec<Option<String>> {
    let text = |row| (!cells.is_null(row)).then(|| array_value_to_string(cells, row).unwrap());
    (0..cells.len()).map(text).collect()
}

#[tokio::test]
async fn stores_of_all_types_ranks_and_encodings_are_read_back() {
    let mut rng = SmallRng::seed_from_u64(46);
    let folder = tempfile::tempdir().unwrap();
    for case in 0..150 {
        let (data_type, is_nullable) = &TYPES[case % TYPES.len()];
        let rank = 1 + case % 5;
        let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..6)).collect();
        let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..5)).collect();
        let len = shape.iter().product();
        let has_fill = *is_nullable || case % 3 == 0;
        // No cell has this value.
        let fill: ArrayRef = match data_type {
            DataType::Boolean => Arc::new(arrow::array::BooleanArray::from(vec![false])),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                cast(&(Arc::new(StringArray::from(vec!["none"])) as ArrayRef), data_type).unwrap()
            }
            _ => cast(&(Arc::new(Int64Array::from(vec![101])) as ArrayRef), data_type).unwrap(),
        };
        let nulls = if has_fill { [0.0, 0.3, 1.0][case % 4 % 3] } else { 0.0 };
        let fill = (has_fill && case % 3 == 0).then_some(fill);
        let encoding = ZarrEncoding {
            compressor: [
                None,
                Some(ZarrCompressor::Zstd(1)),
                Some(ZarrCompressor::Gzip(5)),
                Some(blosc(BloscCompressor::Zstd, 5)),
                Some(blosc(BloscCompressor::Lz4, 5)),
                Some(blosc(BloscCompressor::Zlib, 9)),
            ][rng.random_range(0..6)],
            has_checksums: rng.random_bool(0.5),
            shard_chunks: rng
                .random_bool(0.4)
                .then(|| (0..rank).map(|_| rng.random_range(1..4)).collect()),
        };
        let dimensions =
            shape.iter().enumerate().map(|(at, len)| dimension(&format!("d{at}"), *len));
        let variables =
            vec![variable("v", data_type.clone(), fill), variable("w", DataType::Int32, None)];
        let array = NewArray::try_new(dimensions.collect(), variables, &chunk).unwrap();
        let writer = ZarrWriter::try_new(array, encoding).unwrap();
        let v = cells(&mut rng, data_type, len, nulls);
        let w = cells(&mut rng, &DataType::Int32, len, 0.0);
        let both = [chunks(&writer, 0, &v), chunks(&writer, 1, &w)].concat();
        let path = folder.path().join(format!("{case}.zarr"));
        written(&path, writer, both).await.unwrap();
        assert_eq!(read(&path, "v", &shape).await, texts(&v), "case {case}: {data_type}");
        assert_eq!(read(&path, "w", &shape).await, texts(&w), "case {case}");
    }
}

#[tokio::test]
async fn cells_that_would_read_as_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let fill = Some(numbers(vec![Some(7)]));
    let cases = [
        (
            None,
            vec![Some(1), None],
            "x=10 of \"v\" cannot be written: it is NULL, and the variable has no fill value",
        ),
        (fill, vec![Some(7), None], "x=0 of \"v\" cannot be written: it has the fill value"),
    ];
    for (number, (fill, values, message)) in cases.into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.zarr"));
        let array = NewArray::try_new(
            vec![dimension("x", 2)],
            vec![variable("v", DataType::Int64, fill)],
            &[2],
        );
        let writer = ZarrWriter::try_new(array.unwrap(), ZarrEncoding::default()).unwrap();
        let chunk =
            NewChunk { variable: 0, coordinates: vec![0], cells: numbers(values), given: None };
        let error = written(&path, writer, vec![chunk]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(message), "{error}");
        assert!(open(path.to_str().unwrap()).await.is_err(), "nothing is visible");
    }
}

#[tokio::test]
async fn chunks_that_are_missing_or_come_twice_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let writer = || {
        let variables = vec![variable("v", DataType::Int64, None)];
        let array = NewArray::try_new(vec![dimension("x", 3)], variables, &[2]).unwrap();
        ZarrWriter::try_new(array, ZarrEncoding::default()).unwrap()
    };
    let chunk = |at: u64, len| NewChunk {
        variable: 0,
        coordinates: vec![at],
        cells: Arc::new(Int64Array::from_iter_values(0..len)),
        given: None,
    };
    for (chunks, message) in [
        (vec![chunk(0, 2)], "1 of 2 chunks of \"v\" were written, and it has no fill value"),
        (vec![chunk(0, 2), chunk(0, 2)], "chunk [0] of \"v\" is written twice"),
        (vec![chunk(1, 2)], "chunk [1] of \"v\" has 2 cells of Int64, expected 1 of Int64"),
        (vec![chunk(2, 1)], "chunk [2] of variable 0 is outside of the array"),
    ] {
        let path = folder.path().join("x.zarr");
        let error = written(&path, writer(), chunks).await.unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        let left = std::fs::read_dir(&path).unwrap().flatten().filter(|it| it.path().is_file());
        assert_eq!(left.count(), 0, "{message}");
    }
    let path = folder.path().join("x.zarr");
    written(&path, writer(), vec![chunk(0, 2), chunk(1, 1)]).await.unwrap();
    let again = written(&path, writer(), vec![chunk(0, 2), chunk(1, 1)]).await.unwrap_err();
    assert!(again.to_string().contains("exists already"), "{again}");
    assert_eq!(read(&path, "v", &[3]).await.len(), 3, "the first store stays");
}

#[test]
fn descriptions_that_do_not_fit_are_refused() {
    let v = || variable("v", DataType::Float64, None);
    let x = || dimension("x", 2);
    let mut null = x();
    null.labels = new_null_array(&DataType::Int64, 2);
    let wrong = variable("v", DataType::Int64, Some(Arc::new(Float64Array::from(vec![1.0]))));
    for (dimensions, variables, chunk, message) in [
        (vec![x(), x()], vec![v()], vec![1, 1], "two columns are called \"x\""),
        (vec![dimension("v", 2)], vec![v()], vec![1], "two columns are called \"v\""),
        (vec![null], vec![v()], vec![1], "label 0 of the dimension \"x\" is NULL"),
        (vec![x()], vec![wrong], vec![1], "the fill value of \"v\" is no Int64"),
        (vec![x()], vec![v()], vec![0], "chunks of shape [0] for 1 dimensions"),
        (vec![x()], vec![v()], vec![1, 1], "chunks of shape [1, 1] for 1 dimensions"),
        (vec![dimension("a/b", 2)], vec![v()], vec![1], "\"a/b\" cannot be the name"),
        (vec![dimension("..", 2)], vec![v()], vec![1], "\"..\" cannot be the name"),
    ] {
        let error = NewArray::try_new(dimensions, variables, &chunk).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let array = |data_type| {
        NewArray::try_new(vec![x()], vec![variable("v", data_type, None)], &[1]).unwrap()
    };
    let refused = |array, encoding: ZarrEncoding| ZarrWriter::try_new(array, encoding).unwrap_err();
    let plain = ZarrEncoding::default();
    let error = refused(array(DataType::Null), plain.clone());
    assert!(error.to_string().contains("\"v\": writing columns of Null"), "{error}");
    for (encoding, message) in [
        (
            ZarrEncoding { compressor: Some(ZarrCompressor::Zstd(23)), ..plain.clone() },
            "zstd has no level 23",
        ),
        (
            ZarrEncoding { compressor: Some(ZarrCompressor::Gzip(10)), ..plain.clone() },
            "gzip has no level 10",
        ),
        (
            ZarrEncoding { compressor: Some(blosc(BloscCompressor::Lz4, 10)), ..plain.clone() },
            "blosc has no level 10",
        ),
        (ZarrEncoding { shard_chunks: Some(vec![0]), ..plain.clone() }, "shards of [0] chunks"),
        (ZarrEncoding { shard_chunks: Some(vec![1, 1]), ..plain }, "shards of [1, 1] chunks"),
    ] {
        let error = refused(array(DataType::Int8), encoding);
        assert!(error.to_string().contains(message), "{error}");
    }
}
