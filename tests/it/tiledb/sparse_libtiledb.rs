//! Random sparse arrays that libtiledb writes, compared with the rows that libtiledb reads from them.
//!
//! `tests/data/tiledb/random_sparse.py` writes the arrays, and beside each the expected results of reads
//! and queries. Some reads are as of a time in the past, or restricted to a window of time.
//!
//! | variable | effect |
//! |---|---|
//! | `GRIDFUSION_TILEDB_PYTHON` | a Python with TileDB-Py, which writes new arrays |
//! | `GRIDFUSION_SPARSE_SEEDS` | the first seed and the number of arrays, as in `0 60` |
//! | `GRIDFUSION_SPARSE_ARRAYS` | a directory of arrays that the script has written; no Python is needed |

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use datafusion::prelude::SessionContext;
use serde_json::Value;

use crate::support::{reducing, shipped, variable};
use crate::tiledb::libtiledb::{ExpectedColumn, cells_agree, rows_agree};

/// The most problems that a failed test prints.
const PRINTED: usize = 20;

/// The directory of the arrays; a temporary one is deleted at the end of the test.
enum Arrays {
    Given(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Arrays {
    /// Takes the arrays of a given directory, or writes new ones.
    fn find() -> Self {
        if let Some(given) = std::env::var_os("GRIDFUSION_SPARSE_ARRAYS") {
            return Self::Given(given.into());
        }
        let python = variable("GRIDFUSION_TILEDB_PYTHON");
        let seeds = std::env::var("GRIDFUSION_SPARSE_SEEDS").unwrap_or_else(|_| "0 60".into());
        let directory = tempfile::tempdir().unwrap();
        let mut script = Command::new(python);
        script.arg(shipped("tests/data/tiledb/random_sparse.py")).arg(directory.path());
        let output = script.args(seeds.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self::Temporary(directory)
    }

    fn directory(&self) -> &Path {
        match self {
            Self::Given(directory) => directory,
            Self::Temporary(directory) => directory.path(),
        }
    }

    /// The path and the expected results of each array.
    fn expected(&self) -> Vec<(PathBuf, Value)> {
        let mut arrays: Vec<(PathBuf, Value)> = std::fs::read_dir(self.directory())
            .unwrap()
            .filter_map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name()?.to_str()?.strip_suffix(".expected.json")?.to_owned();
                let expected = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
                Some((path.with_file_name(name), expected))
            })
            .collect();
        arrays.sort_by(|a, b| a.0.cmp(&b.0));
        arrays
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The SQL of a read.
fn sql_of(array: &Path, expected: &Value, read: &Value) -> String {
    let mut arguments = vec![format!("'{}'", array.display())];
    match &read["timestamp"] {
        Value::Null => {}
        Value::Array(window) => {
            arguments.push(format!("timestamp_start => {}", window[0]));
            arguments.push(format!("timestamp => {}", window[1]));
        }
        end => arguments.push(format!("timestamp => {end}")),
    }
    if let Some(key) = expected["encryption_key"].as_str() {
        arguments.push(format!("encryption_key => '{key}'"));
    }
    let table = format!("read_tiledb({})", arguments.join(", "));
    format!("SELECT {} FROM {table} {}", text(&read["select"]), text(&read["tail"]))
}

/// The columns of a batch, which must have the expected names in the expected order.
fn columns_of<'a>(
    batch: &'a RecordBatch,
    read: &'a Value,
) -> Result<Vec<ExpectedColumn<'a>>, String> {
    let expected = read["columns"].as_array().unwrap();
    let schema = batch.schema_ref();
    let found: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let names: Vec<&str> = expected.iter().map(|column| text(&column["name"])).collect();
    if found != names {
        return Err(format!("the columns are {found:?}, expected {names:?}"));
    }
    let column = |(column, array): (&'a Value, &'a ArrayRef)| ExpectedColumn {
        name: text(&column["name"]),
        array,
        kind: text(&column["type"]),
        expected: column["cells"].as_array().unwrap().clone(),
    };
    Ok(expected.iter().zip(batch.columns()).map(column).collect())
}

/// Runs the query of a read, and compares the result. Returns the number of rows.
async fn read_agrees(ctx: &SessionContext, sql: &str, read: &Value) -> Result<usize, String> {
    let message = |error: datafusion::error::DataFusionError| error.to_string();
    let frame = ctx.sql(sql).await.map_err(message)?;
    let schema = Arc::clone(frame.schema().inner());
    let batches = frame.collect().await.map_err(message)?;
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    let batch = concat_batches(&schema, &batches).unwrap();
    let rows = read["rows"].as_u64().unwrap() as usize;
    if batch.num_rows() != rows {
        return Err(format!("{} rows, expected {rows}", batch.num_rows()));
    }
    let columns = columns_of(&batch, read)?;
    if read["ordered"] == true {
        cells_agree(&columns)?;
    } else {
        rows_agree(&columns, rows)?;
    }
    Ok(rows)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs GRIDFUSION_TILEDB_PYTHON: a Python with TileDB-Py"]
async fn random_sparse_arrays_have_the_rows_that_libtiledb_reads() {
    let arrays = Arrays::find();
    let (mut reads, mut rows, mut problems) = (0, 0, vec![]);
    for (path, expected) in arrays.expected() {
        for read in expected["reads"].as_array().unwrap() {
            // Small batches, so that merges and filters cross them.
            let ctx = reducing(2, [3, 64, 8192][reads % 3]);
            let sql = sql_of(&path, &expected, read);
            match read_agrees(&ctx, &sql, read).await {
                Ok(found) => rows += found,
                Err(problem) => problems.push(format!("{sql}\n    {problem}")),
            }
            reads += 1;
        }
    }
    assert!(reads > 0, "no arrays are in {}", arrays.directory().display());
    let printed = &problems[..problems.len().min(PRINTED)];
    assert!(problems.is_empty(), "{} of {reads} reads:\n{}", problems.len(), printed.join("\n"));
    eprintln!("{reads} reads of {rows} rows agree");
}
