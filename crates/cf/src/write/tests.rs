//! Files that [`NetcdfWriter`] writes, as the reader reads them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use gridfusion_core::io::LocalFolder;
use gridfusion_core::tile::write_all;
use gridfusion_core::write::{
    ArrayWriter, Attributes, NewArray, NewChunk, NewDimension, NewVariable, cells_of_box,
};
use gridfusion_core::{ErrorKind, Result};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::{NetcdfEncoding, NetcdfVersion, NetcdfWriter, open};

const VERSIONS: [NetcdfVersion; 4] = [
    NetcdfVersion::Netcdf4,
    NetcdfVersion::Data64,
    NetcdfVersion::Classic,
    NetcdfVersion::Offset64,
];

/// The types, the versions of `VERSIONS` that have them, and whether cells can be NULL without a fill value of the caller.
const TYPES: [(DataType, usize, bool); 17] = [
    (DataType::Boolean, 4, false),
    (DataType::Int8, 4, false),
    (DataType::Int16, 4, false),
    (DataType::Int32, 4, false),
    (DataType::Int64, 2, false),
    (DataType::UInt8, 2, false),
    (DataType::UInt16, 2, false),
    (DataType::UInt32, 2, false),
    (DataType::UInt64, 2, false),
    (DataType::Float32, 4, true),
    (DataType::Float64, 4, true),
    (DataType::Utf8, 1, false),
    (DataType::LargeUtf8, 1, false),
    (DataType::Utf8View, 1, false),
    (DataType::Timestamp(TimeUnit::Second, None), 4, true),
    (DataType::Timestamp(TimeUnit::Nanosecond, None), 4, true),
    (DataType::Date32, 4, true),
];

fn dimension(name: &str, labels: ArrayRef) -> NewDimension {
    NewDimension { name: name.to_owned(), labels, attributes: Attributes::new() }
}

/// A dimension with the labels 0, 10, 20, …
fn tens(name: &str, len: u64) -> NewDimension {
    let labels = Int64Array::from_iter_values((0..len).map(|at| 10 * at as i64));
    dimension(name, cast(&(Arc::new(labels) as ArrayRef), &DataType::Int32).unwrap())
}

fn variable(name: &str, data_type: DataType, fill: Option<ArrayRef>) -> NewVariable {
    NewVariable { name: name.to_owned(), data_type, fill, attributes: Attributes::new() }
}

fn numbers(values: impl IntoIterator<Item = Option<i64>>, data_type: &DataType) -> ArrayRef {
    let numbers: ArrayRef = Arc::new(values.into_iter().collect::<Int64Array>());
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let numbers = numbers.as_primitive::<Int64Type>().iter();
            // The text of 0 is empty.
            let text = |it: i64| "é".repeat(it as usize % 5) + &"7".repeat(it as usize);
            let texts = numbers.map(|it| it.map(text));
            cast(&(Arc::new(texts.collect::<StringArray>()) as ArrayRef), data_type).unwrap()
        }
        DataType::Date32 => cast(&cast(&numbers, &DataType::Int32).unwrap(), data_type).unwrap(),
        _ => cast(&numbers, data_type).unwrap(),
    }
}

/// Small numbers as cells of a type, a part of which is NULL.
fn cells(rng: &mut SmallRng, data_type: &DataType, len: u64, nulls: f64) -> ArrayRef {
    let number = |_| {
        let number = rng.random_range(0..100_i64);
        (!rng.random_bool(nulls)).then_some(number)
    };
    numbers((0..len).map(number).collect::<Vec<_>>(), data_type)
}

/// Returns every chunk of a variable.
fn chunks(array: &NewArray, variable: usize, cells: &ArrayRef) -> Vec<NewChunk> {
    let grid = array.grid();
    let chunk = |at: u64| {
        let coordinates = grid.chunk_coordinates(at);
        let ranges: Vec<_> =
            (0..grid.rank()).map(|axis| grid.axis_range(axis, coordinates[axis])).collect();
        let cells = cells_of_box(cells, grid.shape(), &ranges).unwrap();
        NewChunk { variable, coordinates, cells, given: None }
    };
    (0..grid.chunks()).map(chunk).collect()
}

async fn write(folder: &Path, writer: NetcdfWriter, chunks: Vec<NewChunk>) -> Result<()> {
    let folder = Arc::new(LocalFolder::open(folder, true)?);
    write_all(writer, futures::stream::iter(chunks.into_iter().map(Ok)), folder).await
}

async fn read(path: &Path, name: &str) -> RecordBatch {
    let reader = open(path.to_str().unwrap()).await.unwrap().array(name).await.unwrap();
    let schema = reader.schema().unwrap();
    let batches: Vec<_> = reader.batches().try_collect().await.unwrap();
    concat_batches(&schema, &batches).unwrap()
}

fn text(cells: &ArrayRef, at: usize) -> Option<String> {
    cells.is_valid(at).then(|| array_value_to_string(cells, at).unwrap())
}

/// Returns the cells of a variable of a grid whose labels are tens, row by row, and the type that they have.
async fn cells_of(path: &Path, name: &str, shape: &[u64]) -> (Vec<Option<String>>, DataType) {
    let batch = read(path, name).await;
    let mut found = vec![None; shape.iter().product::<u64>() as usize];
    assert_eq!(batch.num_rows(), found.len());
    let values = batch.column(shape.len());
    for row in 0..batch.num_rows() {
        let place = shape.iter().enumerate().fold(0, |place, (axis, len)| {
            let label: usize = text(batch.column(axis), row).unwrap().parse().unwrap();
            place * *len as usize + label / 10
        });
        found[place] = text(values, row);
    }
    (found, values.data_type().clone())
}

fn texts(cells: &ArrayRef) -> Vec<Option<String>> {
    (0..cells.len()).map(|at| text(cells, at)).collect()
}

/// An array of random cells, and the file that has it.
struct Case {
    data_type: DataType,
    version: NetcdfVersion,
    path: PathBuf,
    shape: Vec<u64>,
    /// The cells of the variables `v` and `w`.
    cells: [ArrayRef; 2],
}

/// Writes `NUMBER.nc` into the folder.
async fn case(rng: &mut SmallRng, number: usize, folder: &Path) -> Case {
    let (data_type, versions, is_nullable) = &TYPES[number % TYPES.len()];
    let version = VERSIONS[(number / TYPES.len()) % versions];
    let rank = rng.random_range(1..=4);
    let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..6)).collect();
    let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..8)).collect();
    let len = shape.iter().product();
    let has_own_fill = *data_type != DataType::Boolean && rng.random_bool(0.4);
    let nulls = match *is_nullable || has_own_fill {
        true => [0.0, 0.3, 1.0][rng.random_range(0..3)],
        false => 0.0,
    };
    // No cell has this value.
    let fill = has_own_fill.then(|| numbers([Some(101)], data_type));
    let mut dimensions: Vec<_> =
        shape.iter().enumerate().map(|(at, len)| tens(&format!("d{at}"), *len)).collect();
    if version == NetcdfVersion::Netcdf4 && number.is_multiple_of(3) {
        dimensions[0].labels = cast(&dimensions[0].labels, &DataType::Utf8).unwrap();
    }
    let variables =
        vec![variable("v", data_type.clone(), fill), variable("w", DataType::Int16, None)];
    let array = NewArray::try_new(dimensions, variables, &chunk).unwrap();
    let deflate = [None, Some(0), Some(4), Some(9)][rng.random_range(0..4)]
        .filter(|_| version == NetcdfVersion::Netcdf4);
    let encoding = NetcdfEncoding { version, deflate, ..NetcdfEncoding::default() };
    let name = format!("{number}.nc");
    let writer = NetcdfWriter::try_new(array, &name, encoding).unwrap();
    let v = cells(rng, data_type, len, nulls);
    let w = cells(rng, &DataType::Int16, len, 0.0);
    let mut all = chunks(writer.array(), 1, &w);
    // A chunk that is not written is NULL.
    let is_stored = |it: &NewChunk| nulls == 0.0 || it.cells.null_count() < it.cells.len();
    all.extend(chunks(writer.array(), 0, &v).into_iter().filter(is_stored));
    write(folder, writer, all).await.unwrap();
    let path = folder.join(name);
    Case { data_type: data_type.clone(), version, path, shape, cells: [v, w] }
}

#[tokio::test]
async fn files_of_all_types_ranks_and_versions_are_read_back() {
    let mut rng = SmallRng::seed_from_u64(47);
    let folder = tempfile::tempdir().unwrap();
    let mut nulls = 0;
    for number in 0..340 {
        let Case { data_type, version, path, shape, cells: [v, w] } =
            case(&mut rng, number, folder.path()).await;
        nulls += v.null_count();
        let (found, found_type) = cells_of(&path, "v", &shape).await;
        // Dates are read as times, and texts as views.
        let v = match data_type {
            DataType::Date32 => cast(&v, &found_type).unwrap(),
            _ => v,
        };
        assert_eq!(found, texts(&v), "case {number}: {data_type} in {version:?}");
        let is_same = match &data_type {
            DataType::Timestamp(..) | DataType::Date32 => {
                matches!(found_type, DataType::Timestamp(..))
            }
            it => found_type == *it || it.is_string() && found_type.is_string(),
        };
        assert!(is_same, "case {number}: {data_type} in {version:?} is read as {found_type}");
        assert_eq!(cells_of(&path, "w", &shape).await.0, texts(&w), "case {number}");
    }
    assert!(nulls > 1000, "{nulls}");
}

#[tokio::test]
#[ignore = "needs GRIDFUSION_READERS_PYTHON: a Python with xarray, netCDF4 and h5py"]
async fn netcdf4_h5py_and_xarray_read_what_is_written() {
    let mut rng = SmallRng::seed_from_u64(48);
    let folder = tempfile::tempdir().unwrap();
    for number in 0..340 {
        let case = case(&mut rng, number, folder.path()).await;
        let [v, w] = case.cells.each_ref().map(texts);
        let expected = json!({
            "type": case.data_type.to_string(), "version": format!("{:?}", case.version),
            "shape": case.shape, "v": v, "w": w,
        });
        std::fs::write(case.path.with_extension("json"), expected.to_string()).unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/foreign/read_netcdf.py");
    let python = std::env::var("GRIDFUSION_READERS_PYTHON").unwrap();
    let outcome = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    let [text, errors] = [&outcome.stdout, &outcome.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(outcome.status.success(), "{text}{errors}");
    assert!(text.contains("340 files"), "{text}");
}

#[tokio::test]
async fn labels_times_and_attributes_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let day = DataType::Timestamp(TimeUnit::Second, None);
    let instant = DataType::Timestamp(TimeUnit::Microsecond, None);
    for version in VERSIONS {
        let mut time = dimension("time", numbers([Some(0), Some(1_709_208_000)], &day));
        time.attributes.insert("long_name".into(), json!("Zeit, übrigens"));
        let mut lat = dimension("lat", Arc::new(Float64Array::from(vec![59.5, -0.25])));
        lat.attributes.insert("units".into(), json!("degrees_north"));
        let mut v = variable("v", instant.clone(), None);
        for (name, value) in [
            ("one", json!(7)),
            ("many", json!([1, -2, 3])),
            ("big", json!(1_i64 << 40)),
            ("half", json!(0.5)),
            ("halves", json!([0.5, 1])),
            ("flag", json!(true)),
            ("empty", json!("")),
            ("dtype", json!("bool")),
        ] {
            v.attributes.insert(name.into(), value);
        }
        let array = NewArray::try_new(vec![time, lat], vec![v], &[1, 2]).unwrap();
        let array = array.with_attributes([("title".to_owned(), json!("a test"))].into());
        let name = format!("{version:?}.nc");
        let deflate = (version == NetcdfVersion::Netcdf4).then_some(1);
        let encoding = NetcdfEncoding { version, deflate, ..NetcdfEncoding::default() };
        let writer = NetcdfWriter::try_new(array, &name, encoding).unwrap();
        let cells = [Some(1_709_208_000_123_456), None, Some(-1), Some(0)];
        let all = chunks(writer.array(), 0, &numbers(cells, &instant));
        write(folder.path(), writer, all).await.unwrap();
        let batch = read(&folder.path().join(name), "v").await;
        let rows: Vec<_> = (0..4)
            .map(|row| batch.columns().iter().map(move |it| text(it, row).unwrap_or("-".into())))
            .map(|row| row.collect::<Vec<_>>().join(" "))
            .collect();
        let expected = [
            "1970-01-01T00:00:00 59.5 2024-02-29T12:00:00.123456",
            "1970-01-01T00:00:00 -0.25 -",
            "2024-02-29T12:00:00 59.5 1969-12-31T23:59:59.999999",
            "2024-02-29T12:00:00 -0.25 1970-01-01T00:00:00",
        ];
        assert_eq!(rows, expected, "{version:?}");
        let schema = batch.schema();
        let attribute = |column: usize, name: &str| {
            schema.field(column).metadata().get(name).map(String::as_str)
        };
        assert_eq!(attribute(0, "long_name"), Some("Zeit, übrigens"));
        assert_eq!(attribute(1, "units"), Some("degrees_north"));
        for (name, value) in [
            ("one", Some("7")),
            ("many", Some("1, -2, 3")),
            ("big", Some("1099511627776")),
            ("half", Some("0.5")),
            ("halves", Some("0.5, 1")),
            ("flag", Some("true")),
            ("empty", Some("")),
            ("units", Some("microseconds since 1970-01-01")),
            ("calendar", Some("proleptic_gregorian")),
            ("dtype", None),
        ] {
            assert_eq!(attribute(2, name), value, "{name} in {version:?}");
        }
    }
}

/// Writes `v (x)` with these cells in one chunk.
async fn outcome(
    fill: Option<ArrayRef>,
    cells: ArrayRef,
    encoding: NetcdfEncoding,
    labels: ArrayRef,
) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let v = variable("v", cells.data_type().clone(), fill);
    let len = cells.len().max(1) as u64;
    let array = NewArray::try_new(vec![dimension("x", labels)], vec![v], &[len])?;
    let writer = NetcdfWriter::try_new(array, "x.nc", encoding)?;
    let all = chunks(writer.array(), 0, &cells);
    let outcome = write(folder.path(), writer, all).await;
    let is_there = std::fs::read_dir(folder.path()).unwrap().next().is_some();
    assert_eq!(is_there, outcome.is_ok(), "nothing is visible of a file that is refused");
    outcome
}

#[tokio::test]
async fn cells_and_arrays_that_would_read_as_others_are_refused() {
    let int = |values: &[Option<i64>]| numbers(values.iter().copied(), &DataType::Int32);
    let seven = || Some(int(&[Some(7)]));
    let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let odd = numbers([Some((1 << 53) + 1)], &time);
    let truths: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true)]));
    let nul: ArrayRef = Arc::new(StringArray::from(vec!["a\0b"]));
    let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(100)]));
    let four = NetcdfEncoding::default;
    let classic = |version| NetcdfEncoding { version, deflate: None, ..four() };
    let small = |max_bytes| NetcdfEncoding { max_bytes, ..four() };
    let cdf1 = || classic(NetcdfVersion::Classic);
    let cases: Vec<(_, ArrayRef, _, ErrorKind, &str)> = vec![
        (None, int(&[Some(1), None]), four(), ErrorKind::Usage, "x=10 of \"v\" cannot be written"),
        (
            seven(),
            int(&[Some(7)]),
            cdf1(),
            ErrorKind::Usage,
            "x=0 of \"v\" cannot be written: it has the fill",
        ),
        (None, odd, cdf1(), ErrorKind::Unsupported, "the time 9007199254740993 nanoseconds"),
        (Some(Arc::clone(&truths)), truths, four(), ErrorKind::Unsupported, "cast it to TINYINT"),
        (None, nul, four(), ErrorKind::Unsupported, "NUL bytes"),
        (
            None,
            Arc::clone(&long),
            cdf1(),
            ErrorKind::Unsupported,
            "no Utf8; write version 'netcdf4'",
        ),
        (None, long, small(99), ErrorKind::Unsupported, "of 100 bytes"),
        (
            None,
            int(&[Some(1)]),
            small(3),
            ErrorKind::Unsupported,
            "of 4 bytes, because it is put together in memory, and at most 3",
        ),
        (None, int(&[]), four(), ErrorKind::Unsupported, "\"x\" without labels"),
        (None, numbers([Some(1)], &DataType::UInt16), cdf1(), ErrorKind::Unsupported, "no UInt16"),
        (
            None,
            numbers([Some(1)], &DataType::Int64),
            classic(NetcdfVersion::Offset64),
            ErrorKind::Unsupported,
            "no Int64",
        ),
        (
            None,
            numbers([Some(1)], &DataType::Float16),
            four(),
            ErrorKind::Unsupported,
            "cast it to FLOAT",
        ),
        (
            None,
            int(&[Some(1)]),
            NetcdfEncoding { deflate: Some(10), ..four() },
            ErrorKind::Usage,
            "no level 10",
        ),
        (
            None,
            int(&[Some(1)]),
            NetcdfEncoding { deflate: Some(1), ..cdf1() },
            ErrorKind::Usage,
            "no compression",
        ),
    ];
    for (fill, cells, encoding, kind, message) in cases {
        let labels = tens("x", cells.len() as u64).labels;
        let error = outcome(fill, cells, encoding, labels).await.unwrap_err();
        assert!(error.to_string().contains(message), "{error}, expected {message}");
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[tokio::test]
async fn chunks_that_are_missing_or_come_twice_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let chunk = |at: u64, len| NewChunk {
        variable: 0,
        coordinates: vec![at],
        cells: numbers((0..len).map(Some), &DataType::Int32),
        given: None,
    };
    for (all, message) in [
        (vec![chunk(0, 2)], "1 of 2 chunks of \"v\" were written, and it has no fill value"),
        (vec![chunk(0, 2), chunk(0, 2)], "chunk [0] of \"v\" is written twice"),
        (vec![chunk(1, 2)], "chunk [1] of \"v\" has 2 cells of Int32, expected 1 of Int32"),
        (vec![chunk(2, 1)], "chunk [2] of variable 0 is outside of the array"),
    ] {
        let variables = vec![variable("v", DataType::Int32, None)];
        let array = NewArray::try_new(vec![tens("x", 3)], variables, &[2]).unwrap();
        let writer = NetcdfWriter::try_new(array, "x.nc", NetcdfEncoding::default()).unwrap();
        let error = write(folder.path(), writer, all).await.unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(!folder.path().join("x.nc").exists());
    }
}

#[test]
fn names_and_shapes_that_files_cannot_have_are_refused() {
    let refused = |dimensions, name: &str, chunk: &[u64], max_bytes| {
        let variables = vec![variable(name, DataType::Float64, None)];
        let array = NewArray::try_new(dimensions, variables, chunk).unwrap();
        let encoding = NetcdfEncoding { max_bytes, ..NetcdfEncoding::default() };
        NetcdfWriter::try_new(array, "x.nc", encoding).unwrap_err().to_string()
    };
    for name in ["a ", "(a)", "a".repeat(257).as_str()] {
        let error = refused(vec![tens("x", 1)], name, &[1], u64::MAX);
        assert!(error.contains("as the name of a NetCDF variable"), "{error}");
    }
    let wide = vec![tens("x", 1 << 15), tens("y", 1 << 15)];
    let error = refused(wide, "v", &[1 << 15, 1 << 15], u64::MAX);
    assert!(error.contains("chunks of 8589934592 bytes of \"v\""), "{error}");
}
