//! `gridfusion convert`: files, patterns and queries as new arrays of all formats.

use std::fs;

use crate::support::run;

const AIR: &str = "../examples/data/air.nc";

/// Runs the program, and returns its output.
fn output(args: &[&str]) -> String {
    let outcome = run(args);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
    outcome.stdout
}

/// The cells of an array, in order.
fn cells(place: &str, columns: &str) -> String {
    let sql = format!("SELECT {columns} FROM '{place}' ORDER BY {columns}");
    output(&["-q", "--format", "csv", "-c", &sql])
}

#[test]
fn formats_convert_to_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let expected = cells(AIR, "time, lat, lon, t2m");
    let mut from = AIR.to_owned();
    // From each format to each other, on one path through all of them.
    for name in ["a.zarr", "b.nc", "c.zarr", "d.tet", "e.zarr", "f.tet", "g.nc", "h.tet"] {
        let out = at(name);
        let text = output(&["convert", &from, &out]);
        assert!(text.starts_with(&format!("{out}: 8640 rows\n\n{out}\n")), "{text}");
        assert_eq!(cells(&out, "time, lat, lon, t2m"), expected, "{name}");
        from = out;
    }
    let out = at("i.zarr");
    let chunks =
        ["--chunks", "time=7,lat=4", "--codec", "gzip", "--level", "9", "-W", "shards=time=14"];
    let text = output(&[&["convert", AIR, &out][..], &chunks].concat());
    assert!(text.contains("7 × 4 × 24") && text.contains("gzip"), "{text}");
    assert_eq!(cells(&out, "time, lat, lon, t2m"), expected);
    let quiet = output(&["convert", "-q", AIR, &at("plain"), "--format", "zarr"]);
    assert_eq!(quiet, "");
    assert_eq!(cells(&at("plain"), "time, lat, lon, t2m"), expected);
}

#[test]
fn many_files_and_queries_become_one_array() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let year = |year: u16| {
        format!("SELECT time, lat, lon, t2m FROM '{AIR}' WHERE date_part('year', time) = {year}")
    };
    for name in ["2023", "2024"] {
        let sql = year(name.parse().unwrap());
        output(&["convert", AIR, &at(&format!("year-{name}.nc")), "-c", &sql]);
    }
    let expected = cells(AIR, "time, lat, lon, t2m");
    output(&["convert", &at("year-*.nc"), &at("pattern.zarr")]);
    output(&["convert", &at("year-2023.nc"), &at("year-2024.nc"), &at("list.zarr")]);
    output(&["convert", &at("year-2023.nc"), &at("appended.zarr")]);
    output(&["convert", &at("year-2024.nc"), &at("appended.zarr"), "--mode", "append"]);
    output(&["convert", &at("year-2023.nc"), &at("replaced.zarr")]);
    output(&["convert", AIR, &at("replaced.zarr"), "--mode", "overwrite"]);
    for name in ["pattern", "list", "appended", "replaced"] {
        assert_eq!(cells(&at(&format!("{name}.zarr")), "time, lat, lon, t2m"), expected, "{name}");
    }
    // The tables of IN have their names, and the query may end with a semicolon and a comment.
    let sql = "SELECT lat, round(avg(value), 3) AS mean FROM t2m GROUP BY lat; -- means";
    output(&["convert", AIR, &at("mean.tet"), "-c", sql]);
    let expected = output(&[
        "-q",
        "--format",
        "csv",
        "-c",
        &format!("SELECT lat, round(avg(t2m), 3) AS mean FROM '{AIR}' GROUP BY lat ORDER BY lat"),
    ]);
    assert_eq!(cells(&at("mean.tet"), "lat, mean"), expected);
}

#[test]
fn what_cannot_be_converted_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let grids = "../tests/data/foreign/climate_nc4.nc";
    let out = at("x.zarr");
    for (args, message) in [
        (vec!["convert", AIR], "there is only '../examples/data/air.nc'"),
        (vec!["convert", grids, &out], "choose one with the option 'dataset'"),
        (vec!["convert", AIR, &out, "-O", "dataset=other"], "other"),
        (
            vec!["convert", AIR, &out, "--codec", "lzma"],
            "there is no codec 'lzma'; there are zstd, gzip, blosc, blosc:zstd, blosc:lz4, blosc:zlib, none",
        ),
        (vec!["convert", AIR, &out, "-W", "colour=red"], "the format zarr has no option 'colour'"),
        (vec!["convert", AIR, &at("x.grib")], "there is no file type 'grib'"),
        (vec!["convert", AIR, &out, "-c", "SELECT 1); SELECT (2"], "Expected: end of statement"),
    ] {
        let outcome = run(&args);
        assert_eq!(outcome.code, Some(1), "{args:?}");
        assert!(outcome.stderr.contains(message), "{args:?}\n{}", outcome.stderr);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{args:?}");
    }
    let text = output(&["convert", grids, &out, "-O", "dataset=sst,rain"]);
    assert!(text.contains(": 80 rows"), "{text}");
    let rows = |place: &str| cells(place, "time, lat, lon, sst, rain");
    let read = output(&[
        "-q",
        "--format",
        "csv",
        "-c",
        &format!(
            "SELECT time, lat, lon, sst, rain FROM read_array('{grids}', dataset => 'sst,rain') ORDER BY time, lat, lon"
        ),
    ]);
    assert_eq!(rows(&out), read);
    let again = run(&["convert", AIR, &out]);
    assert!(again.stderr.contains("choose a 'mode'"), "{}", again.stderr);
}
