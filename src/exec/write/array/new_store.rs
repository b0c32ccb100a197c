//! [`NewStore`]: writes rows of chunks as a store or a file, one after the other.

use std::num::NonZero;
use std::ops::Range;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::common::exec_datafusion_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use gridfusion_core::format::{Publish, Write};
use gridfusion_core::tile::WriteSession;
use gridfusion_core::write::{ArrayWriter, NewArray, NewChunk, NewVariable};

/// The bytes of chunks that are encoded together, if each takes much more than its rows.
const GROUP_BYTES: u64 = 256 << 20;

/// The cells of some rows of chunks, of which a thread that may compute for long makes the chunks.
pub(super) type CutChunks = Box<dyn FnOnce() -> Result<Vec<NewChunk>> + Send>;

/// The cells of a new array, in the order of its rows of chunks.
#[async_trait]
pub(super) trait ChunkRows: Send {
    /// Returns the next cells, and reserves the memory that they and their chunks take. `None` at the end.
    async fn next(
        &mut self,
        array: &NewArray,
        reservation: &MemoryReservation,
    ) -> Result<Option<CutChunks>>;
}

/// A store or a file that is being written.
pub(super) struct NewStore {
    writer: Box<dyn ArrayWriter>,
    /// Whether the array takes the place of one that is there.
    replaces: bool,
    /// The memory of the writer.
    held: MemoryReservation,
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
        replaces: bool,
        metrics: &ExecutionPlanMetricsSet,
        context: &TaskContext,
    ) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, 0);
        let counts = Counts {
            cells: count("cells_written"),
            objects: count("objects_written"),
            bytes: count("bytes_written"),
        };
        let consumer = MemoryConsumer::new("an array that is put together in memory");
        let held = consumer.register(context.memory_pool());
        Self { writer, replaces, held, counts }
    }

    /// Writes all cells, and makes the array visible. The caller aborts the session if that fails.
    ///
    /// # Errors
    /// For rows that are no cells of their own, and for those that cannot be written.
    pub(super) async fn write(
        self,
        rows: Box<dyn ChunkRows>,
        session: &mut WriteSession,
        context: &TaskContext,
    ) -> Result<()> {
        let replaces = self.replaces;
        self.hold()?;
        let mut written = self.write_rows(rows, session, context).await?;
        loop {
            let (after, writes) = written.encode(|writer| Ok(writer.write_rest()?)).await?;
            written = after;
            if writes.is_empty() {
                break;
            }
            written.count(&writes);
            session.write(writes).await?;
        }
        let (mut written, (rest, publish)) = written.encode(|writer| Ok(writer.finish()?)).await?;
        written.count(&rest);
        session.write(rest).await?;
        if let Publish::Create(root) | Publish::Update { content: root, .. } = &publish {
            written.counts.objects.add(1);
            written.counts.bytes.add(root.bytes.len());
        }
        let publish = match publish {
            Publish::Create(file) if replaces => Publish::Replace(file),
            Publish::Complete { object, .. } => Publish::Complete { object, replace: replaces },
            other => other,
        };
        session.publish(publish).await?;
        let last = async {
            let writes = written.writer.afterwards();
            written.count(&writes);
            session.write(writes).await
        };
        last.await.map_err(|error| {
            DataFusionError::from(error)
                .context("all rows are in the array; what failed is left to the next append")
        })
    }

    async fn write_rows(
        mut self,
        mut rows: Box<dyn ChunkRows>,
        session: &mut WriteSession,
        context: &TaskContext,
    ) -> Result<Self> {
        let consumer = MemoryConsumer::new("a row of chunks of a new array");
        let reservation = consumer.register(context.memory_pool());
        while let Some(cut) = rows.next(self.writer.array(), &reservation).await? {
            self = self.write_chunks(cut, session, &reservation).await?;
            reservation.free();
            self.hold()?;
        }
        Ok(self)
    }

    async fn write_chunks(
        self,
        cut: CutChunks,
        session: &mut WriteSession,
        reservation: &MemoryReservation,
    ) -> Result<Self> {
        let (threads, group) = self.at_once(reservation)?;
        let (mut written, chunks) = self.encode(|_| cut()).await?;
        let mut chunks = chunks.into_iter().peekable();
        while chunks.peek().is_some() {
            let some: Vec<_> = chunks.by_ref().take(group).collect();
            let cells: usize = some.iter().map(|chunk| chunk.cells.len()).sum();
            let encode = move |writer: &mut dyn ArrayWriter| Ok(writer.write_many(some, threads)?);
            let (after, writes) = written.encode(encode).await?;
            written = after;
            written.counts.cells.add(cells);
            written.count(&writes);
            session.write(writes).await?;
        }
        Ok(written)
    }

    /// Returns the threads that encode chunks, and the chunks of a group. If chunks take much more than their rows, their memory is
    /// reserved, for fewer threads if there is less.
    fn at_once(&self, reservation: &MemoryReservation) -> Result<(usize, usize)> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let of_chunk = self.writer.chunk_memory();
        if of_chunk == 0 {
            return Ok((threads, usize::MAX));
        }
        let of = |threads: usize| {
            usize::try_from(of_chunk.saturating_mul(threads as u64)).unwrap_or(usize::MAX)
        };
        let fits = |threads: &usize| reservation.try_grow(of(*threads)).is_ok();
        if let Some(fewer) = (2..=threads).rev().find(fits) {
            return Ok((fewer, ((GROUP_BYTES / of_chunk) as usize).max(fewer)));
        }
        let one = reservation.try_grow(of(1));
        one.map_err(|error| {
            error.context("an object at the end of the array does not fit in memory")
        })?;
        Ok((1, 1))
    }

    /// Works with the writer on a thread that may compute for long.
    async fn encode<T: Send + 'static>(
        mut self,
        work: impl FnOnce(&mut dyn ArrayWriter) -> Result<T> + Send + 'static,
    ) -> Result<(Self, T)> {
        let task = SpawnedTask::spawn_blocking(move || {
            let done = work(self.writer.as_mut())?;
            Ok((self, done))
        });
        let encoded = task.join().await;
        encoded.map_err(|error| exec_datafusion_err!("encoding chunks failed: {error}"))?
    }

    /// Reserves the memory of the writer.
    fn hold(&self) -> Result<()> {
        let bytes = usize::try_from(self.writer.memory()).unwrap_or(usize::MAX);
        let held = self.held.try_resize(bytes);
        held.map_err(|error| {
            let instead = self.writer.instead_of_memory();
            error.context(format!("the array does not fit in memory; {instead}"))
        })
    }

    fn count(&self, writes: &[Write]) {
        for write in writes {
            if let Write::Put(objects) | Write::Overwrite(objects) | Write::Replace(objects) = write
            {
                self.counts.objects.add(objects.len());
                self.counts.bytes.add(objects.iter().map(|it| it.bytes.len()).sum());
            }
        }
    }
}

/// Reserves memory for cells.
pub(super) fn reserve(reservation: &MemoryReservation, bytes: u64) -> Result<()> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    reservation.try_grow(bytes).map_err(|error| {
        error.context(
            "a row of chunks does not fit in memory; choose a smaller length of the first dimension in 'chunks'",
        )
    })
}

/// Returns the bytes of the cells of all variables in rows of chunks.
pub(super) fn cell_bytes(array: &NewArray, rows: &Range<u64>) -> u64 {
    /// The bytes of a text, as far as they are known.
    const TEXT: usize = 16;
    let mut region = array.region().to_vec();
    let (first, last) =
        (array.grid().axis_range(0, rows.start), array.grid().axis_range(0, rows.end - 1));
    region[0] = first.start.max(region[0].start)..last.end.min(region[0].end);
    let cells = region.iter().map(|range| range.end - range.start).product::<u64>();
    let width = |it: &NewVariable| it.data_type.primitive_width().unwrap_or(TEXT) as u64;
    cells.saturating_mul(array.variables().iter().map(width).sum())
}

/// Whether all cells of a type have one width, so that they are copied when they come.
pub(super) fn have_one_width(data_type: &DataType) -> bool {
    data_type.is_primitive() || data_type == &DataType::Boolean
}
