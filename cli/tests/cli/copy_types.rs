//! `COPY` of every type that a table can have, and what other programs read from the files.

use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::arrow::record_batch::RecordBatchReader;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use datafusion::parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::support::{STATIONS, failure, gridfusion, run};

/// The SQL of a value, and its type in a Parquet file as DuckDB names it.
const TYPES: &[(&str, &str)] = &[
    ("true", "BOOLEAN"),
    ("arrow_cast(-7, 'Int8')", "TINYINT"),
    ("arrow_cast(-7, 'Int16')", "SMALLINT"),
    ("arrow_cast(-7, 'Int32')", "INTEGER"),
    ("arrow_cast(-9007199254740993, 'Int64')", "BIGINT"),
    ("arrow_cast(200, 'UInt8')", "UTINYINT"),
    ("arrow_cast(60000, 'UInt16')", "USMALLINT"),
    ("arrow_cast(4000000000, 'UInt32')", "UINTEGER"),
    ("arrow_cast(18446744073709551615, 'UInt64')", "UBIGINT"),
    ("arrow_cast(1.5, 'Float16')", "FLOAT"),
    ("arrow_cast(1.5, 'Float32')", "FLOAT"),
    ("arrow_cast(-0.1, 'Float64')", "DOUBLE"),
    ("arrow_cast('Infinity', 'Float64')", "DOUBLE"),
    ("arrow_cast('-Infinity', 'Float32')", "FLOAT"),
    ("arrow_cast('NaN', 'Float64')", "DOUBLE"),
    ("arrow_cast(12.34, 'Decimal128(6, 2)')", "DECIMAL(6,2)"),
    ("arrow_cast('é', 'Utf8')", "VARCHAR"),
    ("arrow_cast('é', 'LargeUtf8')", "VARCHAR"),
    ("arrow_cast('é', 'Utf8View')", "VARCHAR"),
    ("arrow_cast('é', 'Dictionary(Int8, Utf8)')", "VARCHAR"),
    ("arrow_cast('abc', 'Binary')", "BLOB"),
    ("arrow_cast('abc', 'LargeBinary')", "BLOB"),
    ("arrow_cast(arrow_cast('abc', 'Binary'), 'FixedSizeBinary(3)')", "BLOB"),
    ("arrow_cast('2024-03-01', 'Date32')", "DATE"),
    ("arrow_cast('2024-03-01', 'Date64')", "TIMESTAMP"),
    ("arrow_cast('01:02:03', 'Time32(s)')", "TIME"),
    ("arrow_cast('01:02:03', 'Time32(ms)')", "TIME"),
    ("arrow_cast('01:02:03', 'Time64(µs)')", "TIME"),
    ("arrow_cast('01:02:03', 'Time64(ns)')", "TIME_NS"),
    ("arrow_cast('2024-03-01T01:02:03', 'Timestamp(s)')", "TIMESTAMP"),
    ("arrow_cast('2024-03-01T01:02:03', 'Timestamp(ms)')", "TIMESTAMP"),
    ("arrow_cast('2024-03-01T01:02:03', 'Timestamp(µs)')", "TIMESTAMP"),
    ("arrow_cast('2024-03-01T01:02:03', 'Timestamp(ns)')", "TIMESTAMP_NS"),
    ("arrow_cast('2024-03-01T01:02:03', 'Timestamp(s, \"+02:00\")')", "TIMESTAMP WITH TIME ZONE"),
    // Parquet has no type for durations: other programs than Arrow see their number.
    ("arrow_cast(arrow_cast(90061, 'Int64'), 'Duration(s)')", "BIGINT"),
    ("arrow_cast(arrow_cast(90061, 'Int64'), 'Duration(ms)')", "BIGINT"),
    ("arrow_cast(arrow_cast(90061, 'Int64'), 'Duration(ns)')", "BIGINT"),
    ("[arrow_cast('2024-03-01T01:02:03', 'Timestamp(s)')]", "TIMESTAMP[]"),
    (
        "named_struct('x', arrow_cast('2024-03-01T01:02:03', 'Timestamp(s)'), 'y', 1)",
        "STRUCT(x TIMESTAMP, y BIGINT)",
    ),
    (
        "arrow_cast(arrow_cast('2024-03-01T01:02:03', 'Timestamp(s)'), 'Dictionary(Int32, Timestamp(s))')",
        "TIMESTAMP",
    ),
    ("map(['a'], [arrow_cast('2024-03-01T01:02:03', 'Timestamp(s)')])", "MAP(VARCHAR, TIMESTAMP)"),
    (
        "arrow_cast([arrow_cast('2024-03-01T01:02:03', 'Timestamp(s)')], 'FixedSizeList(1, Timestamp(s))')",
        "TIMESTAMP[]",
    ),
];

/// Whether a format can hold the value.
fn fits(format: &str, sql: &str) -> bool {
    // CSV has no nested values.
    !(format == "csv"
        && ["[", "named_struct", "map", "arrow_cast(["].iter().any(|it| sql.starts_with(it)))
}

/// Returns a query of all values that a format can hold, each with NULL in a second row.
fn query(format: &str) -> String {
    let values = TYPES.iter().enumerate().filter(|(_, (sql, _))| fits(format, sql));
    let columns: Vec<String> =
        values.map(|(at, (sql, _))| format!("CASE WHEN row = 0 THEN {sql} END AS c{at}")).collect();
    format!("SELECT row, {} FROM (VALUES (0), (1)) t(row) ORDER BY row", columns.join(", "))
}

/// Writes a file of all values, and returns its path.
fn copy(folder: &Path, format: &str) -> String {
    let path = folder.join(format!("all.{format}")).to_str().unwrap().to_owned();
    let outcome = run(&["-q", "-c", &format!("COPY ({}) TO '{path}'", query(format))]);
    assert_eq!(outcome.code, Some(0), "{format}: {outcome:?}");
    path
}

#[test]
fn every_type_comes_back_from_parquet_and_arrow() {
    let folder = tempfile::tempdir().unwrap();
    let expected = run(&["-q", "--format", "nd-json", "-c", &query("parquet")]);
    assert_eq!(expected.code, Some(0), "{expected:?}");
    for format in ["parquet", "arrow"] {
        let path = copy(folder.path(), format);
        let sql = format!("SELECT * FROM '{path}' ORDER BY row");
        let found = run(&["-q", "--format", "nd-json", "-c", &sql]);
        assert_eq!(found.code, Some(0), "{found:?}");
        // A duration in milliseconds is another text of the same time.
        let same = found.stdout.replace("PT90061.000S", "PT90061S");
        assert_eq!(same, expected.stdout, "{format}");
    }
}

/// `-o` and `--format` write the types and values of a `COPY`.
#[test]
fn results_have_the_types_of_copies() {
    let folder = tempfile::tempdir().unwrap();
    let parquet = |path: &str| {
        let reader = ParquetRecordBatchReader::try_new(File::open(path).unwrap(), 100).unwrap();
        let schema = reader.schema();
        concat_batches(&schema, &reader.map(Result::unwrap).collect::<Vec<_>>()).unwrap()
    };
    let arrow = |path: &str| {
        let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
        let schema = reader.schema();
        concat_batches(&schema, &reader.map(Result::unwrap).collect::<Vec<_>>()).unwrap()
    };
    let written = |format: &str| {
        let path = folder.path().join(format!("other.{format}")).to_str().unwrap().to_owned();
        let outcome = run(&["-o", &path, "-c", &query(format)]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{outcome:?}");
        path
    };
    let expected = parquet(&copy(folder.path(), "parquet"));
    assert_eq!(parquet(&written("parquet")), expected);
    let piped = |format: &str| {
        let output = gridfusion(&["--format", format, "-c", &query(format)]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        output.stdout
    };
    let path = folder.path().join("piped.parquet");
    fs::write(&path, piped("parquet")).unwrap();
    assert_eq!(parquet(path.to_str().unwrap()), expected);
    let expected = arrow(&copy(folder.path(), "arrow"));
    assert_eq!(arrow(&written("arrow")), expected);
    let stream = piped("arrow");
    let stream = StreamReader::try_new(&stream[..], None).unwrap();
    let schema = stream.schema();
    let stream = concat_batches(&schema, &stream.map(Result::unwrap).collect::<Vec<_>>());
    assert_eq!(stream.unwrap(), expected);
    // Attributes come along, and an error of a cast is one here.
    let units = "SELECT time, value FROM temperature LIMIT 1";
    let path = folder.path().join("units.parquet").to_str().unwrap().to_owned();
    assert_eq!(run(&[STATIONS, "-o", &path, "-c", units]).code, Some(0));
    let copied = folder.path().join("copied.parquet").to_str().unwrap().to_owned();
    let sql = format!("COPY ({units}) TO '{copied}'");
    assert_eq!(run(&[STATIONS, "-q", "-c", &sql]).code, Some(0));
    assert_eq!(parquet(&path).schema(), parquet(&copied).schema());
    let late = "SELECT arrow_cast(1000000000000000000, 'Timestamp(s)') AS t";
    let message = failure(&["-o", &path], late);
    assert!(message.contains("exceeds") || message.contains("verflow"), "{message}");
}

/// Times have a logical type in Parquet, so that readers need not know Arrow's own schema.
#[test]
fn times_in_parquet_are_no_integers() {
    let folder = tempfile::tempdir().unwrap();
    let path = copy(folder.path(), "parquet");
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let of = |at: usize| {
        let prefix = format!("c{at}");
        let column = schema.columns().iter().rfind(|column| column.path().parts()[0] == prefix);
        format!("{:?}", column.unwrap().logical_type_ref())
    };
    for (at, (sql, named)) in TYPES.iter().enumerate() {
        let expected = match *named {
            it if it.contains("TIMESTAMP") && !it.contains("STRUCT") => "Timestamp",
            "DATE" => "Date",
            "TIME" | "TIME_NS" => "Time",
            _ => continue,
        };
        assert!(of(at).contains(expected), "{sql}: {}", of(at));
    }
}

#[test]
fn times_that_milliseconds_cannot_hold_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.parquet");
    for kind in ["Timestamp(s)", "Duration(s)"] {
        let sql = format!(
            "COPY (SELECT arrow_cast(value * 1000000000000000, '{kind}') AS t FROM generate_series(1, 20)) TO '{}'",
            path.display()
        );
        let message = failure(&[], &sql);
        let reasons = ["exceeds the representable", "Arithmetic overflow"];
        assert!(reasons.iter().any(|it| message.contains(it)), "{message}");
        assert!(!path.exists());
    }
}

/// A table keeps the type that its declaration gives it, so its rows cannot be cast.
#[test]
fn a_parquet_table_of_seconds_takes_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let table = |precision: &str| {
        format!(
            "CREATE EXTERNAL TABLE t (a TIMESTAMP({precision})) STORED AS PARQUET LOCATION '{}/';",
            folder.path().display()
        )
    };
    let insert = "INSERT INTO t VALUES ('2024-03-01T01:02:03')";
    let message = failure(&[], &format!("{} {insert}", table("0")));
    assert!(message.contains("declare it as TIMESTAMP(3)"), "{message}");
    let outcome =
        run(&["-q", "--format", "csv", "-c", &format!("{} {insert}; SELECT * FROM t", table("3"))]);
    assert_eq!(outcome.stdout, "count\n1\na\n2024-03-01T01:02:03\n", "{outcome:?}");
}

/// JSON has no numbers for infinity and NaN, and NULL is another value.
#[test]
fn json_keeps_infinity_and_nan() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let rows = "SELECT arrow_cast(column1, 'Float64') AS a, arrow_cast(column1, 'Float32') AS b, [column1] AS c, \
                named_struct('d', column1) AS e FROM (VALUES (1.5), (CAST('inf' AS DOUBLE)), (CAST('-inf' AS DOUBLE)), \
                (CAST('NaN' AS DOUBLE)), (NULL))";
    let line = |value: &str| {
        format!("{{\"a\":{value},\"b\":{value},\"c\":[{value}],\"e\":{{\"d\":{value}}}}}\n")
    };
    let expected: String =
        ["1.5", "\"Infinity\"", "\"-Infinity\"", "\"NaN\"", "null"].map(line).concat();
    let printed = run(&["-q", "--format", "nd-json", "-c", rows]);
    assert_eq!(printed.stdout, expected);
    let array = run(&["-q", "--format", "json", "-c", rows]).stdout;
    let lines: Vec<&str> = expected.lines().collect();
    assert_eq!(array, format!("[{}]\n", lines.join(",")));
    let sql = format!("COPY ({rows}) TO '{}'", path.display());
    assert_eq!(run(&["-q", "-c", &sql]).code, Some(0));
    let written = fs::read_to_string(&path).unwrap();
    let finite = expected.lines().next().unwrap();
    assert!(written.starts_with(finite) && written.contains("\"a\":\"-Infinity\""), "{written}");
    // A table of floats reads them, and INSERT writes them.
    let table = format!(
        "CREATE EXTERNAL TABLE t (a DOUBLE) STORED AS JSON LOCATION '{0}/t/';
         INSERT INTO t VALUES (CAST('-inf' AS DOUBLE)); SELECT a < -1e300 AS is_less FROM t",
        folder.path().display()
    );
    let outcome = run(&["-q", "--format", "csv", "-c", &table]);
    assert_eq!(outcome.stdout, "count\n1\nis_less\ntrue\n", "{outcome:?}");
}

/// Other programs read the files. `GRIDFUSION_READERS_PYTHON` names a Python with DuckDB, pandas and pyarrow.
#[test]
#[ignore = "needs GRIDFUSION_READERS_PYTHON: a Python with DuckDB, pandas and pyarrow"]
fn foreign_programs_read_every_type() {
    let python = env::var_os("GRIDFUSION_READERS_PYTHON").expect("set GRIDFUSION_READERS_PYTHON");
    let folder = tempfile::tempdir().unwrap();
    let mut expected = String::new();
    for format in ["parquet", "csv", "json", "arrow"] {
        copy(folder.path(), format);
    }
    for (at, (sql, named)) in TYPES.iter().enumerate() {
        expected += &format!("c{at}\t{named}\t{sql}\n");
    }
    fs::write(folder.path().join("types.tsv"), expected).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/read_copies.py");
    let outcome = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(outcome.status.success(), "{text}{}", String::from_utf8_lossy(&outcome.stderr));
}

/// Types that Parquet lacks are cast, and rows keep the order of all keys.
#[test]
fn rows_that_are_cast_stay_sorted() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "SELECT arrow_cast(value / 40 * 3600, 'Timestamp(Second, None)') AS at, (value * 7) % 40 AS y, value AS v FROM range(4000)";
    for order in [
        "SELECT at, y, v FROM (ROWS) ORDER BY at, y",
        "SELECT at, y, v FROM (ROWS) ORDER BY at DESC, y DESC",
        "SELECT y, at FROM (ROWS) ORDER BY at, v DESC",
        "SELECT at, y FROM (ROWS) ORDER BY at, v DESC LIMIT 1000 OFFSET 10",
        "SELECT at AS later, y FROM (ROWS) ORDER BY at, y",
    ] {
        let sql = order.replace("ROWS", rows);
        let file = folder.path().join("x.parquet");
        drop(fs::remove_file(&file));
        let csv = |sql: &str| {
            let outcome = run(&["-q", "--format", "csv", "-c", sql]);
            assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{sql}");
            outcome.stdout
        };
        csv(&format!("COPY ({sql}) TO '{}'", file.display()));
        let setting = "SET datafusion.execution.target_partitions = 1";
        let read = csv(&format!("{setting}; SELECT * FROM '{}'", file.display()));
        assert_eq!(read, csv(&sql), "{order}");
    }
}
