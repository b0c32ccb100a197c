//! The only value of an array, such as a scalar coordinate.

use arrow::array::ArrayRef;
use futures::TryStreamExt;

use super::array_reader::ArrayReader;
use crate::array::{ColumnSource, GridArray};
use crate::error::{Error, Result};

/// Reads the only value of an array of one variable, as an Arrow array of one element.
///
/// # Errors
/// `Usage` for an array of more or fewer cells; otherwise if its chunk cannot be read.
pub async fn single_value(array: GridArray) -> Result<ArrayRef> {
    let name = array.name().to_owned();
    let columns = array.columns().iter();
    let column = columns.clone().position(|it| matches!(it, ColumnSource::Value(_)));
    let cells = array.grid().shape().iter().copied().fold(1, u64::saturating_mul);
    let objects = std::sync::Arc::clone(array.shared_objects());
    let wrong = |what: String| objects.named(Error::usage(format!("\"{name}\" has {what}")));
    let column = column.ok_or_else(|| wrong("no variable".to_owned()))?;
    if cells != 1 {
        return Err(wrong(format!("{cells} values, expected a single one")));
    }
    let batches: Vec<_> = ArrayReader::new(array).batches().try_collect().await?;
    let batch = batches.iter().find(|batch| batch.num_rows() == 1);
    let value = batch.map(|batch| std::sync::Arc::clone(batch.column(column)));
    value.ok_or_else(|| Error::internal("an array of one cell without a row"))
}
