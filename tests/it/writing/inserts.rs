//! `INSERT INTO` the tables of Zarr stores.

use std::fs;

use datafusion::dataframe::DataFrameWriteOptions;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use serde_json::json;

use super::append::files;
use super::zarr::Case;
use crate::support::{query, reducing, rows_from, shipped};

/// Makes a store of two days and the table `t` of it.
async fn table(case: &Case) {
    let sql = "SELECT CAST(value / 3 AS INT) AS day, concat('s', value % 3) AS site, CAST(value AS REAL) AS t, CAST(value AS INT) AS n FROM range(6)";
    case.copy(sql, "x.zarr", "'dimensions' 'day, site', 'chunks' 'day=2', 'fill' 'n=-1'")
        .await
        .unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS ZARR LOCATION '{}'",
        case.at("x.zarr").display()
    );
    query(&case.ctx, &create).await.unwrap();
}

const ALL: &str = "SELECT count(*), count(t), sum(t), sum(n), max(day) FROM t";

#[tokio::test]
async fn inserted_rows_are_in_the_table() {
    let case = Case::new(reducing(2, 512)).await;
    table(&case).await;
    assert_eq!(rows_from(&case.ctx, ALL).await, [["6", "6", "15.0", "15", "1"]]);
    // Columns in another order, of other types that hold the same values, and from the table itself.
    let count = rows_from(&case.ctx, "INSERT INTO t (n, t, site, day) SELECT n + 6, CAST(t AS DOUBLE) + 6, site, day + 2 FROM t WHERE day = 0").await;
    assert_eq!(count, [["3"]]);
    assert_eq!(rows_from(&case.ctx, ALL).await, [["9", "9", "36.0", "36", "2"]]);
    // A column and rows that are left out are NULL.
    query(&case.ctx, "INSERT INTO t (day, site, n) VALUES (4, 's0', 100), (3, 's2', 1)")
        .await
        .unwrap();
    assert_eq!(rows_from(&case.ctx, ALL).await, [["15", "9", "36.0", "137", "4"]]);
    let stored = format!("SELECT count(*) FROM read_array('{}')", case.at("x.zarr").display());
    assert_eq!(rows_from(&case.ctx, &stored).await, [["15"]]);
    // A DataFrame.
    let frame = case.ctx.sql("SELECT CAST(9 AS INT) AS day, 's1' AS site, CAST(2 AS INT) AS n, CAST(0.5 AS REAL) AS t").await.unwrap();
    frame.write_table("t", DataFrameWriteOptions::new()).await.unwrap();
    assert_eq!(rows_from(&case.ctx, ALL).await, [["18", "10", "36.5", "139", "9"]]);
    let plan = rows_from(
        &case.ctx,
        "EXPLAIN INSERT INTO t (day, site, t, n) SELECT day + 20, site, t, n FROM t",
    )
    .await;
    let plan = plan.concat().concat();
    assert!(
        plan.contains(
            "ArraySink: format=zarr, mode=append, dimensions=[day, site], variables=[n, t]"
        ),
        "{plan}"
    );
}

#[tokio::test]
async fn what_has_no_place_is_refused_and_changes_nothing() {
    let case = Case::new(reducing(2, 512)).await;
    table(&case).await;
    let air = shipped("examples/data/air.nc");
    case.ctx.register_array("netcdf", &air, ArrayOptions::default()).await.unwrap();
    let many = format!(
        "CREATE EXTERNAL TABLE many STORED AS ZARR LOCATION '{}'",
        case.at("*.zarr").display()
    );
    query(&case.ctx, &many).await.unwrap();
    for (name, at, dataset) in [
        ("zipped", "tests/data/zipped/sea.zarr.zip", "sst"),
        ("versions", "tests/data/icechunk/spec2/small.icechunk", "t"),
    ] {
        let options = ArrayOptions::default().with_option("dataset", dataset);
        case.ctx.register_array(name, shipped(at), options).await.unwrap();
    }
    let before = files(&case.at("x.zarr"));
    for (sql, message) in [
        ("INSERT INTO zipped SELECT * FROM zipped", "a zip file, which is only read; unpack it"),
        (
            "INSERT INTO versions SELECT * FROM versions",
            "an Icechunk repository, which is only read",
        ),
        // DataFusion would round these.
        (
            "INSERT INTO t (day, site, t, n) SELECT day + 2, site, CAST(t AS DOUBLE) + 0.1, n FROM t",
            "of \"t\" cannot be appended",
        ),
        (
            "INSERT INTO t (day, site, t, n) SELECT day + 2, site, t, n + 0.5 FROM t",
            "of \"n\" cannot be appended: 0.5 would read as",
        ),
        (
            "INSERT INTO t (day, site, t, n) SELECT day + 2.5, site, t, n FROM t",
            "the label day=2.5 is no Int32",
        ),
        ("INSERT INTO t (day, site, t, n) VALUES (2, 's0', 1, 1.5)", "1.5 is no Int32"),
        ("INSERT INTO t (day, site, t, n) VALUES (2, 's0', 1, -1)", "-1 would read as NULL"),
        ("INSERT INTO t (day, site, t, n) VALUES (1, 's0', 1, 1)", "nothing is appended"),
        (
            "INSERT INTO t (day, site, t, n) VALUES (2, 'other', 1, 1)",
            "day=2 and site=other are not in the array",
        ),
        (
            "INSERT INTO t (day, site, t, n) VALUES (2, 's0', 1, 1), (2, 's0', 2, 2)",
            "two rows have the labels day=2, site=s0",
        ),
        (
            "INSERT INTO t (site, t, n) VALUES ('s0', 1, 1)",
            "the dimension \"day\" has NULL among its labels",
        ),
        ("INSERT INTO netcdf SELECT * FROM netcdf", "INSERT INTO an array of the format netcdf"),
        ("INSERT INTO many SELECT day + 2, site, t, n FROM t", "a table of several files"),
    ] {
        let error = query(&case.ctx, sql).await.unwrap_err().to_string();
        assert!(error.contains(message), "{sql}\n{error}");
        assert!(files(&case.at("x.zarr")) == before, "{sql}");
    }
    assert_eq!(rows_from(&case.ctx, ALL).await, [["6", "6", "15.0", "15", "1"]]);
}

/// Adds an array over a part of the dimensions to a store, and makes it a coordinate of `t`.
fn add_coordinate(case: &Case, name: &str, shape: &[u64], dimensions: &[&str], cells: &[f64]) {
    let store = case.at("x.zarr");
    let read = |path: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(store.join(path)).unwrap()).unwrap()
    };
    let mut array = read("t/zarr.json");
    array["data_type"] = json!("float64");
    array["fill_value"] = json!("NaN");
    array["shape"] = json!(shape);
    array["dimension_names"] = json!(dimensions);
    array["chunk_grid"]["configuration"]["chunk_shape"] = json!(shape);
    array["codecs"] = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    array["attributes"] = json!({});
    let chunk = format!("{name}/c{}", "/0".repeat(shape.len()));
    fs::create_dir_all(store.join(&chunk).parent().unwrap()).unwrap();
    fs::write(store.join(chunk), cells.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>())
        .unwrap();
    fs::write(store.join(name).join("zarr.json"), array.to_string()).unwrap();
    let (mut root, mut of_t) = (read("zarr.json"), read("t/zarr.json"));
    let known = of_t["attributes"]["coordinates"].as_str().unwrap_or_default();
    of_t["attributes"]["coordinates"] = json!(format!("{known} {name}"));
    let all = &mut root["consolidated_metadata"]["metadata"];
    all[name] = array;
    all["t"] = of_t.clone();
    fs::write(store.join("t/zarr.json"), of_t.to_string()).unwrap();
    fs::write(store.join("zarr.json"), root.to_string()).unwrap();
}

/// Coordinates over a part of the dimensions stay as they are.
#[tokio::test]
async fn stores_may_have_coordinates_of_fewer_dimensions() {
    let case = Case::new(reducing(2, 512)).await;
    let sql = "SELECT CAST(value / 3 AS INT) AS day, concat('s', value % 3) AS site, CAST(value AS REAL) AS t FROM range(6)";
    case.copy(sql, "x.zarr", "'dimensions' 'day, site'").await.unwrap();
    add_coordinate(&case, "height", &[], &[], &[2.0]);
    add_coordinate(&case, "lon", &[3], &["site"], &[10.0, 11.0, 12.0]);
    let at = case.at("x.zarr");
    let create = format!("CREATE EXTERNAL TABLE t STORED AS ZARR LOCATION '{}'", at.display());
    query(&case.ctx, &create).await.unwrap();
    query(&case.ctx, "INSERT INTO t (day, site, t) VALUES (2, 's1', 7), (2, 's2', 8)")
        .await
        .unwrap();
    let all = "SELECT day, site, t, height, lon FROM t WHERE day > 0 ORDER BY day, site";
    let rows: Vec<String> =
        rows_from(&case.ctx, all).await.into_iter().map(|row| row.join(" ")).collect();
    assert_eq!(
        rows,
        [
            "1 s0 3.0 2.0 10.0",
            "1 s1 4.0 2.0 11.0",
            "1 s2 5.0 2.0 12.0",
            "2 s0 NULL 2.0 10.0",
            "2 s1 7.0 2.0 11.0",
            "2 s2 8.0 2.0 12.0"
        ]
    );
    query(&case.ctx, "MERGE INTO t USING (VALUES (2)) s(day) ON t.day = s.day WHEN MATCHED THEN UPDATE SET t = 0").await.unwrap();
    assert_eq!(rows_from(&case.ctx, "SELECT sum(t) FROM t").await, [["15.0"]]);
    // Rows that are there have a height and a longitude, and new ones leave them out.
    let merge = "MERGE INTO t USING (VALUES (2, 's1', 9.0), (3, 's1', 9.0)) s(day, site, t) ON t.day = s.day AND t.site = s.site
        WHEN MATCHED THEN UPDATE SET t = CAST(s.t AS REAL) WHEN NOT MATCHED THEN INSERT (day, site, t) VALUES (s.day, s.site, s.t)";
    query(&case.ctx, merge).await.unwrap();
    let merged = "SELECT sum(t), count(*), sum(lon), sum(height) FROM t WHERE day > 1";
    assert_eq!(rows_from(&case.ctx, merged).await, [["18.0", "6", "66.0", "12.0"]]);
    // Values that are there may come along, and others do not.
    query(&case.ctx, "INSERT INTO t SELECT * REPLACE (day + 1 AS day) FROM t WHERE day = 3")
        .await
        .unwrap();
    // Objects at the end may be written again, with the same cells.
    let all = format!("SELECT * FROM read_array('{}') ORDER BY day, site", at.display());
    let before = rows_from(&case.ctx, &all).await;
    for (insert, message) in [
        (
            "INSERT INTO t (day, site, t, height) VALUES (5, 's1', 7, 3)",
            "the value of \"height\" is 2.0 in the array, and 3.0 in the rows",
        ),
        (
            "INSERT INTO t (day, site, t, height) VALUES (5, 's1', 7, 2), (5, 's2', 7, 3)",
            "rows have 2.0 and 3.0 for \"height\"",
        ),
        (
            "INSERT INTO t (day, site, t, lon) VALUES (5, 's1', 7, 12)",
            "the value of site=s1 of \"lon\" is 11.0 in the array, and 12.0 in the rows",
        ),
    ] {
        let error = query(&case.ctx, insert).await.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(rows_from(&case.ctx, &all).await, before);
    }
    // A coordinate of days gets a value for each new one.
    add_coordinate(&case, "week", &[5], &["day"], &[1.0; 5]);
    query(&case.ctx, &create.replace("TABLE t", "TABLE u")).await.unwrap();
    let insert = "INSERT INTO u (day, site, t, week) VALUES (5, 's1', 7, 2), (5, 's2', 7, 2), (6, 's1', 7, 3)";
    query(&case.ctx, insert).await.unwrap();
    query(&case.ctx, "INSERT INTO u (day, site, t) VALUES (7, 's1', 7)").await.unwrap();
    let insert = "INSERT INTO u (day, site, t, week) VALUES (8, 's1', 7, 4), (8, 's2', 7, 5)";
    let error = query(&case.ctx, insert).await.unwrap_err().to_string();
    assert!(error.contains("rows of day=8 have 4.0 and 5.0 for \"week\""), "{error}");
    let weeks = "SELECT day, min(week), count(*) FROM u GROUP BY day ORDER BY day";
    let weeks: Vec<String> =
        rows_from(&case.ctx, weeks).await.into_iter().map(|row| row.join(" ")).collect();
    assert_eq!(
        weeks,
        ["0 1.0 3", "1 1.0 3", "2 1.0 3", "3 1.0 3", "4 1.0 3", "5 2.0 3", "6 3.0 3", "7 NULL 3"]
    );
}

const GRID: &str = "SELECT x, y, CAST(x * y AS REAL) AS v FROM unnest(range(0, 30)) AS a(x), unnest(range(0, 20)) AS b(y)";

/// Makes a store with a group `inner`. Neither lists its arrays, so readers find the group.
async fn with_group(case: &Case) {
    let sql = GRID.replace(" AS v", " AS value, CAST(x AS REAL) AS v");
    for (name, options) in [("x.zarr", ""), ("x.zarr/inner", ", 'group' 'inner'")] {
        case.copy(&sql, "x.zarr", &format!("'dimensions' 'x, y'{options}")).await.unwrap();
        let document = case.at(name).join("zarr.json");
        let read = fs::read(&document).unwrap();
        let mut metadata: serde_json::Value = serde_json::from_slice(&read).unwrap();
        metadata.as_object_mut().unwrap().remove("consolidated_metadata");
        fs::write(&document, metadata.to_string()).unwrap();
    }
}

/// Makes a table of the store in `x.zarr`.
async fn table_of(case: &Case, name: &str, option: &str) {
    let at = case.at("x.zarr");
    let at = at.display();
    let sql =
        format!("CREATE EXTERNAL TABLE {name} STORED AS ZARR LOCATION '{at}' OPTIONS ({option})");
    query(&case.ctx, &sql).await.unwrap();
}

/// Rows for the columns of a group, or of one variable, would find arrays of the root that have these names.
#[tokio::test]
async fn rows_for_a_dataset_that_is_no_column_are_refused() {
    let case = Case::new(reducing(2, 64)).await;
    with_group(&case).await;
    let before = files(&case.at("x.zarr"));
    let update =
        "MERGE INTO t0 USING (VALUES (2)) s(x) ON t0.x = s.x WHEN MATCHED THEN UPDATE SET v = 0";
    let datasets = ["inner", "inner/v", "inner/value", "v", "inner/v, inner/value"];
    for (at, dataset) in datasets.into_iter().enumerate() {
        let table = format!("t{at}");
        table_of(&case, &table, &format!("dataset '{dataset}'")).await;
        let columns = rows_from(&case.ctx, &format!("SELECT * FROM {table} LIMIT 1")).await;
        let row = vec!["1"; columns[0].len()].join(", ");
        for sql in [&format!("REPLACE INTO {table} VALUES ({row})"), update] {
            let error = query(&case.ctx, sql).await.unwrap_err().to_string();
            assert!(error.contains("INSERT INTO a table of the dataset"), "{sql}\n{error}");
        }
    }
    assert!(files(&case.at("x.zarr")) == before);
}

/// Several variables, and one whose column has its name, are arrays of the root.
#[tokio::test]
async fn rows_for_datasets_that_are_columns_are_written() {
    let case = Case::new(reducing(2, 64)).await;
    with_group(&case).await;
    table_of(&case, "two", "dataset 'v, value'").await;
    table_of(&case, "one", "dataset 'value'").await;
    query(&case.ctx, "REPLACE INTO two (x, y, v, value) VALUES (1, 1, 50, 60)").await.unwrap();
    query(&case.ctx, "REPLACE INTO one (x, y, value) VALUES (1, 2, 70)").await.unwrap();
    let sum = "SELECT sum(value) FROM one WHERE x = 1 AND y IN (1, 2)";
    assert_eq!(rows_from(&case.ctx, sum).await, [["130.0"]]);
}
