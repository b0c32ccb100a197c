//! The verification of indexes of chunks: a query that does not find a chunk shows fill.

use super::store::VariableStore;
use gridfusion_core::verify::{Check, Finding, counted};

/// Checks the indexes of variables, given by number and name. Returns `None` if none of them has an index.
pub(crate) async fn check_indexes(
    store: &dyn VariableStore,
    variables: impl Iterator<Item = (usize, &str)>,
) -> Option<Check> {
    let (mut check, mut chunks) = (Check::new("chunk_index"), None);
    for (number, name) in variables {
        match store.check_index(number).await {
            Ok(None) => {}
            Ok(Some(count)) => *chunks.get_or_insert(0) += count,
            Err(error) => {
                chunks.get_or_insert(0);
                check.add(Finding::from_error(&error).in_dataset(name));
            }
        }
    }
    Some(check.with_detail(counted(chunks?, "chunk")))
}
