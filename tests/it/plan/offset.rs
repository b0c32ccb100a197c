//! `OFFSET`: chunks of rows that are skipped are not read, and the rows behind them are the right ones.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridScanExec, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::codec::sent::query_sent;
use crate::support::cases::{Axis, Case};
use crate::support::{query, reducing, rows_from, rows_of};

/// A random array with indices as labels, and sessions with it and with its rows.
async fn case(rng: &mut StdRng, partitions: usize) -> (Case, SessionContext, SessionContext) {
    let shape: Vec<u64> = (0..2).map(|_| rng.random_range(1..30)).collect();
    let chunk: Vec<u64> = (0..2).map(|_| rng.random_range(1..9)).collect();
    let axes = shape.iter().map(|len| Axis::Index(*len)).collect();
    let case = Case::of_axes(rng, axes, &shape, &chunk, false);
    let ours = reducing(partitions, *[7, 8192].choose(rng).unwrap());
    let options = ArrayOptions::default().with_dataset("v");
    ours.register_array("t", case.file.location(), options).await.unwrap();
    let theirs = case.in_memory();
    (case, ours, theirs)
}

/// The scan of a plan.
fn scan(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    if plan.downcast_ref::<GridScanExec>().is_some() {
        return Some(Arc::clone(plan));
    }
    plan.children().into_iter().find_map(scan)
}

/// Whether the rule `GridOffset` has left out chunks: less is left to skip.
async fn skips_chunks(ctx: &SessionContext, sql: &str, skip: usize) -> bool {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let plan = displayable(plan.as_ref()).indent(false).to_string();
    plan.contains("GlobalLimitExec: skip=") && !plan.contains(&format!("skip={skip},"))
}

/// One partition reads rows in one order: an `OFFSET` is a part of them. Several may skip any rows, but as many.
#[tokio::test]
async fn rows_behind_skipped_chunks_are_the_right_ones() {
    let mut rng = StdRng::seed_from_u64(31);
    let (mut left_out, mut sent) = (0, 0);
    for number in 0..120 {
        let partitions = rng.random_range(1..=4);
        let (case, ours, _) = case(&mut rng, partitions).await;
        for _ in 0..12 {
            let condition = ["", " WHERE d0 > 2", " WHERE d1 % 2 = 1"].choose(&mut rng).unwrap();
            let columns = ["d0, d1, value", "d1, d0, value + 1 AS value"].choose(&mut rng).unwrap();
            let all = format!("SELECT {columns} FROM t{condition}");
            let mut all_rows = rows_from(&ours, &all).await;
            let skip = rng.random_range(0..=all_rows.len() + 3);
            let fetch = rng.random_bool(0.7).then(|| rng.random_range(0..40));
            let limit = fetch.map_or(String::new(), |fetch| format!(" LIMIT {fetch}"));
            let sql = format!("{all}{limit} OFFSET {skip}");
            let count = all_rows.len().saturating_sub(skip).min(fetch.unwrap_or(usize::MAX));
            let mut found = rows_from(&ours, &sql).await;
            let about =
                format!("case {number}, {}, {partitions} partitions: {sql}", case.description);
            if partitions == 1 {
                let (from, to) = (skip.min(all_rows.len()), skip.min(all_rows.len()) + count);
                assert_eq!(found, all_rows[from..to], "{about}");
                // Some literals cannot travel.
                if let Ok(rows) = query_sent(&ours, &reducing(1, 77), &sql).await {
                    assert_eq!(rows_of(&rows), found, "{about}");
                    sent += 1;
                }
            } else {
                assert_eq!(found.len(), count, "{about}");
                all_rows.sort();
                found.sort();
                let mut all_rows = all_rows.iter();
                assert!(found.iter().all(|row| all_rows.any(|of| of == row)), "{about}");
            }
            left_out += usize::from(skips_chunks(&ours, &sql, skip).await);
        }
    }
    assert!(left_out > 500 && sent > 200, "{left_out}, {sent}");
}

/// Rows in order are those of the same rows in memory.
#[tokio::test]
async fn rows_in_order_are_skipped_in_order() {
    let mut rng = StdRng::seed_from_u64(32);
    let mut left_out = 0;
    for number in 0..120 {
        let partitions = rng.random_range(1..=2);
        let (case, ours, theirs) = case(&mut rng, partitions).await;
        for _ in 0..12 {
            let order = ["d0, d1", "d0 DESC, d1", "d0 DESC, d1 DESC"].choose(&mut rng).unwrap();
            let (skip, fetch) = (rng.random_range(0..200), rng.random_range(0..40));
            let sql = format!("SELECT * FROM t ORDER BY {order} LIMIT {fetch} OFFSET {skip}");
            let found = rows_of(&query(&ours, &sql).await.unwrap());
            let expected = rows_of(&query(&theirs, &sql).await.unwrap());
            assert_eq!(found, expected, "case {number}, {}: {sql}", case.description);
            left_out += usize::from(skips_chunks(&ours, &sql, skip).await);
        }
    }
    assert!(left_out > 100, "{left_out}");
}

/// Chunks before the first row are not read.
#[tokio::test]
async fn skipped_chunks_are_not_read() {
    let mut rng = StdRng::seed_from_u64(33);
    let axes = vec![Axis::Index(100), Axis::Index(40)];
    let case = Case::of_axes(&mut rng, axes, &[100, 40], &[10, 40], false);
    for partitions in [1, 3] {
        let ctx = reducing(partitions, 8192);
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("t", case.file.location(), options).await.unwrap();
        let sql = "SELECT d0, value FROM t LIMIT 10 OFFSET 3995";
        let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
        assert_eq!(rows_of(&batches).len(), 5);
        let metrics = scan(&plan).unwrap().metrics().unwrap();
        assert_eq!(metrics.sum_by_name("chunks_read").unwrap().as_usize(), 1);
        let pruned = displayable(plan.as_ref()).indent(false).to_string();
        assert!(pruned.contains("chunks=1/10"), "{pruned}");
    }
}

/// A subquery skips the first rows of its own order, whatever order the query needs above it.
#[tokio::test]
async fn orders_above_change_no_offset() {
    let mut rng = StdRng::seed_from_u64(57);
    let mut barred = 0;
    for _ in 0..40 {
        let partitions = rng.random_range(1..=4);
        let (_, ours, theirs) = case(&mut rng, partitions).await;
        for ctx in [&ours, &theirs] {
            ctx.enable_gridfusion();
            query(ctx, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
        }
        let order = ["d0, d1", "d1 DESC, d0", "d0 DESC, d1 DESC"].choose(&mut rng).unwrap();
        let all = rows_from(&ours, &format!("SELECT d0, d1 FROM t ORDER BY {order}")).await;
        let (skip, fetch) = (rng.random_range(1..=all.len() + 2), rng.random_range(0..40));
        let limit = if rng.random_bool(0.7) { format!("LIMIT {fetch}") } else { String::new() };
        let inner = format!("(SELECT d0, d1 FROM t ORDER BY {order} {limit} OFFSET {skip})");
        let most = if limit.is_empty() { all.len() } else { fetch };
        let mut expected: Vec<_> = all.into_iter().skip(skip).take(most).collect();
        expected.sort();
        for above in [
            format!("SELECT d0, d1 FROM {inner} ORDER BY d1, d0"),
            format!("SELECT d0, d1 FROM {inner} ORDER BY d0, d1 DESC LIMIT 100000"),
            format!(
                "SELECT d0, d1 FROM (SELECT d0, d1, row_number() OVER (ORDER BY d1, d0 DESC) AS r FROM {inner}) ORDER BY r"
            ),
            format!(
                "SELECT d0, d1 FROM (SELECT d0, d1, lag(d0) OVER (PARTITION BY d1 ORDER BY d0) AS b FROM {inner})"
            ),
            format!(
                "SELECT a.d0, a.d1 FROM {inner} a JOIN (SELECT DISTINCT d1 FROM t) b ON a.d1 = b.d1"
            ),
            format!("SELECT d0, d1 FROM {inner} GROUP BY d0, d1 ORDER BY d1 DESC, d0"),
            format!("SELECT d0, d1 FROM (SELECT * FROM {inner} ORDER BY d1, d0 OFFSET 0)"),
        ] {
            for ctx in [&ours, &theirs] {
                let mut found = rows_from(ctx, &above).await;
                found.sort();
                assert_eq!(found, expected, "{above}");
            }
            let plan = ours.sql(&above).await.unwrap().create_physical_plan().await.unwrap();
            let plan = displayable(plan.as_ref()).indent(false).to_string();
            assert!(!plan.contains("Barrier"), "{plan}");
            let (sort, limit) = (plan.find("SortExec"), plan.find("GlobalLimitExec: skip"));
            barred += usize::from(sort.zip(limit).is_some_and(|(sort, limit)| sort < limit));
        }
    }
    assert!(barred > 80, "{barred}");
}
