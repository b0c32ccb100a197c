//! `--memory-limit`, and files that change while they are mapped.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Outcome, Running, gridfusion, run, tet};

/// Returns a pseudorandom number for a cell; few cells have equal numbers.
fn scattered(cell: u64) -> f32 {
    let mixed = cell.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f32
}

/// Writes a file of 16 MiB, whose rows take 84 MB.
fn big(folder: &TempDir) -> String {
    let path = folder.path().join("big.tet");
    tet(&path, [16_384, 256], 1024, scattered);
    path.to_str().unwrap().to_owned()
}

#[test]
fn sorts_spill_under_a_limit() {
    let folder = TempDir::new().unwrap();
    let file = big(&folder);
    let limited = ["-q", "--memory-limit", "16m", "--format", "csv", "-c"];
    // Each row is compared with the row before it, which detects a wrong order.
    let ordered = "SELECT count(*) AS n, sum(CASE WHEN value < before THEN 1 ELSE 0 END) AS wrong
        FROM (SELECT value, lag(value) OVER (ORDER BY value, dim_1) AS before FROM t)";
    let numbered = "SELECT max(n) AS n, 0 AS wrong
        FROM (SELECT row_number() OVER (ORDER BY value DESC, dim_0) AS n FROM t)";
    for sql in [ordered, numbered] {
        let outcome = run(&[&[file.as_str()], &limited[..], &[sql]].concat());
        assert_eq!(outcome.stdout, "n,wrong\n4194304,0\n", "{sql}: {outcome:?}");
    }
    let copy = folder.path().join("sorted.parquet");
    let copy = copy.to_str().unwrap();
    let sql = format!("COPY (SELECT * FROM t ORDER BY value, dim_0, dim_1) TO '{copy}'");
    let outcome = run(&[&[file.as_str()], &limited[..], &[&sql]].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let sum = |table: &str| {
        let sql = format!("SELECT count(*) AS n, sum(dim_0 * 7 + dim_1) AS sum FROM {table}");
        run(&[&file, "-q", "--format", "csv", "-c", &sql]).stdout
    };
    assert_eq!(sum(&format!("'{copy}'")), sum("t"));
}

#[test]
fn an_error_of_memory_names_the_option() {
    let folder = TempDir::new().unwrap();
    let file = big(&folder);
    let sql = "SELECT count(DISTINCT value) FROM t";
    let outcome = run(&[&file, "-q", "--memory-limit", "100k", "-c", sql]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("raise --memory-limit"), "{outcome:?}");
}

/// Aggregates that hold values stay within one and a half times the limit and 64 MiB, whether they fit or
/// fail.
#[cfg(target_os = "linux")]
#[test]
fn aggregates_keep_to_the_limit() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("big.tet");
    tet(&path, [131_072, 128], 4096, scattered);
    let file = path.to_str().unwrap();
    // DataFusion would plan a lone distinct count as an aggregation over rows.
    let distinct = "count(DISTINCT value) + stddev(value)";
    for aggregate in ["median(value)", distinct, "percentile_cont(value, 0.9)"] {
        for by in ["", " GROUP BY dim_1"] {
            let sql = format!("SELECT sum(a) FROM (SELECT {aggregate} AS a FROM t{by})");
            let limit = 32 << 20;
            let args = [file, "-q", "--memory-limit", "32m", "--format", "csv", "-f", "/dev/stdin"];
            let (peak, outcome) = peak_of(&args, &sql);
            assert!(peak <= limit + limit / 2 + (64 << 20), "{sql}: {peak}; {outcome:?}");
        }
    }
}

/// Runs SQL. Returns the program's peak memory in bytes, sampled every 2 ms.
#[cfg(target_os = "linux")]
fn peak_of(args: &[&str], sql: &str) -> (u64, Outcome) {
    let mut child = gridfusion(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
    let (mut peak, mut program) = (0, Running::new(child));
    while !program.ends_within(Duration::from_millis(2)) {
        peak = crate::support::memory_of(program.id()).unwrap_or(0).max(peak);
    }
    (peak, program.ended())
}

fn cut(path: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

/// The error names a file that is truncated or overwritten after it was opened.
#[cfg(unix)]
#[test]
fn a_file_that_changed_is_an_error() {
    let folder = TempDir::new().unwrap();
    let (path, sql) = (folder.path().join("t.tet"), folder.path().join("statements.sql"));
    assert!(Command::new("mkfifo").arg(&sql).status().unwrap().success());
    type Change = fn(&Path);
    let changes: [(Change, &str); 2] = [
        (|path| cut(path, 400), "t.tet: the file has shrunk"),
        (
            |path| {
                let bytes = fs::read(path).unwrap();
                fs::write(path, bytes).unwrap();
            },
            "t.tet: the file has changed: it was written after it was opened",
        ),
    ];
    for (change, message) in changes {
        for io in ["io=mmap", "io=pread"] {
            tet(&path, [1000, 10], 100, scattered);
            // An old modification time makes every change visible, however coarse the clock.
            let long_ago = std::time::SystemTime::UNIX_EPOCH;
            OpenOptions::new().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
            let args = [path.to_str().unwrap(), "-O", io, "-q", "-f", sql.to_str().unwrap()];
            let program = Running::start(&args);
            // The program opens its files before it reads the statements.
            let mut statements = open_pipe(&sql);
            change(&path);
            statements.write_all(b"SELECT sum(value) FROM t").unwrap();
            drop(statements);
            let outcome = program.ended();
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
            assert!(outcome.stderr.contains(message), "{io}: {outcome:?}");
        }
    }
}

/// Opens a pipe for writing, which waits until the program reads it.
fn open_pipe(pipe: &Path) -> File {
    let (sender, opened) = mpsc::channel();
    let pipe = pipe.to_owned();
    thread::spawn(move || sender.send(File::options().write(true).open(pipe)));
    opened.recv_timeout(Duration::from_secs(120)).unwrap().unwrap()
}

/// If a file is truncated while a query reads its mapping, the program ends with a message.
#[cfg(unix)]
#[test]
fn a_mapped_file_that_is_cut_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cut.tet");
    tet(&path, [1_000_000, 4], 1_000_000, |cell| cell as f32);
    let args = [path.to_str().unwrap(), "-q", "--format", "csv", "-c", "SELECT value FROM t"];
    let mut child = gridfusion(&args).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    // The program now waits for its reader, in the middle of the only chunk.
    stdout.read_exact(&mut [0; 4096]).unwrap();
    cut(&path, 4096);
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    for part in ["Error: ", "cut.tet: ", "was truncated or overwritten", "io = 'pread'"] {
        assert!(outcome.stderr.contains(part), "{outcome:?}");
    }
}
