//! Cells in the memory of Python, or which Python computes, as the chunks of an array.
//!
//! ```text
//!   object   ├── variable in memory ──┤├── validity ──┤├─ chunk 0 ─┤├─ chunk 1 ─┤ … of a variable that is computed
//!             row-major, shared with     a byte per      one after the other, each with as many bytes
//!             numpy                      cell            as the largest chunk has
//! ```
//!
//! All variables are parts of one object. A chunk in memory is a range of its part: without a copy, if its cells follow one another.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use gridfusion::extend::{
    ByteSource, ChunkGrid, ChunkSource, ChunkTask, Codec, Layer, Location, Objects, Payload,
    Placement, StoredChunk,
};
use gridfusion::{Error, Result};
use pyo3::prelude::*;
use tokio::task::spawn_blocking;

use crate::foreign::memory;

/// Where the cells of a variable are.
pub(crate) enum Cells {
    /// In memory, row-major over the axes of the variable; and a byte per cell, which is 0 for NULL.
    Shared(Bytes, Option<Bytes>),
    /// A function of Python returns the bytes of a box, which is a list with the first and the last place behind it per axis.
    Computed(Py<PyAny>),
}

/// A variable: its axes, ascending, the bytes of a cell, and its cells.
pub(crate) struct Variable {
    pub(crate) axes: Vec<usize>,
    pub(crate) width: u64,
    pub(crate) cells: Cells,
}

/// The variables of a dataset, which locates their chunks.
#[derive(Debug)]
pub(crate) struct DatasetChunks {
    objects: Arc<Objects>,
    dataset: Arc<Dataset>,
}

/// The variables of a dataset as one object.
struct Dataset {
    name: String,
    grid: ChunkGrid,
    variables: Vec<Variable>,
    /// Where each variable begins in the object, and the end.
    starts: Vec<u64>,
}

impl DatasetChunks {
    /// Makes the source of variables over `grid`. Errors call the dataset `name`.
    ///
    /// # Errors
    /// If the variables have not as many bytes as cells, or too many.
    pub(crate) fn try_new(name: String, grid: ChunkGrid, variables: Vec<Variable>) -> Result<Self> {
        let too_large = || Error::unsupported("a dataset of more than 2^64 bytes");
        let mut dataset = Dataset { name, grid, variables, starts: vec![0] };
        let mut end = 0_u64;
        for variable in &dataset.variables {
            let len = dataset.len(variable).ok_or_else(too_large)?;
            if let Cells::Shared(bytes, validity) = &variable.cells {
                let cells = len / (variable.width + u64::from(validity.is_some())).max(1);
                let found = (bytes.len() as u64, validity.as_ref().map(|it| it.len() as u64));
                if found != (cells * variable.width, validity.as_ref().map(|_| cells)) {
                    return Err(Error::internal(format!("{found:?} bytes for {cells} cells")));
                }
            }
            end = end.checked_add(len).ok_or_else(too_large)?;
            dataset.starts.push(end);
        }
        let dataset = Arc::new(dataset);
        let source: Arc<dyn ByteSource> = Arc::<Dataset>::clone(&dataset);
        Ok(Self { objects: Arc::new(Objects::one(source)), dataset })
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dataset {} of {:?}", self.name, self.grid.shape())
    }
}

impl Dataset {
    /// Returns the bytes of a variable in the object; `None` if they are too many.
    fn len(&self, variable: &Variable) -> Option<u64> {
        let shape = self.grid.shape();
        match &variable.cells {
            Cells::Shared(_, validity) => {
                let mut axes = variable.axes.iter();
                let cells = axes.try_fold(1_u64, |all, axis| all.checked_mul(*shape.get(*axis)?));
                cells?.checked_mul(variable.width + u64::from(validity.is_some()))
            }
            Cells::Computed(_) => self.stride(variable)?.checked_mul(self.grid.chunks()),
        }
    }

    /// Returns the bytes of the largest chunk.
    fn stride(&self, variable: &Variable) -> Option<u64> {
        self.grid.chunk_shape().try_fold(variable.width, u64::checked_mul)
    }

    fn chunk(&self, number: usize, task: &ChunkTask) -> Result<StoredChunk> {
        let missing = || Error::internal(format!("no variable {number}"));
        let (variable, start) =
            self.variables.get(number).zip(self.starts.get(number)).ok_or_else(missing)?;
        let layer = match &variable.cells {
            Cells::Shared(bytes, validity) => {
                let (cells, placement) = self.place(&variable.axes, task);
                let payload = |start: u64, width: u64| {
                    let at = start + cells.start * width..start + cells.end * width;
                    let len = at.end - at.start;
                    Payload::new(Location::new("", at), len, Codec::Raw)
                };
                let validity = validity.as_ref().map(|_| payload(start + bytes.len() as u64, 1));
                Layer::whole(payload(*start, variable.width))
                    .with_placement(placement)
                    .with_validity(validity)
            }
            Cells::Computed(_) => {
                let stride = self.stride(variable).unwrap_or_default();
                let (at, len) = (start + task.chunk_number * stride, task.cells() * variable.width);
                Layer::whole(Payload::new(Location::new("", at..at + len), len, Codec::Raw))
            }
        };
        Ok(StoredChunk::new(vec![layer]))
    }

    /// Returns the cells of a variable in memory that hold a chunk, and where in them it is; `None` if they are the chunk.
    fn place(&self, axes: &[usize], task: &ChunkTask) -> (Range<u64>, Option<Placement>) {
        let shape = self.grid.shape();
        let coordinates = task.coordinates.iter().enumerate();
        let ranges: Vec<Range<u64>> =
            coordinates.map(|(axis, chunk)| self.grid.axis_range(axis, *chunk)).collect();
        let extent = |axis: usize| ranges[axis].end - ranges[axis].start;
        if axes.len() == shape.len() {
            // The cells follow one another if all axes behind the first one with several are whole.
            let several = axes.iter().position(|axis| extent(*axis) > 1).unwrap_or(axes.len());
            if axes.iter().skip(several + 1).all(|axis| extent(*axis) == shape[*axis]) {
                let first = axes.iter().fold(0, |at, axis| at * shape[*axis] + ranges[*axis].start);
                return (first..first + task.cells(), None);
            }
        }
        // The rows along the first axis of the variable that hold the chunk.
        let (mut tile, mut origin) = (vec![1; shape.len()], vec![0; shape.len()]);
        let mut cells = 0..1;
        if let Some((first, others)) = axes.split_first() {
            for axis in others {
                (tile[*axis], origin[*axis]) = (shape[*axis], ranges[*axis].start);
            }
            tile[*first] = extent(*first);
            let row: u64 = others.iter().map(|axis| shape[*axis]).product();
            cells = ranges[*first].start * row..ranges[*first].end * row;
        }
        let region = (0..shape.len()).map(|axis| 0..extent(axis)).collect();
        (cells, Some(Placement::new(region, tile).with_origin(origin)))
    }

    /// Returns the bytes of a range within a chunk. `last` is the chunk that was computed last, with its place in the object.
    async fn bytes(&self, range: &Range<u64>, last: &mut Option<(u64, Bytes)>) -> Result<Bytes> {
        let beyond = || Error::internal(format!("the bytes {range:?} of {self:?}"));
        let number = self.starts.partition_point(|start| *start <= range.start);
        let number = number.checked_sub(1).ok_or_else(beyond)?;
        let variable = self.variables.get(number).ok_or_else(beyond)?;
        let start = self.starts[number];
        match &variable.cells {
            Cells::Shared(bytes, validity) => {
                let behind = start + bytes.len() as u64;
                match validity {
                    Some(validity) if range.start >= behind => part(validity, behind, range),
                    _ => part(bytes, start, range),
                }
            }
            Cells::Computed(function) => {
                let stride = self.stride(variable).filter(|it| *it > 0).ok_or_else(beyond)?;
                let chunk = (range.start - start) / stride;
                let at = start + chunk * stride;
                if let Some((_, bytes)) = last.as_ref().filter(|last| last.0 == at) {
                    return part(bytes, at, range).ok_or_else(beyond);
                }
                let coordinates = self.grid.chunk_coordinates(chunk);
                let places = coordinates.iter().enumerate().map(|(axis, chunk)| {
                    let range = self.grid.axis_range(axis, *chunk);
                    (range.start, range.end)
                });
                let computed = computed(function, places.collect()).await;
                let bytes = computed.map_err(|error| error.in_file(&self.name))?;
                let cells: u64 = self.grid.extents(&coordinates).iter().product();
                if bytes.len() as u64 != cells * variable.width {
                    let found = bytes.len();
                    return Err(Error::internal(format!("{found} bytes for {cells} cells")));
                }
                let found = part(&bytes, at, range);
                *last = Some((at, bytes));
                found
            }
        }
        .ok_or_else(beyond)
    }
}

/// Returns a range of an object, of which `bytes` begin at `start`.
fn part(bytes: &Bytes, start: u64, range: &Range<u64>) -> Option<Bytes> {
    let (from, to) = (range.start.checked_sub(start)?, range.end.checked_sub(start)?);
    let is_within = from <= to && to <= bytes.len() as u64;
    is_within.then(|| bytes.slice(from as usize..to as usize))
}

/// Calls a function of Python on a thread that may wait for the interpreter.
async fn computed(function: &Py<PyAny>, places: Vec<(u64, u64)>) -> Result<Bytes> {
    let Some(function) = Python::try_attach(|py| function.clone_ref(py)) else {
        return Err(Error::usage("Python ends"));
    };
    let call = move || {
        Python::try_attach(|py| {
            let bytes = function.bind(py).call1((places,)).and_then(|it| memory(&it));
            // The text of an exception needs the interpreter too.
            bytes.map_err(|error| {
                Error::io("its cells cannot be computed", io::Error::other(error.to_string()))
            })
        })
    };
    let called = spawn_blocking(call).await;
    called.ok().flatten().unwrap_or_else(|| Err(Error::usage("Python ends")))
}

#[async_trait]
impl ByteSource for Dataset {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.starts.last().copied().unwrap_or_default()
    }

    fn is_resident(&self) -> bool {
        self.variables.iter().all(|it| matches!(it.cells, Cells::Shared(..)))
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let mut all = Vec::with_capacity(ranges.len());
        let mut last = None;
        for range in ranges {
            all.push(self.bytes(range, &mut last).await?);
        }
        Ok(all)
    }
}

#[async_trait]
impl ChunkSource for DatasetChunks {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    fn axes_of(&self, value: usize) -> Option<Vec<usize>> {
        let axes = &self.dataset.variables.get(value)?.axes;
        (axes.len() < self.dataset.grid.rank()).then(|| axes.clone())
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let of_task = |task: &ChunkTask| {
            values.iter().map(|value| self.dataset.chunk(*value, task)).collect()
        };
        tasks.iter().map(of_task).collect()
    }
}
