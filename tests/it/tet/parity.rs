//! `docs/tet-query.md`: operations of the reference's query engine as SQL. `operations.md` beside this file has those that the
//! page leaves out.
//!
//! `tests/slt/parity.slt` runs the statements over a file that this module writes. Their answers must be
//! those of the reference engine to the query documents next to them.

use std::path::Path;

use datafusion::prelude::SessionContext;
use serde_json::{Value, json};
use sqllogictest::{DefaultColumnType, Record};
use tetration::prelude::{ExecuteQueryOptions, TetFile, execute_query_json};

use crate::support::{
    F32, F64, Layout, TestDataset, query, reducing, rows_from, shipped, tet_bytes,
};

const U8: u32 = 5;
const DATA: &str = "tests/data/parity.tet";

/// The file of the examples: repeated labels, a fill value, a NaN, and a complete matrix.
fn data() -> Vec<u8> {
    let mut cells: Vec<f32> = (0..24_u8).map(f32::from).collect();
    cells[5] = -999.0; // 2024-01-02, Oslo
    cells[11] = f32::NAN; // 2024-01-03, Tromso
    let bytes = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    let days: Vec<String> = (1..=6).map(|day| format!("2024-01-0{day}")).collect();
    let axes = json!({
        "dim_names": ["time", "station"],
        "coords": {
            "time": {"labels": days},
            "station": {"labels": ["Bergen", "Oslo", "Bergen", "Tromso"]},
        },
    });
    let mut metadata = axes.clone();
    metadata["attrs"] = json!({"_FillValue": "-999"});
    let t = TestDataset::new("t", F32, &[6, 4], &[4, 2], bytes).with_metadata(metadata);
    let bytes = (0..24_u8).collect();
    let u = TestDataset::new("u", U8, &[6, 4], &[6, 4], bytes).with_metadata(axes);
    let cells = [1.0, 2.0, 0.0, 2.0, 1.0, 0.5, 3.0, 4.0, -1.0, 4.0, 3.0, 2.0, 5.0, 6.0, -1.5_f64];
    let bytes = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    let m = TestDataset::new("m", F64, &[5, 3], &[2, 3], bytes).with_metadata(json!({
        "dim_names": ["run", "gauge"],
        "coords": {"gauge": {"labels": ["a", "b", "c"]}},
    }));
    tet_bytes(&[t, u, m], &Layout { history_version: Some(2), ..Layout::default() })
}

/// `UPDATE_SLT=1` writes the file.
#[test]
fn the_data_is_what_is_written_here() {
    let path = shipped(DATA);
    if std::env::var_os("UPDATE_SLT").is_some() {
        std::fs::write(&path, data()).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == data(), "run this test with UPDATE_SLT=1");
}

/// The words of a text, with single blanks between them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The page of the book, and the operations that it leaves out.
fn document() -> String {
    let read = |path: &str| std::fs::read_to_string(shipped(path)).unwrap();
    read("docs/tet-query.md") + &read("tests/it/tet/operations.md")
}

/// The rows of two code spans.
fn pairs(document: &str) -> impl Iterator<Item = (&str, &str)> {
    document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |")?.split_once("` | `"))
}

/// The expressions in the document's tables, beside the names of operations.
fn expressions(document: &str) -> Vec<&str> {
    pairs(document).filter(|(name, _)| !name.starts_with('"')).map(|(_, sql)| sql).collect()
}

/// The rows of the document's tables: an operation of the reference, and the same as SQL.
fn operations(document: &str) -> Vec<(&str, &str)> {
    pairs(document).filter_map(|(name, sql)| Some((name.strip_prefix('"')?, sql))).collect()
}

/// The statements of the document's SQL blocks.
fn statements(document: &str) -> Vec<&str> {
    // Skips the rest of the line of a fence.
    let blocks = document.split("```sql").skip(1).filter_map(|rest| rest.split_once('\n'));
    let blocks = blocks.map(|(_, rest)| rest.split("```").next().unwrap());
    let statements = blocks.flat_map(|block| block.split(";\n"));
    statements.map(str::trim).filter(|statement| !statement.is_empty()).collect()
}

#[test]
fn every_statement_of_the_document_is_tested() {
    let document = document();
    let records =
        sqllogictest::parse_file::<DefaultColumnType>(shipped("tests/slt/parity.slt")).unwrap();
    let tested: Vec<String> = records
        .into_iter()
        .filter_map(|record| match record {
            Record::Query { sql, .. } | Record::Statement { sql, .. } => Some(words(&sql)),
            _ => None,
        })
        .collect();
    let (operations, statements) = (operations(&document), statements(&document));
    assert!(operations.len() > 60 && statements.len() > 5, "too few statements in the document");
    for sql in operations.into_iter().map(|(_, sql)| sql).chain(statements) {
        // The tests write files into their own directory.
        let sql = words(sql).replace("TO '", "TO '$__TEST_DIR__/");
        assert!(tested.contains(&sql), "not in tests/slt/parity.slt: {sql}");
    }
    let expressions = expressions(&document);
    assert!(expressions.len() > 15, "too few expressions in the document");
    for sql in expressions {
        let is_tested = tested.iter().any(|statement| statement.contains(sql));
        assert!(is_tested, "in no statement of tests/slt/parity.slt: {sql}");
    }
}

/// A session with the tables that the document creates.
async fn tables(document: &str) -> SessionContext {
    let ctx = reducing(2, 8192);
    for statement in statements(document) {
        if statement.starts_with("CREATE") {
            query(&ctx, &statement.replace(DATA, &shipped(DATA))).await.unwrap();
        }
    }
    ctx
}

/// The dataset whose tables a statement reads.
fn dataset(sql: &str) -> &'static str {
    let mut words = sql.split(|c: char| !c.is_alphanumeric());
    if words.any(|word| word == "m") { "m" } else { "t" }
}

/// The answer of the reference to a document: numbers, and `None` for everything else.
fn ask_reference(file: &TetFile, document: &str) -> Result<Vec<Option<f64>>, String> {
    // The answer of a transform is its cells, which are in the preview; others need no preview.
    let is_transform = document.contains("\"transform\"");
    let options = ExecuteQueryOptions { preview_max: Some(if is_transform { 100 } else { 0 }) };
    let response =
        execute_query_json(document, Path::new(&shipped(DATA)), file.mmap(), options, None)
            .map_err(|error| error.to_string())?;
    let response = serde_json::to_value(response).unwrap();
    let execution = &response["execution"];
    if is_transform {
        return Ok(numbers(&execution["f64_preview"]));
    }
    if document.contains("\"align\": {") {
        return Ok(numbers(&execution["alignment"]["aligned"]));
    }
    let about = ["_element_count", "_shape", "_order", "_edges"];
    let fields = execution.as_object().unwrap().iter().filter(|(key, _)| {
        key.starts_with("operation_") && !about.iter().any(|end| key.ends_with(end))
    });
    match fields.collect::<Vec<_>>().as_slice() {
        [] => Ok(numbers(&execution["operation_element_count"])),
        [(_, answer)] => Ok(numbers(answer)),
        several => Err(format!("several answers: {several:?}")),
    }
}

fn numbers(answer: &Value) -> Vec<Option<f64>> {
    match answer {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::Bool(truth) => vec![Some(f64::from(u8::from(*truth)))],
        other => vec![other.as_f64()],
    }
}

/// The last column of a query's result: numbers, and `None` for everything else.
async fn ask_sql(ctx: &SessionContext, sql: &str) -> Vec<Option<f64>> {
    let number = |row: Vec<String>| match row.last().unwrap().as_str() {
        "true" => Some(1.0),
        "false" => Some(0.0),
        text => text.parse().ok().filter(|number: &f64| number.is_finite()),
    };
    rows_from(ctx, sql).await.into_iter().map(number).collect()
}

#[tokio::test]
async fn the_reference_answers_the_same() {
    let document = document();
    let ctx = tables(&document).await;
    let file = TetFile::open(Path::new(&shipped(DATA))).unwrap();
    let mut failures = Vec::new();
    for (operation, sql) in operations(&document) {
        let asked = format!("{{\"dataset\": \"{}\", \"{operation}}}", dataset(sql));
        let found = ask_sql(&ctx, sql).await;
        let close = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * a.abs().max(1.0),
            (a, b) => a == b,
        };
        let expected = ask_reference(&file, &asked);
        let is_same = expected.as_ref().is_ok_and(|expected| {
            expected.len() == found.len() && expected.iter().zip(&found).all(close)
        });
        if !is_same {
            failures.push(format!("{asked}\n  {sql}\n  {expected:?}\n  {found:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
