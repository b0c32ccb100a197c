//! Opens a file as a schema, with a table per dataset, in your own `SessionContext`.
//!
//! ```sh
//! cargo run --release --example embed
//! ```

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

#[tokio::main]
async fn main() -> Result<()> {
    let ctx = SessionContext::new();
    ctx.enable_gridfusion();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/stations.tet");
    // Opening reads the directory, the labels and no payload: every dataset becomes a table.
    ctx.register_array_schema("stations", path, ArrayOptions::default()).await?;
    let wet_and_cold = ctx
        .sql(
            "SELECT t.station, e.value AS elevation, min(t.value) AS coldest, sum(p.value) AS rain
             FROM stations.temperature t
             JOIN stations.precipitation p USING (time, station)
             JOIN stations.elevation e USING (station)
             GROUP BY t.station, elevation ORDER BY rain DESC",
        )
        .await?;
    assert_eq!(wet_and_cold.clone().count().await?, 6, "a row per station");
    wet_and_cold.show().await
}
