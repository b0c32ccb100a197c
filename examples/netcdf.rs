//! Asks SQL of a NetCDF file: its variables are columns of one table.
//!
//! ```sh
//! cargo run --release --example netcdf
//! ```

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

#[tokio::main]
async fn main() -> Result<()> {
    let ctx = SessionContext::new();
    ctx.enable_gridfusion();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/air.nc");
    ctx.register_array("air", path, ArrayOptions::default()).await?;
    ctx.sql("SELECT lat, avg(t2m) AS t2m, sum(tp) AS rain FROM air GROUP BY lat ORDER BY lat")
        .await?
        .show()
        .await
}
