//! An opened `.tet` file or generation of a package: its datasets by name, and its index and zone maps.

use std::sync::Arc;

use tokio::sync::OnceCell;

use super::package::Package;
use crate::error::{Error, Result};
use crate::format::tet::{OpenFile, TetFile, ZoneMaps};
use crate::format::{Machine, StoredChunk};
use crate::grid::ChunkGrid;
use crate::io::{ByteSource, Folder};
use crate::options::ResolvedOptions;
use crate::source::place::Place;
use crate::tile::{Objects, drive};

/// A file whose directory and metadata have been read.
#[derive(Debug, Clone)]
pub struct TetReader {
    file: Arc<TetFile>,
    objects: Arc<Objects>,
    /// Set once index rows have been looked up.
    looked_up: Arc<OnceCell<()>>,
    /// Bytes of the file.
    size: u64,
    /// Set if the file is a generation of a package.
    package: Option<Arc<Package>>,
}

/// Grids with more chunks than this are opened only if the file has index rows for them.
///
/// Planning lists the chunks of an axis, so a directory that promises 2^60 of them must not be
/// believed. Files in which many chunks are missing stay readable below this number.
const MAX_MISSING_CHUNKS: u64 = 1 << 22;

impl TetReader {
    /// Reads the superblock, the directory, the index header and the footer.
    ///
    /// # Errors
    /// `Corrupt` if it is not a `.tet` file of layout version 1, `Io` if it cannot be read.
    pub async fn open(source: Arc<dyn ByteSource>) -> Result<Self> {
        let size = source.size();
        let objects = Arc::new(Objects::One(source));
        let file = drive(OpenFile::new(size), &objects).await?;
        for warning in file.warnings() {
            log::warn!("{}: {warning}", objects.name());
        }
        let (file, looked_up) = (Arc::new(file), Arc::default());
        Ok(Self { file, objects, looked_up, size, package: None })
    }

    /// Opens a generation of the package in `folder`: the one with this number, or the current one. The
    /// file that it is stays open, whatever is published or deleted later.
    ///
    /// # Errors
    /// `Usage` if the folder is no package or has no such generation (the message lists those there
    /// are), `Unsupported` for a protocol other than 2; else those of [`TetReader::open`].
    pub async fn open_package(folder: Arc<dyn Folder>, generation: Option<u64>) -> Result<Self> {
        let (package, file) = Package::open(folder, generation).await?;
        let file = Self::open(file).await?;
        Ok(Self { package: Some(Arc::new(package)), ..file })
    }

    /// Opens the file or package at `place`; of a package, the generation that the options name.
    ///
    /// # Errors
    /// As [`TetReader::open`] and [`TetReader::open_package`]; `Usage` for a generation of a file.
    pub async fn open_place(place: &Place, options: &ResolvedOptions) -> Result<Self> {
        let generation = options.number("generation");
        // A store has no folders to ask about, so there the name decides.
        let is_package = match place.local_path() {
            Some(path) => path.is_dir(),
            None => place.path().trim_end_matches('/').to_ascii_lowercase().ends_with(".tet.d"),
        };
        if is_package {
            return Self::open_package(place.folder()?, generation).await;
        }
        if generation.is_some() {
            let message = "a file has no generations; option 'generation' is for .tet.d packages";
            return Err(Error::usage(message).in_file(place.location()));
        }
        Self::open(place.object().await?).await
    }

    /// Which generation of a package the file is; `None` for a file alone.
    pub fn generation(&self) -> Option<u64> {
        self.package.as_ref().map(|package| package.generation())
    }

    /// The package that the file is a generation of.
    pub(crate) fn package(&self) -> Option<&Package> {
        self.package.as_deref()
    }

    /// Where the bytes of the file are.
    pub(crate) fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// What errors call the file.
    pub fn name(&self) -> &str {
        self.objects.name()
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The format's view of the file.
    pub fn tet(&self) -> &Arc<TetFile> {
        &self.file
    }

    /// The names of all datasets in directory order; of datasets with one name, only the first.
    pub fn dataset_names(&self) -> Vec<String> {
        let datasets = self.file.datasets().iter().enumerate();
        datasets
            .filter(|(id, dataset)| self.file.dataset_id(dataset.name()) == Some(*id))
            .map(|(_, dataset)| dataset.name().to_owned())
            .collect()
    }

    /// The names of the datasets that are not coordinates of others.
    pub fn data_variables(&self) -> Vec<String> {
        let is_data = |name: &String| {
            self.file.dataset_id(name).is_some_and(|dataset| !self.file.is_coordinate(dataset))
        };
        self.dataset_names().into_iter().filter(is_data).collect()
    }

    /// The id of a dataset; of several with one name, of the first.
    ///
    /// # Errors
    /// `Usage` if there is none; the message lists those there are.
    pub fn dataset_id(&self, name: &str) -> Result<usize> {
        self.file.dataset_id(name).ok_or_else(|| {
            let known = self.dataset_names().join("\", \"");
            let message = format!("no dataset \"{name}\"; the file has \"{known}\"");
            Error::usage(message).in_file(self.name())
        })
    }

    /// The grid of a dataset, unless it promises more chunks than the file can have.
    pub(super) fn readable_grid(&self, id: usize) -> Result<ChunkGrid> {
        let dataset = &self.file.datasets()[id];
        let grid = dataset.grid()?.clone();
        let rows = self.file.index_rows();
        if grid.chunks() > rows.max(MAX_MISSING_CHUNKS) {
            let (name, chunks) = (dataset.name(), grid.chunks());
            return Err(Error::unsupported(format!(
                "dataset \"{name}\" has {chunks} chunks, but the index of the file has only {rows} rows"
            )));
        }
        Ok(grid)
    }

    /// Finds where `chunks` (row-major chunk numbers) of a dataset are stored, in order.
    pub(crate) async fn locate(
        &self,
        dataset: usize,
        chunks: Vec<u64>,
    ) -> Result<Vec<StoredChunk>> {
        let mut chunks = Some(chunks);
        let mut located = None;
        // The first look shows whether the index is in order. If it is not, the whole of it is read
        // and mapped, which partitions that start together must not all do.
        let first_look = async {
            located = Some(self.drive_locate(dataset, chunks.take().unwrap_or_default()).await?);
            Ok::<_, Error>(())
        };
        self.looked_up.get_or_try_init(|| first_look).await?;
        match (located, chunks) {
            (Some(located), _) => Ok(located),
            (None, chunks) => self.drive_locate(dataset, chunks.unwrap_or_default()).await,
        }
    }

    async fn drive_locate(&self, dataset: usize, chunks: Vec<u64>) -> Result<Vec<StoredChunk>> {
        self.run(self.file.locate(dataset, chunks)?).await
    }

    /// The zone maps of each dataset, by id, read in one go; `None` if there are none.
    ///
    /// # Errors
    /// `Corrupt` if they cannot be right; those of one dataset may be wrong without the others.
    pub async fn zone_maps(&self) -> Result<Option<Vec<Result<ZoneMaps>>>> {
        let generation = self.package.as_ref().map(|package| package.generation_files());
        let Some(machine) = self.file.read_all_zone_maps(generation)? else { return Ok(None) };
        match &self.package {
            Some(package) if self.file.zone_maps_at().is_none() => package.run(machine).await,
            _ => self.run(machine).await,
        }
        .map(Some)
    }

    /// Runs a machine over the file.
    pub(crate) async fn run<M: Machine>(&self, machine: M) -> Result<M::Output> {
        drive(machine, &self.objects).await
    }

    /// Bytes of the zone maps: of those in the file or, if it has none, beside it in its package.
    pub(super) fn zone_maps_len(&self) -> Option<u64> {
        let within = self.file.zone_maps_at().map(|at| at.end - at.start);
        within.or_else(|| self.package.as_ref()?.zone_file()?.range.most())
    }

    /// The zone maps of one dataset; `None` if there are none.
    pub(super) async fn read_zone_maps(&self, dataset: usize) -> Result<Option<ZoneMaps>> {
        match (self.file.read_zone_maps(dataset)?, &self.package) {
            (Some(machine), _) => self.run(machine).await.map(Some),
            (None, Some(package)) => package.read_zone_file(&self.file, dataset).await,
            (None, None) => Ok(None),
        }
    }
}
