//! Each format, on one thread and on several.

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::arrow::record_batch::RecordBatchReader;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use futures::StreamExt;
use futures::stream::FuturesOrdered;

use super::*;

fn batch() -> RecordBatch {
    let names = Arc::new(StringArray::from(vec![Some("Oslo"), None])) as ArrayRef;
    let values = Arc::new(Float64Array::from(vec![Some(1.5), None])) as ArrayRef;
    RecordBatch::try_from_iter_with_nullable([("name", names, true), ("v", values, true)]).unwrap()
}

fn options(format: Format) -> PrintOptions {
    PrintOptions { format, maxrows: MaxRows::Limited(3), headers: true, quiet: false, color: false }
}

fn print(format: Format, batches: &[RecordBatch]) -> String {
    String::from_utf8(printed(format, &batch().schema(), batches)).unwrap()
}

fn printed(format: Format, schema: &SchemaRef, batches: &[RecordBatch]) -> Vec<u8> {
    let mut config = ConfigOptions::default();
    config.format.null = "NULL".to_owned();
    let printer = Printer::try_new(&options(format), Arc::clone(schema), &config);
    let mut printer = printer.unwrap();
    let mut out = vec![];
    for batch in batches {
        printer.write(&mut out, batch.clone()).unwrap();
    }
    printer.finish(&mut out).unwrap();
    out
}

#[test]
fn each_format_prints_all_batches() {
    let two = [batch(), batch()];
    assert_eq!(print(Format::Csv, &two), "name,v\nOslo,1.5\n,\nOslo,1.5\n,\n");
    assert_eq!(print(Format::Tsv, &two), "name\tv\nOslo\t1.5\n\t\nOslo\t1.5\n\t\n");
    let (some, none) = (r#"{"name":"Oslo","v":1.5}"#, r#"{"name":null,"v":null}"#);
    assert_eq!(print(Format::Json, &two), format!("[{some},{none},{some},{none}]\n"));
    let lines = format!("{some}\n{none}\n{some}\n{none}\n");
    assert_eq!(print(Format::NdJson, &two), lines);
    let table = "\
+------+------+
| name | v    |
+------+------+
| Oslo | 1.5  |
| NULL | NULL |
| Oslo | 1.5  |
| .           |
| .           |
| .           |
+------+------+
";
    assert_eq!(print(Format::Table, &two), table);
    let boxed = "\
┌──────┬──────┐
│ name │ v    │
├──────┼──────┤
│ Oslo │ 1.5  │
│ NULL │ NULL │
│ Oslo │ 1.5  │
│ .           │
│ .           │
│ .           │
└──────┴──────┘
";
    assert_eq!(print(Format::Box, &two), boxed);
    let rows = "| Oslo | 1.5 |\n| NULL | NULL |\n".repeat(2);
    assert_eq!(print(Format::Markdown, &two), format!("| name | v |\n|---|---:|\n{rows}"));
    let lines = "name = Oslo\n   v = 1.5\n\nname = NULL\n   v = NULL\n";
    assert_eq!(print(Format::Line, &two), format!("{lines}\n{lines}"));
}

/// Tables show what a terminal hides, in columns of the right width. Formats for programs keep the bytes.
#[test]
fn invisible_characters_are_shown_in_tables_only() {
    let names = Arc::new(StringArray::from(vec![Some("o\u{202e}ols"), None])) as ArrayRef;
    let values = Arc::new(Float64Array::from(vec![Some(1.5), None])) as ArrayRef;
    let columns = [("na\u{200b}me", names, true), ("\u{1b}v", values, true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let print = |format| {
        let out = printed(format, &batch.schema(), std::slice::from_ref(&batch));
        String::from_utf8(out).unwrap()
    };
    let table = r"
+--------------+------+
| na\u{200b}me | ␛v   |
+--------------+------+
| o\u{202e}ols | 1.5  |
| NULL         | NULL |
+--------------+------+
";
    assert_eq!(print(Format::Table), &table[1..]);
    assert_eq!(print(Format::Csv), "na\u{200b}me,\u{1b}v\no\u{202e}ols,1.5\n,\n");
    assert!(print(Format::NdJson).starts_with("{\"na\u{200b}me\":\"o\u{202e}ols\","));
}

/// Batches of several sizes with texts that need quotes, times and NULL.
fn many_batches() -> (SchemaRef, Vec<RecordBatch>) {
    let batch = |rows: std::ops::Range<i64>| {
        let number = |it: i64| (it % 5 > 0).then_some(it);
        let text = |it: i64| (it % 7 > 0).then(|| format!("\"{it}|\n,"));
        let float = |it: i64| (it % 3 > 0).then_some(it as f64 / 7.0);
        let texts: StringArray = rows.clone().map(text).collect();
        let numbers: Int64Array = rows.clone().map(number).collect();
        let times = TimestampMicrosecondArray::from_iter(rows.clone().map(number));
        let floats: Float64Array = rows.clone().map(float).collect();
        let columns: [(&str, ArrayRef); 4] = [
            ("a|\"", Arc::new(texts)),
            ("b", Arc::new(numbers)),
            ("c", Arc::new(times)),
            ("d", Arc::new(floats)),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(a, b)| (a, b, true))).unwrap()
    };
    let ends = [0, 1, 1, 40, 50, 1050, 1051, 1200];
    let batches: Vec<_> = ends.windows(2).map(|it| batch(it[0]..it[1])).collect();
    (batches[0].schema(), batches)
}

/// The bytes do not depend on threads, nor on where batches end.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn threads_print_the_same_bytes() {
    let (schema, batches) = many_batches();
    let config = ConfigOptions::default();
    let one = concat_batches(&schema, &batches).unwrap();
    for format in <Format as clap::ValueEnum>::value_variants() {
        let printer = || Printer::try_new(&options(*format), Arc::clone(&schema), &config).unwrap();
        let (mut expected, mut found, mut at_once) = (vec![], vec![], vec![]);
        let mut alone = printer();
        // Texts do not depend on empty batches, which the query leaves out.
        for batch in batches.iter().filter(|it| it.num_rows() > 0 || !format.is_binary()) {
            alone.write(&mut expected, batch.clone()).unwrap();
        }
        alone.finish(&mut expected).unwrap();
        let mut threads = printer();
        let rows = batches.iter().filter(|it| it.num_rows() > 0);
        let mut begun: FuturesOrdered<_> = rows.map(|it| threads.begin(it.clone())).collect();
        while let Some(ready) = begun.next().await {
            threads.end(&mut found, ready.unwrap()).unwrap();
        }
        threads.finish(&mut found).unwrap();
        assert!(found == expected, "{format:?}");
        let mut whole = printer();
        whole.write(&mut at_once, one.clone()).unwrap();
        whole.finish(&mut at_once).unwrap();
        // Programs see the batches of binary formats.
        assert!(at_once == expected || format.is_binary(), "{format:?}");
    }
}

/// The rows before an error are printed, as they were by one thread.
#[tokio::test]
async fn rows_before_an_error_are_printed() {
    let times = TimestampMicrosecondArray::from(vec![0, 1, i64::MAX]);
    let batch = RecordBatch::try_from_iter([("t", Arc::new(times) as ArrayRef)]).unwrap();
    let config = ConfigOptions::default();
    let mut printer = Printer::try_new(&options(Format::Csv), batch.schema(), &config).unwrap();
    let ready = printer.begin(batch).await.unwrap();
    let mut out = vec![];
    let error = printer.end(&mut out, ready).unwrap_err().to_string();
    assert!(error.contains("row 3, col 1"), "{error}");
    assert_eq!(out, b"t\n1970-01-01T00:00:00\n1970-01-01T00:00:00.000001\n");
}

#[test]
fn results_without_rows_have_names_or_an_empty_list() {
    assert_eq!(print(Format::Csv, &[]), "name,v\n");
    assert_eq!(print(Format::Csv, &[batch().slice(0, 0)]), "name,v\n");
    assert_eq!(print(Format::Json, &[]), "[]\n");
    assert_eq!(print(Format::NdJson, &[]), "");
    let table = "+------+---+\n| name | v |\n+------+---+\n+------+---+\n";
    assert_eq!(print(Format::Automatic, &[]), table);
}

/// Each batch is written as it comes, and a result without rows has its columns.
#[test]
fn programs_read_the_same_rows() {
    for batches in [vec![batch(), batch()], vec![]] {
        let bytes = |format| printed(format, &batch().schema(), &batches);
        let joined = |read: Vec<RecordBatch>| concat_batches(&batch().schema(), &read).unwrap();
        let expected = joined(batches.clone());
        let parquet = bytes::Bytes::from(bytes(Format::Parquet));
        let parquet = ParquetRecordBatchReader::try_new(parquet, 100).unwrap();
        assert_eq!(parquet.schema().fields(), batch().schema().fields());
        assert_eq!(joined(parquet.map(Result::unwrap).collect()), expected);
        let stream = bytes(Format::Arrow);
        let stream = StreamReader::try_new(&stream[..], None).unwrap();
        assert_eq!(stream.schema(), batch().schema());
        assert_eq!(joined(stream.map(Result::unwrap).collect()), expected);
        let file = std::io::Cursor::new(bytes(Format::ArrowFile));
        let file = FileReader::try_new(file, None).unwrap();
        assert_eq!(file.schema(), batch().schema());
        assert_eq!(joined(file.map(Result::unwrap).collect()), expected);
    }
}

#[test]
fn endings_show_formats() {
    let ending = |name: &str, set| Format::from_ending(Path::new(name), set).ok();
    for (name, format) in [
        ("a.PARQUET", Format::Parquet),
        ("a.arrow", Format::ArrowFile),
        ("a.feather", Format::ArrowFile),
        ("a.arrows", Format::Arrow),
        ("a.jsonl", Format::NdJson),
        ("a.txt", Format::Automatic),
        ("a", Format::Automatic),
    ] {
        assert_eq!(ending(name, Format::Automatic), Some(format), "{name}");
    }
    assert_eq!(ending("a.xlsx", Format::Automatic), None);
    assert_eq!(ending("a.xlsx", Format::Csv).map(|it| it.or(Format::Csv)), Some(Format::Csv));
    assert_eq!(ending("a.md", Format::Tsv).map(|it| it.or(Format::Tsv)), Some(Format::Tsv));
    assert_eq!(
        ending("a.arrow", Format::Arrow).map(|it| it.or(Format::Arrow)),
        Some(Format::ArrowFile)
    );
    for (name, set) in
        [("a.parquet", Format::Csv), ("a.csv", Format::Parquet), ("a.arrow", Format::Parquet)]
    {
        assert_eq!(ending(name, set), None, "{name}");
    }
}

#[test]
fn summaries_count_hidden_rows() {
    let summary = |format, rows| {
        let mut out = vec![];
        options(format).summary(&mut out, rows, Duration::from_millis(7)).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(summary(Format::Table, 3), "3 row(s) fetched. \nElapsed 0.007 seconds.\n\n");
    assert!(summary(Format::Table, 4).contains("(First 3 displayed. Use --maxrows to adjust)"));
    assert!(!summary(Format::Csv, 4).contains("displayed"));
}

#[test]
fn words_for_formats_and_limits() {
    assert_eq!("CSV".parse(), Ok(Format::Csv));
    assert_eq!("ndjson".parse::<Format>(), "ND-json".parse());
    assert!("xls".parse::<Format>().is_err());
    assert_eq!("INF".parse(), Ok(MaxRows::Unlimited));
    assert_eq!("7".parse(), Ok(MaxRows::Limited(7)));
    assert!("-1".parse::<MaxRows>().unwrap_err().contains("'inf'"));
}
