//! How a [`RemoteStore`] lists folders: by levels, or a whole tree in one request.

use std::sync::Arc;
use std::time::Instant;

use futures::stream::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use super::counts::RequestCounts;
use super::fault::Fault;
use super::get::Patience;
use super::listing::Listing;
use super::store::RemoteStore;
use super::threads;
use crate::error::Result;
use crate::io::FolderEntry;

/// The most objects of one listing of everything below a folder. Stores return as many per request.
const TREE_OBJECTS: usize = 1000;
/// Listings may take several requests, so they get this many times the time of a read.
const LISTING_TIME: u32 = 4;

impl RemoteStore {
    /// Lists a folder, without the contents of its subfolders.
    ///
    /// # Errors
    /// `Io` if the store cannot list it.
    pub(in crate::io) async fn list(&self, path: &Path) -> Result<Vec<FolderEntry>> {
        if let Some(entries) = self.listed_before(path) {
            return Ok(entries);
        }
        // An array is a tree of small folders, which one request lists with all below.
        let (level, tree) = futures::join!(self.level(path), self.tree(path));
        let listing = match tree {
            Some(tree) => tree,
            None => level.map_err(|(fault, tries)| fault.error("list the folder", tries))?,
        };
        self.known().keep_listing(&self.key(path), Arc::clone(&listing), self.limits().cache);
        Ok(listing.entries(path))
    }

    /// Lists one folder, and nothing below it.
    ///
    /// # Errors
    /// As [`RemoteStore::list`].
    pub(crate) async fn entries(&self, path: &Path) -> Result<Vec<FolderEntry>> {
        if let Some(entries) = self.listed_before(path) {
            return Ok(entries);
        }
        let listing = Box::pin(self.level(path)).await;
        let listing = listing.map_err(|(fault, tries)| fault.error("list the folder", tries))?;
        self.known().keep_listing(&self.key(path), Arc::clone(&listing), self.limits().cache);
        Ok(listing.entries(path))
    }

    /// Lists all objects below a folder, however many there are.
    ///
    /// # Errors
    /// As [`RemoteStore::list`].
    pub(crate) async fn objects_below(&self, path: &Path) -> Result<Vec<Path>> {
        let (store, path) = (self.clone(), path.clone());
        threads::run(async move { store.objects_below_here(&path).await }).await?
    }

    /// As `objects_below`, on the thread of the caller.
    async fn objects_below_here(&self, path: &Path) -> Result<Vec<Path>> {
        let budget = self.remote.budget();
        let _admitted = budget.admit(0).await;
        let mut listed = self.store().list(Some(path));
        let (mut objects, began) = (vec![], Instant::now());
        let patience = Patience::new(self.limits().timeout * LISTING_TIME);
        let failed = |fault: Fault| fault.error("list the objects", 1);
        while let Some(object) = patience.wait(listed.next()).await.map_err(failed)? {
            let object = object.map_err(|error| failed(error.into()))?;
            self.learn(&object);
            objects.push(object.location);
        }
        let requests = objects.len().div_ceil(TREE_OBJECTS).max(1) as u64;
        self.remote.count(&RequestCounts { requests, time: began.elapsed(), ..Default::default() });
        Ok(objects)
    }

    /// Returns the entries of a folder, if a recent listing has them.
    fn listed_before(&self, path: &Path) -> Option<Vec<FolderEntry>> {
        let age = self.limits().check;
        if let Some(listing) = self.known().listing(&self.key(path), age) {
            return Some(listing.entries(path));
        }
        let parts: Vec<_> = path.parts().collect();
        let above =
            (0..parts.len()).rev().map(|len| parts[..len].iter().cloned().collect::<Path>());
        above
            .filter_map(|folder| self.known().listing(&self.key(&folder), age))
            .find(|listing| matches!(**listing, Listing::Tree(_)))
            .map(|tree| tree.entries(path))
    }

    /// Whether a recent listing lacks an object, or a folder above it. Formats ask for metadata that only some arrays
    /// have.
    pub(super) fn is_listed_absent(&self, path: &Path) -> bool {
        let parts: Vec<_> = path.parts().collect();
        let lacks = |at: usize| {
            let entries = self.listed_before(&parts[..at].iter().cloned().collect())?;
            Some(entries.iter().all(|entry| entry.name != parts[at].as_ref()))
        };
        // The nearest listing knows most.
        (0..parts.len()).rev().find_map(lacks).unwrap_or_default()
    }

    /// Lists one folder.
    async fn level(&self, path: &Path) -> Result<Arc<Listing>, (Fault, usize)> {
        let (store, path) = (self.clone(), path.clone());
        let level = async move { store.level_here(&path).await };
        threads::run(level).await.map_err(|error| (Fault::Threads(error), 0))?
    }

    /// As `level`, on the thread of the caller.
    async fn level_here(&self, path: &Path) -> Result<Arc<Listing>, (Fault, usize)> {
        let patience = Patience::new(self.limits().timeout * LISTING_TIME);
        let budget = self.remote.budget();
        let _admitted = budget.admit(0).await;
        let mut tries = 0;
        loop {
            tries += 1;
            let began = Instant::now();
            let listed = patience.wait(self.store().list_with_delimiter(Some(path))).await;
            let counts = RequestCounts { requests: 1, time: began.elapsed(), ..Default::default() };
            self.remote.count(&counts);
            match listed.and_then(|listed| Ok(listed?)) {
                Ok(listed) => {
                    listed.objects.iter().for_each(|object| self.learn(object));
                    return Ok(Arc::new(Listing::level(&listed)));
                }
                Err(fault) => self.pause(fault, tries, &patience, path).await?,
            }
        }
    }

    /// Returns objects below a folder, at most `most`. So many take one request if there are no more than 1000.
    ///
    /// # Errors
    /// `Io` if the store cannot list them.
    pub(in crate::io) async fn some_below(&self, path: &Path, most: usize) -> Result<Vec<Path>> {
        let objects = self.first_below(path, most).await;
        let objects = objects.map_err(|fault| fault.error("list the objects", 1))?;
        Ok(objects.into_iter().map(|object| object.location).collect())
    }

    /// Lists all objects below a folder; `None` if they are too many for one request, or the store cannot.
    async fn tree(&self, path: &Path) -> Option<Arc<Listing>> {
        if !lists_trees(self.store()) {
            return None;
        }
        let objects = self.first_below(path, TREE_OBJECTS).await.ok()?;
        if objects.len() >= TREE_OBJECTS {
            return None;
        }
        objects.iter().for_each(|object| self.learn(object));
        Some(Arc::new(Listing::tree(&objects)))
    }

    /// Asks once for the first objects below a folder.
    async fn first_below(&self, path: &Path, most: usize) -> Result<Vec<ObjectMeta>, Fault> {
        let store = self.clone();
        let listed = self.store().list(Some(path)).take(most);
        let objects = async move {
            let budget = store.remote.budget();
            let _admitted = budget.admit(0).await;
            let (patience, began) = (Patience::new(store.limits().timeout), Instant::now());
            let objects = patience.wait(listed.try_collect::<Vec<_>>()).await;
            let time = began.elapsed();
            store.remote.count(&RequestCounts { requests: 1, time, ..Default::default() });
            Ok(objects??)
        };
        threads::run(objects).await.map_err(Fault::Threads)?
    }
}

/// Whether a store lists a folder with all folders below it in few requests. A web server would walk through all of them.
///
/// `object_store` tells the kind of a store only in its text, which other stores may wrap. So only known kinds count.
fn lists_trees(store: &Arc<dyn ObjectStore>) -> bool {
    const KNOWN: [&str; 5] =
        ["AmazonS3", "GoogleCloudStorage", "InMemory", "LocalFileSystem", "MicrosoftAzure"];
    let text = store.to_string();
    !text.contains("HttpStore") && KNOWN.iter().any(|kind| text.contains(kind))
}

#[cfg(test)]
mod tests {
    use object_store::limit::LimitStore;
    use object_store::memory::InMemory;
    use object_store::prefix::PrefixStore;

    use super::*;

    #[test]
    fn only_known_stores_list_trees() {
        let memory = InMemory::new;
        assert!(lists_trees(&(Arc::new(memory()) as _)));
        assert!(lists_trees(&(Arc::new(LimitStore::new(memory(), 2)) as _)));
        // The text of this store does not tell what it wraps.
        assert!(!lists_trees(&(Arc::new(PrefixStore::new(memory(), "a")) as _)));
    }

    #[cfg(feature = "http")]
    #[test]
    fn no_web_server_lists_trees() {
        let server = || {
            let builder = object_store::http::HttpBuilder::new().with_url("https://AmazonS3.test");
            builder.build().unwrap()
        };
        assert!(!lists_trees(&(Arc::new(server()) as _)));
        assert!(!lists_trees(&(Arc::new(LimitStore::new(server(), 2)) as _)));
        assert!(!lists_trees(&(Arc::new(PrefixStore::new(server(), "a")) as _)));
    }
}
