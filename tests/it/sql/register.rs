//! Registering arrays: Rust calls, `CREATE EXTERNAL TABLE`, schemas, options, and mistakes.

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, GridfusionSessionStateBuilderExt};
use serde_json::json;

use crate::support::{
    F32, I16, I64, Layout, TempTet, TestDataset, cell, query, rows_from, session, shipped,
    tet_bytes,
};

fn floats(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

async fn error(ctx: &SessionContext, sql: &str) -> String {
    match query(ctx, sql).await {
        Ok(_) => panic!("{sql}: no error"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn external_tables_take_every_spelling_of_options() {
    let state = SessionStateBuilder::new().with_default_features().with_gridfusion().build();
    let built = SessionContext::new_with_state(state);
    let enabled = SessionContext::new();
    enabled.enable_gridfusion();
    let location = shipped("examples/data/stations.tet");
    for ctx in [built, enabled] {
        for (at, key) in ["dataset", "format.dataset", "tet.dataset"].iter().enumerate() {
            let create = format!(
                "CREATE EXTERNAL TABLE t{at} STORED AS TET LOCATION '{location}'
                 OPTIONS ('{key}' 'elevation', index_columns 'true')"
            );
            query(&ctx, &create).await.unwrap();
            let sql = format!("SELECT value FROM t{at} WHERE station = 'Oslo' AND station_idx = 2");
            assert_eq!(cell(&ctx, &sql).await, "94.0");
        }
        let create = |rest: &str| {
            format!("CREATE EXTERNAL TABLE x STORED AS TET LOCATION '{location}' {rest}")
        };
        for (rest, expected) in [
            ("", "of fewer dimensions: \"temperature\" (time: 1440, station: 6), "),
            (
                "OPTIONS ('datset' 'x')",
                "unknown option 'datset', did you mean 'dataset'? The options are dataset, concat_dimension, stack, union_by_name, overlap, skip_unreadable, generation, decode_times, io",
            ),
            (
                "OPTIONS ('dataset' 'x')",
                "no dataset \"x\"; the file has \"temperature\", \"precipitation\"",
            ),
            ("OPTIONS ('io' 'carrier pigeon')", "expected 'mmap' or 'pread'"),
            ("PARTITIONED BY (a)", "PARTITIONED BY"),
        ] {
            let found = error(&ctx, &create(rest)).await;
            assert!(found.contains(expected), "{rest}: {found}");
        }
        let with_columns =
            format!("CREATE EXTERNAL TABLE x (a INT) STORED AS TET LOCATION '{location}'");
        assert!(
            error(&ctx, &with_columns).await.contains("takes its columns from the stored arrays")
        );
    }
}

#[tokio::test]
async fn a_schema_lists_the_datasets_of_its_file() {
    let ctx = session(2, 8192);
    let location = shipped("examples/data/stations.tet");
    ctx.register_array_schema("stations", &location, ArrayOptions::default()).await.unwrap();
    let listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'stations' ORDER BY 1";
    assert_eq!(
        rows_from(&ctx, listed).await,
        [["elevation"], ["precipitation"], ["temperature"], ["time"]]
    );
    let join = "SELECT e.value, count(t.value) FROM stations.temperature t
        JOIN stations.elevation e USING (station) WHERE e.value > 90 GROUP BY e.value";
    assert_eq!(rows_from(&ctx, join).await, [["94.0", "1431"]]);
    let time = "SELECT min(time), max(value) FROM stations.time";
    assert_eq!(rows_from(&ctx, time).await, [["2024-01-01T00:00:00", "1439"]]);
    assert!(error(&ctx, "SELECT * FROM stations.nothing").await.contains("stations.nothing"));
}

#[tokio::test]
async fn awkward_names_work_quoted() {
    let dims = |a: &str, b: &str| json!({"dim_names": [a, b]});
    let datasets = [
        TestDataset::new("Größe/été 1", F32, &[2, 2], &[2, 2], floats(4))
            .with_metadata(dims("Tag 1", "Ä")),
        TestDataset::new("same", F32, &[2], &[2], floats(2)),
        TestDataset::new("same", F32, &[3], &[3], floats(3)),
        TestDataset::new("twice", F32, &[2, 3], &[2, 3], floats(6)).with_metadata(dims("x", "x")),
        TestDataset::new("values", F32, &[2, 2], &[2, 2], floats(4))
            .with_metadata(dims("value", "y")),
        TestDataset::new("thrice", F32, &[1, 1, 2], &[1, 1, 2], floats(2))
            .with_metadata(json!({"dim_names": ["x_2", "x", "x"]})),
        TestDataset::new("unnamed", F32, &[2, 2], &[2, 2], floats(4))
            .with_metadata(json!({"dim_names": ["only"]})),
    ];
    let temp = TempTet::new(&tet_bytes(
        &datasets,
        &Layout { history_version: Some(2), ..Layout::default() },
    ));
    let ctx = session(1, 8192);
    ctx.register_array_schema("f", temp.location(), ArrayOptions::default()).await.unwrap();
    let sql = r#"SELECT "Tag 1", "Ä", value FROM f."Größe/été 1" WHERE "Ä" = 1 AND "Tag 1" = 1"#;
    assert_eq!(rows_from(&ctx, sql).await, [["1", "1", "3.0"]]);
    assert_eq!(cell(&ctx, "SELECT count(value) FROM f.same").await, "2");
    assert_eq!(cell(&ctx, "SELECT value FROM f.twice WHERE x = 1 AND x_1 = 2").await, "5.0");
    assert_eq!(
        cell(&ctx, "SELECT \"values\" FROM f.\"values\" WHERE value = 1 AND y = 0").await,
        "2.0"
    );
    assert_eq!(cell(&ctx, "SELECT value FROM f.thrice WHERE x_2_ = 1 AND x_2 = 0").await, "1.0");
    assert_eq!(
        cell(&ctx, "SELECT value FROM f.unnamed WHERE dim_0 = 1 AND dim_1 = 1").await,
        "3.0"
    );
}

/// Labels come from the first of these sources that fits: the footer by name, the footer by axis number, a
/// dataset in the group or above it, HDF5's attribute `coordinates`, the index.
#[tokio::test]
async fn labels_come_from_the_first_source_that_fits() {
    let line = |name: &str, values: &[i64]| {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let len = values.len() as u64;
        TestDataset::new(name, I64, &[len], &[2], data)
    };
    let pair = |name: &str, metadata| {
        TestDataset::new(name, F32, &[3, 2], &[2, 2], floats(6)).with_metadata(metadata)
    };
    let labels = json!({"labels": ["p", "q", "r"]});
    let datasets = [
        pair("by_name", json!({"dim_names": ["x", "y"], "coords": {"x": labels}})),
        pair("by_axis", json!({"dim_names": ["x", "y"], "coords": {"0": labels}})),
        pair("wrong_length", json!({"dim_names": ["x", "y"], "coords": {"x": {"labels": ["p"]}}})),
        pair("g/sibling", json!({"dim_names": ["x", "y"]})),
        pair("h/hdf5", json!({"attrs": {"coordinates": "lat lon"}})),
        pair("named", json!({"dim_names": ["p", "q"], "attrs": {"coordinates": "lat of_p"}})),
        line("of_p", &[1, 2]).with_metadata(json!({"dim_names": ["p"]})),
        pair("no_fit", json!({"attrs": {"coordinates": "lat"}})),
        line("x", &[10, 20, 30]),
        line("g/x", &[11, 21, 31]),
        line("y", &[7, 8, 9]),
        line("coordinates/lat", &[-5, 0, 5]),
        line("lon", &[100, 200]),
    ];
    let temp = TempTet::new(&tet_bytes(
        &datasets,
        &Layout { history_version: Some(1), ..Layout::default() },
    ));
    let ctx = session(1, 8192);
    ctx.register_array_schema("f", temp.location(), ArrayOptions::default()).await.unwrap();
    for (table, dims, first, last) in [
        ("by_name", "x, y", ["p", "0"], ["r", "1"]),
        ("by_axis", "x, y", ["p", "0"], ["r", "1"]),
        ("wrong_length", "x, y", ["10", "0"], ["30", "1"]),
        ("\"g/sibling\"", "x, y", ["11", "0"], ["31", "1"]),
        ("\"h/hdf5\"", "lat, lon", ["-5", "100"], ["5", "200"]),
        // `of_p` has the dimension p, so it cannot label q. `lat` has no named dimension, and labels p.
        ("named", "p, q", ["-5", "0"], ["5", "1"]),
        ("no_fit", "dim_0, dim_1", ["0", "0"], ["2", "1"]),
    ] {
        let rows = rows_from(&ctx, &format!("SELECT {dims} FROM f.{table} ORDER BY 1, 2")).await;
        assert_eq!(
            (rows[0].as_slice(), rows[5].as_slice()),
            (&first.map(String::from)[..], &last.map(String::from)[..]),
            "{table}"
        );
    }
}

/// Packed integers are unpacked; packed floats only if the converter has not unpacked them already.
#[tokio::test]
async fn packing_is_applied_once() {
    let attrs = json!({"attrs": {"scale_factor": "0.5", "add_offset": "100"}});
    let shorts = [2_i16, 4].iter().flat_map(|v| v.to_le_bytes()).collect();
    let datasets = [
        TestDataset::new("i", I16, &[2], &[2], shorts).with_metadata(attrs.clone()),
        TestDataset::new("f", F32, &[2], &[2], floats(2)).with_metadata(attrs),
    ];
    for (source, float) in [("nc", "1.0"), ("h5", "1.0"), ("zarr", "100.5"), ("zarr2", "100.5")] {
        let history = Some(json!([{"op": "convert", "source": source, "at": "1"}]));
        let layout = Layout { history_version: Some(2), history, ..Layout::default() };
        let temp = TempTet::new(&tet_bytes(&datasets, &layout));
        let ctx = session(1, 8192);
        ctx.register_array_schema("s", temp.location(), ArrayOptions::default()).await.unwrap();
        assert_eq!(cell(&ctx, "SELECT max(value) FROM s.i").await, "102.0", "{source}");
        assert_eq!(cell(&ctx, "SELECT max(value) FROM s.f").await, float, "{source}");
    }
}

/// A packed time coordinate is unpacked before it becomes timestamps.
#[tokio::test]
async fn packed_times_are_unpacked() {
    let attrs =
        json!({"units": "hours since 2024-01-01", "scale_factor": "0.5", "add_offset": "6"});
    let hours = [0_i16, 3].iter().flat_map(|v| v.to_le_bytes()).collect();
    let time = TestDataset::new("time", I16, &[2], &[2], hours)
        .with_metadata(json!({"dim_names": ["time"], "attrs": attrs}));
    let value = TestDataset::new("value", F32, &[2], &[2], floats(2))
        .with_metadata(json!({"dim_names": ["time"]}));
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    let temp = TempTet::new(&tet_bytes(&[value, time], &layout));
    let ctx = session(1, 8192);
    ctx.register_array("v", temp.location(), ArrayOptions::default()).await.unwrap();
    let rows = rows_from(&ctx, "SELECT time FROM v ORDER BY time").await;
    assert_eq!(rows, [["2024-01-01T06:00:00"], ["2024-01-01T07:30:00"]]);
}

/// If a zone map counts no NULLs, the scan does not look for any, unless `trust_zone_maps` is off.
#[tokio::test]
async fn zone_maps_are_used_on_request() {
    let data: Vec<u8> =
        (0..4096).flat_map(|i| if i % 2 == 0 { f32::NAN } else { 1.0 }.to_le_bytes()).collect();
    let dataset = TestDataset::new("value", F32, &[4096], &[4096], data);
    let lie = json!({"version": 1, "chunks": [
        {"dataset_id": 0, "chunk_index": [0], "element_count": 4096, "null_count": 0}]});
    let misfit = json!({"version": 1, "chunks": [
        {"dataset_id": 0, "chunk_index": [0], "element_count": 9, "null_count": 0}]});
    let torn = json!({"version": 1, "chunks": [
        {"dataset_id": 0, "chunk_index": [0], "element_count": 4096, "null_count": 0},
        {"dataset_id": 0, "chunk_index": [0], "element_count": 4096, "null_count": 2048}]});
    let cases =
        [(&lie, true, "0"), (&lie, false, "2048"), (&misfit, true, "2048"), (&torn, true, "2048")];
    for (zones, trust, nulls) in cases {
        let layout =
            Layout { history_version: Some(2), zones: Some(zones.clone()), ..Layout::default() };
        let temp = TempTet::new(&tet_bytes(std::slice::from_ref(&dataset), &layout));
        let ctx = session(1, 8192);
        let options = ArrayOptions::default().with_trust_zone_maps(trust);
        ctx.register_array("v", temp.location(), options).await.unwrap();
        assert_eq!(
            cell(&ctx, "SELECT count(*) - count(value) FROM v").await,
            nulls,
            "{zones} {trust}"
        );
    }
}

#[tokio::test]
async fn mistakes_about_files_are_named() {
    let ctx = session(1, 8192);
    let directory = tempfile::tempdir().unwrap();
    let text = TempTet::new(b"this is not a tet file, not at all");
    for (location, expected) in [
        ("does/not/exist.tet", "does/not/exist.tet: cannot open the file: No such file"),
        (
            directory.path().to_str().unwrap(),
            "no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file in this directory; it is empty",
        ),
        (text.location(), "found \"this\", expected \"TETR\""),
        (&shipped("Cargo.toml"), "this is not a .tet file, .tet.d package, TileDB array"),
    ] {
        let error = ctx
            .register_array("t", location, ArrayOptions::default())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{location}: {error}");
    }
}
