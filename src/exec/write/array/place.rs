//! [`TargetPlace`]: where an array is written.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::common::{exec_err, plan_err};
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::error::Result;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use gridfusion_core::io::{Folder, LocalFolder, Root, StoreFolder, WritableFolder};
use object_store::local::LocalFileSystem;
use object_store::path::{Path, PathPart};
use object_store::{ObjectStore, ObjectStoreExt};

use super::replacement::{check_no_progress, left_beside};
use super::targets::TargetFormat;
use crate::exec::config::GridfusionConfig;

/// The folder that is written to, and the file in it if the array is one file.
///
/// ```text
///   s3://bucket/a/x.zarr    folder a/x.zarr    object  –
///   s3://bucket/a/x.nc      folder a           object  x.nc
/// ```
pub(super) struct TargetPlace {
    /// The place as the statement names it.
    pub(super) name: String,
    store: Arc<dyn ObjectStore>,
    path: Path,
    pub(super) folder: Arc<StoreFolder>,
    /// The name of the file in the folder; empty if the array is a folder.
    pub(super) object: String,
    /// The local path, if the session may write there without its store.
    pub(super) local: Option<PathBuf>,
    /// The limit of local paths.
    pub(super) root: Option<Root>,
    /// The folders from the store that the statement names down to the group that it names; 0 without a group.
    levels: usize,
}

/// A folder, to read and to write.
pub(super) type ReadAndWritten = (Arc<dyn Folder>, Arc<dyn WritableFolder>);

/// A store above the place of an array.
pub(super) struct StoreAbove {
    folder: Path,
    /// The path of the place in the store.
    pub(super) group: String,
    /// The object by which readers find it.
    pub(super) mark: &'static str,
    /// Whether it is there; a program may have been stopped before it has made the store of a group.
    pub(super) is_there: bool,
}

impl TargetPlace {
    /// Finds the place of an array: that of the statement, or of a group in the store there.
    ///
    /// # Errors
    /// If it names no file, and the array is one, or the name is not kept by stores.
    pub(super) fn try_new(
        config: &FileSinkConfig,
        session: &SessionConfig,
        runtime: &RuntimeEnv,
        target: &dyn TargetFormat,
        group: Option<&str>,
    ) -> Result<Self> {
        let [url] = config.table_paths.as_slice() else {
            return plan_err!("an array is written to one place");
        };
        let (mut name, mut path) = (config.original_url.clone(), url.prefix().clone());
        if let Some(group) = group {
            if group.split('/').any(str::is_empty) {
                return plan_err!("'{group}' is no path of a group, as in 'ocean/deep'");
            }
            name = format!("{}/{group}", name.trim_end_matches('/'));
            path = Path::from_iter(path.parts().chain(group.split('/').map(PathPart::from)));
        }
        let (name, path) = (name.as_str(), &path);
        let store = runtime.object_store(&config.object_store_url)?;
        let of_session = GridfusionConfig::from_options(session.options());
        let root = of_session.root.clone();
        let local = local_path(config, store.as_ref(), path, root.as_ref())?;
        let (folder, above, object) = match target.is_one_file() {
            false => (name, path.clone(), String::new()),
            true => {
                let mut parts: Vec<_> = path.parts().collect();
                let object = parts.pop().map(|part| part.as_ref().to_owned()).unwrap_or_default();
                let above = name.trim_end_matches('/').rsplit_once('/');
                if object.is_empty() {
                    return exec_err!("'{name}' names no file, and a file is written");
                }
                if PathPart::from(object.as_str()).as_ref() != object {
                    return exec_err!(
                        "'{object}' has characters that stores escape; write a file with a plain name, and rename it"
                    );
                }
                (above.map_or(".", |(above, _)| above), Path::from_iter(parts), object)
            }
        };
        // Writing an object makes the session forget all that it knows of it.
        let of_session = of_session.remote.store(Arc::clone(&store));
        let folder = Arc::new(StoreFolder::new(folder.to_owned(), of_session, above));
        let levels = group.map_or(0, |group| group.split('/').count());
        Ok(Self {
            name: name.to_owned(),
            store,
            path: path.clone(),
            folder,
            object,
            local,
            root,
            levels,
        })
    }

    /// Returns the folder of an array that is there, to read and to write. Reading passes by all that the session keeps. A
    /// local folder has locks that end with the program.
    ///
    /// # Errors
    /// If there is no such local folder.
    pub(super) fn existing(&self) -> Result<ReadAndWritten> {
        let Some(path) = &self.local else {
            let (store, path) = (Arc::clone(&self.store), self.path.clone());
            let now = StoreFolder::new(self.name.clone(), store, path);
            return Ok((Arc::new(now), Arc::clone(&self.folder) as _));
        };
        let folder = Arc::new(LocalFolder::open(path, false)?.within(self.root.as_ref()));
        Ok((Arc::clone(&folder) as _, folder))
    }

    /// Makes the folder of an array that is not there, if it is a local one.
    ///
    /// # Errors
    /// If it would be outside of the root.
    pub(super) fn make_folder(&self) -> Result<()> {
        let Some(path) = &self.local else { return Ok(()) };
        if let Some(root) = &self.root {
            root.check(path)?;
        }
        Ok(fs::create_dir_all(path)?)
    }

    /// Removes the folder of an array if nothing is in it.
    pub(super) fn remove_folder(&self) {
        if let Some(path) = &self.local {
            // Another program may write there by now.
            drop(fs::remove_dir(path));
        }
    }

    /// Returns the folder above that of an array, and the array's name in it.
    ///
    /// # Errors
    /// If the array is a whole store.
    pub(super) fn above(&self) -> Result<(Arc<StoreFolder>, String)> {
        let mut parts: Vec<_> = self.path.parts().collect();
        match parts.pop() {
            Some(last) => {
                let above = self.folder.at(self.name.clone(), Path::from_iter(parts));
                Ok((Arc::new(above), last.as_ref().to_owned()))
            }
            None => exec_err!("'{}' is a whole store, which is not overwritten", self.name),
        }
    }

    /// Returns the stores of the same format whose metadata may list this one, from the nearest folder above on.
    pub(super) async fn stores_above(&self, target: &dyn TargetFormat) -> Result<Vec<StoreAbove>> {
        let parts: Vec<_> = self.path.parts().collect();
        let ending = format!(".{}", target.name());
        let (mut found, mut is_below_store) = (vec![], true);
        for at in (0..parts.len()).rev() {
            // Each folder would take requests: groups lie one in another, in a store or in a folder with its name.
            let is_named = at > 0 && parts[at - 1].as_ref().ends_with(&ending);
            let is_chosen = self.levels > 0 && at + self.levels == parts.len();
            if is_below_store || is_named || is_chosen {
                let folder = Path::from_iter(parts[..at].iter().cloned());
                let mark = self.mark_of(&folder, target.marks()).await?;
                let is_there = mark.is_some();
                is_below_store = is_there;
                // Readers open the store that a statement names, whatever is found there.
                let mark = mark.or(target.marks().first().copied().filter(|_| is_chosen));
                let group = parts[at..].iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/");
                found.extend(mark.map(|mark| StoreAbove { folder, group, mark, is_there }));
            }
        }
        Ok(found)
    }

    /// Returns the object by which readers find an array in a folder; `None` without one.
    async fn mark_of(
        &self,
        folder: &Path,
        marks: &'static [&'static str],
    ) -> Result<Option<&'static str>> {
        for mark in marks {
            let object = Path::from_iter(folder.parts().chain([PathPart::from(*mark)]));
            match self.store.head(&object).await {
                Ok(_) => return Ok(Some(mark)),
                // Credentials for one store may not see what is beside it.
                Err(
                    object_store::Error::NotFound { .. }
                    | object_store::Error::PermissionDenied { .. },
                ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Fails if there is such a store. `why` tells what its metadata would do.
    pub(super) async fn check_no_store_above(
        &self,
        target: &dyn TargetFormat,
        why: &str,
    ) -> Result<()> {
        match self.stores_above(target).await?.first() {
            Some(store) => self.no_group(store, why),
            None => Ok(()),
        }
    }

    /// Returns the error for a place below a store.
    pub(super) fn no_group<T>(&self, store: &StoreAbove, why: &str) -> Result<T> {
        exec_err!("'{}' is a group of the store above it, whose '{}' {why}", self.name, store.mark)
    }

    /// Returns the folder of a store above this place, to read and to write.
    ///
    /// # Errors
    /// If there is no such local folder, or it is outside of the root.
    pub(super) fn folder_above(&self, store: &StoreAbove) -> Result<ReadAndWritten> {
        let levels = store.group.split('/').count();
        let local = self.local.as_ref().and_then(|path| path.ancestors().nth(levels));
        let Some(local) = local else {
            let (name, path) = (store.folder.to_string(), store.folder.clone());
            let now = StoreFolder::new(name.clone(), Arc::clone(&self.store), path.clone());
            return Ok((Arc::new(now), Arc::new(self.folder.at(name, path))));
        };
        let folder = Arc::new(LocalFolder::open(local, false)?.within(self.root.as_ref()));
        Ok((Arc::clone(&folder) as _, folder))
    }

    /// Returns the folder whose name has another ending.
    pub(super) fn beside(&self, ending: &str) -> Result<StoreFolder> {
        let (_, name) = self.above()?;
        let mut parts: Vec<_> = self.path.parts().collect();
        parts.pop();
        parts.push(PathPart::from(format!("{name}{ending}")));
        let place = self.name.trim_end_matches('/');
        Ok(self.folder.at(format!("{place}{ending}"), Path::from_iter(parts)))
    }

    /// Returns the name of something that is there already.
    pub(super) async fn found(&self) -> Result<Option<String>> {
        match self.object.is_empty() {
            true => Ok(self.folder.some_below("", 1).await?.into_iter().next()),
            false => Ok(self.is_file().await?.then(|| self.object.clone())),
        }
    }

    /// Whether the place itself is a file, such as an archive where the folder of an array would be.
    pub(super) async fn is_file(&self) -> Result<bool> {
        if self.path.as_ref().is_empty() {
            return Ok(false);
        }
        match self.store.head(&self.path).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Fails if a program was stopped while it replaced the array here.
    pub(super) async fn check_not_stopped(&self) -> Result<()> {
        self.check_not_renamed()?;
        check_no_progress(self).await
    }

    /// Fails if a program was stopped between two renames, and the old array still has another name.
    fn check_not_renamed(&self) -> Result<()> {
        match self.local.as_deref().and_then(left_beside) {
            Some(old) => exec_err!(
                "a program was stopped while it replaced '{}', whose old array is '{}'; rename that, or remove it",
                self.name,
                old.display()
            ),
            None => Ok(()),
        }
    }

    /// Fails if something is there already.
    pub(super) async fn check_empty(&self, target: &dyn TargetFormat) -> Result<()> {
        let Self { name, object, .. } = self;
        self.check_not_renamed()?;
        match self.found().await? {
            None => Ok(()),
            Some(_) if !object.is_empty() => exec_err!(
                "'{name}' is there already; delete it first, or replace it: OPTIONS (mode 'overwrite')"
            ),
            Some(found) if target.keeps_versions() => exec_err!(
                "'{name}' has '{found}' already; delete it first, or add a version: OPTIONS (mode 'overwrite')"
            ),
            Some(found) => exec_err!(
                "'{name}' has '{found}' already; delete it first, or choose a 'mode': 'overwrite' replaces an array, and 'append' makes it longer"
            ),
        }
    }
}

/// Returns the local path of a place, unless a program has registered a store of its own for local files, which may have limits.
fn local_path(
    config: &FileSinkConfig,
    store: &dyn ObjectStore,
    path: &Path,
    root: Option<&Root>,
) -> Result<Option<PathBuf>> {
    let files = LocalFileSystem::new();
    let is_local = config.object_store_url == ObjectStoreUrl::local_filesystem();
    let is_plain = store.to_string() == files.to_string();
    match is_local && (is_plain || root.is_some()) {
        true => Ok(Some(files.path_to_filesystem(path)?)),
        false => Ok(None),
    }
}
