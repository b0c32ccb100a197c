//! An opened `.tet` file: from the names of datasets to arrays with their labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::buffer::{Buffer, MutableBuffer};
use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::package::Package;
use super::trusted_zones::TrustedZones;
use crate::array::{
    ChunkSource, Dimension, GridArray, Labels, NumberColumn, ReadOptions, Remarks, Value,
    ValueColumn,
};
use crate::error::{Error, Result};
use crate::format::tet::{DimSpec, LabelSource, OpenFile, TetFile, ZoneMaps};
use crate::format::{Bound, Location, Machine, MemoryBudget, Scratch, StoredChunk, Zones};
use crate::grid::{ChunkGrid, ChunkTask, Selection};
use crate::io::{ByteSource, Folder};
use crate::options::ResolvedOptions;
use crate::source::place::Place;
use crate::tile::{CellFormat, Objects, drive, layers};

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

    /// Opens a dataset by name, reading the labels of its dimensions.
    ///
    /// # Errors
    /// As [`TetReader::dataset_id`]; `Unsupported` or `Corrupt` if it or its coordinates cannot be read.
    pub async fn array(&self, dataset: &str, options: &ReadOptions) -> Result<GridArray> {
        let id = self.dataset_id(dataset)?;
        let array = self.array_by_id(id, options, &mut vec![]).await;
        array.map_err(|error| error.in_file(self.name()))
    }

    /// Opens several datasets by name, reading the labels of dimensions that they share once.
    ///
    /// # Errors
    /// As [`TetReader::array`].
    pub async fn arrays(
        &self,
        datasets: &[String],
        options: &ReadOptions,
    ) -> Result<Vec<GridArray>> {
        let (mut known, mut arrays) = (vec![], Vec::with_capacity(datasets.len()));
        for dataset in datasets {
            let array = self.array_by_id(self.dataset_id(dataset)?, options, &mut known).await;
            arrays.push(array.map_err(|error| error.in_file(self.name()))?);
        }
        Ok(arrays)
    }

    /// `known` are the dimensions whose labels have been read.
    async fn array_by_id(
        &self,
        id: usize,
        options: &ReadOptions,
        known: &mut Vec<(DimSpec, Dimension)>,
    ) -> Result<GridArray> {
        let dataset = &self.file.datasets()[id];
        let (grid, element) = (self.readable_grid(id)?, dataset.element()?);
        let (specs, odd) = self.file.dimensions(id);
        let mut remarks = Remarks { odd, ..Remarks::default() };
        let mut dims = Vec::with_capacity(specs.len());
        for spec in specs {
            let read = known.iter().find(|(of, _)| *of == spec).map(|(_, dim)| dim.clone());
            dims.push(match read {
                Some(dim) => dim,
                None => {
                    let mut of_labels = Remarks::default();
                    let dim = self.dimension(spec.clone(), options, &mut of_labels).await?;
                    remarks.of_labels(dim.name(), of_labels);
                    known.push((spec, dim.clone()));
                    dim
                }
            });
        }
        let attributes = &self.file.metadata_of(id).attrs;
        let (column, misunderstood) =
            NumberColumn::new(element, attributes, self.file.is_packed(id), options);
        remarks.misunderstood.extend(misunderstood);
        let fill = column.fill();
        let taken = dims.iter().any(|dim: &Dimension| dim.name() == "value");
        let value = Value {
            name: if taken { dataset.name() } else { "value" }.to_owned(),
            column: ValueColumn::Number(column),
            cells: CellFormat::fixed(element.size() as usize),
            attributes: attributes.clone(),
        };
        remarks.log(&format!("{}: dataset \"{}\"", self.name(), dataset.name()));
        let name = dataset.name().to_owned();
        let source = TetDataset {
            file: self.clone(),
            dataset: id,
            fill,
            options: options.clone(),
            zone_maps: OnceCell::new(),
        };
        Ok(GridArray::new(name, Arc::new(source), grid, dims, vec![value], options.index_columns))
    }

    fn readable_grid(&self, id: usize) -> Result<ChunkGrid> {
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

    pub(crate) async fn dimension(
        &self,
        spec: DimSpec,
        options: &ReadOptions,
        remarks: &mut Remarks,
    ) -> Result<Dimension> {
        let DimSpec { name, len, labels } = spec;
        let (labels, attributes) = match labels {
            LabelSource::Index => (None, BTreeMap::new()),
            LabelSource::Text(text) => (Some(Labels::from_text(&text)?), BTreeMap::new()),
            LabelSource::Dataset(id) if !self.is_plausible_coordinate(id) => {
                remarks.odd.push("they are too many for this file; ignored".to_owned());
                (None, BTreeMap::new())
            }
            LabelSource::Dataset(id) => {
                let elements = self.read_line(id).await?;
                let attributes = self.file.metadata_of(id).attrs.clone();
                let element = self.file.datasets()[id].element()?;
                let packed = self.file.is_packed(id);
                let labels = Labels::from_elements(
                    element,
                    elements,
                    &attributes,
                    packed,
                    options,
                    remarks,
                )?;
                (Some(labels), attributes)
            }
        };
        Ok(Dimension::new(name, labels, len, attributes))
    }

    /// Whether a coordinate takes no more memory than a file of this size warrants. Labels are read
    /// when a table is opened, and rows of the index may all point at one payload.
    fn is_plausible_coordinate(&self, id: usize) -> bool {
        /// Any file may have this many bytes of labels.
        const ALWAYS: u64 = 1 << 26;
        /// Labels compress well, but not without end.
        const RATIO: u64 = 64;
        let dataset = &self.file.datasets()[id];
        let (Ok(grid), Ok(element)) = (dataset.grid(), dataset.element()) else { return false };
        let bytes = grid.cells().saturating_mul(element.size());
        bytes <= self.size.saturating_mul(RATIO).max(ALWAYS)
    }

    /// All elements of a 1-d dataset.
    async fn read_line(&self, id: usize) -> Result<Buffer> {
        let grid = self.readable_grid(id)?;
        let format = CellFormat::fixed(self.file.datasets()[id].element()?.size() as usize);
        let stored = self.locate(id, (0..grid.chunks()).collect()).await?;
        let locations: Vec<Location> = stored
            .iter()
            .flat_map(|chunk| &chunk.layers)
            .map(|layer| layer.values.at.clone())
            .collect();
        let mut payloads = self.objects.read(&locations).await?.into_iter();
        let mut scratch = Scratch::default();
        let mut elements = MutableBuffer::new(0);
        for (number, chunk) in (0..).zip(&stored) {
            let extents = grid.extents(&[number]);
            let tile =
                layers::decode(chunk, &mut payloads, &extents, &format, vec![], &mut scratch)
                    .map_err(|failed| failed.error)?;
            elements.extend_from_slice(tile.bytes());
        }
        Ok(elements.into())
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

    /// Bytes of the zone maps: of those in the file or, if it has none, beside it in its package.
    fn zone_maps_len(&self) -> Option<u64> {
        let within = self.file.zone_maps_at().map(|at| at.end - at.start);
        within.or_else(|| self.package.as_ref()?.zone_file()?.range.most())
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

    async fn read_zone_maps(&self, dataset: usize) -> Result<Option<ZoneMaps>> {
        match (self.file.read_zone_maps(dataset)?, &self.package) {
            (Some(machine), _) => self.run(machine).await.map(Some),
            (None, Some(package)) => package.read_zone_file(&self.file, dataset).await,
            (None, None) => Ok(None),
        }
    }
}

/// One dataset of a file.
#[derive(Debug)]
struct TetDataset {
    file: TetReader,
    dataset: usize,
    /// The element that stands for NULL.
    fill: Option<Bound>,
    options: ReadOptions,
    zone_maps: OnceCell<Option<Arc<dyn Zones>>>,
}

#[async_trait]
impl ChunkSource for TetDataset {
    fn objects(&self) -> &Arc<Objects> {
        &self.file.objects
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.file.file.memory_budget()
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let chunks = tasks.iter().map(|task| task.chunk_number).collect();
        let stored = self.file.locate(self.dataset, chunks).await?.into_iter();
        Ok(stored.map(|chunk| vec![chunk; values.len()]).collect())
    }

    async fn zones(&self, _: usize, _: &Selection, bytes_to_read: u64) -> Option<Arc<dyn Zones>> {
        /// Parsing JSON costs this many times more per byte than looking for NULLs.
        const RELATIVE_COST: u64 = 64;
        /// So little takes a fraction of a millisecond, once per table.
        const ALWAYS: u64 = 1 << 16;
        if let Some(maps) = self.zone_maps.get() {
            return maps.clone();
        }
        let len = self.file.zone_maps_len().filter(|_| self.options.trust_zone_maps)?;
        if len > ALWAYS && len.saturating_mul(RELATIVE_COST) > bytes_to_read {
            return None;
        }
        self.zone_maps.get_or_init(|| self.read_zone_maps()).await.clone()
    }
}

impl TetDataset {
    async fn read_zone_maps(&self) -> Option<Arc<dyn Zones>> {
        match self.file.read_zone_maps(self.dataset).await.and_then(|maps| self.trusted(maps)) {
            Ok(zones) => zones,
            Err(error) => {
                log::warn!("zone maps are ignored: {error}");
                None
            }
        }
    }

    fn trusted(&self, maps: Option<ZoneMaps>) -> Result<Option<Arc<dyn Zones>>> {
        let Some(maps) = maps else { return Ok(None) };
        let dataset = &self.file.file.datasets()[self.dataset];
        let (grid, element) = (dataset.grid()?.clone(), dataset.element()?);
        let zones = TrustedZones::new(maps, grid, element, self.fill, &self.options);
        Ok(Some(Arc::new(zones)))
    }
}
