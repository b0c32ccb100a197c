//! Random aggregations above joins on several dimensions with many rows per cell, compared with the same over rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray, UInt64Array,
};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{Field, Schema};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::random::{register, text};
use crate::codec::sent::plan;
use crate::codec::shapes::metric;
use crate::reduce::random::{aggregate, compare, conditions, key};
use crate::support::cases::{Case, name};
use crate::support::{
    F64, Layout, TempTet, TestDataset, limited, query, reducing, rows_of, sorted_rows_from,
    tet_bytes,
};

/// A table with keys of some axes: labels of the array, other labels, and NULL. Boxes of labels overlap, and rows repeat. `g` has
/// groups, `w` and `u` numbers; all may be NULL.
fn cells(case: &Case, axes: &[usize], rng: &mut StdRng) -> RecordBatch {
    let count = rng.random_range(0..60);
    let infinite = rng.random_bool(0.1);
    let mut columns: Vec<ArrayRef> = vec![];
    for axis in axes {
        let labels = case.rows.column(*axis);
        let at: UInt64Array = (0..count)
            .map(|_| (!rng.random_bool(0.04)).then(|| rng.random_range(0..labels.len() as u64)))
            .collect();
        let known = take(labels, &at, None).unwrap();
        let other = cast(&Int64Array::from(vec![rng.random_range(100..200)]), labels.data_type());
        columns.push(concat(&[known.as_ref(), other.unwrap().as_ref()]).unwrap());
    }
    let mut some = |nulls: f64| -> Vec<Option<i64>> {
        (0..=count).map(|_| (!rng.random_bool(nulls)).then(|| rng.random_range(-2..4))).collect()
    };
    let group = |number: Option<i64>| number.map(|number| format!("g{number}"));
    let groups: StringViewArray = some(0.1).into_iter().map(group).collect();
    let (weights, numbers) = (some(0.2), Int64Array::from(some(0.1)));
    let mut weight = |number: i64| match rng.random_range(0..30) {
        0 if infinite => f64::INFINITY,
        1 if infinite => f64::NEG_INFINITY,
        _ => number as f64 / 4.0,
    };
    let weights: Float64Array = weights.into_iter().map(|it| it.map(&mut weight)).collect();
    columns.extend([Arc::new(groups) as ArrayRef, Arc::new(weights), Arc::new(numbers)]);
    let names = axes.iter().map(|axis| format!("k{axis}"));
    let names = names.chain(["g", "w", "u"].map(ToOwned::to_owned));
    let fields = names.zip(&columns);
    let fields = fields.map(|(name, column)| Field::new(name, column.data_type().clone(), true));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).unwrap()
}

/// A random aggregate of both sides. Weights of means have no signs, because rounding errors are divided by sums of zero.
fn of_both(rng: &mut StdRng) -> String {
    let number = rng.random_range(-1..3);
    let choices = [
        "weighted_avg(value, abs(s.w))".into(),
        "weighted_avg(value, abs(s.w))".into(),
        "weighted_avg(value - 1.5, abs(s.w))".into(),
        "sum(CAST(value AS DOUBLE) * s.w)".into(),
        "sum(s.w * CAST(value AS DOUBLE))".into(),
        "sum(value * s.w)".into(),
        "avg(value * s.w)".into(),
        "sum(s.w)".into(),
        "avg(s.w)".into(),
        "count(s.w)".into(),
        "count(value * s.w)".into(),
        "sum(value * s.w) / sum(s.w)".into(),
        format!("sum(value * s.w) FILTER (WHERE s.u > {number})"),
        format!("weighted_avg(value, abs(s.w)) FILTER (WHERE value > {number})"),
        format!("avg(value) FILTER (WHERE s.u > {number})"),
        format!("count(*) FILTER (WHERE s.g = 'g{number}')"),
        format!("sum(s.w) FILTER (WHERE value < {number})"),
        format!("avg(value) FILTER (WHERE value + s.u > {number})"),
        "avg(value - s.u)".into(),
        "stddev(value - s.w)".into(),
        "stddev(CAST(value AS DOUBLE))".into(),
        "stddev(value * s.w)".into(),
        "var_pop(s.w)".into(),
        format!("var_pop(value + 0.5) FILTER (WHERE s.u > {number})"),
        "weighted_avg(value - s.u, abs(s.w * 2))".into(),
        "weighted_avg(s.w, abs(value))".into(),
        "min(s.g)".into(),
        "max(s.u)".into(),
        "max(value * s.u)".into(),
    ];
    choices.choose(rng).unwrap().clone()
}

/// A random query, and the number of its keys.
fn random_query(case: &Case, joined: &[usize], rng: &mut StdRng) -> (String, usize) {
    let rank = case.axes.len();
    let mut keys: Vec<String> = (0..rng.random_range(0..3))
        .map(|_| {
            let axis = rng.random_range(0..rank);
            key(&case.axes[axis], &name(axis), rng)
        })
        .filter(|key| !key.contains("AS TIME"))
        .collect();
    let of_table = ["s.g", "s.g", "coalesce(s.g, 'none')", "s.u % 2", "s.g; s.u"];
    if rng.random_bool(0.8) {
        keys.extend(of_table.choose(rng).unwrap().split("; ").map(ToOwned::to_owned));
    }
    let mut aggregates: Vec<String> = (0..rng.random_range(0..3)).map(|_| of_both(rng)).collect();
    let common =
        ["count(*)", "count(value)", "sum(value)", "avg(value)", "min(value)", "max(value)"];
    aggregates.extend(common.choose_multiple(rng, 2).map(|it| (*it).to_owned()));
    if rng.random_bool(0.4) {
        aggregates.push(aggregate(case, rng));
    }
    let mut conditions = if rng.random_bool(0.4) { conditions(case, rng) } else { vec![] };
    match rng.random_range(0..8) {
        0 => conditions.push("(s.u > 0 OR value > 1)".into()),
        1 => conditions.push(format!("s.u > {}", rng.random_range(-2..3))),
        _ => {}
    }
    for list in [&mut keys, &mut aggregates] {
        list.sort();
        list.dedup();
    }
    let on: Vec<String> =
        joined.iter().map(|axis| format!("t.{} = s.k{axis}", name(*axis))).collect();
    let filter = match conditions.as_slice() {
        [] => String::new(),
        _ => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let columns: Vec<String> = keys.iter().chain(&aggregates).cloned().collect();
    let sides = if rng.random() { "t JOIN s" } else { "s JOIN t" };
    let mut sql =
        format!("SELECT {} FROM {sides} ON {}{filter}", columns.join(", "), on.join(" AND "));
    if !keys.is_empty() {
        sql += &format!(" GROUP BY {}", keys.join(", "));
    }
    (sql, keys.len())
}

/// Compares random queries over random arrays; counts the plans that have each text.
async fn compare_cases(seed: u64, cases: usize, queries: usize) -> BTreeMap<&'static str, usize> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut taken = BTreeMap::new();
    for number in 0..cases {
        let rank = rng.random_range(1..=4);
        let longest = [100, 24, 10, 6][rank - 1];
        let mut lens = || (0..rank).map(|_| rng.random_range(1..=longest)).collect::<Vec<u64>>();
        let (shape, chunk) = (lens(), lens());
        let case = Case::of_shape(&mut rng, &shape, &chunk, false);
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.shuffle(&mut rng);
        axes.truncate(rng.random_range(1..=rank));
        let s = cells(&case, &axes, &mut rng);
        let (partitions, batch_size) =
            (rng.random_range(1..=4), *[3, 64, 8192].choose(&mut rng).unwrap());
        let ours = match rng.random_range(0..4) {
            // Batches that wait between the tasks of workers take up to 3 MiB.
            0 => limited(partitions, batch_size, 6 << 20),
            _ => reducing(partitions, batch_size),
        };
        let plain = reducing(2, 8192);
        for ctx in [&ours, &plain] {
            let options = ArrayOptions::default().with_dataset("v");
            ctx.register_array("t", case.file.location(), options).await.unwrap();
        }
        query(&plain, "SET gridfusion.optimizer.enable_join_reduce = false").await.unwrap();
        let eager = rng.random_bool(0.3);
        query(&ours, &format!("SET gridfusion.optimizer.enable_eager_aggregation = {eager}"))
            .await
            .unwrap();
        let theirs = case.in_memory();
        for ctx in [&ours, &plain, &theirs] {
            register(ctx, "s", &s);
        }
        for _ in 0..queries {
            let (sql, keys) = random_query(&case, &axes, &mut rng);
            let magnitude = case.magnitude * 4.0 + 4.0;
            let others = if rng.random_bool(0.2) { vec![&theirs, &plain] } else { vec![&theirs] };
            for other in others {
                if let Err(difference) = compare(&ours, other, &sql, keys, magnitude).await {
                    let plain = query(&plain, &sql).await.map(|batches| rows_of(&batches));
                    panic!(
                        "seed {seed}, case {number}, {}: {sql}\n{}\n{difference}\nwithout the rule {plain:?}",
                        case.description,
                        text(&ours, &sql).await.unwrap_or_default()
                    );
                }
            }
            if let Ok(plan) = plan(&ours, &sql).await
                && collect(Arc::clone(&plan), ours.task_ctx()).await.is_ok()
            {
                *taken.entry("with a matrix").or_default() +=
                    usize::from(metric(&plan, "matrices") > 0);
            }
            let plan = text(&ours, &sql).await.unwrap_or_default();
            let Some(line) = plan.lines().find(|it| it.contains("GridJoinReduceExec")) else {
                *taken.entry("none").or_default() += 1;
                continue;
            };
            for part in ["mode=whole", "mode=partial", "tier=sparse", "tier=accumulators"] {
                *taken.entry(part).or_default() += usize::from(line.contains(part));
            }
        }
    }
    taken
}

/// Hundreds of random aggregations above joins have the same answers as over rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reductions_of_joins_agree_with_rows() {
    let halves = [31, 32].map(|seed| tokio::spawn(compare_cases(seed, 65, 8)));
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for half in halves {
        for (part, count) in half.await.unwrap() {
            *taken.entry(part).or_default() += count;
        }
    }
    println!("{taken:?}");
    let of = |part: &str| taken.get(part).copied().unwrap_or_default();
    assert!(of("mode=whole") + of("mode=partial") > 500, "{taken:?}");
    for part in ["mode=whole", "mode=partial", "tier=sparse", "tier=accumulators", "with a matrix"]
    {
        assert!(of(part) > 100, "{part}: {taken:?}");
    }
}

/// An array of 4 times × 6 × 6 cells in chunks of 2 × 3 × 3, whose values are 0 to 143; every tenth is missing. `w` has regions, two of
/// which share a cell.
pub(crate) async fn grid() -> (SessionContext, TempTet) {
    let cells = (0..144_u32).map(|at| if at % 10 == 3 { f64::NAN } else { f64::from(at) });
    let data = cells.flat_map(f64::to_le_bytes).collect();
    let metadata = json!({"dim_names": ["time", "lat", "lon"], "attrs": {"_FillValue": "NaN"}});
    let dataset =
        TestDataset::new("value", F64, &[4, 6, 6], &[2, 3, 3], data).with_metadata(metadata);
    let file = TempTet::new(&tet_bytes(
        &[dataset],
        &Layout { history_version: Some(1), ..Layout::default() },
    ));
    let ctx = reducing(2, 8192);
    ctx.register_array("t", file.location(), ArrayOptions::default()).await.unwrap();
    let table = "CREATE TABLE w AS SELECT column1 AS region, column2 AS lat, column3 AS lon, column4 AS part FROM (VALUES
        ('north', 0, 0, 1.0), ('north', 0, 1, 0.5), ('both', 0, 1, 0.25), ('both', 5, 5, 0.75), ('none', 9, 0, 1.0))";
    query(&ctx, table).await.unwrap();
    (ctx, file)
}

pub(crate) const MEANS: &str =
    "SELECT w.region, t.time, weighted_avg(t.value, w.part) AS mean, count(*) AS cells
    FROM t JOIN w ON t.lat = w.lat AND t.lon = w.lon GROUP BY w.region, t.time";

#[tokio::test]
async fn plans_show_the_reduction_of_a_join() {
    let (ctx, _file) = grid().await;
    insta::assert_snapshot!(text(&ctx, MEANS).await.unwrap(), @r"
    ProjectionExec: expr=[region@0 as region, time@1 as time, weighted_avg(t.value,w.part)@2 as mean, count(Int64(1))@3 as cells]
      GridJoinReduceExec: mode=whole, gby=[region, time], aggr=[weighted_avg(t.value,w.part), count(Int64(1))], tier=sparse, on=[(lat@1, lat@1), (lon@2, lon@2)], dataset=value, chunks=8/8
        DataSourceExec: partitions=1, partition_sizes=[1]
    ");
    let by_region =
        "SELECT w.region, stddev(t.value * w.part) FROM t JOIN w ON t.lat = w.lat AND t.lon = w.lon
        AND t.value > w.part GROUP BY w.region";
    query(&ctx, "SET gridfusion.optimizer.enable_eager_aggregation = false").await.unwrap();
    insta::assert_snapshot!(text(&ctx, by_region).await.unwrap(), @r"
    AggregateExec: mode=FinalPartitioned, gby=[region@0 as region], aggr=[stddev(t.value * w.part)]
      RepartitionExec: partitioning=Hash([region@0], 2), input_partitions=2
        GridJoinReduceExec: mode=partial, gby=[region], aggr=[stddev(t.value * w.part)], tier=accumulators, on=[(lat@1, lat@0), (lon@2, lon@1)], filter=value@2 > part@6, dataset=value, chunks=8/8
          DataSourceExec: partitions=1, partition_sizes=[1]
    ");
    query(&ctx, "SET gridfusion.optimizer.enable_join_reduce = false").await.unwrap();
    for sql in [MEANS, by_region] {
        assert!(!text(&ctx, sql).await.unwrap().contains("GridJoinReduceExec"));
    }
}

#[tokio::test]
async fn means_of_overlapping_regions_leave_missing_cells_out() {
    let (ctx, _file) = grid().await;
    let rows = sorted_rows_from(&ctx, MEANS).await;
    // At time 0, the cells are 0 and 1 in the north, and 1 and 35 in both. At time 3, 143 is missing.
    let expected = [
        ["both", "0", "26.5", "2"],
        ["both", "1", "62.5", "2"],
        ["both", "2", "107.0", "2"],
        ["both", "3", "109.0", "2"],
        ["north", "0", "0.3333333333333333", "2"],
        ["north", "1", "36.333333333333336", "2"],
        ["north", "2", "72.0", "2"],
        ["north", "3", "108.33333333333333", "2"],
    ];
    assert_eq!(rows, expected.map(|row| row.map(ToOwned::to_owned).to_vec()));
}

#[tokio::test]
async fn only_chunks_with_a_match_are_read() {
    let (ctx, _file) = grid().await;
    let rows = "SELECT t.time, t.value, w.region FROM t JOIN w ON t.lat = w.lat AND t.lon = w.lon";
    for (sql, read) in [
        // Labels of lat and lon with a match are in all four chunks of each two times, and cells in two.
        (MEANS.to_owned(), 4),
        (rows.to_owned(), 4),
        (MEANS.replace("GROUP BY", "WHERE w.region = 'north' GROUP BY"), 2),
        (MEANS.replace("GROUP BY", "WHERE w.region = 'none' GROUP BY"), 0),
        (MEANS.replace("GROUP BY", "WHERE t.time < 2 AND w.region = 'north' GROUP BY"), 1),
    ] {
        let plan = plan(&ctx, &sql).await.unwrap();
        collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
        assert_eq!(metric(&plan, "chunks_read"), read, "{sql}");
    }
}
