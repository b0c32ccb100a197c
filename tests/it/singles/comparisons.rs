//! Every way to compare a label, with numbers of every type.

use datafusion::prelude::{col, lit};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::{LATS, STATIONS, TYPES, at, grids, labels, register, single, tet_file, with_grid};
use crate::support::{cell, query, rows_from, session};

/// A predicate in SQL, and its meaning for a label.
type Predicate = (String, Box<dyn Fn(f32) -> bool>);

/// Predicates of all forms.
fn predicates() -> Vec<Predicate> {
    fn add(all: &mut Vec<Predicate>, sql: &str, holds: impl Fn(f32) -> bool + 'static) {
        all.push((sql.to_owned(), Box::new(holds)));
    }
    let stations = || STATIONS.map(|(lat, _)| single(lat));
    let mut all = vec![];
    for number in [
        "50.1",
        "CAST(50.1 AS FLOAT)",
        "CAST(50.1 AS DOUBLE)",
        "CAST(50.1 AS DECIMAL(6, 3))",
        "'50.10'",
        "(50 + 0.1)",
        // The nearest single is that of 50.1.
        "50.1000001",
    ] {
        let of = single("50.1");
        add(&mut all, &format!("lat = {number}"), move |lat| lat == of);
        add(&mut all, &format!("{number} = lat"), move |lat| lat == of);
        add(&mut all, &format!("lat <> {number}"), move |lat| lat != of);
        add(&mut all, &format!("lat < {number}"), move |lat| lat < of);
        add(&mut all, &format!("lat <= {number}"), move |lat| lat <= of);
        add(&mut all, &format!("{number} < lat"), move |lat| lat > of);
        add(&mut all, &format!("NOT lat < {number}"), move |lat| lat >= of);
        add(&mut all, &format!("lat IS DISTINCT FROM {number}"), move |lat| lat != of);
        add(&mut all, &format!("lat IS NOT DISTINCT FROM {number}"), move |lat| lat == of);
        add(&mut all, &format!("lat IN ({number}, 3)"), move |lat| lat == of);
        add(&mut all, &format!("lat NOT IN ({number}, 50.4)"), move |lat| {
            lat != of && lat != single("50.4")
        });
        add(&mut all, &format!("lat BETWEEN {number} AND 50.3"), move |lat| {
            lat >= of && lat <= single("50.3")
        });
        add(&mut all, &format!("{number} NOT BETWEEN lat AND 50.3"), move |lat| of < lat);
        add(&mut all, &format!("CASE lat WHEN {number} THEN true ELSE false END"), move |lat| {
            lat == of
        });
        add(&mut all, &format!("round(lat, 1) = {number}"), move |lat| lat == of);
        if !number.starts_with('\'') {
            add(&mut all, &format!("-lat = -{number}"), move |lat| lat == of);
        }
    }
    for number in
        ["50.1", "CAST(50.1 AS DOUBLE)", "CAST(50.1 AS FLOAT)", "CAST(50.1 AS DECIMAL(6, 3))"]
    {
        let of = single("50.1");
        add(&mut all, &format!("nullif(lat, {number}) IS NULL"), move |lat| lat == of);
        add(&mut all, &format!("nullif({number}, lat) IS NULL"), move |lat| lat == of);
        add(&mut all, &format!("coalesce(lat, {number}) = {number}"), move |lat| lat == of);
        add(&mut all, &format!("coalesce({number}, lat) = {number}"), |_| true);
        add(&mut all, &format!("greatest(lat, {number}) = {number}"), move |lat| lat <= of);
        add(&mut all, &format!("least(lat, {number}) = lat"), move |lat| lat <= of);
        add(
            &mut all,
            &format!("CASE WHEN lon > 0 THEN lat ELSE {number} END = {number}"),
            move |lat| lat == of,
        );
        // These functions take no decimals.
        if number.contains("DECIMAL") {
            continue;
        }
        add(&mut all, &format!("array_has([{number}], lat)"), move |lat| lat == of);
        add(&mut all, &format!("lat = ANY([{number}])"), move |lat| lat == of);
        add(&mut all, &format!("array_position([{number}, {number}], lat) = 1"), move |lat| {
            lat == of
        });
        add(&mut all, &format!("array_has([lat, lon], {number})"), move |lat| lat == of);
    }
    add(&mut all, "array_has([50.1, 50.3], lat)", |lat| {
        lat == single("50.1") || lat == single("50.3")
    });
    add(&mut all, "array_position([3.5, 50.1], lat) = 2", |lat| lat == single("50.1"));
    add(&mut all, "lat * 2 = 100.2", |lat| lat == single("50.1"));
    add(&mut all, "lat * 0.5 >= 25.1", |lat| lat >= single("50.2"));
    add(&mut all, "lat + 0.0 = 50.3", |lat| lat == single("50.3"));
    add(&mut all, "lat < 1e300 AND lat > -1e300", |_| true);
    add(&mut all, "lat = 50", |lat| lat == 50.0);
    add(&mut all, "(lat, 1) = (50.1, 1)", |lat| lat == single("50.1"));
    add(&mut all, "(lat, 1) IN ((50.1, 1), (50.2, 1), (50.3, 2))", |lat| {
        lat == single("50.1") || lat == single("50.2")
    });
    for (table, _) in TYPES {
        let of = format!("SELECT lat FROM {table}");
        add(&mut all, &format!("lat IN ({of})"), move |lat| stations().contains(&lat));
        add(&mut all, &format!("lat NOT IN ({of})"), move |lat| !stations().contains(&lat));
        let exists = format!("EXISTS (SELECT 1 FROM {table} s WHERE s.lat = g.lat)");
        add(&mut all, &exists, move |lat| stations().contains(&lat));
        add(&mut all, &format!("NOT {exists}"), move |lat| !stations().contains(&lat));
        add(&mut all, &format!("lat = (SELECT max(lat) FROM {table})"), |lat| {
            lat == single("50.4")
        });
        // Numbers and text do not compare so in DataFusion.
        if table != "texts" {
            add(&mut all, &format!("lat = ANY({of})"), move |lat| stations().contains(&lat));
        }
    }
    all
}

#[tokio::test]
async fn every_comparison_finds_its_labels() {
    let tet = tet_file();
    for location in grids(&tet) {
        let ctx = with_grid(&location).await;
        for (predicate, holds) in predicates() {
            let expected: Vec<f32> =
                LATS.into_iter().map(single).filter(|lat| holds(*lat)).collect();
            let sql = format!("SELECT DISTINCT lat FROM g WHERE {predicate} ORDER BY lat");
            assert_eq!(labels(&ctx, &sql).await, expected, "{location}: {sql}");
            let sql = format!("SELECT count(*) FROM g WHERE {predicate}");
            let count = (3 * expected.len()).to_string();
            assert_eq!(cell(&ctx, &sql).await, count, "{location}: {sql}");
        }
    }
}

#[tokio::test]
async fn labels_are_known_through_projections_and_functions() {
    let tet = tet_file();
    for location in grids(&tet) {
        let ctx = with_grid(&location).await;
        query(&ctx, "CREATE VIEW v AS SELECT lat AS y, value FROM g").await.unwrap();
        query(&ctx, "CREATE TABLE kept AS SELECT lat AS y, value FROM g").await.unwrap();
        for (sql, expected) in [
            ("SELECT count(*) FROM (SELECT lat AS y FROM g) WHERE y = 50.1", "3"),
            ("SELECT count(*) FROM v WHERE y = 50.1", "3"),
            ("SELECT count(*) FROM kept WHERE y = 50.1", "3"),
            ("SELECT count(*) FROM (SELECT lat FROM g GROUP BY lat) WHERE lat = 50.1", "1"),
            ("SELECT max(lat) FROM g HAVING max(lat) = 50.4", "50.4"),
            ("SELECT count(*) FROM (SELECT max(lat) AS m FROM g) WHERE m > 50.4", "0"),
            (
                "SELECT lat FROM (SELECT lat, lag(lat) OVER (ORDER BY lat) AS before FROM (SELECT DISTINCT lat FROM g)) \
                 WHERE before = 50.1",
                "50.2",
            ),
            (
                "SELECT count(*) FROM (SELECT lat FROM g UNION ALL SELECT lat FROM g) WHERE lat = 50.1",
                "6",
            ),
            ("SELECT count(*) FROM (SELECT * FROM g ORDER BY lat LIMIT 7) WHERE lat = 50.1", "3"),
            (
                "WITH w AS (SELECT * FROM g) SELECT value FROM w WHERE lat = 50.1 AND lon = 5.1",
                "4.0",
            ),
            ("SELECT count(*) FILTER (WHERE lat = 50.1) FROM g", "3"),
            ("SELECT sum(CASE WHEN lat = 50.1 THEN value ELSE 0 END) FROM g", "12.0"),
            ("SELECT max(value) FROM g GROUP BY lat HAVING lat = 50.1", "5.0"),
            ("SELECT lat + 0.5 FROM g WHERE lat = 50.1 AND lon = 5.0", "50.6"),
        ] {
            assert_eq!(cell(&ctx, sql).await, expected, "{location}: {sql}");
        }
        // The method of a data frame, and prepared statements.
        let frame = ctx.table("g").await.unwrap().filter(col("lat").eq(lit(50.1))).unwrap();
        assert_eq!(frame.count().await.unwrap(), 3);
        query(&ctx, "PREPARE p AS SELECT count(*) FROM g WHERE lat = $1").await.unwrap();
        assert_eq!(cell(&ctx, "EXECUTE p(50.1)").await, "3");
        query(&ctx, "PREPARE q AS SELECT count(*) FROM g WHERE lat IN (50.1)").await.unwrap();
        assert_eq!(cell(&ctx, "EXECUTE q").await, "3");
    }
}

#[tokio::test]
async fn groups_orders_and_windows_of_labels() {
    let tet = tet_file();
    for location in grids(&tet) {
        let ctx = with_grid(&location).await;
        let rows = rows_from(&ctx, "SELECT lat, sum(value) FROM g GROUP BY lat ORDER BY lat").await;
        let expected: Vec<Vec<String>> = (0..5)
            .map(|lat| vec![LATS[lat].to_owned(), format!("{:?}", (9 * lat + 3) as f64)])
            .collect();
        assert_eq!(rows, expected, "{location}");
        let sql = "EXPLAIN SELECT lat, sum(value * cos(radians(lat))) FROM g WHERE lat < 50.3 GROUP BY lat";
        let plan = format!("{:?}", rows_from(&ctx, sql).await);
        assert!(plan.contains("tier=dense") && !plan.contains("FilterExec"), "{plan}");
        let sql = "SELECT value, sum(value) OVER (PARTITION BY lon ORDER BY lat RANGE BETWEEN 0.15 PRECEDING AND CURRENT ROW) \
                   FROM g WHERE lon = 5.1 ORDER BY lat";
        let sums: Vec<String> =
            rows_from(&ctx, sql).await.into_iter().map(|row| row[1].clone()).collect();
        assert_eq!(sums, ["1.0", "5.0", "11.0", "17.0", "23.0"], "{location}");
    }
}

#[tokio::test]
async fn coordinates_beside_values_are_labels_too() {
    for name in ["grid_cdf2.nc", "grid_nc4.nc", "grid_v2.zarr", "grid_v3.zarr"] {
        let ctx = with_grid(&at(name)).await;
        let all = ArrayOptions::default().with_option("coordinates", true);
        ctx.register_array("w", at(name), all).await.unwrap();
        for (sql, expected) in [
            ("SELECT count(*) FROM w WHERE alt = 0.7", "1"),
            ("SELECT count(*) FROM w WHERE alt <= 0.3", "4"),
            ("SELECT count(*) FROM w WHERE alt IN (0.1, 0.2, 7)", "2"),
            ("SELECT count(*) FROM w WHERE alt > 1.3", "1"),
        ] {
            assert_eq!(cell(&ctx, sql).await, expected, "{name}: {sql}");
        }
        let options = ArrayOptions::default().with_option("dataset", "lat");
        ctx.register_array("l", at(name), options).await.unwrap();
        assert_eq!(cell(&ctx, "SELECT count(*) FROM l WHERE lat = value").await, "5");
        assert_eq!(cell(&ctx, "SELECT count(*) FROM l WHERE value = 50.1").await, "1");
    }
}

#[tokio::test]
async fn variables_compare_as_in_datafusion() {
    let ctx = with_grid(&at("grid_cdf2.nc")).await;
    // A value is no label: 0.1 is not the single 0.1.
    let sql = "SELECT count(*) FROM (SELECT value / 10 AS tenth FROM g) WHERE tenth = 0.1";
    assert_eq!(cell(&ctx, sql).await, "0");
}

#[tokio::test]
async fn sessions_without_the_rule_find_singles() {
    let ctx = session(2, 4);
    register(&ctx, "g", &at("grid_cdf2.nc")).await;
    let count = |predicate: &str| format!("SELECT count(*) FROM g WHERE {predicate}");
    assert_eq!(cell(&ctx, &count("lat = CAST(50.1 AS FLOAT)")).await, "3");
    assert_eq!(cell(&ctx, &count("lat = 50.1")).await, "0");
}

/// A union of labels with doubles has the doubles of their decimals, so each label is one row.
#[tokio::test]
async fn unions_show_labels_as_doubles() {
    let tet = tet_file();
    for location in grids(&tet) {
        let ctx = with_grid(&location).await;
        query(
            &ctx,
            "CREATE TABLE all_lats(lat DOUBLE) AS VALUES (50.0), (50.1), (50.2), (50.3), (50.4)",
        )
        .await
        .unwrap();
        for (sql, expected) in [
            ("SELECT count(*) FROM (SELECT lat FROM g UNION SELECT lat FROM all_lats)", "5"),
            ("SELECT count(*) FROM (SELECT lat FROM all_lats UNION SELECT lat FROM g)", "5"),
            (
                "SELECT count(*) FROM (SELECT lat FROM all_lats UNION BY NAME SELECT lat FROM g)",
                "5",
            ),
            (
                "SELECT count(*) FROM (SELECT lat FROM g UNION BY NAME SELECT lat FROM all_lats)",
                "5",
            ),
            (
                "SELECT count(*) FROM (SELECT lat FROM g UNION SELECT lat FROM all_lats UNION SELECT lat FROM g)",
                "5",
            ),
            ("SELECT count(*) FROM (SELECT lat FROM g INTERSECT SELECT lat FROM all_lats)", "5"),
            ("SELECT count(*) FROM (SELECT lat FROM g EXCEPT SELECT lat FROM all_lats)", "0"),
            (
                "SELECT count(*) FROM (SELECT lat AS y FROM g UNION ALL SELECT lat FROM all_lats) WHERE y = 50.1",
                "4",
            ),
            (
                "SELECT count(DISTINCT y) FROM (SELECT lat AS y FROM g UNION ALL SELECT lat FROM all_lats) AS q",
                "5",
            ),
            ("SELECT max(lat) FROM (SELECT lat FROM g UNION SELECT lat FROM doubles)", "50.4"),
            ("SELECT count(*) FROM (SELECT lat FROM g UNION SELECT lat FROM decimals)", "6"),
            ("SELECT count(*) FROM (SELECT lat FROM g UNION SELECT lat FROM texts)", "6"),
            (
                "SELECT count(*) FROM g WHERE lat IN (SELECT lat FROM g UNION SELECT lat FROM doubles)",
                "15",
            ),
            (
                "SELECT arrow_typeof(lat) FROM (SELECT lat FROM g UNION SELECT lat FROM floats) LIMIT 1",
                "Float32",
            ),
            ("SELECT count(*) FROM (SELECT lat = 50.1 FROM g GROUP BY ROLLUP (lat = 50.1))", "3"),
        ] {
            assert_eq!(cell(&ctx, sql).await, expected, "{location}: {sql}");
        }
    }
}
