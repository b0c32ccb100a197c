//! Runs `tests/slt/*.slt`, which are SQL as a user sees it over files of the repository, and `tests/slt/formats/*.slt`,
//! which have the same answers in every format.
//!
//! `UPDATE_SLT=1 cargo test slt` writes the answers found into the former. `check_with_duckdb.py` writes the latter.

/// The arrays of `tests/slt/formats`.
mod arrays;
/// `tests/slt/formats/*.slt`, for each format.
mod formats;
/// Sparse TileDB arrays with every cell.
mod sparse;

use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::GridfusionSessionStateBuilderExt;
use sqllogictest::{DBOutput, Normalizer, Runner, strict_column_validator};

use crate::support::{rows_of, shipped};

/// A session with gridfusion's SQL.
struct Database(SessionContext);

#[derive(Debug)]
struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// The type of a column, as a letter of `query`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Letter(char);

/// B a boolean, D a date, I an integer, P a point in time, R a real number, T a text, and ? any other type.
const LETTERS: &str = "BDIPRT?";

impl sqllogictest::ColumnType for Letter {
    fn from_char(letter: char) -> Option<Self> {
        LETTERS.contains(letter).then_some(Self(letter))
    }

    fn to_char(&self) -> char {
        self.0
    }
}

impl From<&DataType> for Letter {
    fn from(data_type: &DataType) -> Self {
        Self(match data_type {
            DataType::Boolean => 'B',
            DataType::Date32 | DataType::Date64 => 'D',
            DataType::Timestamp(..) => 'P',
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => 'T',
            DataType::Dictionary(_, values) => return Self::from(values.as_ref()),
            _ if data_type.is_integer() => 'I',
            _ if data_type.is_floating() || data_type.is_decimal() => 'R',
            _ => '?',
        })
    }
}

#[async_trait]
impl sqllogictest::AsyncDB for Database {
    type Error = Failure;
    type ColumnType = Letter;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Letter>, Failure> {
        let answer = async {
            let frame = self.0.sql(sql).await?;
            let fields = frame.schema().fields().clone();
            Ok::<_, DataFusionError>((fields, frame.collect().await?))
        };
        let (fields, batches) = answer.await.map_err(|error| Failure(error.to_string()))?;
        if fields.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types = fields.iter().map(|field| Letter::from(field.data_type())).collect();
        let rows = rows_of(&batches).into_iter().flat_map(|row| lines(&row)).collect();
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "gridfusion"
    }

    async fn sleep(_: Duration) {
        panic!("answers do not depend on time");
    }
}

/// A row, with `(empty)` for empty texts. A plan is one cell of several lines; each line becomes a row, indented with dashes.
fn lines(row: &[String]) -> Vec<Vec<String>> {
    let cell = |text: &str| if text.is_empty() { "(empty)".to_owned() } else { text.to_owned() };
    let line = |text: &str| {
        let plan = text.trim_start();
        cell(&format!("{}{plan}", "-".repeat(text.len() - plan.len())))
    };
    match row.split_last() {
        Some((last, first)) if last.contains('\n') => {
            last.lines().map(|text| [first, &[line(text)]].concat()).collect()
        }
        _ => vec![row.iter().map(|text| cell(text)).collect()],
    }
}

fn database(partitions: usize, batch_size: usize) -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        .with_batch_size(batch_size)
        .with_information_schema(true);
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_gridfusion()
        .build();
    SessionContext::new_with_state(state)
}

/// Whether answers agree word by word. Numbers with a decimal point may differ by rounding.
fn agrees(normalize: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    let same = |(found, expected): (&str, &str)| {
        let float = |text: &str| text.contains('.').then(|| text.parse::<f64>().ok()).flatten();
        match (float(found), float(expected)) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-13 * a.abs().max(b.abs()),
            _ => found == expected,
        }
    };
    let same_words = |(found, expected): (String, String)| {
        let (found, expected): (Vec<_>, Vec<_>) =
            (found.split(' ').collect(), expected.split(' ').collect());
        found.len() == expected.len() && found.into_iter().zip(expected).all(same)
    };
    let found = actual.iter().map(|row| normalize(&row.join(" ")));
    actual.len() == expected.len() && found.zip(expected.iter().map(normalize)).all(same_words)
}

/// The `.slt` files of a folder of the repository.
fn files_of(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(shipped(folder)).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{folder}");
    files
}

/// Runs a file with one partition, and with several partitions and small batches. `tables` adds tables to a session.
async fn check(file: &Path, label: &str, tables: impl AsyncFn(&SessionContext)) {
    for (partitions, batch_size) in [(1, 8192), (3, 17)] {
        let mut runner = Runner::new(async || {
            let ctx = database(partitions, batch_size);
            tables(&ctx).await;
            Ok(Database(ctx))
        });
        runner.add_label(label);
        runner.with_validator(agrees);
        runner.with_column_validator(strict_column_validator);
        if let Err(error) = runner.run_file_async(file).await {
            let name = file.file_name().unwrap().display();
            panic!("{name} of {label} with {partitions} partitions: {}", error.display(false));
        }
    }
}

/// Locations in the files are relative to the repository, where cargo runs tests.
#[tokio::test(flavor = "multi_thread")]
async fn sql_logic_tests() {
    for file in files_of("tests/slt") {
        if std::env::var_os("UPDATE_SLT").is_some() {
            let mut runner = Runner::new(async || Ok(Database(database(1, 8192))));
            runner
                .update_test_file(
                    &file,
                    " ",
                    agrees,
                    sqllogictest::default_normalizer,
                    strict_column_validator,
                )
                .await
                .unwrap();
        }
        check(&file, "repository", async |_| {}).await;
    }
}
