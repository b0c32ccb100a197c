//! An opened folder with references in Parquet: a Zarr store whose chunks lie in other objects.
//!
//! ```text
//!   chunks ──▶ their tables: kept, or read once ──▶ places ──▶ bytes of other objects
//!                             └ absent: only if a listing of the array's folder lacks it
//! ```
//!
//! Tables are kept within a bound of memory.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;

use super::references::ReferencedObjects;
use super::store::{codec, digest_below, facts, metadata_digest};
use crate::bytes::{ReadReferences, ReadTables, ReferenceTable, TableNames, ZarrStore};
use gridfusion_cf::conventions::{StoreFacts, StoredTotals, VariableStore, located_totals};
use gridfusion_cf::hierarchy::Hierarchy;
use gridfusion_core::format::StoredChunk;
use gridfusion_core::source::Place;
use gridfusion_core::tile::{Documents, ObjectVersion, Objects, drive, drive_documents};
use gridfusion_core::{Error, Result};

/// The most bytes of tables that a store keeps, besides those of the last query.
const MOST_KEPT: u64 = 1 << 26;

/// The bytes of the entry of a table that is kept.
const ENTRY: u64 = 128;

/// An opened folder with references in Parquet.
#[derive(Debug)]
pub(super) struct ReferenceTables {
    store: ZarrStore,
    record_size: u64,
    /// The folder with the tables.
    folder: Arc<Objects>,
    /// How tables are read.
    documents: Documents,
    /// The objects that the tables name.
    objects: Arc<Objects>,
    /// Whether an object that a table names is in a store.
    names_stores: Arc<AtomicBool>,
    kept: Mutex<KeptTables>,
    /// The numbers of the tables that are there, by the numbers of variables whose folders were listed.
    listed: Mutex<HashMap<usize, Arc<BTreeSet<u64>>>>,
    /// The digest of the metadata, once it is needed.
    version: OnceLock<String>,
    /// The digests of the tables of some variables, by their numbers.
    contents: Mutex<HashMap<usize, Vec<ObjectVersion>>>,
}

/// Tables, the most recently used last.
#[derive(Debug, Default)]
struct KeptTables {
    tables: VecDeque<((usize, u64), Arc<ReferenceTable>)>,
    bytes: u64,
}

impl KeptTables {
    fn get(&mut self, key: (usize, u64)) -> Option<Arc<ReferenceTable>> {
        let at = self.tables.iter().position(|(kept, _)| *kept == key)?;
        let entry = self.tables.remove(at)?;
        let table = Arc::clone(&entry.1);
        self.tables.push_back(entry);
        Some(table)
    }

    fn insert(&mut self, key: (usize, u64), table: Arc<ReferenceTable>) {
        if self.get(key).is_some() || table.memory() > MOST_KEPT {
            return;
        }
        self.bytes += table.memory() + ENTRY;
        self.tables.push_back((key, table));
        while self.bytes > MOST_KEPT
            && let Some((_, table)) = self.tables.pop_front()
        {
            self.bytes -= table.memory() + ENTRY;
        }
    }
}

/// Tables by their numbers; `None` for one that is proven to be absent.
type FoundTables = HashMap<u64, Option<Arc<ReferenceTable>>>;

impl ReferenceTables {
    /// Makes a store of metadata that was read in a folder at `place`.
    ///
    /// # Errors
    /// As [`Place::at`].
    pub(super) fn try_new(
        place: &Place,
        folder: Arc<Objects>,
        store: ZarrStore,
        record_size: u64,
    ) -> Result<Self> {
        let names_stores = Arc::new(AtomicBool::new(place.is_remote()));
        // Paths are relative to the folder around this one, with or without a slash at its end.
        let beside = place.at(place.location().trim_end_matches('/'))?;
        let referenced = ReferencedObjects::new(beside, Arc::clone(&names_stores));
        Ok(Self {
            store,
            record_size,
            folder,
            documents: place.documents(),
            objects: Arc::new(Objects::many(Arc::new(referenced))),
            names_stores,
            kept: Mutex::default(),
            listed: Mutex::default(),
            version: OnceLock::new(),
            contents: Mutex::default(),
        })
    }

    fn names(&self, variable: usize) -> Result<TableNames> {
        let array = self.store.arrays().get(variable);
        let array = array.ok_or_else(|| Error::internal("a variable that does not exist"))?;
        Ok(TableNames::new(Arc::clone(array), self.record_size))
    }

    fn kept(&self) -> MutexGuard<'_, KeptTables> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listed(&self) -> MutexGuard<'_, HashMap<usize, Arc<BTreeSet<u64>>>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns tables that are kept, or reads them.
    async fn tables(&self, variable: usize, numbers: BTreeSet<u64>) -> Result<FoundTables> {
        let (mut found, mut unknown) = (FoundTables::new(), BTreeSet::new());
        let listed = self.listed().get(&variable).cloned();
        for number in numbers {
            let kept = self.kept().get((variable, number));
            let is_absent = listed.as_ref().is_some_and(|listed| !listed.contains(&number));
            match kept {
                None if !is_absent => _ = unknown.insert(number),
                kept => _ = found.insert(number, kept),
            }
        }
        if unknown.is_empty() {
            return Ok(found);
        }
        let names = self.names(variable)?;
        let machine = ReadTables::new(names, unknown);
        let read = drive_documents(machine, &self.folder, &self.documents).await?;
        for (number, table) in &read {
            match table {
                Some(table) => self.keep(variable, *number, table)?,
                None => self.prove_absent(variable, *number).await?,
            }
        }
        // Tables that are kept must be of the same version. In an object store, telling takes a request for each of them.
        if !self.folder.is_remote() {
            self.folder.check_read(0, &[]).await?;
        }
        found.extend(read);
        Ok(found)
    }

    fn keep(&self, variable: usize, number: u64, table: &Arc<ReferenceTable>) -> Result<()> {
        self.documents.check_memory(table.memory())?;
        if table.names_stores() {
            self.names_stores.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        self.kept().insert((variable, number), Arc::clone(table));
        Ok(())
    }

    /// Fails unless the folder of an array has no table with this number.
    async fn prove_absent(&self, variable: usize, number: u64) -> Result<()> {
        let names = self.names(variable)?;
        let listed = self.list(variable).await.map_err(|error| {
            error.followed_by(&format!(
                "; it cannot be told whether \"{}\" is absent or lost",
                names.object(number)
            ))
        })?;
        match listed.contains(&number) {
            false => Ok(()),
            true => {
                let message = "the table is in the listing of its folder, but could not be read";
                Err(Error::corrupt_region("table of references", message)
                    .in_file(&names.object(number)))
            }
        }
    }

    /// Returns the numbers of the tables of a variable that are there. Lists its folder once.
    async fn list(&self, variable: usize) -> Result<Arc<BTreeSet<u64>>> {
        if let Some(listed) = self.listed().get(&variable) {
            return Ok(Arc::clone(listed));
        }
        let folder = self.names(variable)?.folder().to_owned();
        let entries = self.folder.list(vec![folder]).await?;
        let objects = entries.iter().flatten().filter(|entry| entry.size.is_some());
        let numbers = objects.filter_map(|entry| TableNames::number(&entry.name));
        let listed: Arc<BTreeSet<u64>> = Arc::new(numbers.collect());
        self.listed().insert(variable, Arc::clone(&listed));
        Ok(listed)
    }

    /// Returns the error for a table beyond the last chunk.
    fn beyond(names: &TableNames, number: u64, tables: u64) -> Error {
        let message =
            format!("the array has {tables} tables, and there is one with the number {number}");
        Error::corrupt_region("table of references", message).in_file(&names.object(number))
    }
}

#[async_trait]
impl VariableStore for ReferenceTables {
    fn hierarchy(&self) -> &Hierarchy {
        self.store.hierarchy()
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>> {
        let names = self.names(variable)?;
        let tables = self.tables(variable, names.tables_of(&chunks)?).await?;
        let places = Arc::new(ReadReferences::new(names, tables));
        drive(self.store.locate(variable, chunks)?.with_places(places), &self.objects).await
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        let version = self.version.get_or_init(|| metadata_digest(&self.store)).clone();
        vec![ObjectVersion { object: self.folder.name().to_owned(), version }]
    }

    /// The tables, which tell where the chunks are.
    fn contents(&self, variable: usize) -> Result<Vec<ObjectVersion>> {
        let known = || self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(contents) = known().get(&variable) {
            return Ok(contents.clone());
        }
        let digest = digest_below(&self.folder, &self.store, variable)?;
        let contents: Vec<ObjectVersion> = digest.into_iter().collect();
        known().insert(variable, contents.clone());
        Ok(contents)
    }

    /// Tells whether a folder has no table at all.
    async fn explain_absence(&self, variable: usize) -> Result<Option<String>> {
        let names = self.names(variable)?;
        let tables = names.tables()?;
        if tables == 0 || self.kept().tables.iter().any(|((of, _), _)| *of == variable) {
            return Ok(None);
        }
        let listed = match self.list(variable).await {
            Ok(listed) => listed,
            // Web servers cannot list. A table that is absent was an error then.
            Err(error) if self.folder.is_remote() => {
                log::debug!("cannot be listed: {error}");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if let Some(number) = listed.range(tables..).next() {
            return Err(Self::beyond(&names, *number, tables));
        }
        Ok(listed.is_empty().then(|| {
            format!(
                "no chunk of \"{}\" has a reference, so all of its cells have the fill value; if that is wrong, the folder is \
                 incomplete",
                names.folder()
            )
        }))
    }

    fn facts(&self) -> StoreFacts {
        facts("references in Parquet of a Zarr store", &self.store)
    }

    fn codec(&self, variable: usize) -> Option<String> {
        codec(&self.store, variable)
    }

    /// In an object store, finding out takes a request for each table.
    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>> {
        match self.folder.is_remote() && self.names(variable)?.tables()? > 1 {
            true => Ok(None),
            false => located_totals(self, variable).await,
        }
    }

    /// Reads each table. Returns the number of references.
    async fn check_index(&self, variable: usize) -> Result<Option<u64>> {
        let names = self.names(variable)?;
        let tables = names.tables()?;
        let listed = self.list(variable).await?;
        if let Some(number) = listed.range(tables..).next() {
            return Err(Self::beyond(&names, *number, tables));
        }
        let mut references = 0;
        for number in listed.iter() {
            let found = self.tables(variable, BTreeSet::from([*number])).await?;
            references += found.values().flatten().map(|table| table.references()).sum::<u64>();
        }
        Ok(Some(references))
    }
}
