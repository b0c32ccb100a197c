//! The formats that answers are written in: a file each.

#[cfg(feature = "hdf5")]
mod netcdf;
mod tet;
#[cfg(feature = "tiledb")]
mod tiledb;
#[cfg(feature = "zarr")]
mod zarr;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::not_impl_err;
use datafusion::error::Result;
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
    async fn open(&self, objects: Arc<Objects>, columns: &[&str]) -> Result<Box<dyn AppendTarget>> {
        let _ = (objects, columns);
        not_impl_err!("an append to {}", self.name())
    }
}

/// Returns all formats.
pub(super) fn targets() -> Vec<&'static dyn TargetFormat> {
    vec![
        #[cfg(feature = "zarr")]
        &zarr::ZarrTarget,
        #[cfg(feature = "hdf5")]
        &netcdf::NetcdfTarget,
        &tet::TetTarget,
        #[cfg(feature = "tiledb")]
        &tiledb::TileDbTarget,
    ]
}
