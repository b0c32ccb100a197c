//! Windows along a dimension for many partitions of the plan and little memory.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect_partitioned};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::codec::sent::plan;
use crate::reduce::random::compare;
use crate::support::cases::{Axis, Case};
use crate::support::{limited, query, reducing};

/// Functions of every kind, along both dimensions, in both directions, with frames of every kind.
const KINDS: [&str; 15] = [
    "avg(value) OVER (PARTITION BY d1 ORDER BY d0 ROWS 5 PRECEDING)",
    "sum(value) OVER (PARTITION BY d1 ORDER BY d0 RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING)",
    "count(value) OVER (PARTITION BY d1 ORDER BY d0 GROUPS BETWEEN 1 PRECEDING AND 9 FOLLOWING)",
    "stddev(value) OVER (PARTITION BY d1 ORDER BY d0 DESC ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING)",
    "max(value) OVER (PARTITION BY d1 ORDER BY d0 ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "min(value) OVER (PARTITION BY d1 ORDER BY d0)",
    "avg(value * 2 + d0) OVER (PARTITION BY d1 ORDER BY d0 ROWS 5 PRECEDING)",
    "last_value(value) IGNORE NULLS OVER (PARTITION BY d1 ORDER BY d0)",
    "first_value(value) OVER (PARTITION BY d1 ORDER BY d0 ROWS 3 PRECEDING)",
    "lag(value, 7) OVER (PARTITION BY d1 ORDER BY d0)",
    "lead(value, 13, 0) OVER (PARTITION BY d1 ORDER BY d0)",
    "row_number() OVER (PARTITION BY d1 ORDER BY d0)",
    "count(*) OVER (PARTITION BY d1 ORDER BY d0)",
    "sum(value) OVER (PARTITION BY d0 ORDER BY d1 ROWS 2 PRECEDING)",
    "rank() OVER (PARTITION BY d0 ORDER BY d1 DESC)",
];

/// Arrays of 8 times 10 chunks: one with labels in order, and one whose first label is NULL.
fn cases() -> [Case; 2] {
    cases_of(2)
}

/// The same arrays in chunks of this width.
fn cases_of(width: u64) -> [Case; 2] {
    let labels: Vec<f64> = (0..48).map(f64::from).collect();
    let nulled = std::iter::once(f64::NAN).chain(labels[1..].iter().copied()).collect();
    [labels, nulled].map(|labels| {
        let axes = vec![Axis::Numbers(labels), Axis::Index(20)];
        Case::of_axes(&mut StdRng::seed_from_u64(3), axes, &[48, 20], &[6, width], false)
    })
}

async fn register(ctx: &SessionContext, case: &Case) {
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", case.file.location(), options).await.unwrap();
}

/// The window along a dimension in the plan of a query, if there is one.
async fn window(ctx: &SessionContext, sql: &str) -> Option<Arc<dyn ExecutionPlan>> {
    let mut node = plan(ctx, sql).await.unwrap();
    while node.name() != "GridWindowExec" {
        node = Arc::clone(node.children().first()?);
    }
    Some(node)
}

async fn allow(ctx: &SessionContext, bytes: usize) {
    query(ctx, &format!("SET gridfusion.reduce_memory = {bytes}")).await.unwrap();
}

/// The least `reduce_memory` with which a window runs along the dimension.
async fn least(ctx: &SessionContext, sql: &str) -> usize {
    let (mut least, mut most) = (1, 1 << 20);
    while least < most {
        let middle = least + (most - least) / 2;
        allow(ctx, middle).await;
        match window(ctx, sql).await {
            Some(_) => most = middle,
            None => least = middle + 1,
        }
    }
    assert!(least > 100 && least < 1 << 20, "{least} bytes: {sql}");
    least
}

/// The number of partitions of a window, and how many of them have rows.
async fn partitions(ctx: &SessionContext, sql: &str) -> Option<(usize, usize)> {
    let window = window(ctx, sql).await?;
    let count = window.output_partitioning().partition_count();
    let rows = collect_partitioned(window, ctx.task_ctx()).await.unwrap();
    let has_rows = |it: &&Vec<_>| it.iter().any(|it: &arrow::array::RecordBatch| it.num_rows() > 0);
    Some((count, rows.iter().filter(has_rows).count()))
}

/// More partitions or less memory mean fewer parts. Only if one part does not fit, rows are sorted.
#[tokio::test]
async fn windows_take_as_many_parts_as_memory_allows() {
    for case in cases() {
        let one = reducing(1, 100);
        register(&one, &case).await;
        let theirs = case.in_memory();
        let sessions =
            [1, 2, 3, 8, 16, 64].map(|partitions| (partitions, reducing(partitions, 100)));
        for (_, ctx) in &sessions {
            register(ctx, &case).await;
        }
        for function in KINDS {
            let sql = format!("SELECT d0, d1, value, {function} AS result FROM t");
            let least = least(&one, &sql).await;
            for (partitions_wanted, ctx) in &sessions {
                for (bytes, parts) in [(least - 1, 0), (least, 1), (3 * least, 3), (1 << 30, 8)] {
                    allow(ctx, bytes).await;
                    let found = partitions(ctx, &sql).await;
                    let context =
                        || format!("{partitions_wanted} partitions, {bytes} bytes: {sql}");
                    let Some((count, with_rows)) = found else {
                        assert_eq!(parts, 0, "{}", context());
                        continue;
                    };
                    assert_eq!(count, *partitions_wanted, "{}", context());
                    let expected = parts.min(count);
                    match bytes {
                        0..1_000_000 => assert_eq!(with_rows, expected, "{}", context()),
                        _ => assert!(with_rows >= expected, "{with_rows}, {}", context()),
                    }
                    compare(ctx, &theirs, &sql, 3, case.magnitude * 100.0).await.unwrap();
                }
            }
        }
    }
}

/// The memory that planning allows under a limit is enough to run.
#[tokio::test]
async fn windows_run_within_the_memory_that_they_plan() {
    let mut cut = 0;
    // A single column of chunks is cut along the axis.
    for (width, case) in [2, 20].into_iter().flat_map(|it| cases_of(it).map(|case| (it, case))) {
        let one = reducing(1, 100);
        register(&one, &case).await;
        for function in KINDS {
            let sql = format!("SELECT d0, d1, value, {function} AS result FROM t");
            let least = least(&one, &sql).await;
            for (partitions_wanted, times) in [(1, 1), (2, 1), (16, 1), (2, 2), (4, 3), (4, 5)] {
                // Half of the pool, of which a scan gets so many ten-thousandths.
                let pool = (2 * times * least).next_multiple_of(10_000);
                let ctx = limited(partitions_wanted, 100, pool);
                register(&ctx, &case).await;
                let context = format!("{partitions_wanted} partitions, {pool} bytes: {sql}");
                assert!(window(&ctx, &sql).await.is_some(), "{context}");
                let rows = query(&ctx, &sql).await.unwrap_or_else(|it| panic!("{context}\n{it}"));
                assert_eq!(rows.iter().map(|it| it.num_rows()).sum::<usize>(), 48 * 20);
                let with_rows = partitions(&ctx, &sql).await.map_or(0, |(_, with_rows)| with_rows);
                cut += usize::from(width == 20 && with_rows > 1);
            }
        }
    }
    assert!(cut > 20, "{cut} windows of one column were cut");
}
