//! The answers of `tests/slt`, compared with those of DuckDB.

use std::process::Command;

use crate::support::{shipped, variable};

#[test]
#[ignore = "needs GRIDFUSION_READERS_PYTHON: a Python with DuckDB, pandas and pyarrow"]
fn answers_of_sql_logic_tests_are_those_of_duckdb() {
    let mut script = Command::new(variable("GRIDFUSION_READERS_PYTHON"));
    let outcome = script.arg(shipped("tests/slt/check_with_duckdb.py")).output().unwrap();
    let [text, errors] = [&outcome.stdout, &outcome.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(outcome.status.success(), "{text}{errors}");
}
