//! The edges of cells: variables of bounds in the shapes that files have, and midpoints.

use serde_json::{Value, json};

use super::store::{Store, boxed};
use crate::support::{query, reducing, rows_from};

const LAT: [f64; 4] = [0.0, 12.0, 12.0, 30.0];

/// A store of two by two cells, whose bounds are `lat_bnds` with these dimensions and cells, and `lon_bnds`.
fn store(dims: &[&str], shape: &[usize], lat: &[f64], lon: Value) -> Store {
    let degrees = json!({"units": "degrees_north", "bounds": "lat_bnds"});
    Store::new()
        .with("lat", &["lat"], &[2], degrees, &[10.0, 20.0])
        .with("lon", &["lon"], &[2], lon, &[0.0, 10.0])
        .with("lat_bnds", dims, shape, json!({}), lat)
        .with_singles("lon_bnds", &["lon", "nv"], &[2, 2], json!({}), &[-1.0, 9.0, 9.0, 12.0])
        .with("v", &["lat", "lon"], &[2, 2], json!({}), &[1.0, 2.0, 3.0, 4.0])
}

fn sql(store: &Store, more: &str) -> String {
    let region = boxed([0.0, 12.0], [10.0, 20.0]);
    format!(
        "SELECT lat, lon, round(coverage, 9) FROM grid_coverage('{}', (SELECT '{region}' AS wkt), dataset => 'v'{more}) ORDER BY lat, lon",
        store.path()
    )
}

fn with_bounds() -> Value {
    json!({"units": "degrees_east", "bounds": "lon_bnds"})
}

/// The pair of a cell may come first, and files that were put one after another repeat it for each time.
#[tokio::test]
async fn bounds_are_edges() {
    let ctx = reducing(2, 100);
    let expected = [
        ["10.0", "0.0", "0.15"],
        ["10.0", "10.0", "0.166666667"],
        ["20.0", "0.0", "0.4"],
        ["20.0", "10.0", "0.444444444"],
    ];
    for (dims, shape, lat) in [
        (&["lat", "nv"][..], &[2, 2][..], LAT.to_vec()),
        (&["nv", "lat"], &[2, 2], vec![12.0, 30.0, 0.0, 12.0]),
        (&["time", "lat", "nv"], &[3, 2, 2], LAT.repeat(3)),
    ] {
        let store = store(dims, shape, &lat, with_bounds());
        assert_eq!(rows_from(&ctx, &sql(&store, "")).await, expected, "{dims:?}");
    }
}

/// Bounds of other cells are an error that names the option for midpoints. A variable that is not there is none.
#[tokio::test]
async fn bounds_of_other_cells_are_refused() {
    let ctx = reducing(2, 100);
    let mut moved = LAT.repeat(2);
    moved[7] = 31.0;
    for (dims, shape, lat, expected) in [
        (&["lat", "nv"][..], &[2, 4][..], LAT.repeat(2), "(lat=2, nv=4), expected lat=2 and 2"),
        (&["other", "nv"], &[2, 2], LAT.to_vec(), "(other=2, nv=2), expected lat=2"),
        (&["lat"], &[2], vec![0.0, 12.0], "(lat=2), expected lat=2 and 2"),
        (&["time", "lat", "nv"], &[2, 2, 2], moved, "change along another dimension"),
    ] {
        let store = store(dims, shape, &lat, with_bounds());
        let error = query(&ctx, &sql(&store, "")).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{dims:?}: {error}");
        assert!(error.contains("edges => 'midpoints'"), "{error}");
        let rows = rows_from(&ctx, &sql(&store, ", edges => 'midpoints'")).await;
        assert_eq!(rows[0], ["10.0", "0.0", "0.25"]);
    }
    let missing = json!({"units": "degrees_east", "bounds": "missing"});
    let store = store(&["lat", "nv"], &[2, 2], &LAT, missing);
    assert_eq!(rows_from(&ctx, &sql(&store, "")).await[0], ["10.0", "0.0", "0.083333333"]);
}

/// A variable in a group finds its bounds there, or in a group above.
#[tokio::test]
async fn bounds_of_groups() {
    let ctx = reducing(2, 100);
    for bounds in ["g/lat_bnds", "lat_bnds"] {
        let degrees = json!({"units": "degrees_north", "bounds": "lat_bnds"});
        let east = json!({"units": "degrees_east"});
        let store = Store::new()
            .with("g/lat", &["lat"], &[2], degrees, &[10.0, 20.0])
            .with("g/lon", &["lon"], &[2], east, &[0.0, 10.0])
            .with(bounds, &["lat", "nv"], &[2, 2], json!({}), &LAT)
            .with("g/v", &["lat", "lon"], &[2, 2], json!({}), &[1.0, 2.0, 3.0, 4.0]);
        let sql = sql(&store, "").replace("'v'", "'g/v'");
        assert_eq!(rows_from(&ctx, &sql).await[0], ["10.0", "0.0", "0.083333333"], "{bounds}");
    }
}
