//! `grid_coverage` over grids with a latitude and a longitude per cell.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::store::{Store, boxed, steps};
use crate::support::{query, reducing, rows_from, sorted_rows_from};

const NORTH: &str = "degrees_north";
const EAST: &str = "degrees_east";

/// The grid of these axes with a latitude and a longitude per cell, and with corners if `has_bounds`.
fn curved(lat: &[f64], lon: &[f64], has_bounds: bool) -> Store {
    let shape = [lat.len(), lon.len()];
    let at = || lat.iter().flat_map(|lat| lon.iter().map(move |lon| (*lat, *lon)));
    let (lats, lons): (Vec<f64>, Vec<f64>) = at().unzip();
    let attributes = |units: &str, bounds: &str| match has_bounds {
        true => json!({"units": units, "bounds": bounds}),
        false => json!({"units": units}),
    };
    let (dy, dx) = ((lat[1] - lat[0]) / 2.0, (lon[1] - lon[0]) / 2.0);
    let corners = [(-dy, -dx), (-dy, dx), (dy, dx), (dy, -dx)];
    let corner = |lat: f64, lon: f64| corners.map(|(y, x)| (lat + y, lon + x));
    let (lat_corners, lon_corners): (Vec<f64>, Vec<f64>) =
        at().flat_map(|(lat, lon)| corner(lat, lon)).unzip();
    let of_cells = [shape[0], shape[1], 4];
    let store = Store::new()
        .with("lat", &["y", "x"], &shape, attributes(NORTH, "lat_vertices"), &lats)
        .with("lon", &["y", "x"], &shape, attributes(EAST, "lon_vertices"), &lons)
        .with("lat_vertices", &["y", "x", "nv"], &of_cells, json!({}), &lat_corners)
        .with("lon_vertices", &["y", "x", "nv"], &of_cells, json!({}), &lon_corners);
    let cells: Vec<f64> = (0..lats.len()).map(|cell| cell as f64).collect();
    store.with("v", &["y", "x"], &shape, json!({"coordinates": "lat lon"}), &cells)
}

/// Where rows are parallels, the cells are those of the grid with an axis each: fractions, areas, and by each rule.
#[tokio::test]
async fn parallels_and_meridians_are_axes() {
    let ctx = reducing(2, 100);
    let (lat, lon) = (steps(60.5, -1.0, 12), steps(175.5, 1.0, 10));
    let plain = Store::of_degrees(&lat, &lon);
    let mut rng = StdRng::seed_from_u64(9);
    for has_bounds in [true, false] {
        let curved = curved(&lat, &lon, has_bounds);
        for rule in ["coverage", "centre", "touched"] {
            let (west, south) = (rng.random_range(170.0..182.0), rng.random_range(48.0..58.0));
            let wkt = boxed([west, west + 3.3], [south, south + 2.7]);
            let sql = |store: &Store, y: &str, x: &str| {
                format!(
                    "SELECT {y}, {x}, round(coverage, 9), round(area_m2 / 1e6, 3) \
                     FROM grid_coverage('{}', (SELECT '{wkt}' AS wkt), dataset => 'v', rule => '{rule}')",
                    store.path()
                )
            };
            let expected =
                sorted_rows_from(&ctx, &sql(&plain, "60 - floor(lat)", "lon - 175.5")).await;
            let found = sorted_rows_from(&ctx, &sql(&curved, "y::DOUBLE", "x::DOUBLE")).await;
            assert_eq!(found, expected, "{rule} {wkt}");
        }
    }
}

/// Means over a polygon by the indices of its cells; places that are missing have no cell.
#[tokio::test]
async fn means_over_cells_with_places() {
    let ctx = reducing(2, 100);
    let shape = [3, 3];
    let lat = [50.0, 50.0, 50.0, 51.0, 51.0, f64::NAN, 52.0, 52.0, f64::NAN];
    let lon = [9.0, 10.0, 11.0, 9.0, 10.0, f64::NAN, 9.0, 10.0, f64::NAN];
    let store = Store::new()
        .with("lat", &["y", "x"], &shape, json!({"units": NORTH}), &lat)
        .with("lon", &["y", "x"], &shape, json!({"units": EAST}), &lon)
        .with("v", &["y", "x"], &shape, json!({"coordinates": "lat lon"}), &steps(0.0, 1.0, 9));
    let wkt = boxed([9.5, 12.0], [50.5, 53.0]);
    let sql = format!(
        "SELECT count(*), weighted_avg(value, coverage) FROM grid_coverage('{path}', (SELECT '{wkt}' AS wkt), dataset => 'v') \
         JOIN read_array('{path}', dataset => 'v') USING (y, x)",
        path = store.path()
    );
    assert_eq!(rows_from(&ctx, &sql).await, [["2", "5.5"]]);
}

#[tokio::test]
async fn corners_that_do_not_fit_are_refused() {
    let ctx = reducing(2, 100);
    let shape = [2, 2];
    let store = |dims: &[&str], lengths: &[usize], is_alone: bool| {
        let bounded = json!({"units": EAST, "bounds": "corners"});
        let other = if is_alone {
            json!({"units": NORTH})
        } else {
            json!({"units": NORTH, "bounds": "corners"})
        };
        let count = lengths.iter().product();
        Store::new()
            .with("lat", &["y", "x"], &shape, other, &[50.0, 50.0, 51.0, 51.0])
            .with("lon", &["y", "x"], &shape, bounded, &[9.0, 10.0, 9.0, 10.0])
            .with("corners", dims, lengths, json!({}), &steps(0.0, 1.0, count))
            .with("v", &["y", "x"], &shape, json!({"coordinates": "lat lon"}), &[1.0; 4])
    };
    let region = boxed([9.0, 10.0], [50.0, 51.0]);
    for (store, expected) in [
        (store(&["y", "x", "nv"], &[2, 2, 3], false), "expected y=2, x=2 and 4"),
        (store(&["y", "nv"], &[2, 4], false), "(y=2, nv=4)"),
        (store(&["y", "x", "nv"], &[2, 2, 4], true), "only one of \"lat\" and \"lon\" has bounds"),
    ] {
        let sql = format!(
            "SELECT count(*) FROM grid_coverage('{}', (SELECT '{region}' AS wkt), dataset => 'v')",
            store.path()
        );
        let error = query(&ctx, &sql).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("edges => 'midpoints'"), "{error}");
        let midpoints = sql.replace("'v')", "'v', edges => 'midpoints')");
        assert_eq!(rows_from(&ctx, &midpoints).await, [["4"]]);
    }
}
