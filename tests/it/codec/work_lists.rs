//! Leaves whose partitions an engine chooses, as Ballista does.

use std::sync::Arc;

use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::prelude::SessionContext;
use gridfusion::codec::{WorkListExec, with_work_lists};

use super::sent::{bytes, plan, received};
use super::shapes::{SHAPES, tables};
use crate::reduce::random::agree;
use crate::support::{query, rows_of};

/// Returns the same plan with only some partitions of the lists, as a scheduler of Ballista makes it.
fn slice(plan: &Arc<dyn ExecutionPlan>, range: std::ops::Range<usize>) -> Arc<dyn ExecutionPlan> {
    let cut = |node: Arc<dyn ExecutionPlan>| {
        let source = node.downcast_ref::<DataSourceExec>().map(|it| it.data_source().as_ref());
        let source =
            source.and_then(|it| (it as &dyn std::any::Any).downcast_ref::<MemorySourceConfig>());
        let Some(source) = source else { return Ok(Transformed::no(node)) };
        let kept = source.partitions()[range.clone()].to_vec();
        let schema = source.original_schema();
        let exec = MemorySourceConfig::try_new_exec(&kept, schema, source.projection().clone())?;
        Ok(Transformed::yes(exec as _))
    };
    Arc::clone(plan).transform_up(cut).data().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_with_lists_give_the_same_rows() {
    let ctx = tables().await;
    let worker = SessionContext::new();
    let mut listed = 0;
    for &(sql, keys) in SHAPES {
        let plan = with_work_lists(plan(&ctx, sql).await.unwrap()).unwrap();
        listed += usize::from(plan.exists(|node| Ok(node.is::<WorkListExec>())).unwrap());
        let received = received(&bytes(&plan).unwrap(), &worker).unwrap();
        for (plan, runs) in [(plan, &ctx), (received, &worker)] {
            let found = collect(plan, runs.task_ctx()).await;
            agree(found, query(&ctx, sql).await, keys, 100.0)
                .unwrap_or_else(|why| panic!("{sql}: {why}"));
        }
    }
    assert!(listed > 10, "{listed}");
}

/// Tasks with parts of the list yield each row once.
#[tokio::test]
async fn slices_of_a_list_are_parts_of_the_rows() {
    let ctx = tables().await;
    let worker = SessionContext::new();
    for sql in [
        "SELECT * FROM temperature",
        "SELECT date_trunc('day', time) AS d, max(value) FROM temperature GROUP BY d",
    ] {
        let plan = with_work_lists(plan(&ctx, sql).await.unwrap()).unwrap();
        let partitions = plan.output_partitioning().partition_count();
        assert_eq!(partitions, 3);
        let mut rows = vec![];
        for range in [0..1, 1..1, 1..3] {
            let task = received(&bytes(&slice(&plan, range)).unwrap(), &worker).unwrap();
            rows.extend(rows_of(&collect(task, worker.task_ctx()).await.unwrap()));
        }
        let mut expected = rows_of(&query(&ctx, sql).await.unwrap());
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected, "{sql}");
    }
}
