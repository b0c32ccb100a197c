//! Prints the variables of a Zarr store with their dimensions, and the extremes of those that are numbers.
//!
//! ```sh
//! cargo run --release -p gridfusion-zarr --example describe examples/data/sea.zarr
//! ```

use arrow::array::{Array, RecordBatch};
use arrow::compute::{cast, max, min};
use arrow::datatypes::{DataType, Float64Type};
use futures::TryStreamExt;
use gridfusion_core::Result;
use gridfusion_core::read::ArrayReader;

#[tokio::main]
async fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/data/sea.zarr".to_owned());
    let store = gridfusion_zarr::open(&path).await?;
    for name in store.names() {
        let variable = store.array(&name).await?;
        let dims: Vec<String> =
            variable.dims().iter().map(|dim| format!("{}: {}", dim.name(), dim.len())).collect();
        println!("{name} ({}) {}", dims.join(", "), extremes(&variable).await?);
    }
    Ok(())
}

/// Reads all cells batch by batch, and returns the least and the greatest as text.
async fn extremes(variable: &ArrayReader) -> Result<String> {
    let mut batches = std::pin::pin!(variable.batches());
    let (mut least, mut greatest): (Option<f64>, Option<f64>) = (None, None);
    while let Some(batch) = batches.try_next().await? {
        let Some(values) = last_column(&batch) else { return Ok(String::new()) };
        least = least.into_iter().chain(min(&values)).reduce(f64::min);
        greatest = greatest.into_iter().chain(max(&values)).reduce(f64::max);
    }
    Ok(least.zip(greatest).map(|(a, b)| format!("{a} to {b}")).unwrap_or_default())
}

/// The variable's column, which is the last one, as doubles; `None` if it is no number.
fn last_column(batch: &RecordBatch) -> Option<arrow::array::PrimitiveArray<Float64Type>> {
    let column = batch.columns().last().filter(|column| column.data_type().is_numeric())?;
    let doubles = cast(column, &DataType::Float64).ok()?;
    doubles.as_any().downcast_ref::<arrow::array::PrimitiveArray<Float64Type>>().cloned()
}
