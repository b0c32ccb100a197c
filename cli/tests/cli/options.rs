//! `-O NAME=VALUE`: options for paths.

use std::fs;
use std::path::Path;

use crate::support::{STATIONS, failure, package, run, tiledb};

const KEY: &str = "encryption_key=0123456789abcdef0123456789ABCDEF";

/// Runs the program, which must succeed without warnings. Returns its standard output.
fn output(args: &[&str]) -> String {
    let outcome = run(args);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
    outcome.stdout
}

fn count(path: &str, table: &str, options: &[&str]) -> String {
    let sql = format!("SELECT count(*) AS n FROM {table}");
    output(&[&[path, "-q", "--format", "csv", "-c", &sql], options].concat())
}

/// Makes a package whose first generation is a different file from the second.
fn changed_package(folder: &Path) -> String {
    let root = package(folder, "demo.tet.d");
    let other = Path::new(STATIONS).with_file_name("land.tet");
    fs::copy(other, Path::new(&root).join("generations/00000001/packed.tet")).unwrap();
    root
}

#[test]
fn arrays_as_they_were_then() {
    let overlap = tiledb("overlap");
    for (options, rows) in [
        (&[][..], 42),
        (&["-O", "timestamp=10"], 25),
        (&["--option", "timestamp=1970-01-01 00:00:00.020"], 30),
        (&["-O", "timestamp=20", "-O", "timestamp_start=20"], 15),
        (&["--option=timestamp=10", "-O", "io=pread"], 25),
    ] {
        assert_eq!(count(&overlap, "overlap", options), format!("n\n{rows}\n"), "{options:?}");
    }
    let info = output(&["info", &overlap, "-O", "timestamp=20"]);
    assert!(info.contains("2 fragments of 1970-01-01T00:00:00.010Z to "), "{info}");
    let all = count(&tiledb(""), "overlap", &["-O", "timestamp=10"]);
    assert_eq!(all, "n\n25\n");
}

#[test]
fn encrypted_arrays() {
    let encrypted = tiledb("encrypted");
    assert_eq!(count(&encrypted, "encrypted", &["-O", KEY]), "n\n25\n");
    let info = output(&["info", &encrypted, "-O", KEY]);
    assert!(info.contains("1 fragment of 1970-01-01T00:00:00.010Z"), "{info}");
    let verified = output(&["verify", &encrypted, "--deep", "--option", KEY]);
    assert!(verified.contains("\nOK: 9 checks"), "{verified}");
    for task in ["info", "verify"] {
        let without = run(&[task, &encrypted]);
        assert_eq!(without.code, Some(1));
        assert!((without.stdout + &without.stderr).contains("is encrypted"), "{task}");
        let wrong = "0123456789abcdef0123456789ABCDEX";
        let wrong_key = run(&[task, &encrypted, "-O", &format!("encryption_key={wrong}")]);
        assert_eq!(wrong_key.code, Some(1));
        assert!(!(wrong_key.stdout + &wrong_key.stderr).contains(wrong), "{task}");
    }
}

#[test]
fn generations_of_packages() {
    let folder = tempfile::tempdir().unwrap();
    let demo = changed_package(folder.path());
    assert_eq!(count(&demo, "elevation", &["-O", "generation=2"]), "n\n6\n");
    let info = output(&["info", &demo, "-O", "generation=1"]);
    assert!(info.contains("generation 1") && info.contains("\nland "), "{info}");
    for (generation, datasets) in [("generation=1", "3 datasets"), ("generation=2", "4 datasets")] {
        let verified = run(&["verify", &demo, "-O", generation]);
        assert!(verified.stdout.contains(datasets), "{verified:?}");
    }
    let message = failure(&[&demo, "-O", "generation=3"], "SELECT 1");
    assert!(message.contains("no generation 3; the package has 1, 2"), "{message}");
}

/// In a directory, each format uses its own options.
#[test]
fn directories_of_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("mixed");
    fs::create_dir(&root).unwrap();
    fs::copy(STATIONS, root.join("stations.tet")).unwrap();
    copy_folder(Path::new(&tiledb("overlap")), &root.join("overlap"));
    let root = root.to_str().unwrap();
    let then = ["-O", "timestamp=10", "-O", "io=pread"];
    assert_eq!(count(root, "mixed.overlap.overlap", &then), "n\n25\n");
    assert_eq!(count(root, "mixed.stations.elevation", &then), "n\n6\n");
    let verified = output(&[&["verify", root][..], &then].concat());
    assert!(verified.contains("fragments        1 visible"), "{verified}");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => _ = fs::copy(entry.path(), to).unwrap(),
        }
    }
}

#[test]
fn values_change_what_tables_show() {
    let sql = "SELECT count(value) AS n FROM temperature";
    let count = |options: &[&str]| {
        output(&[&[STATIONS, "-q", "--format", "csv", "-c", sql][..], options].concat())
    };
    assert_ne!(count(&[]), count(&["-O", "nan_as_null=false", "-O", "fill_as_null=false"]));
    let sql = "SELECT max(time_idx) AS n FROM temperature";
    let args = [STATIONS, "-O", "index_columns=true", "-q", "--format", "csv", "-c", sql];
    assert_eq!(output(&args), "n\n1439\n");
    // With plot, `-o` is the picture, and options need `--option`.
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("idx.svg");
    let sql = "SELECT station_idx, value FROM elevation";
    let options = ["--option", "index_columns=true", "-q", "-o", picture.to_str().unwrap()];
    output(&[&["plot", sql, STATIONS][..], &options].concat());
    assert!(picture.is_file());
}

#[test]
fn what_does_not_apply_is_refused_with_what_does() {
    let (overlap, both) = (tiledb("overlap"), "io, nan_as_null, fill_as_null, index_columns");
    for (path, option, expected) in [
        (
            STATIONS,
            "timestamp=1",
            "option 'timestamp' is for TileDB arrays; the options here are generation, decode_times, io, ",
        ),
        (
            &overlap,
            "generation=1",
            "option 'generation' is for .tet files and .tet.d packages; the options here are timestamp, ",
        ),
        (STATIONS, "dataset=time", "option 'dataset' is for one table"),
        (STATIONS, "reduce=false", "option 'reduce' is for SET gridfusion.…"),
        (STATIONS, "iO=mmap", "option 'iO' is unknown"),
        (STATIONS, "generation=1", "a file has no generations"),
        (STATIONS, "io=fast", "io = 'fast', expected 'mmap' or 'pread'"),
        (&overlap, "timestamp=noon", "option 'timestamp' is 'noon'"),
    ] {
        for args in [&[path, "-c", "SELECT 1"][..], &["info", path], &["verify", path]] {
            let outcome = run(&[args, &["-O", option]].concat());
            assert_eq!(outcome.code, Some(1), "{args:?} {option}");
            let printed = outcome.stdout + &outcome.stderr;
            assert!(printed.contains(expected), "{args:?} {option}: {printed}");
            assert!(!expected.contains("options here are") || printed.contains(both), "{printed}");
        }
    }
    let twice = run(&["info", STATIONS, "-O", "io=mmap", "-O", "io=pread"]);
    assert!(twice.stderr.contains("option 'io' is given twice"), "{twice:?}");
    for args in
        [&["-O", "io=pread", "-c", "SELECT 1"][..], &[STATIONS, "-O", "io", "-c", "SELECT 1"]]
    {
        assert_eq!(run(args).code, Some(2), "{args:?}");
    }
}

/// Coordinates of other dimensions are columns beside the variable, as in a quoted path, under the same names.
#[test]
fn coordinates_are_columns_of_tables_of_a_path() {
    let wrf = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/foreign/curvilinear_nc4.nc");
    let columns = |args: &[&str], table: &str| {
        let sql = format!("DESCRIBE {table}");
        let rows = output(&[args, &["-q", "--format", "csv", "-c", &sql]].concat());
        let names = rows.lines().skip(1).map(|row| row.split(',').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let plain = columns(&[wrf, "-O", "coordinates=false"], "t");
    let beside = columns(&[wrf, "-O", "coordinates=true"], "t");
    assert_eq!(beside[..plain.len()], plain[..]);
    assert!(beside.len() > plain.len() && plain.last().unwrap() == "value", "{beside:?}");
    let sql = "SELECT count(*) AS n FROM t WHERE lat > 60";
    let rows =
        |args: &[&str], sql: &str| output(&[args, &["-q", "--format", "csv", "-c", sql]].concat());
    let of_path = rows(&[wrf, "-O", "coordinates=true"], sql);
    let of_function = format!(
        "SELECT count(*) AS n FROM read_netcdf('{wrf}', 't', coordinates => true) WHERE lat > 60"
    );
    assert_eq!(of_path, rows(&[], &of_function));
}

/// A coordinate of several dimensions is no column by default, which an error about it tells.
#[test]
fn errors_tell_how_coordinates_become_columns() {
    let wrf = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/foreign/curvilinear_nc4.nc");
    let groups = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/foreign/groups_v3.zarr");
    let stations = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/cf/tests/data/hdf5/coordinates/stations.nc"
    );
    for (table, column, expected) in [
        (format!("{wrf}#lat"), "run", "run (time) has other dimensions: it is the dataset run"),
        (format!("{stations}#temp"), "temp", "temp is the column value of"),
        (stations.to_owned(), "stationname", "did you mean station_name?"),
    ] {
        let outcome = run(&["-q", "-c", &format!("SELECT {column} FROM '{table}'")]);
        assert_eq!(outcome.code, Some(1), "{table} {column}");
        assert!(outcome.stderr.contains(expected), "{table} {column}: {}", outcome.stderr);
    }
    for (file, column, expected) in [
        (wrf, "lat", "lat (y, x) is no column by default"),
        (groups, "latitude", "set coordinates => 'latitude'"),
    ] {
        let sql = format!(
            "CREATE EXTERNAL TABLE t STORED AS ARRAY LOCATION '{file}'; SELECT {column} FROM t"
        );
        let outcome = run(&["-q", "-c", &sql]);
        assert_eq!(outcome.code, Some(1), "{file} {column}");
        assert!(outcome.stderr.contains(expected), "{file} {column}: {}", outcome.stderr);
    }
    let sql = format!("SET gridfusion.coordinates = true; SELECT count(lat) AS n FROM '{wrf}'");
    assert!(output(&["-q", "--format", "csv", "-c", &sql]).contains("115"));
}

/// A statement that names a coordinate of several dimensions has it, but not where the option turns coordinates off.
#[test]
fn statements_have_the_coordinates_that_they_name() {
    let wrf = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/foreign/curvilinear_nc4.nc");
    let counted = |from: &str| {
        let sql = format!("SELECT count(*) AS n, max(a.lat) AS lat FROM {from} WHERE lat > 76");
        output(&["-q", "--format", "csv", "-c", &sql])
    };
    let expected = counted(&format!("read_netcdf('{wrf}', 't', coordinates => true) AS a"));
    assert!(expected.contains(",77.05"), "{expected}");
    for from in ["'{}' AS a", "'{}#t' AS a", "read_netcdf('{}', 't') AS a", "read_array('{}') a"] {
        assert_eq!(counted(&from.replace("{}", wrf)), expected, "{from}");
    }
    let sql = format!("SELECT t FROM '{wrf}' WHERE lat > 77 AND time = 0");
    let named = output(&["-q", "--format", "csv", "-c", &format!("EXPLAIN {sql}")]);
    assert!(named.contains("selection=[time=0, y=1, x=4]"), "{named}");
    // Other tables of the statement need no coordinates, and an option is kept.
    let air = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/climate.tet");
    let sql = format!(
        "SELECT count(*) FROM '{wrf}' CROSS JOIN (SELECT t2m FROM '{air}' LIMIT 1) WHERE lat > 76"
    );
    assert!(output(&["-q", "--format", "csv", "-c", &sql]).contains("10"));
    for sql in [
        format!("SELECT lat FROM read_array('{wrf}', coordinates => false)"),
        format!("SET gridfusion.coordinates = false; SELECT lat FROM '{wrf}'"),
    ] {
        assert_eq!(run(&["-q", "-c", &sql]).code, Some(1), "{sql}");
    }
}
