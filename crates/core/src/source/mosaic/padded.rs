//! Files whose dimensions without labels differ in length: shorter files end in NULL.
//!
//! ```text
//!   1.nc   TEMP (N_PROF 2, N_LEVELS 3)      N_PROF  N_LEVELS 0    1    2    3     4
//!   2.nc   TEMP (N_PROF 3, N_LEVELS 5)      0 … 1            t    t    t    NULL  NULL
//!                                           2 … 4            t    t    t    t     t
//! ```
//!
//! Variables that repeat along such a dimension repeat along all of it. An index means the same in all files, so only the axis along which they are concatenated must be known: that of the option
//! `concat_dimension`, the only one whose labels differ, or the one that counts the samples of ragged arrays.

use std::sync::Arc;

use async_trait::async_trait;

use super::concat_axis::{axis_of, samples_axis};
use super::differences::labels_differ;
use super::file_arrays::FileArrays;
use super::options::MosaicOptions;
use super::own_fill::over_fills;
use crate::array::{ChunkSource, GridArray, Labels, Value};
use crate::error::{Error, Result};
use crate::format::{Layer, MemoryBudget, Placement, RepeatedCell, StoredChunk};
use crate::grid::{AxisChunks, AxisSelection, ChunkGrid, ChunkTask, ravel};
use crate::tile::{CellFormat, ObjectVersion, Objects};

/// Gives all files the length of the longest, on each dimension without labels but the one along which they are concatenated.
/// Returns whether a file has changed.
///
/// # Errors
/// `Usage` for a dimension to concatenate along that there is not; `Unsupported` for too many chunks.
pub(super) fn pad_files(files: &mut Vec<FileArrays>, options: &MosaicOptions) -> Result<bool> {
    let Some(first) = files.first() else { return Ok(false) };
    let dims = first.dims();
    let differs = |axis: &usize| {
        files.iter().any(|file| labels_differ(&dims[*axis], &file.dims()[*axis]).is_some())
    };
    let differing: Vec<usize> = (0..dims.len()).filter(differs).collect();
    let (labelled, counted): (Vec<usize>, Vec<usize>) =
        differing.into_iter().partition(|axis| dims[*axis].is_labelled());
    let along = match (&options.concat_dimension, labelled.as_slice()) {
        (Some(name), _) => axis_of(dims, name)?,
        (None, [axis]) => *axis,
        (None, []) if samples_axis(files).is_some() => samples_axis(files).unwrap_or_default(),
        (None, _) => return Ok(false),
    };
    let longest = |axis: usize| files.iter().map(|file| file.dims()[axis].len()).max();
    let padded = counted.into_iter().filter(|axis| *axis != along);
    let padded: Vec<(usize, u64)> = padded.filter_map(|it| Some((it, longest(it)?))).collect();
    if padded.is_empty() {
        return Ok(false);
    }
    let lens = padded.iter().map(|(axis, longest)| {
        let shortest = files.iter().map(|file| file.dims()[*axis].len()).min().unwrap_or_default();
        format!("\"{}\" has {shortest} to {longest} cells", files[0].dims()[*axis].name())
    });
    let (of, lens) = (&files[0].name, lens.collect::<Vec<_>>().join(", "));
    log::warn!("{of} and others: {lens}: shorter files end in NULL there");
    let pad = |file: FileArrays| {
        file.try_map(|array| {
            padded.iter().try_fold(array, |array, (axis, len)| array.padded(*axis, *len))
        })
    };
    *files = std::mem::take(files).into_iter().map(pad).collect::<Result<_>>()?;
    Ok(true)
}

impl GridArray {
    /// Returns the array with a longer axis, whose further cells are NULL unless all cells repeat along it.
    fn padded(self, axis: usize, len: u64) -> Result<Self> {
        if self.dims()[axis].len() >= len {
            return Ok(self);
        }
        let of = self.grid().clone();
        let mut shape = of.shape().to_vec();
        shape[axis] = len;
        let mut chunks = of.axis_chunks().to_vec();
        if let AxisChunks::At(borders) = &chunks[axis] {
            chunks[axis] = AxisChunks::At(borders.iter().copied().chain([len]).collect());
        }
        let grid = ChunkGrid::with_axis_chunks(&shape, chunks)?;
        let mut dims = self.dims().to_vec();
        dims[axis] = dims[axis].with_labels(Labels::indices(len));
        let (name, values) = (self.name().to_owned(), self.values().to_vec());
        let source = self.into_source();
        if let Some(source) = source.stretched(&grid, axis) {
            return Ok(Self::new(name, source, grid, dims, values, false));
        }
        let fills = values.iter().map(own_fill).collect();
        let values = values.iter().map(Value::absent).collect();
        let source = over_fills(source, of.clone(), fills);
        let source = Padded { source, of, axis };
        Ok(Self::new(name, Arc::new(source), grid, dims, values, false))
    }
}

/// Returns the cell that was never written, unless it is NULL, as padding is.
fn own_fill(value: &Value) -> Option<RepeatedCell> {
    let CellFormat { width, nullable, fill, fill_is_valid } = &value.cells;
    let is_value = !nullable || *fill_is_valid;
    is_value.then(|| match width {
        Some(width) if fill.len() == *width => RepeatedCell::new(fill.clone()),
        // Formats that store every chunk have no fill value.
        Some(width) => RepeatedCell::new(vec![0; *width]),
        None => RepeatedCell::of_any_length(fill.clone()),
    })
}

/// The chunks of an array, one axis of which is longer than stored.
#[derive(Debug)]
struct Padded {
    source: Arc<dyn ChunkSource>,
    /// The chunk grid of `source`.
    of: ChunkGrid,
    axis: usize,
}

impl Padded {
    /// Returns the task of the stored chunk; `None` if the chunk is padding.
    fn task(&self, task: &ChunkTask) -> Option<ChunkTask> {
        let chunks = self.of.chunks_per_axis();
        if task.coordinates.iter().zip(chunks).any(|(at, chunks)| at >= chunks) {
            return None;
        }
        let extents = self.of.extents(&task.coordinates);
        Some(ChunkTask {
            chunk_number: ravel(&task.coordinates, chunks),
            coordinates: task.coordinates.clone(),
            rows: extents.iter().product(),
            selection: extents.into_iter().map(AxisSelection::all).collect(),
        })
    }

    /// Returns a stored chunk in its place in a chunk that may be longer.
    fn placed(&self, stored: StoredChunk, task: &ChunkTask) -> StoredChunk {
        let extents = self.of.extents(&task.coordinates);
        if task.selection[self.axis].len() == extents[self.axis] {
            return stored;
        }
        let StoredChunk { layers, form } = stored;
        let layers = layers.into_iter().map(|layer| {
            // Both chunks begin at the same cell, so a place in one is that in the other.
            let whole = || {
                let region = extents.iter().map(|len| 0..*len).collect();
                Placement::new(region, extents.clone())
            };
            let placement = layer.placement.clone().unwrap_or_else(whole);
            Layer { placement: Some(placement), ..layer }
        });
        StoredChunk { layers: layers.collect(), form }
    }
}

#[async_trait]
impl ChunkSource for Padded {
    fn objects(&self) -> &Arc<Objects> {
        self.source.objects()
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        self.source.versions()
    }

    fn contents(&self) -> Result<Vec<ObjectVersion>> {
        self.source.contents()
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.source.memory_budget()
    }

    fn most_chunks(&self) -> u64 {
        self.source.most_chunks()
    }

    async fn explain_absence(&self, value: usize, member: u32) -> Result<Option<String>> {
        self.source.explain_absence(value, member).await
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let own: Vec<ChunkTask> = tasks.iter().filter_map(|task| self.task(task)).collect();
        let mut located = self.source.locate(&own, values).await?.into_iter();
        let chunks = tasks.iter().map(|task| match self.task(task) {
            None => Ok(vec![StoredChunk::default(); values.len()]),
            Some(_) => {
                let stored = located.next();
                let stored =
                    stored.ok_or_else(|| Error::internal("a chunk that was not located"))?;
                Ok(stored.into_iter().map(|chunk| self.placed(chunk, task)).collect())
            }
        });
        chunks.collect()
    }
}
