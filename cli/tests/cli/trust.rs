//! `--root`, and limits of what workers run and read for others.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cluster::Worker;
use crate::support::{Outcome, Running, STATIONS, foreign, gridfusion, run};
use crate::web_server::WebServer;

const SQL: &str = "SELECT station, avg(value) FROM temperature GROUP BY station ORDER BY station";

/// A worker makes a token, and runs nothing without it.
#[test]
fn a_worker_makes_a_token() {
    let worker = Worker::start_in(Path::new("."), &[]);
    let token = worker.token.as_deref().unwrap();
    assert_eq!(token.len(), 64);
    let args = [STATIONS, "--workers", &worker.url, "--task-size", "1", "-q", "-c", SQL];
    let with = |token: &str| -> Outcome {
        gridfusion(&args).env("GRIDFUSION_TOKEN", token).output().unwrap().into()
    };
    for wrong in ["", "other"] {
        let refused = with(wrong);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
        assert!(refused.stderr.contains("refused the token"), "{refused:?}");
    }
    let alone = run(&[STATIONS, "-q", "-c", SQL]);
    assert_eq!(with(token).stdout, alone.stdout);
    let other = Worker::start_in(Path::new("."), &[]);
    assert_ne!(worker.token, other.token);
}

/// A folder with a root, a file outside of it, and links that lead out.
fn rooted(folder: &Path) -> (String, String) {
    let at = |path: &str| folder.join(path).to_str().unwrap().to_owned();
    fs::create_dir_all(at("root/inside")).unwrap();
    fs::copy(STATIONS, at("root/stations.tet")).unwrap();
    fs::copy(STATIONS, at("secret.tet")).unwrap();
    fs::write(at("secret.csv"), "a\n1\n").unwrap();
    fs::write(at("root/fine.csv"), "a\n1\n").unwrap();
    std::os::unix::fs::symlink(folder, at("root/link")).unwrap();
    std::os::unix::fs::symlink(at("secret.csv"), at("root/link.csv")).unwrap();
    std::os::unix::fs::symlink(at("secret.tet"), at("root/link.tet")).unwrap();
    (at("root"), at(""))
}

/// Statements that read or write outside of the root.
fn doors(root: &str, outside: &str) -> Vec<String> {
    let zarr = foreign("v3.zarr");
    vec![
        format!("SELECT * FROM '{outside}/secret.tet#temperature'"),
        format!("SELECT * FROM '{root}/../secret.tet#temperature'"),
        format!("SELECT * FROM '{root}/link/secret.tet#temperature'"),
        format!("SELECT * FROM '{root}/link.tet#temperature'"),
        format!("SELECT * FROM 'file://{outside}/secret.tet#temperature'"),
        format!("SELECT * FROM read_array('{outside}/secret.tet', dataset => 'temperature')"),
        format!("SELECT * FROM tet_info('{outside}/secret.tet')"),
        format!("SELECT * FROM '{outside}/*.tet'"),
        format!("SELECT * FROM '{root}/*/secret.tet'"),
        format!("SELECT * FROM '{root}/li*.tet'"),
        format!("SELECT * FROM '{zarr}'"),
        format!(
            "CREATE EXTERNAL TABLE t STORED AS ARRAY LOCATION '{outside}/secret.tet' OPTIONS (dataset 'temperature')"
        ),
        format!("SELECT * FROM '{outside}/secret.csv'"),
        format!("SELECT * FROM '{root}/link.csv'"),
        format!("SELECT * FROM '{root}/link/secret.csv'"),
        format!("SELECT * FROM '{root}/inside/../../secret.csv'"),
        format!(
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{outside}/secret.csv'; SELECT * FROM t"
        ),
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{outside}/'; SELECT * FROM t"),
        "CREATE EXTERNAL TABLE t (line VARCHAR) STORED AS CSV LOCATION '/etc/passwd'; SELECT * FROM t".to_owned(),
        format!("COPY (SELECT 1) TO '{outside}/new.csv'"),
        format!("COPY (SELECT 1) TO '{root}/link/new.csv'"),
        format!("COPY (SELECT 1) TO 'file://{outside}/new.json'"),
        format!("COPY (SELECT 1) TO '{outside}/new.arrow'"),
        format!("COPY (SELECT 1) TO '{root}/../new.csv'"),
        format!(
            "COPY (SELECT 1 AS a, 2 AS b) TO '{outside}/new/' STORED AS PARQUET PARTITIONED BY (a)"
        ),
        format!(
            "CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION '{outside}/new/'; INSERT INTO t VALUES (1)"
        ),
        "COPY (SELECT 1) TO 'new.csv'".to_owned(),
    ]
}

#[test]
fn no_door_leads_out_of_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = rooted(folder.path());
    let outside = outside.trim_end_matches('/');
    let before = fs::read_dir(folder.path()).unwrap().count();
    for sql in doors(&root, outside) {
        let outcome: Outcome = gridfusion(&["--root", &root, "-q", "-c", &sql])
            .current_dir(folder.path())
            .output()
            .unwrap()
            .into();
        assert_eq!(outcome.code, Some(1), "{sql}: {outcome:?}");
        assert!(
            !outcome.stdout.contains("1.") && !outcome.stdout.contains("| 1 "),
            "{sql}: {outcome:?}"
        );
        let messages = ["outside of", "leads out of the root"];
        assert!(messages.iter().any(|it| outcome.stderr.contains(it)), "{sql}: {outcome:?}");
    }
    for path in [format!("{outside}/secret.tet"), format!("{root}/link"), outside.to_owned()] {
        let outcome = run(&["--root", &root, &path, "-q", "-c", "SHOW TABLES"]);
        assert_eq!(outcome.code, Some(1), "{path}: {outcome:?}");
        assert!(outcome.stderr.contains("outside of"), "{path}: {outcome:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before, "a file was written");
    for sql in [
        format!("SELECT count(*) FROM '{root}/stations.tet#temperature'"),
        format!("SELECT * FROM '{root}/fine.csv'"),
        format!("COPY (SELECT 1) TO '{root}/copy.parquet'"),
        format!("SELECT * FROM '{root}/inside/../fine.csv'"),
    ] {
        let outcome = run(&["--root", &root, "-q", "-c", &sql]);
        assert_eq!(outcome.code, Some(0), "{sql}: {outcome:?}");
    }
}

/// References name other files, and links in a store of chunks lead to them.
#[test]
fn files_that_files_name_are_in_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = rooted(folder.path());
    let store = format!("{root}/store.zarr");
    fs::create_dir_all(format!("{store}/c")).unwrap();
    fs::write(
        format!("{store}/zarr.json"),
        r#"{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"uint8","fill_value":0,"dimension_names":["x"],
            "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},"attributes":{},
            "chunk_key_encoding":{"name":"default"},"codecs":[{"name":"bytes"}]}"#,
    )
    .unwrap();
    fs::write(format!("{outside}chunk"), [65, 66, 67, 68]).unwrap();
    std::os::unix::fs::symlink(format!("{outside}chunk"), format!("{store}/c/0")).unwrap();
    let sql = format!("SELECT sum(value) AS s FROM '{store}'");
    let free = run(&["-q", "--format", "csv", "-c", &sql]);
    assert_eq!(free.stdout, "s\n266\n", "{free:?}");
    let outcome = run(&["--root", &root, "-q", "-c", &sql]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("outside of"), "{outcome:?}");
    let references = format!("{root}/refs.json");
    let array = r#"{\"zarr_format\":2,\"shape\":[4],\"chunks\":[4],\"dtype\":\"|u1\",\"fill_value\":0,\"order\":\"C\",\"compressor\":null,\"filters\":null}"#;
    let attributes = r#"{\"_ARRAY_DIMENSIONS\":[\"x\"]}"#;
    let text = format!(
        r#"{{"version":1,"refs":{{".zgroup":"{{\"zarr_format\":2}}","v/.zarray":"{array}","v/.zattrs":"{attributes}","v/0":["{outside}chunk"]}}}}"#
    );
    fs::write(&references, text).unwrap();
    let sql = format!("SELECT sum(value) AS s FROM '{references}#v'");
    let free = run(&["-q", "--format", "csv", "-c", &sql]);
    assert_eq!(free.stdout, "s\n266\n", "{free:?}");
    let outcome = run(&["--root", &root, "-q", "-c", &sql]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("outside of"), "{outcome:?}");
}

/// `info` and `verify` read paths too.
#[test]
fn commands_read_below_the_root_only() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = rooted(folder.path());
    fs::create_dir(format!("{root}/many")).unwrap();
    fs::copy(STATIONS, format!("{root}/many/inside.tet")).unwrap();
    let many = format!("{root}/many");
    for command in
        [&["info"][..], &["info", "--json"], &["verify"], &["verify", "--deep", "--json"]]
    {
        let on = |root: &str, path: &str| run(&[command, &[path, "--root", root]].concat());
        let inside = format!("{root}/stations.tet");
        let outcome = on(&root, &inside);
        assert_eq!(outcome.code, Some(0), "{command:?}: {outcome:?}");
        assert_eq!(outcome.stdout, run(&[command, &[&inside]].concat()).stdout, "{command:?}");
        let inside = format!("{root}/link");
        for path in [
            &format!("{outside}secret.tet"),
            &format!("{root}/link.tet"),
            &format!("{root}/../secret.tet"),
            &format!("file://{outside}secret.tet"),
            &format!("{inside}/secret.tet"),
            &inside,
            &outside,
        ] {
            let outcome = on(&root, path);
            assert_eq!(outcome.code, Some(1), "{command:?} {path}: {outcome:?}");
            let text = outcome.stdout.clone() + &outcome.stderr;
            assert!(text.contains("outside of"), "{command:?} {path}: {outcome:?}");
            assert!(!text.contains("temperature"), "{command:?} {path}: {outcome:?}");
        }
        let missing = on(&format!("{outside}none"), &inside);
        assert_eq!(missing.code, Some(1), "{command:?}: {missing:?}");
        assert!(missing.stderr.contains("cannot open the folder"), "{command:?}: {missing:?}");
    }
    // The files inside of a folder are verified, and a link out of the root is reported.
    assert_eq!(run(&["verify", &many, "--root", &root]).code, Some(0));
    std::os::unix::fs::symlink(format!("{outside}secret.tet"), format!("{many}/link.tet")).unwrap();
    let outcome = run(&["verify", &many, "--root", &root]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("outside of"), "{outcome:?}");
}

/// Files that spill are written below the root, if a statement names the folder.
#[test]
fn temporary_files_of_a_statement_are_in_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = rooted(folder.path());
    let set = |args: &[&str], variable: &str, folder: &str| {
        let sql = format!("SET {variable} = '{folder}'; SELECT 1 AS x ORDER BY x");
        run(&[args, &["-q", "-c", &sql]].concat())
    };
    let limited = ["--root", root.as_str()];
    for variable in ["datafusion.runtime.temp_directory", "DataFusion.Runtime.Temp_Directory"] {
        for refused in [&format!("{outside}new"), &format!("{root}/link/new"), "new", "/tmp"] {
            let outcome = set(&limited, variable, refused);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{refused}");
            assert!(outcome.stderr.contains("outside of"), "{refused}: {outcome:?}");
        }
    }
    let variable = "datafusion.runtime.temp_directory";
    for (args, folder) in
        [(&limited[..], format!("{root}/spilled")), (&[], format!("{outside}spilled"))]
    {
        let outcome = set(args, variable, &folder);
        assert_eq!(outcome.code, Some(0), "{folder}: {outcome:?}");
    }
    assert!(!Path::new(&format!("{outside}new")).exists());
}

/// Pipes and devices are refused at once: reading one waits for ever, and a copy would replace it.
#[test]
fn pipes_and_devices_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("many")).unwrap();
    fs::write(at("many/a.csv"), "a\n1\n").unwrap();
    let pipes = ["pipe.csv", "pipe.json", "pipe.parquet", "pipe.arrow", "pipe.tet", "many/b.csv"];
    for pipe in pipes {
        assert!(Command::new("mkfifo").arg(at(pipe)).status().unwrap().success());
    }
    std::os::unix::fs::symlink(at("pipe.csv"), at("many/link.csv")).unwrap();
    std::os::unix::fs::symlink(at("pipe.csv"), at("link.csv")).unwrap();
    let mut doors = vec![];
    for (pipe, file_type) in [
        (at("pipe.csv"), "CSV"),
        (at("link.csv"), "CSV"),
        (at("pipe.json"), "JSON"),
        (at("pipe.parquet"), "PARQUET"),
        (at("pipe.arrow"), "ARROW"),
        (at("pipe.tet"), "TET"),
        (at("pipe.tet"), "ARRAY"),
        (format!("file://{}", at("pipe.csv")), "CSV"),
        ("/dev/zero".to_owned(), "CSV"),
        ("/dev/null".to_owned(), "JSON"),
    ] {
        let table = format!("STORED AS {file_type} LOCATION '{pipe}'");
        doors.push(format!("SELECT * FROM '{pipe}'"));
        doors.push(format!("CREATE EXTERNAL TABLE t {table}; SELECT * FROM t"));
        if !["TET", "ARRAY"].contains(&file_type) {
            doors.push(format!("CREATE EXTERNAL TABLE t (a INT) {table}; SELECT * FROM t"));
            doors
                .push(format!("CREATE EXTERNAL TABLE t (a INT) {table}; INSERT INTO t VALUES (1)"));
            doors.push(format!("COPY (SELECT 1) TO '{pipe}' STORED AS {file_type}"));
        }
    }
    doors.push(format!("SELECT * FROM read_array('{}')", at("pipe.tet")));
    let root = at("");
    for sql in &doors {
        for args in [&[][..], &["--root", root.trim_end_matches('/')]] {
            let outcome = Running::start(&[args, &["-q", "-c", sql]].concat()).ended();
            assert_eq!(
                (outcome.code, outcome.stdout.as_str()),
                (Some(1), ""),
                "{sql}: {outcome:?}"
            );
            let messages = ["a pipe or a device", "outside of"];
            assert!(
                messages[..=args.len() / 2].iter().any(|it| outcome.stderr.contains(it)),
                "{sql}: {outcome:?}"
            );
        }
    }
    for command in ["info", "verify"] {
        let outcome = Running::start(&[command, &at("pipe.tet")]).ended();
        assert!((outcome.stdout + &outcome.stderr).contains("a pipe or a device"), "{command}");
    }
    // A folder has the files in it, and no pipes.
    let sql = format!(
        "SELECT * FROM '{0}/'; CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{0}/'; SELECT * FROM t",
        at("many")
    );
    let outcome = Running::start(&["-q", "--format", "csv", "-c", &sql]).ended();
    assert_eq!(outcome.stdout, "a\n1\na\n1\n", "{outcome:?}");
    for pipe in pipes {
        let kind = fs::symlink_metadata(at(pipe)).unwrap().file_type();
        assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kind), "{pipe} was replaced");
    }
}

#[test]
fn workers_read_below_their_root_only() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = rooted(folder.path());
    let worker = Worker::start_in(Path::new("."), &["--no-token", "--root", &root]);
    let on_worker =
        |path: &str| run(&[path, "--workers", &worker.url, "--task-size", "1", "-q", "-c", SQL]);
    let alone = run(&[STATIONS, "-q", "-c", SQL]);
    assert_eq!(on_worker(&format!("{root}/stations.tet")).stdout, alone.stdout);
    for path in [format!("{outside}secret.tet"), format!("{root}/link.tet")] {
        let refused = on_worker(&path);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.contains("outside of"), "{refused:?}");
    }
    // Files of other formats need a flag.
    let sql = format!(
        "SELECT count(*) AS n FROM '{root}/stations.tet#temperature' t JOIN '{root}/fine.csv' c ON t.value > c.a"
    );
    let refused = run(&["--workers", &worker.url, "--task-size", "1", "-q", "-c", &sql]);
    assert!(refused.stderr.contains("--allow-files"), "{refused:?}");
    let open = Worker::start_in(Path::new("."), &["--no-token", "--allow-files", "--root", &root]);
    let found = run(&["--workers", &open.url, "--task-size", "1", "-q", "-c", &sql]);
    assert_eq!(
        (found.code, found.stdout),
        (Some(0), run(&["-q", "-c", &sql]).stdout),
        "{}",
        found.stderr
    );
    let sql = sql.replace("fine.csv", "link.csv");
    let refused = run(&["--workers", &open.url, "--task-size", "1", "-q", "-c", &sql]);
    assert!(refused.stderr.contains("outside of"), "{refused:?}");
}

/// A query that fails on a worker is one message, without a panic of a task that was cancelled.
#[test]
fn a_query_that_fails_on_a_worker_is_one_message() {
    let folder = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
    for (folder, time) in [(&here, 1_000_000_000), (&there, 2_000_000_000)] {
        fs::create_dir(folder).unwrap();
        fs::copy(STATIONS, folder.join("stations.tet")).unwrap();
        let file = fs::File::options().write(true).open(folder.join("stations.tet")).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(time);
        file.set_modified(time).unwrap();
    }
    let workers = [&here, &there].map(|folder| Worker::start_in(folder, &["--no-token"]));
    let urls = format!("{},{}", workers[0].url, workers[1].url);
    for _ in 0..30 {
        let args = ["stations.tet", "--workers", &urls, "--task-size", "1", "-q", "-c", SQL];
        let outcome: Outcome = gridfusion(&args).current_dir(&here).output().unwrap().into();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
        assert!(outcome.stderr.contains("the object has changed"), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
}

/// Messages name neither secrets nor plans.
#[test]
fn secrets_in_urls_are_one_line_without_the_secret() {
    for url in
        ["http://me:S3CR3T@127.0.0.1:9", "http://127.0.0.1:9/?sig=S3CR3T", "http://me:S3CR3T@h:x"]
    {
        let refused = run(&["--workers", url, "-c", "SELECT 1"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
        assert!(!refused.stderr.contains("S3CR3T"), "{refused:?}");
    }
}

/// A table that workers cannot open without a secret is one line too, whatever the query does with it.
#[test]
fn a_table_with_a_secret_is_not_sent_and_no_plan_is_shown() {
    let server = WebServer::start("stations.tet", fs::read(STATIONS).unwrap(), |_| None);
    let worker = Worker::start_in(Path::new("."), &["--no-token"]);
    for url in [
        format!("http://me:S3CR3T@{}/stations.tet", server.host()),
        format!("http://{}/stations.tet?sig=S3CR3T", server.host()),
    ] {
        let table = format!("read_array('{url}', dataset => 'temperature')");
        for sql in [
            format!("SELECT station, avg(value) FROM {table} GROUP BY station"),
            format!("SELECT a.value FROM {table} a JOIN {table} b ON a.time = b.time ORDER BY 1"),
            format!("SELECT max(value) OVER (ORDER BY time) FROM {table}"),
        ] {
            let args = ["--workers", &worker.url, "--task-size", "1", "-q", "-c", &sql];
            let refused = run(&args);
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{sql}");
            assert!(
                refused.stderr.contains("cannot be sent to another process"),
                "{}",
                refused.stderr
            );
            assert!(
                refused.stderr.len() < 400 && !refused.stderr.contains("S3CR3T"),
                "{}",
                refused.stderr
            );
            assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        }
    }
}

/// Plans of DataFusion's formats hold the URL of the server, so its password must not travel either.
#[test]
fn a_file_with_a_secret_is_not_sent() {
    let rows: String = (0..5000).map(|row| format!("{row}\n")).collect();
    let server = WebServer::start("rows.csv", format!("a\n{rows}").into_bytes(), |_| None);
    let worker = Worker::start_in(Path::new("."), &["--no-token", "--allow-files"]);
    let on_worker = |url: &str| {
        let sql = format!("SELECT a % 3 AS k, count(*) AS n FROM '{url}' GROUP BY k ORDER BY k");
        let args =
            ["--workers", &worker.url, "--task-size", "1", "-q", "--format", "csv", "-c", &sql];
        let outcome: Outcome =
            gridfusion(&args).env("NO_PROXY", "127.0.0.1").output().unwrap().into();
        assert!(!outcome.stderr.contains("S3CR3T"), "{outcome:?}");
        outcome
    };
    let expected = "k,n\n0,1667\n1,1667\n2,1666\n";
    assert_eq!(on_worker(&format!("http://{}/rows.csv", server.host())).stdout, expected);
    for url in ["http://me:S3CR3T@HOST/rows.csv", "http://S3CR3T@HOST/rows.csv"] {
        let refused = on_worker(&url.replace("HOST", &server.host()));
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.contains("cannot be sent to another process"), "{refused:?}");
    }
}

/// A link in a store leads an append no more out of the root than a new file.
#[test]
fn appends_stay_in_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let [root, outside] = ["root", "outside"].map(|it| folder.path().join(it));
    fs::create_dir(&root).unwrap();
    let place = root.join("x.zarr").display().to_string();
    let copy = |from: i64, to: i64, options: &str| {
        format!(
            "COPY (SELECT value AS x, value * 1.0 AS v FROM range({from}, {to})) TO '{place}' OPTIONS ({options})"
        )
    };
    let rooted = |sql: &str| run(&["--root", root.to_str().unwrap(), "-q", "-c", sql]);
    let outcome = rooted(&copy(0, 3, "dimensions 'x', chunks 'x=2'"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let outcome = rooted(&copy(3, 5, "mode 'append'"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");

    fs::rename(root.join("x.zarr/v"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("x.zarr/v")).unwrap();
    let before = fs::read(outside.join("zarr.json")).unwrap();
    let outcome = rooted(&copy(5, 9, "mode 'append'"));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let messages = ["outside of", "leads out of the root"];
    assert!(messages.iter().any(|it| outcome.stderr.contains(it)), "{outcome:?}");
    assert_eq!(fs::read_dir(outside.join("c")).unwrap().count(), 3);
    assert!(fs::read(outside.join("zarr.json")).unwrap() == before);
}

/// A store that a link shows in the root is neither replaced nor changed, and no new array appears beside the root.
#[test]
fn other_writes_stay_in_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let [root, outside] = ["root", "outside.zarr"].map(|it| folder.path().join(it));
    fs::create_dir(&root).unwrap();
    let rows = "SELECT value AS x, value AS v FROM range(3)";
    let copy = |place: &Path, options: &str| {
        format!("COPY ({rows}) TO '{}' OPTIONS ({options})", place.display())
    };
    let made = run(&["-q", "-c", &copy(&outside, "dimensions 'x'")]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let link = root.join("x.zarr");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let before = fs::read(outside.join("zarr.json")).unwrap();
    let [other, new] = ["other.zarr", "new.zarr"].map(|it| folder.path().join(it));
    let declared = format!(
        "CREATE EXTERNAL TABLE t (x INT, v INT) STORED AS ZARR LOCATION '{}' OPTIONS (dimensions 'x'); INSERT INTO t VALUES (1, 1)",
        new.display()
    );
    let root = root.to_str().unwrap();
    let sql = |sql: &str| run(&["--root", root, "-q", "-c", sql]);
    for outcome in [
        sql(&copy(&link, "dimensions 'x', mode 'overwrite'")),
        sql(&copy(&link, "mode 'append', existing 'overwrite'")),
        sql(&copy(&other, "dimensions 'x', mode 'overwrite'")),
        sql(&declared),
        run(&["convert", "--root", root, outside.to_str().unwrap(), "y.zarr"]),
    ] {
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains("outside of"), "{outcome:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(fs::read_dir(root).unwrap().count(), 1);
    assert!(fs::read(outside.join("zarr.json")).unwrap() == before);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 3);
}
