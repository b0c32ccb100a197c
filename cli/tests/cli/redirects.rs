//! Servers and files without trust: redirects, and references of remote files.

use std::fs;

use crate::support::{Outcome, STATIONS, gridfusion};
use crate::web_server::{Head, WebServer};

const SECRET: &str = "0123456789abcdefSECRET";

fn run(args: &[&str]) -> Outcome {
    let keys = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    gridfusion(args).env("NO_PROXY", "*").envs(keys).output().unwrap().into()
}

fn stations(refuse: impl Fn(&Head) -> Option<(u16, String)> + Send + Sync + 'static) -> WebServer {
    WebServer::start("stations.tet", fs::read(STATIONS).unwrap(), refuse)
}

/// Whether a request has anything that the user gave to another server.
fn has_secrets(head: &Head) -> bool {
    let is_given = |(name, value): &(String, String)| {
        value.contains(SECRET)
            || ["authorization", "referer", "cookie"].contains(&name.as_str())
            || name.starts_with("x-")
    };
    head.line.contains(SECRET) || head.headers.iter().any(is_given)
}

#[test]
fn a_redirect_to_another_server_takes_no_secrets_along() {
    let other = stations(|_| None);
    let target = format!("http://{}/stations.tet", other.host());
    let first = stations(move |_| Some((302, target.clone())));
    let (host, header) = (first.host(), format!("http.header.X-Key={SECRET}"));
    let endpoint = format!("aws.endpoint=http://{host}");
    let token = format!("aws.session_token={SECRET}");
    for (url, options) in [
        (format!("http://{host}/stations.tet?X-Amz-Signature={SECRET}"), vec![&header]),
        (format!("http://me:{SECRET}@{host}/stations.tet"), vec![&header]),
        ("s3://bucket/stations.tet".to_owned(), vec![&endpoint, &token]),
    ] {
        let sql = format!("SELECT count(value) AS n FROM '{url}#elevation'");
        let mut args = vec!["-q", "--format", "csv", "-c", &sql, "-O", "aws.allow_http=true"];
        options.iter().for_each(|option| args.extend(["-O", option]));
        let outcome = run(&args);
        assert_eq!((outcome.code, &*outcome.stdout), (Some(0), "n\n6\n"), "{url}: {outcome:?}");
        let (asked, led) = (first.take(), other.take());
        assert!(!asked.is_empty() && asked.iter().all(has_secrets), "{url}: {asked:?}");
        assert!(!led.is_empty() && !led.iter().any(has_secrets), "{url}: {led:?}");
        assert!(led.iter().all(|head| head.header("range").is_some()), "{led:?}");
    }
}

#[test]
fn a_redirect_on_the_same_server_keeps_them() {
    let first = stations(|head| {
        let is_moved = head.line.contains("/old/");
        is_moved.then(|| (307, "/new/stations.tet".to_owned()))
    });
    let url = format!("http://me:{SECRET}@{}/old/stations.tet", first.host());
    let outcome = run(&["info", &url, "-O", &format!("http.header.X-Key={SECRET}")]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let asked = first.take();
    assert!(asked.iter().any(|head| head.line.contains("/new/")), "{asked:?}");
    for head in asked {
        assert_eq!(head.header("x-key"), Some(SECRET), "{head:?}");
        assert!(head.header("authorization").is_some() && head.header("referer").is_none());
    }
}

/// A detour over another server does not bring the secrets back.
#[test]
fn secrets_that_were_left_behind_stay_there() {
    let first = stations(|head| {
        let is_back = head.line.contains("/back/");
        (!is_back).then(|| (302, String::new()))
    });
    let back = format!("http://{}/back/stations.tet", first.host());
    let other = stations(move |_| Some((302, back.clone())));
    let target = format!("http://{}/x", other.host());
    let start = stations(move |head| {
        let is_back = head.line.contains("/back/");
        (!is_back).then(|| (302, target.clone()))
    });
    let url = format!("http://{}/stations.tet?sig={SECRET}", start.host());
    let outcome = run(&["info", &url, "-O", &format!("http.header.X-Key={SECRET}")]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!first.take().iter().any(has_secrets) && !other.take().iter().any(has_secrets));
    assert!(start.take().iter().all(has_secrets));
}

#[test]
fn endless_redirects_end() {
    let first = stations(|_| Some((302, "/again/stations.tet".to_owned())));
    let outcome = run(&["info", &format!("http://{}/stations.tet", first.host())]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("more than 10 redirects"), "{outcome:?}");
    assert!(first.take().len() < 30);
}

/// The message of a quoted path gives the reason, and not only that there is no such table.
#[test]
fn quoted_urls_show_the_reason() {
    let circle = stations(|_| Some((302, "/again".to_owned())));
    let nowhere = stations(|_| Some((302, "http://[".to_owned())));
    let gone = stations(|_| Some((404, String::new())));
    for (server, reason) in [
        (circle.host(), "more than 10 redirects"),
        (nowhere.host(), "redirect"),
        ("127.0.0.1:1".to_owned(), "onnect"),
    ] {
        for name in ["r", "r/stations", "rows.dat"] {
            let sql = format!("SELECT * FROM 'http://{server}/{name}?sig={SECRET}'");
            let outcome = run(&["-q", "-c", &sql, "-O", "http.timeout=2s"]);
            assert_eq!(outcome.code, Some(1), "{outcome:?}");
            assert!(outcome.stderr.contains(reason), "{sql}: {outcome:?}");
            assert!(!outcome.stderr.contains(SECRET), "{outcome:?}");
        }
    }
    let outcome = run(&["-q", "-c", &format!("SELECT * FROM 'http://{}/r'", gone.host())]);
    assert!(outcome.stderr.contains("not found"), "{outcome:?}");
}

/// The name of an object does not explain why it cannot be read.
#[test]
fn names_do_not_hide_the_reason() {
    for (reader, name) in
        [("zarr", "k.json"), ("zarr", "a.nc"), ("array", "a.csv"), ("netcdf", "a.json")]
    {
        let server = stations(|_| Some((500, "out of order".to_owned())));
        let sql = format!(
            "SET gridfusion.remote_tries = 1; SELECT * FROM read_{reader}('http://{}/{name}')",
            server.host()
        );
        let outcome = run(&["-q", "-c", &sql]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let shown = &outcome.stderr;
        assert!(shown.contains("500") && !shown.contains("this is"), "{sql}: {shown}");
    }
}

/// Returns a reference file with one chunk of four bytes at a place.
fn references(place: &str) -> String {
    let array = r#"{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [4], \"dtype\": \"|u1\", \"fill_value\": null, \"order\": \"C\", \"filters\": null, \"compressor\": null}"#;
    let attributes = r#"{\"_ARRAY_DIMENSIONS\": [\"x\"]}"#;
    format!(
        r#"{{"version": 1, "refs": {{".zgroup": "{{\"zarr_format\": 2}}", "a/.zarray": "{array}",
            "a/.zattrs": "{attributes}", "a/0": ["{place}", 0, 4]}}}}"#
    )
}

fn chunk() -> WebServer {
    WebServer::start("chunk", vec![1, 2, 3, 4], |_| None)
}

fn remote(place: &str) -> WebServer {
    WebServer::start("refs.json", references(place).into_bytes(), |_| None)
}

fn sum(location: &str, options: &[&str]) -> Outcome {
    let sql = format!("SELECT sum(a) AS n FROM read_zarr('{location}')");
    run(&[&["-q", "--format", "csv", "-c", &sql], options].concat())
}

#[test]
fn references_of_remote_files_reach_no_private_address() {
    let chunks = chunk();
    let port = chunks.host().rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1"] {
        let file = remote(&format!("http://{host}:{port}/chunk"));
        let url = format!("http://{}/refs.json", file.host());
        let outcome = sum(&url, &[]);
        assert_eq!(outcome.code, Some(1), "{host}: {outcome:?}");
        for part in ["http.allow_private_references=true", "/chunk", "private network"] {
            assert!(outcome.stderr.contains(part), "{host}: {outcome:?}");
        }
        assert!(!outcome.stderr.contains(" tries"), "{outcome:?}");
        assert!(chunks.take().is_empty(), "{host}");
    }
    let file = remote(&format!("http://127.0.0.1:{port}/chunk"));
    let url = format!("http://{}/refs.json", file.host());
    let outcome = sum(&url, &["-O", "http.allow_private_references=true"]);
    assert_eq!((outcome.code, &*outcome.stdout), (Some(0), "n\n10\n"), "{outcome:?}");
    // The services of clouds, which would answer with keys; no request leaves the program.
    for host in ["169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16"] {
        let file = remote(&format!("http://{host}/latest/meta-data/"));
        let outcome = sum(&format!("http://{}/refs.json", file.host()), &[]);
        assert!(outcome.stderr.contains("http.allow_private_references=true"), "{outcome:?}");
    }
}

#[test]
fn the_server_of_a_reference_file_and_local_files_may_be_private() {
    let chunks = chunk();
    let place = format!("http://{}/chunk", chunks.host());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("refs.json");
    fs::write(&file, references(&place)).unwrap();
    let outcome = sum(file.to_str().unwrap(), &[]);
    assert_eq!((outcome.code, &*outcome.stdout), (Some(0), "n\n10\n"), "{outcome:?}");
    let file = remote("chunk");
    let outcome = sum(&format!("http://{}/refs.json", file.host()), &[]);
    // There is no such object, but it is asked for.
    assert!(outcome.stderr.contains("/chunk: ") && outcome.stderr.contains("404"), "{outcome:?}");
}

#[test]
fn remote_files_name_no_local_ones() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    fs::write(secret.path(), [1, 2, 3, 4]).unwrap();
    let path = secret.path().to_str().unwrap();
    for place in [path, &format!("file://{path}"), "stdin://0", "memory://x/y"] {
        let file = remote(place);
        let outcome = sum(&format!("http://{}/refs.json", file.host()), &[]);
        assert_eq!(outcome.code, Some(1), "{place}: {outcome:?}");
        assert!(outcome.stderr.contains("it refers to "), "{place}: {outcome:?}");
    }
}

/// Headers are for servers that the user names, and not for those that a file names.
#[test]
fn headers_go_to_named_servers_only() {
    let chunks = chunk();
    let place = format!("http://{}/chunk", chunks.host());
    let file = remote(&place);
    let url = format!("http://{}/refs.json", file.host());
    let header = format!("http.header.X-Key={SECRET}");
    let allow = ["-O", "http.allow_private_references=true", "-O", &header];
    assert_eq!(sum(&url, &allow).code, Some(0));
    assert!(file.take().iter().all(|head| head.header("x-key") == Some(SECRET)));
    let asked = chunks.take();
    assert!(!asked.is_empty() && !asked.iter().any(has_secrets), "{asked:?}");
    let origin = format!("http.header_origins=http://{}", chunks.host());
    assert_eq!(sum(&url, &[&allow[..], &["-O", &origin]].concat()).code, Some(0));
    assert!(chunks.take().iter().all(|head| head.header("x-key") == Some(SECRET)));
}

/// A server that compresses, or that sends other bytes than its head announces, to DataFusion's own formats too.
#[test]
fn replies_that_lie_are_refused() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            while let Ok(1..) = stream.read(&mut head) {
                let reply = "HTTP/1.1 206 Part\r\nETag: \"1\"\r\nContent-Encoding: gzip\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 4\r\n\r\nabcd";
                if stream.write_all(reply.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    for name in ["a.tet", "a.nc"] {
        let outcome = run(&["info", &format!("http://{host}/{name}")]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains("encoded (gzip), which was not asked for"), "{outcome:?}");
        assert!(!outcome.stderr.contains(" tries"), "{outcome:?}");
    }
}

/// A server without TLS, as any answer that the TLS library refuses. Certificates are refused in the same way.
#[test]
fn a_connection_that_is_not_safe_is_an_error_at_once() {
    use std::io::{Read, Write};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (host, connections) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&connections);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::Relaxed);
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let outcome = run(&["info", &format!("https://{host}/a.tet")]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("corrupt message"), "{outcome:?}");
    assert!(!outcome.stderr.contains(" tries"), "{outcome:?}");
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}
