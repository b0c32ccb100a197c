//! Facts about the datasets and dimensions of a `.tet` file. Cells other than labels are not read.
//! `tet_info` and `gridfusion info` show them.

use std::collections::{BTreeMap, HashSet};

use arrow::datatypes::DataType;

use super::dimension::dimension;
use super::index_scan::IndexScan;
use super::reader::TetReader;
use crate::bytes::{DimSpec, IndexEntry, LabelSource, ZoneMaps};
use gridfusion_core::array::{ReadOptions, Remarks};
use gridfusion_core::format::ElementType;
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::{Error, Result};

/// The facts about one dataset.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DatasetInfo {
    /// Its name in the directory of the file.
    pub name: String,
    /// The element type; `None` if gridfusion does not know the stored type.
    pub element: Option<ElementType>,
    /// The number of positions along each axis.
    pub shape: Vec<u64>,
    /// The chunk grid; `None` if the stored shapes are invalid.
    pub grid: Option<ChunkGrid>,
    /// Dimension names, one per axis. Empty if an earlier dataset has the same name.
    pub dimensions: Vec<String>,
    /// Attributes such as `units`.
    pub attributes: BTreeMap<String, String>,
    /// The totals of its rows in the chunk index.
    pub stored: StoredInfo,
    /// Whether it holds the labels of a dimension of other datasets.
    pub is_coordinate: bool,
    /// Whether the file or its package has valid zone maps for this dataset.
    pub has_zone_maps: bool,
    /// Problems with its metadata, its index rows and its zone maps.
    pub warnings: Vec<String>,
}

/// The totals of the rows that one dataset has in the chunk index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoredInfo {
    /// The number of rows. It differs from the number of chunks in the grid if chunks are missing or
    /// have several rows.
    pub chunks: u64,
    /// Bytes of the payloads as stored.
    pub bytes: u64,
    /// Bytes of the payloads after decoding.
    pub raw_bytes: u64,
    /// How the chunks are encoded; `None` if no chunk is stored.
    pub codec: Option<StoredCodec>,
}

/// How the chunks of a dataset are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredCodec {
    /// All chunks are raw.
    Raw,
    /// All chunks are compressed with zstd.
    Zstd,
    /// Some chunks are raw, and others compressed.
    Mixed,
}

impl StoredCodec {
    /// Its name: `raw`, `zstd` or `mixed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Zstd => "zstd",
            Self::Mixed => "mixed",
        }
    }
}

impl StoredInfo {
    /// The compression ratio: decoded bytes per stored byte; `None` if no bytes are stored.
    pub fn ratio(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.raw_bytes as f64 / self.bytes as f64)
    }

    /// Adds a row of the index to the totals.
    fn add(&mut self, entry: &IndexEntry) {
        let payload = &entry.payload;
        // A `.tet` file has no other codecs.
        let codec = if payload.codec.is_raw() { StoredCodec::Raw } else { StoredCodec::Zstd };
        self.chunks += 1;
        self.bytes = self.bytes.saturating_add(payload.stored_len());
        self.raw_bytes = self.raw_bytes.saturating_add(payload.raw_len);
        self.codec = match self.codec {
            Some(before) if before != codec => Some(StoredCodec::Mixed),
            _ => Some(codec),
        };
    }
}

/// The facts about a dimension of one or more datasets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DimensionInfo {
    /// Its name in the datasets.
    pub name: String,
    /// The number of positions.
    pub len: u64,
    /// The type of the labels; `None` if the labels cannot be read.
    pub data_type: Option<DataType>,
    /// The first label as text; `None` if it is missing or cannot be read.
    pub first: Option<String>,
    /// The last label as text; `None` if it is missing or cannot be read.
    pub last: Option<String>,
    /// Attributes of the coordinate, such as `units`.
    pub attributes: BTreeMap<String, String>,
    /// Problems with the labels.
    pub warnings: Vec<String>,
}

/// Returns the facts about the dataset with the id `only`, or about all datasets in directory order.
/// Reads the whole chunk index and the zone maps, but no cells.
///
/// # Errors
/// `Corrupt` if the chunk index is invalid. A dataset that cannot be read gets a warning instead.
pub async fn dataset_info(reader: &TetReader, only: Option<usize>) -> Result<Vec<DatasetInfo>> {
    let count = reader.tet().datasets().len();
    let mut stored = vec![StoredInfo::default(); count];
    let mut index = IndexScan::new(reader, only);
    while let Some(entries) = index.next().await? {
        entries.iter().for_each(|entry| stored[entry.dataset].add(entry));
    }
    let zones = reader.zone_maps().await;
    let wanted = (0..count).filter(|id| only.is_none_or(|only| only == *id));
    Ok(wanted.map(|id| info_of(reader, id, stored[id], &zones)).collect())
}

/// Collects the facts about one dataset. `zones` is the result of reading the zone maps of all datasets.
fn info_of(
    reader: &TetReader,
    id: usize,
    stored: StoredInfo,
    zones: &Result<Option<Vec<Result<ZoneMaps>>>>,
) -> DatasetInfo {
    let (file, dataset) = (reader.tet(), &reader.tet().datasets()[id]);
    // Metadata is stored by name, so it belongs to the first dataset with that name.
    let is_first = file.dataset_id(dataset.name()) == Some(id);
    let (specs, mut warnings) = if is_first { file.dimensions(id) } else { Default::default() };
    let mut attributes = BTreeMap::new();
    if is_first {
        attributes.clone_from(&file.metadata_of(id).attrs);
    } else {
        warnings.push("queries read an earlier dataset with the same name".into());
    }
    match dataset.grid() {
        Err(error) => warnings.push(error.to_string()),
        Ok(grid) => warnings.extend(miscounted(stored.chunks, grid.chunks())),
    }
    if is_first {
        let mut remarks = Remarks::default();
        // An undefined type is an error of the grid already.
        if reader.column(id, &ReadOptions::default(), &mut remarks).is_ok() {
            warnings.extend(remarks.misunderstood);
        }
    }
    // There are two kinds of errors: one of the whole text of zone maps, and one of this dataset's maps.
    let zones = match zones {
        Ok(None) => Ok(None),
        Ok(Some(all)) => all[id].as_ref().map(Some),
        Err(error) => Err(error),
    };
    // Without a grid, the maps of a dataset have nothing to fit, and the warning about the grid is enough.
    if let (Err(error), Ok(_)) = (&zones, dataset.grid()) {
        warnings.push(format!("its zone maps are ignored: {error}"));
    }
    DatasetInfo {
        name: dataset.name().to_owned(),
        element: dataset.element().ok(),
        shape: dataset.shape().to_vec(),
        grid: dataset.grid().ok().cloned(),
        dimensions: specs.into_iter().map(|spec| spec.name).collect(),
        attributes,
        stored,
        is_coordinate: file.is_coordinate(id),
        has_zone_maps: zones.is_ok_and(|zones| zones.is_some_and(|zones| !zones.is_empty())),
        warnings,
    }
}

/// Returns the facts about the dimensions of all datasets, in the order of the datasets. Dimensions
/// with the same name, length and labels appear once. Reads the labels.
pub async fn dimension_info(reader: &TetReader, options: &ReadOptions) -> Vec<DimensionInfo> {
    /// The most labels to read in all, so that a small damaged file cannot cause endless work.
    const MOST_LABELS: u64 = 1 << 27;
    let mut seen = HashSet::new();
    let mut known = Vec::new();
    let mut labels_left = MOST_LABELS;
    let named = reader.dataset_names();
    for id in named.iter().filter_map(|name| reader.tet().dataset_id(name)) {
        for spec in reader.tet().dimensions(id).0 {
            if seen.contains(&spec) {
                continue;
            }
            seen.insert(spec.clone());
            // Dimensions beyond the limit are listed without labels.
            let read = match labels_left.checked_sub(labels_read(&spec)) {
                Some(left) => {
                    labels_left = left;
                    known_dimension(reader, spec.clone(), options).await
                }
                None => Err(Error::unsupported("the labels of the file are too many")),
            };
            known.push(read.unwrap_or_else(|error| without_labels(spec, &error)));
        }
    }
    known
}

/// Reads the labels of a dimension, and returns its facts.
async fn known_dimension(
    reader: &TetReader,
    spec: DimSpec,
    options: &ReadOptions,
) -> Result<DimensionInfo> {
    let (name, len) = (spec.name.clone(), spec.len);
    let mut remarks = Remarks::default();
    let attributes = match spec.labels {
        LabelSource::Dataset(id) => reader.tet().metadata_of(id).attrs.clone(),
        LabelSource::Text(_) | LabelSource::Singles(_) | LabelSource::Index => BTreeMap::new(),
    };
    let dimension = dimension(reader, spec, options, &mut remarks).await?;
    let labels = dimension.labels();
    let (first, last) = match len.checked_sub(1) {
        Some(last) => (labels.text(0)?, labels.text(last)?),
        None => (None, None),
    };
    let data_type = Some(labels.data_type());
    let warnings = remarks.into_texts();
    Ok(DimensionInfo { name, len, data_type, first, last, attributes, warnings })
}

/// Returns a warning if the index has more or fewer rows than there are chunks.
fn miscounted(stored: u64, chunks: u64) -> Option<String> {
    match (chunks.saturating_sub(stored), stored.saturating_sub(chunks)) {
        (0, 0) => None,
        (missing, 0) => Some(format!("{missing} of {chunks} chunks are missing")),
        (_, surplus) => Some(format!("the index has {surplus} rows more than there are chunks")),
    }
}

/// Returns how many labels must be read from a coordinate dataset.
fn labels_read(spec: &DimSpec) -> u64 {
    if matches!(spec.labels, LabelSource::Dataset(_)) { spec.len } else { 0 }
}

/// Returns the facts about a dimension whose labels cannot be read.
fn without_labels(spec: DimSpec, error: &Error) -> DimensionInfo {
    DimensionInfo {
        name: spec.name,
        len: spec.len,
        data_type: None,
        first: None,
        last: None,
        attributes: BTreeMap::new(),
        warnings: vec![format!("its labels cannot be read: {error}")],
    }
}
