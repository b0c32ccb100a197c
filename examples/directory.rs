//! Opens many files as one table, and as a catalog with a schema per file.
//!
//! ```sh
//! cargo run --release --example directory
//! ```

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

#[tokio::main]
async fn main() -> Result<()> {
    let years = concat!(env!("CARGO_MANIFEST_DIR"), "/data/years");
    let ctx = SessionContext::new();
    ctx.enable_gridfusion();

    // The files are concatenated along the dimension whose labels differ, which is time.
    let options = ArrayOptions::default().with_file_column(true);
    ctx.register_array("climate", format!("{years}/*.tet"), options).await?;
    let per_file = ctx
        .sql("SELECT _file, avg(t2m) AS mean, max(tp) AS wettest FROM climate GROUP BY _file ORDER BY _file")
        .await?;
    assert_eq!(per_file.clone().count().await?, 3, "a row per file");
    per_file.show().await?;

    // A catalog has a schema for each file, which is opened when a query first uses it.
    ctx.register_array_catalog("years", years, ArrayOptions::default()).await?;
    let warm = ctx
        .sql(
            "SELECT a.time, a.value AS later, b.value AS before
             FROM years.\"2024\".t2m a JOIN years.\"2023\".t2m b
               ON a.time = b.time + INTERVAL '365 days' AND a.lat = b.lat AND a.lon = b.lon
             WHERE a.lat = 50 AND a.lon = 10 AND a.value > b.value + 5 ORDER BY a.time",
        )
        .await?;
    assert!(warm.clone().count().await? > 0, "a day that was warmer a year later");
    warm.show_limit(3).await
}
