//! The formats that answers are written in: a file each.

#[cfg(feature = "hdf5")]
mod netcdf;
mod tet;
mod tet_package;
#[cfg(feature = "tiledb")]
mod tiledb;
#[cfg(feature = "zarr")]
mod zarr;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::{not_impl_err, plan_err};
use datafusion::error::Result;
use gridfusion_core::format::{Publish, Write};
use gridfusion_core::tile::Objects;
use gridfusion_core::write::{AppendTarget, ArrayWriter, NewArray};

use super::options::{WriteMode, WriteOptions};

/// A format that answers are written in.
#[async_trait]
pub(super) trait TargetFormat: Debug + Send + Sync {
    /// The name of the format in plans and messages.
    fn name(&self) -> &'static str;

    /// The endings of names that choose the format, and the words behind `STORED AS`.
    fn names(&self) -> &'static [&'static str];

    /// Whether an array is one file, and not a folder of objects.
    fn is_one_file(&self) -> bool;

    /// The objects by which readers find an array that is a folder.
    fn marks(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether each variable is an array of a store, which rows find by the name of their column.
    fn finds_arrays_by_name(&self) -> bool {
        false
    }

    /// The modes that the format has for an array that is there already.
    fn modes(&self) -> &'static [WriteMode];

    /// The options besides those that all formats have.
    fn options(&self) -> &'static [&'static str];

    /// The codecs of chunks with their levels, the default first. A codec without a level has none.
    fn codecs(&self) -> &'static [(&'static str, Option<i32>)];

    /// Returns the writer of an array. `object` is the name of its file, if it is one file.
    ///
    /// # Errors
    /// For an array that the format cannot store, and for options that do not fit.
    fn writer(
        &self,
        array: NewArray,
        object: &str,
        options: &WriteOptions,
    ) -> Result<Box<dyn ArrayWriter>>;

    /// Opens an array that rows with these columns are appended to.
    ///
    /// # Errors
    /// If there is no such array, or it cannot be appended to.
    async fn open(
        &self,
        objects: Arc<Objects>,
        columns: &[&str],
        options: &WriteOptions,
    ) -> Result<Box<dyn AppendTarget>> {
        let _ = (objects, columns, options);
        not_impl_err!("an append to {}", self.name())
    }

    /// Returns the write by which a store lists the arrays of a group as they are now; `None` if it does so, or lists none. The group may be
    /// the first node of a store that is not there yet.
    ///
    /// # Errors
    /// If rows are not appended to groups, or the store lists other arrays.
    async fn listing_update(
        &self,
        store: &Objects,
        group: &str,
        may_create: bool,
    ) -> Result<Option<Publish>> {
        let _ = (store, may_create);
        not_impl_err!("an append to the group '{group}' of a store of {}", self.name())
    }

    /// Returns the write by which a store lists a group no more; `None` if it does not.
    ///
    /// # Errors
    /// If groups are not replaced, or the store cannot be changed.
    async fn listing_removal(&self, store: &Objects, group: &str) -> Result<Option<Publish>> {
        let _ = store;
        not_impl_err!("replacing the group '{group}' of a store of {}", self.name())
    }

    /// Returns the maker of the writer of a group that replaces the one of the options. It writes to a folder of its own.
    ///
    /// # Errors
    /// If there is no such group, or something else would be lost with it.
    async fn replacing_group(&self, store: &Objects, options: &WriteOptions) -> Result<NewWriter> {
        let _ = (store, options);
        not_impl_err!("replacing a group of a store of {}", self.name())
    }

    /// Whether an array that is there stays when it is overwritten, and the new one becomes the current version.
    fn keeps_versions(&self) -> bool {
        false
    }

    /// Opens a folder that gets an array beside those that it has: another version of one, or a group. `is_new` tells that it has none.
    ///
    /// # Errors
    /// If the folder cannot have the array, or another program writes to it.
    async fn open_folder(
        &self,
        objects: &Objects,
        is_new: bool,
        options: &WriteOptions,
    ) -> Result<AddedArray> {
        let _ = (objects, is_new, options);
        not_impl_err!("several arrays in a folder of {}", self.name())
    }
}

/// An array that is added to a folder.
pub(super) struct AddedArray {
    /// Writes that remove what a program has left that was stopped. They are applied first.
    pub(super) repair: Vec<Write>,
    /// Makes the writer of the array.
    pub(super) writer: NewWriter,
}

/// Makes the writer of an array.
pub(super) type NewWriter = Box<dyn FnOnce(NewArray) -> Result<Box<dyn ArrayWriter>> + Send>;

/// Returns all formats.
pub(super) fn targets() -> Vec<&'static dyn TargetFormat> {
    vec![
        #[cfg(feature = "zarr")]
        &zarr::ZarrTarget,
        #[cfg(feature = "hdf5")]
        &netcdf::NetcdfTarget,
        &tet::TetTarget,
        &tet_package::TetPackageTarget,
        #[cfg(feature = "tiledb")]
        &tiledb::TileDbTarget,
    ]
}

/// Returns the format of a place: a name may tell more than the format that a statement names.
///
/// # Errors
/// If the name does not have the ending that the format needs.
pub(super) fn target_at(
    named: &'static dyn TargetFormat,
    place: &str,
) -> Result<&'static dyn TargetFormat> {
    let is_package = place.trim_end_matches('/').to_ascii_lowercase().ends_with(".tet.d");
    match (named.name(), is_package) {
        (tet::NAME, true) => Ok(&tet_package::TetPackageTarget),
        (tet_package::NAME, false) => {
            plan_err!("'{place}' names no format; a package of Tetration files ends with .tet.d")
        }
        _ => Ok(named),
    }
}
