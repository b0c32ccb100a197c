//! Random aggregations as reductions, compared with the same aggregations over rows: random arrays,
//! keys, aggregates and predicates.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::cluster::workers::query_on_workers;
use crate::codec::sent::{loses_parts, query_sent};
use crate::support::cases::{Axis, Case, name};
use crate::support::{query, reducing, rows_of};

/// A key expression over one dimension.
pub(crate) fn key(axis: &Axis, name: &str, rng: &mut StdRng) -> String {
    let choices = match axis {
        Axis::Index(_) => vec![
            format!("{name} % 3"),
            format!("{name} / 2"),
            format!("CASE WHEN {name} > 2 THEN 1 ELSE 0 END"),
            format!("CAST({name} AS VARCHAR)"),
        ],
        Axis::Text(_) => vec![
            format!("substr({name}, 1, 2)"),
            format!("character_length({name})"),
            format!("nullif({name}, 's2')"),
        ],
        Axis::Numbers(_) => {
            vec![format!("floor({name})"), format!("-{name}"), format!("nullif({name}, 0.5)")]
        }
        Axis::Hours(_) => vec![
            format!("date_trunc('day', {name})"),
            format!("date_part('hour', {name})"),
            format!("date_trunc('month', {name})"),
            format!("CAST({name} AS TIME)"),
            format!("CAST({name} AS DATE)"),
        ],
    };
    if rng.random_bool(0.5) { name.into() } else { choices.choose(rng).unwrap().clone() }
}

/// A number that depends on one dimension: a weight, which may be NULL, 0, negative or infinite.
pub(super) fn weight(axis: &Axis, name: &str, rng: &mut StdRng) -> String {
    let choices = match axis {
        Axis::Index(_) => vec![
            format!("({name} * 0.5)"),
            format!("(1.5 - {name})"),
            format!("CAST({name} % 3 AS DOUBLE)"),
            format!("(CASE WHEN {name} % 4 <> 1 THEN 1.5 END)"),
        ],
        Axis::Text(_) => vec![
            format!("CAST(character_length({name}) AS DOUBLE)"),
            format!("(CASE {name} WHEN 's2' THEN 0.5 ELSE 2.0 END)"),
        ],
        Axis::Numbers(_) => vec![
            name.into(),
            format!("cos(radians({name}))"),
            format!("nullif({name}, 0.5)"),
            format!("sqrt({name})"),
            format!("(1.0 / {name})"),
        ],
        Axis::Hours(_) => vec![
            format!("cos(date_part('hour', {name}))"),
            format!("(date_part('hour', {name}) - 1.5)"),
        ],
    };
    choices.choose(rng).unwrap().clone()
}

/// A random aggregate with weights, arithmetic, or a condition of its own.
pub(crate) fn weighed(case: &Case, rng: &mut StdRng) -> String {
    let mut of_axis = |make: fn(&Axis, &str, &mut StdRng) -> String| {
        // Weights along the innermost axis are multiplied with cells.
        let innermost = case.axes.len() - 1;
        let axis = if rng.random_bool(0.5) { innermost } else { rng.random_range(0..=innermost) };
        make(&case.axes[axis], &name(axis), rng)
    };
    let (w, v) = (of_axis(weight), of_axis(weight));
    let predicate = of_axis(Axis::predicate);
    let number = rng.random_range(-4..6);
    let choices = [
        format!("sum(value * {w})"),
        format!("avg(value * {w} * {v})"),
        format!("sum((value - 1.5) * {w})"),
        format!("avg(value / 2.5 - {w} * {v} + 1.5)"),
        format!("sum(-value * ({w} + {v}))"),
        format!("avg(value - {w})"),
        format!("sum(value / {w})"),
        format!("count(value * {w})"),
        format!("sum({w})"),
        format!("sum({w}) FILTER (WHERE value IS NOT NULL)"),
        format!("weighted_avg(value, {w})"),
        format!("weighted_avg(value, {w} * {v})"),
        format!("weighted_avg(value - 1.5, {w}) FILTER (WHERE value > {number})"),
        format!("sum(value * {w}) FILTER (WHERE {predicate} AND value > {number})"),
        format!("count(*) FILTER (WHERE value > {number})"),
        format!("count(*) FILTER (WHERE {predicate})"),
        format!("avg(value) FILTER (WHERE {predicate})"),
        format!("min(value) FILTER (WHERE {predicate})"),
        format!("max(value) FILTER (WHERE value <= {number} AND {predicate})"),
        format!("stddev(value) FILTER (WHERE {predicate})"),
        format!("sum(value) FILTER (WHERE value >= {number}.5)"),
        format!("sum(CASE WHEN value > {number} THEN 1 ELSE 0 END)"),
        format!("avg(CASE WHEN value > {number} THEN 1.0 ELSE 0.0 END)"),
        format!("count(CASE WHEN value > {number} AND {predicate} THEN 1 END)"),
        format!("sum(CASE WHEN value > {number} THEN value * {w} ELSE {v} END)"),
        format!("sum(CASE WHEN {predicate} THEN value * 2.0 ELSE 7 END)"),
        "avg(value - 273.15)".into(),
        "sum(value * 0.0)".into(),
    ];
    choices.choose(rng).unwrap().clone()
}

/// A random aggregate of values or of a dimension.
pub(crate) fn aggregate(case: &Case, rng: &mut StdRng) -> String {
    let axis = rng.random_range(0..case.axes.len());
    let dimension = name(axis);
    let predicate = case.axes[axis].predicate(&dimension, rng);
    let choices = [
        "count(*)".into(),
        "count(value)".into(),
        "sum(value)".into(),
        "avg(value)".into(),
        "min(value)".into(),
        "max(value)".into(),
        "var_samp(value)".into(),
        "var_pop(value)".into(),
        "stddev(value)".into(),
        "stddev_pop(value)".into(),
        "avg(value - 1.5)".into(),
        "sum(CAST(value AS DOUBLE) * 2)".into(),
        "count(DISTINCT value)".into(),
        "median(value)".into(),
        "bool_or(value > 2)".into(),
        "corr(value, value * value)".into(),
        "sum(value) FILTER (WHERE value > 1)".into(),
        "max(abs(value))".into(),
        "max(value - 1.5)".into(),
        "min(value * 2.5 + 1.0)".into(),
        "max(abs(2.5 - value / 3.0))".into(),
        format!("max(abs(value - 1.5)) FILTER (WHERE {predicate})"),
        format!("avg(value) FILTER (WHERE {predicate})"),
        format!("count(*) FILTER (WHERE {predicate})"),
        format!("min({dimension})"),
        format!("max({dimension})"),
        format!("count({dimension})"),
    ];
    // The first ten are the most common ones.
    let end = if rng.random_bool(0.6) { 10 } else { choices.len() };
    choices[..end].choose(rng).unwrap().clone()
}

pub(crate) fn conditions(case: &Case, rng: &mut StdRng) -> Vec<String> {
    (0..rng.random_range(0..3))
        .map(|_| {
            let axis = rng.random_range(0..case.axes.len());
            let dimension = case.axes[axis].predicate(&name(axis), rng);
            let number = rng.random_range(-4..6);
            let operator = ["<", "<=", ">", ">=", "=", "<>"].choose(rng).unwrap();
            match rng.random_range(0..10) {
                0..3 => format!("value {operator} {number}"),
                3 => format!("value {operator} {number}.5"),
                4 => format!("value BETWEEN {number} AND {}", number + 3),
                5 => ["value IS NULL", "value IS NOT NULL", "value * 2 > 3"]
                    .choose(rng)
                    .unwrap()
                    .to_string(),
                6 => format!("({dimension} OR value > 2)"),
                _ => dimension,
            }
        })
        .collect()
}

/// At most so many random keys.
pub(crate) fn keys(case: &Case, rng: &mut StdRng, most: usize) -> Vec<String> {
    let rank = case.axes.len();
    let count = rng.random_range(0..=rank.min(most));
    let key = |_| {
        let axis = rng.random_range(0..rank);
        key(&case.axes[axis], &name(axis), rng)
    };
    let mut keys: Vec<String> = (0..count).map(key).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// A random aggregation, and the number of its keys, which are its first columns.
fn sql(case: &Case, rng: &mut StdRng) -> (String, usize) {
    let mut keys = keys(case, rng, 3);
    if rng.random_bool(0.05) {
        // Not a dimension: the query must fall back to rows. There, DataFusion 55 takes times of day as sorted like
        // the times that they are made of, and returns a group several times.
        keys.retain(|key| !key.contains("AS TIME"));
        keys.push("value".into());
    }
    keys.sort();
    keys.dedup();
    let conditions = conditions(case, rng);
    let filter = match conditions.as_slice() {
        [] => String::new(),
        _ => format!(" WHERE {}", conditions.join(" AND ")),
    };
    if !keys.is_empty() && rng.random_bool(0.1) {
        return (format!("SELECT DISTINCT {} FROM t{filter}", keys.join(", ")), keys.len());
    }
    let of_cells = rng.random_bool(0.5);
    let mut aggregates: Vec<String> = (0..rng.random_range(1..5))
        .map(|_| if of_cells { aggregate(case, rng) } else { weighed(case, rng) })
        .collect();
    aggregates.sort();
    aggregates.dedup();
    let columns: Vec<String> = keys.iter().chain(&aggregates).cloned().collect();
    let mut text = format!("SELECT {} FROM t{filter}", columns.join(", "));
    if !keys.is_empty() {
        text += &format!(" GROUP BY {}", keys.join(", "));
        if rng.random_bool(0.1) {
            text += " HAVING count(value) > 2";
        }
    }
    (text, keys.len())
}

/// Whether two cells are equal, but for rounding errors up to `scale` or one part in 10⁹.
pub(crate) fn same(ours: &str, theirs: &str, scale: f64) -> bool {
    if ours == theirs {
        return true;
    }
    if ours.parse::<i128>().is_ok() && theirs.parse::<i128>().is_ok() {
        return false; // integers are not rounded
    }
    let (Ok(a), Ok(b)) = (ours.parse::<f64>(), theirs.parse::<f64>()) else { return false };
    if a.is_infinite() {
        // DataFusion's grouped min and max start at the greatest finite number.
        let greatest = b.abs() as f32 == f32::MAX || [f64::MAX, 65504.0].contains(&b.abs());
        return greatest && a * b > 0.0;
    }
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) + scale
}

pub(crate) async fn compare(
    ours: &SessionContext,
    theirs: &SessionContext,
    sql: &str,
    keys: usize,
    magnitude: f64,
) -> Result<usize, String> {
    let expected = query(theirs, sql).await;
    let rows = agree(query(ours, sql).await, copied(&expected), keys, magnitude)?;
    // Some plans also run in a session that has only their bytes, and the same object stores. Others run on workers.
    let number = sql.bytes().map(u64::from).sum::<u64>();
    let (other, how) = match number % 4 {
        0 => (sent_if_possible(ours, sql).await, "as bytes"),
        1 => (on_workers_if_possible(ours, 1 + number as usize % 3, sql).await, "on workers"),
        _ => (None, ""),
    };
    if let Some(found) = other {
        let same = agree(found, expected, keys, magnitude);
        same.map_err(|difference| format!("{how}: {difference}"))?;
    }
    Ok(rows)
}

fn copied(result: &DfResult<Vec<RecordBatch>>) -> DfResult<Vec<RecordBatch>> {
    match result {
        Ok(batches) => Ok(batches.clone()),
        Err(error) => Err(DataFusionError::Execution(error.to_string())),
    }
}

/// Runs a query in another session, which gets its plan as bytes. `None` if its table has no location.
///
/// Also `None` for a window over rows of which DataFusion's messages lose a part.
pub(super) async fn sent_if_possible(
    ours: &SessionContext,
    sql: &str,
) -> Option<DfResult<Vec<RecordBatch>>> {
    if loses_parts(ours, sql).await {
        return None;
    }
    let config = ours.copied_config().with_batch_size(77);
    let worker = SessionContext::new_with_config_rt(config, ours.runtime_env());
    Some(query_sent(ours, &worker, sql).await).filter(|it| !it.as_ref().is_err_and(cannot_travel))
}

/// The queries that ran on workers.
static ON_WORKERS: AtomicUsize = AtomicUsize::new(0);

/// Runs a query on workers; `None` if its table has no location.
pub(super) async fn on_workers_if_possible(
    ours: &SessionContext,
    workers: usize,
    sql: &str,
) -> Option<DfResult<Vec<RecordBatch>>> {
    let found = query_on_workers(ours, workers, sql).await;
    ON_WORKERS.fetch_add(usize::from(found.is_ok()), Ordering::Relaxed);
    Some(found).filter(|it| !it.as_ref().is_err_and(cannot_travel))
}

/// Whether a plan cannot travel: its table has no location, or a number is a literal of 16 bits, of which DataFusion's
/// messages make one of 32 bits.
fn cannot_travel(error: &DataFusionError) -> bool {
    let message = error.to_string();
    ["register it by its path or URL", "Float16"].iter().any(|it| message.contains(it))
}

/// Compares the results of a query, of which the first columns are `keys`.
pub(crate) fn agree(
    found: DfResult<Vec<RecordBatch>>,
    expected: DfResult<Vec<RecordBatch>>,
    keys: usize,
    magnitude: f64,
) -> Result<usize, String> {
    let (found, expected) = match (found, expected) {
        (Ok(found), Ok(expected)) => (found, expected),
        (Err(_), Err(_)) => return Ok(0),
        (Err(error), _) => return Err(format!("only gridfusion fails: {error}")),
        (_, Err(error)) => {
            return Err(format!("only the rows in memory fail: {error}"));
        }
    };
    if let (Some(a), Some(b)) = (found.first(), expected.first()) {
        let types = |batch: &RecordBatch| -> Vec<_> {
            batch.schema().fields().iter().map(|field| field.data_type().clone()).collect()
        };
        if types(a) != types(b) {
            return Err(format!("types {:?} and {:?}", types(a), types(b)));
        }
    }
    let (mut found, mut expected) = (rows_of(&found), rows_of(&expected));
    let by_keys = |row: &Vec<String>| row[..keys].to_vec();
    found.sort_by_key(by_keys);
    expected.sort_by_key(by_keys);
    // The error of a sum of squares grows with the square of its terms.
    let scale = 1e-13 * magnitude.max(1.0).powi(2);
    let agree = found.len() == expected.len()
        && found.iter().zip(&expected).all(|(a, b)| {
            a[..keys] == b[..keys]
                && a[keys..].iter().zip(&b[keys..]).all(|(a, b)| same(a, b, scale))
        });
    if agree { Ok(found.len()) } else { Err(format!("found {found:?}\nexpected {expected:?}")) }
}

pub(crate) async fn tier(ctx: &SessionContext, sql: &str) -> &'static str {
    let Ok(frame) = ctx.sql(sql).await else { return "error" };
    let Ok(plan) = frame.create_physical_plan().await else { return "error" };
    let plan = displayable(plan.as_ref()).indent(false).to_string();
    ["mode=whole, tier=dense, weighs=cells", "mode=partial, tier=dense, weighs=cells"]
        .into_iter()
        .chain(["mode=whole, tier=dense, per_label", "mode=partial, tier=dense, per_label"])
        .chain(["mode=whole, tier=dense", "mode=partial, tier=dense"])
        .chain(["mode=whole, tier=accumulators", "mode=partial, tier=accumulators"])
        .find(|kind| kind.split(", ").all(|part| plan.contains(part)))
        .unwrap_or("rows")
}

/// Makes a random shape and a chunk shape.
type Shape = fn(&mut StdRng) -> (Vec<u64>, Vec<u64>);

pub(super) fn small(rng: &mut StdRng) -> (Vec<u64>, Vec<u64>) {
    let rank = rng.random_range(1..=5);
    let longest = [200, 40, 14, 8, 5][rank - 1];
    let mut lens = || (0..rank).map(|_| rng.random_range(1..=longest)).collect();
    (lens(), lens())
}

/// Chunks longer than a batch, along any axis, and axes long enough that keys are sampled.
fn large(rng: &mut StdRng) -> (Vec<u64>, Vec<u64>) {
    let mut near = |len: u64| rng.random_range(len - len / 4..=len);
    let shape = match near(100) % 4 {
        0 => vec![near(30_000)],
        1 => vec![near(9_000), near(4)],
        2 => vec![near(4), near(9_500)],
        _ => vec![near(40), near(30), near(24)],
    };
    let chunk = shape.iter().map(|&len| rng.random_range(len.div_ceil(3)..=len)).collect();
    (shape, chunk)
}

/// Compares random queries over random arrays; returns how often each tier was taken.
async fn compare_cases(
    seed: u64,
    shape: Shape,
    cases: usize,
    queries: usize,
) -> BTreeMap<&'static str, usize> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut tiers = BTreeMap::new();
    for number in 0..cases {
        let (shape, chunk) = shape(&mut rng);
        let wild = rng.random_bool(0.2);
        let case = Case::of_shape(&mut rng, &shape, &chunk, wild);
        let partitions = rng.random_range(1..=7);
        let batch_size = *[3, 64, 8192].choose(&mut rng).unwrap();
        let ours = reducing(partitions, batch_size);
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        for _ in 0..queries {
            let (sql, keys) = sql(&case, &mut rng);
            if let Err(difference) = compare(&ours, &theirs, &sql, keys, case.magnitude).await {
                panic!(
                    "seed {seed}, case {number}, {} {partitions} partitions, batches of {batch_size}: \
                     {sql}\n{}\n{difference}",
                    case.description,
                    tier(&ours, &sql).await
                );
            }
            *tiers.entry(tier(&ours, &sql).await).or_default() += 1;
        }
    }
    tiers
}

/// Ten thousand random aggregations, in every tier, have the same answers as over rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reductions_agree_with_rows() {
    let halves = [7, 8].map(|seed| tokio::spawn(compare_cases(seed, small, 250, 20)));
    let mut tiers: BTreeMap<&str, usize> = BTreeMap::new();
    for half in halves {
        for (tier, count) in half.await.unwrap() {
            *tiers.entry(tier).or_default() += count;
        }
    }
    for tier in [
        "whole, tier=dense",
        "partial, tier=dense",
        "whole, tier=dense, per_label",
        "partial, tier=dense, per_label",
        "weighs=cells",
        "whole, tier=accumulators",
        "partial, tier=accumulators",
    ] {
        // Weights of cells count in both modes together.
        let kind = |kind: &str| match tier {
            "weighs=cells" => kind.ends_with(tier),
            _ => kind.strip_prefix("mode=") == Some(tier),
        };
        let taken: usize = tiers.iter().filter(|(of, _)| kind(of)).map(|(_, count)| count).sum();
        assert!(taken > 500, "{tier} was taken {taken} times: {tiers:?}");
    }
    assert!(tiers.get("rows").is_some_and(|rows| *rows < 1_500), "{tiers:?}");
    let on_workers = ON_WORKERS.load(Ordering::Relaxed);
    assert!(on_workers > 1_000, "{on_workers} queries ran on workers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reductions_of_large_chunks_agree_with_rows() {
    let halves = [9, 10].map(|seed| tokio::spawn(compare_cases(seed, large, 12, 20)));
    for half in halves {
        half.await.unwrap();
    }
}
