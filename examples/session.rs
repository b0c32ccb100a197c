//! Builds a session by hand, with memory limits and array reductions.
//!
//! ```sh
//! cargo run --release --example session
//! ```

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::{GridReduceExec, GridfusionConfig, GridfusionSessionStateBuilderExt};

#[tokio::main]
async fn main() -> Result<()> {
    // Two partitions, and at most 64 MiB for the groups of a reduction. Larger aggregations run over rows.
    let mut limits = GridfusionConfig::default();
    limits.optimizer.reduce_memory = 64 << 20;
    let config = SessionConfig::new().with_target_partitions(2).with_option_extension(limits);
    // Call `with_gridfusion` after `with_default_features`: it adds to existing rules and functions.
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_gridfusion()
        .build();
    let ctx = SessionContext::new_with_state(state);

    // `with_gridfusion` also adds tables and table functions to SQL.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/stations.tet");
    let create = format!(
        "CREATE EXTERNAL TABLE temperature STORED AS ARRAY LOCATION '{path}'
         OPTIONS ('dataset' 'temperature')"
    );
    ctx.sql(&create).await?;

    let monthly = "SELECT station, date_trunc('month', time) AS month, avg(value) AS mean
                   FROM temperature GROUP BY station, month ORDER BY station, month";
    assert!(is_reduced(&ctx.sql(monthly).await?.create_physical_plan().await?));
    ctx.sql(monthly).await?.show_limit(4).await?;

    // Without reductions, the aggregation runs over rows: slower, with the same result.
    ctx.sql("SET gridfusion.optimizer.enable_reduce = false").await?;
    assert!(!is_reduced(&ctx.sql(monthly).await?.create_physical_plan().await?));
    Ok(())
}

/// Whether the plan contains a reduction.
fn is_reduced(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<GridReduceExec>().is_some() || plan.children().into_iter().any(is_reduced)
}
