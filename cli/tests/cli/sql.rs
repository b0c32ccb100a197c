//! SQL from the command line: output, messages and exit codes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{
    NOT_TET, Outcome, STATIONS, failure, gridfusion, package, run, run_with_input, tiledb,
};

/// Runs SQL that must succeed without messages. Returns its results as CSV.
fn csv(paths: &[&str], sql: &str) -> String {
    let outcome = run(&[paths, &["-q", "--format", "csv", "-c", sql]].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{sql}");
    outcome.stdout
}

/// Copies the example to each of `names` in `folder`.
fn copies<const N: usize>(folder: &Path, names: [&str; N]) -> [String; N] {
    names.map(|name| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(STATIONS, &path).unwrap();
        path.to_str().unwrap().to_owned()
    })
}

/// The columns have other units and long names.
#[test]
fn unions_of_columns_with_other_attributes_are_aggregated() {
    let sql = "SELECT max(value) AS most, count(*) AS n FROM
        (SELECT * FROM temperature UNION ALL SELECT * FROM precipitation)";
    let args = [STATIONS, "-q", "--format", "csv", "-c", sql];
    assert_eq!(run(&args).stdout, "most,n\n5.6,17280\n");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let sql = "SELECT chr(27) || '[2J' AS x";
    let table = run(&["-q", "-c", sql]).stdout;
    assert!(table.contains("| ␛[2J |") && !table.contains('\u{1b}'), "{table}");
    let csv = run(&["-q", "--format", "csv", "-c", sql]).stdout;
    assert_eq!(csv, "x\n\u{1b}[2J\n");
    let message = run(&["-c", "SELECT \"\u{1b}[2J\""]).stderr;
    assert!(message.contains("␛[2J") && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn tiledb_arrays_groups_and_folders_are_tables() {
    let (overlap, weather) = (tiledb("overlap"), tiledb("weather"));
    for table in ["overlap", "overlap.overlap"] {
        let sql = format!("SELECT count(*) AS n, max(a) AS a FROM {table}");
        assert_eq!(csv(&[&overlap], &sql), "n,a\n42,307\n");
    }
    let sql = "SELECT count(*) AS n FROM temperature JOIN weather.station ON true WHERE false";
    assert_eq!(csv(&[&weather], sql), "n\n0\n");
    let folder = tiledb("");
    let sql =
        "SELECT count(*) > 20 AS many FROM information_schema.tables WHERE table_schema = 'tiledb'";
    assert_eq!(csv(&[&folder], sql), "many\ntrue\n");
    // Arrays and files side by side.
    let sql = "SELECT (SELECT count(*) FROM elevation) AS f, (SELECT count(*) FROM overlap) AS a";
    assert_eq!(csv(&[STATIONS, &overlap], sql), "f,a\n6,42\n");
    let message = failure(&[env!("CARGO_MANIFEST_DIR")], "SELECT 1");
    assert!(
        message.contains(
            "no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file"
        ),
        "{message}"
    );
}

#[test]
fn tiledb_tables_are_created_and_read_as_of_a_time() {
    let overlap = tiledb("overlap");
    let sql = format!(
        "CREATE EXTERNAL TABLE t STORED AS TILEDB LOCATION '{overlap}' OPTIONS ('timestamp' '20');
         SELECT count(*) AS n FROM t;
         SELECT count(*) AS n FROM read_tiledb('{overlap}', 'timestamp', 10)"
    );
    assert_eq!(csv(&[], &sql), "n\n30\nn\n25\n");
    let sql = format!("SELECT value FROM tiledb_info('{overlap}') WHERE property = 'kind'");
    assert_eq!(csv(&[], &sql), "value\ndense\n");
    let key = "0123456789abcdef0123456789ABCDEX";
    let encrypted = tiledb("encrypted");
    let sql = format!("SELECT * FROM read_tiledb('{encrypted}', 'encryption_key', '{key}')");
    let message = failure(&[], &sql);
    assert!(message.contains("encrypt") && !message.contains(key), "{message}");
}

#[test]
fn packages_are_opened_like_files() {
    let folder = tempfile::tempdir().unwrap();
    let (named, unnamed) = (package(folder.path(), "demo.tet.d"), package(folder.path(), "plain"));
    let sql = "SELECT count(*) AS n FROM elevation";
    for path in [&named, &format!("{named}/"), &unnamed, &format!("file://{named}")] {
        assert_eq!(csv(&[path], sql), "n\n6\n", "{path}");
    }
    assert_eq!(csv(&[&named], "SELECT count(*) AS n FROM demo.elevation"), "n\n6\n");
    let create = |generation: u64| {
        format!(
            "CREATE EXTERNAL TABLE t STORED AS TET LOCATION '{named}'
             OPTIONS ('dataset' 'elevation', 'generation' '{generation}');
             SELECT count(*) AS n FROM t"
        )
    };
    assert_eq!(csv(&[], &create(1)), "n\n6\n");
    let message = failure(&[], &create(3));
    assert!(message.contains("no generation 3; the package has 1, 2"), "{message}");
    let empty = folder.path().join("empty.tet.d");
    fs::create_dir(&empty).unwrap();
    let message = failure(&[empty.to_str().unwrap()], "SELECT 1");
    assert!(message.contains("empty.tet.d: this folder is not a .tet.d package"), "{message}");
}

fn create(name: &str, options: &str) -> String {
    format!("CREATE EXTERNAL TABLE {name} STORED AS TET LOCATION '{STATIONS}' OPTIONS ({options});")
}

#[test]
fn datasets_are_tables_by_name_and_in_the_schema_of_the_file() {
    assert_eq!(csv(&[STATIONS], "SELECT count(*) AS n FROM elevation"), "n\n6\n");
    assert_eq!(csv(&[STATIONS], "SELECT count(*) AS n FROM stations.elevation"), "n\n6\n");
    let sql = "SELECT station, count(*) AS hours FROM temperature WHERE time < '2024-01-02' \
               GROUP BY station ORDER BY station LIMIT 2";
    assert_eq!(csv(&[STATIONS], sql), "station,hours\nBergen,24\nHelsinki,24\n");
}

#[test]
fn tables_are_listed() {
    let sql = "SELECT table_schema, table_name FROM information_schema.tables \
               WHERE table_schema <> 'information_schema' ORDER BY 1, 2";
    let names = ["elevation", "precipitation", "temperature", "time"];
    let expected: Vec<String> = ["public", "stations"]
        .iter()
        .flat_map(|schema| names.map(|name| format!("{schema},{name}\n")))
        .collect();
    assert_eq!(csv(&[STATIONS], sql), format!("table_schema,table_name\n{}", expected.concat()));
}

#[test]
fn create_external_table_takes_options_in_each_spelling() {
    for key in ["dataset", "tet.dataset", "format.dataset"] {
        let sql = create("t", &format!("'{key}' 'temperature', 'index_columns' 'true'"));
        let query = "SELECT count(DISTINCT station) AS n, max(time_idx) AS last FROM t";
        assert_eq!(csv(&[], &format!("{sql} {query}")), "n,last\n6,1439\n", "{key}");
    }
}

#[test]
fn wrong_options_are_explained() {
    let message = failure(&[], &create("t", "'dataset' 'nope'"));
    assert!(message.contains("\"nope\"") && message.contains("\"temperature\""), "{message}");
    let message = failure(&[], &create("t", "'datset' 'temperature'"));
    assert!(message.contains("'datset'") && message.contains("dataset, "), "{message}");
}

#[test]
fn sql_may_replace_and_drop_bare_names() {
    let replace =
        create("elevation", "'dataset' 'temperature'").replace("CREATE", "CREATE OR REPLACE");
    let sql = format!("{replace} SELECT count(*) > 6 AS replaced FROM elevation");
    assert_eq!(csv(&[STATIONS], &sql), "replaced\ntrue\n");
    let message = failure(&[STATIONS], "DROP TABLE elevation; SELECT * FROM elevation");
    assert!(message.contains("elevation"), "{message}");
    let sql = "CREATE VIEW high AS SELECT * FROM elevation WHERE value > 50; \
               SELECT count(*) AS n FROM high";
    assert_eq!(csv(&[STATIONS], sql), "n\n4\n");
}

#[test]
fn the_first_failure_stops() {
    let sql = "SELECT 1 AS a; SELECT * FROM nope; SELECT 2 AS b";
    let outcome = run(&["-q", "--format", "csv", "-c", sql, "-c", "SELECT 3 AS c"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), "a\n1\n"));
    assert!(outcome.stderr.starts_with("Error: "), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("nope"), "{}", outcome.stderr);
}

#[test]
fn scripts_run_in_the_order_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.sql");
    fs::write(&file, "-- a comment; really\nSELECT ';' AS b;\n\nSELECT 3 AS c\n").unwrap();
    let file = file.to_str().unwrap();
    let args = ["-q", "--format", "csv", "-c", "SELECT 1 AS a;", "-f", file, "-c", "SELECT 4 AS d"];
    let outcome = run(&args);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    assert_eq!(outcome.stdout, "a\n1\nb\n;\nc\n3\nd\n4\n");
}

#[test]
fn errors_name_the_line_of_the_script() {
    let message = failure(&[], "SET datafusion.execution.batch_size = 10;\n\n SELEC 2");
    assert!(message.contains("Line: 3, Column: 2"), "{message}");
    let message = failure(&[], "SELECT 'never closed");
    assert!(message.contains("Unterminated"), "{message}");
    let outcome = run(&["-f", "nowhere.sql"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.starts_with("Error: nowhere.sql: "), "{}", outcome.stderr);
}

#[test]
fn sql_comes_from_standard_input() {
    let sql = "SELECT count(*) AS n\nFROM elevation;\n";
    let nothing: &[&str] = &[];
    for more in [nothing, &["-f", "-"]] {
        let args = [&[STATIONS, "-q", "--format", "csv"][..], more].concat();
        let outcome = run_with_input(&args, sql);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{more:?}");
        assert_eq!(outcome.stdout, "n\n6\n", "{more:?}");
    }
    assert_eq!(run_with_input(&["-q"], "").code, Some(0));
    assert_eq!(run_with_input(&["-q"], "SELECT * FROM nope").code, Some(1));
}

#[test]
fn files_that_cannot_be_opened_are_named() {
    assert!(failure(&["nowhere.tet"], "SELECT 1").contains("nowhere.tet"));
    assert!(failure(&[STATIONS, NOT_TET], "SELECT 1").contains(NOT_TET));
    assert!(failure(&["gopher://host/a.tet"], "SELECT 1").contains("gopher://host/a.tet"));
}

#[test]
fn two_files_are_two_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = copies(folder.path(), ["a.tet", "b-2.tet"]);
    let paths = [a.as_str(), b.as_str()];
    let sql =
        "SELECT (SELECT count(*) FROM a.elevation) + (SELECT count(*) FROM \"b-2\".elevation) AS n";
    assert_eq!(csv(&paths, sql), "n\n12\n");
    let message = failure(&paths, "SELECT * FROM elevation");
    assert!(message.contains("a.elevation or \"b-2\".elevation"), "{message}");
    let sql =
        "CREATE VIEW elevation AS SELECT * FROM a.elevation; SELECT count(*) AS n FROM elevation";
    assert_eq!(csv(&paths, sql), "n\n6\n");
}

#[test]
fn schemas_of_files_with_one_name_are_numbered() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, public] = copies(folder.path(), ["a.tet", "more/a.tet", "public.tet"]);
    let query =
        ["-c", "SELECT count(*) AS n FROM a_2.elevation JOIN public_2.elevation USING (station)"];
    let args = [&[a.as_str(), &b, &public, "--format", "csv"][..], &query].concat();
    let outcome = run(&args);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.starts_with("n\n6\n"), "{outcome:?}");
    assert!(
        outcome.stderr.contains("warning: ") && outcome.stderr.contains("\"a_2\""),
        "{outcome:?}"
    );
    assert!(outcome.stderr.contains("\"public_2\""), "{outcome:?}");
    assert_eq!(run(&[&args[..], &["-q"]].concat()).stderr, "");
}

#[test]
fn quiet_prints_results_only() {
    let args = [STATIONS, "-c", "SELECT 'x' AS a"];
    assert!(run(&args).stdout.contains("row(s) fetched"));
    let quiet = run(&[&args[..], &["-q"]].concat()).stdout;
    assert!(quiet.contains("| x |") && !quiet.contains("fetched"), "{quiet}");
    let created = create("t", "'dataset' 'elevation'");
    assert_eq!(run(&["-q", "-c", &created]).stdout, "");
    assert!(run(&["-c", &created]).stdout.contains("0 row(s) fetched"));
}

#[test]
fn maxrows_shortens_tables_only() {
    let sql = "SELECT value FROM generate_series(1, 100000)";
    let printed = |format: &str| {
        let outcome = run(&["-q", "--maxrows", "3", "--format", format, "-c", sql]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout
    };
    assert!(printed("table").lines().count() < 20);
    for (format, lines) in [("csv", 100_001), ("tsv", 100_001), ("nd-json", 100_000)] {
        assert_eq!(printed(format).lines().count(), lines, "{format}");
    }
    assert_eq!(printed("json").matches("\"value\"").count(), 100_000);
}

#[test]
fn a_closed_stdout_is_no_error() {
    let sql = "SELECT value FROM generate_series(1, 50000)";
    for format in ["csv", "json", "nd-json", "table"] {
        let args = ["--maxrows", "inf", "--format", format, "-c", sql];
        let mut child = gridfusion(&args).spawn().unwrap();
        drop(child.stdout.take());
        let outcome = Outcome::from(child.wait_with_output().unwrap());
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{format}");
    }
}

#[test]
fn limits_reach_the_engine() {
    let sql = "SELECT value FROM generate_series(1, 100000) ORDER BY -value";
    let outcome = run(&["-q", "--memory-limit", "1k", "--format", "csv", "-c", sql]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("Resources exhausted"), "{outcome:?}");
    let sql = "SHOW datafusion.execution.batch_size";
    let outcome = run(&["-q", "--batch-size", "77", "--format", "csv", "-c", sql]);
    assert!(outcome.stdout.contains(",77"), "{outcome:?}");
}

#[test]
fn the_command_line_explains_itself() {
    let version = run(&["-V"]);
    assert_eq!((version.code, version.stderr.as_str()), (Some(0), ""));
    assert_eq!(version.stdout.trim_end(), concat!("gridfusion ", env!("CARGO_PKG_VERSION")));
    let long = run(&["--version"]).stdout;
    assert_eq!(long.lines().next(), version.stdout.lines().next());
    // Sources without a repository, or inside another one, have no commit.
    let git = Command::new("git").args(["rev-parse", "--show-prefix", "HEAD"]).output();
    let head = git.map(|it| String::from_utf8(it.stdout).unwrap()).unwrap_or_default();
    let commit = format!("commit: {}\n", head.strip_prefix("cli/\n").unwrap_or("unknown").trim());
    for line in
        [&commit, "formats: icechunk, netcdf, tet, tiledb, zarr\n", "DataFusion: 55.", "target: "]
    {
        assert!(long.contains(line), "{line}: {long}");
    }
    let help = run(&["--help"]);
    assert_eq!(help.code, Some(0));
    for part in [
        "Examples:",
        "--memory-limit",
        "--timing",
        "--no-progress",
        "AWS_",
        "CREATE EXTERNAL TABLE",
        "gridfusion info ",
        "gridfusion plot ",
        "gridfusion completions ",
        "Exit status:",
    ] {
        assert!(help.stdout.contains(part), "{part}: {}", help.stdout);
    }
    for (command, part) in
        [("info", "--metadata"), ("plot", "x, y, value"), ("completions", "powershell")]
    {
        let help = run(&[command, "--help"]);
        assert_eq!(help.code, Some(0), "{command}");
        assert!(help.stdout.contains(part), "{command}: {}", help.stdout);
    }
    for wrong in [["--format", "xls"], ["--batch-size", "0"], ["--nonsense", "1"]] {
        assert_eq!(run(&wrong).code, Some(2), "{wrong:?}");
    }
}
