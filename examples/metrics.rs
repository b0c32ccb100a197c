//! Prints how many chunks and bytes a query read, from the metrics of its scan.
//!
//! ```sh
//! cargo run --release --example metrics
//! ```

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridScanExec, GridfusionSessionContextExt};

#[tokio::main]
async fn main() -> Result<()> {
    let ctx = SessionContext::new();
    ctx.enable_gridfusion();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/stations.tet");
    let options = ArrayOptions::default().with_dataset("temperature");
    ctx.register_array("temperature", path, options).await?;

    let sql = "SELECT time, value FROM temperature
               WHERE station = 'Oslo' AND time BETWEEN '2024-02-01' AND '2024-02-02'";
    let plan = ctx.sql(sql).await?.create_physical_plan().await?;
    println!("{}", displayable(plan.as_ref()).indent(false));

    collect(Arc::clone(&plan), ctx.task_ctx()).await?;
    let Some(metrics) = find_scan(&plan).and_then(|scan| scan.metrics()) else {
        return internal_err!("a plan without a scan");
    };
    // Each partition has its own metrics; this adds them up. `EXPLAIN ANALYZE` prints the same numbers.
    let sum = |name: &str| metrics.sum_by_name(name).map_or(0, |value| value.as_usize());
    for name in ["chunks_read", "bytes_read", "bytes_decoded", "cells_skipped"] {
        println!("{name:>14}: {}", sum(name));
    }
    assert_eq!(sum("chunks_read"), 1, "25 hours of one station are in one of six chunks");
    assert!(sum("bytes_read") < sum("bytes_decoded"), "the payload is compressed");
    Ok(())
}

/// Returns the first scan of an array in `plan`.
fn find_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    if plan.downcast_ref::<GridScanExec>().is_some() {
        return Some(Arc::clone(plan));
    }
    plan.children().into_iter().find_map(find_scan)
}
