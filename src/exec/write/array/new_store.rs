//! [`NewStore`]: writes stored rows, one row of chunks after the other.

use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt32Type;
use datafusion::common::exec_datafusion_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use futures::TryStreamExt;
use gridfusion_core::format::{Publish, Write};
use gridfusion_core::tile::WriteSession;
use gridfusion_core::write::ArrayWriter;

use super::slab::Slab;
use super::stored_rows::StoredRows;

/// A store that is being written.
pub(super) struct NewStore {
    writer: Box<dyn ArrayWriter>,
    /// Per dimension, the index of each number of a label.
    places: Arc<Vec<Vec<u64>>>,
    /// Whether the array takes the place of one that is there.
    replaces: bool,
    counts: Counts,
}

/// The metrics in `EXPLAIN ANALYZE`.
struct Counts {
    cells: Count,
    objects: Count,
    bytes: Count,
}

impl NewStore {
    pub(super) fn new(
        writer: Box<dyn ArrayWriter>,
        places: Vec<Vec<u64>>,
        replaces: bool,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, 0);
        let counts = Counts {
            cells: count("cells_written"),
            objects: count("objects_written"),
            bytes: count("bytes_written"),
        };
        Self { writer, places: Arc::new(places), replaces, counts }
    }

    /// Writes all rows, and makes the store visible. The caller aborts the session if that fails.
    ///
    /// # Errors
    /// For rows that are no cells of their own, and for those that cannot be written.
    pub(super) async fn write(
        self,
        rows: StoredRows,
        session: &mut WriteSession,
        context: &TaskContext,
    ) -> Result<()> {
        let replaces = self.replaces;
        let consumer = MemoryConsumer::new("an array that is put together in memory");
        let whole = consumer.register(context.memory_pool());
        reserve(&whole, self.writer.memory(), "the array does not fit in memory; write Zarr")?;
        let mut written = self.write_slabs(rows, session, context).await?;
        let (rest, publish) = written.writer.finish()?;
        written.count(&rest);
        session.write(rest).await?;
        if let Publish::Create(root) = &publish {
            written.counts.objects.add(1);
            written.counts.bytes.add(root.bytes.len());
        }
        let publish = match publish {
            Publish::Create(file) if replaces => Publish::Replace(file),
            Publish::Complete { object, .. } => Publish::Complete { object, replace: replaces },
            other => other,
        };
        session.publish(publish).await?;
        Ok(())
    }

    async fn write_slabs(
        mut self,
        rows: StoredRows,
        session: &mut WriteSession,
        context: &TaskContext,
    ) -> Result<Self> {
        let consumer = MemoryConsumer::new("a row of chunks of a new array");
        let reservation = consumer.register(context.memory_pool());
        let mut rows = rows.into_stream()?;
        let mut slab: Option<Slab> = None;
        while let Some(batch) = rows.try_next().await? {
            for (number, part) in self.slabs_of(&batch) {
                if let Some(complete) = slab.take_if(|it| it.number() != number) {
                    self = self.write_slab(complete, session, &reservation).await?;
                }
                let open = match &mut slab {
                    Some(open) => open,
                    None => {
                        reserve(&reservation, Slab::memory(self.writer.array(), number), SLAB)?;
                        slab.insert(Slab::try_new(self.writer.array(), number)?)
                    }
                };
                let part = batch.slice(part.start, part.len());
                // The rows, and one column of them together.
                reserve(&reservation, 2 * get_record_batch_memory_size(&part) as u64, SLAB)?;
                open.push(self.writer.array(), part, &self.places)?;
            }
        }
        match slab {
            Some(last) => self.write_slab(last, session, &reservation).await,
            None => Ok(self),
        }
    }

    /// Returns the rows of a batch by the row of chunks that they are in.
    fn slabs_of(&self, batch: &RecordBatch) -> Vec<(u64, Range<usize>)> {
        let numbers = batch.column(0).as_primitive::<UInt32Type>().values();
        let grid = self.writer.array().grid();
        let slab = |number: &u32| grid.chunk_of(0, self.places[0][*number as usize]);
        let runs = numbers.chunk_by(|a, b| slab(a) == slab(b));
        let mut start = 0;
        let run = |run: &[u32]| {
            let range = start..start + run.len();
            start = range.end;
            (slab(&run[0]), range)
        };
        runs.map(run).collect()
    }

    async fn write_slab(
        mut self,
        slab: Slab,
        session: &mut WriteSession,
        reservation: &MemoryReservation,
    ) -> Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let Self { mut writer, places, replaces, counts } = self;
        let encoded = SpawnedTask::spawn_blocking(move || {
            let chunks = slab.chunks(writer.array())?;
            let cells: usize = chunks.iter().map(|chunk| chunk.cells.len()).sum();
            let writes = writer.write_many(chunks, threads)?;
            Ok::<_, datafusion::error::DataFusionError>((writer, writes, cells))
        });
        let encoded = encoded.join().await;
        let (writer, writes, cells) =
            encoded.map_err(|error| exec_datafusion_err!("encoding chunks failed: {error}"))??;
        counts.cells.add(cells);
        self = Self { writer, places, replaces, counts };
        self.count(&writes);
        session.write(writes).await?;
        reservation.free();
        Ok(self)
    }

    fn count(&self, writes: &[Write]) {
        for write in writes {
            if let Write::Put(objects) = write {
                self.counts.objects.add(objects.len());
                self.counts.bytes.add(objects.iter().map(|it| it.bytes.len()).sum());
            }
        }
    }
}

/// The advice for a row of chunks that is too large.
const SLAB: &str = "a row of chunks does not fit in memory; choose a smaller length of the first dimension in 'chunks'";

fn reserve(reservation: &MemoryReservation, bytes: u64, advice: &str) -> Result<()> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    reservation.try_grow(bytes).map_err(|error| error.context(advice))
}
