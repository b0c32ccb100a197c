//! Random trends, covariances and conditions of a `CASE`, compared with rows in memory.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::random::{compare, conditions, keys, small, tier, weight};
use crate::support::cases::{Axis, Case, name};
use crate::support::reducing;

/// A random function of pairs, or of a `CASE`.
fn aggregate(case: &Case, rng: &mut StdRng) -> String {
    let axis = rng.random_range(0..case.axes.len());
    // Rows evaluate a function that several calls share for all rows, also those that do not pass a filter.
    let w = loop {
        let of_axis = weight(&case.axes[axis], &name(axis), rng);
        if !of_axis.contains("sqrt") {
            break of_axis;
        }
    };
    let predicate = Axis::predicate(&case.axes[axis], &name(axis), rng);
    let number = rng.random_range(-4..6);
    let choices = [
        format!("regr_slope(value, {w})"),
        format!("regr_intercept(value, {w})"),
        format!("regr_slope({w}, value) FILTER (WHERE value > {number})"),
        format!("regr_sxy(value, {w}) FILTER (WHERE {predicate})"),
        format!("regr_sxx({w}, value)"),
        format!("regr_syy(value, {w})"),
        format!("regr_count(value, {w}) FILTER (WHERE {predicate} AND value > {number})"),
        format!("covar_samp(value, {w})"),
        format!("covar_pop({w}, value)"),
        format!("avg(CASE WHEN value > {number} THEN value END)"),
        format!("max(CASE WHEN {predicate} THEN value END) FILTER (WHERE value < {number})"),
        format!("stddev(CASE WHEN value * 2 > {number} THEN value END)"),
        format!("sum(CASE WHEN value > {number} THEN value ELSE 0 END)"),
    ];
    choices.choose(rng).unwrap().clone()
}

/// Compares random queries of a kind of aggregate; returns how many were reductions of `expected`.
pub(super) async fn compare_cases(
    seed: u64,
    (cases, queries): (usize, usize),
    aggregate: fn(&Case, &mut StdRng) -> String,
    expected: &str,
) -> usize {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut found = 0;
    for number in 0..cases {
        let (shape, chunk) = small(&mut rng);
        let wild = rng.random_bool(0.2);
        let case = Case::of_shape(&mut rng, &shape, &chunk, wild);
        let ours = reducing(rng.random_range(1..=7), *[3, 8192].choose(&mut rng).unwrap());
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        for _ in 0..queries {
            let keys = keys(&case, &mut rng, 2);
            let mut calls: Vec<String> =
                (0..rng.random_range(1..4)).map(|_| aggregate(&case, &mut rng)).collect();
            calls.sort();
            calls.dedup();
            let columns = [keys.clone(), calls].concat().join(", ");
            let conditions = conditions(&case, &mut rng).join(" AND ");
            let filter = if conditions.is_empty() { "" } else { " WHERE " };
            let group_by = if keys.is_empty() { "" } else { " GROUP BY " };
            let by = keys.join(", ");
            let sql = format!("SELECT {columns} FROM t{filter}{conditions}{group_by}{by}");
            if let Err(difference) = compare(&ours, &theirs, &sql, keys.len(), case.magnitude).await
            {
                panic!("seed {seed}, case {number}, {}: {sql}\n{difference}", case.description);
            }
            found += usize::from(tier(&ours, &sql).await.contains(expected));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trends_and_cases_agree_with_rows() {
    let compared = |seed| compare_cases(seed, (60, 10), aggregate, "tier=dense");
    let halves = [21, 22].map(|seed| tokio::spawn(compared(seed)));
    let mut dense = 0;
    for half in halves {
        dense += half.await.unwrap();
    }
    assert!(dense > 300, "{dense} queries were dense");
}
