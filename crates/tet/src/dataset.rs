//! A dataset of a `.tet` file as a [`GridArray`]: its dimensions, its values and its stored chunks.
//!
//! ```text
//!   directory ──▶ grid, element                          ┐
//!   footer    ──▶ names and labels of dimensions         ├─▶ GridArray
//!   footer    ──▶ fill value, packing ──▶ NumberColumn   │
//!   TetDataset: locates chunks, reads zone maps          ┘
//! ```
//!
//! Labels are read here, because planning needs them. Everything about single chunks is read by queries.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::dimension::dimension;
use super::reader::TetReader;
use super::trusted_zones::TrustedZones;
use crate::bytes::{DimSpec, ZoneMaps};
use gridfusion_core::Result;
use gridfusion_core::array::{
    ChunkSource, Dimension, GridArray, ReadOptions, Remarks, Value, ValueColumn,
};
use gridfusion_core::format::{MemoryBudget, StoredChunk, ZoneBound, Zones};
use gridfusion_core::grid::{ChunkTask, Selection};
use gridfusion_core::tile::{CellFormat, Objects};

/// Opens a dataset by name, reading the labels of its dimensions.
///
/// # Errors
/// As [`TetReader::dataset_id`]; `Unsupported` or `Corrupt` if the dataset or its coordinates cannot
/// be read.
pub async fn open_dataset(
    reader: &TetReader,
    name: &str,
    options: &ReadOptions,
) -> Result<GridArray> {
    open_named(reader, name, options, &mut vec![]).await
}

/// Opens several datasets by name. Reads the labels of shared dimensions only once.
///
/// # Errors
/// As [`open_dataset`].
pub(super) async fn open_datasets(
    reader: &TetReader,
    names: &[String],
    options: &ReadOptions,
) -> Result<Vec<GridArray>> {
    let (mut known, mut arrays) = (vec![], Vec::with_capacity(names.len()));
    for name in names {
        arrays.push(open_named(reader, name, options, &mut known).await?);
    }
    Ok(arrays)
}

async fn open_named(
    reader: &TetReader,
    name: &str,
    options: &ReadOptions,
    known: &mut KnownDimensions,
) -> Result<GridArray> {
    let array = open_by_id(reader, reader.dataset_id(name)?, options, known).await;
    array.map_err(|error| error.in_file(reader.name()))
}

/// Dimensions whose labels have been read already, with their specs.
type KnownDimensions = Vec<(DimSpec, Dimension)>;

async fn open_by_id(
    reader: &TetReader,
    id: usize,
    options: &ReadOptions,
    known: &mut KnownDimensions,
) -> Result<GridArray> {
    let file = reader.tet();
    let dataset = &file.datasets()[id];
    let grid = reader.readable_grid(id)?;
    // A spec has the source of the labels, so equal specs have equal labels.
    let (specs, odd) = file.dimensions(id);
    let mut remarks = Remarks { odd, ..Remarks::default() };
    let mut dims = Vec::with_capacity(specs.len());
    for spec in specs {
        let read = known.iter().find(|(of, _)| *of == spec).map(|(_, dim)| dim.clone());
        dims.push(match read {
            Some(dim) => dim,
            None => {
                let mut of_labels = Remarks::default();
                let dim = dimension(reader, spec.clone(), options, &mut of_labels).await?;
                remarks.of_labels(dim.name(), of_labels);
                known.push((spec, dim.clone()));
                dim
            }
        });
    }
    let column = reader.column(id, options, &mut remarks)?;
    let fill = column.fill();
    let cells = CellFormat::fixed(column.element().size() as usize);
    let name = Value::name_beside(&dims, dataset.name()).to_owned();
    let value = Value::new(name, ValueColumn::Number(column), cells)
        .with_attributes(file.metadata_of(id).attrs.clone());
    let value = if file.is_coordinate(id) { value.of_labels() } else { value };
    remarks.log(&format!("{}: dataset \"{}\"", reader.name(), dataset.name()));
    let name = dataset.name().to_owned();
    let source = TetDataset {
        file: reader.clone(),
        dataset: id,
        fill,
        options: options.clone(),
        zone_maps: OnceCell::new(),
    };
    Ok(GridArray::new(name, Arc::new(source), grid, dims, vec![value], options.index_columns))
}

/// The stored chunks of one dataset.
#[derive(Debug)]
struct TetDataset {
    file: TetReader,
    dataset: usize,
    /// The element that stands for NULL.
    fill: Option<ZoneBound>,
    options: ReadOptions,
    /// Set after the first query that found them worth reading; `None` if they are absent or invalid.
    zone_maps: OnceCell<Option<Arc<dyn Zones>>>,
}

#[async_trait]
impl ChunkSource for TetDataset {
    fn objects(&self) -> &Arc<Objects> {
        self.file.objects()
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.file.tet().memory_budget()
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let chunks = tasks.iter().map(|task| task.chunk_number).collect();
        // A dataset has one value, so every entry of `values` is 0.
        let stored = self.file.locate(self.dataset, chunks).await?.into_iter();
        Ok(stored.map(|chunk| vec![chunk; values.len()]).collect())
    }

    async fn zones(&self, _: usize, _: &Selection, bytes_to_read: u64) -> Option<Arc<dyn Zones>> {
        /// Parsing a byte of JSON costs as much as searching this many payload bytes for NULLs. So zone maps of
        /// 1 MiB are read if the query would read 64 MiB of payloads.
        const RELATIVE_COST: u64 = 64;
        /// Zone maps of up to this many bytes are always read: that takes a fraction of a millisecond,
        /// once per table.
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
    /// Reads the zone maps. Queries are right without them, so an error is only a warning.
    async fn read_zone_maps(&self) -> Option<Arc<dyn Zones>> {
        match self.file.read_zone_maps(self.dataset).await.and_then(|maps| self.trusted(maps)) {
            Ok(zones) => zones,
            Err(error) => {
                log::warn!("zone maps are ignored: {error}");
                None
            }
        }
    }

    /// Adds the facts that decide which maps queries may use.
    fn trusted(&self, maps: Option<ZoneMaps>) -> Result<Option<Arc<dyn Zones>>> {
        let Some(maps) = maps else { return Ok(None) };
        let dataset = &self.file.tet().datasets()[self.dataset];
        let (grid, element) = (dataset.grid()?.clone(), dataset.element()?);
        let zones = TrustedZones::new(maps, grid, element, self.fill, &self.options);
        Ok(Some(Arc::new(zones)))
    }
}
