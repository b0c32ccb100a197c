//! Queries an object in an object store: here in memory, and in the same way on S3, GCS, Azure or HTTP.
//!
//! ```sh
//! cargo run --release --example memory
//! ```

use std::error::Error;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use url::Url;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = InMemory::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/stations.tet");
    store.put(&"2024/stations.tet".into(), std::fs::read(path)?.into()).await?;

    // Register any `ObjectStore` for the scheme and host of its URLs. Queries fetch only the byte ranges of
    // the object that they need.
    let ctx = SessionContext::new();
    ctx.enable_gridfusion();
    ctx.register_object_store(&Url::parse("memory://archive")?, Arc::new(store));

    let options = ArrayOptions::default().with_dataset("temperature");
    ctx.register_array("temperature", "memory://archive/2024/stations.tet", options).await?;
    let frost =
        ctx.sql("SELECT count(*) FROM temperature WHERE station = 'Oslo' AND value < 0").await?;
    let batches = frost.collect().await?;
    let hours = batches[0].column(0).as_primitive::<Int64Type>().value(0);
    println!("{hours} hours of frost in Oslo");
    assert!(hours > 1000, "it was a winter");
    Ok(())
}
