//! `grid_points`: the nearest cells, neighbours with weights, and labels of times.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::store::{Store, boxed, steps};
use crate::support::{cell, query, reducing, rows_from};

#[tokio::test]
async fn nearest_cells() {
    let store = Store::of_degrees(&steps(60.0, -2.5, 5), &steps(0.0, 2.5, 144));
    let path = store.path();
    let ctx = reducing(2, 100);
    let points = "(SELECT * FROM (VALUES ('a', 57.6, -1.0), ('b', 57.6, 359.0), ('outside', 40.0, 1.0), \
                  ('null', NULL, 1.0), ('nan', 'NaN'::DOUBLE, 1.0)) AS t (id, lat, lon))";
    let sql = format!(
        "SELECT id, cell_lat, cell_lon, round(distance_m / 1000) FROM grid_points('{path}', {points}) ORDER BY id"
    );
    let expected = [
        ["a", "57.5", "0.0", "61.0"],
        ["b", "57.5", "0.0", "61.0"],
        ["nan", "NULL", "NULL", "NULL"],
        ["null", "NULL", "NULL", "NULL"],
        ["outside", "NULL", "NULL", "NULL"],
    ];
    assert_eq!(rows_from(&ctx, &sql).await, expected);
    for (metres, expected) in [("50000", "0"), ("70000", "2")] {
        let sql = format!(
            "SELECT count(cell_lat) FROM grid_points('{path}', {points}, tolerance => {metres})"
        );
        assert_eq!(cell(&ctx, &sql).await, expected);
    }
    // Columns of other names; the distance is that of the labels.
    let sql = format!(
        "SELECT round(distance_m - haversine(a, b, cell_lat, cell_lon), 6) \
         FROM grid_points('{path}', (SELECT 51.3 AS a, 8.2::FLOAT AS b), lat => 'a', lon => 'b')"
    );
    assert_eq!(cell(&ctx, &sql).await, "0.0");
    let plan = format!(
        "EXPLAIN SELECT id FROM grid_points('{path}', {points}, tolerance => 5) WHERE id > 'b'"
    );
    let plan = rows_from(&ctx, &plan).await.concat().join("\n");
    assert!(
        plan.contains(
            "GridPointsExec: grid=v [lat=5, lon=144], method=nearest within 5 m, projection=[id]"
        ),
        "{plan}"
    );
    assert!(!plan.rsplit_once("GridPointsExec").unwrap().0.contains("FilterExec"), "{plan}");
}

/// Many points, in batches of other sizes than those of the output, find the labels that a search of all labels finds.
#[tokio::test]
async fn many_points() {
    let mut rng = StdRng::seed_from_u64(3);
    let (lat, lon) = (steps(-30.0, 0.75, 60), steps(-20.0, 1.5, 40));
    let store = Store::of_degrees(&lat, &lon);
    let ctx = reducing(3, 64);
    let values: Vec<String> = (0..2000)
        .map(|at| {
            let [y, x] = [rng.random_range(-31.0..15.0_f64), rng.random_range(-21.0..40.0_f64)];
            format!("({at}, {y:e}, {x:e})")
        })
        .collect();
    let points = format!("(SELECT * FROM (VALUES {}) AS t (id, lat, lon))", values.join(", "));
    let sql = format!(
        "SELECT id, cell_lat, cell_lon, lat, lon FROM grid_points('{}', {points}) ORDER BY id",
        store.path()
    );
    let rows = rows_from(&ctx, &sql).await;
    assert_eq!(rows.len(), 2000);
    let mut inside = 0;
    for row in rows {
        let [y, x] = [&row[3], &row[4]].map(|it| it.parse::<f64>().unwrap());
        let is_inside = (-30.375..=14.625).contains(&y) && (-20.75..=39.25).contains(&x);
        if !is_inside {
            assert_eq!(row[1..3], ["NULL", "NULL"]);
            continue;
        }
        inside += 1;
        for (label, labels, value) in [(&row[1], &lat, y), (&row[2], &lon, x)] {
            let nearest =
                labels.iter().min_by(|a, b| (*a - value).abs().total_cmp(&(*b - value).abs()));
            assert_eq!(label.parse::<f64>().unwrap(), *nearest.unwrap());
        }
    }
    assert!(inside > 1500);
}

/// Bilinear weights give back a field that is linear along both axes.
#[tokio::test]
async fn linear_weights_give_back_a_linear_field() {
    let (lat, lon) = (steps(0.0, 5.0, 10), steps(100.0, 2.0, 20));
    let cells: Vec<f64> =
        lat.iter().flat_map(|y| lon.iter().map(move |x| 3.0 * y - 2.0 * x)).collect();
    let store = Store::new()
        .with("lat", &["lat"], &[10], json!({"units": "degrees_north"}), &lat)
        .with("lon", &["lon"], &[20], json!({"units": "degrees_east"}), &lon)
        .with("v", &["lat", "lon"], &[10, 20], json!({}), &cells);
    let path = store.path();
    let ctx = reducing(2, 100);
    let points = "(SELECT value AS id, 44.0 * value / 300 AS lat, 100 + 37.9 * ((value * 7) % 300) / 300 AS lon FROM range(300))";
    let sql = format!(
        "SELECT count(*), max(abs(found - (3 * lat - 2 * lon))) < 1e-9, min(total) > 0.999999999, max(total) < 1.000000001 FROM (
           SELECT p.id, p.lat, p.lon, weighted_avg(a.v, p.weight) AS found, sum(p.weight) AS total
           FROM grid_points('{path}', {points}, method => 'linear') p
           JOIN read_array('{path}') a ON a.lat = p.cell_lat AND a.lon = p.cell_lon
           GROUP BY p.id, p.lat, p.lon)"
    );
    assert_eq!(rows_from(&ctx, &sql).await, [["300", "true", "true", "true"]]);
    let outside = format!(
        "SELECT id, cell_lat, weight FROM grid_points('{path}', (SELECT 1 AS id, 80.0 AS lat, 110.0 AS lon), method => 'linear')"
    );
    assert_eq!(rows_from(&ctx, &outside).await, [["1", "NULL", "NULL"]]);
}

#[tokio::test]
async fn times() {
    let days = json!({"units": "days since 2024-01-01"});
    let store = Store::new()
        .with("time", &["time"], &[3], days, &[0.0, 1.0, 4.0])
        .with("lat", &["lat"], &[2], json!({}), &[0.0, 1.0])
        .with("lon", &["lon"], &[2], json!({}), &[0.0, 1.0])
        .with("v", &["time", "lat", "lon"], &[3, 2, 2], json!({}), &steps(0.0, 1.0, 12));
    let path = store.path();
    let ctx = reducing(2, 100);
    let points = "(SELECT 1 AS lat, 0 AS lon, column1::TIMESTAMP AS time FROM (VALUES ('2023-12-31T23:00:00'), \
                  ('2024-01-01T12:00:00'), ('2024-01-03T13:00:00'), ('2030-01-01T00:00:00'), (NULL)))";
    let sql = |options: &str| {
        format!(
            "SELECT date_part('day', p.cell_time)::INT, a.v FROM grid_points('{path}', {points}{options}) p \
             LEFT JOIN read_array('{path}') a ON a.time = p.cell_time AND a.lat = p.cell_lat AND a.lon = p.cell_lon ORDER BY p.time"
        )
    };
    let nearest = [["1", "2.0"], ["2", "6.0"], ["5", "10.0"], ["5", "10.0"], ["NULL", "NULL"]];
    assert_eq!(rows_from(&ctx, &sql("")).await, nearest);
    let last = [["NULL", "NULL"], ["1", "2.0"], ["2", "6.0"], ["5", "10.0"], ["NULL", "NULL"]];
    assert_eq!(rows_from(&ctx, &sql(", time_method => 'last'")).await, last);
    let within =
        [["1", "2.0"], ["NULL", "NULL"], ["NULL", "NULL"], ["NULL", "NULL"], ["NULL", "NULL"]];
    assert_eq!(rows_from(&ctx, &sql(", time_tolerance => '6 hours'")).await, within);
    let dates = format!(
        "SELECT cell_time FROM grid_points('{path}', (SELECT 1 AS lat, 0 AS lon, DATE '2024-01-02' AS d), time => 'd')"
    );
    assert_eq!(cell(&ctx, &dates).await, "2024-01-02T00:00:00");
    let zoned = format!(
        "SELECT cell_time FROM grid_points('{path}', (SELECT 1 AS lat, 0 AS lon, \
         arrow_cast('2024-01-02T00:30:00+01:00', 'Timestamp(Second, Some(\"+01:00\"))') AS time), time_method => 'last')"
    );
    assert_eq!(cell(&ctx, &zoned).await, "2024-01-01T00:00:00");
    let none = format!("SELECT * FROM grid_points('{path}', (SELECT 1 AS lat, 0 AS lon))");
    assert_eq!(query(&ctx, &none).await.unwrap()[0].num_columns(), 5);
    for (options, expected) in [
        ("time => 'lat'", "have to be timestamps"),
        ("time_method => 'first'", "expected 'nearest' or 'last'"),
        ("time_tolerance => '1 month'", "an interval of days or less"),
        ("time_tolerance => 'soon'", "an interval of days or less"),
    ] {
        let sql = format!("SELECT * FROM grid_points('{path}', {points}, {options})");
        let error = query(&ctx, &sql).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{options}: {error}");
    }
}

/// A grid with a latitude and a longitude per cell: indices are the labels of its cells.
#[tokio::test]
async fn curvilinear_grids() {
    let (rows, columns) = (20, 30);
    let place = |at: usize| {
        let (row, column) = ((at / columns) as f64, (at % columns) as f64);
        [40.0 + 0.3 * row + 0.1 * column, 10.0 + 0.3 * column - 0.1 * row]
    };
    let places: Vec<[f64; 2]> = (0..rows * columns).map(place).collect();
    let of = |at: usize| places.iter().map(|it| it[at]).collect::<Vec<f64>>();
    let shape = [rows, columns];
    let store = Store::new()
        .with("nav_lat", &["y", "x"], &shape, json!({"units": "degrees_north"}), &of(0))
        .with("nav_lon", &["y", "x"], &shape, json!({"units": "degrees_east"}), &of(1))
        .with("v", &["y", "x"], &shape, json!({"coordinates": "nav_lat nav_lon"}), &of(0));
    let path = store.path();
    let ctx = reducing(2, 100);
    for options in ["", ", coordinates => true"] {
        let points = "(SELECT value AS id, 42.0 + value * 0.01 AS lat, 13.0 + value * 0.013 AS lon FROM range(200))";
        let sql = format!(
            "SELECT id, cell_y, cell_x, distance_m FROM grid_points('{path}', {points}{options}) ORDER BY id"
        );
        let found = rows_from(&ctx, &sql).await;
        assert_eq!(found.len(), 200);
        for (id, row) in found.iter().enumerate() {
            let (lat, lon) = (42.0 + id as f64 * 0.01, 13.0 + id as f64 * 0.013);
            let distance = |it: &[f64; 2]| gridfusion_spatial::haversine(lat, lon, it[0], it[1]);
            let nearest =
                places.iter().map(distance).enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            assert_eq!(row[1], (nearest.0 / columns).to_string(), "{row:?}");
            assert_eq!(row[2], (nearest.0 % columns).to_string(), "{row:?}");
            assert!((row[3].parse::<f64>().unwrap() - nearest.1).abs() < 1e-3);
        }
    }
    let far = format!("SELECT cell_y FROM grid_points('{path}', (SELECT 0 AS lat, 0 AS lon))");
    assert_eq!(cell(&ctx, &far).await, "NULL");
    let linear = format!(
        "SELECT * FROM grid_points('{path}', (SELECT 42 AS lat, 13 AS lon), method => 'linear')"
    );
    let error = query(&ctx, &linear).await.unwrap_err().to_string();
    assert!(error.contains("per axis"), "{error}");
}

/// Longitudes that are none, such as marks of missing places, have no cell. A last label that repeats the first is left out.
#[tokio::test]
async fn longitudes_of_the_globe() {
    let ctx = reducing(2, 100);
    let globe = Store::of_degrees(&[0.0, 10.0], &steps(-180.0, 90.0, 5));
    let narrow = Store::of_degrees(&[0.0, 10.0], &[179.0, -179.0]);
    for (store, lon, expected) in [
        (&globe, "9999", "NULL"),
        (&globe, "-999", "NULL"),
        (&globe, "720", "0.0"),
        (&globe, "179", "-180.0"),
        (&globe, "-170", "-180.0"),
        (&narrow, "179.4", "179.0"),
        (&narrow, "180.5", "-179.0"),
        (&narrow, "0", "NULL"),
    ] {
        let sql = format!(
            "SELECT cell_lon FROM grid_points('{}', (SELECT 1 AS lat, {lon} AS lon))",
            store.path()
        );
        assert_eq!(cell(&ctx, &sql).await, expected, "{lon}");
    }
    let whole = boxed([-180.0, 180.0], [-5.0, 15.0]);
    let sql = format!(
        "SELECT round(sum(coverage), 9), count(*) FROM grid_coverage('{}', (SELECT '{whole}' AS wkt))",
        globe.path()
    );
    assert_eq!(rows_from(&ctx, &sql).await, [["8.0", "8"]]);
}

/// An array with several dimensions of times needs the name of one, unless one is called `time`.
#[tokio::test]
async fn one_of_several_times() {
    let days = |first: &str| json!({"units": format!("days since {first}")});
    let store = Store::new()
        .with("init", &["init"], &[2], days("2024-01-01"), &[0.0, 1.0])
        .with("valid", &["valid"], &[2], days("2024-02-01"), &[0.0, 1.0])
        .with("lat", &["lat"], &[2], json!({}), &[0.0, 1.0])
        .with("lon", &["lon"], &[2], json!({}), &[0.0, 1.0])
        .with("v", &["init", "valid", "lat", "lon"], &[2, 2, 2, 2], json!({}), &[0.0; 16]);
    let ctx = reducing(2, 100);
    let sql = |options: &str| {
        format!(
            "SELECT * FROM grid_points('{}', (SELECT 1 AS lat, 0 AS lon, TIMESTAMP '2024-02-02' AS time){options})",
            store.path()
        )
    };
    let error = query(&ctx, &sql("")).await.unwrap_err().to_string();
    assert!(error.contains("with option 'time_dimension'; there are init, valid"), "{error}");
    // Points without times need none, and a column of the dimension's name tells it.
    let without = sql("").replace(", TIMESTAMP '2024-02-02' AS time", "");
    assert_eq!(query(&ctx, &without).await.unwrap()[0].num_columns(), 5);
    let by_name = sql("").replace("AS time", "AS valid").replace('*', "cell_valid");
    assert_eq!(cell(&ctx, &by_name).await, "2024-02-02T00:00:00");
    let named = sql(", time_dimension => 'valid'").replace('*', "cell_valid");
    assert_eq!(cell(&ctx, &named).await, "2024-02-02T00:00:00");
    let error = query(&ctx, &sql(", time_dimension => 'lat'")).await.unwrap_err().to_string();
    assert!(error.contains("'lat', and the dimensions with timestamps are init, valid"), "{error}");
}
