//! Copies columns that would keep more memory alive than that of their rows.
//!
//! A column may be a view of its tile or of the labels of its chunk, which saves a copy. An operator that
//! holds batches, such as a sort, then keeps the memory behind them alive too:
//!
//! ```text
//!   tile      ├ batch ┤ batch ┤ batch ┤ …     pages of a file, which are loaded again when a batch is read
//!   labels    ├───────┤                       all labels of the chunk, counted with each batch
//! ```
//!
//! With a memory limit, columns are copied instead.
//!
//! Scans then also give back the pages of mappings after each chunk.

use arrow::array::{Array, ArrayRef, MutableArrayData, make_array};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// Bytes behind a column, besides its rows, that are not worth a copy.
const SLACK: usize = 1 << 12;

/// Returns a copy of the column that holds only the memory of its rows.
pub(super) fn copied(column: &dyn Array) -> Result<ArrayRef, ArrowError> {
    let data = column.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    copy.try_extend(0, 0, data.len())?;
    Ok(make_array(copy.freeze()))
}

/// Returns the column, or a copy if the column keeps much more memory alive than its rows need.
pub(super) fn compact(column: ArrayRef) -> Result<ArrayRef, ArrowError> {
    let width = match column.data_type() {
        DataType::Utf8View | DataType::BinaryView => Some(size_of::<u128>()),
        plain => plain.primitive_width(),
    };
    let Some(width) = width else { return Ok(column) };
    let held = column.to_data().buffers().first().map_or(0, |rows| rows.capacity());
    match held <= 2 * width * column.len() + SLACK {
        true => Ok(column),
        false => copied(&column),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float32Array, StringViewArray};

    use super::*;

    #[test]
    fn views_of_more_are_copied() {
        let values: Float32Array =
            (0..100_000).map(|at| (at % 7 != 0).then_some(at as f32)).collect();
        let names = StringViewArray::from_iter_values((0..100_000).map(|at| format!("name {at}")));
        for whole in [Arc::new(values) as ArrayRef, Arc::new(names)] {
            let part = whole.slice(777, 100);
            let copied = compact(Arc::clone(&part)).unwrap();
            assert_eq!(&copied, &part);
            let rows = &copied.to_data().buffers()[0].capacity();
            assert!(*rows <= 4096, "{rows}");
            assert_eq!(copied.is_null(0), part.is_null(0));
        }
    }

    #[test]
    fn what_is_all_rows_is_kept() {
        let values: ArrayRef =
            Arc::new(Float32Array::from_iter_values((0..9000).map(|at| at as f32)));
        let kept = compact(Arc::clone(&values)).unwrap();
        assert!(Arc::ptr_eq(&kept, &values));
    }
}
