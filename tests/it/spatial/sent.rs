//! Plans with cells of polygons and points, sent to another session.

use datafusion::prelude::SessionContext;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::store::{Store, steps};
use crate::codec::sent::query_sent;
use crate::support::{reducing, rows_of, sorted_rows_from};

#[tokio::test]
async fn plans_travel() {
    let days = json!({"units": "days since 2024-01-01"});
    let with_bounds = json!({"units": "degrees_north", "bounds": "lat_bnds"});
    let shape = [3, 2, 2];
    let store = Store::new()
        .with("time", &["time"], &[3], days, &[0.0, 1.0, 4.0])
        .with("lat", &["lat"], &[2], with_bounds, &[10.0, 20.0])
        .with("lat_bnds", &["lat", "nv"], &[2, 2], json!({}), &[0.0, 12.0, 12.0, 30.0])
        .with("lon", &["lon"], &[2], json!({"units": "degrees_east"}), &[0.0, 10.0])
        .with("v", &["time", "lat", "lon"], &shape, json!({}), &steps(0.0, 1.0, 12));
    let curved = Store::new()
        .with(
            "lat",
            &["y", "x"],
            &[2, 2],
            json!({"units": "degrees_north"}),
            &[50.0, 50.5, 51.0, 51.5],
        )
        .with(
            "lon",
            &["y", "x"],
            &[2, 2],
            json!({"units": "degrees_east"}),
            &[10.0, 11.0, 9.0, 10.0],
        )
        .with("v", &["y", "x"], &[2, 2], json!({"coordinates": "lat lon"}), &[1.0; 4]);
    // Two random coordinates of 10,000 cells are too many for a message.
    let mut random = StdRng::seed_from_u64(7);
    let mut bent = |rows: f64, columns: f64| -> Vec<f64> {
        let cells = (0..10_000).map(|cell| (f64::from(cell / 100), f64::from(cell % 100)));
        cells
            .map(|(row, column)| row * rows + column * columns + random.random_range(0.0..0.3))
            .collect()
    };
    let (lat, lon) = (bent(0.8, 0.05), bent(0.05, 1.5));
    let named = json!({"coordinates": "nav_lat nav_lon"});
    let many = Store::new()
        .with("nav_lat", &["y", "x"], &[100, 100], json!({"units": "degrees_north"}), &lat)
        .with("nav_lon", &["y", "x"], &[100, 100], json!({"units": "degrees_east"}), &lon)
        .with("v", &["y", "x"], &[100, 100], named, &[1.0; 10_000]);
    let (path, curved, many) = (store.path(), curved.path(), many.path());
    let region = "'POLYGON ((-3 1, 9 5, 14 29, -4 20, -3 1))'";
    let point = "(SELECT column1 AS lat, column2 AS lon, column3::TIMESTAMP AS time \
                 FROM (VALUES (11, 2, '2024-01-02T10:00:00'), (16.5, 9.0, '2024-01-04'), (NULL, 1, NULL)))";
    let ctx = reducing(2, 100);
    for sql in [
        format!("SELECT * FROM grid_coverage('{path}', (SELECT 'A' AS name, {region} AS wkt))"),
        format!(
            "SELECT area_m2, lon FROM grid_coverage('{path}', (SELECT {region} AS wkt), rule => 'touched')"
        ),
        format!(
            "SELECT time, sum(v * coverage) FROM grid_coverage('{path}', (SELECT {region} AS wkt)) c \
             JOIN read_array('{path}') USING (lat, lon) GROUP BY time"
        ),
        format!(
            "SELECT * FROM grid_points('{path}', {point}, time_method => 'last', time_tolerance => '1 day')"
        ),
        format!(
            "SELECT weight, cell_lat, cell_time FROM grid_points('{path}', {point}, method => 'linear')"
        ),
        format!(
            "SELECT * FROM grid_points('{curved}', (SELECT 50.4 AS lat, 10.9 AS lon), tolerance => 90000)"
        ),
        format!(
            "SELECT * FROM grid_coverage('{curved}', (SELECT 'A' AS name, 'POLYGON ((9 50, 11 50, 10 52, 9 50))' AS wkt))"
        ),
        format!("SELECT * FROM grid_points('{many}', (SELECT 10.4 AS lat, 70.9 AS lon))"),
        format!(
            "SELECT * FROM grid_coverage('{many}', (SELECT 'POLYGON ((1 50, 50 50, 10 80, 1 50))' AS wkt), edges => 'midpoints')"
        ),
        format!(
            "SELECT cell_area(lat, lat + 1, 0, v), haversine(lat, lon, v, v) FROM read_array('{path}')"
        ),
    ] {
        let expected = sorted_rows_from(&ctx, &sql).await;
        let found = query_sent(&ctx, &SessionContext::new(), &sql).await;
        let found = found.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let mut found = rows_of(&found);
        found.sort();
        assert_eq!(found, expected, "{sql}");
    }
}
