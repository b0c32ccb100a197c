//! [`SectionReader`]: reads the chunks of a section in several partitions, and computes the variables of the new array.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::common::exec_datafusion_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::CopiedArray;
use crate::exec::blocks::{columns, values_of};
use crate::exec::chunks::{ChunkReader, OpenChunk};
use crate::exec::metrics::ScanMetrics;
use crate::exec::reads::Reads;
use crate::exec::yield_budget::YieldBudget;
use crate::grid::AxisSelection;
use crate::plan::{Assembler, Block, RowBlocks, ScanPlan};

/// The cells of a box at most, so that columns of labels and intermediate results stay in the cache.
const BOX_CELLS: u64 = 1 << 16;

/// The boxes of a partition that wait until they are copied.
const WAITING: usize = 2;

/// A box of cells.
pub(super) struct StoredBox {
    /// Per axis, the positions among the selected indices of the section.
    pub(super) positions: Vec<Range<usize>>,
    /// The variables of the new array.
    pub(super) columns: Vec<ArrayRef>,
}

/// The boxes of a section, in no order.
pub(super) struct SectionReader {
    boxes: Receiver<Result<StoredBox>>,
    /// The partitions that are read.
    tasks: Vec<SpawnedTask<()>>,
}

/// A reader of one partition.
struct Partition {
    copied: Arc<CopiedArray>,
    plan: Arc<ScanPlan>,
    chunks: ChunkReader,
    assembler: Assembler,
    metrics: Arc<ScanMetrics>,
}

impl SectionReader {
    /// Begins to read the cells of a plan.
    pub(super) fn new(
        copied: &Arc<CopiedArray>,
        plan: &Arc<ScanPlan>,
        metrics: &[Arc<ScanMetrics>],
        context: &Arc<TaskContext>,
    ) -> Self {
        let (sender, boxes) = channel(WAITING * plan.partition_count());
        let partitions = (0..plan.partition_count()).zip(metrics);
        // All begin before one can end, because the last one checks what the others have read.
        let partitions = partitions.map(|(number, metrics)| {
            Partition::new(
                Arc::clone(copied),
                Arc::clone(plan),
                number,
                Arc::clone(metrics),
                context,
            )
        });
        let partitions: Vec<_> = partitions.collect();
        let read = |partition: Partition| {
            let boxes = sender.clone();
            SpawnedTask::spawn(async move {
                if let Err(error) = partition.read(&boxes).await {
                    let _ = boxes.send(Err(error)).await;
                }
            })
        };
        let tasks = partitions.into_iter().map(read).collect();
        Self { boxes, tasks }
    }

    /// Returns the next box; `None` at the end.
    ///
    /// # Errors
    /// If chunks cannot be read, or an expression fails.
    pub(super) async fn next(&mut self) -> Result<Option<StoredBox>> {
        if let Some(of_box) = self.boxes.recv().await {
            return of_box.map(Some);
        }
        for task in self.tasks.drain(..) {
            let read = task.join().await;
            read.map_err(|error| exec_datafusion_err!("reading chunks failed: {error}"))?;
        }
        Ok(None)
    }
}

impl Partition {
    fn new(
        copied: Arc<CopiedArray>,
        plan: Arc<ScanPlan>,
        number: usize,
        metrics: Arc<ScanMetrics>,
        context: &Arc<TaskContext>,
    ) -> Self {
        let array = copied.scan.array();
        let chunks = ChunkReader::new(
            Reads::begin(array, &plan, context),
            Arc::clone(&plan),
            plan.tasks(number),
            plan.partition_count(),
            values_of(&copied.columns),
            format!("GridCellsExec[{number}]"),
            context,
        );
        let assembler = Assembler::new(array);
        Self { plan, chunks, assembler, metrics, copied }
    }

    async fn read(mut self, boxes: &Sender<Result<StoredBox>>) -> Result<()> {
        let mut yields = YieldBudget::default();
        while let Some(open) = self.chunks.next(&self.metrics).await? {
            for block in RowBlocks::new(&open.task, BOX_CELLS) {
                let of_box = self.of_block(&open, &block)?;
                if boxes.send(Ok(of_box)).await.is_err() {
                    return Ok(()); // the copy has failed
                }
                yields.spend(block.rows()).await;
            }
            self.chunks.release(open)?;
        }
        Ok(())
    }

    fn of_block(&mut self, open: &OpenChunk, block: &Block) -> Result<StoredBox> {
        let timer = self.metrics.baseline.elapsed_compute().timer();
        let array = self.copied.scan.array();
        let arrays = columns(array, &mut self.assembler, &self.copied.columns, open, block)?;
        let rows = block.rows() as usize;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.copied.schema);
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        let variables = self.copied.variables.iter();
        let columns = variables.map(|it| it.evaluate(&batch)?.into_array(rows));
        let columns = columns.collect::<Result<_>>()?;
        timer.done();
        self.metrics.baseline.record_output(rows);
        Ok(StoredBox { positions: self.positions(open, block), columns })
    }

    /// Returns the positions of a block along each axis, among the selected indices of the plan.
    fn positions(&self, open: &OpenChunk, block: &Block) -> Vec<Range<usize>> {
        let grid = self.plan.grid();
        let axes = self.plan.selection().axes().iter().zip(&open.task.coordinates).enumerate();
        let position = |(axis, (selected, chunk)): (usize, (&AxisSelection, &u64))| {
            let before = selected.count_before(grid.axis_range(axis, *chunk).start);
            let within = block.positions(axis);
            (before + within.start) as usize..(before + within.end) as usize
        };
        axes.map(position).collect()
    }
}
