//! Groups and folders of TileDB arrays as tables, through every interface, and the messages about
//! common mistakes.

use std::path::Path;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use gridfusion::source::Detail;
use gridfusion::verify::Depth;
use gridfusion::{ArrayOpener, ArrayOptions, GridfusionSessionContextExt};
use insta::assert_snapshot;

use crate::support::{query, reducing, rows_from};

const GROUP: &str = "tests/data/tiledb/stations";
const TET: &str = "examples/data/stations.tet";

fn options() -> ArrayOptions {
    ArrayOptions::default()
}

async fn error(ctx: &SessionContext, sql: &str) -> String {
    query(ctx, sql).await.expect_err(sql).to_string()
}

/// Two arrays of a group give the same columns as two variables of a `.tet` file.
#[tokio::test]
async fn all_doors_lead_to_the_same_columns() {
    let ctx = reducing(2, 8192);
    ctx.enable_gridfusion_urls();
    let both = "temperature, precipitation";
    ctx.register_array("tet", TET, ArrayOptions::default().with_dataset(both)).await.unwrap();
    ctx.register_array("rust", GROUP, options().with_dataset(both)).await.unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE sql STORED AS TILEDB LOCATION '{GROUP}' OPTIONS (dataset '{both}')"
    );
    query(&ctx, &create).await.unwrap();
    let select = "SELECT count(*), corr(temperature, precipitation), max(temperature) FROM";
    let expected = rows_from(&ctx, &format!("{select} tet")).await;
    for table in [
        "rust".to_owned(),
        "sql".into(),
        format!("read_tiledb('{GROUP}', '{both}')"),
        format!("read_tiledb('{GROUP}', dataset => 'precipitation,temperature')"),
        format!("'{GROUP}#{both}'"),
    ] {
        assert_eq!(rows_from(&ctx, &format!("{select} {table}")).await, expected, "{table}");
    }
    let frame = ctx.read_array(GROUP, options().with_dataset(both)).await.unwrap();
    let names: Vec<&str> = frame.schema().fields().iter().map(|it| it.name().as_str()).collect();
    assert_eq!(names, ["time_idx", "station_idx", "temperature", "precipitation"]);
    // One array of the group is the same table as the array alone.
    let one = rows_from(&ctx, &format!("SELECT * FROM '{GROUP}#elevation' LIMIT 1")).await;
    assert_eq!(one, [["0", "12.0"]]);
    let facts = format!(
        "SELECT value FROM tiledb_info('{GROUP}', 'elevation') WHERE name = 'value' AND property = 'datatype'"
    );
    assert_eq!(rows_from(&ctx, &facts).await, [["FLOAT32"]]);
}

/// A member has the name that the group gives it.
#[tokio::test]
async fn members_go_by_their_names() {
    let ctx = reducing(1, 8192);
    let group = "tests/data/tiledb/weather";
    let sql = format!("SELECT count(temperature) FROM read_tiledb('{group}', 'temperature')");
    assert_eq!(rows_from(&ctx, &sql).await, [["23"]]);
    // A folder whose only array is a coordinate.
    let folder = tempfile::tempdir().unwrap();
    let copied = folder.path().join("station_idx");
    copy_folder(Path::new("tests/data/tiledb/weather/station"), &copied);
    let here = folder.path().to_str().unwrap();
    let message = error(&ctx, &format!("SELECT * FROM read_tiledb('{here}')")).await;
    assert!(message.contains("all arrays here are coordinates"), "{message}");
    let sql = format!("SELECT count(*) FROM read_tiledb('{here}', 'station_idx')");
    assert_eq!(rows_from(&ctx, &sql).await, [["3"]]);
    // Next to coordinates, the only other array is the table. Its column has the array's name, as beside other arrays.
    copy_folder(Path::new("tests/data/tiledb/weather/forecast"), &folder.path().join("forecast"));
    ctx.enable_gridfusion_urls();
    let sql = format!("SELECT count(forecast) FROM '{here}'");
    assert_eq!(rows_from(&ctx, &sql).await, [["23"]]);
}

/// In a URL, names of folders are escaped.
#[tokio::test]
async fn folders_may_have_any_name() {
    let ctx = reducing(1, 8192);
    let folder = tempfile::tempdir().unwrap();
    for name in ["plain", "run#1", "50%25", "what?"] {
        copy_folder(Path::new("tests/data/tiledb/weather/station"), &folder.path().join(name));
    }
    let path = folder.path().to_str().unwrap();
    for location in [path.to_owned(), format!("file://{path}")] {
        let group = ArrayOpener::from_session(&ctx.state())
            .group(&location, None, &options())
            .await
            .unwrap();
        assert_eq!(group.names(), ["50%25", "plain", "run#1", "what?"], "{location}");
        let sql = format!("SELECT count(*) FROM read_tiledb('{location}', 'run#1')");
        assert_eq!(rows_from(&ctx, &sql).await, [["3"]], "{location}");
    }
}

/// A folder with one array, which has not the name of its folder, beside an array.
#[tokio::test]
async fn variables_of_other_names_are_listed() {
    let ctx = reducing(1, 8192);
    let folder = tempfile::tempdir().unwrap();
    for path in ["plain", "folder/other"] {
        copy_folder(Path::new("tests/data/tiledb/weather/station"), &folder.path().join(path));
    }
    let path = folder.path().to_str().unwrap();
    let sql = format!("SELECT * FROM read_tiledb(['{path}/plain', '{path}/folder'])");
    let found = error(&ctx, &sql).await;
    assert!(found.contains("its variables are other, not plain"), "{found}");
}

/// A damaged group in a folder is left out, and both the description and the verification report it.
#[tokio::test]
async fn folders_that_are_left_out_are_reported() {
    let ctx = reducing(1, 8192);
    let folder = tempfile::tempdir().unwrap();
    copy_folder(Path::new("tests/data/tiledb/weather/station"), &folder.path().join("plain"));
    copy_folder(Path::new("tests/data/tiledb/weather"), &folder.path().join("broken"));
    for entry in std::fs::read_dir(folder.path().join("broken/__group")).unwrap() {
        std::fs::write(entry.unwrap().path(), "damaged").unwrap();
    }
    let location = folder.path().to_str().unwrap();
    let group =
        ArrayOpener::from_session(&ctx.state()).group(location, None, &options()).await.unwrap();
    assert_eq!(group.names(), ["plain"]);
    let described = group.describe(&Detail::default()).await.unwrap();
    let warnings = described.pages[0].warnings.join("\n");
    assert!(
        warnings.starts_with("left out: ") && warnings.contains("broken: __group/"),
        "{warnings}"
    );
    let reports = group.verify(Depth::Structure, &Arc::default()).await;
    assert!(reports.iter().any(|(_, report)| !report.is_ok()), "{reports:#?}");
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => _ = std::fs::copy(entry.path(), to).unwrap(),
        }
    }
}

#[tokio::test]
async fn mistakes_are_explained() {
    let ctx = reducing(1, 8192);
    ctx.enable_gridfusion_urls();
    let mut found = String::new();
    for sql in [
        "SELECT * FROM read_tiledb('tests/data/tiledb/stations')",
        "SELECT * FROM 'tests/data/tiledb/weather'",
        "SELECT * FROM read_tiledb('tests/data/tiledb/weather', 'forecast')",
        "SELECT * FROM read_tiledb('tests/data/tiledb/stations', 'temperature, elevation')",
        "SELECT * FROM read_tiledb('tests/data/tiledb/overlap', 'a')",
        "SELECT * FROM read_tiledb('tests/data/tiledb/overlap', 'a', dataset => 'a')",
        "SELECT * FROM read_tiledb('tests/data')",
        "SELECT * FROM read_tiledb('tests/data/tiledb/weather', 'station', concat_dimension => 'x', generation => 1)",
        "SELECT * FROM read_tiledb(['tests/data/tiledb/overlap', 'tests/data/tiledb/nullable'])",
        "SELECT * FROM read_tiledb('examples/data/stations.tet')",
        "CREATE EXTERNAL TABLE t STORED AS TILEDB LOCATION 'examples/data/stations.tet'",
        "CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'tests/data/tiledb/overlap'",
        "SELECT * FROM read_tet('tests/data/tiledb/weather')",
        "SELECT * FROM read_tet('tests/data/tiledb')",
        "SELECT * FROM read_tet('tests/data')",
    ] {
        found += &format!("{sql}\n    {}\n", error(&ctx, sql).await);
    }
    let schema = ctx.register_array_schema("s", GROUP, options().with_dataset("t")).await;
    found += &format!("a schema\n    {}\n", schema.unwrap_err());
    let array =
        ArrayOpener::from_session(&ctx.state()).group(TET, Some("tiledb"), &options()).await;
    found += &format!("an opened file\n    {}\n", array.unwrap_err());
    assert_snapshot!(found, @r#"
    SELECT * FROM read_tiledb('tests/data/tiledb/stations')
        Error during planning: tests/data/tiledb/stations: there are several arrays over different dimensions, which cannot be columns of one table; choose one with the option 'dataset', or several with commas between them; the option 'union_by_name' repeats those of fewer dimensions: "elevation" (station_idx: 6), "precipitation" (time_idx: 1440, station_idx: 6), "station" (station_idx: 6), "temperature" (time_idx: 1440, station_idx: 6), "time" (time_idx: 1440)
    SELECT * FROM 'tests/data/tiledb/weather'
        Error during planning: tests/data/tiledb/weather: there are several arrays over different dimensions, which cannot be columns of one table; choose one with the option 'dataset', or several with commas between them: "station" (station_idx: 3), "temperature" (run: 3, valid: 8)
    SELECT * FROM read_tiledb('tests/data/tiledb/weather', 'forecast')
        Error during planning: tests/data/tiledb/weather: no array "forecast"; there is "station", "temperature"
    SELECT * FROM read_tiledb('tests/data/tiledb/stations', 'temperature, elevation')
        Error during planning: tests/data/tiledb/stations: "elevation" cannot be a column beside "temperature": its dimensions are station_idx, not time_idx, station_idx
    SELECT * FROM read_tiledb('tests/data/tiledb/overlap', 'a')
        Error during planning: tests/data/tiledb/overlap: no array "a"; there is "overlap"
    SELECT * FROM read_tiledb('tests/data/tiledb/overlap', 'a', dataset => 'a')
        Error during planning: read_tiledb: the dataset is given twice
    SELECT * FROM read_tiledb('tests/data')
        Error during planning: tests/data: no TileDB array in this folder, and it is no TileDB group; it holds calendars, foreign, icechunk, monthly, parity.tet, references, singles, text, tiledb, upstream and 1 more
    SELECT * FROM read_tiledb('tests/data/tiledb/weather', 'station', concat_dimension => 'x', generation => 1)
        Error during planning: unknown option 'generation', which is for .tet tables only; the options are dataset, concat_dimension, stack, union_by_name, overlap, skip_unreadable, timestamp, timestamp_start, encryption_key, full_domain, text_as_binary, text_encoding, time_as_integer, io, nan_as_null, fill_as_null, index_columns, file_column, trust_zone_maps
    SELECT * FROM read_tiledb(['tests/data/tiledb/overlap', 'tests/data/tiledb/nullable'])
        Error during planning: the files cannot be one table; compared with tests/data/tiledb/overlap:
      tests/data/tiledb/nullable: its dimensions are x, not r, c
    make a table of each kind of file, and combine the tables with UNION ALL
    SELECT * FROM read_tiledb('examples/data/stations.tet')
        Error during planning: examples/data/stations.tet: this is a .tet file, not a TileDB array; read it with STORED AS TET, read_tet or register_array
    CREATE EXTERNAL TABLE t STORED AS TILEDB LOCATION 'examples/data/stations.tet'
        Error during planning: examples/data/stations.tet: this is a .tet file, not a TileDB array; read it with STORED AS TET, read_tet or register_array
    CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'tests/data/tiledb/overlap'
        Error during planning: tests/data/tiledb/overlap: this is a TileDB array, not a .tet file or .tet.d package; read it with STORED AS TILEDB, read_tiledb or register_array
    SELECT * FROM read_tet('tests/data/tiledb/weather')
        Error during planning: tests/data/tiledb/weather: this is a group or folder of TileDB arrays, not a .tet file or .tet.d package; read it with STORED AS TILEDB, read_tiledb or register_array
    SELECT * FROM read_tet('tests/data/tiledb')
        Error during planning: tests/data/tiledb: this folder is not a .tet.d package: it has no PROTOCOL; it holds README.md, anonymous, anonymous.expected.json, cells.py, chunks, chunks.expected.json, commits, commits.expected.json, consolidated, consolidated.expected.json and 65 more
    SELECT * FROM read_tet('tests/data')
        Error during planning: tests/data: this folder is not a .tet.d package: it has no PROTOCOL; it holds calendars, foreign, icechunk, monthly, parity.tet, references, singles, text, tiledb, upstream and 1 more
    a schema
        Error during planning: tests/data/tiledb/stations: a schema holds every dataset of its file, package or group; option 'dataset' ('t') does not apply
    an opened file
        examples/data/stations.tet: this is a .tet file, not a TileDB array; read it with STORED AS TET, read_tet or register_array
    "#);
}
