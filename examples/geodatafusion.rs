//! Uses the `ST_…` functions of the crate geodatafusion beside gridfusion: they make and test geometries, and gridfusion finds the
//! cells that these cover.
//!
//! ```sh
//! cargo run --release --example geodatafusion
//! ```

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

/// Places around Central Europe, as well-known text.
const PLACES: &str =
    "'MULTIPOINT ((-4.7 40.3), (1.3 55.1), (25.2 56.4), (29.6 41.7), (10.5 46.8))'";

#[tokio::main]
async fn main() -> Result<()> {
    let ctx = SessionContext::new();
    ctx.enable_gridfusion();
    geodatafusion::register(&ctx);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/air.nc");
    ctx.register_array("air", path, ArrayOptions::default()).await?;
    // geodatafusion makes the region, and gridfusion reads it as well-known binary.
    let region = format!(
        "CREATE TABLE region AS
         SELECT 'Central Europe' AS name, ST_AsBinary(ST_ConvexHull(ST_GeomFromText({PLACES}))) AS geometry"
    );
    ctx.sql(&region).await?.collect().await?;
    let means = ctx
        .sql(
            "SELECT name, date_trunc('month', time) AS month, round(weighted_avg(t2m, area_m2), 2) AS mean
             FROM air JOIN grid_coverage(air, region) USING (lat, lon)
             GROUP BY name, month ORDER BY month",
        )
        .await?;
    means.show().await?;
    // A test of each centre finds the same cells as the rule 'centre'.
    let tested = "SELECT DISTINCT lat, lon FROM air JOIN region
        ON ST_Intersects(ST_Point(lon, lat), ST_GeomFromWKB(geometry))";
    let covered = "SELECT lat, lon FROM grid_coverage(air, region, rule => 'centre')";
    let cells = ctx.sql(covered).await?.count().await?;
    let differences = format!("({tested} EXCEPT {covered}) UNION ALL ({covered} EXCEPT {tested})");
    assert!(cells > 1, "the region has several cells");
    assert_eq!(ctx.sql(&differences).await?.count().await?, 0, "the same cells");
    println!("{cells} cells have their centre in the region.");
    Ok(())
}
