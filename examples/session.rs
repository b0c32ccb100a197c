//! A session of your own making, with aggregations over dimensions as reductions of the array.
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
    // Two partitions, and no table of groups beyond 64 MiB: larger ones are aggregated over rows.
    let mut limits = GridfusionConfig::default();
    limits.reduce_memory = 64 << 20;
    let config = SessionConfig::new().with_target_partitions(2).with_option_extension(limits);
    // `with_gridfusion` adds to the rules and functions that are there by then.
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_gridfusion()
        .build();
    let ctx = SessionContext::new_with_state(state);

    // What `with_gridfusion` brings besides: tables, and functions about files, by SQL alone.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/stations.tet");
    let create = format!(
        "CREATE EXTERNAL TABLE temperature STORED AS ARRAY LOCATION '{path}'
         OPTIONS ('dataset' 'temperature')"
    );
    ctx.sql(&create).await?;

    let monthly = "SELECT station, date_trunc('month', time) AS month, avg(value) AS mean
                   FROM temperature GROUP BY station, month ORDER BY station, month";
    assert!(is_reduced(&ctx.sql(monthly).await?.create_physical_plan().await?));
    ctx.sql(monthly).await?.show_limit(4).await?;

    // The same over rows, which is slower and gives the same answers.
    ctx.sql("SET gridfusion.reduce = false").await?;
    assert!(!is_reduced(&ctx.sql(monthly).await?.create_physical_plan().await?));
    Ok(())
}

/// Whether some aggregation of the plan is a reduction.
fn is_reduced(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<GridReduceExec>().is_some() || plan.children().into_iter().any(is_reduced)
}
