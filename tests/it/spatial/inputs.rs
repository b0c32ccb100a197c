//! Where polygons and points come from, and what is refused.

use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::{GridfusionConfig, GridfusionSessionContextExt, Root};
use serde_json::json;

use super::store::{Store, steps};
use crate::support::{cell, query, reducing, rows_from};

const TRIANGLE: &str = "POLYGON ((0 0, 4 0, 0 3, 0 0))";

fn grid() -> Store {
    Store::of_degrees(&steps(0.5, 1.0, 10), &steps(0.5, 1.0, 10))
}

/// Well-known binary of the triangle.
fn triangle() -> String {
    let mut bytes = vec![1, 3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0];
    let points: [f64; 8] = [0.0, 0.0, 4.0, 0.0, 0.0, 3.0, 0.0, 0.0];
    bytes.extend(points.iter().flat_map(|it| it.to_le_bytes()));
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn run(ctx: &SessionContext, sql: &str) {
    query(ctx, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[tokio::test]
async fn polygons_of_every_kind() {
    let store = grid();
    let ctx = reducing(2, 100);
    let geometry = r#"{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 3], [0, 0]]]}"#;
    let features = json!({"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {"name": "A", "rank": 2},
         "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 3], [0, 0]]]}},
        {"type": "Feature", "properties": {"name": "empty", "rank": null}, "geometry": null},
    ]});
    let geojson = store.write("r.geojson", &features.to_string());
    let json = store.write("r.JSON", &features.to_string());
    let csv = store.write("r.csv", &format!("name,wkt\nA,\"{TRIANGLE}\"\n"));
    let parquet = store.beside("r.parquet");
    let hex = triangle();
    run(&ctx, &format!("COPY (SELECT 'A' AS name, X'{hex}' AS shape) TO '{parquet}'")).await;
    run(&ctx, &format!("CREATE TABLE \"Regions\" AS SELECT 'A' AS name, '{TRIANGLE}' AS geom"))
        .await;
    run(&ctx, "CREATE VIEW v AS SELECT name, geom FROM \"Regions\"").await;
    for polygons in [
        format!("(SELECT 'A' AS name, '{TRIANGLE}' AS wkt)"),
        format!("(SELECT 'A' AS name, 'SRID=4326;{TRIANGLE}' AS wkt)"),
        format!("(SELECT 'A' AS name, X'{hex}' AS anything)"),
        format!("(SELECT 'A' AS name, arrow_cast(X'{hex}', 'LargeBinary') AS anything)"),
        format!("(SELECT 'A' AS name, '{geometry}' AS geometry)"),
        format!("(SELECT 'A' AS name, arrow_cast('{TRIANGLE}', 'Utf8View') AS geometry)"),
        "(SELECT * FROM \"Regions\")".to_owned(),
        "'\"Regions\"'".to_owned(),
        "'Regions'".to_owned(),
        "\"Regions\"".to_owned(),
        "public.v".to_owned(),
        "v".to_owned(),
        format!("'{geojson}'"),
        format!("'{json}'"),
        format!("'{parquet}'"),
        format!("'{csv}'"),
    ] {
        let sql = format!(
            "SELECT name, round(sum(coverage), 9), count(*) FROM grid_coverage('{}', {polygons}) GROUP BY name",
            store.path()
        );
        assert_eq!(rows_from(&ctx, &sql).await, [["A", "6.0", "9"]], "{polygons}");
    }
    let typed = format!(
        "SELECT DISTINCT arrow_typeof(rank), rank FROM grid_coverage('{}', '{geojson}')",
        store.path()
    );
    assert_eq!(rows_from(&ctx, &typed).await, [["Int64", "2"]]);
    // WITH, an array by its table, and a column of several.
    run(&ctx, &format!("CREATE EXTERNAL TABLE air STORED AS ARRAY LOCATION '{}'", store.path()))
        .await;
    let with = format!(
        "WITH r AS (SELECT '{TRIANGLE}' AS wkt, 'no polygon' AS geometry) \
         SELECT round(sum(coverage), 9) FROM grid_coverage(air, (SELECT * FROM r), geometry => 'wkt')"
    );
    assert_eq!(cell(&ctx, &with).await, "6.0");
}

/// The metadata of GeoParquet names one of several binary columns.
#[tokio::test]
async fn geoparquet_names_its_column() {
    let store = grid();
    let ctx = reducing(2, 100);
    let parquet = store.beside("r.parquet");
    let geo = r#"{"version": "1.1.0", "primary_column": "b", "columns": {}}"#;
    run(
        &ctx,
        &format!(
            "COPY (SELECT X'00' AS a, X'{}' AS b) TO '{parquet}' OPTIONS ('format.metadata::geo' '{geo}')",
            triangle()
        ),
    )
    .await;
    let sql = format!(
        "SELECT round(sum(coverage), 9) FROM grid_coverage('{}', '{parquet}')",
        store.path()
    );
    assert_eq!(cell(&ctx, &sql).await, "6.0");
}

#[tokio::test]
async fn null_and_empty_polygons_have_no_rows() {
    let store = grid();
    let ctx = reducing(2, 100);
    for wkt in
        ["NULL", "CAST(NULL AS VARCHAR)", "'POLYGON EMPTY'", "'POLYGON ((20 0, 24 0, 20 3, 20 0))'"]
    {
        let sql = format!(
            "SELECT count(*) FROM grid_coverage('{}', (SELECT 1 AS id, {wkt} AS wkt UNION ALL SELECT 2, NULL))",
            store.path()
        );
        let found = query(&ctx, &sql).await;
        match wkt {
            // A column of type NULL holds no polygons.
            "NULL" => assert!(found.is_err() || cell(&ctx, &sql).await == "0"),
            _ => assert_eq!(cell(&ctx, &sql).await, "0", "{wkt}"),
        }
    }
    let none = format!(
        "SELECT count(*) FROM grid_coverage('{}', (SELECT '{TRIANGLE}' AS wkt WHERE 1 = 2))",
        store.path()
    );
    assert_eq!(cell(&ctx, &none).await, "0");
}

#[tokio::test]
async fn mistakes_are_explained() {
    let store = grid();
    let path = store.path();
    let ctx = reducing(2, 100);
    let crossed = "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))";
    let broken = store.write("broken.geojson", "{\"type\": \"FeatureCollection\", \"features\": [");
    let rows = |more: &str| format!("(SELECT 'A' AS name, '{TRIANGLE}' AS wkt{more})");
    let good = rows("");
    for (call, expected) in [
        (
            format!(
                "grid_coverage('{path}', (SELECT * FROM (VALUES ('A', '{TRIANGLE}'), ('B', '{crossed}')) AS t (name, wkt)))"
            ),
            "row 2, name = B: the outer ring crosses itself near (1, 1); repair it",
        ),
        (
            format!(
                "grid_coverage('{path}', (SELECT * FROM (VALUES ('A', '{TRIANGLE}'), ('B', '{crossed}')) AS t (name, wkt))) WHERE name > 'A'"
            ),
            "the row with name = B: the outer ring",
        ),
        (format!("grid_coverage('{path}', (SELECT 'POINT (1 2)' AS wkt))"), "row 1: "),
        (format!("grid_coverage('{path}', (SELECT 'xyz' AS wkt))"), "row 1: WKT: "),
        (format!("grid_coverage('{path}', {})", rows(", 1 AS lat")), "rename it in a query"),
        (format!("grid_coverage('{path}', {})", rows(", 1 AS coverage")), "\"coverage\""),
        (
            format!("grid_coverage('{path}', (SELECT 'A' AS name))"),
            "name it with option 'geometry'",
        ),
        (format!("grid_coverage('{path}', {good}, geometry => 'x')"), "no column \"x\"; there are"),
        (format!("grid_coverage('{path}', (SELECT 1 AS geometry))"), "option 'geometry'"),
        (format!("grid_coverage('{path}', (SELECT 1 AS g), geometry => 'g')"), "of type Int64"),
        (
            format!("grid_coverage('{path}', {good}, rule => 'half')"),
            "expected 'coverage' or 'centre'",
        ),
        (
            format!("grid_coverage('{path}', {good}, rules => 'touched')"),
            "those of grid_coverage are rule, geometry, edges",
        ),
        (format!("grid_coverage('{path}', {good}, y => 'nowhere')"), "option 'y' is 'nowhere'"),
        (format!("grid_coverage('{path}', 'nothing.parquet')"), "nothing.parquet"),
        (
            format!("grid_coverage('{path}', 'nothing.csv')"),
            "'nothing.csv': no table of this name, and no such file",
        ),
        (format!("grid_coverage('{path}', nothing)"), "no polygons 'nothing'"),
        (format!("grid_coverage('{path}', '{broken}')"), "this is no GeoJSON"),
        (format!("grid_coverage('{path}')"), "takes an array and polygons"),
        (format!("grid_coverage('{path}', 1.5)"), "a query in parentheses, found 1.5"),
        ("grid_coverage('examples/data/ships', 'x')".to_owned(), "sparse array"),
        (
            format!("grid_points('{path}', (SELECT 1 AS lat, 2 AS lon), tolerance => 'x')"),
            "expected metres",
        ),
        (
            format!("grid_points('{path}', (SELECT 1 AS lat, 2 AS lon), method => 'cubic')"),
            "expected 'nearest' or 'linear'",
        ),
        (
            format!(
                "grid_points('{path}', (SELECT 1 AS lat, 2 AS lon), method => 'linear', tolerance => 5)"
            ),
            "'tolerance' is for the nearest",
        ),
        (format!("grid_points('{path}', (SELECT 1 AS a, 2 AS lon))"), "name it with option 'lat'"),
        (
            format!("grid_points('{path}', (SELECT '1' AS lat, 2 AS lon))"),
            "a coordinate is a number",
        ),
        (
            format!("grid_points('{path}', (SELECT 1 AS lat, 2 AS lon, 3 AS cell_lat))"),
            "rename it in a query",
        ),
        (
            format!("grid_points('{path}', (SELECT 1 AS lat, 2 AS lon), time => 'lat')"),
            "no dimension of timestamps",
        ),
    ] {
        let error = match query(&ctx, &format!("SELECT * FROM {call}")).await {
            Ok(rows) => panic!("{call}: {rows:?}"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(expected), "{call}: {error}");
    }
}

/// Swapped coordinates and other units are no degrees.
#[tokio::test]
async fn metres_are_no_degrees() {
    let store = grid();
    let wkt = "POLYGON ((500000 0, 500004 0, 500000 3, 500000 0))";
    let sql = format!("SELECT * FROM grid_coverage('{}', (SELECT '{wkt}' AS wkt))", store.path());
    let error = query(&reducing(2, 100), &sql).await.unwrap_err().to_string();
    assert!(error.contains("is the region in other units"), "{error}");
}

/// Files of polygons and points obey the root.
#[tokio::test]
async fn files_stay_in_the_root() {
    let (store, other) = (grid(), grid());
    let features = json!({"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 3], [0, 0]]]});
    let mut config = GridfusionConfig::default();
    config.root = Some(Root::new(store.beside("")).unwrap());
    let mut session = SessionConfig::new();
    session.options_mut().extensions.insert(config);
    let ctx = SessionContext::new_with_config(session);
    ctx.enable_gridfusion();
    ctx.enable_gridfusion_urls();
    for (name, text) in [
        ("r.geojson", features.to_string()),
        ("r.csv", format!("name,wkt,latitude,longitude\nA,\"{TRIANGLE}\",1,2\n")),
    ] {
        let (inside, outside) = (store.write(name, &text), other.write(name, &text));
        let sql = |function: &str, file: &str| {
            format!("SELECT count(*) FROM {function}('{}', '{file}')", store.path())
        };
        assert_eq!(cell(&ctx, &sql("grid_coverage", &inside)).await, "9");
        for file in [outside.clone(), format!("file://{outside}")] {
            for function in ["grid_coverage", "grid_points"] {
                let error = query(&ctx, &sql(function, &file)).await.unwrap_err().to_string();
                assert!(error.contains("outside of"), "{file}: {error}");
            }
        }
    }
    let array = format!(
        "SELECT count(*) FROM grid_coverage('{}', (SELECT '{TRIANGLE}' AS wkt))",
        other.path()
    );
    let error = query(&ctx, &array).await.unwrap_err().to_string();
    assert!(error.contains("outside of"), "{error}");
}

/// Numbers of JSON documents are read to their last digit: marks of missing cells, factors, and properties of features.
#[tokio::test]
async fn numbers_of_documents_are_exact() {
    let ctx = reducing(2, 100);
    ctx.enable_gridfusion_urls();
    let fill = 9.969_209_968_386_869e36;
    for mark in ["_FillValue", "missing_value"] {
        let store = Store::new().with("v", &["x"], &[3], json!({mark: fill}), &[1.0, fill, 2.0]);
        let sql = format!("SELECT count(v), max(v) FROM '{}'", store.path());
        assert_eq!(rows_from(&ctx, &sql).await, [["2", "2.0"]], "{mark}");
    }
    let store = grid();
    for number in ["112.77728611209807", "1.0000000200408773e20", "3.4028234663852886e38"] {
        let features =
            format!(r#"{{"type": "Feature", "properties": {{"x": {number}}}, "geometry": null}}"#);
        let file = store.write("n.geojson", &features);
        let is_same = format!("SELECT x = {number} FROM '{file}'");
        assert_eq!(cell(&ctx, &is_same).await, "true", "{number}");
    }
}
