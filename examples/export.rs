//! Writes the result of a query to a Parquet file and reads it back.
//!
//! ```sh
//! cargo run --release --example export
//! ```

use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

#[tokio::main]
async fn main() -> Result<()> {
    let ctx = SessionContext::new();
    ctx.enable_gridfusion();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/stations.tet");
    let options = ArrayOptions::default().with_dataset("temperature");
    ctx.register_array("temperature", path, options).await?;

    let daily = ctx
        .sql(
            "SELECT station, date_trunc('day', time) AS day, min(value) AS low, max(value) AS high
             FROM temperature GROUP BY station, day ORDER BY station, day",
        )
        .await?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("daily.parquet");
    let file = file.to_str().unwrap_or_default();
    daily.clone().write_parquet(file, DataFrameWriteOptions::new(), None).await?;

    // Labels are ordinary columns, so nothing is lost: times stay timestamps.
    let again = ctx.read_parquet(file, ParquetReadOptions::default()).await?;
    assert_eq!(again.clone().count().await?, 6 * 60, "six stations, sixty days");
    assert_eq!(again.clone().except(daily)?.count().await?, 0, "the same rows");
    println!("{}", again.schema());
    again.limit(0, Some(3))?.show().await
}
