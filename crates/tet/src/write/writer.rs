//! [`TetWriter`]: the chunks of an array, and the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use gridfusion_core::array::{Labels, failed_to};
use gridfusion_core::format::{Publish, Write, Writer};
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::write::{
    ArrayWriter, NewArray, NewChunk, NewDimension, NewVariable, StoredType, in_threads,
};
use gridfusion_core::{Error, Result};

use super::dataset::{EncodedChunk, NewDataset, check_text};
use super::footer::{footer, metadata, zone_maps};
use super::image::{Image, NO_SHA256, sha256_of};
use super::layout::head;

/// The most labels of a chunk of labels.
const LABELS: u64 = 1 << 20;
/// The most texts that label a dimension.
const MOST_TEXTS: usize = 64;
/// The most datasets of a file.
const MOST_DATASETS: usize = 256;

/// How a `.tet` file is encoded.
///
/// ```
/// use gridfusion_tet::TetEncoding;
///
/// let encoding = TetEncoding::default();
/// assert_eq!(encoding.zstd, Some(3));
/// let raw = TetEncoding { zstd: None, ..encoding };
/// # let _ = raw;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TetEncoding {
    /// The level of zstd; `None` stores the bytes of cells.
    pub zstd: Option<i32>,
    /// The most bytes of payloads, which are held in memory until the file is written.
    pub max_bytes: u64,
}

impl Default for TetEncoding {
    fn default() -> Self {
        Self { zstd: Some(3), max_bytes: 1 << 30 }
    }
}

/// Writes an array as a `.tet` file: a dataset per variable, and one per dimension with its labels. Up to 64 texts label a dimension in the
/// footer. Each chunk has a zone map.
///
/// Cells of floats that are NULL are stored as NaN, unless the variable has another fill value. Chunks that are not written are NULL.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{Array, ArrayRef, Float32Array, Int32Array};
/// use futures::TryStreamExt;
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::write_all;
/// use gridfusion_core::write::{NewArray, NewChunk, NewDimension, NewVariable};
/// use gridfusion_tet::{TetEncoding, TetWriter, open};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion_core::Result<()> {
/// let cells: ArrayRef = Arc::new(Float32Array::from(vec![Some(1.5), None, Some(2.5)]));
/// let x = NewDimension {
///     name: "x".into(),
///     labels: Arc::new(Int32Array::from(vec![10, 20, 30])),
///     attributes: Default::default(),
/// };
/// let v = NewVariable {
///     name: "v".into(),
///     data_type: cells.data_type().clone(),
///     fill: None,
///     attributes: Default::default(),
/// };
/// let array = NewArray::try_new(vec![x], vec![v], &[3])?;
/// let writer = TetWriter::try_new(array, "x.tet", TetEncoding::default())?;
/// let chunks = [Ok(NewChunk { variable: 0, coordinates: vec![0], cells, given: None })];
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// write_all(writer, futures::stream::iter(chunks), Arc::new(LocalFolder::open(folder, true)?)).await?;
///
/// let reader = open(folder.join("x.tet").to_str().unwrap()).await?.array("v").await?;
/// let batches: Vec<_> = reader.batches().try_collect().await?;
/// assert_eq!((batches[0].num_rows(), batches[0].column(1).null_count()), (3, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TetWriter {
    array: NewArray,
    object: Arc<str>,
    encoding: TetEncoding,
    /// A dataset per variable.
    variables: Vec<NewDataset>,
    /// The bytes of the payloads that came.
    bytes: u64,
}

impl TetWriter {
    /// Makes a writer of an array. `object` is the name of the file in the folder that is written to.
    ///
    /// # Errors
    /// `Unsupported` for types, names and attributes that the format does not have, `Usage` for a level that zstd does not have.
    pub fn try_new(array: NewArray, object: &str, encoding: TetEncoding) -> Result<Self> {
        if let Some(level) = encoding.zstd
            && !zstd::compression_level_range().contains(&level)
        {
            return Err(Error::usage(format!("zstd has no level {level}")));
        }
        for dimension in array.dimensions() {
            check_label_type(&dimension.name, dimension.labels.data_type())?;
        }
        let datasets = array.dimensions().len() + array.variables().len();
        if datasets > MOST_DATASETS {
            return Err(Error::unsupported(format!(
                "{datasets} dimensions and variables, and a .tet file has at most {MOST_DATASETS} datasets"
            )));
        }
        let dataset = |it: &NewVariable| {
            let is_time = matches!(it.data_type, DataType::Timestamp(..) | DataType::Date32);
            if is_time {
                return Err(Error::unsupported(format!(
                    "\"{}\": times in a .tet file are labels, and no variables; cast the column: CAST(… AS BIGINT)",
                    it.name
                )));
            }
            let grid = array.grid().clone();
            let mut dataset = NewDataset::try_new(&it.name, &it.data_type, grid, it.fill.as_ref())?;
            dataset.add_attributes(it.attributes.clone())?;
            Ok(dataset)
        };
        let variables = array.variables().iter().map(dataset).collect::<Result<Vec<_>>>()?;
        Ok(Self { array, object: object.into(), encoding, variables, bytes: 0 })
    }

    /// Encodes a chunk, and returns its number with it.
    fn encoded(&self, chunk: &NewChunk) -> Result<(u64, EncodedChunk)> {
        let ranges = self.array.ranges_of(chunk)?;
        let dataset = &self.variables[chunk.variable];
        let encoded = dataset.encoded(&chunk.cells, self.encoding.zstd)?;
        let encoded = encoded.map_err(|bad| self.array.bad_cell(&dataset.name, &ranges, bad))?;
        let number = self.array.grid().chunk_number(&chunk.coordinates);
        Ok((number.unwrap_or_default(), encoded))
    }

    fn hold(&mut self, variable: usize, number: u64, chunk: EncodedChunk) -> Result<()> {
        self.bytes += chunk.payload.len() as u64;
        if self.bytes > self.encoding.max_bytes {
            return Err(Error::usage(format!(
                "a .tet file of more than {} bytes, which is held in memory; raise 'max_bytes', or write Zarr",
                self.encoding.max_bytes
            )));
        }
        let dataset = &mut self.variables[variable];
        match dataset.chunks.insert(number, chunk) {
            None => Ok(()),
            Some(_) => {
                let (name, at) = (&dataset.name, dataset.grid.chunk_coordinates(number));
                Err(Error::usage(format!("chunk {at:?} of \"{name}\" is written twice")))
            }
        }
    }

    /// Adds chunks of NULL for those that did not come: the format has no absent chunks.
    fn complete(&mut self) -> Result<()> {
        for variable in 0..self.variables.len() {
            let dataset = &self.variables[variable];
            let count = dataset.grid.chunks();
            let missing = (0..count).filter(|number| !dataset.chunks.contains_key(number));
            let missing: Vec<u64> = missing.collect();
            if !missing.is_empty() && !dataset.has_fill() {
                return Err(Error::usage(format!(
                    "{} of {count} chunks of \"{}\" were written, and it has no fill value",
                    dataset.chunks.len(),
                    dataset.name
                )));
            }
            for number in missing {
                let dataset = &self.variables[variable];
                let extents = dataset.grid.extents(&dataset.grid.chunk_coordinates(number));
                let cells = dataset.nulls(extents.iter().product::<u64>() as usize);
                let chunk = dataset.encoded(&cells, self.encoding.zstd)?;
                let chunk = chunk.map_err(|_| Error::internal("NULL has no place"))?;
                self.hold(variable, number, chunk)?;
            }
        }
        Ok(())
    }

    /// Completes the array, and returns the file. `generation` is its number in a package.
    ///
    /// # Errors
    /// `Unsupported` for labels and metadata that the format does not have, `Usage` for chunks that are missing.
    pub(super) fn image(&mut self, generation: Option<u64>) -> Result<Image> {
        self.complete()?;
        let (mut of_labels, mut datasets, mut dimensions) = (BTreeMap::new(), vec![], vec![]);
        for dimension in self.array.dimensions() {
            match self.labels(dimension)? {
                Some(dataset) => {
                    dimensions.push(vec![dataset.name.clone()]);
                    datasets.push(dataset);
                }
                None => {
                    let texts = texts(&dimension.name, &dimension.labels)?;
                    of_labels.insert(dimension.name.clone(), texts);
                }
            }
        }
        let names: Vec<String> = self.array.dimensions().iter().map(|it| it.name.clone()).collect();
        datasets.append(&mut self.variables);
        dimensions.resize(datasets.len(), names);
        let head = head(&datasets);
        let payloads = datasets.iter().flat_map(|it| it.chunks.values().map(|it| &it.payload));
        let payload_end = head.len() + payloads.clone().map(Vec::len).sum::<usize>();
        let sha256 = match generation {
            Some(_) => sha256_of(std::iter::once(&head).chain(payloads)),
            None => NO_SHA256.to_owned(),
        };
        let zones = zone_maps(&datasets, generation.unwrap_or_default(), &sha256)?;
        let metadata = metadata(&datasets, &dimensions, &of_labels);
        let footer = footer(&zones, &metadata, payload_end as u64)?;
        let payloads = datasets.into_iter().flat_map(|it| it.chunks.into_values());
        let parts = std::iter::once(head).chain(payloads.map(|it| it.payload)).chain([footer]);
        Ok(Image { parts: parts.collect(), zones: zones.into(), sha256 })
    }

    /// Returns the labels of a dimension as a dataset; `None` if they are texts.
    fn labels(&self, dimension: &NewDimension) -> Result<Option<NewDataset>> {
        let NewDimension { name, labels, .. } = dimension;
        let stored = StoredType::new(labels.data_type())?;
        if labels.is_empty() {
            return Err(Error::unsupported(format!(
                "a dimension \"{name}\" without labels in a .tet file"
            )));
        }
        if stored.is_text() {
            return Ok(None);
        }
        let len = labels.len() as u64;
        let grid = ChunkGrid::new(&[len], &[len.min(LABELS)])?;
        let mut dataset = NewDataset::try_new(name, labels.data_type(), grid, None)?;
        dataset.add_attributes(dimension.attributes_with_time(dataset.stored()))?;
        for number in 0..dataset.grid.chunks() {
            let range = dataset.grid.axis_range(0, number);
            let part = labels.slice(range.start as usize, (range.end - range.start) as usize);
            let chunk = dataset.encoded(&part, self.encoding.zstd)?;
            let chunk = chunk.map_err(|bad| {
                Error::usage(format!("label {} of \"{name}\": {}", bad.at, bad.reason))
            })?;
            dataset.chunks.insert(number, chunk);
        }
        Ok(Some(dataset))
    }
}

/// Fails for labels of a type that the format does not have.
fn check_label_type(name: &str, data_type: &DataType) -> Result<()> {
    if StoredType::new(data_type)?.is_text() {
        return check_text("the name", name);
    }
    NewDataset::try_new(name, data_type, ChunkGrid::new(&[1], &[1])?, None).map(drop)
}

/// Returns labels that are texts.
///
/// # Errors
/// `Unsupported` for those that would not be read as they are.
fn texts(name: &str, labels: &ArrayRef) -> Result<Vec<String>> {
    let labels = cast(labels, &DataType::Utf8).map_err(failed_to("store labels"))?;
    let texts: Vec<String> =
        labels.as_string::<i32>().iter().flatten().map(str::to_owned).collect();
    if texts.len() > MOST_TEXTS {
        return Err(Error::unsupported(format!(
            "{} texts label \"{name}\", and a .tet file has at most {MOST_TEXTS}; number them, or write Zarr or NetCDF",
            texts.len()
        )));
    }
    for text in &texts {
        check_text(&format!("a label of \"{name}\""), text)?;
    }
    let read = Labels::from_text(&texts)?;
    let is_text = matches!(read.data_type(), DataType::Utf8 | DataType::Utf8View);
    let read = cast(&read.slice(0..read.len())?, &DataType::Utf8);
    match is_text && read.map_err(failed_to("compare labels"))?.as_ref() == labels.as_ref() {
        true => Ok(texts),
        false => Err(Error::unsupported(format!(
            "the labels \"{name}\" are texts that a .tet file reads as numbers or times; cast the column to these"
        ))),
    }
}

impl ArrayWriter for TetWriter {
    fn array(&self) -> &NewArray {
        &self.array
    }

    fn memory(&self) -> u64 {
        /// The bytes of a chunk in the index and among the zone maps, besides its payload.
        const OF_CHUNK: u64 = 512;
        let chunks = self.array.grid().chunks().saturating_mul(self.variables.len() as u64);
        self.bytes.saturating_add(chunks.saturating_mul(OF_CHUNK))
    }

    fn write_many(&mut self, chunks: Vec<NewChunk>, threads: usize) -> Result<Vec<Write>> {
        let encoded = in_threads(&chunks, threads, |chunk| self.encoded(chunk))?;
        for (chunk, (number, encoded)) in chunks.iter().zip(encoded) {
            self.hold(chunk.variable, number, encoded)?;
        }
        Ok(vec![])
    }
}

impl Writer for TetWriter {
    type Chunk = NewChunk;

    fn write(&mut self, chunk: NewChunk) -> Result<Vec<Write>> {
        self.write_many(vec![chunk], 1)
    }

    fn finish(&mut self) -> Result<(Vec<Write>, Publish)> {
        let object = Arc::clone(&self.object);
        let writes = self.image(None)?.writes(&object);
        Ok((writes, Publish::Complete { object, replace: false }))
    }
}
