//! Aggregations above joins under conditions that keep expressions from failing, and with little memory.

use std::sync::Arc;

use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::join_reduce::grid;
use super::random::text;
use crate::codec::sent::plan;
use crate::codec::shapes::metric;
use crate::support::{
    F64, Layout, TempTet, TestDataset, limited, query, reducing, rows_of, sorted_rows_from,
    tet_bytes,
};

const FROM: &str = "FROM t JOIN w ON t.lat = w.lat AND t.lon = w.lon";

/// An expression is evaluated only for pairs that fulfil the conditions: 143 is no `TINYINT`, and `north` no number.
#[tokio::test]
async fn conditions_come_before_expressions() {
    let (ctx, _file) = grid().await;
    query(&ctx, "SET gridfusion.optimizer.enable_eager_aggregation = false").await.unwrap();
    let small = "CAST(CAST(t.value AS TINYINT) AS DOUBLE)";
    let mut reduced = 0;
    for sql in [
        format!(
            "SELECT w.region, min(t.value), stddev(t.value) {FROM} WHERE w.region = 'none' GROUP BY w.region"
        ),
        format!(
            "SELECT t.time, max(t.value), var_pop(t.value) {FROM} WHERE w.part > 5 GROUP BY t.time"
        ),
        format!("SELECT min(t.value), stddev(t.value), count(*) {FROM} WHERE w.region = 'none'"),
        format!(
            "SELECT w.region, sum({small} * w.part) {FROM} WHERE t.value < 100 GROUP BY w.region"
        ),
        format!(
            "SELECT t.time, avg({small}), min({small}) {FROM} WHERE t.value < 100 GROUP BY t.time"
        ),
        format!("SELECT w.region, count({small}) {FROM} WHERE t.value < 100 GROUP BY w.region"),
        format!(
            "SELECT w.region, sum({small}) FILTER (WHERE t.value < 100) {FROM} GROUP BY w.region"
        ),
        format!(
            "SELECT CAST(w.region AS INT) AS r, sum(t.value) {FROM} WHERE t.value > 1000 GROUP BY r"
        ),
        format!(
            "SELECT CAST(w.region AS INT) AS r, sum(t.value) {FROM} WHERE t.time > 10 GROUP BY r"
        ),
        format!(
            "SELECT CAST(w.region AS INT) AS r, sum(t.value) {FROM} WHERE t.value * w.part > 1000 GROUP BY r"
        ),
    ] {
        query(&ctx, "SET gridfusion.optimizer.enable_join_reduce = false").await.unwrap();
        let expected = sorted_rows_from(&ctx, &sql).await;
        query(&ctx, "SET gridfusion.optimizer.enable_join_reduce = true").await.unwrap();
        reduced += usize::from(text(&ctx, &sql).await.unwrap().contains("GridJoinReduceExec"));
        assert_eq!(sorted_rows_from(&ctx, &sql).await, expected, "{sql}");
    }
    assert!(reduced > 3, "{reduced}");
}

/// An array of 32 times × 40 × 40 cells, and a table with three rows per cell.
async fn large(ctx: &SessionContext) -> TempTet {
    let cells = (0..32 * 1600_u32).map(|at| f64::from(at % 1000));
    let data = cells.flat_map(f64::to_le_bytes).collect();
    let dataset = TestDataset::new("value", F64, &[32, 40, 40], &[8, 40, 40], data);
    let file = TempTet::new(&tet_bytes(
        &[dataset],
        &Layout { history_version: Some(1), ..Layout::default() },
    ));
    ctx.register_array("t", file.location(), ArrayOptions::default()).await.unwrap();
    let table = "CREATE TABLE w AS SELECT 'group number ' || (value % 400) AS g, value % 40 AS y, (value / 40) % 40 AS x,
        CAST(value AS DOUBLE) AS weight FROM generate_series(0, 4799)";
    query(ctx, table).await.unwrap();
    file
}

/// With any memory limit, there are the same groups, or an error that rows have, too.
#[tokio::test]
async fn short_memory_means_rows() {
    let queries = [
        "SELECT w.g, sum(t.value * w.weight) FROM t JOIN w ON t.dim_1 = w.y AND t.dim_2 = w.x GROUP BY w.g",
        "SELECT w.g, t.dim_0, weighted_avg(t.value, w.weight) FROM t JOIN w ON t.dim_1 = w.y AND t.dim_2 = w.x
            GROUP BY w.g, t.dim_0",
        "SELECT w.g, median(t.value * w.weight) FROM t JOIN w ON t.dim_1 = w.y AND t.dim_2 = w.x GROUP BY w.g",
    ];
    let plain = reducing(2, 8192);
    let _file = large(&plain).await;
    query(&plain, "SET gridfusion.optimizer.enable_join_reduce = false").await.unwrap();
    let (mut with_matrix, mut without, mut answers) = (0, 0, 0);
    for sql in queries {
        let expected = sorted_rows_from(&plain, sql).await;
        for kib in [300, 600, 1000, 2000, 4000, 16000, 64000] {
            let ctx = limited(2, 1024, kib << 10);
            let _file = large(&ctx).await;
            let plan = plan(&ctx, sql).await.unwrap();
            let Ok(found) = collect(Arc::clone(&plan), ctx.task_ctx()).await else {
                query(&ctx, "SET gridfusion.optimizer.enable_join_reduce = false").await.unwrap();
                let error = query(&ctx, sql).await.err();
                assert!(error.is_some(), "{kib} KiB are enough for rows: {sql}");
                continue;
            };
            let mut found = rows_of(&found);
            found.sort();
            assert_eq!(found, expected, "{kib} KiB: {sql}");
            answers += 1;
            let is_sparse = metric(&plan, "matrices") > 0;
            *(if is_sparse { &mut with_matrix } else { &mut without }) += 1;
        }
    }
    assert!(with_matrix > 2 && without > 3 && answers > 10, "{with_matrix} {without} {answers}");
}
