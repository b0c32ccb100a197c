//! Quoted paths and URLs, directories as catalogs, and `CREATE EXTERNAL TABLE`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOpener, ArrayOptions, GridCatalog, GridfusionSessionContextExt, IoMode};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, path::Path as ObjectPath};
use tempfile::TempDir;
use url::Url;

use crate::support::{cell, query, reducing, rows_from, shipped};

const STATIONS: &str = "examples/data/stations.tet";
const OVERLAP: &str = "tests/data/tiledb/overlap";

async fn error(ctx: &SessionContext, sql: &str) -> String {
    query(ctx, sql).await.expect_err(sql).to_string()
}

/// Copies a folder with all that is in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => _ = fs::copy(entry.path(), to).unwrap(),
        }
    }
}

/// A package with one generation.
fn package(at: &Path) {
    let generation = at.join("generations/00000001");
    fs::create_dir_all(&generation).unwrap();
    fs::copy(shipped(STATIONS), generation.join("packed.tet")).unwrap();
    fs::write(at.join("PROTOCOL"), r#"{"protocol_version":2}"#).unwrap();
    fs::write(at.join("CURRENT"), "1\n").unwrap();
}

/// A directory of files, packages, arrays and groups, good and bad.
fn directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["stations.tet", "no 1#ä%.tet", ".hidden.tet", "twice.tet"] {
        fs::copy(shipped(STATIONS), at(name)).unwrap();
    }
    fs::write(at("broken.tet"), "not a .tet file at all").unwrap();
    fs::write(at("notes.csv"), "a,b\n1,2\n3,4\n").unwrap();
    package(&at("twice.tet.d"));
    copy_folder(Path::new(&shipped(OVERLAP)), &at("overlap.tdb"));
    copy_folder(Path::new(&shipped("tests/data/tiledb/weather")), &at("weather"));
    fs::create_dir(at("empty")).unwrap();
    dir
}

/// Puts the files below a folder into an object store, as `memory://bucket/data`.
pub(crate) async fn in_memory(ctx: &SessionContext, folder: &Path) {
    async fn put(store: &InMemory, at: &Path, prefix: &ObjectPath) {
        for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
            // The name is not escaped, like the keys in a list of a bucket.
            let name = entry.file_name().into_string().unwrap();
            let path = ObjectPath::parse(format!("{prefix}/{name}")).unwrap();
            match entry.path().is_dir() {
                true => Box::pin(put(store, &entry.path(), &path)).await,
                false => {
                    let bytes = fs::read(entry.path()).unwrap();
                    store.put(&path, bytes.into()).await.map(|_| ()).unwrap();
                }
            }
        }
    }
    let store = InMemory::new();
    put(&store, folder, &ObjectPath::from("data")).await;
    let url = Url::parse("memory://bucket").unwrap();
    ctx.runtime_env().register_object_store(&url, Arc::new(store) as Arc<dyn ObjectStore>);
}

#[tokio::test]
async fn quoted_paths_are_tables() {
    let dir = directory();
    let ctx = reducing(2, 8192);
    ctx.enable_gridfusion_urls();
    in_memory(&ctx, dir.path()).await;
    let local = dir.path().to_str().unwrap().to_owned();
    let file = format!("file://{local}");
    for (name, rows) in [
        (format!("{local}/stations.tet#elevation"), "6"),
        (format!("{file}/stations.tet#elevation"), "6"),
        ("memory://bucket/data/stations.tet#elevation".into(), "6"),
        (format!("{local}/twice.tet.d#elevation"), "6"),
        (format!("{local}/twice.tet.d/#elevation"), "6"),
        ("memory://bucket/data/twice.tet.d#elevation".into(), "6"),
        (format!("{local}/no 1#ä%.tet#elevation"), "6"),
        (format!("{file}/no%201%23ä%25.tet#elevation"), "6"),
        (format!("{local}/overlap.tdb"), "42"),
        (format!("{local}/overlap.tdb/"), "42"),
        (format!("{local}/overlap.tdb#overlap.tdb"), "42"),
        (format!("{file}/overlap.tdb"), "42"),
        ("memory://bucket/data/overlap.tdb".into(), "42"),
        (format!("{local}/notes.csv"), "2"),
        (format!("{file}/notes.csv"), "2"),
        ("memory://bucket/data/notes.csv".into(), "2"),
    ] {
        assert_eq!(cell(&ctx, &format!("SELECT count(*) FROM '{name}'")).await, rows, "{name}");
    }
    for group in [format!("{local}/weather"), "memory://bucket/data/weather".into()] {
        let expected = format!("SELECT count(*) FROM read_tiledb('{group}/station')");
        let found = cell(&ctx, &format!("SELECT count(*) FROM '{group}#station'")).await;
        assert_eq!(found, cell(&ctx, &expected).await, "{group}");
    }
    // If the whole name is a file, `#` does not begin the name of a dataset.
    let odd = dir.path().join("x.tet#elevation.tet");
    fs::copy(shipped(STATIONS), &odd).unwrap();
    fs::copy(shipped(STATIONS), dir.path().join("x.tet")).unwrap();
    let message = error(&ctx, &format!("SELECT * FROM '{}'", odd.display())).await;
    assert!(message.contains("x.tet#elevation.tet: the file has several"), "{message}");

    query(&ctx, "SET gridfusion.index_columns = true").await.unwrap();
    let sql =
        format!("SELECT station_idx FROM '{local}/stations.tet#elevation' WHERE station = 'Oslo'");
    assert_eq!(cell(&ctx, &sql).await, "2");
}

#[tokio::test]
async fn mistakes_about_quoted_paths_are_explained() {
    let dir = directory();
    let ctx = reducing(1, 8192);
    let local = dir.path().to_str().unwrap().to_owned();
    let name = format!("{local}/stations.tet#elevation");
    assert!(error(&ctx, &format!("SELECT * FROM '{name}'")).await.contains("not found"));
    ctx.enable_gridfusion_urls();
    for (name, expected) in [
        (format!("{local}/stations.tet"), "choose one with the option 'dataset'"),
        (format!("{local}/stations.tet#elevatoin"), "no dataset \"elevatoin\"; the file has"),
        (format!("{local}/stations.tet#"), "no dataset \"\""),
        (format!("{local}/nowhere.tet#t"), "nowhere.tet: cannot open the file: No such file"),
        (format!("{local}/nowhere.tet.d"), "nowhere.tet.d: cannot open the file: No such file"),
        (format!("{local}/broken.tet"), "broken.tet: corrupt superblock"),
        (format!("{local}/overlap.tdb#t"), "no array \"t\"; there is \"overlap.tdb\""),
        (format!("{local}/weather"), "between them: \"station\" (station_idx: 3)"),
        ("s3://bucket/x.tet".into(), "no object store is registered for 's3://bucket"),
        ("s3://bucket/arrays".into(), "not found"),
        ("nothing".into(), "not found"),
        ("no#thing".into(), "not found"),
    ] {
        let message = error(&ctx, &format!("SELECT * FROM '{name}'")).await;
        assert!(message.contains(expected), "{name}: {message}");
    }
    // Tables are listed without looking for files.
    assert_eq!(
        cell(&ctx, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'")
            .await,
        "0"
    );
}

#[tokio::test]
async fn a_directory_is_a_catalog() {
    let dir = directory();
    let ctx = reducing(2, 8192);
    in_memory(&ctx, dir.path()).await;
    let local = dir.path().to_str().unwrap();
    for (catalog, location) in
        [("climate", local), ("slash", &format!("{local}/")), ("store", "memory://bucket/data")]
    {
        let options = ArrayOptions::default().with_io(IoMode::Pread).with_index_columns(true);
        ctx.register_array_catalog(catalog, location, options).await.unwrap();
        let sql = |what: &str| what.replace("CATALOG", catalog);
        for (query, expected) in [
            ("SELECT value FROM CATALOG.stations.elevation WHERE station_idx = 2", "94.0"),
            ("SELECT count(*) FROM CATALOG.\"no 1#ä%\".elevation", "6"),
            ("SELECT count(*) FROM CATALOG.\"twice.tet\".elevation", "6"),
            ("SELECT count(*) FROM CATALOG.\"twice.tet.d\".elevation", "6"),
            ("SELECT count(r_idx) FROM CATALOG.overlap.\"overlap.tdb\"", "42"),
            ("SELECT count(*) > 0 FROM CATALOG.weather.station", "true"),
        ] {
            assert_eq!(cell(&ctx, &sql(query)).await, expected, "{catalog}: {query}");
        }
        let listed = "SELECT DISTINCT table_schema FROM information_schema.tables
            WHERE table_catalog = 'CATALOG' AND table_schema <> 'information_schema' ORDER BY 1";
        let names = ["no 1#ä%", "overlap", "stations", "twice.tet", "twice.tet.d", "weather"];
        assert_eq!(rows_from(&ctx, &sql(listed)).await, names.map(|name| [name]), "{catalog}");
        let message = error(&ctx, &sql("SELECT * FROM CATALOG.broken.t")).await;
        assert!(message.contains("broken.tet: corrupt superblock"), "{catalog}: {message}");
        let message = error(&ctx, &sql("SELECT * FROM CATALOG.stations.tempreture")).await;
        assert!(message.contains("tempreture"), "{catalog}: {message}");
    }
}

/// Files of a catalog are opened only when a query uses them; others may even be missing.
#[tokio::test]
async fn files_of_a_catalog_are_opened_when_they_are_asked_for() {
    let dir = directory();
    let ctx = reducing(1, 8192);
    let location = dir.path().to_str().unwrap();
    ctx.register_array_catalog("c", location, ArrayOptions::default()).await.unwrap();
    fs::remove_file(dir.path().join("twice.tet")).unwrap();
    assert_eq!(cell(&ctx, "SELECT count(*) FROM c.stations.elevation").await, "6");
    let message = error(&ctx, "SELECT * FROM c.\"twice.tet\".elevation").await;
    assert!(message.contains("twice.tet: cannot open the file"), "{message}");
    // A file that was damaged can be opened after a repair.
    assert!(error(&ctx, "SELECT * FROM c.broken.elevation").await.contains("broken.tet"));
    fs::copy(shipped(STATIONS), dir.path().join("broken.tet")).unwrap();
    assert_eq!(cell(&ctx, "SELECT count(*) FROM c.broken.elevation").await, "6");
    // A table that was opened keeps working without its file.
    fs::remove_file(dir.path().join("stations.tet")).unwrap();
    assert_eq!(cell(&ctx, "SELECT count(*) FROM c.stations.elevation").await, "6");
}

#[tokio::test]
async fn mistakes_about_directories_are_named() {
    let ctx = reducing(1, 8192);
    let dir = directory();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let default = ArrayOptions::default;
    for (location, options, expected) in [
        (
            at("empty"),
            default(),
            "empty: no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file",
        ),
        (at("nowhere"), default(), "nowhere: cannot open the folder"),
        (at("stations.tet"), default(), "stations.tet: cannot open the folder"),
        (at("twice.tet.d"), default(), "register it as a schema"),
        (at("overlap.tdb"), default(), "register it as a schema"),
        (at(""), default().with_dataset("t"), "option 'dataset' does not apply"),
        (at(""), default().with_option("generation", 1), "option 'generation' does not apply"),
        ("s3://bucket/data".into(), default(), "no object store is registered"),
    ] {
        let error = ctx.register_array_catalog("c", &location, options).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{location}: {error}");
    }
    let catalog = GridCatalog::open(&at(""), &default(), &ArrayOpener::from_session(&ctx.state()))
        .await
        .unwrap();
    let places: Vec<_> = catalog.places().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(places.len(), 7, "{places:?}");
    let found =
        GridCatalog::find(&at("weather"), &default(), &ArrayOpener::from_session(&ctx.state()))
            .await
            .unwrap();
    assert!(found.is_none());
}

#[tokio::test]
async fn external_tables_as_in_datafusion() {
    let ctx = reducing(1, 8192);
    let dir = directory();
    in_memory(&ctx, dir.path()).await;
    let create = |what: &str, location: &str, rest: &str| {
        format!("CREATE {what} STORED AS TET LOCATION '{location}' {rest}")
    };
    let (local, elevation) = (shipped(STATIONS), "OPTIONS (dataset 'elevation')");
    let count = "SELECT count(*) FROM t";
    for location in [&local, &format!("file://{local}"), "memory://bucket/data/stations.tet"] {
        query(&ctx, &create("EXTERNAL TABLE t", location, elevation)).await.unwrap();
        assert_eq!(cell(&ctx, count).await, "6", "{location}");
        query(&ctx, "DROP TABLE t").await.unwrap();
    }
    query(&ctx, &create("EXTERNAL TABLE t", &local, elevation)).await.unwrap();
    let time = "OPTIONS ('tet.dataset' 'time')";
    let message = error(&ctx, &create("EXTERNAL TABLE t", &local, time)).await;
    assert!(message.contains("already exists"), "{message}");
    query(&ctx, &create("EXTERNAL TABLE IF NOT EXISTS t", &local, time)).await.unwrap();
    assert_eq!(cell(&ctx, count).await, "6");
    query(&ctx, &create("OR REPLACE EXTERNAL TABLE t", &local, time)).await.unwrap();
    assert_eq!(cell(&ctx, count).await, "1440");

    for (what, rest, expected) in [
        ("EXTERNAL TABLE x (a INT)", "", "leave the column list out"),
        ("EXTERNAL TABLE x", "PARTITIONED BY (a)", "a TET table has no PARTITIONED BY"),
        ("EXTERNAL TABLE x (a INT)", "WITH ORDER (a)", "a TET table has no WITH ORDER"),
        ("UNBOUNDED EXTERNAL TABLE x", elevation, "a TET table has no UNBOUNDED"),
        ("EXTERNAL TABLE x", "OPTIONS (dataset 'time', 'tet.dataset' 'time')", "given twice"),
        ("EXTERNAL TABLE x", "OPTIONS ('tiledb.io' 'mmap')", "unknown option 'tiledb.io'"),
        ("EXTERNAL TABLE x", "OPTIONS ('has_header' 'true')", "unknown option 'has_header'"),
        ("EXTERNAL TABLE x", "", "choose one with the option 'dataset'"),
    ] {
        let message = error(&ctx, &create(what, &local, rest)).await;
        assert!(message.contains(expected), "{what} {rest}: {message}");
    }
    let message = error(&ctx, &create("EXTERNAL TABLE x", "nowhere.tet", "")).await;
    assert!(message.contains("nowhere.tet: cannot open the file"), "{message}");
}

/// A location with an unknown ending is recognised by its content.
#[tokio::test]
async fn places_with_names_that_promise_nothing() {
    let ctx = reducing(2, 8192);
    let dir = tempfile::tempdir().unwrap();
    fs::copy(shipped(STATIONS), dir.path().join("odd.bin")).unwrap();
    copy_folder(Path::new(&shipped(OVERLAP)), &dir.path().join("v1.2"));
    in_memory(&ctx, dir.path()).await;
    let bucket = "memory://bucket/data";
    for (location, dataset, rows) in [("odd.bin", "'elevation'", "6"), ("v1.2", "'v1.2'", "42")] {
        let sql = format!("SELECT count(*) FROM read_array('{bucket}/{location}', {dataset})");
        assert_eq!(cell(&ctx, &sql).await, rows, "{location}");
    }
    let missing = ctx.read_array(format!("{bucket}/none.bin"), ArrayOptions::default()).await;
    assert!(missing.unwrap_err().to_string().contains("none.bin"));
}
