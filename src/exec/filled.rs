//! Large tables, whose size a plan decides.

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;

/// Returns `len` copies of `value`.
///
/// # Errors
/// If the process has not so much memory. The number may come from another process, so it must not end this one.
pub(super) fn filled<T: Copy>(value: T, len: usize) -> Result<Vec<T>> {
    let mut table = Vec::new();
    let reserved = table.try_reserve_exact(len);
    reserved.map_err(|_| {
        resources_datafusion_err!("there is no memory for a table of {len} entries")
    })?;
    table.resize(len, value);
    Ok(table)
}
