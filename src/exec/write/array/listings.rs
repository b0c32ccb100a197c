//! [`Listings`]: the stores above a group that rows are appended to, whose metadata repeats that of its arrays.

use std::sync::Arc;
use std::time::Duration;

use datafusion::error::Result;
use gridfusion_core::ErrorKind;
use gridfusion_core::format::Publish;
use gridfusion_core::io::WritableFolder;
use gridfusion_core::tile::{Objects, WriteSession};

use super::place::{StoreAbove, TargetPlace};
use super::targets::TargetFormat;

/// The times that a document is read again, because another program has changed it.
const TURNS: u32 = 20;
/// The time before the second turn; it grows from turn to turn.
const PAUSE: Duration = Duration::from_millis(5);

/// The fate of a group in the metadata of a store.
#[derive(Clone, Copy)]
enum Change {
    Update,
    Removal,
}

/// The stores above a place, the nearest first.
pub(super) struct Listings<'a> {
    place: &'a TargetPlace,
    target: &'static dyn TargetFormat,
    stores: Vec<StoreAbove>,
}

impl<'a> Listings<'a> {
    /// Finds the stores.
    ///
    /// # Errors
    /// If a store is of an older version, which is not written.
    pub(super) async fn find(
        place: &'a TargetPlace,
        target: &'static dyn TargetFormat,
    ) -> Result<Self> {
        let stores = place.stores_above(target).await?;
        match stores.iter().find(|store| store.mark != target.marks()[0]) {
            Some(store) => place.no_group(
                store,
                "would tell of other lengths; gridfusion appends to groups of Zarr version 3 only",
            ),
            None => Ok(Self { place, target, stores }),
        }
    }

    /// Whether no store lists the array.
    pub(super) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// Lets all stores list the arrays of the group as they are now.
    pub(super) async fn update(&self) -> Result<()> {
        self.change(Change::Update).await
    }

    /// Lets no store list the group.
    pub(super) async fn remove(&self) -> Result<()> {
        self.change(Change::Removal).await
    }

    async fn change(&self, change: Change) -> Result<()> {
        for store in &self.stores {
            let mut turns = 0;
            // A folder remembers what it has read, so each turn has its own.
            while let Some((publish, folder)) = self.publish(store, change).await? {
                let mut session = WriteSession::new(folder);
                match session.publish(publish).await {
                    Ok(()) => break,
                    // Rows go into another group of the store, too.
                    Err(error) if error.kind() == ErrorKind::Usage && turns < TURNS => {
                        turns += 1;
                        tokio::time::sleep(PAUSE * turns).await;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    async fn publish(
        &self,
        store: &StoreAbove,
        change: Change,
    ) -> Result<Option<(Publish, Arc<dyn WritableFolder>)>> {
        let (folder, writable) = self.place.folder_above(store)?;
        let objects = Objects::many_rewritten(folder);
        let publish = match change {
            Change::Update => {
                self.target.listing_update(&objects, &store.group, !store.is_there).await?
            }
            Change::Removal => self.target.listing_removal(&objects, &store.group).await?,
        };
        Ok(publish.map(|publish| (publish, writable)))
    }
}
