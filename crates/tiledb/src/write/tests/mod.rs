//! Random arrays are written, and read again: labels, cells, and what verification finds.

mod appends;
mod changes;
mod statistics;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Date32Array, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    StringArray, TimestampSecondArray, UInt8Array, UInt64Array, new_null_array,
};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, TimeUnit};
use futures::TryStreamExt;
use futures::stream;
use gridfusion_core::format::Write;
use gridfusion_core::io::LocalFolder;
use gridfusion_core::read::ArrayReader;
use gridfusion_core::tile::write_all;
use gridfusion_core::verify::{Depth, Progress};
use gridfusion_core::write::{
    ArrayWriter, Attributes, NewArray, NewChunk, NewDimension, NewVariable, cells_of_box,
};
use gridfusion_core::{ErrorKind, Result};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::{TileDbEncoding, TileDbFilter, TileDbWriter};
use crate::bytes::OpenOptions;
use crate::known_attributes::array_attributes;
use crate::reader::TileDbReader;
use crate::verify;
use crate::view::TileDbView;

/// The types of cells, and the share of cells that is NULL.
const TYPES: [DataType; 17] = [
    DataType::Boolean,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float32,
    DataType::Float64,
    DataType::Utf8,
    DataType::Date32,
    DataType::Timestamp(TimeUnit::Second, None),
    DataType::Timestamp(TimeUnit::Nanosecond, None),
    DataType::Duration(TimeUnit::Millisecond),
    DataType::Utf8View,
];

const FILTERS: [TileDbFilter; 12] = [
    TileDbFilter::Zstd(3),
    TileDbFilter::Gzip(5),
    TileDbFilter::Bzip2(9),
    TileDbFilter::RunLength,
    TileDbFilter::Delta,
    TileDbFilter::DoubleDelta,
    TileDbFilter::BitWidthReduction,
    TileDbFilter::Byteshuffle,
    TileDbFilter::Bitshuffle,
    TileDbFilter::Xor,
    TileDbFilter::Md5,
    TileDbFilter::Sha256,
];

/// A new array with the cells of each variable, row by row.
struct Sample {
    array: NewArray,
    encoding: TileDbEncoding,
    cells: Vec<ArrayRef>,
}

fn labels(rng: &mut SmallRng, len: usize, counted: Option<usize>) -> ArrayRef {
    let start = rng.random_range(-20..20_i32);
    let numbers = || (0..len as i32).map(move |at| start + at);
    match counted {
        Some(0) => return Arc::new(Int16Array::from_iter_values(numbers().map(|it| it as i16))),
        Some(1) => {
            let hours = numbers().map(|it| i64::from(it) * 3600);
            return Arc::new(TimestampSecondArray::from_iter_values(hours));
        }
        Some(_) => return Arc::new(Date32Array::from_iter_values(numbers())),
        None => {}
    }
    match rng.random_range(0..6) {
        0 => Arc::new(Float64Array::from_iter_values(numbers().map(|it| f64::from(it) * 0.25))),
        1 => Arc::new(Float32Array::from_iter_values(numbers().map(|it| -1.5 * it as f32))),
        2 => Arc::new(Int32Array::from_iter_values(numbers().map(|it| -it))),
        3 => Arc::new(StringArray::from_iter_values((0..len).map(|at| format!("s{at:03}")))),
        4 => Arc::new(UInt64Array::from_iter_values((0..len as u64).map(|at| at * at + 7))),
        _ => {
            let times = numbers().map(|it| i64::from(it) * 86_400 + 5);
            Arc::new(TimestampSecondArray::from_iter_values(times))
        }
    }
}

fn cells(rng: &mut SmallRng, data_type: &DataType, count: usize) -> ArrayRef {
    let nulls = [0, 0, 10, 100][rng.random_range(0..4)];
    let is_null = |rng: &mut SmallRng| rng.random_range(0..100) < nulls;
    if data_type.is_string() {
        let texts = ["", "a", "Ærø", "a longer text", "\0"];
        let texts = (0..count).map(|_| {
            let text = texts[rng.random_range(0..texts.len())];
            (!is_null(rng)).then_some(text)
        });
        return cast(&StringArray::from_iter(texts), data_type).unwrap();
    }
    let most = [2, 50, 120][rng.random_range(0..3)];
    let numbers = (0..count).map(|_| {
        let number = rng.random_range(0..most);
        (!is_null(rng)).then_some(number)
    });
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter(numbers));
    match data_type {
        DataType::Boolean => cast(&numbers, data_type).unwrap(),
        DataType::Date32 => cast(&cast(&numbers, &DataType::Int32).unwrap(), data_type).unwrap(),
        _ => cast(&numbers, data_type).unwrap(),
    }
}

fn sample(rng: &mut SmallRng) -> Sample {
    let rank = rng.random_range(1..5);
    let most = [40, 9, 6, 5][rank - 1];
    let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..most)).collect();
    let chunk_shape: Vec<u64> = shape.iter().map(|_| rng.random_range(1..most)).collect();
    let counted = rng.random::<bool>().then(|| rng.random_range(0..3));
    let dimension = |(axis, len): (usize, &u64), rng: &mut SmallRng| NewDimension {
        name: format!("d{axis}"),
        labels: labels(rng, *len as usize, counted),
        attributes: Attributes::from([("units".to_owned(), json!(format!("u{axis}")))]),
    };
    let dimensions = shape.iter().enumerate().map(|it| dimension(it, rng)).collect();
    let count = shape.iter().product::<u64>() as usize;
    let types =
        (0..rng.random_range(1..4)).map(|_| TYPES[rng.random_range(0..TYPES.len())].clone());
    let types: Vec<DataType> = types.collect();
    let cells = types.iter().map(|it| cells(rng, it, count)).collect();
    let variable = |(number, data_type): (usize, DataType)| NewVariable {
        name: format!("v{number}"),
        data_type,
        fill: None,
        attributes: Attributes::new(),
    };
    let variables = types.into_iter().enumerate().map(variable).collect();
    let mut filters: Vec<TileDbFilter> =
        (0..rng.random_range(0..4)).map(|_| FILTERS[rng.random_range(0..FILTERS.len())]).collect();
    let encoding = |filters: &[TileDbFilter]| TileDbEncoding {
        filters: filters.to_vec(),
        ..TileDbEncoding::default()
    };
    while encoding(&filters).check().is_err() {
        filters.remove(1);
    }
    let array = NewArray::try_new(dimensions, variables, &chunk_shape).unwrap();
    let encoding = TileDbEncoding { can_grow: rng.random(), ..encoding(&filters) };
    Sample { array, encoding, cells }
}

/// Returns the chunks that a writer takes, in any order. Some that have only NULL are left out.
fn chunks(array: &NewArray, cells: &[ArrayRef], rng: &mut SmallRng) -> Vec<Result<NewChunk>> {
    let grid = array.grid();
    let mut chunks = vec![];
    for (variable, cells) in cells.iter().enumerate() {
        for number in 0..grid.chunks() {
            let coordinates = grid.chunk_coordinates(number);
            let cells = cells_of_box(cells, grid.shape(), &array.ranges_in(&coordinates)).unwrap();
            if cells.null_count() < cells.len() || rng.random() {
                let at = rng.random_range(0..=chunks.len());
                chunks.insert(at, Ok(NewChunk { variable, coordinates, cells, given: None }));
            }
        }
    }
    chunks
}

async fn written(sample: &Sample, rng: &mut SmallRng) -> (tempfile::TempDir, TileDbReader) {
    let writer = TileDbWriter::try_new(sample.array.clone(), sample.encoding.clone()).unwrap();
    let chunks = chunks(writer.array(), &sample.cells, rng);
    let folder = tempfile::tempdir().unwrap();
    let local = Arc::new(LocalFolder::open(folder.path(), true).unwrap());
    write_all(writer, stream::iter(chunks), local).await.unwrap();
    let reader = open(folder.path()).await.unwrap();
    (folder, reader)
}

async fn open(path: &std::path::Path) -> Result<TileDbReader> {
    let folder = Arc::new(LocalFolder::open(path, true).unwrap());
    TileDbReader::open(folder, OpenOptions::default()).await
}

/// Reads the cells of each variable, row by row.
async fn read(reader: &TileDbReader, view: &TileDbView) -> Vec<ArrayRef> {
    let array = reader.grid(view).unwrap();
    let rank = array.dims().len();
    let batches: Vec<_> = ArrayReader::new(array).batches().try_collect().await.unwrap();
    let columns = rank..batches[0].num_columns();
    // Batches come chunk by chunk, and the rows of a chunk in order: sort them by their labels' places.
    columns
        .map(|column| {
            let parts: Vec<_> = batches.iter().map(|it| it.column(column).as_ref()).collect();
            concat(&parts).unwrap()
        })
        .collect()
}

/// Returns cells in the order in which they are read: chunk by chunk.
fn in_chunk_order(array: &NewArray, cells: &ArrayRef) -> ArrayRef {
    let grid = array.grid();
    let parts = (0..grid.chunks()).map(|number| {
        let ranges = array.ranges_in(&grid.chunk_coordinates(number));
        cells_of_box(cells, grid.shape(), &ranges).unwrap()
    });
    let parts: Vec<ArrayRef> = parts.collect();
    concat(&parts.iter().map(|it| it.as_ref()).collect::<Vec<_>>()).unwrap()
}

/// Returns values in a type that has one form of text.
fn plain(values: &ArrayRef) -> ArrayRef {
    match values.data_type().is_string() {
        true => cast(values, &DataType::Utf8).unwrap(),
        false => ArrayRef::clone(values),
    }
}

#[tokio::test]
async fn random_arrays_come_back() {
    let mut rng = SmallRng::seed_from_u64(21);
    for round in 0..150 {
        let sample = sample(&mut rng);
        let (_folder, reader) = written(&sample, &mut rng).await;
        let grid = reader.grid(&TileDbView::default()).unwrap();
        for (dimension, read) in sample.array.dimensions().iter().zip(grid.dims()) {
            let labels = read.labels().slice(0..read.len()).unwrap();
            assert_eq!(read.name(), dimension.name, "{round}");
            assert_eq!(&plain(&labels), &dimension.labels, "{round}");
        }
        let writer = TileDbWriter::try_new(sample.array.clone(), sample.encoding.clone()).unwrap();
        for (cells, read) in sample.cells.iter().zip(read(&reader, &TileDbView::default()).await) {
            let expected = plain(&in_chunk_order(writer.array(), cells));
            assert_eq!(&plain(&read), &expected, "{round} {:?}", sample.encoding);
        }
        let report = verify(&reader, Depth::Cells, &Arc::new(Progress::default())).await;
        let findings: Vec<_> = report.checks().iter().flat_map(|it| it.findings()).collect();
        assert!(findings.is_empty(), "{round} {findings:?}");
    }
}

fn small(labels: ArrayRef, cells: &ArrayRef, fill: Option<ArrayRef>) -> Result<NewArray> {
    let x = NewDimension { name: "x".to_owned(), labels, attributes: Attributes::new() };
    let v = NewVariable {
        name: "v".to_owned(),
        data_type: cells.data_type().clone(),
        fill,
        attributes: Attributes::from([
            ("units".to_owned(), json!("K")),
            ("valid_range".to_owned(), json!([1, 2])),
            ("scale".to_owned(), json!(0.5)),
            ("flags".to_owned(), json!({"a": true})),
            ("empty".to_owned(), json!("")),
        ]),
    };
    NewArray::try_new(vec![x], vec![v], &[2])
}

fn refused(labels: ArrayRef, cells: &ArrayRef, kind: ErrorKind, why: &str) {
    let array = small(labels, cells, None).unwrap();
    let error = TileDbWriter::try_new(array, TileDbEncoding::default()).unwrap_err();
    assert!(error.kind() == kind && error.to_string().contains(why), "{error}");
}

#[test]
fn what_tiledb_does_not_have_is_refused() {
    let cells: ArrayRef = Arc::new(UInt8Array::from(vec![1, 2, 3]));
    let texts = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let unsupported = ErrorKind::Unsupported;
    refused(texts(&["b", "a", "c"]), &cells, unsupported, "neither ascend nor descend");
    refused(texts(&["a", "b", "é"]), &cells, unsupported, "not ASCII");
    let nan = Arc::new(Float64Array::from(vec![1.0, 2.0, f64::NAN]));
    refused(nan, &cells, unsupported, "no number");
    refused(new_null_array(&DataType::Int32, 0), &cells, unsupported, "without labels");
    let halves = cast(&cells, &DataType::Float16).unwrap();
    let labels: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    refused(Arc::clone(&labels), &halves, unsupported, "TileDB has no Float16");
    let encoding = |filters: &[TileDbFilter]| TileDbEncoding {
        filters: filters.to_vec(),
        ..TileDbEncoding::default()
    };
    for filters in [
        &[TileDbFilter::Gzip(10)][..],
        &[TileDbFilter::Bzip2(0)],
        &[TileDbFilter::Zstd(3), TileDbFilter::Delta],
        &[TileDbFilter::Md5; 17],
    ] {
        let array = small(Arc::clone(&labels), &cells, None).unwrap();
        let error = TileDbWriter::try_new(array, encoding(filters)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}

#[tokio::test]
async fn fill_values_stand_for_null_by_option() {
    let cells: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let labels: ArrayRef = Arc::new(Int32Array::from(vec![4, 5, 6]));
    let fill: ArrayRef = Arc::new(Int32Array::from(vec![-9]));
    let array = small(labels, &cells, Some(fill)).unwrap();
    let sample = Sample { array, encoding: TileDbEncoding::default(), cells: vec![cells] };
    let (folder, reader) = written(&sample, &mut SmallRng::seed_from_u64(1)).await;
    assert!(!reader.tiledb().schema().attributes[0].nullable);
    let filled: ArrayRef = Arc::new(Int32Array::from(vec![1, -9, 3]));
    assert_eq!(read(&reader, &TileDbView::default()).await, [filled]);
    let mut view = TileDbView::default();
    view.read = view.read.with_fill_as_null(true);
    assert_eq!(read(&reader, &view).await, sample.cells);
    let attributes = array_attributes("a", &reader).await.unwrap();
    let found: Vec<_> = attributes
        .iter()
        .map(|it| (it.variable.as_deref(), it.key.as_str(), it.value.as_str()))
        .collect();
    let v = Some("v");
    let expected = [
        (v, "empty", ""),
        (v, "flags", "{\"a\":true}"),
        (v, "scale", "0.5"),
        (v, "units", "K"),
        (v, "valid_range", "[1, 2]"),
    ];
    assert_eq!(found, expected);
    // A second writer of the same place fails.
    let local = Arc::new(LocalFolder::open(folder.path(), true).unwrap());
    let writer = TileDbWriter::try_new(sample.array.clone(), sample.encoding.clone()).unwrap();
    let chunks = chunks(&sample.array, &sample.cells, &mut SmallRng::seed_from_u64(1));
    assert!(write_all(writer, stream::iter(chunks), local).await.is_err());
    assert_eq!(open(folder.path()).await.unwrap().tiledb().fragments().len(), 1);
}

#[test]
fn chunks_stream_in_order_and_are_held_otherwise() {
    let cells: ArrayRef = Arc::new(UInt8Array::from(vec![1, 2, 3, 4, 5]));
    let labels: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5]));
    let chunk = |at: u64| NewChunk {
        variable: 0,
        coordinates: vec![at],
        cells: cells.slice(2 * at as usize, if at == 2 { 1 } else { 2 }),
        given: None,
    };
    let encoding =
        TileDbEncoding { filters: vec![], max_bytes: 1 << 20, ..TileDbEncoding::default() };
    let array = small(labels, &cells, None).unwrap();
    let mut writer = TileDbWriter::try_new(array.clone(), encoding.clone()).unwrap();
    let appended = |writes: Vec<Write>| writes.len();
    let free = writer.memory();
    assert_eq!(appended(writer.write_many(vec![chunk(1)], 1).unwrap()), 0);
    assert!(writer.memory() > free);
    assert_eq!(appended(writer.write_many(vec![chunk(0)], 1).unwrap()), 2);
    assert_eq!(writer.memory(), free);
    let twice = writer.write_many(vec![chunk(1)], 1).unwrap_err();
    assert!(twice.to_string().contains("written twice"));
    let mut short =
        TileDbWriter::try_new(array, TileDbEncoding { max_bytes: 10, ..encoding }).unwrap();
    let error = short.write_many(vec![chunk(1)], 1).unwrap_err();
    assert!(error.to_string().contains("max_bytes"), "{error}");
    assert_eq!(appended(short.write_many(vec![], 1).unwrap()), 0);
}

#[tokio::test]
async fn labels_are_shown_if_all_are_there() {
    let cells: ArrayRef = Arc::new(UInt8Array::from(vec![1, 2, 3]));
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![3.5, 1.5, 0.0]));
    let array = small(floats, &cells, None).unwrap();
    let sample = Sample { array, encoding: TileDbEncoding::default(), cells: vec![cells] };
    let (folder, reader) = written(&sample, &mut SmallRng::seed_from_u64(1)).await;
    let name = |reader: &TileDbReader| {
        let grid = reader.grid(&TileDbView::default());
        grid.map(|grid| grid.dims()[0].name().to_owned())
    };
    assert_eq!(name(&reader).unwrap(), "x");
    let labels = folder.path().join("__labels/l0");
    let schema = labels.join("__schema").join(super::names::FIRST_SCHEMA);
    let stored = std::fs::read(&schema).unwrap();
    std::fs::write(&schema, &stored[..stored.len() / 2]).unwrap();
    let error = name(&open(folder.path()).await.unwrap()).unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("labels \"x\""));
    std::fs::write(&schema, &stored).unwrap();
    std::fs::remove_dir_all(labels.join("__commits")).unwrap();
    assert_eq!(name(&open(folder.path()).await.unwrap()).unwrap(), "x_index");
}
