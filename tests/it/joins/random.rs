//! Random aggregations over joins of random arrays with random tables, compared with the same over rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray, UInt64Array,
};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::reduce::random::{aggregate, compare, conditions, key, weighed};
use crate::support::cases::{Case, name};
use crate::support::{query, reducing, rows_of};

/// A table with keys of one axis: labels of the array that occur never, once or often, other labels, and NULL. `g` has groups, `w` and `u`
/// numbers; all may be NULL.
pub(super) fn table(case: &Case, axis: usize, rng: &mut StdRng) -> RecordBatch {
    let labels = case.rows.column(axis);
    let rows = rng.random_range(0..12);
    let distinct = rng.random_bool(0.3);
    let mut at: Vec<Option<u64>> = (0..rows)
        .map(|_| (!rng.random_bool(0.1)).then(|| rng.random_range(0..labels.len() as u64)))
        .collect();
    if distinct {
        at.sort_unstable();
        at.dedup();
    }
    let known = take(labels, &UInt64Array::from(at), None).unwrap();
    let others = Int64Array::from(vec![rng.random_range(100..200); rng.random_range(0..3)]);
    let others = cast(&others, labels.data_type()).unwrap();
    let keys = concat(&[known.as_ref(), others.as_ref()]).unwrap();
    let count = keys.len();
    let mut some = |nulls: f64| -> Vec<Option<i64>> {
        (0..count).map(|_| (!rng.random_bool(nulls)).then(|| rng.random_range(-2..4))).collect()
    };
    let text = |number: Option<i64>| number.map(|number| format!("g{number}"));
    let groups: StringViewArray = some(0.2).into_iter().map(text).collect();
    let (weights, numbers) = (some(0.2), Int64Array::from(some(0.1)));
    let mut weight = |number: i64| match rng.random_range(0..40) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        _ => number as f64 / 2.0,
    };
    let weights: Float64Array = weights.into_iter().map(|it| it.map(&mut weight)).collect();
    let columns: Vec<ArrayRef> = vec![keys, Arc::new(groups), Arc::new(weights), Arc::new(numbers)];
    let fields = ["k", "g", "w", "u"].iter().zip(&columns);
    let fields = fields.map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).unwrap()
}

pub(super) fn register(ctx: &SessionContext, name: &str, batch: &RecordBatch) {
    let table = MemTable::try_new(batch.schema(), vec![vec![batch.clone()]]).unwrap();
    ctx.register_table(name, Arc::new(table)).unwrap();
}

/// A query, the number of its keys, and the kind of its join.
struct Query {
    sql: String,
    keys: usize,
    kind: String,
}

/// An aggregate of values and of the columns of `s`.
fn of_both(rng: &mut StdRng) -> String {
    let number = rng.random_range(-1..3);
    let choices = [
        "avg(value - s.w)".into(),
        "sum(value - s.w)".into(),
        "sum(CAST(value AS DOUBLE) * s.u)".into(),
        "avg((value + 1.5) * 2.5 - s.w)".into(),
        "avg((value - s.w) / 0.25)".into(),
        "stddev(value - s.w)".into(),
        "var_pop(s.w - value)".into(),
        "count(value - s.w)".into(),
        "avg(value / nullif(s.w, 0))".into(),
        "avg(coalesce(value, 0.5) - s.w)".into(),
        format!("sum(value) FILTER (WHERE s.u > {number})"),
        format!("avg(value - s.w) FILTER (WHERE s.u <= {number} AND value > 0)"),
        format!("count(*) FILTER (WHERE s.g = 'g{number}')"),
        format!("min(value) FILTER (WHERE s.u <> {number})"),
        "sum(s.w * value)".into(),
        "avg(value * s.w + 1.5)".into(),
        "avg((value - s.u) / s.w)".into(),
        "sum((value - s.w) * s.w)".into(),
        "weighted_avg((value - s.u) / s.u, s.w)".into(),
        "max((value - s.w) / -0.75)".into(),
        "sum(value * s.w) / sum(s.w)".into(),
        "weighted_avg(value, s.w)".into(),
        "weighted_avg(value - s.u, s.w * 2)".into(),
        format!("weighted_avg(value, s.w) FILTER (WHERE s.u > {number})"),
        "weighted_avg(s.w, value)".into(),
        "max(value - s.w)".into(),
        "max(abs(value - s.w))".into(),
        format!("max(abs(s.w - value * 0.5)) FILTER (WHERE s.u <= {number})"),
        "min(s.w - value)".into(),
        "max(value / -2.5 + s.w)".into(),
        "sum(s.w)".into(),
        "avg(s.w)".into(),
        "sum(s.u)".into(),
        "max(s.u)".into(),
        "min(s.g)".into(),
        "count(s.g)".into(),
        format!("avg(s.u) FILTER (WHERE value > {number})"),
        format!("bool_or(s.u > {number}) FILTER (WHERE s.w > 0)"),
        // These need rows.
        "count(DISTINCT s.w)".into(),
        // Not of `s.w`: which NaN is greatest depends on the order of rows.
        "max(value * s.u)".into(),
        "stddev(s.w)".into(),
    ];
    choices.choose(rng).unwrap().clone()
}

fn random_query(case: &Case, axis: usize, other: usize, rng: &mut StdRng) -> Query {
    let rank = case.axes.len();
    let kind = *[
        "JOIN",
        "JOIN",
        "LEFT JOIN",
        "RIGHT JOIN",
        "FULL JOIN",
        "EXISTS",
        "NOT EXISTS",
        "anomaly",
    ]
    .choose(rng)
    .unwrap();
    let (label, second) = (name(axis), name(other));
    let mut keys: Vec<String> = (0..rng.random_range(0..3))
        .map(|_| {
            let axis = rng.random_range(0..rank);
            key(&case.axes[axis], &name(axis), rng)
        })
        .filter(|key| !key.contains("AS TIME"))
        .collect();
    let of_cells = rng.random_bool(0.7);
    let mut aggregates: Vec<String> = (0..rng.random_range(1..4))
        .map(|_| if of_cells { aggregate(case, rng) } else { weighed(case, rng) })
        .collect();
    let mut conditions = conditions(case, rng);
    let residual = match rng.random_range(0..8) {
        0 => format!(" AND (s.u > 1 OR {})", case.axes[other].predicate(&second, rng)),
        1 => format!(" AND s.u > {}", rng.random_range(-2..3)),
        2 => " AND s.w IS NOT NULL".into(),
        _ => String::new(),
    };
    let semi = format!("(SELECT 1 FROM s WHERE s.k = t.{label}{residual})");
    let from = match kind {
        "EXISTS" | "NOT EXISTS" => {
            conditions.push(format!("{kind} {semi}"));
            "t".into()
        }
        "anomaly" => {
            // The filter of a join over rows tells zeros of different signs apart.
            let month = key(&case.axes[axis], &label, rng).replace("-d", "d");
            let on = format!("{month} = s.k");
            aggregates
                .push(of_both(rng).replace("s.u", "s.n").replace("s.g", "CAST(s.n AS VARCHAR)"));
            keys.retain(|_| rng.random());
            format!(
                "t JOIN (SELECT {month} AS k, avg(value) AS w, count(value) AS n FROM t GROUP BY 1) s ON {on}"
            )
        }
        join => {
            let on = format!("t.{label} = s.k{residual}");
            if rng.random() {
                aggregates.push(of_both(rng));
            }
            keys.extend(
                ["s.g", "s.g", "coalesce(s.g, 'none')", "s.u % 2", "s.k"]
                    .choose(rng)
                    .filter(|_| rng.random_bool(0.7))
                    .map(ToString::to_string),
            );
            if rng.random_bool(0.2) {
                conditions
                    .push(format!("(s.u > 0 OR {})", case.axes[other].predicate(&second, rng)));
            }
            match rng.random_range(0..5) {
                0 => format!("s {join} t ON {on}"),
                1 => format!("t {join} s ON {on} LEFT JOIN r ON t.{second} = r.k"),
                2 => format!("t JOIN r ON t.{second} = r.k {join} s ON {on}"),
                _ => format!("t {join} s ON {on}"),
            }
        }
    };
    keys.sort();
    keys.dedup();
    aggregates.sort();
    aggregates.dedup();
    let filter = match conditions.as_slice() {
        [] => String::new(),
        _ => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let columns: Vec<String> = keys.iter().chain(&aggregates).cloned().collect();
    let mut sql = format!("SELECT {} FROM {from}{filter}", columns.join(", "));
    if !keys.is_empty() {
        sql += &format!(" GROUP BY {}", keys.join(", "));
    }
    Query { sql, keys: keys.len(), kind: kind.to_owned() }
}

/// The plan of a query as text; `None` for a statement that the planner refuses.
pub(super) async fn text(ctx: &SessionContext, sql: &str) -> Option<String> {
    let plan = ctx.sql(sql).await.ok()?.create_physical_plan().await.ok()?;
    Some(displayable(plan.as_ref()).indent(false).to_string())
}

/// Compares random queries over random arrays; returns how often each kind of join was taken apart.
async fn compare_cases(seed: u64, cases: usize, queries: usize) -> BTreeMap<String, usize> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut taken = BTreeMap::new();
    for number in 0..cases {
        let rank = rng.random_range(1..=5);
        let longest = [200, 40, 14, 8, 5][rank - 1];
        let mut lens = || (0..rank).map(|_| rng.random_range(1..=longest)).collect::<Vec<u64>>();
        let (shape, chunk) = (lens(), lens());
        let case = Case::of_shape(&mut rng, &shape, &chunk, false);
        let (axis, other) = (rng.random_range(0..rank), rng.random_range(0..rank));
        let (s, r) = (table(&case, axis, &mut rng), table(&case, other, &mut rng));
        let ours = reducing(rng.random_range(1..=5), *[3, 64, 8192].choose(&mut rng).unwrap());
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let plain = reducing(2, 8192);
        let options = ArrayOptions::default().with_dataset("v");
        plain.register_array("t", case.file.location(), options).await.unwrap();
        for rule in ["eager_aggregation", "lookup_joins"] {
            query(&plain, &format!("SET gridfusion.optimizer.enable_{rule} = false"))
                .await
                .unwrap();
        }
        let theirs = case.in_memory();
        for ctx in [&ours, &plain, &theirs] {
            register(ctx, "s", &s);
            register(ctx, "r", &r);
        }
        for _ in 0..queries {
            let Query { sql, keys, kind } = random_query(&case, axis, other, &mut rng);
            let magnitude = case.magnitude * 4.0 + 4.0;
            if let Err(difference) = compare(&ours, &theirs, &sql, keys, magnitude).await {
                let plain = query(&plain, &sql).await.map(|batches| rows_of(&batches));
                panic!(
                    "seed {seed}, case {number}, {}: {sql}\n{}\n{difference}\nwithout the rule {plain:?}",
                    case.description,
                    text(&ours, &sql).await.unwrap_or_default()
                );
            }
            let reductions =
                |text: Option<String>| text.map_or(0, |it| it.matches("GridReduceExec").count());
            let with = reductions(text(&ours, &sql).await);
            let without = reductions(text(&plain, &sql).await);
            *taken.entry(kind).or_default() += usize::from(with > without);
        }
    }
    taken
}

/// Thousands of random joins have the same answers as over rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_agree_with_rows() {
    let halves = [21, 22].map(|seed| tokio::spawn(compare_cases(seed, 150, 16)));
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for half in halves {
        for (kind, count) in half.await.unwrap() {
            *taken.entry(kind).or_default() += count;
        }
    }
    let all: usize = taken.values().sum();
    assert!(all > 500 && taken.len() == 7 && taken.values().all(|count| *count > 40), "{taken:?}");
}
