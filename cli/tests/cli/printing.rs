//! Many rows, which several threads format: their order, their end, and an error among them.

use std::fs;
use std::io::Read;

use crate::support::{gridfusion, run};

/// The first rows of a series as CSV.
fn series(rows: i64) -> String {
    let row = |n: i64| format!("{n},{:?},1970-01-{:02}\n", n as f64 / 8.0, n % 9 + 1);
    "n,x,day\n".to_owned() + &(0..rows).map(row).collect::<String>()
}

const SERIES: &str = "SELECT value AS n, value / 8.0 AS x,
    arrow_cast(arrow_cast(value % 9, 'Int32'), 'Date32') AS day FROM";

#[test]
fn rows_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let expected = series(50_000);
    for settings in ["batch_size = 8192", "batch_size = 33", "batch_size = 1000000"] {
        for partitions in ["1", "7"] {
            let set = format!(
                "SET datafusion.execution.{settings};
                SET datafusion.execution.target_partitions = {partitions};"
            );
            let sql = format!("{SERIES} generate_series(0, 49999) ORDER BY n");
            let query = format!("{set} {sql}");
            let csv = run(&["-q", "--format", "csv", "-c", &query]);
            assert!(csv.stdout == expected, "{query}: {:?}", csv.stderr);
            let tsv = run(&["-q", "--format", "tsv", "-c", &query]);
            assert!(tsv.stdout == expected.replace(',', "\t"), "{query}");
            let file = path("result.csv");
            assert_eq!(run(&["-o", &file, "-c", &query]).code, Some(0));
            assert!(fs::read_to_string(&file).unwrap() == expected, "{query}");
            let copied = path("copy.csv");
            let copy = run(&["-q", "-c", &format!("{set} COPY ({sql}) TO '{copied}'")]);
            assert_eq!(copy.code, Some(0), "{copy:?}");
            assert!(fs::read_to_string(&copied).unwrap() == expected, "{query}");
            let json = run(&["-q", "--format", "json", "-c", &query]).stdout;
            let lines = run(&["-q", "--format", "nd-json", "-c", &query]).stdout;
            assert!(json == format!("[{}]\n", lines.trim_end().replace('\n', ",")), "{query}");
            assert_eq!(
                lines.lines().nth(12_345),
                Some(r#"{"n":12345,"x":1543.125,"day":"1970-01-07"}"#)
            );
            assert_eq!(lines.lines().count(), 50_000);
        }
    }
}

#[test]
fn rows_before_an_error_are_printed() {
    let sql = "SET datafusion.execution.target_partitions = 1;
        SELECT 7 / (60000 - value) AS n FROM generate_series(0, 99999)";
    let outcome = run(&["-q", "--format", "csv", "-c", sql]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("Divide by zero"), "{}", outcome.stderr);
    let rows = outcome.stdout.lines().skip(1).enumerate();
    let count = rows.map(|(n, row)| assert_eq!(row, (7 / (60_000 - n as i64)).to_string())).count();
    // The error takes the rows of its own batch along.
    assert_eq!(count, 60_000 / 8192 * 8192);
}

#[test]
fn a_reader_that_leaves_ends_the_query() {
    for format in ["csv", "json", "nd-json", "line", "markdown"] {
        let sql = "SELECT * FROM generate_series(1, 1000000000000)";
        let mut child = gridfusion(&["-q", "--format", format, "-c", sql]).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 4096]).unwrap();
        drop(stdout);
        let outcome = child.wait_with_output().unwrap();
        let message = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!((outcome.status.code(), &*message), (Some(0), ""), "{format}");
    }
}
