//! `haversine` and `cell_area`.

use crate::support::{cell, query, reducing, rows_from};

#[tokio::test]
async fn distances_and_areas() {
    let ctx = reducing(2, 100);
    for (sql, expected) in [
        ("round(haversine(59.91, 10.75, 60.39, 5.32))", "305135.0"),
        ("round(haversine(0, 0, 0, 180))", "20015114.0"),
        ("haversine(1, 2, 1, 362) < 1e-6", "true"),
        ("haversine(NULL, 0, 0, 0)", "NULL"),
        ("haversine(0, 0, 0, CAST(NULL AS INT))", "NULL"),
        ("isnan(haversine('NaN'::DOUBLE, 0, 0, 0))", "true"),
        ("round(cell_area(-90, 90, 0, 360) / 1e12, 3)", "510.066"),
        ("cell_area(89, 91, 0, 1) = cell_area(89, 90, 0, 1)", "true"),
        ("cell_area(1, 2, 3, 4) = cell_area(2, 1, 4, 3)", "true"),
        ("cell_area(0, 1, 0, NULL)", "NULL"),
    ] {
        assert_eq!(cell(&ctx, &format!("SELECT {sql}")).await, expected, "{sql}");
    }
    let rows = "(VALUES (0.0, 1.0), (NULL, 1.0), (2.0, NULL), (60.0, 2.0)) AS t (lat, step)";
    let sql = format!(
        "SELECT round(cell_area(lat, lat + 1, 0, step) / 1e9, 3), round(haversine(lat, 0, lat, step) / 1000, 1) FROM {rows}"
    );
    let expected = [["12.364", "111.2"], ["NULL", "NULL"], ["NULL", "NULL"], ["12.177", "111.2"]];
    assert_eq!(rows_from(&ctx, &sql).await, expected);
    for sql in ["haversine(1, 2, 3)", "haversine('x', 0, 0, 0)", "cell_area(1, 2, 3, 4, 5)"] {
        assert!(query(&ctx, &format!("SELECT {sql}")).await.is_err(), "{sql}");
    }
}

/// The areas of the cells of a globe are its area.
#[tokio::test]
async fn areas_add_up() {
    let ctx = reducing(2, 100);
    let sql = "SELECT round(sum(360 * cell_area(lat - 0.5, lat + 0.5, 0, 1)) / cell_area(-90, 90, 0, 360), 12) \
               FROM (SELECT value - 89.5 AS lat FROM range(180))";
    assert_eq!(cell(&ctx, sql).await, "1.0");
}
