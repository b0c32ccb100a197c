//! Conditions on another variable than the aggregated one: random ones, compared with rows in memory, and their plans.

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::random::{compare, keys, small, tier, weight};
use crate::support::cases::{Axis, Case, name};
use crate::support::{
    F32, F64, Layout, TempTet, TestDataset, cell, reducing, rows_from, tet_bytes,
};

/// A random condition on one of two variables, or on both.
fn condition(rng: &mut StdRng) -> String {
    let variable = *["v", "w"].choose(rng).unwrap();
    let number = rng.random_range(-4..6);
    match rng.random_range(0..7) {
        0 => format!("{variable} > {number} AND {variable} <= {}", number + 4),
        1 => format!("{variable} < {number}.5"),
        2 => format!("{variable} IS NOT NULL"),
        3 => format!("{variable} = {number}"),
        4 => format!("w >= {number} AND v < {}", rng.random_range(-2..6)),
        _ => format!("{variable} > {number}"),
    }
}

/// A random aggregate of one variable, and whether its condition is on the other.
fn aggregate(case: &Case, rng: &mut StdRng) -> (String, bool) {
    let axis = rng.random_range(0..case.axes.len());
    let w = loop {
        // Rows evaluate a function that several calls share for all rows.
        let of_axis = weight(&case.axes[axis], &name(axis), rng);
        if !of_axis.contains("sqrt") && !of_axis.contains("1.0 /") {
            break of_axis;
        }
    };
    let value = *["v", "w"].choose(rng).unwrap();
    let (when, predicate) = (condition(rng), Axis::predicate(&case.axes[axis], &name(axis), rng));
    let function =
        *["avg", "sum", "min", "max", "count", "var", "stddev", "stddev_pop"].choose(rng).unwrap();
    let other = if value == "v" { "w " } else { "v " };
    let text = match rng.random_range(0..12) {
        0 => return (format!("count(*) FILTER (WHERE {when})"), false),
        1 => format!("{function}({value}) FILTER (WHERE {when} AND {predicate})"),
        2 => return (format!("sum(CASE WHEN {when} THEN 1 ELSE 0 END)"), false),
        3 => format!("sum({value} * {w}) FILTER (WHERE {when})"),
        4 => format!("avg(CASE WHEN {when} THEN {value} * 2.0 ELSE 0.5 END)"),
        // A number that is the same for all rows has no slope, or a tiny one where partitions are merged.
        5 => format!("regr_sxy({value}, {w}) FILTER (WHERE {when})"),
        6 => format!("weighted_avg({value}, {w}) FILTER (WHERE {when})"),
        7 => return (format!("{function}({value})"), false),
        8 | 9 => format!("{function}(CASE WHEN {when} THEN {value} END)"),
        _ => format!("{function}({value}) FILTER (WHERE {when})"),
    };
    (text, when.contains(other))
}

/// Compares random queries; returns how many were dense and had a condition on another variable.
async fn compare_cases(seed: u64, cases: usize, queries: usize) -> usize {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut dense = 0;
    for number in 0..cases {
        let (shape, _) = small(&mut rng);
        let wild = rng.random_bool(0.3);
        let case = Case::of_two(&mut rng, &shape, wild);
        let ours = reducing(rng.random_range(1..=7), *[3, 8192].choose(&mut rng).unwrap());
        ours.register_array("t", case.file.location(), ArrayOptions::default()).await.unwrap();
        let theirs = case.in_memory();
        for _ in 0..queries {
            let keys = keys(&case, &mut rng, 2);
            let mut calls: Vec<(String, bool)> =
                (0..rng.random_range(1..5)).map(|_| aggregate(&case, &mut rng)).collect();
            calls.sort();
            calls.dedup();
            let tests_other = calls.iter().any(|(_, tests_other)| *tests_other);
            let calls: Vec<String> = calls.into_iter().map(|(text, _)| text).collect();
            let columns = [keys.clone(), calls].concat().join(", ");
            let filter = match rng.random_bool(0.4) {
                true => format!(" WHERE {}", condition(&mut rng)),
                false => String::new(),
            };
            let group_by = if keys.is_empty() { "" } else { " GROUP BY " };
            let sql = format!("SELECT {columns} FROM t{filter}{group_by}{}", keys.join(", "));
            if let Err(difference) = compare(&ours, &theirs, &sql, keys.len(), case.magnitude).await
            {
                panic!("seed {seed}, case {number}, {}: {sql}\n{difference}", case.description);
            }
            dense += usize::from(tests_other && tier(&ours, &sql).await.contains("tier=dense"));
        }
    }
    dense
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_on_another_variable_agree_with_rows() {
    let halves = [31, 32].map(|seed| tokio::spawn(compare_cases(seed, 100, 10)));
    let mut dense = 0;
    for half in halves {
        dense += half.await.unwrap();
    }
    assert!(dense > 500, "{dense} queries were dense");
}

/// Two variables over 2 x 4 cells. NULL is NaN; `b` has no NULL and every byte.
async fn table() -> (SessionContext, TempTet) {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let (null, most) = (f64::NAN, f64::INFINITY);
    let t = [1.0, 2.0, nan, 4.0, inf, 6.0, -inf, 8.0_f32];
    let p = [0.0, 0.5, 1.0, null, 2.0, most, -most, -0.0];
    let b = [255_u8, 0, 255, 7, 255, 1, 2, 255];
    let metadata = || serde_json::json!({"dim_names": ["y", "x"], "attrs": {}});
    let dataset = |name, tag, chunk: [u64; 2], data: Vec<u8>| {
        TestDataset::new(name, tag, &[2, 4], &chunk, data).with_metadata(metadata())
    };
    let datasets = [
        dataset("t", F32, [2, 4], t.iter().flat_map(|it| it.to_le_bytes()).collect()),
        dataset("p", F64, [1, 3], p.iter().flat_map(|it| it.to_le_bytes()).collect()),
        dataset("b", 5, [2, 2], b.to_vec()),
    ];
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    let file = TempTet::new(&tet_bytes(&datasets, &layout));
    let ctx = reducing(2, 8192);
    ctx.register_array("t", file.location(), ArrayOptions::default()).await.unwrap();
    (ctx, file)
}

#[tokio::test]
async fn conditions_on_another_variable_are_dense() {
    let (ctx, _file) = table().await;
    for (sql, expected) in [
        // Infinity passes, NULL does not, and neither zero is above 0.
        ("SELECT sum(t) FILTER (WHERE p > 0 AND t < 100) FROM t", "8.0"),
        ("SELECT sum(t) FILTER (WHERE p > 0) FROM t", "inf"),
        ("SELECT count(*) FILTER (WHERE p > 0) FROM t", "4"),
        ("SELECT count(t) FILTER (WHERE p > 0) FROM t", "3"),
        ("SELECT count(*) FILTER (WHERE p > 0 AND t IS NOT NULL) FROM t", "3"),
        ("SELECT max(t) FILTER (WHERE p <= 0) FROM t", "8.0"),
        ("SELECT min(t) FILTER (WHERE p <= 0) FROM t", "-inf"),
        ("SELECT avg(CASE WHEN p >= 0.5 AND p < 2 THEN t END) FROM t", "2.0"),
        ("SELECT avg(t) FROM t WHERE p BETWEEN 0 AND 1", "3.6666666666666665"),
        ("SELECT count(*) FROM t WHERE p > 0 AND t > 1 AND b < 255", "2"),
        ("SELECT sum(b) FILTER (WHERE p IS NOT NULL) FROM t", "1023"),
        ("SELECT max(b) FILTER (WHERE t > 1 AND p > 0) FROM t", "255"),
        ("SELECT count(b) FILTER (WHERE p > 9e9) FROM t WHERE t > 0", "1"),
        ("SELECT sum(t * y) FILTER (WHERE p >= 0 AND t < 9) FROM t", "14.0"),
        ("SELECT max_by(x, t) FILTER (WHERE p < 9) FROM t", "0"),
        ("SELECT avg(t) FILTER (WHERE p > 1e300 AND b > 1) FROM t", "NULL"),
    ] {
        assert!(tier(&ctx, sql).await.contains("tier=dense"), "{sql}");
        assert_eq!(cell(&ctx, sql).await, expected, "{sql}");
    }
    let sql =
        "SELECT x, sum(b) FILTER (WHERE p >= 0), max(t) FROM t WHERE b > 0 GROUP BY x ORDER BY x";
    assert!(tier(&ctx, sql).await.contains("tier=dense"));
    let expected =
        [["0", "510", "inf"], ["1", "1", "6.0"], ["2", "255", "-inf"], ["3", "255", "8.0"]];
    assert_eq!(rows_from(&ctx, sql).await, expected);
    for sql in [
        "SELECT sum(t) FILTER (WHERE p > t) FROM t",
        "SELECT sum(t) FILTER (WHERE p > 0 OR b > 0) FROM t",
        "SELECT sum(t) FROM t WHERE p <> 0",
    ] {
        assert!(tier(&ctx, sql).await.contains("tier=accumulators"), "{sql}");
    }
}
