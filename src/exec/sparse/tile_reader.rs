//! [`TileReader`]: reads tiles, column by column, and returns their selected rows.
//!
//! ```text
//!   coordinates that filters use ─▶ cells inside ─▶ (merge) ─▶ not deleted ─▶ variables that filters use
//!                                                                └─▶ all other columns, if a cell is left
//! ```
//!
//! A tile without a selected cell costs only the columns that were needed to find this out.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};

use super::filters::RowFilter;
use super::metrics::SparseMetrics;
use super::open_tile::OpenTile;
use super::plan::{SparsePlan, TileTask};
use super::pruner::Pruner;
use crate::array::{CellKeys, SparseArray};
use crate::error::Error;
use crate::format::{Payload, Scratch, StoredChunk};
use crate::tile::{Request, Tile};

/// A reader of the tiles of one partition.
pub(super) struct TileReader {
    pub(super) array: Arc<SparseArray>,
    pub(super) plan: Arc<SparsePlan>,
    /// Columns of the table, in output order.
    projection: Vec<usize>,
    /// The schema of the output.
    schema: SchemaRef,
    pub(super) metrics: SparseMetrics,
    /// Skips tiles and rows that operators above no longer need.
    pub(super) pruner: Pruner,
    /// Contexts of decompressors that are not in use.
    scratch: Mutex<Vec<Scratch>>,
    /// Accounts for the tiles that are read.
    memory: MemoryReservation,
    /// Whether the memory pool has a limit.
    is_limited: bool,
}

/// The bytes that are accounted per cell for finding out which cells were deleted: four numbers.
const CONDITION_BYTES: usize = 32;

/// Selected rows of a tile: a batch, and the rows of it that are selected; `None` for all.
pub(super) type SelectedRows = (RecordBatch, Option<BooleanArray>);

impl TileReader {
    pub(super) fn new(
        array: Arc<SparseArray>,
        plan: Arc<SparsePlan>,
        (projection, schema): (Vec<usize>, SchemaRef),
        metrics: SparseMetrics,
        pruner: Pruner,
        consumer: String,
        context: &TaskContext,
    ) -> Self {
        let pool = context.memory_pool();
        let is_limited = matches!(pool.memory_limit(), MemoryLimit::Finite(_));
        let memory = MemoryConsumer::new(consumer).register(pool);
        let scratch = Mutex::default();
        Self { array, plan, projection, schema, metrics, pruner, scratch, memory, is_limited }
    }

    /// Reads the locations of all tiles of the partition at once.
    pub(super) async fn prepare(&self, fragments: &[usize]) -> Result<()> {
        let filters = &self.plan.filters;
        let used = |filter: &Option<RowFilter>| {
            filter.as_ref().map_or(vec![], |filter| filter.columns.clone())
        };
        let mut columns = self.projection.clone();
        columns.extend(used(&filters.dimensions));
        columns.extend(used(&filters.values));
        if self.plan.counts.merged > 0 {
            columns.extend(0..self.array.rank());
        }
        columns.sort_unstable();
        columns.dedup();
        Ok(self.array.source().prepare(fragments, &columns).await?)
    }

    /// Returns the selected rows of a tile that shares no coordinates with others; `None` if there are none.
    pub(super) async fn scan(&self, task: TileTask) -> Result<Option<SelectedRows>> {
        let mut open = self.open(task);
        if let Some(filter) = &self.plan.filters.dimensions
            && !task.is_inside
        {
            self.filter_coordinates(&mut open, filter).await?;
        }
        if open.count() > 0 {
            self.select_times(&mut open, false).await?;
        }
        self.finish(open).await
    }

    /// Opens a tile for merging: with the filters over dimensions and the time window applied. Returns the
    /// keys of its cells too; `None` if no cell is selected.
    pub(super) async fn open_for_merge(
        &self,
        task: TileTask,
        range: Option<&RowFilter>,
    ) -> Result<Option<(OpenTile, CellKeys)>> {
        let mut open = self.open(task);
        if u32::try_from(open.rows).is_err() {
            let message = format!("merging tiles of {} cells; the most are 2^32", open.rows);
            return Err(self.array.objects().named(Error::unsupported(message)).into());
        }
        let axes: Vec<usize> = (0..self.array.rank()).collect();
        self.read(&mut open, &axes).await?;
        let tiles = open.decoded(&axes)?;
        let filter = self.plan.filters.dimensions.as_ref().filter(|_| !task.is_inside);
        for filter in filter.into_iter().chain(range.filter(|_| task.is_cut)) {
            self.filter_coordinates(&mut open, filter).await?;
        }
        if open.count() > 0 {
            self.select_times(&mut open, true).await?;
        }
        if open.count() == 0 {
            return Ok(None);
        }
        let _timer = self.metrics.time_merge.timer();
        let keys = self.array.source().keys(&tiles)?;
        open.memory.try_grow(keys.bytes())?;
        Ok(Some((open, keys)))
    }

    /// Applies deletions and the remaining filters, and reads the columns of the output; `None` if no row is
    /// left.
    pub(super) async fn finish(&self, mut open: OpenTile) -> Result<Option<SelectedRows>> {
        let source = self.array.source();
        if open.count() > 0 && source.fragments()[open.task.tile.fragment].may_be_deleted {
            // The source decodes the fields of conditions; their number is not known here.
            open.memory.try_grow(open.rows.saturating_mul(CONDITION_BYTES))?;
            if let Some(kept) = source.kept(open.task.tile, open.times.as_ref()).await? {
                self.metrics.cells_deleted.add(open.restrict(&kept));
            }
        }
        if open.count() > 0
            && let Some(filter) = &self.plan.filters.values
        {
            let removed = self.filter(&mut open, filter).await?;
            self.metrics.cells_filtered.add(removed);
        }
        if open.count() > 0
            && let Some(filter) = self.pruner.row_filter()?
        {
            let removed = self.filter(&mut open, &filter).await?;
            self.metrics.cells_filtered.add(removed);
        }
        if open.count() == 0 {
            return Ok(None);
        }
        self.read(&mut open, &self.projection).await?;
        let _timer = self.metrics.baseline.elapsed_compute().timer();
        let options = RecordBatchOptions::new().with_row_count(Some(open.rows));
        let columns = open.values(&self.array, &self.projection)?;
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        Ok(Some((batch, open.selected.map(|selected| BooleanArray::new(selected, None)))))
    }

    /// Whether the memory pool has a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Returns a reservation of no bytes, for memory that belongs to no tile.
    pub(super) fn new_reservation(&self) -> MemoryReservation {
        self.memory.new_empty()
    }

    fn open(&self, task: TileTask) -> OpenTile {
        let fragment = &self.array.source().fragments()[task.tile.fragment];
        let rows = usize::try_from(fragment.cells_of(task.tile.tile)).unwrap_or(usize::MAX);
        OpenTile::new(task, rows, self.array.schema().fields().len(), self.memory.new_empty())
    }

    async fn filter_coordinates(&self, open: &mut OpenTile, filter: &RowFilter) -> Result<()> {
        let removed = self.filter(open, filter).await?;
        self.metrics.cells_outside.add(removed);
        Ok(())
    }

    /// Restricts a tile to the rows that a filter keeps. Returns the number of rows that it removes.
    async fn filter(&self, open: &mut OpenTile, filter: &RowFilter) -> Result<usize> {
        self.read(open, &filter.columns).await?;
        let _timer = self.metrics.baseline.elapsed_compute().timer();
        let values = open.values(&self.array, &filter.columns)?;
        let cells = filter.evaluate(values, open.rows)?;
        Ok(open.restrict(&cells))
    }

    /// Restricts a tile to cells in the time window. With `always`, reads the times even if all cells are.
    async fn select_times(&self, open: &mut OpenTile, always: bool) -> Result<()> {
        let source = self.array.source();
        let fragment = &source.fragments()[open.task.tile.fragment];
        // Deletions compare times, too.
        let needed = fragment.may_be_outside || fragment.may_be_deleted || always;
        if !fragment.has_times || !needed {
            return Ok(());
        }
        open.memory.try_grow(open.rows.saturating_mul(size_of::<u64>()))?;
        let times = source.times(open.task.tile).await?;
        // By their names, all cells of other fragments are in the window, whatever their times.
        if let Some(times) = times.as_ref().filter(|_| fragment.may_be_outside) {
            self.metrics.cells_outside.add(open.restrict(&times.inside));
        }
        open.times = times;
        Ok(())
    }

    /// Reads those of `columns` that are missing.
    async fn read(&self, open: &mut OpenTile, columns: &[usize]) -> Result<()> {
        let mut columns = open.missing(columns);
        columns.sort_unstable();
        columns.dedup();
        if columns.is_empty() {
            return Ok(());
        }
        let (array, tile) = (&self.array, open.task.tile);
        let stored = array.source().locate(tile, &columns).await?;
        open.memory.try_grow(self.bytes_held(open, &columns, &stored))?;
        let timer = self.metrics.time_fetch.timer();
        let fetched = array.objects().fetch(&Request::for_chunks(&stored)).await?;
        timer.done();
        let payloads: Vec<_> = fetched.into_iter().flatten().collect();
        self.metrics.bytes_read.add(payloads.iter().map(bytes::Bytes::len).sum());

        let timer = self.metrics.time_decode.timer();
        let mut scratch = self.take_scratch();
        let mut payloads = payloads.into_iter();
        let decode = columns.iter().zip(&stored).map(|(&column, stored)| {
            array.decode(tile, column, stored, &mut payloads, &mut scratch)
        });
        let tiles = decode.collect::<crate::Result<Vec<Tile>>>();
        let tiles = match tiles {
            Ok(tiles) => tiles,
            Err(error) => {
                // A file that is being written looks damaged. If it has changed, that is the error.
                self.check_unchanged(&stored)?;
                return Err(error.into());
            }
        };
        self.metrics.bytes_decoded.add(tiles.iter().map(Tile::len_bytes).sum());
        columns.iter().zip(tiles).for_each(|(&column, decoded)| open.set(column, decoded));
        timer.done();
        self.put_scratch(scratch);
        self.check_unchanged(&stored)?;
        if open.is_first_read() {
            self.metrics.tiles_read.add(1);
            self.metrics.cells_decoded.add(open.rows);
        }
        Ok(())
    }

    /// Returns the bytes that reading columns of a tile takes.
    fn bytes_held(&self, open: &OpenTile, columns: &[usize], stored: &[StoredChunk]) -> usize {
        let array = &self.array;
        let decoded = columns
            .iter()
            .zip(stored)
            .map(|(&column, stored)| array.bytes_decoded(open.task.tile, column, stored));
        let decoded = decoded.fold(0, u64::saturating_add);
        let layers = stored.iter().flat_map(|chunk| &chunk.layers);
        let fetched = layers.flat_map(|layer| layer.payloads()).map(Payload::stored_len);
        let held = match array.objects().is_resident() {
            true => decoded,
            false => fetched.fold(decoded, u64::saturating_add),
        };
        usize::try_from(held).unwrap_or(usize::MAX)
    }

    /// Fails if a file of the payloads was written since it was opened. Pages of a mapping count as memory of
    /// the process. With a memory limit they are given back.
    fn check_unchanged(&self, stored: &[StoredChunk]) -> crate::Result<()> {
        let layers = stored.iter().flat_map(|chunk| &chunk.layers);
        let payloads = layers.flat_map(|layer| layer.payloads());
        let locations: Vec<_> = payloads.map(|payload| payload.at.clone()).collect();
        self.array.objects().used(&locations, self.is_limited)
    }

    fn take_scratch(&self) -> Scratch {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn put_scratch(&self, scratch: Scratch) {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

/// The error of a tile whose cells are not in the order that merging relies on.
pub(super) fn out_of_order(reader: &TileReader, task: TileTask) -> DataFusionError {
    let tile = task.tile;
    let message = format!(
        "tile {} of fragment {}: its cells are not in the global order of the array",
        tile.tile, tile.fragment
    );
    reader.array.objects().named(Error::corrupt_region("coordinates", message)).into()
}

/// The error of a tile with a NaN among coordinates that have to be compared.
pub(super) fn nan_coordinate(reader: &TileReader, task: TileTask) -> DataFusionError {
    let tile = task.tile;
    let message = format!(
        "tile {} of fragment {} has a NaN coordinate, and the array has fragments to compare with it",
        tile.tile, tile.fragment
    );
    reader.array.objects().named(Error::unsupported(message)).into()
}
