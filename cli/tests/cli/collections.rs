//! `gridfusion info` of folders, patterns and lists.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{NOT_TET, foreign, run, tiledb};

/// The folder of monthly files that differ as downloads do; `make.py` there has the differences.
const MONTHS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/monthly");
const YEARS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/years");

/// Runs `info`, whose exit code must be this. Returns what it prints, without `folder` in paths.
fn info(args: &[&str], folder: &str, code: i32) -> String {
    let outcome = run(&[&["info"][..], args].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(code), ""), "{args:?}");
    outcome.stdout.replace(&format!("{folder}/"), "")
}

fn json_of(args: &[&str], code: i32) -> Value {
    let outcome = run(&[&["info", "--json"][..], args].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(code), ""), "{args:?}");
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn files_that_fit_are_one_table() {
    let expected = "\
*.tet
  3 .tet files, 99.7 KiB
  one table, time × lat × lon: 1096 × 5 × 6
  files follow one another along time, from 2022-01-01T00:00:00 to 2024-12-31T00:00:00

VARIABLE  TYPE     UNITS
t2m       Float32  degC
tp        Float64  mm d-1

DIMENSION  LENGTH  TYPE           FIRST                LAST                 UNITS
time         1096  Timestamp(µs)  2022-01-01T00:00:00  2024-12-31T00:00:00  days since 2022-01-01
lat             5  Float32        65.0                 45.0                 degrees_north
lon             6  Float32        -10.0                40.0                 degrees_east
";
    let pattern = format!("{YEARS}/*.tet");
    let found = info(&[&pattern], YEARS, 0);
    assert_eq!(found, expected);
    // A folder and a list are the same files.
    let without_title = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(without_title(&info(&[YEARS], YEARS, 0)), without_title(&found));
    let years = ["2024", "2022", "2023"].map(|year| format!("{YEARS}/{year}.tet"));
    let [a, b, c] = [0, 1, 2].map(|at| years[at].as_str());
    assert_eq!(without_title(&info(&[a, b, c, b], YEARS, 0)), without_title(&found));
    // The table is the one that a query reads.
    let count = run(&["-q", "--format", "csv", "-c", &format!("SELECT count(*) FROM '{pattern}'")]);
    assert_eq!(count.stdout, format!("count(*)\n{}\n", 1096 * 5 * 6));
}

#[test]
fn differences_are_told_once_with_both_values() {
    let pattern = format!("{MONTHS}/2000-*.nc");
    let text = info(&[&pattern], MONTHS, 0);
    let rows: Vec<Vec<&str>> =
        text.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
    let row = |name: &str| -> Vec<&str> {
        let found: Vec<_> = rows.iter().filter(|row| row[0] == name).collect();
        assert_eq!(found.len(), 1, "{name}: {text}");
        found[0].iter().copied().filter(|cell| !cell.is_empty()).collect()
    };
    let [first, second] =
        ["scale_factor 0.01, add_offset 273", "scale_factor 0.02, add_offset 273"];
    assert_eq!(row("packing"), ["packing", "t2m", "2", "yes", second, first, "2000-03.nc"]);
    let fill = ["fill value", "t2m", "1", "yes", "-999", "-32768", "2000-04.nc"];
    assert_eq!(row("fill value"), fill);
    assert_eq!(row("units"), ["units", "t2m", "1", "no", "degC", "K", "2000-05.nc"]);
    assert!(text.contains("\n  2 tables, each of files that fit together\n"), "{text}");
    assert!(text.contains("\n  the differences are those from 2000-01.nc\n"), "{text}");
    // A folder that is a mixture: a calendar of its own, more labels, and files that are no arrays.
    let all = json_of(&[MONTHS], 0);
    assert_eq!((&all["files"], &all["others"]), (&json!(6), &json!(["make.py"])));
    assert_eq!((&all["is_one_table"], all["tables"].as_array().unwrap().len()), (&json!(false), 3));
    let of = |property: &str| -> Value {
        let all = all["differences"].as_array().unwrap();
        let mut found = all.iter().filter(|it| it["property"] == property);
        let found = (found.next().unwrap().clone(), found.count());
        assert_eq!(found.1, 0, "{property}");
        found.0
    };
    for (property, value, instead_of, stops) in [
        ("calendar", "noleap", "standard", true),
        ("length", "3", "2", true),
        ("units", "degC", "K", true),
        ("fill value", "-999", "-32768", false),
    ] {
        let found = of(property);
        let text = |key: &str| found[key].as_str().unwrap().to_owned();
        // The folder begins with the first month.
        assert_eq!((text("value"), text("instead_of")), (value.into(), instead_of.into()));
        assert_eq!(found["stops_table"], stops, "{property}");
    }
}

#[test]
fn the_error_of_a_query_tells_each_difference_once() {
    let outcome = run(&["-q", "-c", &format!("SELECT count(*) FROM '{MONTHS}/2000-*.nc'")]);
    assert_eq!(outcome.code, Some(1));
    let error = outcome.stderr.replace(&format!("{MONTHS}/"), "");
    let expected = "the files cannot be one table; compared with 2000-01.nc:
  2000-05.nc: the units of \"t2m\" are degC, not K: t2m + 273.15 is in K
make a table of each kind of file, and combine the tables with UNION ALL";
    assert!(error.contains(expected), "{error}");
}

/// Stored numbers are 0, 1, 2, 3 and the day of each month's beginning, with another factor in the last two months.
#[test]
fn files_with_their_own_packing_are_one_table() {
    let sql = format!(
        "SELECT date_part('month', time) AS month, sum(t2m) AS sum, min(t2m) AS least FROM '{MONTHS}/2000-0[1-4].nc' \
         GROUP BY month ORDER BY month"
    );
    let found = run(&["-q", "--format", "csv", "-c", &sql]).stdout;
    let month = |(number, first, scale): (u32, f64, f64)| {
        let values: Vec<f64> = (0..4).map(|at| (first + f64::from(at)) * scale + 273.0).collect();
        (number, values.iter().sum::<f64>(), values[0])
    };
    let expected = [(1, 0.0, 0.01), (2, 31.0, 0.01), (3, 60.0, 0.02), (4, 91.0, 0.03)].map(month);
    let rows = found.lines().skip(1).map(|line| {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        (cells[0] as u32, cells[1], cells[2])
    });
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), 4, "{found}");
    for (row, expected) in rows.iter().zip(expected) {
        let is_near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            row.0 == expected.0 && is_near(row.1, expected.1) && is_near(row.2, expected.2),
            "{row:?} {expected:?}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    for year in ["2022", "2023"] {
        let to = dir.path().join(format!("{year}.tet"));
        fs::copy(format!("{YEARS}/{year}.tet"), to).unwrap();
    }
    fs::copy(NOT_TET, dir.path().join("broken.tet")).unwrap();
    let text = info(&[folder], folder, 1);
    assert!(text.contains(" KiB, 1 file that cannot be opened\n  one table, "), "{text}");
    assert!(text.contains("\nWARNINGS\nbroken.tet: "), "{text}");
    let found = json_of(&[folder], 1);
    assert_eq!((&found["files"], found["unreadable"].as_array().unwrap().len()), (&json!(2), 1));
}

#[test]
fn stores_and_arrays_are_members() {
    let months = ["january_nc4.nc", "february.zarr", "march_cdf1.nc"].map(foreign);
    let [a, b, c] = [0, 1, 2].map(|at| months[at].as_str());
    let text = info(&[a, b, c], "", 0);
    assert!(text.contains("\n  2 NetCDF files, 1 Zarr store, "), "{text}");
    assert!(text.contains("\n  one table, time × x: 12 × 3\n"), "{text}");
    // Files whose variables have several shapes are several tables, and a sparse array is one of its own.
    let stations = crate::support::STATIONS;
    let found = json_of(&[stations, &tiledb("overlap")], 0);
    let shapes: Vec<&Value> =
        found["tables"].as_array().unwrap().iter().map(|it| &it["shape"]).collect();
    assert_eq!(shapes, [&json!([1440, 6]), &json!([6]), &json!([7, 6])]);
}

#[test]
fn what_is_no_collection_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    fs::write(dir.path().join("notes.txt"), "").unwrap();
    for (args, expected) in [
        (&[folder][..], "in this directory; it holds notes.txt"),
        (&["*.nothing"], "nothing matches '*.nothing'"),
        (&[YEARS, "--chunks"], "--chunks is for one file"),
        (&[YEARS, "--metadata"], "--metadata is for one file"),
    ] {
        let outcome = run(&[&["info"][..], args].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(outcome.stderr.contains(expected), "{args:?}: {}", outcome.stderr);
    }
    assert!(Path::new(folder).is_dir());
}

#[test]
fn a_file_tells_its_conventions() {
    let noleap = format!("{MONTHS}/noleap.nc");
    let text = info(&[&noleap], MONTHS, 0);
    assert!(text.contains("  days since 2000-01-01 (noleap)\n"), "{text}");
    let expected = "
VARIABLE  NULL    PACKING                            GRID MAPPING  BOUNDS
time      -       -                                  -             time_bnds
t2m       -32768  scale_factor 0.01, add_offset 273  crs           -
";
    assert!(text.ends_with(expected), "{text}");
    let found = json_of(&[&noleap], 0);
    assert_eq!(found["dimensions"][0]["calendar"], "noleap");
    let time = &found["datasets"][0];
    assert_eq!((&time["bounds"], &time["calendar"]), (&json!("time_bnds"), &json!("noleap")));
}

/// Options make one table of files that would be several, as they do in a query.
#[test]
fn options_combine_files_that_differ() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data");
    for name in ["land_1.tet", "land_2.tet", "mask.tet"] {
        fs::copy(format!("{data}/land.tet"), path(name)).unwrap();
    }
    fs::copy(format!("{YEARS}/2022.tet"), path("2022.tet")).unwrap();
    fs::copy(format!("{YEARS}/2022.tet"), path("again.tet")).unwrap();
    fs::write(path("bad.tet"), "nothing").unwrap();
    let described = |options: &[&str], names: &[&str]| -> Vec<String> {
        let options = options.iter().flat_map(|option| ["-O", option]);
        let paths: Vec<String> = names.iter().map(|name| path(name)).collect();
        let args: Vec<&str> = options.chain(paths.iter().map(String::as_str)).collect();
        info(&args, folder.path().to_str().unwrap(), 0).lines().map(str::to_owned).collect()
    };
    let two = described(&[], &["2022.tet", "mask.tet"]);
    assert!(two[2].contains("2 tables"), "{two:?}");
    let united = described(&["union_by_name=true"], &["2022.tet", "mask.tet"]);
    assert_eq!(united[2], "  one table, time × lat × lon: 365 × 5 × 6");
    assert!(united.iter().any(|line| line.starts_with("land")), "{united:?}");
    let stacked = described(&["stack=land_{version}.tet"], &["land_*.tet"]);
    assert_eq!(stacked[2], "  one table, version × lat × lon: 2 × 5 × 6");
    let stacked = described(&["stack=version=a,b"], &["land_*.tet"]);
    assert!(
        stacked.contains(&"  files follow one another along version, from a to b".to_owned()),
        "{stacked:?}"
    );
    let last = described(&["overlap=last"], &["2022.tet", "again.tet"]);
    assert_eq!(last[2], "  one table, time × lat × lon: 365 × 5 × 6");
    let wrong = run(&["info", "-O", "overlap=newest", &path("2022.tet"), &path("again.tet")]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.stderr.contains("expected one of 'refused', 'first', 'last'"),
        "{}",
        wrong.stderr
    );
    let one = run(&["info", "-O", "overlap=last", &path("2022.tet")]);
    assert_eq!(one.code, Some(1));
    assert!(one.stderr.contains("option 'overlap' ('last') does not apply"), "{}", one.stderr);
    // The query leaves the damaged file out, with a warning.
    let sql = format!(
        "SELECT count(*) FROM read_array(['{}', '{}'], skip_unreadable => true)",
        path("bad.tet"),
        path("2022.tet")
    );
    let outcome = run(&["--format", "csv", "-c", &sql]);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stdout.starts_with("count(*)\n10950\n"), "{}", outcome.stdout);
    assert!(
        outcome.stderr.contains("left out of the table") && outcome.stderr.contains("bad.tet"),
        "{}",
        outcome.stderr
    );
}
