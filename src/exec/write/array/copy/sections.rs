//! [`Sections`]: the cells of a copied array, a few rows of chunks of the new one at a time.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use gridfusion_core::write::{BoxAxis, ChunkBuffers, NewArray};

use super::super::new_store::{ChunkRows, CutChunks, cell_bytes, reserve};
use super::section_reader::{SectionReader, StoredBox};
use super::{CopiedArray, GridCellsExec};
use crate::exec::GridScanExec;
use crate::exec::metrics::ScanMetrics;
use crate::grid::{AxisSelection, Selection};
use crate::plan::{ScanPlan, ScanRequest};

/// The most bytes of cells that are read before they are written.
const SECTION_BYTES: u64 = 256 << 20;

/// How often each chunk may be read on average. Rows that are sorted take longer than reading compressed chunks that often.
const MOST_READS: u64 = 16;

/// Returns the bytes of cells that a section may have.
pub(super) fn section_bytes(scan: &GridScanExec) -> u64 {
    // The chunks that are written take as much again.
    SECTION_BYTES.min(scan.budget() / 2)
}

/// The sizes that tell how often chunks are read.
#[derive(Debug)]
pub(super) struct ReadCosts {
    /// The cells that are copied.
    pub(super) cells: u64,
    /// The indices of the first dimension of the new array.
    pub(super) rows: u64,
    /// The bytes of all variables of a cell.
    pub(super) cell_bytes: u64,
    /// The indices that a chunk has along the axis of that dimension.
    pub(super) chunk_len: u64,
}

impl ReadCosts {
    /// Whether chunks are read only a few times, if sections have so many bytes.
    pub(super) fn are_worthwhile(&self, section_bytes: u64) -> bool {
        let row_bytes = (self.cells / self.rows.max(1)).saturating_mul(self.cell_bytes);
        let rows = (section_bytes / row_bytes.max(1)).max(1);
        rows >= self.rows || self.chunk_len.div_ceil(rows) <= MOST_READS
    }
}

/// The cells of a copied array, in the order of rows of chunks.
pub(in crate::exec::write::array) struct Sections {
    copied: Arc<CopiedArray>,
    /// Per dimension, the index in the new array of each selected index.
    indices: Vec<Arc<[u64]>>,
    /// The selected indices along the first dimension with their indices in the new array, in the order of these.
    order: Vec<(u64, u64)>,
    /// The first entry of `order` of the next section.
    next: usize,
    metrics: Vec<Arc<ScanMetrics>>,
    context: Arc<TaskContext>,
}

/// A few rows of chunks.
struct Section {
    /// The coordinates of chunks along the first axis.
    rows: Range<u64>,
    /// The selected cells of the array that is read.
    selection: Selection,
    /// Per axis of that array, the dimension and the index in the new array of each selected index.
    axes: Vec<Option<(usize, Arc<[u64]>)>>,
}

impl Sections {
    /// Begins to copy cells to an array in which `indices` are the places of the labels of each dimension.
    pub(in crate::exec::write::array) fn new(
        cells: &GridCellsExec,
        indices: Vec<Vec<u64>>,
        context: &Arc<TaskContext>,
    ) -> Self {
        let copied = Arc::clone(cells.copied());
        let first = &copied.scan.plan().selection().axes()[copied.axes[0]];
        let selected = first.ranges().iter().flat_map(Range::clone);
        let mut order: Vec<(u64, u64)> = selected.zip(indices[0].iter().copied()).collect();
        order.sort_unstable_by_key(|(_, at)| *at);
        let metrics = cells.metrics_of(context.session_config().target_partitions().max(1));
        let indices = indices.into_iter().map(Into::into).collect();
        Self { copied, indices, order, next: 0, metrics, context: Arc::clone(context) }
    }

    /// Returns the next rows of chunks with cells, and reserves their memory: as many as it has room for, and at least one.
    fn next_section(
        &mut self,
        array: &NewArray,
        reservation: &MemoryReservation,
    ) -> Result<Option<Section>> {
        let mut most = section_bytes(&self.copied.scan);
        while let Some((rows, end)) = self.next_rows(array, most) {
            let bytes = cell_bytes(array, &rows);
            // The cells, and their chunks.
            match reserve(reservation, 2 * bytes) {
                Err(_) if rows.end - rows.start > 1 => most = bytes / 2,
                Err(error) => return Err(error),
                Ok(()) => {
                    let section = self.section(rows, self.next..end);
                    self.next = end;
                    return Ok(Some(section));
                }
            }
        }
        Ok(None)
    }

    /// Returns the next rows of chunks with cells, of so many bytes unless it is a single one, and the end of their entries.
    fn next_rows(&self, array: &NewArray, most: u64) -> Option<(Range<u64>, usize)> {
        let (_, first) = *self.order.get(self.next)?;
        let source = self.copied.scan.array().grid();
        let axis = self.copied.axes[0];
        let mut rows = array.grid().chunk_of(0, first)..array.grid().chunk_of(0, first);
        let (mut end, mut aligned) = (self.next, None);
        while let Some((_, at)) = self.order.get(end) {
            let row = array.grid().chunk_of(0, *at);
            let longer = rows.start..row + 1;
            // Rows of chunks in between that get no cells are not touched.
            let is_next = row == rows.end && cell_bytes(array, &longer) <= most;
            if !rows.is_empty() && !is_next {
                break;
            }
            rows = longer;
            let beyond = array.grid().axis_range(0, row).end;
            end += self.order[end..].partition_point(|(_, at)| *at < beyond);
            // A section that ends where chunks end needs no chunk that the next one needs, too.
            let chunk = |entry: usize| source.chunk_of(axis, self.order[entry].0);
            if end == self.order.len() || chunk(end) != chunk(end - 1) {
                aligned = Some((rows.clone(), end));
            }
        }
        if let Some((shorter, to)) =
            aligned.filter(|(_, to)| 2 * (to - self.next) >= end - self.next)
        {
            (rows, end) = (shorter, to);
        }
        Some((rows, end))
    }

    fn section(&self, rows: Range<u64>, entries: Range<usize>) -> Section {
        let scanned = self.copied.scan.plan().selection().axes();
        let mut selection = scanned.to_vec();
        let mut axes = vec![None; scanned.len()];
        for (dimension, (axis, indices)) in self.copied.axes.iter().zip(&self.indices).enumerate() {
            if dimension > 0 {
                axes[*axis] = Some((dimension, Arc::clone(indices)));
                continue;
            }
            let mut entries = self.order[entries.clone()].to_vec();
            entries.sort_unstable();
            let selected = entries.iter().map(|(selected, _)| *selected..selected + 1);
            selection[*axis] = AxisSelection::from_ranges(scanned[*axis].len(), selected);
            axes[*axis] = Some((dimension, entries.into_iter().map(|(_, at)| at).collect()));
        }
        Section { rows, selection: Selection::from_axes(selection), axes }
    }

    fn reader(&self, section: &Section) -> Result<SectionReader> {
        let scan = &self.copied.scan;
        let request = ScanRequest {
            selection: section.selection.clone(),
            masks: vec![],
            limit: None,
            partitions: self.metrics.len(),
            declares_range: false,
        };
        let plan = Arc::new(ScanPlan::new(scan.array().grid().clone(), request)?);
        Ok(SectionReader::new(&self.copied, &plan, &self.metrics, &self.context))
    }
}

impl Section {
    /// Returns the axes of a box in the new array.
    fn axes_of<'a>(&'a self, of_box: &StoredBox) -> Vec<BoxAxis<'a>> {
        let axes = self.axes.iter().map(Option::as_ref).zip(&of_box.positions);
        let axes = axes.filter_map(|(axis, positions)| {
            let (dimension, indices) = axis?;
            Some(BoxAxis { axis: *dimension, indices: &indices[positions.clone()] })
        });
        axes.collect()
    }
}

#[async_trait]
impl ChunkRows for Sections {
    async fn next(
        &mut self,
        array: &NewArray,
        reservation: &MemoryReservation,
    ) -> Result<Option<CutChunks>> {
        let Some(section) = self.next_section(array, reservation)? else { return Ok(None) };
        let mut buffers = ChunkBuffers::new(array, section.rows.clone());
        let mut reader = self.reader(&section)?;
        while let Some(of_box) = reader.next().await? {
            buffers.put(&section.axes_of(&of_box), &of_box.columns)?;
        }
        Ok(Some(Box::new(|| Ok(buffers.finish()?))))
    }
}
