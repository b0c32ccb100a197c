//! How an [`ArraySink`] writes: a new array, another version, one in the place of another, or more rows of one.
//!
//! | mode | before | after |
//! |---|---|---|
//! | create | nothing | a new array |
//! | overwrite | an array | a new one beside it, which then takes its place |
//! | overwrite | an array that keeps its versions | another version |
//! | create, with a group | nothing, or a store | a new group of it |
//! | overwrite, with a group | a group | a new one beside it, which then takes its place |
//! | append | an array | new cells of it |

use std::sync::Arc;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use datafusion::common::{exec_err, not_impl_err};
use datafusion::datasource::sink::DataSink;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use gridfusion_core::io::{Folder, StoreFolder};
use gridfusion_core::tile::{Objects, WriteSession};
use gridfusion_core::write::{ArrayWriter, ExistingCells, NewArray};

use super::listings::Listings;
use super::new_store::NewStore;
use super::options::WriteMode;
use super::place::TargetPlace;
use super::replacement::Replacement;
use super::sink::{ArraySink, RowsAndLabels};

/// Why no group is replaced by its place alone.
const OLD_ARRAY: &str = "would tell of the old array; write to that store, with the group as an option: OPTIONS (group 'NAME', mode 'overwrite')";
/// Why no array is written below a store by its place alone.
const NEW_GROUP: &str = "would not tell of it; write to that store, with the group as an option: OPTIONS (group 'NAME')";

/// The object that locks an array for one writer.
pub(super) const LOCK: &str = ".gridfusion-lock";

impl ArraySink {
    /// Writes rows to the place, as the mode tells.
    pub(super) async fn write(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (session, runtime) = (context.session_config(), context.runtime_env());
        let group = self.options.group_of_append();
        let place = TargetPlace::try_new(&self.config, session, &runtime, self.target, group)?;
        if self.options.mode == WriteMode::Append {
            let mut session = WriteSession::new(place.existing()?.1);
            let appended = self.append(data, &place, &mut session, context).await;
            return ended(appended, session).await;
        }
        let replaces = self.options.mode == WriteMode::Overwrite;
        if let Some(group) = self.options.group.as_deref() {
            return self.write_group(data, group, &place, context).await;
        }
        if self.target.keeps_versions() {
            return self.add_to_folder(data, &place, context).await;
        }
        if replaces && !self.target.is_one_file() {
            place.check_no_store_above(self.target, OLD_ARRAY).await?;
            let unlocks = self.options.unlocks;
            let replacement = Replacement::begin(&place, self.target, unlocks).await?;
            if let Some(replacement) = replacement {
                return self.replace(data, replacement, context).await;
            }
        } else if !replaces {
            self.check_no_group(&place).await?;
            place.check_empty(self.target).await?;
        }
        self.create(data, place.folder, &place.object, context).await
    }

    /// Writes rows as a group of the store at a place: a new one, or one in the place of another.
    async fn write_group(
        &self,
        data: SendableRecordBatchStream,
        group: &str,
        place: &TargetPlace,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let own = self.place_of(group, context)?;
        place.check_not_stopped().await?;
        for (end, _) in group.match_indices('/') {
            self.place_of(&group[..end], context)?.check_not_stopped().await?;
        }
        if self.options.mode == WriteMode::Overwrite {
            self.check_no_group(place).await?;
            let old = Replacement::begin(&own, self.target, self.options.unlocks).await?;
            if let Some(old) = old {
                return self.replace_group(data, place, &own, old, context).await;
            }
        } else {
            own.check_not_stopped().await?;
        }
        self.add_to_folder(data, place, context).await
    }

    /// Returns the place of a group.
    fn place_of(&self, group: &str, context: &Arc<TaskContext>) -> Result<TargetPlace> {
        let (session, runtime) = (context.session_config(), context.runtime_env());
        TargetPlace::try_new(&self.config, session, &runtime, self.target, Some(group))
    }

    /// Fails if a new array would be a group of a store above it, which would not know of it.
    async fn check_no_group(&self, place: &TargetPlace) -> Result<()> {
        match self.target.options().contains(&"group") {
            true => place.check_no_store_above(self.target, NEW_GROUP).await,
            false => Ok(()),
        }
    }

    /// Writes rows as a new array in a folder that has none.
    async fn create(
        &self,
        data: SendableRecordBatchStream,
        folder: Arc<StoreFolder>,
        object: &str,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let mut session = WriteSession::new(folder);
        let writer = |array| self.target.writer(array, object, &self.options);
        let written = self.write_array(data, writer, &mut session, context).await;
        ended(written, session).await
    }

    /// Writes rows as an array beside those of a folder: the first version of one or another one, or a group. This needs the lock of the
    /// folder.
    async fn add_to_folder(
        &self,
        data: SendableRecordBatchStream,
        place: &TargetPlace,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        // A program that was stopped may have left its lock.
        let is_new = place.folder.some_below("", 2).await?.iter().all(|it| it == LOCK);
        if !is_new && self.target.keeps_versions() && self.options.mode == WriteMode::Create {
            place.check_empty(self.target).await?;
        }
        self.check_no_group(place).await?;
        if is_new {
            place.make_folder()?;
        }
        let (folder, writable) = place.existing()?;
        let mut session = WriteSession::new(writable);
        let written = async {
            lock(&mut session, self.options.unlocks).await?;
            let objects = Objects::many_rewritten(folder);
            let added = self.target.open_folder(&objects, is_new, &self.options).await?;
            session.write(added.repair).await?;
            let rows = self.write_array(data, added.writer, &mut session, context).await?;
            // Without rows, a table is no array yet.
            if rows > 0 || self.after.is_none() {
                self.list(context).await?;
            }
            Ok(rows)
        };
        let written = ended(written.await, session).await;
        if is_new && !matches!(&written, Ok(rows) if *rows > 0) {
            place.remove_folder();
        }
        written
    }

    /// Lists a new group in the stores above it.
    async fn list(&self, context: &Arc<TaskContext>) -> Result<()> {
        let Some(group) = self.options.group.as_deref() else { return Ok(()) };
        let place = self.place_of(group, context)?;
        let listings = Listings::find(&place, self.target).await?;
        listings.update().await.map_err(|error| {
            error.context(
                "the group is complete, and the store does not list it yet; the next append to the group does",
            )
        })
    }

    /// Writes rows with a writer, and publishes them. The caller aborts the session if that fails.
    async fn write_array(
        &self,
        data: SendableRecordBatchStream,
        writer: impl FnOnce(NewArray) -> Result<Box<dyn ArrayWriter>>,
        session: &mut WriteSession,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let RowsAndLabels { labels, places, cells, rows, _reservation } =
            self.cells(data, context).await?;
        // A table without rows is no array yet: nothing is known of its labels.
        if rows == 0 && self.after.is_some() {
            return Ok(0);
        }
        let writer = writer(self.new_array(labels)?)?;
        self.check_cells(writer.array(), rows)?;
        // A folder has no array by now, and two writers may be making one.
        let replaces = self.options.mode == WriteMode::Overwrite && self.target.is_one_file();
        let cells = cells.in_order(places, context)?;
        let store = NewStore::new(writer, replaces, &self.metrics, context);
        store.write(cells, session, context).await?;
        Ok(rows)
    }

    /// Writes rows as a new array beside one that is there, and then puts it into the place of that one.
    async fn replace(
        &self,
        data: SendableRecordBatchStream,
        replacement: Replacement,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let folder = Arc::clone(&replacement.folder);
        match self.create(data, folder, "", context).await {
            Ok(rows) => replacement.finish().await.map(|()| rows),
            Err(error) => {
                replacement.abort().await;
                Err(error)
            }
        }
    }

    /// Writes rows as a new group beside one that is there, and then puts it into the place of that one. Readers of the store find no group
    /// in between: its metadata must not tell of arrays that are others by then. Needs the lock of the store, too.
    async fn replace_group(
        &self,
        data: SendableRecordBatchStream,
        place: &TargetPlace,
        own: &TargetPlace,
        old: Replacement,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (folder, writable) = place.existing()?;
        let mut session = WriteSession::new(writable);
        let written = async {
            lock(&mut session, self.options.unlocks).await?;
            let listings = Listings::find(own, self.target).await?;
            let objects = Objects::many_rewritten(folder);
            let writer = self.target.replacing_group(&objects, &self.options).await?;
            let mut of_new = WriteSession::new(Arc::clone(&old.folder) as _);
            let written = self.write_array(data, writer, &mut of_new, context).await;
            let rows = ended(written, of_new).await?;
            if let Err(error) = listings.remove().await {
                // One of several stores may have changed.
                drop(listings.update().await);
                return Err(error);
            }
            Ok(rows)
        };
        let replaced = match written.await {
            Ok(rows) => match old.finish().await {
                Ok(()) => self.list(context).await.map(|()| rows),
                Err(error) => {
                    // A local folder is the old group or the new one, as a whole.
                    if own.local.is_some() {
                        drop(self.list(context).await);
                    }
                    Err(error)
                }
            },
            Err(error) => {
                old.abort().await;
                // A program that was stopped may have left the group unlisted.
                drop(self.list(context).await);
                Err(error)
            }
        };
        ended(replaced, session).await
    }

    /// Appends rows to the array that is there. The caller aborts the session if that fails.
    async fn append(
        &self,
        data: SendableRecordBatchStream,
        place: &TargetPlace,
        session: &mut WriteSession,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let listings = Listings::find(place, self.target).await?;
        lock(session, self.options.unlocks).await?;
        let objects =
            || Ok::<_, DataFusionError>(Arc::new(Objects::many_rewritten(place.existing()?.0)));
        let columns: Vec<&str> =
            self.schema().fields().iter().map(|it| it.name().as_str()).collect();
        let mut array = self.target.open(objects()?, &columns, &self.options).await?;
        let (repair, changes_cells) = array.repair()?;
        if !repair.is_empty() {
            session.write(repair).await?;
            if changes_cells {
                return exec_err!(
                    "another program was stopped while it changed cells of the array; all of its cells are in place now, so run the statement again"
                );
            }
            array = self.target.open(objects()?, &columns, &self.options).await?;
        }
        if self.options.existing != ExistingCells::Refuse && !self.is_snapshot(&array.versions()) {
            return exec_err!(
                "the array has changed since its table was read; run the statement again"
            );
        }
        listings.update().await?;
        let planned =
            self.dimensions.iter().map(|it| (self.field(it.column).name(), it.order.descending));
        let found = array.dimensions().iter().map(|it| (&it.name, it.descends));
        if !planned.eq(found) {
            return exec_err!("the array was replaced since the statement was planned; try again");
        }
        let RowsAndLabels { labels, places, cells, rows, _reservation } =
            self.cells(data, context).await?;
        if rows == 0 {
            return Ok(0);
        }
        if self.options.refines_times {
            if !listings.is_empty() {
                return not_impl_err!(
                    "'times' for a group of a store; write times in the units of the group, or append to a store without groups"
                );
            }
            array.refine_times();
        }
        let (writer, of_labels) = array.writer(
            self.new_dimensions(labels)?,
            self.new_variables()?,
            self.options.existing,
        )?;
        // Arrays of a store change object by object, and others as a whole box.
        if self.options.existing == ExistingCells::Refuse || !self.target.finds_arrays_by_name() {
            self.check_cells(writer.array(), rows)?;
        }
        let at = |(places, of_labels): (Vec<u64>, &Vec<u64>)| {
            places.into_iter().map(|place| of_labels[place as usize]).collect()
        };
        let places = places.into_iter().zip(&of_labels).map(at).collect();
        let cells = cells.in_order(places, context)?;
        let store = NewStore::new(writer, false, &self.metrics, context);
        store.write(cells, session, context).await?;
        let listed = listings.update().await;
        listed.map_err(|error| {
            error
                .context("all rows are in the group; the next append to it lists them in the store")
        })?;
        Ok(rows)
    }
}

/// Locks an array for this writer.
pub(super) async fn lock(session: &mut WriteSession, unlocks: bool) -> Result<()> {
    let now: DateTime<Utc> = SystemTime::now().into();
    let note = format!("process {} writes since {now}", std::process::id());
    Ok(session.lock(LOCK, note.into(), unlocks).await?)
}

/// Removes what was written if it failed, and releases the lock.
async fn ended(written: Result<u64>, mut session: WriteSession) -> Result<u64> {
    match written {
        Ok(rows) => {
            let released = session.release().await.map_err(DataFusionError::from);
            released.map(|()| rows).map_err(|error| error.context("all rows are in the array"))
        }
        Err(error) => {
            session.abort().await;
            Err(error)
        }
    }
}
