//! An opened `.tet` file, alone or in a package: its datasets, its chunk index and its zone maps.

use std::sync::Arc;

use tokio::sync::OnceCell;

use super::package::Package;
use crate::bytes::{OpenFile, TetFile, ZoneMaps};
use gridfusion_core::array::{NumberColumn, ReadOptions, Remarks};
use gridfusion_core::format::{Machine, StoredChunk};
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::io::{ByteSource, Folder};
use gridfusion_core::options::ResolvedOptions;
use gridfusion_core::source::Place;
use gridfusion_core::tile::{Objects, drive};
use gridfusion_core::{Error, Result};

/// An opened `.tet` file: its directory and metadata are in memory.
#[derive(Debug, Clone)]
pub struct TetReader {
    file: Arc<TetFile>,
    objects: Arc<Objects>,
    /// Set after the first lookup in the chunk index. Shared by all tables of the file.
    looked_up: Arc<OnceCell<()>>,
    /// Bytes of the file.
    size: u64,
    /// Set if the file is a generation of a package.
    package: Option<Arc<Package>>,
}

/// A grid with more chunks than this opens only if the chunk index has at least as many rows.
///
/// Planning lists the chunks of an axis, so a damaged directory with 2⁶⁰ chunks must be refused.
/// Smaller grids open even if most of their chunks are missing.
const MAX_MISSING_CHUNKS: u64 = 1 << 22;

impl TetReader {
    /// Reads the superblock, the directory, the index header and the footer.
    ///
    /// # Errors
    /// `Corrupt` if `source` is not a `.tet` file of layout version 1, `Io` if it cannot be read.
    pub async fn open(source: Arc<dyn ByteSource>) -> Result<Self> {
        let size = source.size();
        let open = match source.fetched_head() {
            Some(head) => OpenFile::with_head(size, head),
            None => OpenFile::new(size),
        };
        let objects = Arc::new(Objects::one(source));
        let file = drive(open, &objects).await?;
        for warning in file.warnings() {
            log::warn!("{}: {warning}", objects.name());
        }
        let (file, looked_up) = (Arc::new(file), Arc::default());
        Ok(Self { file, objects, looked_up, size, package: None })
    }

    /// Opens the generation with this number of the package in `folder`; `None` opens the current one.
    /// Its file stays open even if a writer publishes or deletes generations later.
    ///
    /// # Errors
    /// `Usage` if the folder is not a package, or lacks this generation; the message lists the existing
    /// ones. `Unsupported` for a protocol other than 2. Otherwise as [`TetReader::open`].
    pub async fn open_package(folder: Arc<dyn Folder>, generation: Option<u64>) -> Result<Self> {
        let (package, file) = Package::open(folder, generation).await?;
        let file = Self::open(file).await?;
        Ok(Self { package: Some(Arc::new(package)), ..file })
    }

    /// Opens the file at `place`, or the generation of a package that option `generation` selects.
    ///
    /// # Errors
    /// As [`TetReader::open`] and [`TetReader::open_package`]; `Usage` if option
    /// `generation` is set for a single file.
    pub async fn open_place(place: &Place, options: &ResolvedOptions) -> Result<Self> {
        let generation = options.number("generation");
        // Object stores have no directories to check, so there the name decides.
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

    /// The number of the opened generation; `None` if a single file was opened.
    pub fn generation(&self) -> Option<u64> {
        self.package.as_ref().map(|package| package.generation())
    }

    /// The package of the opened generation; `None` if a single file was opened.
    pub(crate) fn package(&self) -> Option<&Package> {
        self.package.as_deref()
    }

    /// The file, as the only object to read from.
    pub(crate) fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// The name of the file in errors.
    pub fn name(&self) -> &str {
        self.objects.name()
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The parsed directory and metadata of the file.
    pub fn tet(&self) -> &Arc<TetFile> {
        &self.file
    }

    /// The distinct names of the datasets, in directory order.
    pub fn dataset_names(&self) -> Vec<String> {
        let datasets = self.file.datasets().iter().enumerate();
        datasets
            .filter(|(id, dataset)| self.file.dataset_id(dataset.name()) == Some(*id))
            .map(|(_, dataset)| dataset.name().to_owned())
            .collect()
    }

    /// The names of the datasets that are not coordinates of other datasets.
    pub fn data_variables(&self) -> Vec<String> {
        let is_data = |name: &String| {
            self.file.dataset_id(name).is_some_and(|dataset| !self.file.is_coordinate(dataset))
        };
        self.dataset_names().into_iter().filter(is_data).collect()
    }

    /// Returns the id of the first dataset with this name.
    ///
    /// # Errors
    /// `Usage` if no dataset has this name; the message lists the existing names.
    pub fn dataset_id(&self, name: &str) -> Result<usize> {
        self.file.dataset_id(name).ok_or_else(|| {
            let known = self.dataset_names().join("\", \"");
            let message = format!("no dataset \"{name}\"; the file has \"{known}\"");
            Error::usage(message).in_file(self.name())
        })
    }

    /// Returns the chunk grid of a dataset. Refuses a grid that is too large for the chunk index, see
    /// `MAX_MISSING_CHUNKS`.
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

    /// Returns how the elements of a dataset become values, as its attributes declare it. Declarations that cannot be parsed
    /// become remarks.
    ///
    /// # Errors
    /// `Unsupported` for an undefined element type.
    pub(crate) fn column(
        &self,
        id: usize,
        options: &ReadOptions,
        remarks: &mut Remarks,
    ) -> Result<NumberColumn> {
        let (element, file) = (self.file.datasets()[id].element()?, &self.file);
        let attributes = &file.metadata_of(id).attrs;
        let (column, misunderstood) =
            NumberColumn::new(element, attributes, file.is_packed(id), options);
        remarks.misunderstood.extend(misunderstood);
        Ok(column)
    }

    /// Finds where `chunks` (row-major chunk numbers) of a dataset are stored, in the same order.
    ///
    /// # Errors
    /// `Corrupt` if a chunk has no row in the index, or an impossible one.
    pub(crate) async fn locate(
        &self,
        dataset: usize,
        chunks: Vec<u64>,
    ) -> Result<Vec<StoredChunk>> {
        // The first lookup takes the chunks and sets `located`. If another task was first, both stay as
        // they are.
        let mut chunks = Some(chunks);
        let mut located = None;
        // The first lookup reads and maps the whole index if its rows are out of order. Concurrent
        // partitions wait for this lookup, so that only one of them reads the index.
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

    /// Finds chunks without waiting for others.
    async fn drive_locate(&self, dataset: usize, chunks: Vec<u64>) -> Result<Vec<StoredChunk>> {
        self.run(self.file.locate(dataset, chunks)?).await
    }

    /// Reads the zone maps of all datasets, indexed by dataset id; `None` if there are none.
    ///
    /// # Errors
    /// `Corrupt` if the zone maps cannot be parsed. An inner error is about one dataset only.
    pub async fn zone_maps(&self) -> Result<Option<Vec<Result<ZoneMaps>>>> {
        let generation = self.package.as_ref().map(|package| package.generation_files());
        let Some(machine) = self.file.read_all_zone_maps(generation)? else { return Ok(None) };
        match &self.package {
            Some(package) if self.file.zone_maps_at().is_none() => package.run(machine).await,
            _ => self.run(machine).await,
        }
        .map(Some)
    }

    /// Runs `machine` to its end with the bytes of the file.
    pub(crate) async fn run<M: Machine>(&self, machine: M) -> Result<M::Output> {
        drive(machine, &self.objects).await
    }

    /// The length in bytes of the zone maps in the file or, if the file has none, of its zone file.
    pub(super) fn zone_maps_len(&self) -> Option<u64> {
        let within = self.file.zone_maps_at().map(|at| at.end - at.start);
        within.or_else(|| self.package.as_ref()?.zone_file()?.range.most())
    }

    /// Reads the zone maps of one dataset; `None` if there are none.
    pub(super) async fn read_zone_maps(&self, dataset: usize) -> Result<Option<ZoneMaps>> {
        match (self.file.read_zone_maps(dataset)?, &self.package) {
            (Some(machine), _) => self.run(machine).await.map(Some),
            (None, Some(package)) => package.read_zone_file(&self.file, dataset).await,
            (None, None) => Ok(None),
        }
    }
}
