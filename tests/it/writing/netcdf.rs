//! NetCDF files that `COPY` writes, read back.

use super::zarr::Case;
use crate::support::{limited, query, reducing, sorted_rows_from};

const SITES: &str =
    "SELECT * FROM (VALUES ('a', true, 0.5, 'x'), ('b', false, NULL, 'y')) t(site, ok, v, s)";

#[tokio::test]
async fn queries_are_read_back() {
    let case = Case::new(reducing(2, 512)).await;
    let air = "SELECT time, lat, lon, t2m FROM air WHERE time < TIMESTAMP '2023-03-01'";
    let means = "SELECT station, date_part('hour', time) AS hour, avg(value) AS mean, count(*) AS n FROM stations.temperature GROUP BY station, hour";
    let queries = [
        (air, "time, lat, lon, t2m", ""),
        (air, "time, lat, lon, t2m", "'chunks' 'time=1,lat=4,lon=5', 'level' '9'"),
        (air, "time, lat, lon, t2m", "'codec' 'none', 'fill' '-999'"),
        (air, "time, lat, lon, t2m", "'version' 'classic'"),
        (air, "time, lat, lon, t2m", "'version' '64bit-offset', 'codec' 'none'"),
        (air, "time, lat, lon, t2m", "'version' 'cdf5'"),
        (means, "station, hour, mean, n", ""),
        (SITES, "site, ok, v, s", "'dimensions' 'site'"),
        (
            "SELECT lat, avg(t2m) AS t2m, max(CAST(time AS DATE)) AS last, CAST(NULL AS DATE) AS never FROM air GROUP BY lat",
            "lat, t2m, last, never",
            "'chunks' 'lat=2'",
        ),
        (
            "SELECT * FROM (VALUES ('b', 2, 'x', 1), ('a', 2, NULL, 2), ('b', 1, 'zz', 3), ('a', 1, '', NULL)) v(k, n, text, i)",
            "k, n, text, i",
            "'dimensions' 'k, n', 'fill' 'text=none,i=-1', 'chunks' 'k=1'",
        ),
    ];
    for (number, (sql, columns, options)) in queries.into_iter().enumerate() {
        let name = format!("{number}.nc");
        case.copy(sql, &name, options).await.unwrap();
        let read = case.read(&name, columns).await;
        let columns = columns
            .replace("last, never", "CAST(last AS TIMESTAMP(0)), CAST(never AS TIMESTAMP(0))");
        let expected = sorted_rows_from(&case.ctx, &format!("SELECT {columns} FROM ({sql})")).await;
        assert_eq!(read, expected, "{sql} {options}");
    }
}

#[tokio::test]
async fn what_has_no_place_in_netcdf_is_refused_and_leaves_nothing() {
    let case = Case::new(reducing(2, 512)).await;
    let air = "SELECT time, lat, lon, t2m FROM air WHERE time < TIMESTAMP '2023-03-01'";
    let cases = [
        (air, "'shards' 'time=2'", "the format netcdf has no option 'shards'; its options are"),
        (air, "'codec' 'zstd'", "there is no codec 'zstd'; there are deflate, none"),
        (air, "'level' '10'", "deflate has no level 10"),
        (air, "'version' 'hdf4'", "there is no version 'hdf4' of NetCDF"),
        (air, "'version' 'cdf5', 'codec' 'deflate'", "classic NetCDF files have no compression"),
        (air, "'max_bytes' '1000'", "a NetCDF file of 5760 bytes"),
        (air, "'mode' 'append'", "there is no mode 'append'"),
        (
            SITES,
            "'dimensions' 'site', 'version' 'classic'",
            "\"site\": this version of NetCDF has no Utf8",
        ),
        (
            "SELECT x, CAST(x AS BIGINT UNSIGNED) AS v FROM (VALUES (1)) t(x)",
            "'dimensions' 'x', 'version' 'cdf5'",
            "",
        ),
        (
            "SELECT x, CAST(x AS BIGINT) AS v FROM (VALUES (CAST(1 AS INT))) t(x)",
            "'dimensions' 'x', 'version' 'classic'",
            "\"v\": this version of NetCDF has no Int64",
        ),
        (
            "SELECT CAST(x AS INT) AS x, arrow_cast(9007199254740993, 'Timestamp(Nanosecond, None)') AS v FROM (VALUES (1)) t(x)",
            "'dimensions' 'x', 'version' 'classic'",
            "the time 9007199254740993 nanoseconds since 1970-01-01 has more digits than a double",
        ),
        (
            "SELECT time, lat, lon, t2m FROM air WHERE t2m > 1000",
            "",
            "\"time\" without labels, because a NetCDF dimension of no length is an unlimited one",
        ),
        (
            "SELECT x, 7 AS v FROM (VALUES (1)) t(x)",
            "'dimensions' 'x', 'fill' '7'",
            "the cell x=1 of \"v\" cannot be written: it has the fill value",
        ),
    ];
    for (sql, options, message) in cases {
        let copied = case.copy(sql, "x.nc", options).await;
        if message.is_empty() {
            copied.unwrap();
            std::fs::remove_file(case.at("x.nc")).unwrap();
            continue;
        }
        let error = copied.unwrap_err();
        assert!(error.contains(message), "{sql} {options}\n{error}");
        let left = std::fs::read_dir(case.at("")).unwrap().count();
        assert_eq!(left, 0, "{sql} {options}");
    }
    let copy = format!("COPY ({air}) TO '{}' STORED AS NETCDF", case.at("é.nc").display());
    let error = query(&case.ctx, &copy).await.unwrap_err().to_string();
    assert!(error.contains("characters that stores escape"), "{error}");
}

/// The page about writing lists the options of each format.
#[tokio::test]
async fn options_of_all_formats_are_on_the_page() {
    let page = std::fs::read_to_string(crate::support::shipped("docs/writing.md")).unwrap();
    let case = Case::new(reducing(1, 512)).await;
    for (name, format) in
        [("x.zarr", "Zarr"), ("x.nc", "NetCDF"), ("x.tet", ".tet"), ("x.tdb", "TileDB")]
    {
        let error = case.copy(SITES, name, "'no' 'x'").await.unwrap_err();
        let options = error.trim().rsplit_once("its options are ").unwrap().1.split(", ");
        let options: Vec<&str> = options.collect();
        assert!(options.len() > 6, "{error}");
        for option in options {
            let is_listed = |line: &str| {
                line.starts_with(&format!("| `{option}` |"))
                    || line
                        .strip_prefix(&format!("| `{option}` ("))
                        .and_then(|line| line.split_once(") |"))
                        .is_some_and(|(formats, _)| formats.split(", ").any(|it| it == format))
            };
            assert!(page.lines().any(is_listed), "{option} of {format}");
        }
    }
}

/// A file is put together in memory, so it must fit there; a store need not.
#[tokio::test]
async fn files_that_do_not_fit_in_memory_are_refused() {
    let case = Case::new(limited(1, 8192, 16 << 20)).await;
    let rows = "SELECT value / 900 AS y, value % 900 AS x, value * 0.5 AS v FROM range(810000)";
    let options = "'dimensions' 'y, x', 'chunks' 'y=10', 'codec' 'none'";
    let error = case.copy(rows, "x.nc", options).await.unwrap_err();
    assert!(error.contains("the array does not fit in memory; write Zarr"), "{error}");
    assert!(!case.at("x.nc").exists());
    case.copy(rows, "x.zarr", options).await.unwrap();
}

/// A file takes the place of another one only on request, and only when it is complete.
#[tokio::test]
async fn a_file_is_replaced_on_request() {
    let case = Case::new(limited(2, 512, 64 << 20)).await;
    let rows = |v: i32| format!("SELECT x, {v} AS v FROM (VALUES (1), (2)) t(x)");
    case.copy(&rows(1), "x.nc", "'dimensions' 'x'").await.unwrap();
    let error = case.copy(&rows(2), "x.nc", "'dimensions' 'x'").await.unwrap_err();
    assert!(error.contains("is there already; delete it first, or replace it"), "{error}");
    let failing = "SELECT x, 7 AS v FROM (VALUES (1)) t(x)";
    let options = "'dimensions' 'x', 'mode' 'overwrite'";
    case.copy(failing, "x.nc", &format!("{options}, 'fill' '7'")).await.unwrap_err();
    assert_eq!(case.read("x.nc", "v").await, [["1"], ["1"]]);
    case.copy(&rows(2), "x.nc", options).await.unwrap();
    assert_eq!(case.read("x.nc", "v").await, [["2"], ["2"]]);
    // The file that is replaced may be the one that the query reads.
    let own = format!("SELECT x, v + 1 AS v FROM read_array('{}')", case.at("x.nc").display());
    case.copy(&own, "x.nc", options).await.unwrap();
    assert_eq!(case.read("x.nc", "v").await, [["3"], ["3"]]);
}
