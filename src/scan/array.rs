//! An opened array: its dimensions with their labels, its value column and its schema.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::buffer::{Buffer, MutableBuffer};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tokio::sync::OnceCell;

use super::drive;
use super::labels::Labels;
use super::plan::ChunkTask;
use super::tile::Tile;
use super::values::ValueColumn;
use crate::error::{Error, Result};
use crate::format::StoredChunk;
use crate::format::tet::{DimSpec, LabelSource, MemoryBudget, Open, TetFile, ZoneMaps};
use crate::grid::ChunkGrid;
use crate::io::ByteSource;

/// How stored data becomes SQL values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    /// NaN is NULL. Default: true.
    pub nan_as_null: bool,
    /// The declared fill value is NULL. Default: true.
    pub fill_as_null: bool,
    /// Adds a column `<dimension>_idx` with the 0-based index for each dimension. Default: false.
    pub index_columns: bool,
    /// Believes the zone maps of the file where they say that a chunk has no NULL. Default: true.
    pub trust_zone_maps: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { nan_as_null: true, fill_as_null: true, index_columns: false, trust_zone_maps: true }
    }
}

/// A file whose directory and metadata have been read.
#[derive(Debug, Clone)]
pub struct OpenedFile {
    file: Arc<TetFile>,
    source: Arc<dyn ByteSource>,
    /// Set once index rows have been looked up.
    looked_up: Arc<OnceCell<()>>,
}

/// Grids with more chunks than this are opened only if the file has index rows for them.
///
/// Planning lists the chunks of an axis, so a directory that promises 2^60 of them must not be
/// believed. Files in which many chunks are missing stay readable below this number.
const MAX_MISSING_CHUNKS: u64 = 1 << 22;

impl OpenedFile {
    /// Reads the superblock, the directory, the index header and the footer.
    ///
    /// # Errors
    /// `Corrupt` if it is not a `.tet` file of layout version 1, `Io` if it cannot be read.
    pub async fn open(source: Arc<dyn ByteSource>) -> Result<Self> {
        let file = drive(Open::new(source.size()), source.as_ref()).await?;
        for warning in file.warnings() {
            log::warn!("{}: {warning}", source.name());
        }
        Ok(Self { file: Arc::new(file), source, looked_up: Arc::default() })
    }

    /// What errors call the file.
    pub fn name(&self) -> &str {
        self.source.name()
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

    /// Opens a dataset by name, reading the labels of its dimensions.
    ///
    /// # Errors
    /// `Usage` if there is no such dataset (the message lists those there are), `Unsupported` or
    /// `Corrupt` if it or its coordinates cannot be read.
    pub async fn array(&self, dataset: &str, options: &ReadOptions) -> Result<GridArray> {
        let Some(id) = self.file.dataset_id(dataset) else {
            let known = self.dataset_names().join("\", \"");
            let message = format!("no dataset \"{dataset}\"; the file has \"{known}\"");
            return Err(Error::usage(message).in_file(self.name()));
        };
        self.array_by_id(id, options).await.map_err(|error| error.in_file(self.name()))
    }

    async fn array_by_id(&self, id: usize, options: &ReadOptions) -> Result<GridArray> {
        let dataset = &self.file.datasets()[id];
        let (grid, element) = (self.readable_grid(id)?, dataset.element()?);
        let (specs, mut warnings) = self.file.dimensions(id);
        let mut dims = Vec::with_capacity(specs.len());
        for spec in specs {
            dims.push(self.dimension(spec, options, &mut warnings).await?);
        }
        let attributes = &self.file.metadata_of(id).attrs;
        let (value, problems) =
            ValueColumn::new(element, attributes, self.file.is_packed(id), options);
        warnings.extend(problems);
        for warning in &warnings {
            log::warn!("{}: dataset \"{}\": {warning}", self.name(), dataset.name());
        }
        let (schema, columns) = schema(dataset.name(), &dims, &value, attributes, options);
        Ok(GridArray {
            name: dataset.name().to_owned(),
            opened: self.clone(),
            dataset: id,
            grid,
            dims,
            value,
            schema,
            columns,
            options: options.clone(),
            zone_maps: OnceCell::new(),
        })
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

    async fn dimension(
        &self,
        spec: DimSpec,
        options: &ReadOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Dimension> {
        let DimSpec { name, len, labels } = spec;
        let (labels, attributes) = match labels {
            LabelSource::Index => (Labels::Index { len }, BTreeMap::new()),
            LabelSource::Text(text) => (Labels::from_text(&text)?, BTreeMap::new()),
            LabelSource::Dataset(id) if !self.is_plausible_coordinate(id) => {
                warnings
                    .push(format!("the labels of \"{name}\" are too many for this file; ignored"));
                (Labels::Index { len }, BTreeMap::new())
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
                    warnings,
                )?;
                (labels, attributes)
            }
        };
        Ok(Dimension { name, labels, index: Labels::Index { len }, attributes })
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
        bytes <= self.source.size().saturating_mul(RATIO).max(ALWAYS)
    }

    /// All elements of a 1-d dataset.
    async fn read_line(&self, id: usize) -> Result<Buffer> {
        let grid = self.readable_grid(id)?;
        let stored =
            drive(self.file.locate(id, (0..grid.chunks()).collect())?, self.source.as_ref())
                .await?;
        let payloads: Vec<_> = stored
            .iter()
            .flat_map(|chunk| &chunk.layers)
            .map(|layer| layer.payload.clone())
            .collect();
        let mut payloads = self.source.read(&payloads).await?.into_iter();
        let mut elements = MutableBuffer::new(0);
        for chunk in stored {
            let layers = chunk.layers.len();
            elements
                .extend_from_slice(&decode_tile(&chunk, payloads.by_ref().take(layers).collect())?);
        }
        Ok(elements.into())
    }
}

/// Decodes the payloads of one chunk.
fn decode_tile(chunk: &StoredChunk, payloads: Vec<bytes::Bytes>) -> Result<bytes::Bytes> {
    match (chunk.layers.as_slice(), payloads.into_iter().next()) {
        ([layer], Some(payload)) => layer.decode(payload),
        _ => Err(Error::internal("a chunk that is not one layer and one payload")),
    }
}

/// One axis of an array, as columns see it.
#[derive(Debug, Clone)]
pub struct Dimension {
    name: String,
    labels: Labels,
    index: Labels,
    attributes: BTreeMap<String, String>,
}

impl Dimension {
    /// The dimension's name, which is its column's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One label per element.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }
}

/// What a column of the table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// The labels of an axis.
    Label(usize),
    /// The 0-based index on an axis.
    Index(usize),
    /// The cells.
    Value,
}

impl Column {
    /// The axis, for columns of a dimension.
    pub fn axis(self) -> Option<usize> {
        match self {
            Self::Label(axis) | Self::Index(axis) => Some(axis),
            Self::Value => None,
        }
    }
}

/// One array, ready to be scanned: one row per cell, a column per dimension, a value column.
#[derive(Debug)]
pub struct GridArray {
    name: String,
    opened: OpenedFile,
    dataset: usize,
    grid: ChunkGrid,
    dims: Vec<Dimension>,
    value: ValueColumn,
    schema: SchemaRef,
    columns: Vec<Column>,
    options: ReadOptions,
    zone_maps: OnceCell<Option<ZoneMaps>>,
}

impl GridArray {
    /// The dataset's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file it is in.
    pub fn opened_file(&self) -> &OpenedFile {
        &self.opened
    }

    /// Where its bytes come from.
    pub fn source(&self) -> &Arc<dyn ByteSource> {
        &self.opened.source
    }

    /// How it is cut into chunks.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Its axes.
    pub fn dims(&self) -> &[Dimension] {
        &self.dims
    }

    /// How its elements become values.
    pub fn value(&self) -> &ValueColumn {
        &self.value
    }

    /// The table's columns: dimensions, the value, index columns if they were asked for.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What each column of the schema shows.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// What a column of a dimension shows along its axis; `None` for the value.
    pub fn labels_of(&self, column: Column) -> Option<&Labels> {
        match column {
            Column::Label(axis) => Some(&self.dims[axis].labels),
            Column::Index(axis) => Some(&self.dims[axis].index),
            Column::Value => None,
        }
    }

    /// What the writer suggests about memory.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.opened.file.memory_budget()
    }

    /// Finds where the chunks of `tasks` are stored, in order.
    ///
    /// # Errors
    /// `Corrupt` if a chunk has no row in the index, or a row that cannot be right.
    pub async fn locate(&self, tasks: &[ChunkTask]) -> Result<Vec<StoredChunk>> {
        let mut located = None;
        // The first look shows whether the index is in order. If it is not, the whole of it is read
        // and mapped, which partitions that start together must not all do.
        self.opened
            .looked_up
            .get_or_try_init(|| async {
                located = Some(self.drive_locate(tasks).await?);
                Ok::<_, Error>(())
            })
            .await?;
        match located {
            Some(located) => Ok(located),
            None => self.drive_locate(tasks).await,
        }
    }

    async fn drive_locate(&self, tasks: &[ChunkTask]) -> Result<Vec<StoredChunk>> {
        let chunks = tasks.iter().map(|task| task.number).collect();
        let locate = self.opened.file.locate(self.dataset, chunks)?;
        drive(locate, self.source().as_ref()).await
    }

    /// Decodes the fetched `payloads` of the chunk of `task`.
    ///
    /// # Errors
    /// `Corrupt` if they do not decode to the chunk's cells.
    pub fn decode(
        &self,
        task: &ChunkTask,
        chunk: &StoredChunk,
        payloads: Vec<bytes::Bytes>,
    ) -> Result<Tile> {
        let bytes = decode_tile(chunk, payloads).map_err(|error| {
            let what = format!("chunk {:?} of dataset \"{}\"", task.coordinates, self.name);
            error.about(&what).in_file(self.opened.name())
        })?;
        Ok(Tile::new(bytes, self.value.element()))
    }

    /// The zone maps, if they are trusted, well-formed and cheap beside `bytes_to_read` of payloads.
    pub async fn zone_maps(&self, bytes_to_read: u64) -> Option<&ZoneMaps> {
        /// Parsing JSON costs this many times more per byte than looking for NULLs.
        const RELATIVE_COST: u64 = 64;
        let at = self.opened.file.zone_maps_at().filter(|_| self.options.trust_zone_maps)?;
        if (at.end - at.start).saturating_mul(RELATIVE_COST) > bytes_to_read {
            return None;
        }
        let read = || async {
            let machine = self.opened.file.read_zone_maps(self.dataset).ok()??;
            match drive(machine, self.source().as_ref()).await {
                Ok(maps) => Some(maps),
                Err(error) => {
                    log::warn!("zone maps are ignored: {error}");
                    None
                }
            }
        };
        self.zone_maps.get_or_init(read).await.as_ref()
    }
}

/// The table's schema and what each of its columns shows.
fn schema(
    dataset: &str,
    dims: &[Dimension],
    value: &ValueColumn,
    attributes: &BTreeMap<String, String>,
    options: &ReadOptions,
) -> (SchemaRef, Vec<Column>) {
    let mut fields: Vec<Field> = Vec::new();
    let mut columns = Vec::new();
    for (axis, dim) in dims.iter().enumerate() {
        let field = Field::new(&dim.name, dim.labels.data_type(), dim.labels.has_nulls());
        fields.push(with_attributes(field, &dim.attributes));
        columns.push(Column::Label(axis));
    }
    let name = if dims.iter().any(|dim| dim.name == "value") { dataset } else { "value" };
    let field = Field::new(unused_name(name, &fields), value.data_type(), value.is_nullable());
    fields.push(with_attributes(field, attributes));
    columns.push(Column::Value);
    if options.index_columns {
        for (axis, dim) in dims.iter().enumerate() {
            let name = unused_name(&format!("{}_idx", dim.name), &fields);
            fields.push(Field::new(name, DataType::Int64, false));
            columns.push(Column::Index(axis));
        }
    }
    (Arc::new(Schema::new(fields)), columns)
}

/// `name`, or `name` with as many underscores as make it unique.
fn unused_name(name: &str, fields: &[Field]) -> String {
    let mut name = name.to_owned();
    while fields.iter().any(|field| *field.name() == name) {
        name.push('_');
    }
    name
}

fn with_attributes(field: Field, attributes: &BTreeMap<String, String>) -> Field {
    let metadata: HashMap<String, String> =
        attributes.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    field.with_metadata(metadata)
}
