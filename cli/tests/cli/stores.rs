//! Object stores and web servers: options, secrets in URLs, advice, and counts of requests. All servers are on this machine.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Outcome, STATIONS, gridfusion};
use crate::web_server::{Head, WebServer};

const SECRET: &str = "0123456789abcdef";

/// Runs the program without the settings of this machine for object stores.
fn run(args: &[&str]) -> Outcome {
    run_with(args, &[])
}

fn run_with(args: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let mut command = gridfusion(args);
    for (name, _) in std::env::vars_os() {
        let is_of_store = |prefix: &str| name.to_str().is_some_and(|name| name.starts_with(prefix));
        if ["AWS_", "AZURE_", "GOOGLE_"].into_iter().any(is_of_store) {
            command.env_remove(&name);
        }
    }
    command.envs(variables.iter().copied()).env("NO_PROXY", "127.0.0.1").output().unwrap().into()
}

/// Starts a server of `stations.tet` that refuses some requests.
fn server(refuse: impl Fn(&Head) -> Option<(u16, String)> + Send + Sync + 'static) -> WebServer {
    WebServer::start("stations.tet", fs::read(STATIONS).unwrap(), refuse)
}

fn open_server() -> WebServer {
    server(|_| None)
}

/// Returns the options that make a server the endpoint of S3.
fn endpoint(server: &WebServer) -> [String; 4] {
    let endpoint = format!("aws.endpoint=http://{}", server.host());
    ["-O".into(), endpoint, "-O".into(), "aws.allow_http=true".into()]
}

fn run_s3(server: &WebServer, args: &[&str]) -> Outcome {
    let endpoint = endpoint(server);
    let endpoint: Vec<&str> = endpoint.iter().map(String::as_str).collect();
    run(&[args, &endpoint].concat())
}

const COUNT: &str = "SELECT count(*) AS n FROM elevation";

#[test]
fn presigned_urls_are_read_and_not_shown() {
    let server = server(|head| {
        let is_signed = head.line.contains(&format!("?X-Signature={SECRET}&v=1 "));
        (!is_signed)
            .then(|| (403, format!("<Error><Code>No</Code><Message>{SECRET}</Message></Error>")))
    });
    let url = format!("http://{}/data/stations.tet?X-Signature={SECRET}&v=1", server.host());
    let query = format!("SELECT count(*) AS n FROM '{url}#elevation'");
    let explain = format!("EXPLAIN ANALYZE {query}");
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS TET LOCATION '{url}' OPTIONS (dataset 'elevation'); SHOW TABLES; {}",
        "SELECT * FROM t LIMIT 1; EXPLAIN SELECT value FROM t WHERE value > 5"
    );
    for (args, expected) in [
        (&[&url[..], "-q", "--format", "csv", "-c", COUNT][..], "n\n6\n"),
        (&["-q", "--format", "csv", "-c", &query], "n\n6\n"),
        (&["-q", "--timing", "-c", &explain], "GridScanExec"),
        (&["-q", "-c", &create], "GridScanExec"),
        (&["info", &url], "elevation"),
        (&["info", &url, "--json"], "elevation"),
        (&["verify", &url], "OK"),
    ] {
        let outcome = run_with(args, &[("RUST_LOG", "debug")]);
        assert_eq!(outcome.code, Some(0), "{args:?} {outcome:?}");
        let all = outcome.stdout.clone() + &outcome.stderr;
        assert!(outcome.stdout.contains(expected) || args[1] == "--timing", "{outcome:?}");
        assert!(!all.contains(SECRET), "{args:?} {all}");
        assert!(!server.take().is_empty());
    }
    let wrong = url.replace("v=1", "v=2");
    for args in [&[&wrong[..], "-c", COUNT][..], &["info", &wrong], &["verify", &wrong]] {
        let outcome = run_with(args, &[("RUST_LOG", "debug")]);
        assert_eq!(outcome.code, Some(1), "{args:?} {outcome:?}");
        assert!(!(outcome.stdout + &outcome.stderr).contains(SECRET), "{args:?}");
    }
}

#[test]
fn passwords_of_urls_are_sent_and_not_shown() {
    // `me` and the secret, in base 64.
    let expected = "Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg==";
    let server = server(move |head| {
        let is_right = head.header("authorization") == Some(expected);
        (!is_right).then(|| (401, format!("{SECRET} is wrong")))
    });
    let url = format!("http://me:{SECRET}@{}/stations.tet", server.host());
    let outcome = run_with(&[&url, "-q", "--format", "csv", "-c", COUNT], &[("RUST_LOG", "debug")]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "n\n6\n"), "{outcome:?}");
    assert!(!outcome.stderr.contains(SECRET), "{outcome:?}");
    let outcome = run(&[&url.replace("//me", "//you"), "-c", COUNT]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("the server needs a signed URL, a password "), "{outcome:?}");
    assert!(!outcome.stderr.contains(SECRET), "{outcome:?}");
}

#[test]
fn options_of_the_command_line_hold_for_all_stores_of_the_session() {
    let server = open_server();
    let query = "SELECT count(*) AS n FROM 's3://bucket/stations.tet#elevation'";
    for args in [
        &["-q", "--format", "csv", "-c", query][..],
        &["s3://bucket/stations.tet", "-q", "--format", "csv", "-c", COUNT],
    ] {
        let outcome = run_s3(&server, args);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "n\n6\n"), "{outcome:?}");
        let heads = server.take();
        assert!(heads.iter().all(|head| head.line.starts_with("GET /bucket/")), "{heads:?}");
        // Without credentials, no request is signed.
        assert!(heads.iter().all(|head| head.header("authorization").is_none()), "{heads:?}");
    }
    let keys = ["-O", "aws.access_key_id=a", "-O", "aws.secret_access_key=b"];
    let args = [&["-q", "-c", query][..], &keys].concat();
    assert_eq!(run_s3(&server, &args).code, Some(0));
    let is_signed = |head: &Head| {
        head.header("authorization")
            .is_some_and(|it| it.starts_with("AWS4-HMAC-SHA256 Credential=a/"))
    };
    assert!(server.take().iter().all(is_signed));
}

#[test]
fn options_of_statements_hold_for_their_bucket() {
    let server = open_server();
    let url = format!("http://{}", server.host());
    let options = format!("'aws.endpoint', '{url}', 'aws.allow_http', 'true'");
    let in_order = format!("read_array('s3://bucket/stations.tet', 'elevation', {options})");
    let table = format!(
        "CREATE EXTERNAL TABLE t STORED AS TET LOCATION 's3://bucket/stations.tet'
         OPTIONS (dataset 'elevation', 'aws.endpoint' '{url}', 'aws.allow_http' 'true');"
    );
    for sql in [
        format!("SELECT count(*) AS n FROM {in_order}"),
        format!("{table} SELECT count(*) AS n FROM t"),
        format!("{table} SELECT count(*) AS n FROM 's3://bucket/stations.tet#elevation'"),
    ] {
        let outcome = run(&["-q", "--format", "csv", "-c", &sql]);
        assert_eq!(outcome.code, Some(0), "{sql} {outcome:?}");
        assert!(outcome.stdout.ends_with("n\n6\n"), "{sql} {outcome:?}");
    }
}

#[test]
fn mistyped_options_are_refused_before_any_request() {
    let server = open_server();
    let url = format!("http://{}/stations.tet", server.host());
    let create = |options: &str| {
        format!("CREATE EXTERNAL TABLE t STORED AS TET LOCATION '{url}' OPTIONS ({options})")
    };
    let sql = [
        create("dataset 'elevation', 'aws.regoin' 'x'"),
        format!("SELECT * FROM read_array('{url}', 'elevation', 'aws.regoin', 'x')"),
        create("'http.timout' '3 s'"),
        create("'azure.acount_name' 'x'"),
    ];
    for (sql, meant) in
        sql.iter().zip(["aws.region", "aws.region", "http.timeout", "azure.account_name"])
    {
        let outcome = run(&["-q", "-c", sql]);
        let expected = format!("of object stores; did you mean {meant}?");
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains(&expected), "{outcome:?}");
    }
    for args in
        [&[&url[..], "-c", COUNT][..], &["info", &url], &["verify", &url], &["-c", "SELECT 1"]]
    {
        let outcome = run(&[args, &["-O", "gcp.service_acount=x"]].concat());
        assert_eq!(outcome.code, Some(1), "{args:?} {outcome:?}");
        assert!(outcome.stderr.contains("did you mean gcp.service_account?"), "{outcome:?}");
    }
    assert!(server.take().is_empty());
}

#[test]
fn options_of_web_servers_are_sent() {
    let server = open_server();
    let url = format!("http://{}/stations.tet", server.host());
    let options = ["-O", "http.user_agent=tester/1", "-O", "http.header.X-Key=7"];
    let outcome = run(&[&[&url[..], "-q", "-c", COUNT][..], &options].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let heads = server.take();
    assert!(heads.iter().all(|head| head.header("user-agent") == Some("tester/1")), "{heads:?}");
    assert!(heads.iter().all(|head| head.header("x-key") == Some("7")), "{heads:?}");
}

#[test]
fn a_refused_request_shows_what_to_set() {
    let xml = |code: &str, more: &str| {
        format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>No.</Message>{more}</Error>"
        )
    };
    for (status, body, expected) in [
        (
            403,
            xml("AccessDenied", ""),
            "AccessDenied: No; no credentials are set, so the request was anonymous; set aws.access_key_id and aws.secret_access_key",
        ),
        (404, xml("NoSuchBucket", ""), "there is no such bucket at this endpoint"),
        (
            400,
            xml("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"),
            "the bucket is in another region; set aws.region=eu-west-1",
        ),
        (301, String::new(), "the bucket is in another region; set aws.region=REGION"),
    ] {
        let server = server(move |_| Some((status, body.clone())));
        let location = "s3://bucket/stations.tet";
        let query = format!("SELECT * FROM '{location}#elevation'");
        for args in [&[location, "-c", COUNT][..], &["info", location], &["-c", &query]] {
            let outcome = run_s3(&server, &[args, &["-O", "aws.region=us-east-1"]].concat());
            assert_eq!(outcome.code, Some(1), "{args:?} {outcome:?}");
            assert!(outcome.stderr.contains(expected), "{args:?} {outcome:?}");
            assert!(!outcome.stderr.contains("<?xml"), "{args:?} {outcome:?}");
        }
    }
}

#[test]
fn urls_and_endpoints_that_cannot_work_are_refused() {
    let server = open_server();
    let endpoint = format!("aws.endpoint=http://{}", server.host());
    for (args, expected) in [
        (
            &["info", "s3://b/a.tet", "-O", &endpoint][..],
            "is not encrypted; if that is intended, set aws.allow_http=true",
        ),
        (&["info", "s3:///a.tet"], "'s3:///' names no bucket or container; write s3://NAME/PATH"),
        (&["info", "az://c/a.tet"], "set azure.account_name"),
        (&["info", "http://127.0.0.1:1/a.tet"], "no server listens there"),
    ] {
        let outcome = run(args);
        assert_eq!(outcome.code, Some(1), "{args:?} {outcome:?}");
        assert!(outcome.stderr.contains(expected), "{args:?} {outcome:?}");
    }
    assert!(server.take().is_empty());
}

/// The metadata service of cloud machines gives credentials only if an option names it.
#[test]
fn the_metadata_service_is_asked_only_on_demand() {
    let server = open_server();
    let metadata = format!("aws.metadata_endpoint=http://{}", server.host());
    let outcome = run_s3(&server, &["info", "s3://bucket/stations.tet", "-O", &metadata]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let heads = server.take();
    assert!(heads[0].line.contains("/latest/api/token"), "{heads:?}");
}

/// Parquet shares the limits, tries and counts of arrays.
#[test]
fn requests_for_parquet_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.parquet");
    let copy = format!("COPY (SELECT * FROM range(100000)) TO '{}'", file.display());
    assert_eq!(run(&["-q", "-c", &copy]).code, Some(0));
    let failed = AtomicBool::new(false);
    let server = WebServer::start("rows.parquet", std::fs::read(&file).unwrap(), move |head| {
        let is_first = head.header("range").is_some() && !failed.swap(true, Ordering::Relaxed);
        is_first.then(|| (503, "busy".to_owned()))
    });
    let sql = format!("SELECT sum(value) FROM 'http://{}/rows.parquet'", server.host());
    let outcome = run(&["-q", "--timing", "-c", &sql]);
    assert!(outcome.stdout.contains("4999950000"), "{outcome:?}");
    let ranges = server.take().iter().filter(|head| head.header("range").is_some()).count();
    let counted = format!("; {ranges} requests, 1 retry, ");
    assert!(outcome.stderr.contains(&counted), "{ranges} {outcome:?}");
}

#[test]
fn requests_are_counted() {
    let server = open_server();
    let url = format!("http://{}/stations.tet", server.host());
    let sql = format!("SELECT count(value) FROM '{url}#temperature'; SELECT 1");
    let outcome = run(&["-q", "--timing", "-c", &sql]);
    let [of_file, other] = &outcome.stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("{outcome:?}")
    };
    let requests = server.take().len();
    assert!(of_file.contains(&format!("; {requests} request")), "{requests} {of_file}");
    assert!(of_file.contains("0 retries, ") && of_file.ends_with(" s waiting"), "{of_file}");
    assert!(!other.contains("request"), "{other}");
    let text = run(&["info", &url]);
    assert!(text.stdout.contains(" fetched, 0 B wasted, "), "{text:?}");
    let json = run(&["info", &url, "--json"]);
    assert!(json.stdout.contains("\"bytes_fetched\": "), "{json:?}");
    let local = run(&["info", STATIONS, "--json"]);
    assert!(!local.stdout.contains("\"requests\""), "{local:?}");
}
