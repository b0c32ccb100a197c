//! [`TargetPlace`]: where an array is written.

use std::sync::Arc;

use datafusion::common::exec_err;
use datafusion::error::Result;
use gridfusion_core::io::{Folder, StoreFolder};
use object_store::path::{Path, PathPart};
use object_store::{ObjectStore, ObjectStoreExt};

use super::targets::TargetFormat;

/// The folder that is written to, and the file in it if the array is one file.
///
/// ```text
///   s3://bucket/a/x.zarr    folder a/x.zarr    object  –
///   s3://bucket/a/x.nc      folder a           object  x.nc
/// ```
pub(super) struct TargetPlace {
    /// The place as the statement names it.
    name: String,
    store: Arc<dyn ObjectStore>,
    path: Path,
    pub(super) folder: Arc<StoreFolder>,
    /// The name of the file in the folder; empty if the array is a folder.
    pub(super) object: String,
}

impl TargetPlace {
    /// Finds the place of an array.
    ///
    /// # Errors
    /// If it names no file, and the array is one, or the name is not kept by stores.
    pub(super) fn try_new(
        name: &str,
        store: Arc<dyn ObjectStore>,
        path: &Path,
        target: &dyn TargetFormat,
    ) -> Result<Self> {
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
        let folder = Arc::new(StoreFolder::new(folder.to_owned(), Arc::clone(&store), above));
        Ok(Self { name: name.to_owned(), store, path: path.clone(), folder, object })
    }

    /// Fails if something is there already.
    pub(super) async fn check_empty(&self) -> Result<()> {
        let Self { name, store, path, folder, object } = self;
        let found = match object.is_empty() {
            true => folder.some_below("", 1).await?.into_iter().next(),
            false => match store.head(path).await {
                Ok(_) => Some(object.clone()),
                Err(object_store::Error::NotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        match found {
            None => Ok(()),
            Some(_) if !object.is_empty() => exec_err!(
                "'{name}' is there already; delete it first, or replace it: OPTIONS (mode 'overwrite')"
            ),
            Some(found) => exec_err!(
                "'{name}' has '{found}' already; an array is written to a new place, so delete it first"
            ),
        }
    }
}
