//! No output shows a secret: every way to name a location and its options, and everything that the program prints and writes.

use std::fs;
use std::path::Path;

use crate::cluster::Worker;
use crate::support::{Outcome, STATIONS, gridfusion};
use crate::web_server::WebServer;

const SECRET: &str = "0123456789abcdefKEYKEY";

/// Ways to put a secret into the URL of a web server. `HOST` stands for its host.
const URLS: [&str; 12] = [
    "http://me:SECRET@HOST/a/stations.tet",
    "http://HOST/a/stations.tet?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=SECRET%2Feu&X-Amz-Signature=SECRET",
    "http://HOST/a/stations.tet?X-Goog-Credential=x%40y&X-Goog-Signature=SECRET",
    "http://HOST/a/stations.tet?sv=2024-11-04&sr=b&sp=r&sig=SECRET%3D",
    "http://HOST/a/stations.tet?token=SECRET",
    "http://HOST/a/stations.tet?access_token=SECRET&v=1",
    "http://me:a SECRET@HOST/a/stations.tet",
    "http://HOST/a/stations.tet?a=1\n&sig=SECRET",
    "http://HOST/a/stations.tet?a=1\tSECRET",
    "http://HOST/a/stations.tet?sig=a'SECRET",
    "http://HOST/a/stations.tet?sig=a<SECRET",
    "http://HOST/a/stations.tet?sig=a\"SECRET>`SECRET",
];

/// Statements about the table `Q`, which is quoted with single quotes, and its columns' qualifier `D`. `DIR` is a folder.
const STATEMENTS: &str = r#"
SELECT count(D.value) FROM Q;
SELECT D.value + 1, D.* FROM Q WHERE D.value > 5 ORDER BY D.value LIMIT 2;
SELECT count(*), count(*), count(D.value), count(D.value) FROM Q;
SELECT min(D.value), min(D.value::DOUBLE) FROM Q;
WITH c AS (SELECT D.value + 1 FROM Q) SELECT * FROM c LIMIT 1;
SELECT x.value + 1, D.value + 1 FROM Q JOIN Q AS x USING (station) LIMIT 1;
SELECT sum(D.value) OVER (PARTITION BY D.station) FROM Q LIMIT 1;
SELECT (SELECT max(D.value) FROM Q), 1 WHERE EXISTS (SELECT 1 FROM Q WHERE D.value > 5);
EXPLAIN SELECT value + 1 FROM Q;
EXPLAIN VERBOSE SELECT value + 1 FROM Q WHERE value > 5;
EXPLAIN ANALYZE SELECT value + 1 FROM Q;
EXPLAIN ANALYZE VERBOSE SELECT avg(value) FROM Q GROUP BY station;
EXPLAIN FORMAT TREE SELECT value + 1 FROM Q;
EXPLAIN FORMAT PGJSON SELECT value + 1 FROM Q;
EXPLAIN FORMAT GRAPHVIZ SELECT value + 1 FROM Q;
EXPLAIN VERBOSE COPY (SELECT value + 1 FROM Q) TO 'DIR/x.csv' OPTIONS ('http.header.x' 'SECRET', 'aws.session_token' 'SECRET');
EXPLAIN COPY (SELECT 1) TO 'http://me:SECRET@HOST/x.csv?sig=SECRET' STORED AS CSV;
CREATE VIEW v AS SELECT D.value + 1 FROM Q;
SELECT * FROM v LIMIT 1;
SHOW CREATE TABLE v;
SELECT * FROM information_schema.views;
CREATE VIEW w AS SELECT value + 1 FROM read_array('BARE', 'elevation', 'http.header.x', 'SECRET', 'aws.secret_access_key', concat('SECRET', 'x'));
SHOW CREATE TABLE w;
EXPLAIN VERBOSE SELECT * FROM w;
CREATE TABLE t AS SELECT value + 1, D.station FROM Q;
SHOW COLUMNS FROM t;
CREATE EXTERNAL TABLE e STORED AS TET LOCATION 'URL' OPTIONS (dataset 'elevation', 'http.header.x' 'SECRET', 'azure.sas_token' 'SECRET');
EXPLAIN VERBOSE SELECT value + 1 FROM e;
SHOW CREATE TABLE e;
CREATE EXTERNAL TABLE f (a INT) STORED AS CSV LOCATION 'DIR/a.csv' OPTIONS ('aws.session_token' 'SECRET', 'format.has_header' 'true');
SHOW CREATE TABLE f;
EXPLAIN VERBOSE SELECT value + 1 FROM read_tet('URL', 'elevation', 'io', 'pread');
EXPLAIN VERBOSE SELECT value + 1 FROM read_tet('URL', 'elevation', 'gcp.service_account_key', 'SECRET');
SELECT * FROM read_array(['URL'], 'elevation', file_column => true) LIMIT 1;
EXPLAIN VERBOSE SELECT value + 1 FROM read_array(['URL'], 'elevation', file_column => true);
SELECT * FROM tet_info('URL');
SELECT * FROM tet_attributes('URL');
DESCRIBE Q;
SUMMARIZE Q;
SHOW TABLES;
SHOW ALL;
SELECT * FROM information_schema.tables;
SELECT * FROM information_schema.columns;
SELECT * FROM information_schema.df_settings;
COPY (SELECT value + 1, count(D.station) FROM Q GROUP BY value) TO 'DIR/o.parquet';
COPY (SELECT value + 1, count(D.station) FROM Q GROUP BY value) TO 'DIR/o.csv' OPTIONS ('aws.session_token' 'SECRET');
COPY (SELECT value + 1, count(D.station) FROM Q GROUP BY value) TO 'DIR/o.json';
COPY (SELECT value + 1, count(D.station) FROM Q GROUP BY value) TO 'DIR/o.arrow';
"#;

/// URLs that most commands refuse.
const WRONG: [&str; 7] = [
    "http://HOST/a/stations.tet#elevation?sig=SECRET",
    "http://me:a/SECRET@HOST/a/stations.tet",
    "http://me:a?SECRET@HOST/a/stations.tet",
    "http://me:a#SECRET@HOST/a/stations.tet",
    "http://me:SECRET@127.0.0.1:99999/a.tet?sig=SECRET",
    "http:me:SECRET@HOST/a/stations.tet?sig=SECRET",
    "ftp://me:SECRET@HOST/a.tet?sig=SECRET",
];

/// Statements that fail.
const MISTAKES: [&str; 17] = [
    "SELECT nope FROM Q",
    "SELECT D.nope FROM Q",
    "SELECT D.value FROM Q AS x",
    "SELECT sum(D.station) FROM Q",
    "SELECT * FROM 'URL#nope'",
    "UPDATE Q SET x = 1",
    "ALTER TABLE Q RENAME TO x",
    "INSERT INTO Q VALUES (1)",
    "SELECT * FROM Q JOIN Q USING (nope)",
    "SELECT value::INT, value::BIGINT, D.value + 'x' FROM Q",
    "SELECT * FROM read_array('URL', 'nope')",
    "SELECT * FROM read_array('BARE', 'elevation', 'http.timeout', 'SECRET')",
    "SELECT * FROM read_array('BARE', 'elevation', 'http.proxy_url', 'http://me:SECRET@')",
    "SELECT * FROM read_array('BARE', 'elevation', 'encryption_key', 'SECRET')",
    "SELECT * FROM read_array('BARE', 'aws.session_token' 'SECRET')",
    "CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'URL' OPTIONS ('aws.session_token' 'a' 'SECRET')",
    "CREATE EXTERNAL TABLE t STORED AS NOPE LOCATION 'URL' OPTIONS ('aws.session_token' 'SECRET')",
];

fn server() -> WebServer {
    WebServer::start("stations.tet", fs::read(STATIONS).unwrap(), |_| None)
}

fn run(args: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let mut command = gridfusion(args);
    command.env("NO_PROXY", "127.0.0.1").envs(variables.iter().copied()).output().unwrap().into()
}

/// Fills in a template for a URL.
fn filled(template: &str, url: &str, server: &WebServer, folder: &Path) -> String {
    let table = format!("{url}#elevation");
    let quoted = format!("'{}'", table.replace('\'', "''"));
    let before = ["FROM", "JOIN", "DESCRIBE", "SUMMARIZE", "UPDATE", "TABLE", "INTO"];
    before
        .iter()
        .fold(template.to_owned(), |sql, word| {
            sql.replace(&format!("{word} Q"), &format!("{word} {quoted}"))
        })
        .replace("D.", &format!("\"{}\".", table.replace('"', "\"\"")))
        .replace("URL", &url.replace('\'', "''"))
        .replace("BARE", &format!("http://{}/a/stations.tet", server.host()))
        .replace("DIR", folder.to_str().unwrap())
        .replace("HOST", &server.host())
        .replace("SECRET", SECRET)
}

fn assert_hidden(outcome: &Outcome, what: &str) {
    for text in [&outcome.stdout, &outcome.stderr] {
        let mut lines = text.lines();
        // A narrow tree breaks lines, so a part of the secret counts too.
        let shown = lines.find(|line| line.contains(&SECRET[4..]));
        assert!(shown.is_none(), "{what}: {}", shown.unwrap_or_default());
    }
}

#[test]
fn no_output_shows_a_secret() {
    let server = server();
    for url in URLS {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.csv"), "a\n1\n").unwrap();
        let url = url.replace("HOST", &server.host()).replace("SECRET", SECRET);
        let sql = filled(STATEMENTS, &url, &server, folder.path());
        for statement in sql.split(";\n").map(str::trim).filter(|it| it.starts_with("COPY")) {
            assert!(statement.contains(&url.replace('\'', "''")));
        }
        let outcome = run(&["-q", "--timing", "-c", &sql], &[("RUST_LOG", "trace")]);
        assert_eq!(outcome.code, Some(0), "{url}: {:?}", outcome.stderr.lines().last());
        assert!(outcome.stdout.contains("stations.tet#elevation.value"), "{url}");
        assert_hidden(&outcome, &url);
        for file in ["o.parquet", "o.csv", "o.json", "o.arrow"] {
            let bytes = fs::read(folder.path().join(file)).unwrap();
            let has = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
            assert!(has("stations.tet#elevation.") && !has(SECRET), "{url}: {file}");
        }
    }
}

#[test]
fn no_message_shows_a_secret() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    for url in [0, 1, 6, 7, 9, 11].map(|at| URLS[at]) {
        let url = url.replace("HOST", &server.host()).replace("SECRET", SECRET);
        for mistake in MISTAKES {
            let sql = filled(mistake, &url, &server, folder.path());
            let outcome = run(&["-q", "-c", &sql], &[("RUST_LOG", "debug")]);
            assert_eq!(outcome.code, Some(1), "{sql}: {outcome:?}");
            assert_hidden(&outcome, mistake);
        }
        let picture = folder.path().join("a.svg");
        let sql = filled("SELECT station, D.value + 1 FROM Q", &url, &server, folder.path());
        let picture = picture.to_str().unwrap();
        for (args, code) in [
            (&["info", &url][..], 0),
            (&["info", &url, "--json"], 0),
            (&["verify", &url, "--json"], 0),
            (&["plot", &sql, "-o", picture], 0),
            (&["info", &url, "--metadata"], 0),
            (&["info", &url.replace("stations", "gone")], 1),
            (&["worker", "--listen", &url], 1),
            (&["--workers", &url, "-q", "-c", "SELECT 1"], 1),
            (&["-O", &url, "-q", "-c", "SELECT 1"], 1),
            (&["-f", &url], 1),
            (&["verify", &url.replace("stations", "gone")], 1),
            (
                &[&url, "-q", "-c", "SHOW TABLES; EXPLAIN VERBOSE SELECT value + 1 FROM elevation"],
                0,
            ),
        ] {
            let outcome = run(args, &[("RUST_LOG", "trace")]);
            assert_eq!(outcome.code == Some(0), code == 0, "{args:?}: {outcome:?}");
            assert_hidden(&outcome, args[0]);
        }
        assert!(!fs::read_to_string(picture).unwrap().contains(SECRET));
    }
}

#[test]
fn no_message_shows_a_secret_of_a_wrong_url() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    for url in WRONG {
        let url = url.replace("HOST", &server.host()).replace("SECRET", SECRET);
        let q = format!("'{url}'");
        for (args, what) in [
            (vec!["-q", "-c", &format!("SELECT * FROM {q}")], "a quoted path"),
            (vec!["-q", "-c", &format!("SELECT * FROM read_array({q})")], "a function"),
            (vec!["-q", "-c", &format!("CREATE VIEW v AS SELECT * FROM {q}")], "a view"),
            (
                vec![
                    "-q",
                    "-c",
                    &format!(
                        "CREATE EXTERNAL TABLE e STORED AS ARRAY LOCATION {q}; SELECT * FROM e"
                    ),
                ],
                "an external table",
            ),
            (vec!["-q", "-c", &format!("SELECT \"{url}\".x FROM {q}")], "a column"),
            (vec!["-q", "-c", &format!("COPY (SELECT 1) TO {q} STORED AS CSV")], "a target"),
            (vec!["info", &url], "info"),
            (vec!["verify", &url], "verify"),
            (vec![&url, "-q", "-c", "SHOW TABLES"], "a path"),
            (vec!["plot", "SELECT 1", &url, "-o", "x.svg"], "plot"),
        ] {
            let mut command = gridfusion(&args);
            command.env("NO_PROXY", "*").env("RUST_LOG", "debug").current_dir(folder.path());
            let outcome: Outcome = command.output().unwrap().into();
            assert_hidden(&outcome, &format!("{what}: {url}"));
        }
    }
}

/// Secrets of options and of variables are sent, and not shown.
#[test]
fn options_and_variables_are_not_shown() {
    let server = server();
    let sql = "SELECT count(value) FROM 's3://bucket/stations.tet#elevation'; SHOW ALL;
               EXPLAIN VERBOSE SELECT value + 1 FROM 's3://bucket/stations.tet#elevation'";
    let endpoint = format!("aws.endpoint=http://{}", server.host());
    let token = format!("aws.session_token={SECRET}");
    let header = format!("http.header.x-key={SECRET}");
    let args = [
        "-q",
        "-O",
        &endpoint,
        "-O",
        "aws.allow_http=true",
        "-O",
        &token,
        "-O",
        &header,
        "-c",
        sql,
    ];
    let keys = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("RUST_LOG", "trace"),
        ("AZURE_STORAGE_SAS_KEY", SECRET),
    ];
    let outcome = run(&args, &keys);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(server.take().iter().any(|head| head.header("x-amz-security-token") == Some(SECRET)));
    assert_hidden(&outcome, "options");
    let key = format!("encryption_key={SECRET}");
    let outcome = run(&["info", STATIONS, "-O", &key], &keys);
    assert_hidden(&outcome, "encryption_key");
}

/// Settings of the session may be URLs, which `SHOW ALL` and `df_settings` show.
#[test]
fn settings_hold_no_secrets() {
    for url in ["https://me:SECRET@h/data", "https://h/data?sig=SECRET", "s3://key:SECRET@b/data"] {
        let url = url.replace("SECRET", SECRET);
        let sql = format!("SET datafusion.catalog.location = '{url}'; SHOW ALL");
        let outcome = run(&["-q", "-c", &sql], &[("RUST_LOG", "trace")]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{url}: {outcome:?}");
        assert!(outcome.stderr.contains("datafusion.catalog.location has a URL"), "{outcome:?}");
        assert_hidden(&outcome, &url);
        let variables = [("DATAFUSION_CATALOG_LOCATION", url.as_str()), ("RUST_LOG", "trace")];
        let outcome = run(&["-q", "-c", "SHOW ALL"], &variables);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{url}: {outcome:?}");
        assert_hidden(&outcome, &url);
    }
    let sql = "SET datafusion.catalog.location = 'https://h/data'; SELECT value FROM information_schema.df_settings
               WHERE name = 'datafusion.catalog.location'";
    assert_eq!(run(&["-q", "--format", "csv", "-c", sql], &[]).stdout, "value\nhttps://h/data\n");
}

/// Logs and answers of workers have neither their own secrets nor those of the one who asks.
#[test]
fn workers_show_no_secrets() {
    // Only the worker sends the header, so only the worker is refused. The server repeats the header.
    let server = WebServer::start("stations.tet", fs::read(STATIONS).unwrap(), |head| {
        let key = head.header("x-key").filter(|_| head.line.contains("/refused/"))?;
        Some((403, format!("wrong key: {key}")))
    });
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let token = "token-of-the-cluster-0123456789";
    fs::write(at("token"), token).unwrap();
    let key = format!("{SECRET}-of-the-worker");
    let header = format!("http.header.x-key={key}");
    let args = ["--token-file", &at("token"), "--allow-files", "-O", &header];
    let variables = [
        ("RUST_LOG", "trace"),
        ("NO_PROXY", "127.0.0.1"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", key.as_str()),
    ];
    let worker = Worker::start_logging(&args, &variables, fs::File::create(at("log")).unwrap());
    let host = server.host();
    let bare = format!("http://{host}/a/stations.tet");
    let refused = format!("http://{host}/refused/stations.tet");
    // The first is answered; the next two fail in the worker, and the others in the coordinator.
    let mut statements = vec![
        format!("SELECT station, avg(value) FROM '{bare}#temperature' GROUP BY station"),
        format!(
            "SELECT station, sum(1 / (value::INT - value::INT)) FROM '{bare}#temperature' GROUP BY station"
        ),
        format!("SELECT station, avg(value) FROM '{refused}#temperature' GROUP BY station"),
    ];
    for url in URLS {
        let url = url.replace("HOST", &host).replace("SECRET", SECRET);
        statements
            .push(format!("SELECT station, avg(value) FROM '{url}#temperature' GROUP BY station"));
    }
    for (number, sql) in statements.iter().enumerate() {
        let args = [
            "--workers",
            &worker.url,
            "--token-file",
            &at("token"),
            "--task-size",
            "1",
            "-q",
            "-c",
            sql,
        ];
        let outcome = run(&args, &[("RUST_LOG", "trace")]);
        assert_eq!(
            outcome.code == Some(0),
            number == 0,
            "{sql}: {:?}",
            outcome.stderr.lines().last()
        );
        assert_hidden(&outcome, sql);
        assert!(!outcome.stderr.contains(token), "{sql}");
    }
    let asked = server.take();
    assert!(asked.iter().any(|head| head.header("x-key") == Some(&key)), "the worker read nothing");
    drop(worker);
    let log = fs::read_to_string(at("log")).unwrap();
    assert!(log.contains("debug: ") && log.contains("trace: "), "the log is empty: {}", log.len());
    for secret in [&SECRET[4..], token] {
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "the worker logs {line:?}");
    }
}
