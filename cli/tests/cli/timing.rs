//! `--timing`: the times of statements, and the chunks and bytes that they read.

use crate::support::{STATIONS, run, tiledb};

/// Returns the timing line of each statement, with `T` for times.
fn timings(paths: &[&str], sql: &str) -> Vec<String> {
    let args = [paths, &["-q", "--timing", "--format", "csv", "-c", sql]].concat();
    let outcome = run(&args);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stderr.lines().map(without_times).collect()
}

fn without_times(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.parse::<f64>() {
        Ok(_) if word.contains('.') => "T",
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn chunks_and_bytes_of_a_scan() {
    let sql = "SELECT value FROM precipitation WHERE station = 'Oslo' AND time < '2024-01-02'";
    let expected = "Timing: planning T s, execution T s; 24 rows; chunks: 1 read, 11 pruned, 12 in all; T KiB read";
    assert_eq!(timings(&[STATIONS], sql), [expected]);
    let sql = "SELECT max(time) AS last FROM temperature";
    let expected = "Timing: planning T s, execution T s; 1 row";
    assert_eq!(timings(&[STATIONS], sql), [expected]);
}

#[test]
fn a_reduction_and_what_zone_maps_answer() {
    let sql = "SELECT station, avg(value) FROM temperature GROUP BY station";
    let [timing] = &timings(&[STATIONS], sql)[..] else { panic!("one statement") };
    assert!(
        timing.contains("; 6 rows; chunks: 6 read, 0 pruned, 6 in all; T KiB read"),
        "{timing}"
    );
    let sql = "SELECT max(value) FROM temperature";
    let [timing] = &timings(&[STATIONS], sql)[..] else { panic!("one statement") };
    assert!(
        timing.contains("0 read, 0 pruned, 6 answered by zone maps, 6 in all; 0 B"),
        "{timing}"
    );
}

#[test]
fn each_statement_in_each_format() {
    let query = "SELECT a FROM overlap ORDER BY r, c";
    let sql = format!(
        "SET gridfusion.optimizer.enable_reduce = false; {query}; SHOW TABLES; ; EXPLAIN ANALYZE SELECT a FROM overlap"
    );
    let overlap = tiledb("overlap");
    for format in ["table", "csv", "tsv", "json", "nd-json", "automatic"] {
        let args = [&overlap, "-q", "--maxrows", "2", "--format", format, "-c"];
        let plain = run(&[&args[..], &[query]].concat());
        let outcome = run(&[&args[..], &[&sql, "--timing"]].concat());
        let lines: Vec<String> = outcome.stderr.lines().map(without_times).collect();
        let [set, select, show, explain] = &lines[..] else { panic!("{outcome:?}") };
        assert_eq!((set.as_str(), show.as_str()), ("Timing: T s", "Timing: T s"));
        let reads = "; 42 rows; chunks: 6 read, 0 pruned, 6 in all; ";
        assert!(select.contains(reads), "{select}");
        assert!(explain.contains("chunks: 6 read, 0 pruned, 6 in all; "), "{explain}");
        assert!(outcome.stdout.starts_with(&plain.stdout), "{outcome:?}");
    }
}

#[test]
fn exports_are_counted_and_failures_are_not_timed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.csv");
    let sql = format!("COPY (SELECT * FROM temperature) TO '{}'", target.display());
    let [timing] = &timings(&[STATIONS], &sql)[..] else { panic!("one statement") };
    assert!(timing.contains("; 1 row; chunks: 6 read, 0 pruned, 6 in all; "), "{timing}");
    assert_eq!(std::fs::read_to_string(&target).unwrap().lines().count(), 8641);
    let outcome = run(&["-q", "--timing", "-c", "SELECT 1; SELECT * FROM nope; SELECT 2"]);
    let starts: Vec<&str> = outcome.stderr.lines().map(|line| &line[..7]).collect();
    assert_eq!(starts, ["Timing:", "Error: "]);
}
