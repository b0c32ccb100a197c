//! Messages and exit codes of failed runs.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use crate::support::{
    NOT_TET, Outcome, STATIONS, failure, gridfusion, run, run_with_input, tiledb,
};

#[test]
fn a_missing_table_is_guessed() {
    for (name, meant) in [
        ("tempreture", "temperature"),
        ("\"Temperature\"", "temperature"),
        ("stations.tempreture", "stations.temperature"),
        ("station.temperature", "stations.temperature"),
        ("statoins.elevaton", "stations.elevation"),
    ] {
        for sql in [format!("SELECT * FROM {name}"), format!("DESCRIBE {name}")] {
            let message = failure(&[STATIONS], &sql);
            assert!(message.starts_with("table '") && !message.contains("datafusion"), "{message}");
            assert!(message.ends_with(&format!("' not found; did you mean {meant}?")), "{message}");
        }
    }
    let message = failure(&[STATIONS], "DROP TABLE tempreture");
    assert!(
        message.ends_with("'tempreture' doesn't exist; did you mean temperature?"),
        "{message}"
    );
}

#[test]
fn what_there_is_is_listed_if_nothing_is_alike() {
    let message = failure(&[STATIONS], "SELECT * FROM rain");
    let tables = "the tables are elevation, precipitation, temperature, time";
    assert_eq!(message, format!("table 'rain' not found; {tables}"));
    let message = failure(&[STATIONS], "SELECT * FROM warehouse.rain");
    assert!(message.ends_with("; the schemas are public, stations"), "{message}");
    let message = failure(&[], "SELECT * FROM temperature");
    assert!(message.contains("no tables: quote a path, as in FROM '"), "{message}");
    let data = Path::new(STATIONS).parent().unwrap();
    let years = data.join("years").to_str().unwrap().to_owned();
    let message = failure(&[], &format!("SELECT * FROM '{years}'"));
    assert!(message.ends_with(&format!("are one table: FROM '{years}/*.tet'")), "{message}");
    let netcdf = tempfile::tempdir().unwrap();
    fs::copy(data.join("air.nc"), netcdf.path().join("x.nc")).unwrap();
    let folder = netcdf.path().to_str().unwrap();
    let message = failure(&[], &format!("SELECT * FROM '{folder}'"));
    assert!(message.ends_with(&format!("are one table: FROM '{folder}/*.nc'")), "{message}");
    // A hint does not tell what is outside of the root.
    let elsewhere = tempfile::tempdir().unwrap();
    let root = ["--root", elsewhere.path().to_str().unwrap(), "-q", "-c", "SELECT * FROM years"];
    let message = gridfusion(&root).current_dir(data).output().unwrap().stderr;
    let message = String::from_utf8(message).unwrap();
    assert!(message.contains("table 'years' not found; the session has no tables"), "{message}");
    let message = failure(&[&years], "SELECT * FROM temperature");
    assert!(
        message.contains("FOLDER.FILE.NAME, as in years.\"2022\".NAME; SHOW TABLES"),
        "{message}"
    );
    for name in ["nowhere.tet", "nowhere.tiledb"] {
        let message = failure(&[], &format!("SELECT * FROM {name}"));
        let hint = format!("; put a path in single quotes: FROM '{name}'");
        assert!(message.ends_with(&hint), "{message}");
    }
}

#[test]
fn other_names_are_guessed_too() {
    for (sql, meant) in [
        ("SELECT statoin FROM temperature", "; did you mean station?"),
        ("SELECT coun(*) FROM temperature", "Did you mean 'count'?"),
        ("SELECT * FROM tet_inof('x')", "; did you mean tet_info?"),
        ("CREATE TABLE publik.t AS SELECT 1", "; did you mean public?"),
        ("CREATE EXTERNAL TABLE t STORED AS TETT LOCATION 'x'", "; did you mean tet?"),
        ("SET gridfusion.redus = 3", ", did you mean 'gridfusion.optimizer.enable_reduce'?"),
        (
            "SET datafusion.execution.batchsize = 3",
            "; did you mean datafusion.execution.batch_size?",
        ),
        ("SHOW datafusion.execution.batchsize", "; did you mean datafusion.execution.batch_size?"),
    ] {
        let message = failure(&[STATIONS], sql);
        assert!(message.contains(meant), "{sql}: {message}");
    }
    let options = "OPTIONS ('dataset' 'tempreture')";
    let sql = format!("CREATE EXTERNAL TABLE t STORED AS TET LOCATION '{STATIONS}' {options}");
    let message = failure(&[], &sql);
    assert!(message.contains("the file has \"temperature\", "), "{message}");
    assert!(message.ends_with("; did you mean temperature?"), "{message}");
}

/// A setting has the name that it had before, with a warning.
#[test]
fn former_names_of_settings_cause_a_warning() {
    let sql = "SET gridfusion.lookup_joins = false; SHOW gridfusion.optimizer.enable_lookup_joins";
    let outcome = run(&["-c", sql]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("false"), "{outcome:?}");
    let expected = "'gridfusion.lookup_joins' is now 'gridfusion.optimizer.enable_lookup_joins'";
    assert!(outcome.stderr.contains(expected), "{outcome:?}");
}

#[test]
fn comparisons_name_the_column() {
    for (condition, expected) in [
        (
            "time = 'foo'",
            "time is of type Timestamp(µs), and 'foo' is not a time; write '2024-01-31' ",
        ),
        ("time = 5", "time is of type Timestamp(µs) and 5 of type Int64, which cannot be compared"),
        ("value > 'north'", "value is of type Float32, and 'north' is not a number"),
        (
            "station = 5",
            "station is of type Utf8View and 5 of type Int64, and not every text converts",
        ),
        ("time IN ('2024-01-01', 'x')", "time is of type Timestamp(µs), and 'x' is not a time"),
        ("time LIKE '2024%'", "time is of type Timestamp(µs), and LIKE needs text: CAST time"),
    ] {
        let message = failure(&[STATIONS], &format!("SELECT * FROM temperature WHERE {condition}"));
        assert!(message.starts_with(expected), "{condition}: {message}");
    }
}

#[test]
fn unknown_types_of_files_list_the_known_ones() {
    let writable =
        "; the types that can be written are arrow, csv, json, netcdf, parquet, tet, tiledb, zarr";
    for (sql, expected) in [
        ("COPY temperature TO 'x.xyz'", format!("there is no file type 'xyz'{writable}")),
        (
            "COPY temperature TO 'x.csv' STORED AS XYZ",
            format!("there is no file type 'xyz'{writable}"),
        ),
        (
            "CREATE EXTERNAL TABLE t STORED AS XYZ LOCATION 'x'",
            "there is no file type 'xyz'; the types are array, arrow, avro, csv, ".to_owned(),
        ),
    ] {
        let message = failure(&[STATIONS], sql);
        assert!(message.starts_with(&expected), "{sql}: {message}");
    }
    let message = failure(&[STATIONS], "EXPLAIN COPY temperature TO 'x.csv' STORED AS CSVV");
    assert_eq!(message, "there is no file type 'csvv'; did you mean csv?");
    let message = failure(&[STATIONS], "COPY temperature TO 'x'");
    assert!(message.contains("STORED AS csv") && message.ends_with(writable), "{message}");
    let message = failure(&[], &format!("SELECT * FROM '{NOT_TET}'"));
    assert!(
        message.contains("it can read .tet, .zarr.zip, .zip, .nc, ")
            && message.ends_with(".he5, .arrow, .csv, .json, .parquet and arrays"),
        "{message}"
    );
}

#[test]
fn mistakes_are_no_bugs() {
    for sql in [
        "SELECT sum(station) FROM temperature",
        "SELECT avg(time) FROM temperature",
        "SELECT median(station) FROM temperature",
        "SELECT sum(value, 2) FROM temperature",
        "SELECT date_trunc(time, 'month') FROM temperature",
        "SELECT substr(station, 'a') FROM temperature",
        "SELECT approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY station) FROM temperature",
        "SELECT round('a')",
        "SELECT md5(5)",
        "SELECT log(-1, 'a')",
        "SELECT trim(LEADING 5 FROM 'a')",
        "SELECT coalesce()",
        "SELECT max(*) FROM temperature",
        "SELECT substr(station) FROM temperature",
        "SELECT struct(1).a",
        "SELECT row_number() FROM temperature",
        "SELECT value FROM temperature GROUP BY station",
        "SELECT * FROM temperature WHERE value AND true",
        "SELECT time + value FROM temperature",
        "SELECT 1 AS a, 2 AS a",
        "SELECT * FROM temperature PIVOT (sum(value) FOR station IN ('Oslo'))",
        "INSERT INTO temperature VALUES (1)",
        "DROP TABLE nope",
    ] {
        let message = failure(&[STATIONS], sql);
        for inner in
            ["bug", "Internal", "DataFusion", "Optimizer rule", "Span(", "datafusion.public", "{"]
        {
            assert!(!message.contains(inner), "{sql}: {message}");
        }
    }
    let message = failure(&[STATIONS], "SELECT rank() FROM temperature");
    assert_eq!(message, "rank has no OVER; rank is a window function: rank(…) OVER (ORDER BY …)");
}

#[test]
fn paths_that_hold_no_arrays_are_named() {
    let [folder, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let empty = other.path().join("empty.tet");
    File::create(&empty).unwrap();
    let (folder, empty) = (folder.path().to_str().unwrap(), empty.to_str().unwrap());
    for (path, reason) in [
        ("nowhere.tet", "No such file"),
        (NOT_TET, "this is not a .tet file, .tet.d package, TileDB array"),
        (
            folder,
            "no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file in this directory",
        ),
        (empty, ""),
        ("", "the location is empty"),
        ("gopher://host/a.tet", "no object store"),
    ] {
        for args in [&[path, "-c", "SELECT 1"][..], &["info", path]] {
            let outcome = run(args);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{args:?}");
            assert!(outcome.stderr.starts_with("Error: "), "{args:?}: {outcome:?}");
            assert!(outcome.stderr.contains(path), "{args:?}: {outcome:?}");
            assert!(outcome.stderr.contains(reason), "{args:?}: {outcome:?}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{args:?}: {outcome:?}");
        }
    }
    let reason = "quote a pattern in SQL instead: SELECT … FROM 'nowhere-*.tet'";
    for (args, reason) in [
        (&["nowhere-*.tet", "-c", "SELECT 1"][..], reason),
        (&["info", "nowhere-*.tet"], "nothing matches 'nowhere-*.tet'"),
    ] {
        let outcome = run(args);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(outcome.stderr.contains(reason), "{args:?}: {outcome:?}");
    }
}

#[test]
fn other_formats_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("era5.grib"), [b"GRIB".as_slice(), &[0; 64]].concat()).unwrap();
    fs::write(path("numbers.npy"), [b"\x93NUMPY".as_slice(), &[0; 64]].concat()).unwrap();
    fs::write(path("rows.csv"), "a,b\n1,2\n").unwrap();
    for (name, what, advice) in [
        ("era5.grib", "this is a GRIB file", "cfgrib"),
        ("numbers.npy", "this is a NumPy file", "save it as a Zarr store"),
        ("rows.csv", "this is a CSV file", "SELECT * FROM 'PATH'"),
        ("", "it holds era5.grib, numbers.npy, rows.csv; era5.grib is ", "cfgrib"),
    ] {
        for args in [&[&path(name), "-c", "SELECT 1"][..], &["info", &path(name)]] {
            let outcome = run(args);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{args:?}");
            assert!(outcome.stderr.contains(what), "{args:?}: {outcome:?}");
            assert!(outcome.stderr.contains(advice), "{args:?}: {outcome:?}");
        }
        let outcome = run(&["verify", &path(name)]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(1), ""), "{name}");
        assert!(outcome.stdout.contains(what), "{name}: {outcome:?}");
    }
    let message = failure(&[], &format!("SELECT * FROM '{}'", path("era5.grib")));
    assert!(message.contains("this is a GRIB file"), "{message}");
    let rows =
        run(&["-q", "--format", "csv", "-c", &format!("SELECT a FROM '{}'", path("rows.csv"))]);
    assert_eq!((rows.code, rows.stdout.as_str()), (Some(0), "a\n1\n"), "{rows:?}");
}

/// Files with equal labels are no one table, and the page stays short.
#[test]
fn a_folder_of_many_tables_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    for number in 10..35 {
        fs::copy(STATIONS, folder.path().join(format!("{number}.tet"))).unwrap();
    }
    let shown = run(&["info", folder.path().to_str().unwrap()]).stdout;
    assert!(shown.contains("25 .tet files") && shown.contains("50 tables"), "{shown}");
    assert!(shown.contains("29.tet\n… and 30 more; --json shows all"), "{shown}");
    assert!(shown.contains("11.tet have the same labels on every dimension"), "{shown}");
}

/// `-q` does not hide an attribute that may change query results.
#[test]
fn a_fill_value_that_cannot_be_understood_is_reported_even_if_quiet() {
    let climate = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/climate.tet");
    let mut bytes = fs::read(climate).unwrap();
    let declared = br#""_FillValue":"-32767""#;
    let at = bytes.windows(declared.len()).position(|window| window == declared).unwrap();
    bytes[at..at + declared.len()].copy_from_slice(br#""_FillValue":"absent""#);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.tet");
    fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    let message = "attribute _FillValue = \"absent\" is not a value of type i16";
    for quiet in [&["-q"][..], &[]] {
        let sql = "SELECT min(value) AS least FROM tp";
        let outcome = run(&[quiet, &["--format", "csv", path, "-c", sql]].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let line = format!("error: {path}: dataset \"tp\": {message}");
        assert!(outcome.stderr.contains(&line), "{outcome:?}");
    }
    let outcome = run(&["verify", path]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("  FAILED   attributes\n"), "{outcome:?}");
    let outcome = run(&["info", path]);
    assert!(outcome.stdout.contains(message), "{outcome:?}");
}

#[cfg(unix)]
#[test]
#[ignore = "needs a user who may not read every file, as root may"]
fn files_that_may_not_be_read_are_named() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.tet");
    fs::copy(STATIONS, &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    assert!(File::open(&path).is_err(), "this user may read every file");
    let path = path.to_str().unwrap();
    let message = failure(&[path], "SELECT 1");
    assert!(message.contains(path) && message.contains("Permission denied"), "{message}");
    // A folder that cannot be listed may hold arrays, so info counts it beside the files that it reads.
    fs::copy(STATIONS, folder.path().join("open.tet")).unwrap();
    fs::remove_file(path).unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    fs::set_permissions(&below, fs::Permissions::from_mode(0o000)).unwrap();
    let outcome = run(&["info", folder.path().to_str().unwrap()]);
    fs::set_permissions(&below, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let is_named =
        outcome.stdout.contains("/below/: ") && outcome.stdout.contains("Permission denied");
    assert!(is_named && outcome.stdout.contains("1 file that cannot be opened"), "{outcome:?}");
}

#[test]
fn mistakes_on_the_command_line_are_status_2() {
    let outcome = run(&["--fromat", "csv"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""));
    assert!(outcome.stderr.contains("--format"), "{outcome:?}");
    for args in [&["-c"][..], &["--format", "xls"], &["--maxrows", "x"], &["info"]] {
        let outcome = run(args);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(outcome.stderr.starts_with("error: "), "{outcome:?}");
    }
}

#[test]
fn errors_come_after_what_was_printed_before() {
    let outcome = run_with_input(&["-q", "--format", "csv"], "SELECT 1 AS a;\nSELECT * FROM b");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), "a\n1\n"));
    assert!(outcome.stderr.contains("the session has no tables"), "{outcome:?}");
}

/// Runs the program with standard output closed before the first write.
fn unread(args: &[&str]) -> Outcome {
    let mut child = gridfusion(args).spawn().unwrap();
    drop(child.stdout.take());
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_closed_stdout_is_a_quiet_end() {
    let overlap = tiledb("overlap");
    for format in ["automatic", "table", "csv", "tsv", "json", "nd-json"] {
        for sql in ["SELECT * FROM temperature", "SHOW TABLES", "EXPLAIN SELECT 1", "SELECT 1"] {
            let args = [STATIONS, "--maxrows", "inf", "--format", format, "-c", sql];
            let outcome = unread(&args);
            assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
        }
    }
    for args in [
        &["info", STATIONS][..],
        &["info", STATIONS, "--json", "--chunks", "--metadata"],
        &["info", overlap.as_str()],
        &["--help"],
        &["--version"],
    ] {
        let outcome = unread(args);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error_and_never_a_panic() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for args in [&[STATIONS, "-c", "SELECT * FROM elevation"][..], &["info", STATIONS]] {
        let output = gridfusion(args).stdout(full()).output().unwrap();
        let outcome = Outcome::from(output);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains("No space left"), "{outcome:?}");
    }
    let status = gridfusion(&["-c", "SELECT * FROM nope"]).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}
