//! TileDB arrays through SQL: every interface, the chunks and bytes that queries read, and the same
//! answers as from `.tet`.

use std::sync::Arc;

use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use url::Url;

use crate::support::{cell, query, reducing, rows_from, session, shipped, sorted_rows_from};
use crate::tiledb::libtiledb::shipped_cases;

fn array(name: &str) -> String {
    shipped(&format!("tests/data/tiledb/{name}"))
}

async fn open(ctx: &SessionContext, name: &str, options: ArrayOptions) {
    ctx.register_array(name, array(name), options).await.unwrap();
}

async fn error(ctx: &SessionContext, sql: &str) -> String {
    query(ctx, sql).await.unwrap_err().to_string()
}

#[tokio::test]
async fn all_doors_lead_to_the_same_table() {
    let ctx = reducing(2, 8192);
    let location = array("overlap");
    let expected = "sum(a), count(s), min(r), max(c)";
    open(&ctx, "overlap", ArrayOptions::default()).await;
    let now = rows_from(&ctx, &format!("SELECT {expected} FROM overlap")).await;
    let as_of = ArrayOptions::default().with_option("timestamp", 20);
    ctx.register_array("then", &location, as_of.clone()).await.unwrap();
    let then = rows_from(&ctx, &format!("SELECT {expected} FROM \"then\"")).await;
    assert_ne!(now, then);

    for (number, options) in
        ["timestamp '20'", "'format.timestamp' '20'", "'tiledb.timestamp' '20'"].iter().enumerate()
    {
        let create = format!(
            "CREATE EXTERNAL TABLE t{number} STORED AS TILEDB LOCATION '{location}' OPTIONS ({options})"
        );
        query(&ctx, &create).await.unwrap();
        let found = rows_from(&ctx, &format!("SELECT {expected} FROM t{number}")).await;
        assert_eq!(found, then, "{options}");
    }
    for (function, found) in [
        (format!("read_tiledb('{location}')"), &now),
        (format!("read_tiledb('{location}', 'timestamp', 20)"), &then),
        (format!("read_tiledb('{location}', 'timestamp', '1970-01-01 00:00:00.020')"), &then),
    ] {
        assert_eq!(&rows_from(&ctx, &format!("SELECT {expected} FROM {function}")).await, found);
    }
    let frame = ctx.read_array(&location, as_of).await.unwrap();
    let rows: usize = rows_from(&ctx, "SELECT count(*) FROM \"then\"").await[0][0].parse().unwrap();
    assert_eq!(frame.count().await.unwrap(), rows);
    // Table functions also work in a runtime with one thread, as in this test.
    assert_eq!(
        cell(&ctx, &format!("SELECT count(*) FROM tiledb_fragments('{location}')")).await,
        "3"
    );
}

#[tokio::test]
async fn groups_and_folders_are_schemas() {
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default;
    ctx.register_array_schema("weather", &array("weather"), options()).await.unwrap();
    let named = rows_from(
        &ctx,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'weather' ORDER BY 1",
    )
    .await;
    assert_eq!(named, [["station"], ["temperature"]]);
    assert_ne!(cell(&ctx, "SELECT count(*) FROM weather.station").await, "0");

    ctx.register_array_schema("all", &shipped("tests/data/tiledb"), options()).await.unwrap();
    assert_ne!(cell(&ctx, "SELECT count(*) FROM \"all\".overlap").await, "0");
    assert_ne!(cell(&ctx, "SELECT count(*) FROM \"all\".\"weather/station\"").await, "0");
    // Dense and sparse arrays are tables side by side.
    assert_ne!(cell(&ctx, "SELECT count(*) FROM \"all\".sparse").await, "0");

    ctx.register_array_schema("one", &array("fill"), options()).await.unwrap();
    assert_ne!(cell(&ctx, "SELECT count(*) FROM one.fill").await, "0");
    let nothing = tempfile::tempdir().unwrap();
    let empty = nothing.path().to_str().unwrap();
    let error = ctx.register_array_schema("none", empty, options()).await.unwrap_err();
    assert!(error.to_string().contains("or HDF5 file in this directory"), "{error}");
}

#[tokio::test]
async fn mistakes_are_explained() {
    let ctx = reducing(2, 8192);
    let (overlap, group) = (array("overlap"), array("weather"));
    let tet = shipped("examples/data/stations.tet");
    for (sql, expected) in [
        (format!("SELECT * FROM read_tiledb('{overlap}/nowhere')"), "nowhere"),
        (format!("SELECT * FROM read_tiledb('{tet}')"), "stations.tet"),
        (format!("SELECT * FROM read_tiledb('{group}')"), "several arrays over different"),
        (format!("SELECT * FROM read_tiledb('{overlap}', 'timestmp', '20')"), "timestamp_start"),
        (format!("SELECT * FROM read_tiledb('{overlap}', 'timestamp')"), "no array \"timestamp\""),
        (format!("SELECT * FROM read_tiledb('{overlap}', 'timestamp', 'noon')"), "'noon'"),
        (
            format!("SELECT * FROM read_tiledb('{overlap}', timestamp => 1.5)"),
            "option 'timestamp' is 1.5, expected text, a whole number",
        ),
        ("SELECT * FROM read_tiledb(17.5)".into(), "text"),
        ("SELECT * FROM read_tiledb()".into(), "path"),
        (format!("SELECT * FROM read_tiledb('{}')", array("encrypted")), "encryption_key"),
        (
            format!("CREATE EXTERNAL TABLE t (a INT) STORED AS TILEDB LOCATION '{overlap}'"),
            "leave the column list out",
        ),
        ("SELECT * FROM read_tiledb('s3://bucket/array')".into(), "no object store"),
    ] {
        let message = error(&ctx, &sql).await;
        assert!(message.contains(expected), "{sql}: {message}");
    }
    let wrong = "ffffffffffffffffffffffffffffffff";
    let sql =
        format!("SELECT * FROM read_tiledb('{}', 'encryption_key', '{wrong}')", array("encrypted"));
    let message = error(&ctx, &sql).await;
    assert!(message.contains("key") && !message.contains(wrong), "{message}");
}

/// Runs a query; returns the metrics of these names from the first leaf of its plan.
async fn metrics(ctx: &SessionContext, sql: &str, names: &[&str]) -> Vec<usize> {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let mut leaf = plan;
    while let Some(child) = leaf.children().first().map(|child| Arc::clone(child)) {
        leaf = child;
    }
    let found = leaf.metrics().unwrap();
    let sum = |name: &&str| found.sum_by_name(name).map_or(0, |value| value.as_usize());
    names.iter().map(sum).collect()
}

const READ: [&str; 3] = ["chunks_read", "bytes_read", "chunks_answered"];

#[tokio::test]
async fn statistics_of_fragments_answer_without_reading_tiles() {
    let ctx = reducing(2, 8192);
    let table = "filters";
    open(&ctx, table, ArrayOptions::default()).await;
    let sql = format!(
        "SELECT sum(zstd), min(zstd), max(zstd), count(zstd), avg(zstd), max(lz4) FROM {table}"
    );
    let found = metrics(&ctx, &sql, &READ).await;
    assert_eq!(found[..2], [0, 0], "{found:?}");
    assert!(found[2] > 1, "{found:?}");
    let by_rows = session(2, 8192);
    open(&by_rows, table, ArrayOptions::default()).await;
    assert_eq!(rows_from(&ctx, &sql).await, rows_from(&by_rows, &sql).await);

    // Without `trust_zone_maps`, tiles are read instead.
    let distrusting = reducing(2, 8192);
    open(&distrusting, table, ArrayOptions::default().with_trust_zone_maps(false)).await;
    let found = metrics(&distrusting, &sql, &READ).await;
    assert!(found[0] > 1 && found[2] == 0, "{found:?}");
    assert_eq!(rows_from(&ctx, &sql).await, rows_from(&distrusting, &sql).await);
}

#[tokio::test]
async fn values_prune_tiles_and_only_asked_for_attributes_are_read() {
    let ctx = session(1, 8192);
    open(&ctx, "chunks", ArrayOptions::default()).await;
    let one = metrics(&ctx, "SELECT zstd FROM chunks WHERE y = 7", &READ).await;
    let all = metrics(&ctx, "SELECT * FROM chunks WHERE y = 7", &READ).await;
    assert!(one[0] == 1 && all[0] == 1 && one[1] * 2 < all[1], "{one:?} {all:?}");
    let none = metrics(&ctx, "SELECT x FROM chunks WHERE y = 7", &READ).await;
    assert_eq!(none[..2], [0, 0]);

    open(&ctx, "filters", ArrayOptions::default()).await;
    let greatest = cell(&ctx, "SELECT max(lz4) FROM filters").await;
    let sql = format!("SELECT x FROM filters WHERE lz4 >= {greatest}");
    let found = metrics(&ctx, &sql, &READ).await;
    assert_eq!(found[0], 1, "{found:?}");
    assert_eq!(query(&ctx, &sql).await.unwrap().iter().map(|it| it.num_rows()).sum::<usize>(), 1);
    let sql = format!("SELECT x FROM filters WHERE lz4 > {greatest}");
    assert_eq!(metrics(&ctx, &sql, &READ).await[0], 0);
}

/// The same array in both formats, with the same queries.
#[tokio::test]
async fn both_formats_give_the_same_answers() {
    for (reduce, partitions) in [(true, 3), (false, 1), (true, 1)] {
        let make = || if reduce { reducing(partitions, 100) } else { session(partitions, 100) };
        let (tet, tiledb) = (make(), make());
        let options = ArrayOptions::default().with_index_columns(true);
        tet.register_array_schema("s", &shipped("examples/data/stations.tet"), options)
            .await
            .unwrap();
        let options = ArrayOptions::default();
        tiledb.register_array_schema("s", &array("stations"), options).await.unwrap();
        for sql in [
            "SELECT time_idx, station_idx, value FROM s.temperature ORDER BY 1, 2",
            "SELECT station_idx, mean(value), min(value), max(value), count(value), count(*)
             FROM s.temperature GROUP BY station_idx ORDER BY 1",
            "SELECT station_idx, count(*) FROM s.temperature WHERE value > 2 GROUP BY 1 ORDER BY 1",
            "SELECT time_idx / 24 AS day, var_pop(value) FROM s.precipitation GROUP BY day ORDER BY day",
            "SELECT sum(value), avg(value), count(*) FROM s.temperature WHERE time_idx BETWEEN 100 AND 900",
            "SELECT * FROM (SELECT time_idx, station_idx, value FROM s.temperature) WHERE value IS NULL ORDER BY 1, 2",
            "SELECT value FROM s.temperature WHERE station_idx IN (0, 5) AND time_idx % 100 = 7
             ORDER BY time_idx, station_idx",
            "SELECT max(t.value + p.value) FROM s.temperature t
             JOIN s.precipitation p ON t.time_idx = p.time_idx AND t.station_idx = p.station_idx
             WHERE t.time_idx < 200",
            "SELECT station_idx, value FROM s.elevation ORDER BY value DESC LIMIT 3",
            "SELECT time_idx, station_idx, value FROM s.temperature WHERE value > 5 ORDER BY 1, 2",
        ] {
            assert_eq!(rows_from(&tet, sql).await, rows_from(&tiledb, sql).await, "{sql}");
        }
        let joined = "SELECT time.time, station.station, temperature.value FROM s.temperature
                      JOIN s.time USING (time_idx) JOIN s.station USING (station_idx) ORDER BY 1, 2";
        let labelled = "SELECT time, station, value FROM s.temperature ORDER BY 1, 2";
        assert_eq!(rows_from(&tiledb, joined).await, rows_from(&tet, labelled).await);
    }
}

/// One array through every interface, in both formats.
#[tokio::test]
async fn both_formats_give_the_same_answers_through_every_door() {
    let (tet, tiledb) = (shipped("examples/data/stations.tet"), array("stations/temperature"));
    let ctx = reducing(2, 100);
    let options = ArrayOptions::default().with_dataset("temperature").with_index_columns(true);
    ctx.register_array("registered_tet", &tet, options.clone()).await.unwrap();
    ctx.register_array("registered_tiledb", &tiledb, ArrayOptions::default()).await.unwrap();
    let frame = ctx.read_array(&tet, options).await.unwrap().into_view();
    ctx.register_table("read_tet", frame).unwrap();
    let frame = ctx.read_array(&tiledb, ArrayOptions::default()).await.unwrap().into_view();
    ctx.register_table("read_tiledb_frame", frame).unwrap();
    for sql in [
        format!(
            "CREATE EXTERNAL TABLE external_tet STORED AS TET LOCATION '{tet}'
             OPTIONS ('dataset' 'temperature', 'index_columns' 'true')"
        ),
        format!("CREATE EXTERNAL TABLE external_tiledb STORED AS TILEDB LOCATION '{tiledb}'"),
        format!("CREATE VIEW function_tiledb AS SELECT * FROM read_tiledb('{tiledb}')"),
    ] {
        query(&ctx, &sql).await.unwrap();
    }
    for columns in ["station_idx, avg(value), count(*)", "station_idx, max(value) - min(value)"] {
        let mut answers = Vec::new();
        for table in [
            "registered_tet",
            "registered_tiledb",
            "read_tet",
            "read_tiledb_frame",
            "external_tet",
            "external_tiledb",
            "function_tiledb",
        ] {
            let sql = format!(
                "SELECT {columns} FROM {table} WHERE time_idx >= 24 GROUP BY station_idx ORDER BY 1"
            );
            answers.push(rows_from(&ctx, &sql).await);
        }
        assert!(answers[0].len() == 6 && answers.iter().all(|it| *it == answers[0]), "{columns}");
    }
}

/// A group that holds itself, twice, is an error and no endless loop.
#[tokio::test]
async fn groups_in_circles_have_an_end() {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let member = |name: &str| {
        // A group, with a relative path and a name, and not removed.
        [&2_u32.to_le_bytes(), &[1, 1][..], &text("."), &[1], &text(name), &[0]].concat()
    };
    let members =
        [&2_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &member("a"), &member("b")].concat();
    let len = members.len() as u32;
    let chunk = [&1_u64.to_le_bytes()[..], &len.to_le_bytes(), &len.to_le_bytes(), &[0; 4]];
    let tile = [&chunk.concat()[..], &members].concat();
    let header = [
        &22_u32.to_le_bytes()[..],
        &(tile.len() as u64).to_le_bytes(),
        &u64::from(len).to_le_bytes(),
        &[4],
        &1_u64.to_le_bytes(),
        &[0],
        &8_u32.to_le_bytes(),
        &65536_u32.to_le_bytes(),
        &0_u32.to_le_bytes(),
    ];
    let folder = tempfile::tempdir().unwrap();
    let details = folder.path().join("__group");
    std::fs::create_dir(&details).unwrap();
    let name = format!("__1_1_{}_2", "0".repeat(32));
    std::fs::write(details.join(name), [&header.concat()[..], &tile].concat()).unwrap();

    let ctx = reducing(1, 100);
    let location = folder.path().to_str().unwrap();
    let opened = ctx.register_array_schema("s", location, ArrayOptions::default()).await;
    let error = opened.unwrap_err().to_string();
    assert!(error.contains("groups within groups"), "{error}");
}

/// Arrays in an object store have the same rows as in folders.
#[tokio::test]
async fn object_stores_hold_arrays_too() {
    let store = Arc::new(InMemory::new());
    for name in ["overlap", "filters", "enums", "weather"] {
        let root = array(name);
        for file in files_below(std::path::Path::new(&root)) {
            let path = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            let path = object_store::path::Path::from(format!("arrays/{name}/{path}"));
            store.put(&path, std::fs::read(&file).unwrap().into()).await.unwrap();
        }
    }
    let ctx = reducing(2, 8192);
    let url = Url::parse("memory://bucket").unwrap();
    ctx.runtime_env().register_object_store(&url, store as Arc<dyn ObjectStore>);
    for name in ["overlap", "filters", "enums"] {
        open(&ctx, name, ArrayOptions::default()).await;
        let location = format!("memory://bucket/arrays/{name}");
        ctx.register_array("remote", &location, ArrayOptions::default()).await.unwrap();
        let sql = |table: &str| format!("SELECT * FROM {table}");
        let local = sorted_rows_from(&ctx, &sql(name)).await;
        assert_eq!(local, sorted_rows_from(&ctx, &sql("remote")).await);
        ctx.deregister_table("remote").unwrap();
    }
    let all = "memory://bucket/arrays";
    ctx.register_array_schema("r", all, ArrayOptions::default()).await.unwrap();
    let count = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'r'";
    assert_eq!(cell(&ctx, count).await, "5");
    assert_ne!(cell(&ctx, "SELECT count(*) FROM r.\"weather/temperature\"").await, "0");
    let missing = "SELECT * FROM read_tiledb('memory://bucket/arrays/nothing')";
    assert!(error(&ctx, missing).await.contains("arrays/nothing"));
}

fn files_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files
}

/// Rows are the same with any I/O mode, number of partitions and batch size.
#[tokio::test]
async fn answers_do_not_depend_on_how_they_are_found() {
    for case in &shipped_cases() {
        let mut answers = Vec::new();
        for (partitions, batch, io) in [(1, 8192, "mmap"), (4, 3, "pread"), (2, 100, "mmap")] {
            let ctx = reducing(partitions, batch);
            let options = case.options().with_option("io", io);
            ctx.register_array("t", &case.path, options).await.unwrap();
            let rows = sorted_rows_from(&ctx, "SELECT * FROM t").await;
            answers.push((rows, rows_from(&ctx, "SELECT count(*) FROM t").await));
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{}", case.name);
    }
}
