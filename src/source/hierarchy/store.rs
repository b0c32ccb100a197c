//! [`VariableStore`]: the variables of a file or store, and the places of their chunks.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::format::StoredChunk;
use crate::format::hierarchy::Hierarchy;
use crate::tile::Objects;

/// An opened file or store of variables.
#[async_trait]
pub(crate) trait VariableStore: Debug + Send + Sync {
    /// Returns the groups and variables.
    fn hierarchy(&self) -> &Hierarchy;

    /// Returns the objects that hold the chunks.
    fn objects(&self) -> &Arc<Objects>;

    /// Returns where the chunks at these coordinates of variable number `variable` are stored, in order.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if an index of chunks cannot be read.
    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>>;
}
