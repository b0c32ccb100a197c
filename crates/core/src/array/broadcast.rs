//! [`GridArray::broadcast`]: an array that is repeated along dimensions that it lacks.
//!
//! ```text
//!   lat (y, x)      chunk (1, 0)  ◀──┬──  chunk (0, 1, 0)      lat (time, y, x)
//!                                    ├──  chunk (1, 1, 0)
//!                                    └──  chunk (2, 1, 0)
//! ```
//!
//! The stored tile has one element along each dimension that it lacks, which decoding repeats. So nothing is stored
//! twice, but a chunk is located and decoded anew for each chunk that shows it.

use std::sync::Arc;

use arrow::array::ArrayRef;
use async_trait::async_trait;

use super::chunk_source::ChunkSource;
use super::dimension::Dimension;
use super::grid_array::GridArray;
use super::value_bounds::ValueBounds;
use crate::error::{Error, Result};
use crate::format::{Layer, MemoryBudget, Placement, StorageOrder, StoredChunk, Zones};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, Selection, ravel};
use crate::tile::{ObjectVersion, Objects};

impl GridArray {
    /// Repeats the array along the dimensions that only `like` has, and puts its axes in the order of `like`. On the new
    /// axes, its chunks are those of `like`.
    ///
    /// # Errors
    /// `Usage` if a dimension of this array is not one of `like`, with the same labels.
    pub fn broadcast(self, like: &Self) -> Result<Self> {
        self.over(like.dims(), like.grid(), like.name())
    }

    /// As [`GridArray::broadcast`], for dimensions and chunks that `of` has, a name for messages.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn over(self, dims: &[Dimension], chunks: &ChunkGrid, of: &str) -> Result<Self> {
        let mut own = vec![None; dims.len()];
        for (axis, dim) in self.dims().iter().enumerate() {
            let place = dims.iter().position(|it| same(it, dim));
            let free = place.and_then(|place| own.get_mut(place)).filter(|own| own.is_none());
            let Some(free) = free else {
                let (name, dim) = (self.name(), dim.name());
                let message = format!(
                    "\"{dim}\" of \"{name}\" is not a dimension of \"{of}\", or has other labels"
                );
                return Err(Error::usage(message));
            };
            *free = Some(axis);
        }
        if own.iter().copied().eq((0..own.len()).map(Some)) {
            return Ok(self);
        }
        let axes = own.iter().enumerate().map(|(axis, own)| match own {
            Some(own) => self.grid().axis_chunks()[*own].clone(),
            None => chunks.axis_chunks()[axis].clone(),
        });
        let grid = ChunkGrid::with_axis_chunks(chunks.shape(), axes.collect())?;
        let (name, values) = (self.name().to_owned(), self.values().to_vec());
        let of = self.grid().clone();
        let shown = grid.clone();
        let source = Broadcast { source: self.into_source(), grid: of, shown, own };
        Ok(Self::new(name, Arc::new(source), grid, dims.to_vec(), values, false))
    }
}

/// Whether two dimensions have the same name and labels.
fn same(a: &Dimension, b: &Dimension) -> bool {
    a.name() == b.name() && a.len() == b.len() && a.labels().same(b.labels())
}

/// The chunks of an array that is repeated along some axes.
#[derive(Debug)]
struct Broadcast {
    source: Arc<dyn ChunkSource>,
    /// The chunk grid of `source`.
    grid: ChunkGrid,
    /// The chunk grid of the repeated array.
    shown: ChunkGrid,
    /// For each axis, the axis of `source`; `None` if it is repeated along that.
    own: Vec<Option<usize>>,
}

impl Broadcast {
    /// Returns the task of the chunk that `task` shows.
    fn task(&self, task: &ChunkTask) -> ChunkTask {
        let rank = self.grid.rank();
        let (mut coordinates, mut selection) = (vec![0; rank], vec![AxisSelection::all(0); rank]);
        for (axis, own) in self.own.iter().enumerate() {
            if let Some(own) = own {
                coordinates[*own] = task.coordinates[axis];
                selection[*own] = task.selection[axis].clone();
            }
        }
        let rows = selection.iter().map(AxisSelection::count).product();
        let chunk_number = ravel(&coordinates, self.grid.chunks_per_axis());
        ChunkTask { chunk_number, coordinates, selection, rows }
    }

    /// Returns the layers of a chunk of `source`, repeated to the `extents` of a chunk.
    fn repeated(&self, stored: StoredChunk, extents: &[u64]) -> Result<StoredChunk> {
        let StoredChunk { layers, form } = stored;
        let is_as_stored = self.keeps_cells(extents);
        let layers = layers.into_iter().map(|layer| {
            if is_as_stored && layer.placement.is_none() {
                return Ok(layer);
            }
            let placement = Some(self.placement(layer.placement.as_ref(), extents)?);
            Ok(Layer { placement, ..layer })
        });
        Ok(StoredChunk { layers: layers.collect::<Result<_>>()?, form })
    }

    /// Whether the cells of a chunk are those of a chunk of `source`, in the same order: new axes have one element.
    fn keeps_cells(&self, extents: &[u64]) -> bool {
        let is_one = |(own, len): (&Option<usize>, &u64)| own.is_some() || *len == 1;
        self.own.iter().zip(extents).all(is_one) && self.own.iter().flatten().is_sorted()
    }

    /// Returns the place of a layer; `of` is its place in the chunk of `source`.
    fn placement(&self, of: Option<&Placement>, extents: &[u64]) -> Result<Placement> {
        let rank = extents.len();
        let (mut region, mut tile_shape) = (Vec::with_capacity(rank), Vec::with_capacity(rank));
        let mut origin = Vec::with_capacity(rank);
        for (own, len) in self.own.iter().zip(extents) {
            let (cells, stored, first) = match (own, of) {
                (None, _) => (0..*len, 1, 0),
                (Some(_), None) => (0..*len, *len, 0),
                (Some(own), Some(of)) => {
                    (of.region[*own].clone(), of.tile_shape[*own], of.origin[*own])
                }
            };
            region.push(cells);
            tile_shape.push(stored);
            origin.push(first);
        }
        let order = of.map_or(StorageOrder::RowMajor, |of| of.order.clone());
        Ok(Placement { region, tile_shape, origin, order: self.order(&order)? })
    }

    /// Returns the order of all axes, from the order of those of `source`. Axes of one element may be anywhere.
    fn order(&self, of: &StorageOrder) -> Result<StorageOrder> {
        let mut place = vec![0; self.grid.rank()];
        let mut axes = Vec::with_capacity(self.own.len());
        for (axis, own) in self.own.iter().enumerate() {
            match own {
                Some(own) => place[*own] = axis,
                None => axes.push(axis),
            }
        }
        let stored = of.fastest_first(place.len()).unwrap_or_default();
        axes.extend(stored.into_iter().rev().map(|own| place[own]));
        let order = StorageOrder::permuted(axes);
        order.ok_or_else(|| Error::internal("the order of a tile has another rank than its array"))
    }
}

#[async_trait]
impl ChunkSource for Broadcast {
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

    fn axes_of(&self, value: usize) -> Option<Vec<usize>> {
        let of_source = self.source.axes_of(value);
        let differs = |own: &usize| of_source.as_ref().is_none_or(|axes| axes.contains(own));
        let axes = self.own.iter().enumerate();
        Some(
            axes.filter(|(_, own)| own.as_ref().is_some_and(differs))
                .map(|(axis, _)| axis)
                .collect(),
        )
    }

    fn stretched(&self, grid: &ChunkGrid, axis: usize) -> Option<Arc<dyn ChunkSource>> {
        let repeats = self.own.get(axis)?.is_none();
        let source = Arc::clone(&self.source);
        let (of, shown, own) = (self.grid.clone(), grid.clone(), self.own.clone());
        repeats.then(|| Arc::new(Self { source, grid: of, shown, own }) as Arc<dyn ChunkSource>)
    }

    async fn explain_absence(&self, value: usize, member: u32) -> Result<Option<String>> {
        self.source.explain_absence(value, member).await
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let own: Vec<ChunkTask> = tasks.iter().map(|task| self.task(task)).collect();
        let stored = self.source.locate(&own, values).await?;
        let repeated = stored.into_iter().zip(tasks).map(|(stored, task)| {
            let extents: Vec<u64> = task.selection.iter().map(AxisSelection::len).collect();
            stored.into_iter().map(|chunk| self.repeated(chunk, &extents)).collect()
        });
        repeated.collect()
    }

    /// Returns the statistics of the chunks of `source` if the numbers of its chunks are those of the chunks here.
    async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        let own: Vec<usize> = self.own.iter().flatten().copied().collect();
        let is_one =
            |(own, axis): (&Option<usize>, &AxisSelection)| own.is_some() || axis.len() == 1;
        if !own.is_sorted() || !self.own.iter().zip(selection.axes()).all(is_one) {
            return None;
        }
        let mut of_source = Selection::all(self.grid.shape());
        for (axis, own) in self.own.iter().enumerate() {
            if let Some(own) = own {
                of_source.restrict(*own, &selection.axes()[axis]);
            }
        }
        self.source.zones(value, &of_source, bytes_to_read).await
    }

    async fn value_bounds(
        &self,
        value: usize,
        selection: &Selection,
    ) -> Option<Arc<dyn ValueBounds>> {
        let mut of_source = Selection::all(self.grid.shape());
        for (axis, own) in self.own.iter().enumerate() {
            if let Some(own) = own {
                of_source.restrict(*own, &selection.axes()[axis]);
            }
        }
        let source = self.source.value_bounds(value, &of_source).await?;
        let (grid, own) = (self.grid.clone(), self.own.clone());
        let shown = self.shown.clone();
        Some(Arc::new(BroadcastBounds { source, grid, shown, own }))
    }
}

/// The bounds of the chunks of an array that is repeated along some axes.
#[derive(Debug)]
struct BroadcastBounds {
    source: Arc<dyn ValueBounds>,
    /// The chunk grid of `source`.
    grid: ChunkGrid,
    /// The chunk grid of the repeated array.
    shown: ChunkGrid,
    own: Vec<Option<usize>>,
}

impl ValueBounds for BroadcastBounds {
    fn bounds(&self, chunks: &[u64]) -> Result<(ArrayRef, ArrayRef)> {
        let own = chunks.iter().map(|chunk| {
            let mut coordinates = vec![0; self.grid.rank()];
            let of_axes = self.own.iter().zip(self.shown.chunk_coordinates(*chunk));
            for (own, coordinate) in of_axes {
                if let Some(own) = own {
                    coordinates[*own] = coordinate;
                }
            }
            ravel(&coordinates, self.grid.chunks_per_axis())
        });
        self.source.bounds(&own.collect::<Vec<_>>())
    }
}
