//! Habits from other programs: commands, names and formats that work here too.

use std::fs;
use std::path::Path;

use crate::support::{STATIONS, failure, gridfusion, run};

const SEA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/sea.zarr");

/// Returns the output of a run that must succeed without messages.
fn output(args: &[&str]) -> String {
    let outcome = run(args);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
    outcome.stdout
}

#[test]
fn from_first_shows_all_columns() {
    let csv = |sql: &str| output(&[STATIONS, "-q", "--format", "csv", "-c", sql]);
    for (from_first, select) in [
        ("FROM elevation", "SELECT * FROM elevation"),
        ("FROM temperature LIMIT 3", "SELECT * FROM temperature LIMIT 3"),
        ("FROM elevation WHERE value > 50", "SELECT * FROM elevation WHERE value > 50"),
        ("FROM elevation SELECT station", "SELECT station FROM elevation"),
        (
            "SELECT substring(upper(station) FROM 2 FOR 3) AS s FROM elevation",
            "SELECT substr(upper(station), 2, 3) AS s FROM elevation",
        ),
        ("SELECT count(*) AS n FROM (FROM elevation)", "SELECT count(*) AS n FROM elevation"),
        (
            "WITH e AS (FROM elevation) FROM e UNION ALL FROM e",
            "SELECT * FROM elevation UNION ALL SELECT * FROM elevation",
        ),
    ] {
        assert_eq!(csv(from_first), csv(select), "{from_first}");
    }
    let view = csv("CREATE VIEW high AS FROM elevation WHERE value > 90; FROM high");
    assert_eq!(view, "station,value\nOslo,94.0\n");
}

#[test]
fn formats_of_other_programs() {
    let sql = "SELECT station, value, NULL AS note FROM elevation WHERE value > 53 ORDER BY value";
    let shown = |format: &str| output(&[STATIONS, "-q", "--format", format, "-c", sql]);
    let markdown = "| station | value | note |\n|---|---:|---|\n\
                    | Torshavn | 54.0 | NULL |\n| Oslo | 94.0 | NULL |\n";
    assert_eq!(shown("markdown"), markdown);
    let lines = "station = Torshavn\n  value = 54.0\n   note = NULL\n\n\
                 station = Oslo\n  value = 94.0\n   note = NULL\n";
    assert_eq!(shown("line"), lines);
    let boxed = "\
┌──────────┬───────┬──────┐
│ station  │ value │ note │
├──────────┼───────┼──────┤
│ Torshavn │ 54.0  │ NULL │
│ Oslo     │ 94.0  │ NULL │
└──────────┴───────┴──────┘
";
    assert_eq!(shown("box"), boxed);
    // Cells that would end a cell or a row.
    let cells = output(&["-q", "--format", "markdown", "-c", "SELECT 'a|b' AS x, E'c\\nd' AS y"]);
    assert_eq!(cells, "| x | y |\n|---|---|\n| a\\|b | c<br>d |\n");
    let empty = ["-q", "--format", "markdown", "-c", "SELECT 1 AS x WHERE false"];
    assert_eq!(output(&empty), "| x |\n|---:|\n");
}

/// The file appears at the end, in the format of its ending.
#[test]
fn results_are_written_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let sql = "SELECT 1 AS x; SELECT 'a' AS y";
    for (name, format, expected) in [
        ("a.csv", None, "x\n1\ny\na\n"),
        ("a.json", None, "[{\"x\":1}]\n[{\"y\":\"a\"}]\n"),
        ("a.MD", None, "| x |\n|---:|\n| 1 |\n| y |\n|---|\n| a |\n"),
        ("b.md", Some("tsv"), "x\n1\ny\na\n"),
        ("a.txt", None, "+---+\n| x |\n+---+\n| 1 |\n+---+\n+---+\n| y |\n+---+\n| a |\n+---+\n"),
    ] {
        let format = format.map_or(vec![], |it| vec!["--format", it]);
        let path = file(name);
        let args = [&["-o", &path, "-c", sql][..], &format].concat();
        assert_eq!(
            (output(&args), fs::read_to_string(file(name)).unwrap()),
            (String::new(), expected.to_owned())
        );
    }
    let many = file("many.txt");
    assert_eq!(output(&["-o", &many, "-c", "SELECT value FROM range(100)"]), "");
    assert_eq!(fs::read_to_string(file("many.txt")).unwrap().lines().count(), 104);
    // An error leaves the older file, and no other.
    let message = failure(&["-o", &file("a.csv")], "SELECT 2 AS x; SELECT nothing");
    assert!(message.contains("there is no column nothing"), "{message}");
    assert_eq!(fs::read_to_string(file("a.csv")).unwrap(), "x\n1\ny\na\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6);
    for (args, expected) in [
        (["-o", "nowhere/a.csv", "-c", "SELECT 1"], "nowhere/a.csv: cannot write the file"),
        (["-o", "a.xlsx", "-c", "SELECT 1"], "no format has the ending .xlsx; set one"),
        (["-o", "timestamp=5", "-c", "SELECT 1"], "write option 'timestamp' as -O"),
    ] {
        let outcome = run(&args);
        assert!(outcome.code != Some(0) && outcome.stderr.contains(expected), "{outcome:?}");
    }
    let outcome = run(&["-o", "encryption_key=0123secret", "-c", "SELECT 1"]);
    assert!(outcome.code == Some(2) && !outcome.stderr.contains("0123secret"), "{outcome:?}");
}

/// A Parquet or Arrow file has one result, or it is not there.
#[test]
fn files_for_programs_hold_one_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let names = || fs::read_dir(folder.path()).unwrap().count();
    let written =
        "CREATE TABLE t AS SELECT 1 AS x; INSERT INTO t VALUES (2); SELECT * FROM t ORDER BY x";
    for name in ["a.parquet", "a.arrow", "a.FEATHER", "a.arrows"] {
        assert_eq!(output(&["-o", &file(name), "-c", written]), "", "{name}");
    }
    for name in ["a.parquet", "a.arrow"] {
        let read = format!("SELECT * FROM '{}' ORDER BY x", file(name));
        assert_eq!(output(&["-q", "--format", "csv", "-c", &read]), "x\n1\n2\n", "{name}");
    }
    let magic = |name: &str| fs::read(file(name)).unwrap()[..6].to_vec();
    assert_eq!((magic("a.arrow"), magic("a.FEATHER")), (b"ARROW1".to_vec(), b"ARROW1".to_vec()));
    assert_eq!(magic("a.arrows")[..4], [0xff; 4]);
    assert_eq!(names(), 4);
    // A failure leaves the older file, and no other.
    let late = "SELECT 10 / (value - 30000) AS x FROM range(40000)";
    for (sql, expected) in [
        (late, "Divide by zero"),
        ("SELECT 1 AS x; SELECT 2 AS x", "a.parquet has the Parquet of another statement"),
        ("SET datafusion.execution.batch_size = 7", "not written, because no statement had"),
    ] {
        let before = fs::read(file("a.parquet")).unwrap();
        let outcome = run(&["-o", &file("a.parquet"), "-c", sql]);
        assert!(outcome.code == Some(1) && outcome.stderr.contains(expected), "{outcome:?}");
        assert_eq!((fs::read(file("a.parquet")).unwrap(), names()), (before, 4), "{sql}");
    }
    for (name, format) in [("b.parquet", "csv"), ("b.csv", "parquet"), ("b.arrow", "parquet")] {
        let outcome = run(&["-o", &file(name), "--format", format, "-c", "SELECT 1 AS x"]);
        assert!(outcome.stderr.contains("the ending is that of "), "{outcome:?}");
    }
    assert_eq!(output(&["-o", &file("b"), "--format", "parquet", "-c", "SELECT 1 AS x"]), "");
    assert_eq!(fs::read(file("b")).unwrap()[..4], *b"PAR1");
    #[cfg(unix)]
    assert_eq!(output(&["-o", "/dev/null", "-c", "SELECT 1 AS x"]), "");
}

/// A pipe gets one result as well, while the query runs.
#[test]
fn programs_read_results_from_a_pipe() {
    use std::io::Read;

    let bytes = |args: &[&str]| gridfusion(args).output().unwrap();
    for (format, end) in
        [("parquet", b"PAR1".to_vec()), ("arrow", vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])]
    {
        let whole = bytes(&["--format", format, "-c", "SELECT 1 AS x"]);
        assert!(whole.status.success() && whole.stderr.is_empty(), "{whole:?}");
        assert!(whole.stdout.ends_with(&end), "{whole:?}");
        let folder = tempfile::tempdir().unwrap();
        let sql = format!("COPY (SELECT 1 AS x) TO '{}/x.csv'", folder.path().display());
        assert!(bytes(&["--format", format, "-c", &sql]).stdout.is_empty());
        let two = bytes(&["--format", format, "-c", "SELECT 1 AS x; SELECT 2 AS x"]);
        let message = String::from_utf8(two.stderr).unwrap();
        assert!(message.contains("standard output has the "), "{message}");
        // Rows come before the last is known.
        let sql = "SET datafusion.execution.parquet.max_row_group_size = 8192;
                   SELECT value FROM generate_series(1, 1000000000000)";
        let mut endless = gridfusion(&["--format", format, "-c", sql]).spawn().unwrap();
        let mut begin = vec![0; 100_000];
        endless.stdout.take().unwrap().read_exact(&mut begin).unwrap();
        assert!(endless.wait().unwrap().success(), "{format}");
    }
    let changing = "SELECT arrow_cast('a', 'Dictionary(Int8, Utf8)') AS x UNION ALL
                    SELECT arrow_cast('b', 'Dictionary(Int8, Utf8)')";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.arrow");
    let message = failure(&["-o", path.to_str().unwrap()], changing);
    assert!(message.contains("write Parquet, or an Arrow stream"), "{message}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    assert!(bytes(&["--format", "arrow", "-c", changing]).status.success());
}

#[test]
fn help_is_a_command() {
    let help = output(&["help"]);
    assert!(help.contains("Usage: gridfusion") && help.contains("--format"), "{help}");
    assert!(output(&["help", "info"]).contains("gridfusion info"));
}

/// A mistake in the name of a folder does not make a tree.
#[test]
fn copies_need_an_existing_folder() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |target: &str| {
        let sql = format!("COPY elevation TO '{target}'");
        gridfusion(&[STATIONS, "-q", "-c", &sql]).current_dir(folder.path()).output().unwrap()
    };
    let full = folder.path().join("no/x.parquet");
    for target in ["no/x.parquet", "no/where/x.csv", full.to_str().unwrap()] {
        let failed = copy(target);
        let message = String::from_utf8(failed.stderr).unwrap();
        assert!(message.contains("there is no folder '") && !failed.status.success(), "{message}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    fs::create_dir(folder.path().join("no")).unwrap();
    for target in ["no/x.parquet", "y.csv", "./z.json", full.to_str().unwrap()] {
        assert!(copy(target).status.success(), "{target}");
    }
    let spaced = folder.path().join("a b");
    fs::create_dir(&spaced).unwrap();
    let url = format!("file://{}/a%20b/x.csv", folder.path().display());
    assert!(copy(&url).status.success() && spaced.join("x.csv").exists());
    let sql = "COPY (SELECT station, value FROM elevation) TO 'parts/' STORED AS csv PARTITIONED BY (station)";
    let parts = gridfusion(&[STATIONS, "-q", "-c", sql]).current_dir(folder.path()).output();
    assert!(parts.unwrap().status.success() && folder.path().join("parts").is_dir());
}

#[test]
fn tables_are_listed_once() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.tet");
    fs::copy(STATIONS, &other).unwrap();
    let listed = |paths: &[&str], before: &str| {
        let sql = format!("{before} SHOW TABLES");
        let rows = output(&[paths, &["-q", "--format", "csv", "-c", &sql]].concat());
        let name = |row: &str| row.split(',').skip(1).take(2).collect::<Vec<_>>().join(".");
        let mut names: Vec<String> = rows.lines().skip(1).map(name).collect();
        names.sort();
        names
    };
    let bare = ["elevation", "precipitation", "temperature", "time"];
    let of = |schema: &str| bare.map(|name| format!("{schema}.{name}"));
    assert_eq!(listed(&[STATIONS], ""), of("public"));
    // Two files have the names, so they need their schemas.
    let both = [of("other"), of("stations")].concat();
    assert_eq!(listed(&[STATIONS, other.to_str().unwrap()], ""), both);
    let own = listed(&[STATIONS], "CREATE OR REPLACE TABLE temperature AS SELECT 1 AS x;");
    let mut expected = of("public").to_vec();
    expected.push("stations.temperature".to_owned());
    assert_eq!(own, expected);
    assert_eq!(listed(&[], ""), Vec::<String>::new());
}

#[test]
fn variables_have_their_names() {
    let csv = |sql: &str| output(&["-q", "--format", "csv", "-c", sql]);
    let header = |sql: &str| csv(sql).lines().next().unwrap().to_owned();
    let data = Path::new(STATIONS).parent().unwrap();
    let land = data.join("land.tet");
    let land = land.to_str().unwrap();
    // One variable, in a file, a pattern, a function and a table; and one of several.
    assert_eq!(header(&format!("FROM '{land}' LIMIT 1")), "lat,lon,land");
    assert_eq!(header(&format!("FROM '{land}#land' LIMIT 1")), "lat,lon,value");
    assert_eq!(header(&format!("FROM read_array('{land}') LIMIT 1")), "lat,lon,land");
    assert_eq!(header(&format!("FROM '{SEA}#sst' LIMIT 1")), "time,lat,lon,value");
    assert_eq!(header(&format!("FROM '{SEA}#sst, ssh' LIMIT 1")), "time,lat,lon,sst,ssh");
    let table =
        format!("CREATE EXTERNAL TABLE t STORED AS ARRAY LOCATION '{land}'; FROM t LIMIT 1");
    assert_eq!(header(&table), "lat,lon,land");
    let table = format!(
        "CREATE EXTERNAL TABLE t STORED AS ARRAY LOCATION '{land}' OPTIONS (dataset 'land'); FROM t LIMIT 1"
    );
    assert_eq!(header(&table), "lat,lon,value");
    for (sql, expected) in [
        (format!("SELECT sst FROM '{SEA}#sst'"), "sst is the column value of '"),
        (format!("SELECT s.sst FROM '{SEA}#sst' AS s"), "sst is the column value of '"),
        (format!("SELECT max(value) FROM '{land}'"), "has its name, here land"),
        (format!("SELECT tmie FROM '{SEA}'"), "did you mean time?"),
        (
            format!("SELECT SST FROM '{SEA}' WHERE nothing > 1"),
            "the columns are time, lat, lon, ssh, sst",
        ),
        (
            "SELECT x FROM (SELECT 1 AS \"X\")".to_owned(),
            "did you mean \"X\"? Names with capital letters need",
        ),
        (
            format!("SELECT a.nothing FROM '{SEA}' a JOIN '{SEA}' b USING (time)"),
            "there is no column a.nothing; the columns are a.time, ",
        ),
    ] {
        let message = failure(&[], &sql);
        assert!(message.contains(expected), "{sql}: {message}");
    }
}
