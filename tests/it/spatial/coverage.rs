//! `grid_coverage`: cells, labels, fractions and areas against computations by hand.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Float64Type;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::store::{Store, boxed, steps};
use crate::support::{cell, query, reducing, rows_from};

/// The length that two intervals share.
fn shared(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[1].min(b[1]) - a[0].max(b[0])).max(0.0)
}

fn numbers(batches: &[RecordBatch], column: usize) -> Vec<f64> {
    let column =
        |it: &RecordBatch| it.column(column).as_primitive::<Float64Type>().values().to_vec();
    batches.iter().flat_map(column).collect()
}

/// Weighted means of random boxes, by a join on the labels, equal those of a loop over all cells. Longitudes of polygons and grid
/// differ by a turn; latitudes descend.
#[tokio::test]
async fn zonal_means_of_boxes() {
    let mut rng = StdRng::seed_from_u64(48);
    let (lat, lon) = (steps(70.0, -2.5, 20), steps(0.0, 2.5, 144));
    let store = Store::of_degrees(&lat, &lon);
    let path = store.path();
    let ctx = reducing(2, 37);
    let boxes: Vec<([f64; 2], [f64; 2])> = (0..30)
        .map(|_| {
            let west = rng.random_range(-180.0..170.0);
            let south = rng.random_range(24.0..68.0);
            let [width, height] = [(); 2].map(|()| rng.random_range(0.1..20.0_f64));
            ([west, west + width], [south, (south + height).min(71.0)])
        })
        .collect();
    let rows = boxes.iter().enumerate().map(|(at, (x, y))| format!("({at}, '{}')", boxed(*x, *y)));
    let values = rows.collect::<Vec<_>>().join(", ");
    ctx.sql(&format!("CREATE VIEW boxes AS SELECT * FROM (VALUES {values}) AS t (id, wkt)"))
        .await
        .unwrap();
    let sql = format!(
        "SELECT c.id::DOUBLE AS number, sum(c.coverage), weighted_avg(a.v, c.coverage), weighted_avg(a.v, c.area_m2), sum(c.area_m2) \
         FROM grid_coverage('{path}', boxes) c JOIN read_array('{path}') a USING (lat, lon) GROUP BY c.id ORDER BY c.id"
    );
    let found = query(&ctx, &sql).await.unwrap();
    assert_eq!(numbers(&found, 0).len(), boxes.len());
    for (at, (x, y)) in boxes.iter().enumerate() {
        let [mut sum, mut by_area, mut weight, mut area] = [0.0; 4];
        for (row, lat) in lat.iter().enumerate() {
            for (column, lon) in lon.iter().enumerate() {
                let wide: f64 = [-360.0, 0.0, 360.0]
                    .map(|turn| shared(*x, [lon - 1.25 + turn, lon + 1.25 + turn]))
                    .iter()
                    .sum();
                let part = wide * shared(*y, [lat - 1.25, lat + 1.25]) / 6.25;
                let cell = [lat - 1.25, lat + 1.25].map(|it| it.to_radians().sin());
                let size = 6_371_008.8_f64.powi(2) * 2.5_f64.to_radians() * (cell[1] - cell[0]);
                let value = 1000.0 * row as f64 + column as f64;
                sum += part * value;
                weight += part;
                by_area += part * size * value;
                area += part * size;
            }
        }
        for (column, expected) in
            [weight, sum / weight, by_area / area, area].into_iter().enumerate()
        {
            let found = numbers(&found, column + 1)[at];
            let error = (found - expected).abs() / expected.abs();
            assert!(error < 1e-9, "box {at}, column {column}: {found}, expected {expected}");
        }
    }
}

/// Labels have the type and the bits of those in the array's table.
#[tokio::test]
async fn labels_are_those_of_the_array() {
    let lat: Vec<f32> = (501_u16..541).map(|at| f32::from(at) / 10.0).collect();
    let lon: Vec<f32> = (33_u16..63).map(|at| f32::from(at) / 10.0).collect();
    let cells = vec![1.0; 1200];
    let store = Store::new()
        .with_singles("lat", &["lat"], &[40], json!({"units": "degrees_north"}), &lat)
        .with_singles("lon", &["lon"], &[30], json!({"units": "degrees_east"}), &lon)
        .with("v", &["lat", "lon"], &[40, 30], json!({}), &cells);
    let path = store.path();
    let ctx = reducing(2, 100);
    let all = format!("(SELECT '{}' AS geometry)", boxed([3.0, 7.0], [50.0, 55.0]));
    let sql = format!("SELECT * FROM grid_coverage('{path}', {all}) ORDER BY lat, lon");
    let found = ctx.sql(&sql).await.unwrap();
    let own = ctx.sql(&format!("SELECT lat, lon FROM read_array('{path}')")).await.unwrap();
    for name in ["lat", "lon"] {
        assert_eq!(
            found.schema().field_with_unqualified_name(name).unwrap(),
            own.schema().field_with_unqualified_name(name).unwrap()
        );
    }
    let joined = format!(
        "SELECT count(*), sum(v) FROM grid_coverage('{path}', {all}) JOIN read_array('{path}') USING (lat, lon)"
    );
    assert_eq!(rows_from(&ctx, &joined).await, [["1200", "1200.0"]]);
    let one = format!("SELECT count(*) FROM grid_coverage('{path}', {all}) WHERE lat = 50.4");
    assert_eq!(cell(&ctx, &one).await, "30");
}

/// The same region on grids from 0 to 360 and from -180 to 180, ascending and descending, in one part and in two.
#[tokio::test]
async fn turns_and_directions() {
    let ctx = reducing(2, 100);
    let across = [
        boxed([175.0, 187.0], [-3.0, 8.0]),
        boxed([-185.0, -173.0], [-3.0, 8.0]),
        "MULTIPOLYGON (((175 -3, 180 -3, 180 8, 175 8, 175 -3)), ((-180 -3, -173 -3, -173 8, -180 8, -180 -3)))"
            .to_owned(),
    ];
    let mut all = vec![];
    for (lat, lon) in [
        (steps(-88.0, 4.0, 45), steps(0.0, 4.0, 90)),
        (steps(88.0, -4.0, 45), steps(-180.0, 4.0, 90)),
    ] {
        let store = Store::of_degrees(&lat, &lon);
        for region in &across {
            let sql = format!(
                "SELECT lat, (lon + 360) % 360 AS lon, round(coverage, 9) FROM grid_coverage('{}', (SELECT '{region}' AS wkt)) \
                 ORDER BY 1, 2",
                store.path()
            );
            all.push(rows_from(&ctx, &sql).await);
        }
    }
    assert_eq!(all[0].len(), 4 * 4);
    assert!(all.iter().all(|it| *it == all[0]), "{all:?}");
}

#[tokio::test]
async fn holes_rules_and_small_polygons() {
    let store = Store::of_degrees(&steps(0.5, 1.0, 10), &steps(0.5, 1.0, 10));
    let ctx = reducing(2, 100);
    let hole = "POLYGON ((1 1, 9 1, 9 9, 1 9, 1 1), (3 3, 7.6 3, 7.6 7.6, 3 7.6, 3 3))";
    let tiny = "POLYGON ((2.1 2.1, 2.2 2.1, 2.2 2.2, 2.1 2.2, 2.1 2.1))";
    for (wkt, rule, expected) in [
        (hole, "coverage", ["48", "42.84"]),
        (hole, "centre", ["39", "39.0"]),
        (hole, "touched", ["48", "48.0"]),
        (tiny, "coverage", ["1", "0.01"]),
        (tiny, "centre", ["0", "NULL"]),
        (tiny, "TOUCHED", ["1", "1.0"]),
    ] {
        let sql = format!(
            "SELECT count(*), round(sum(coverage), 9) FROM grid_coverage('{}', (SELECT '{wkt}' AS geom), rule => '{rule}')",
            store.path()
        );
        assert_eq!(rows_from(&ctx, &sql).await, [expected], "{rule} {wkt}");
    }
}

#[tokio::test]
async fn projections_filters_and_limits() {
    let store = Store::of_degrees(&steps(-89.5, 1.0, 180), &steps(0.5, 1.0, 360));
    let path = store.path();
    let ctx = reducing(2, 1000);
    let values = ["a", "b", "c"]
        .map(|id| format!("('{id}', 7, '{}')", boxed([-170.0, 170.0], [-80.0, 80.0])));
    ctx.sql(&format!(
        "CREATE TABLE r AS SELECT * FROM (VALUES {}) AS t (id, n, wkt)",
        values.join(", ")
    ))
    .await
    .unwrap()
    .collect()
    .await
    .unwrap();
    let count = |rest: &str| format!("SELECT count(*) FROM grid_coverage('{path}', r) {rest}");
    assert_eq!(cell(&ctx, &count("")).await, (3 * 340 * 160).to_string());
    assert_eq!(cell(&ctx, &count("WHERE id <> 'b' AND n = 7")).await, (2 * 340 * 160).to_string());
    assert_eq!(cell(&ctx, &count("WHERE lat > 0 AND id = 'a'")).await, (340 * 80).to_string());
    let rows = format!("SELECT coverage, id FROM grid_coverage('{path}', r) LIMIT 3");
    assert_eq!(rows_from(&ctx, &rows).await, [["1.0", "a"], ["1.0", "a"], ["1.0", "a"]]);
    let plan =
        format!("EXPLAIN SELECT id, coverage FROM grid_coverage('{path}', r) WHERE id = 'a'");
    let plan = rows_from(&ctx, &plan).await.concat().join("\n");
    assert!(
        plan.contains("GridCoverageExec: grid=v [lat=180, lon=360], rule=coverage, geometry=wkt, projection=[id, coverage]"),
        "{plan}"
    );
    // The filter stands below, so the cells of other polygons are not computed.
    let (above, below) = plan.rsplit_once("GridCoverageExec").unwrap();
    assert!(!above.contains("FilterExec") && below.contains("FilterExec: id@0 = a"), "{plan}");
}

/// A region of very many cells does not become one batch.
#[tokio::test]
async fn cells_stream() {
    let store = Store::of_degrees(&steps(-89.5, 1.0, 180), &steps(0.5, 1.0, 360));
    let ctx = reducing(1, 512);
    let sql = format!(
        "SELECT * FROM grid_coverage('{}', (SELECT '{}' AS wkt))",
        store.path(),
        boxed([-180.0, 180.0], [-90.0, 90.0])
    );
    let batches = query(&ctx, &sql).await.unwrap();
    assert!(batches.iter().all(|it| it.num_rows() <= 512));
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 180 * 360);
}
