//! Random aggregates of functions of labels, compared with the same over rows.

use std::collections::BTreeMap;

use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::random::{compare, key, keys, small, weight};
use crate::support::cases::{Axis, Case, name};
use crate::support::reducing;

/// A random aggregate of a function of one dimension.
fn of_labels(case: &Case, alone: bool, rng: &mut StdRng) -> String {
    let axis = rng.random_range(0..case.axes.len());
    let (label, number) =
        (key(&case.axes[axis], &name(axis), rng), weight(&case.axes[axis], &name(axis), rng));
    let predicate = case.axes[axis].predicate(&name(axis), rng);
    let integer = match case.axes[axis] {
        Axis::Index(_) => format!("nullif({}, 2)", name(axis)),
        Axis::Text(_) => format!("CAST(character_length({}) AS BIGINT)", name(axis)),
        _ => format!("(CASE WHEN {predicate} THEN 7 END)"),
    };
    let choices = [
        format!("min({label})"),
        format!("max({label})"),
        format!("bool_or({predicate})"),
        format!("bool_and({predicate})"),
        format!("bit_and({integer})"),
        format!("bit_or({integer})"),
        format!("approx_distinct({integer})"),
        format!("count({label})"),
        format!("count(DISTINCT {label})"),
        format!("count(nullif({label}, {label}))"),
        format!("sum({integer})"),
        format!("sum(DISTINCT {integer})"),
        format!("avg({integer})"),
        format!("median({integer})"),
        format!("var_pop({integer})"),
        format!("stddev_pop({integer})"),
        format!("var_samp({integer})"),
        format!("avg({number})"),
        format!("sum({number})"),
    ];
    // The first seven have states, so that they may stand beside aggregates of values.
    let end = if !alone && rng.random_bool(0.9) { 7 } else { choices.len() };
    let aggregate = choices[..end].choose(rng).unwrap().clone();
    // A condition on the same dimension, or on another one.
    let other = rng.random_range(0..case.axes.len());
    let condition = match rng.random_range(0..8) {
        0 => predicate,
        1 => case.axes[other].predicate(&name(other), rng),
        _ => return aggregate,
    };
    format!("{aggregate} FILTER (WHERE {condition})")
}

/// A random aggregation, the number of its keys, and whether it is of labels alone.
fn sql(case: &Case, rng: &mut StdRng) -> (String, usize, bool) {
    let rank = case.axes.len();
    let keys = keys(case, rng, 3);
    let filter = match rng.random_range(0..4) {
        0 => {
            let axis = rng.random_range(0..rank);
            format!(" WHERE {}", case.axes[axis].predicate(&name(axis), rng))
        }
        1 if rng.random_bool(0.3) => " WHERE value > 1".into(),
        _ => String::new(),
    };
    let alone = rng.random_bool(0.5);
    let mut aggregates: Vec<String> =
        (0..rng.random_range(1..4)).map(|_| of_labels(case, alone, rng)).collect();
    if !alone {
        let of_values = ["avg(value)", "count(value)", "max(value)", "sum(value)", "stddev(value)"];
        aggregates.push((*of_values.choose(rng).unwrap()).into());
    }
    aggregates.sort();
    aggregates.dedup();
    let columns: Vec<String> = keys.iter().chain(&aggregates).cloned().collect();
    let mut text = format!("SELECT {} FROM t{filter}", columns.join(", "));
    if !keys.is_empty() {
        text += &format!(" GROUP BY {}", keys.join(", "));
    }
    (text, keys.len(), alone)
}

/// How a query runs.
async fn kind(ctx: &SessionContext, sql: &str, alone: bool) -> &'static str {
    let Ok(frame) = ctx.sql(sql).await else { return "fails" };
    let Ok(plan) = frame.create_physical_plan().await else { return "fails" };
    let plan = displayable(plan.as_ref()).indent(false).to_string();
    match plan.contains("tier=dense") && plan.contains("per_label") {
        true if alone && plan.contains("mode=whole") => "alone",
        true if !alone => "beside values",
        _ => "other",
    }
}

async fn compare_cases(seed: u64) -> BTreeMap<&'static str, usize> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut kinds = BTreeMap::new();
    for number in 0..75 {
        let (shape, chunk) = small(&mut rng);
        let case = Case::of_shape(&mut rng, &shape, &chunk, false);
        let partitions = rng.random_range(1..=5);
        let ours = reducing(partitions, 64);
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        for _ in 0..20 {
            let (sql, keys, alone) = sql(&case, &mut rng);
            if let Err(difference) = compare(&ours, &theirs, &sql, keys, case.magnitude).await {
                panic!(
                    "seed {seed}, case {number}, {} {partitions} partitions: {sql}\n{difference}",
                    case.description
                );
            }
            *kinds.entry(kind(&ours, &sql, alone).await).or_default() += 1;
        }
    }
    kinds
}

/// Three thousand random aggregations of labels, alone and beside values, have the same answers as over rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregates_of_labels_agree_with_rows() {
    let halves = [21, 22].map(|seed| tokio::spawn(compare_cases(seed)));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for half in halves {
        for (kind, count) in half.await.unwrap() {
            *kinds.entry(kind).or_default() += count;
        }
    }
    for kind in ["alone", "beside values"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 500), "{kind}: {kinds:?}");
    }
}
