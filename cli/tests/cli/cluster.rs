//! Queries on workers, each a process of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::{Outcome, Running, STATIONS, gridfusion, run, tet, until_open};

const SQL: &str = "SELECT station, avg(value) FROM temperature GROUP BY station ORDER BY station";

/// A process that ends with the test.
pub(crate) struct Worker {
    process: Child,
    pub(crate) url: String,
    /// The token that the worker has made.
    pub(crate) token: Option<String>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Worker {
    fn start(args: &[&str]) -> Self {
        Self::start_in(Path::new("."), args)
    }

    pub(crate) fn start_in(folder: &Path, args: &[&str]) -> Self {
        Self::new(args, command(args).current_dir(folder))
    }

    /// Starts a worker that writes its log into a file.
    pub(crate) fn start_logging(args: &[&str], variables: &[(&str, &str)], log: File) -> Self {
        Self::new(args, command(args).envs(variables.iter().copied()).stderr(log))
    }

    fn new(args: &[&str], command: &mut Command) -> Self {
        let mut process = command.spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ");
        let url = url.unwrap_or_else(|| panic!("{line}")).to_owned();
        let is_given = ["--no-token", "--token-file"].iter().any(|it| args.contains(it));
        let token = (!is_given).then(|| {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            let token = line.strip_prefix("token ").and_then(|it| it.split(':').next());
            token.unwrap_or_else(|| panic!("{line}")).to_owned()
        });
        Self { process, url, token }
    }

    fn local() -> Self {
        Self::start(&["--no-token"])
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Stops the process without ending it, so that it answers nothing.
    fn freeze(&self) {
        // Every shell has `kill`, also where no such program is installed.
        let kill = format!("kill -STOP {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = gridfusion(&[&["worker", "--listen", "127.0.0.1:0"], args].concat());
    command.stdin(Stdio::null()).stderr(Stdio::null()).env_remove("GRIDFUSION_TOKEN");
    command
}

fn urls(workers: &[Worker]) -> String {
    workers.iter().map(|worker| worker.url.as_str()).collect::<Vec<_>>().join(",")
}

/// Runs SQL on workers, in tasks of any size.
fn on_workers(workers: &[Worker], path: &str, sql: &str, args: &[&str]) -> Outcome {
    let urls = urls(workers);
    run(&[&[path, "--workers", &urls, "--task-size", "1", "-q", "-c", sql], args].concat())
}

#[test]
fn queries_on_one_two_and_three_workers() {
    let alone = run(&[STATIONS, "-q", "-c", SQL]);
    let mut workers = vec![];
    for _ in 0..3 {
        workers.push(Worker::local());
        let found = on_workers(&workers, STATIONS, SQL, &["--timing"]);
        assert_eq!((found.code, &found.stdout), (Some(0), &alone.stdout), "{found:?}");
        // The figures are those of all workers.
        assert!(found.stderr.contains("chunks: 6 read, 0 pruned, 6 in all"), "{found:?}");
    }
    let found = on_workers(&workers, STATIONS, &format!("EXPLAIN {SQL}"), &[]);
    assert!(found.stdout.contains("Stage 1 ── tasks=3"), "{found:?}");
}

#[test]
fn cells_are_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = large(folder.path());
    let workers = [Worker::local(), Worker::local(), Worker::local()];
    for sql in
        ["SELECT count(*), count(DISTINCT value) FROM t WHERE value >= 0", "SELECT count(*) FROM t"]
    {
        let alone = run(&[&path, "-q", "--format", "csv", "-c", sql]);
        let found = on_workers(&workers, &path, sql, &["--format", "csv"]);
        assert_eq!((found.code, found.stdout), (Some(0), alone.stdout), "{sql}");
    }
}

/// A table whose queries take a while.
fn large(folder: &Path) -> String {
    let path = folder.join("large.tet");
    tet(&path, [1500, 500], 50, |cell| (cell % 1013) as f32);
    path.to_str().unwrap().to_owned()
}

/// A query that takes about a second on two workers: rows are sorted, and windows computed.
const SLOW: &str = "SELECT sum(n), sum(s) FROM (SELECT row_number() OVER (PARTITION BY value ORDER BY dim_1, dim_0) AS n, \
                    sum(value) OVER (PARTITION BY dim_1 ORDER BY dim_0) AS s FROM t)";

/// Workers die at any moment. The result is then the right one, or an error that names a worker; never another result, and
/// never an endless wait.
#[test]
fn workers_that_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = large(folder.path());
    let sql = slow(&path);
    let begin = Instant::now();
    let mut workers = vec![Worker::local(), Worker::local()];
    let expected = on_workers(&workers, &path, &sql, &["--format", "csv"]);
    assert_eq!(expected.code, Some(0), "{expected:?}");
    let mut whole = begin.elapsed();
    let mut random = StdRng::seed_from_u64(9);
    let (mut failed, mut retried) = (0, 0);
    for round in 0..50 {
        let retries = if round % 2 == 0 { "0" } else { "2" };
        let urls = urls(&workers);
        let args =
            ["--workers", &urls, "--task-size", "1", "--retries", retries, "--format", "csv"];
        let begin = Instant::now();
        let mut query = Running::start(&[&[path.as_str()][..], &args, &["-c", &sql]].concat());
        if query.ends_within(whole.mul_f64(random.random_range(0.0..1.2))) {
            // The first query also connects, and a busy machine becomes idle.
            whole = begin.elapsed();
        }
        let killed = random.random_range(0..2);
        workers[killed].kill();
        let outcome = query.ended();
        match outcome.code {
            Some(0) => {
                assert!(outcome.stdout.starts_with(&expected.stdout), "round {round}: {outcome:?}");
                retried += usize::from(outcome.stderr.contains("runs again"));
            }
            _ => {
                failed += 1;
                assert_eq!(outcome.stdout, "", "round {round}: {outcome:?}");
                let name = &workers[killed].url;
                assert!(outcome.stderr.contains(name.as_str()), "{name}: {outcome:?}");
                assert_eq!(retries, "0", "the other worker could do it: {outcome:?}");
            }
        }
        workers[killed] = Worker::local();
    }
    assert!(failed > 5 && retried > 5, "{failed} failed, {retried} ran again");
}

/// Returns the slow query with the names of the table's dimensions.
fn slow(path: &str) -> String {
    let columns = run(&[path, "-q", "--format", "csv", "-c", "SELECT * FROM t LIMIT 1"]).stdout;
    let names: Vec<&str> = columns.lines().next().unwrap().split(',').collect();
    SLOW.replace("dim_0", names[0]).replace("dim_1", names[1])
}

/// A frozen worker accepts connections, and answers nothing.
#[test]
fn workers_that_freeze() {
    let folder = tempfile::tempdir().unwrap();
    let path = large(folder.path());
    let sql = slow(&path);
    for before in [true, false] {
        let workers = [Worker::local(), Worker::local()];
        if before {
            workers[1].freeze();
        }
        let urls = urls(&workers);
        let args = ["--workers", &urls, "--task-size", "1", "-q", "-c", &sql];
        let query = Running::start(&[&[path.as_str()][..], &args].concat());
        if !before {
            if cfg!(target_os = "linux") {
                until_open(workers[1].process.id(), Path::new(&path));
            }
            workers[1].freeze();
        }
        let outcome = query.ended();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(&workers[1].url), "{outcome:?}");
    }
}

/// Processes of other machines need TLS and a token. Here, both are used on this one.
#[test]
fn tls_and_a_token() {
    let tls =
        |name: &str| format!("{}/../distributed/testdata/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (certificate, key, ca) = (tls("worker.pem"), tls("worker.key"), tls("ca.pem"));
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "a-long-random-text\n").unwrap();
    let token = token.to_str().unwrap();
    let trust = ["--token-file", token, "--tls-ca", &ca];
    let start =
        || Worker::start(&[&["--tls-cert", &certificate, "--tls-key", &key][..], &trust].concat());
    let workers = [start(), start()];
    assert!(workers[0].url.starts_with("https://127.0.0.1:"), "{}", workers[0].url);
    let alone = run(&[STATIONS, "-q", "-c", SQL]);
    let found = on_workers(&workers, STATIONS, SQL, &trust);
    assert_eq!((found.code, found.stdout), (Some(0), alone.stdout), "{}", found.stderr);
    for (args, message) in [
        (&["--tls-ca", &ca][..], "refused the token"),
        (&["--token-file", token][..], "cannot be reached"), // an unknown authority
    ] {
        let found = on_workers(&workers, STATIONS, SQL, args);
        assert_eq!(found.code, Some(1));
        assert!(
            found.stderr.contains(message) && found.stderr.contains("https://127"),
            "{found:?}"
        );
    }
}

#[test]
fn other_machines_are_refused_without_tls_and_a_token() {
    let refused = run(&["worker", "--listen", "0.0.0.0:0"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(refused.stderr.contains("it needs a certificate and a token"), "{refused:?}");
    for (url, message) in [
        ("http://192.0.2.1:7430", "unencrypted"),
        ("https://192.0.2.1:7430", "without a token"),
        ("ftp://127.0.0.1", "is no URL of a worker"),
        ("here", "the worker 'here'"),
    ] {
        let refused = run(&["--workers", url, "-c", "SELECT 1"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(message), "{refused:?}");
    }
}
