//! Plans with cells of polygons and points, sent to another session.

use datafusion::prelude::SessionContext;
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
    let (path, curved) = (store.path(), curved.path());
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
