//! Messages about common mistakes: wrong paths, names, options and calls. The tests compare whole messages,
//! which must state what is wrong, where, and what to do.

use std::path::Path;

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOpener, ArrayOptions, GridfusionSessionContextExt};

use crate::support::{F32, Layout, TestDataset, query, reducing, tet_bytes};

const STATIONS: &str = "examples/data/stations.tet";
const OVERLAP: &str = "tests/data/tiledb/overlap";

/// A directory of files and folders that are empty, damaged or unsuitable.
fn wrong_things() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("empty.tet"), b"").unwrap();
    std::fs::write(path.join("text.tet"), "time,station,value\n".repeat(9)).unwrap();
    let nothing = tet_bytes(&[], &Layout::default());
    std::fs::write(path.join("nothing.tet"), nothing).unwrap();
    let pair = |name: &str, len: u64| {
        TestDataset::new(name, F32, &[len], &[len], vec![0; 4 * len as usize])
    };
    let mixed = tet_bytes(&[pair("a", 2), pair("b", 3)], &Layout::default());
    std::fs::write(path.join("mixed.tet"), mixed).unwrap();
    std::fs::create_dir(path.join("folder")).unwrap();
    std::fs::create_dir(path.join("broken.tet.d")).unwrap();
    directory
}

/// Collects messages, with `DIR` for the directory, whose name differs from run to run.
struct Mistakes<'a> {
    directory: &'a Path,
    messages: String,
}

impl Mistakes<'_> {
    fn note<T>(&mut self, what: &str, result: Result<T, DataFusionError>) {
        let Err(error) = result else { panic!("{what}: no error") };
        let directory = self.directory.to_str().unwrap();
        let message = error.to_string().replace(directory, "DIR");
        let what = what.replace(directory, "DIR");
        self.messages += &format!("{}\n    {message}\n", what.trim_end());
    }

    async fn sql(&mut self, ctx: &SessionContext, sql: &str) {
        self.note(sql, Box::pin(query(ctx, sql)).await);
    }
}

#[tokio::test]
async fn locations() {
    let things = wrong_things();
    let mut found = Mistakes { directory: things.path(), messages: String::new() };
    let ctx = reducing(1, 8192);
    let directory = things.path().display();
    for name in
        ["none.tet", "empty.tet", "text.tet", "nothing.tet", "mixed.tet", "folder", "broken.tet.d"]
    {
        let location = format!("{directory}/{name}");
        let options = ArrayOptions::default();
        let table = ctx.register_array("t", &location, options.clone()).await;
        found.note(&format!("a table of {location}"), table);
        if !["nothing.tet", "mixed.tet"].contains(&name) {
            let schema = ctx.register_array_schema("s", &location, options).await;
            found.note(&format!("a schema of {location}"), schema);
        }
    }
    for location in ["s3://bucket/x.tet", "nowhere://x.tet", "file://host/x.tet", ""] {
        let table = ctx.register_array("t", location, ArrayOptions::default()).await;
        found.note(&format!("a table of '{location}'"), table);
    }
    let table = ctx.register_array("t", "tests/data/none", ArrayOptions::default()).await;
    found.note("an array of tests/data/none", table);
    for (format, location) in [
        ("tiledb", STATIONS),
        ("tiledb", "tests/data"),
        ("tet", OVERLAP),
        ("tet", "tests/data/tiledb"),
        ("grib", OVERLAP),
    ] {
        let opener = ArrayOpener::from_session(&ctx.state());
        let table = opener.table(location, Some(format), &ArrayOptions::default()).await;
        found.note(&format!("{location} as {format}"), table.map_err(DataFusionError::from));
    }
    insta::assert_snapshot!(found.messages, @r#"
    a table of DIR/none.tet
        External error: DIR/none.tet: cannot open the file: No such file or directory (os error 2)
    a schema of DIR/none.tet
        External error: DIR/none.tet: cannot open the file: No such file or directory (os error 2)
    a table of DIR/empty.tet
        External error: DIR/empty.tet: corrupt superblock at byte 0: the file has 0 bytes; a .tet file has at least 32
    a schema of DIR/empty.tet
        External error: DIR/empty.tet: corrupt superblock at byte 0: the file has 0 bytes; a .tet file has at least 32
    a table of DIR/text.tet
        External error: DIR/text.tet: corrupt superblock at byte 0: found "time", expected "TETR" (a .tet file)
    a schema of DIR/text.tet
        External error: DIR/text.tet: corrupt superblock at byte 0: found "time", expected "TETR" (a .tet file)
    a table of DIR/nothing.tet
        Error during planning: DIR/nothing.tet: the file has no data variable
    a table of DIR/mixed.tet
        Error during planning: DIR/mixed.tet: the file has several data variables over different dimensions, which cannot be columns of one table; choose one with the option 'dataset', or several with commas between them: "a" (dim_0: 2), "b" (dim_0: 3)
    a table of DIR/folder
        Error during planning: DIR/folder: no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file in this directory; it is empty
    a schema of DIR/folder
        Error during planning: DIR/folder: no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file in this directory; it is empty
    a table of DIR/broken.tet.d
        Error during planning: DIR/broken.tet.d: this folder is not a .tet.d package: it has no PROTOCOL
    a schema of DIR/broken.tet.d
        Error during planning: DIR/broken.tet.d: this folder is not a .tet.d package: it has no PROTOCOL
    a table of 's3://bucket/x.tet'
        Error during planning: no object store is registered for 's3://bucket/'; register one with `SessionContext::register_object_store`
    a table of 'nowhere://x.tet'
        Error during planning: no object store is registered for 'nowhere://x.tet/'; register one with `SessionContext::register_object_store`
    a table of 'file://host/x.tet'
        Error during planning: 'file://host/x.tet' is not the URL of a local file
    a table of ''
        Error during planning: the location is empty; give a path or a URL
    an array of tests/data/none
        External error: tests/data/none: cannot open the file: No such file or directory (os error 2)
    examples/data/stations.tet as tiledb
        Error during planning: examples/data/stations.tet: this is a .tet file, not a TileDB array; read it with STORED AS TET, read_tet or register_array
    tests/data as tiledb
        Error during planning: tests/data: no TileDB array in this folder, and it is no TileDB group; it holds calendars, foreign, icechunk, monthly, parity.tet, references, singles, text, tiledb, upstream and 1 more
    tests/data/tiledb/overlap as tet
        Error during planning: tests/data/tiledb/overlap: this is a TileDB array, not a .tet file or .tet.d package; read it with STORED AS TILEDB, read_tiledb or register_array
    tests/data/tiledb as tet
        Error during planning: tests/data/tiledb: this folder is not a .tet.d package: it has no PROTOCOL; it holds README.md, anonymous, anonymous.expected.json, cells.py, chunks, chunks.expected.json, commits, commits.expected.json, consolidated, consolidated.expected.json and 65 more
    tests/data/tiledb/overlap as grib
        Error during planning: unknown format 'grib'; the formats are tet, tiledb, zarr, icechunk, netcdf
    "#);
}

/// Files and folders with the signatures of other formats.
fn foreign_things() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let file = |name: &str, head: &[u8]| {
        std::fs::write(path.join(name), [head, &[0; 64]].concat()).unwrap();
    };
    file("named.tet", b"\x89HDF\r\n\x1a\n");
    file("fields.grib", b"GRIB");
    file("rows.parquet", b"PAR1");
    file("era5.nc.gz", b"\x1f\x8b\x08");
    std::fs::write(path.join("rows.csv"), "a,b\n1,2\n").unwrap();
    directory
}

#[tokio::test]
async fn other_formats_are_named_at_every_door() {
    let things = foreign_things();
    let mut found = Mistakes { directory: things.path(), messages: String::new() };
    let ctx = reducing(1, 8192);
    ctx.enable_gridfusion_urls();
    let directory = things.path().display();
    for name in ["named.tet", "fields.grib", "rows.parquet", "era5.nc.gz", "rows.csv"] {
        let location = format!("{directory}/{name}");
        let table = ctx.register_array("t", &location, ArrayOptions::default()).await;
        found.note(name, table);
        // Every other interface gives the same message.
        let message = found.messages.trim_end().rsplit_once("    ").unwrap().1.to_owned();
        let mut others = Mistakes { directory: things.path(), messages: String::new() };
        let schema = ctx.register_array_schema("s", &location, ArrayOptions::default()).await;
        others.note("a schema", schema);
        if name != "named.tet" {
            let array = ctx.register_array("t", &location, ArrayOptions::default()).await;
            others.note("an array", array);
        }
        let sql = format!("CREATE EXTERNAL TABLE t STORED AS TET LOCATION '{location}'");
        others.sql(&ctx, &sql).await;
        others.sql(&ctx, &format!("SELECT * FROM read_tet('{location}')")).await;
        others.sql(&ctx, &format!("SELECT * FROM tet_info('{location}')")).await;
        if !["rows.parquet", "rows.csv", "era5.nc.gz"].contains(&name) {
            others.sql(&ctx, &format!("SELECT * FROM '{location}'")).await;
        }
        let same = others.messages.matches(&message).count();
        assert_eq!(same, others.messages.lines().count() / 2, "{message}\n{}", others.messages);
    }
    insta::assert_snapshot!(found.messages, @r#"
    named.tet
        Error during planning: DIR/named.tet: this is a NetCDF file, not a .tet file or .tet.d package; read it with STORED AS NETCDF, read_netcdf or register_array
    fields.grib
        Error during planning: DIR/fields.grib: this is a GRIB file, which gridfusion does not read; convert it to NetCDF with xarray and cfgrib
    rows.parquet
        Error during planning: DIR/rows.parquet: this is a Parquet file, which gridfusion does not read; query it by its path, in single quotes: SELECT * FROM 'PATH'
    era5.nc.gz
        Error during planning: DIR/era5.nc.gz: this is a compressed file or an archive, which gridfusion does not read; unpack it first
    rows.csv
        Error during planning: DIR/rows.csv: this is a CSV file, which gridfusion does not read; query it by its path, in single quotes: SELECT * FROM 'PATH'
    "#);
    let sql = format!("SELECT a + b FROM '{directory}/rows.csv'");
    assert!(query(&ctx, &sql).await.is_ok(), "DataFusion reads CSV files");
}

#[tokio::test]
async fn a_place_without_arrays_lists_ten_names() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..2000 {
        std::fs::write(directory.path().join(format!("{number:04}.grib")), "").unwrap();
    }
    let mut found = Mistakes { directory: directory.path(), messages: String::new() };
    let (ctx, location) = (reducing(1, 8192), directory.path().to_str().unwrap());
    let (tet, tiledb) = (ArrayOptions::default(), ArrayOptions::default());
    found.note("table", ctx.register_array("t", location, tet.clone()).await);
    found.note("array", ctx.register_array("t", location, tiledb).await);
    found.note("catalog", ctx.register_array_catalog("c", location, tet).await);
    insta::assert_snapshot!(found.messages, @r#"
    table
        Error during planning: DIR: no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file in this directory; it holds 0000.grib, 0001.grib, 0002.grib, 0003.grib, 0004.grib, 0005.grib, 0006.grib, 0007.grib, 0008.grib, 0009.grib and 1990 more; 0000.grib is a GRIB file: convert it to NetCDF with xarray and cfgrib
    array
        Error during planning: DIR: no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file in this directory; it holds 0000.grib, 0001.grib, 0002.grib, 0003.grib, 0004.grib, 0005.grib, 0006.grib, 0007.grib, 0008.grib, 0009.grib and 1990 more; 0000.grib is a GRIB file: convert it to NetCDF with xarray and cfgrib
    catalog
        Error during planning: DIR: no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file in this directory; it holds 0000.grib, 0001.grib, 0002.grib, 0003.grib, 0004.grib, 0005.grib, 0006.grib, 0007.grib, 0008.grib, 0009.grib and 1990 more; 0000.grib is a GRIB file: convert it to NetCDF with xarray and cfgrib
    "#);
}

#[tokio::test]
async fn names_and_options() {
    let things = wrong_things();
    let mut found = Mistakes { directory: things.path(), messages: String::new() };
    let ctx = reducing(1, 8192);
    for options in [
        "",
        "OPTIONS ('dataset' 'tempreture')",
        "OPTIONS ('dataset' 'Temperature')",
        "OPTIONS ('datset' 'temperature')",
        "OPTIONS ('dataset' 'temperature', 'io' 'fast')",
        "OPTIONS ('dataset' 'temperature', 'nan_as_null' 'maybe')",
        "OPTIONS ('dataset' 'temperature', 'generation' '1')",
        "OPTIONS ('dataset' 'temperature', 'generation' 'last')",
        "OPTIONS ('dataset' 'temperature', 'timestamp' '1')",
        "PARTITIONED BY (station)",
    ] {
        let sql = format!("CREATE EXTERNAL TABLE t STORED AS TET LOCATION '{STATIONS}' {options}");
        found.sql(&ctx, &sql).await;
    }
    for options in ["OPTIONS ('dataset' 'a')", "OPTIONS ('timestamp' 'yesterday')"] {
        let sql =
            format!("CREATE EXTERNAL TABLE t STORED AS TILEDB LOCATION '{OVERLAP}' {options}");
        found.sql(&ctx, &sql).await;
    }
    for sql in [
        "CREATE EXTERNAL TABLE t (a INT) STORED AS TET LOCATION 'examples/data/stations.tet'",
        "CREATE EXTERNAL TABLE t STORED AS TETT LOCATION 'examples/data/stations.tet'",
        "SET gridfusion.reduc = true",
        "SET gridfusion.optimizer.enable_reduce = maybe",
    ] {
        found.sql(&ctx, sql).await;
    }
    let options = ArrayOptions::default().with_dataset("tempreture");
    found.note("a dataset from Rust", ctx.register_array("t", STATIONS, options).await);
    insta::assert_snapshot!(found.messages, @r#"
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet'
        Error during planning: examples/data/stations.tet: the file has several data variables over different dimensions, which cannot be columns of one table; choose one with the option 'dataset', or several with commas between them; the option 'union_by_name' repeats those of fewer dimensions: "temperature" (time: 1440, station: 6), "precipitation" (time: 1440, station: 6), "elevation" (station: 6)
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet' OPTIONS ('dataset' 'tempreture')
        Error during planning: examples/data/stations.tet: no dataset "tempreture"; the file has "temperature", "precipitation", "elevation", "time"
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet' OPTIONS ('dataset' 'Temperature')
        Error during planning: examples/data/stations.tet: no dataset "Temperature"; the file has "temperature", "precipitation", "elevation", "time"
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet' OPTIONS ('datset' 'temperature')
        Error during planning: unknown option 'datset', did you mean 'dataset'? The options are dataset, concat_dimension, stack, union_by_name, overlap, skip_unreadable, generation, decode_times, io, nan_as_null, fill_as_null, index_columns, file_column, trust_zone_maps
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet' OPTIONS ('dataset' 'temperature', 'io' 'fast')
        Error during planning: io = 'fast', expected 'mmap' or 'pread'
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet' OPTIONS ('dataset' 'temperature', 'nan_as_null' 'maybe')
        Error during planning: option 'nan_as_null' is 'maybe', expected 'true' or 'false'
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet' OPTIONS ('dataset' 'temperature', 'generation' '1')
        Error during planning: examples/data/stations.tet: a file has no generations; option 'generation' is for .tet.d packages
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet' OPTIONS ('dataset' 'temperature', 'generation' 'last')
        Error during planning: option 'generation' is 'last', expected a number
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet' OPTIONS ('dataset' 'temperature', 'timestamp' '1')
        Error during planning: unknown option 'timestamp', which is for TileDB tables only; the options are dataset, concat_dimension, stack, union_by_name, overlap, skip_unreadable, generation, decode_times, io, nan_as_null, fill_as_null, index_columns, file_column, trust_zone_maps
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'examples/data/stations.tet' PARTITIONED BY (station)
        Error during planning: a TET table has no PARTITIONED BY
    CREATE EXTERNAL TABLE t STORED AS TILEDB LOCATION 'tests/data/tiledb/overlap' OPTIONS ('dataset' 'a')
        Error during planning: tests/data/tiledb/overlap: no array "a"; there is "overlap"
    CREATE EXTERNAL TABLE t STORED AS TILEDB LOCATION 'tests/data/tiledb/overlap' OPTIONS ('timestamp' 'yesterday')
        Error during planning: option 'timestamp' is 'yesterday', expected milliseconds since 1970 or a time like '2024-03-01 06:30:00'
    CREATE EXTERNAL TABLE t (a INT) STORED AS TET LOCATION 'examples/data/stations.tet'
        Error during planning: 'examples/data/stations.tet' is there, and a TET table takes its columns from the stored arrays; leave the column list out
    CREATE EXTERNAL TABLE t STORED AS TETT LOCATION 'examples/data/stations.tet'
        Execution error: Unable to find factory for TETT
    SET gridfusion.reduc = true
        Error during planning: unknown setting 'gridfusion.reduc', did you mean 'gridfusion.optimizer.enable_reduce'? The settings are decode_times, full_domain, text_as_binary, text_encoding, time_as_integer, coordinates, valid_range, metadata_limit, fill_as_null, io, nan_as_null, index_columns, file_column, trust_zone_maps, optimizer.enable_all, optimizer.enable_reduce, optimizer.enable_reduce_weights, optimizer.enable_eager_aggregation, optimizer.enable_align_joins, optimizer.enable_reduce_windows, optimizer.enable_top_rows, optimizer.enable_lookup_joins, optimizer.enable_join_reduce, optimizer.enable_grid_windows, optimizer.enable_copies, reduce_memory, declare_range, remote_requests, remote_bytes, remote_timeout, remote_tries, remote_gap, remote_merge, remote_cache, remote_check
    SET gridfusion.optimizer.enable_reduce = maybe
        Error during planning: option 'optimizer.enable_reduce' is 'maybe', expected 'true' or 'false'
    a dataset from Rust
        Error during planning: examples/data/stations.tet: no dataset "tempreture"; the file has "temperature", "precipitation", "elevation", "time"
    "#);
}

#[tokio::test]
async fn queries_and_calls() {
    let things = wrong_things();
    let mut found = Mistakes { directory: things.path(), messages: String::new() };
    let ctx = reducing(1, 8192);
    ctx.register_array_schema("stations", STATIONS, ArrayOptions::default()).await.unwrap();
    for sql in [
        "SELECT value FROM stations.tempreture",
        "SELECT station_idx FROM stations.temperature",
        "INSERT INTO stations.temperature VALUES ('2024-01-01T00:00:00', 'Oslo', 1)",
        "SELECT * FROM tet_info()",
        "SELECT * FROM tet_info('none.tet')",
        "SELECT * FROM tet_info('examples/data/stations.tet', 'tempreture')",
        "SELECT * FROM tet_info(1.5)",
        "SELECT * FROM tet_chunks('examples/data/stations.tet', 'time', 'io')",
        "SELECT * FROM tet_chunks('examples/data/stations.tet', 'time', 'ios', 'mmap')",
        "SELECT * FROM read_tiledb('tests/data/tiledb/weather')",
    ] {
        found.sql(&ctx, sql).await;
    }
    insta::assert_snapshot!(found.messages, @r#"
    SELECT value FROM stations.tempreture
        Error during planning: table 'datafusion.stations.tempreture' not found
    SELECT station_idx FROM stations.temperature
        Schema error: No field named station_idx. Did you mean 'stations.temperature.station'?
    Valid fields are stations.temperature.time, stations.temperature.station, stations.temperature.value.
    INSERT INTO stations.temperature VALUES ('2024-01-01T00:00:00', 'Oslo', 1)
        This feature is not implemented: INSERT INTO an array of the format tet
    SELECT * FROM tet_info()
        Error during planning: tet_info takes a path, optionally a dataset, then option names and values in pairs, found 0 arguments
    SELECT * FROM tet_info('none.tet')
        External error: none.tet: cannot open the file: No such file or directory (os error 2)
    SELECT * FROM tet_info('examples/data/stations.tet', 'tempreture')
        Error during planning: examples/data/stations.tet: no dataset "tempreture"; the file has "temperature", "precipitation", "elevation", "time"
    SELECT * FROM tet_info(1.5)
        Error during planning: tet_info takes a path as text, or a list of paths, found 1.5
    SELECT * FROM tet_chunks('examples/data/stations.tet', 'time', 'io')
        Error during planning: unknown option 'time'; the options are dataset, concat_dimension, stack, union_by_name, overlap, skip_unreadable, generation, decode_times, io, nan_as_null, fill_as_null, index_columns, file_column, trust_zone_maps
    SELECT * FROM tet_chunks('examples/data/stations.tet', 'time', 'ios', 'mmap')
        Error during planning: unknown option 'ios', did you mean 'io'? The options are dataset, concat_dimension, stack, union_by_name, overlap, skip_unreadable, generation, decode_times, io, nan_as_null, fill_as_null, index_columns, file_column, trust_zone_maps
    SELECT * FROM read_tiledb('tests/data/tiledb/weather')
        Error during planning: tests/data/tiledb/weather: there are several arrays over different dimensions, which cannot be columns of one table; choose one with the option 'dataset', or several with commas between them: "station" (station_idx: 3), "temperature" (run: 3, valid: 8)
    "#);
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "needs a user who may not read every file, as root may"]
async fn files_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;

    let things = wrong_things();
    let path = things.path().join("mixed.tet");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    assert!(std::fs::read(&path).is_err(), "this user may read every file");
    let mut found = Mistakes { directory: things.path(), messages: String::new() };
    let ctx = reducing(1, 8192);
    for io in ["mmap", "pread"] {
        let sql = format!(
            "CREATE EXTERNAL TABLE t STORED AS TET LOCATION '{}' OPTIONS ('dataset' 'a', 'io' '{io}')",
            path.display()
        );
        found.sql(&ctx, &sql).await;
    }
    let denied = found.messages.matches("mixed.tet: cannot open the file: Permission denied");
    assert_eq!(denied.count(), 2, "{}", found.messages);
}
