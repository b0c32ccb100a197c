//! Asks SQL of a Zarr store. The predicates select chunks, and the query reads only these.
//!
//! ```sh
//! cargo run --release --example zarr
//! ```

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

#[tokio::main]
async fn main() -> Result<()> {
    let ctx = SessionContext::new();
    ctx.enable_gridfusion();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sea.zarr");
    ctx.register_array("sea", path, ArrayOptions::default()).await?;
    let warmest = "SELECT time, max(sst) AS warmest FROM sea WHERE time >= '2024-02' GROUP BY time ORDER BY time LIMIT 5";
    ctx.sql(warmest).await?.show().await
}
