//! [`Listings`]: the stores above a group that rows are appended to, whose metadata repeats that of its arrays.

use std::sync::Arc;

use datafusion::error::Result;
use gridfusion_core::ErrorKind;
use gridfusion_core::tile::{Objects, WriteSession};

use super::place::{ReadAndWritten, TargetPlace};
use super::targets::TargetFormat;

/// The times that a document is read again, because another program has changed it.
const TURNS: usize = 8;

/// The stores above a place, the nearest first.
pub(super) struct Listings {
    target: &'static dyn TargetFormat,
    /// The folder of each store, and the path of the group in it.
    stores: Vec<(ReadAndWritten, String)>,
}

impl Listings {
    /// Finds the stores.
    ///
    /// # Errors
    /// If a store is of an older version, which is not written.
    pub(super) async fn find(
        place: &TargetPlace,
        target: &'static dyn TargetFormat,
    ) -> Result<Self> {
        let mut stores = vec![];
        for store in place.stores_above(target).await? {
            if store.mark != target.marks()[0] {
                return place.no_group(
                    &store,
                    "would tell of other lengths; gridfusion appends to groups of Zarr version 3 only",
                );
            }
            stores.push((place.folder_above(&store)?, store.group));
        }
        Ok(Self { target, stores })
    }

    /// Lets all stores list the arrays of the group as they are now.
    pub(super) async fn update(&self) -> Result<()> {
        for ((folder, writable), group) in &self.stores {
            let mut turns = 0;
            loop {
                let store = Objects::many_rewritten(Arc::clone(folder));
                let Some(publish) = self.target.listing_update(&store, group).await? else { break };
                let mut session = WriteSession::new(Arc::clone(writable));
                match session.publish(publish).await {
                    Ok(()) => break,
                    // Rows go into another group of the store, too.
                    Err(error) if error.kind() == ErrorKind::Usage && turns < TURNS => turns += 1,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}
