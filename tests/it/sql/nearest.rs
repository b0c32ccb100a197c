//! `nearest(dimension, value)` finds the label that a search of all labels finds.

use datafusion::prelude::SessionContext;

use crate::support::{I32, Layout, TempTet, TestDataset, query, reducing, rows_from, tet_bytes};

const SEA: &str = "read_array('examples/data/sea.zarr')";
const STATIONS: &str = "read_tet('examples/data/stations.tet', dataset => 'temperature')";

/// The rows at the nearest label, found by the distances of all labels.
fn by_distance(column: &str, value: &str, most: &str) -> String {
    let distance = format!("abs({column} - {value})");
    format!(
        "SELECT DISTINCT {column} FROM {SEA} WHERE {distance} <= {most} ORDER BY {distance}, {column} LIMIT 1"
    )
}

#[tokio::test]
async fn constants_become_labels() {
    let ctx = reducing(2, 100);
    for column in ["lat", "lon"] {
        for value in ["-90", "0", "59.9", "60", "61.24", "1e9"] {
            for most in ["0.1", "3", "1e12"] {
                let sql = format!(
                    "SELECT DISTINCT {column} FROM {SEA} WHERE {column} = nearest({column}, {value}, {most})"
                );
                let expected = rows_from(&ctx, &by_distance(column, value, most)).await;
                assert_eq!(rows_from(&ctx, &sql).await, expected, "{sql}");
            }
        }
    }
    let nearest = |value: &str| format!("SELECT DISTINCT nearest(time, {value}) FROM {SEA}");
    for (value, expected) in [
        ("'2024-02-03 11:59'", "2024-02-03T00:00:00"),
        ("'2024-02-03 12:00'", "2024-02-03T00:00:00"),
        ("'2024-02-03 12:00:01'", "2024-02-04T00:00:00"),
        ("'1900-01-01'", "2024-01-01T00:00:00"),
        ("TIMESTAMP '2024-02-03 11:00', INTERVAL '12 hours'", "2024-02-03T00:00:00"),
        ("TIMESTAMP '2024-02-03 11:00', INTERVAL '1 hour'", "NULL"),
        ("NULL", "NULL"),
    ] {
        assert_eq!(rows_from(&ctx, &nearest(value)).await, [[expected]], "{value}");
    }
}

/// A dimension without labels may be of any length, and is not listed.
#[tokio::test]
async fn long_dimensions_are_refused() {
    let dataset = TestDataset::new("v", I32, &[1], &[1], vec![0; 4]);
    let mut bytes = tet_bytes(&[dataset], &Layout::default());
    for at in [64, 72] {
        bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes()); // shape and chunk
    }
    let file = TempTet::new(&bytes);
    let sql = format!(
        "SELECT count(*) FROM read_tet('{}') WHERE dim_0 = nearest(dim_0, 5)",
        file.location()
    );
    let error = query(&reducing(2, 100), &sql).await.unwrap_err().to_string();
    assert!(error.contains("the dimension has 1099511627776"), "{error}");
}

/// A constant selects one chunk along its dimension, as the label itself does.
#[tokio::test]
async fn constants_prune_chunks() {
    let ctx = reducing(1, 8192);
    let explain = async |condition: &str| {
        let sql = format!("EXPLAIN SELECT lat, sst FROM {SEA} WHERE {condition}");
        let rows = rows_from(&ctx, &sql).await;
        rows.concat()
            .join("\n")
            .lines()
            .find(|line| line.contains("GridScanExec"))
            .unwrap()
            .to_owned()
    };
    let label = rows_from(&ctx, &format!("SELECT DISTINCT nearest(lat, 59.9) FROM {SEA}")).await;
    let by_label = explain(&format!("lat = arrow_cast({}, 'Float32')", label[0][0])).await;
    assert_eq!(explain("lat = nearest(lat, 59.9)").await, by_label);
}

/// Points of another table find their cells in a join by label.
#[tokio::test]
async fn points_are_joined_with_their_cells() {
    let ctx = reducing(2, 100);
    let points = "CREATE TABLE points AS SELECT * FROM (VALUES ('a', 46.0, 10.2), ('b', 61.9, 316.0), ('c', -80.0, 0.0), ('d', NULL, 1.0)) AS v(name, y, x)";
    query(&ctx, points).await.unwrap();
    let joined = format!(
        "SELECT p.name, s.lat, s.lon, count(s.sst) FROM points p JOIN {SEA} s ON s.lat = nearest(s.lat, p.y, 9) AND s.lon = nearest(s.lon, p.x) GROUP BY 1, 2, 3 ORDER BY 1"
    );
    let by_distance = format!(
        "SELECT name, lat, lon, count(sst) FROM (
           SELECT p.name, s.lat, s.lon, s.sst,
             rank() OVER (PARTITION BY p.name ORDER BY abs(s.lat - p.y), s.lat, abs(s.lon - p.x), s.lon) AS r
           FROM points p JOIN {SEA} s ON abs(s.lat - p.y) <= 9
         ) WHERE r = 1 GROUP BY 1, 2, 3 ORDER BY 1"
    );
    let found = rows_from(&ctx, &joined).await;
    assert!(!found.is_empty());
    assert_eq!(found, rows_from(&ctx, &by_distance).await);
    let plan = rows_from(&ctx, &format!("EXPLAIN {joined}")).await.concat().join("\n");
    assert!(!plan.contains("NestedLoopJoin") && !plan.contains("CrossJoin"), "{plan}");
}

#[tokio::test]
async fn mistakes_are_explained() {
    let ctx: SessionContext = reducing(2, 100);
    for (sql, expected) in [
        (format!("SELECT nearest(sst, 1) FROM {SEA}"), "sst is none"),
        (format!("SELECT nearest(lat + 1, 1) FROM {SEA}"), "is none"),
        (
            format!("SELECT nearest(station, 'Oslo') FROM {STATIONS}"),
            "numbers or times, not of Utf8View",
        ),
        (format!("SELECT nearest(lat) FROM {SEA}"), "a dimension, a value"),
        (format!("SELECT nearest(lat, 1, -1) FROM {SEA}"), "is no distance"),
        (
            format!("SELECT nearest(time, '2024-01-01', INTERVAL '1 month') FROM {SEA}"),
            "days or less",
        ),
        ("SELECT nearest(x, 1) FROM (VALUES (1)) AS v(x)".to_owned(), "is none"),
    ] {
        let error = query(&ctx, &sql).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
}
