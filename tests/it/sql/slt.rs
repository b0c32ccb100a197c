//! Runs `tests/slt/*.slt`: SQL as a user sees it, over files of the repository.
//!
//! `UPDATE_SLT=1 cargo test slt` writes the answers found into the files.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::GridfusionSessionStateBuilderExt;
use sqllogictest::{DBOutput, DefaultColumnType, Normalizer, Runner};

use crate::support::{query, rows_of};

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

#[async_trait]
impl sqllogictest::AsyncDB for Database {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let batches = query(&self.0, sql).await.map_err(|error| Failure(error.to_string()))?;
        let Some(batch) = batches.first().filter(|batch| batch.num_columns() > 0) else {
            return Ok(DBOutput::StatementComplete(0));
        };
        let types = vec![DefaultColumnType::Text; batch.num_columns()];
        let cell =
            |text: &str| if text.is_empty() { "(empty)".to_owned() } else { text.to_owned() };
        // A plan is one cell of several lines; each line becomes a row, indented with dashes.
        let line = |text: &str| {
            let plan = text.trim_start();
            cell(&format!("{}{plan}", "-".repeat(text.len() - plan.len())))
        };
        let rows = rows_of(&batches)
            .into_iter()
            .flat_map(|row| match row.last() {
                Some(last) if last.contains('\n') => {
                    let first = row[..row.len() - 1].to_vec();
                    last.lines().map(|text| [first.clone(), vec![line(text)]].concat()).collect()
                }
                _ => vec![row.iter().map(|text| cell(text)).collect()],
            })
            .collect();
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

fn database(partitions: usize, batch_size: usize) -> Database {
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        .with_batch_size(batch_size)
        .with_information_schema(true);
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_gridfusion()
        .build();
    Database(SessionContext::new_with_state(state))
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

/// Runs every file with one partition, and with several partitions and small batches.
#[tokio::test(flavor = "multi_thread")]
async fn sql_logic_tests() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "slt"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    // Locations in the files are relative to the repository, where cargo runs tests.
    for file in files {
        if std::env::var_os("UPDATE_SLT").is_some() {
            let mut runner = Runner::new(|| async { Ok(database(1, 8192)) });
            runner
                .update_test_file(
                    &file,
                    " ",
                    agrees,
                    sqllogictest::default_normalizer,
                    sqllogictest::default_column_validator,
                )
                .await
                .unwrap();
        }
        for (partitions, batch_size) in [(1, 8192), (3, 17)] {
            let mut runner = Runner::new(|| async { Ok(database(partitions, batch_size)) });
            runner.with_validator(agrees);
            if let Err(error) = runner.run_file_async(&file).await {
                panic!("{} with {partitions} partitions: {}", file.display(), error.display(false));
            }
        }
    }
}
