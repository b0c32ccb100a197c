//! Joins of grids with tables and with each other, and tables of many files.

use std::collections::BTreeSet;

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::{
    LATS, LONS, STATIONS, TYPES, at, grids, labels, register, single, tet_file, with_grid,
};
use crate::codec::sent::query_sent;
use crate::support::{cell, query, reducing, rows_from, rows_of, sorted_rows_from};

/// The cells that have a station, by singles: latitude, longitude, value.
fn met() -> Vec<Vec<String>> {
    let mut met = BTreeSet::new();
    for (of_lat, lat) in LATS.into_iter().enumerate() {
        for (of_lon, lon) in LONS.into_iter().enumerate() {
            let is_same = |station: &(&str, &str)| {
                single(station.0) == single(lat) && single(station.1) == single(lon)
            };
            if STATIONS.iter().any(is_same) {
                met.insert(vec![
                    lat.to_owned(),
                    lon.to_owned(),
                    format!("{}.0", 3 * of_lat + of_lon),
                ]);
            }
        }
    }
    met.into_iter().collect()
}

#[tokio::test]
async fn joins_find_their_labels() {
    let tet = tet_file();
    assert_eq!(met().len(), 4);
    for location in grids(&tet) {
        let ctx = with_grid(&location).await;
        for setting in ["lookup_joins", "eager_aggregation"] {
            for (table, _) in TYPES {
                for join in [
                    format!("g JOIN {table} s USING (lat, lon)"),
                    format!("g JOIN {table} s ON g.lat = s.lat AND s.lon = g.lon"),
                    format!("{table} s JOIN g ON g.lat = s.lat AND s.lon = g.lon"),
                    format!("g, {table} s WHERE s.lat = g.lat AND s.lon = g.lon"),
                ] {
                    let sql = format!("SELECT g.lat, g.lon, g.value FROM {join}");
                    assert_eq!(sorted_rows_from(&ctx, &sql).await, met(), "{location}: {sql}");
                    let sql = format!("SELECT count(*), max(g.value) FROM {join}");
                    assert_eq!(rows_from(&ctx, &sql).await, [["4", "11.0"]], "{location}: {sql}");
                }
                let sql = format!(
                    "SELECT count(*), count(s.lat) FROM g LEFT JOIN {table} s ON g.lat = s.lat AND g.lon = s.lon"
                );
                assert_eq!(rows_from(&ctx, &sql).await, [["15", "4"]], "{location}: {sql}");
            }
            query(&ctx, &format!("SET gridfusion.optimizer.enable_{setting} = false"))
                .await
                .unwrap();
        }
        let sql = "SELECT lat, lon FROM g INTERSECT SELECT lat, lon FROM doubles";
        assert_eq!(rows_from(&ctx, &format!("SELECT count(*) FROM ({sql})")).await, [["4"]]);
        let sql = "SELECT lat, lon FROM g EXCEPT SELECT lat, lon FROM doubles";
        assert_eq!(rows_from(&ctx, &format!("SELECT count(*) FROM ({sql})")).await, [["11"]]);
    }
}

#[tokio::test]
async fn joins_of_labels_stay_joins_by_key() {
    let tet = tet_file();
    for location in grids(&tet) {
        let ctx = with_grid(&location).await;
        for (table, _) in TYPES {
            let sql = format!("EXPLAIN SELECT g.value FROM g JOIN {table} s USING (lat, lon)");
            let plan = format!("{:?}", rows_from(&ctx, &sql).await);
            assert!(!plan.contains("NestedLoop") && !plan.contains("CrossJoin"), "{plan}");
            assert!(plan.contains("HashJoinExec") || plan.contains("GridLookupExec"), "{plan}");
        }
    }
}

#[tokio::test]
async fn grids_of_all_formats_join_with_each_other() {
    let tet = tet_file();
    let all = grids(&tet);
    let ctx = reducing(2, 4);
    for (number, location) in all.iter().enumerate() {
        register(&ctx, &format!("g{number}"), location).await;
    }
    register(&ctx, "wide", &at("doubles_cdf2.nc")).await;
    for a in 0..all.len() {
        for b in 0..all.len() {
            let sql = format!(
                "SELECT count(*), sum(a.value - b.value) FROM g{a} a JOIN g{b} b USING (lat, lon)"
            );
            assert_eq!(rows_from(&ctx, &sql).await, [["15", "0.0"]], "{sql}");
        }
        let sql =
            format!("EXPLAIN SELECT a.value - b.value FROM g{a} a JOIN g0 b USING (lat, lon)");
        let plan = format!("{:?}", rows_from(&ctx, &sql).await);
        assert!(a == 0 || !plan.contains("JoinExec"), "{plan}");
        for sql in [
            format!(
                "SELECT count(*), sum(a.value - b.value) FROM g{a} a JOIN wide b USING (lat, lon)"
            ),
            format!(
                "SELECT count(*), sum(a.value - b.value) FROM wide a JOIN g{a} b USING (lat, lon)"
            ),
        ] {
            assert_eq!(rows_from(&ctx, &sql).await, [["15", "0.0"]], "{sql}");
        }
    }
    // Doubles compare as doubles with doubles.
    assert_eq!(cell(&ctx, "SELECT count(*) FROM wide WHERE lat = 50.1").await, "3");
    assert_eq!(cell(&ctx, "SELECT count(*) FROM wide WHERE lat = 50.1000001").await, "0");
}

#[tokio::test]
async fn files_of_singles_and_doubles_are_one_table() {
    let ctx = reducing(2, 4);
    let options = || ArrayOptions::default().with_option("dataset", "t");
    for (name, locations) in [
        ("both", vec![at("grid_cdf2.nc"), at("north_cdf2.nc")]),
        ("turned", vec![at("north_cdf2.nc"), at("grid_nc4.nc")]),
    ] {
        ctx.register_array(name, locations, options()).await.unwrap();
        let sql = format!("SELECT DISTINCT lat FROM {name} ORDER BY lat");
        let expected: Vec<f32> = LATS.into_iter().chain(["50.5", "50.6"]).map(single).collect();
        assert_eq!(labels(&ctx, &sql).await, expected);
        for (predicate, count) in
            [("lat = 50.1", "3"), ("lat = 50.6", "3"), ("lat >= 50.4", "9"), ("lon = 5.1", "7")]
        {
            let sql = format!("SELECT count(*) FROM {name} WHERE {predicate}");
            assert_eq!(cell(&ctx, &sql).await, count, "{sql}");
        }
        let worker = reducing(2, 4);
        let sql = format!("SELECT count(*), max(value) FROM {name} WHERE lat >= 50.4");
        let sent = query_sent(&ctx, &worker, &sql).await.unwrap();
        assert_eq!(rows_of(&sent), [["9", "14.0"]]);
    }
}

#[tokio::test]
async fn plans_with_labels_travel() {
    let tet = tet_file();
    for location in grids(&tet) {
        let (ctx, worker) = (with_grid(&location).await, reducing(2, 4));
        for (sql, expected) in [
            ("SELECT count(*), max(value) FROM g WHERE lat BETWEEN 50.1 AND 50.2", ["6", "8.0"]),
            ("SELECT count(*), max(g.value) FROM g JOIN doubles s USING (lat, lon)", ["4", "11.0"]),
            ("SELECT lat, max(value) FROM g WHERE lat > 50.3 GROUP BY lat", ["50.4", "14.0"]),
        ] {
            let sent = query_sent(&ctx, &worker, sql).await.unwrap();
            assert_eq!(rows_of(&sent), [expected], "{location}: {sql}");
        }
    }
}
