//! The verification of indexes of chunks: a query that does not find a chunk shows fill.

use super::store::VariableStore;
use gridfusion_core::Result;
use gridfusion_core::verify::{Check, Finding, counted};

/// Checks the indexes of variables, given by number and name. Returns `None` if none of them has an index.
pub(crate) async fn check_indexes(
    store: &dyn VariableStore,
    variables: impl Iterator<Item = (usize, &str)>,
) -> Option<Check> {
    let (mut check, mut chunks) = (Check::new("chunk_index"), None);
    for (number, name) in variables {
        count(&mut check, &mut chunks, name, store.check_index(number).await);
    }
    Some(check.with_detail(counted(chunks?, "chunk")))
}

/// Compares the stored bytes of variables with their checksums. Returns `None` if none of them has any.
pub(crate) async fn check_checksums(
    store: &dyn VariableStore,
    variables: impl Iterator<Item = (usize, &str)>,
) -> Option<Check> {
    let (mut check, mut chunks) = (Check::new("checksums"), None);
    for (number, name) in variables {
        count(&mut check, &mut chunks, name, store.check_checksums(number).await);
    }
    Some(check.with_detail(counted(chunks?, "chunk")))
}

/// Adds the chunks of a variable, or the error that was found.
fn count(check: &mut Check, chunks: &mut Option<u64>, name: &str, found: Result<Option<u64>>) {
    match found {
        Ok(None) => {}
        Ok(Some(count)) => *chunks.get_or_insert(0) += count,
        Err(error) => {
            chunks.get_or_insert(0);
            check.add(Finding::from_error(&error).in_dataset(name));
        }
    }
}
