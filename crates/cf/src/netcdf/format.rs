//! NetCDF and HDF5 as one [`ArrayFormat`]: users know a file as NetCDF, whatever its bytes are.

use std::sync::Arc;

use async_trait::async_trait;

use super::classic::ClassicFile;
use crate::conventions::{HierarchyGroup, HierarchyView, OPTIONS, VariableStore};
use crate::netcdf3::is_netcdf3;
use gridfusion_core::format::{Entry, Foreign, Location};
use gridfusion_core::options::{OptionInfo, ResolvedOptions};
use gridfusion_core::source::Place;
use gridfusion_core::source::{ArrayFormat, ArrayGroup, Ending, RecognisedFormat};
use gridfusion_core::tile::Objects;
use gridfusion_core::{Error, Result};

/// NetCDF files, and HDF5 files with the feature `hdf5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetCdf;

const fn file(ending: &'static str, what: &'static str) -> Ending {
    Ending::new(ending, false, Some(what))
}

#[async_trait]
impl ArrayFormat for NetCdf {
    fn name(&self) -> &'static str {
        "netcdf"
    }

    fn title(&self) -> &'static str {
        "NetCDF"
    }

    fn nouns(&self) -> &'static [&'static str] {
        if cfg!(feature = "hdf5") { &["NetCDF file", "HDF5 file"] } else { &["NetCDF file"] }
    }

    fn endings(&self) -> &'static [Ending] {
        const CLASSIC: &[Ending] = &[
            file(".nc", "a NetCDF file"),
            file(".nc3", "a NetCDF file"),
            file(".cdf", "a NetCDF file"),
            file(".nc4", "a NetCDF file"),
            file(".netcdf", "a NetCDF file"),
            file(".h5", "an HDF5 file"),
            file(".hdf5", "an HDF5 file"),
            file(".he5", "an HDF5 file"),
        ];
        if cfg!(feature = "hdf5") { CLASSIC } else { &CLASSIC[..3] }
    }

    fn probe_folder(&self, _: &[Entry]) -> Option<RecognisedFormat> {
        None
    }

    fn probe_file(&self, head: &[u8]) -> bool {
        is_netcdf3(head) || is_hdf5(head)
    }

    fn options(&self) -> &'static [OptionInfo] {
        OPTIONS
    }

    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>> {
        let view = HierarchyView::new(options, &self.read_defaults());
        let store = open_store(place).await?;
        Ok(Arc::new(HierarchyGroup::new(place.location(), store, view)?))
    }
}

#[cfg(feature = "hdf5")]
fn is_hdf5(head: &[u8]) -> bool {
    crate::hdf5::is_hdf5(head)
}

#[cfg(not(feature = "hdf5"))]
fn is_hdf5(_: &[u8]) -> bool {
    false
}

/// The first bytes that tell what a file is. An HDF5 file may begin with a user block of 512, 1024, … bytes.
const HEAD: u64 = 1 << 16;

/// Opens a file by its first bytes.
async fn open_store(place: &Place) -> Result<Arc<dyn VariableStore>> {
    let source = place.object().await?;
    let objects = Objects::one(Arc::clone(&source));
    let range = 0..source.size().min(HEAD);
    let head = objects.read(&[Location::new("", range)]).await?.concat();
    if is_netcdf3(&head) {
        return Ok(Arc::new(ClassicFile::open(source).await?));
    }
    #[cfg(feature = "hdf5")]
    if is_hdf5(&head) || super::hdf5::is_behind_user_block(&objects, source.size(), HEAD).await? {
        return super::virtual_files::open(place, source).await;
    }
    let error = match Foreign::from_bytes(&head) {
        Some(foreign) => foreign.error(),
        None => Error::usage("this is not a NetCDF file: its first bytes are not those of one"),
    };
    Err(error.in_file(place.location()))
}
