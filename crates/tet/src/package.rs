//! An opened `.tet.d` package: its folder and the generation that was found in it.
//!
//! ```text
//!   x.tet.d/generations/00000002/packed.tet    the opened file, held by `TetReader`
//!                                ZONE.json     `zone_file`, read when a query first benefits
//! ```

use std::sync::Arc;

use crate::bytes::{Generation, OpenPackage, TetFile, ZoneMaps};
use gridfusion_core::Result;
use gridfusion_core::format::{Location, Machine};
use gridfusion_core::io::{ByteSource, Folder};
use gridfusion_core::tile::{Objects, drive};

/// The package of an opened file, and the generation to which the file belongs.
#[derive(Debug)]
pub(crate) struct Package {
    folder: Arc<dyn Folder>,
    generation: Generation,
}

impl Package {
    /// Finds a generation in `folder` and opens its file.
    pub(crate) async fn open(
        folder: Arc<dyn Folder>,
        generation: Option<u64>,
    ) -> Result<(Self, Arc<dyn ByteSource>)> {
        let objects = Objects::many(Arc::clone(&folder));
        let generation = drive(OpenPackage::new(generation), &objects).await?;
        let file = folder.open(&generation.packed_file).await?;
        Ok((Self { folder, generation }, file))
    }

    /// The number of the opened generation.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.number
    }

    /// The folder of the package, through which verification opens other generations.
    pub(crate) fn folder(&self) -> &Arc<dyn Folder> {
        &self.folder
    }

    /// The objects of the package, none of them open yet.
    pub(crate) fn objects(&self) -> Objects {
        Objects::many(Arc::clone(&self.folder))
    }

    /// The path of the generation's folder within the package.
    pub(crate) fn generation_folder(&self) -> String {
        let packed = &self.generation.packed_file;
        packed.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()
    }

    /// The number and the files of the generation.
    pub(crate) fn generation_files(&self) -> &Generation {
        &self.generation
    }

    /// The location of the generation's zone file, if it has one.
    pub(crate) fn zone_file(&self) -> Option<&Location> {
        self.generation.zone_file.as_ref()
    }

    /// Reads the zone maps of a dataset from the zone file, if there is one.
    pub(crate) async fn read_zone_file(
        &self,
        file: &TetFile,
        dataset: usize,
    ) -> Result<Option<ZoneMaps>> {
        let Some(at) = self.zone_file() else { return Ok(None) };
        let machine = file.read_zone_file(dataset, at.clone(), self.generation())?;
        self.run(machine).await.map(Some)
    }

    /// Runs `machine` to its end with the files of the package. Files do not stay open, because each is
    /// read only once.
    pub(crate) async fn run<M: Machine>(&self, machine: M) -> Result<M::Output> {
        drive(machine, &self.objects()).await
    }
}
