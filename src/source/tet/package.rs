//! Packages: a generation is found, its file opened, and both held.

use std::sync::Arc;

use crate::error::Result;
use crate::format::tet::{Generation, OpenPackage, TetFile, ZoneMaps};
use crate::format::{Location, Machine};
use crate::io::{ByteSource, Folder};
use crate::tile::{Objects, drive};

/// Where an opened file comes from, if it is a generation of a package.
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

    pub(crate) fn generation(&self) -> u64 {
        self.generation.number
    }

    pub(crate) fn folder(&self) -> &Arc<dyn Folder> {
        &self.folder
    }

    /// Its objects, none of which is open yet.
    pub(crate) fn objects(&self) -> Objects {
        Objects::many(Arc::clone(&self.folder))
    }

    /// The folder of the generation.
    pub(crate) fn generation_folder(&self) -> String {
        let packed = &self.generation.packed_file;
        packed.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()
    }

    /// Its files.
    pub(crate) fn generation_files(&self) -> &Generation {
        &self.generation
    }

    /// Zone maps that are not in the file.
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

    /// Runs a machine over the files of the package. It is for what is read once, so nothing is kept
    /// open.
    pub(crate) async fn run<M: Machine>(&self, machine: M) -> Result<M::Output> {
        drive(machine, &self.objects()).await
    }
}
