//! [`InFlight`]: chunks whose payloads are being fetched, in batches, in the order of need.
//!
//! ```text
//!   chunks    0 1 2   3 4 5   6 7          batches of about 2 MiB, so that neighbours share requests
//!   fetches   ├────┤  ├────┤  ├────┤       side by side, as far as memory allows
//! ```
//!
//! Fetches that wait run as spawned tasks. Dropping a batch cancels its requests.
//!
//! A request for a raw chunk fetches only the part with the selected cells, unless that spares few bytes. So does a read
//! of a file that is not mapped.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};

use super::metrics::RequestMetrics;
use crate::array::GridArray;
use crate::format::StoredChunk;
use crate::grid::ChunkTask;
use crate::io::{RequestCounts, counted};
use crate::tile::{Request, Slice};

/// So few bytes are read although they are not selected: half of what a single cell may read.
const FEW_BYTES: u64 = 32 << 10;

/// The payloads of one chunk; `None` for an absent object.
type Payloads = Vec<Option<Bytes>>;

/// A chunk whose payloads are fetched.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) task: ChunkTask,
    /// One per variable of the reader.
    pub(super) stored: Vec<StoredChunk>,
    /// The bytes of memory that are accounted for this chunk until it is opened.
    pub(super) reserved: usize,
    /// Whether a filter has excluded the chunk since its fetch began.
    is_dropped: bool,
    /// For each payload, the part that is fetched; empty if all are fetched whole.
    slices: Vec<Option<Slice>>,
    /// The bytes of the payloads that have arrived.
    pub(super) received: usize,
}

impl Fetch {
    pub(super) fn new(task: ChunkTask, stored: Vec<StoredChunk>, reserved: usize) -> Self {
        Self { task, stored, reserved, is_dropped: false, slices: vec![], received: 0 }
    }

    /// Returns the requests for the payloads: only for their selected parts where that spares more than `least`
    /// bytes.
    fn requests(&mut self, least: u64, is_resident: bool) -> Vec<Request> {
        let mut requests = Request::for_chunks(&self.stored);
        self.slices = Slice::shorten(&self.task, &self.stored, &mut requests, least, is_resident);
        requests
    }

    /// Takes the next payloads, those of this chunk, and gives parts their place.
    fn take(&mut self, payloads: &mut impl Iterator<Item = Option<Bytes>>) -> Payloads {
        let count = self.stored.iter().flat_map(|it| &it.layers);
        let count = count.map(|layer| layer.payloads().count()).sum();
        let slices = self.slices.iter().chain(std::iter::repeat(&None));
        let received = &mut self.received;
        let pad = |(payload, slice): (Option<Bytes>, &Option<Slice>)| {
            let used = slice.as_ref().map_or(usize::MAX, Slice::used);
            *received += payload.as_ref().map_or(0, Bytes::len).min(used);
            match slice {
                Some(slice) => payload.map(|payload| slice.pad(&payload)),
                None => payload,
            }
        };
        payloads.take(count).zip(slices).map(pad).collect()
    }
}

/// Chunks that are fetched together.
#[derive(Debug)]
struct Batch {
    chunks: Vec<Fetch>,
    payloads: PayloadSource,
}

#[derive(Debug)]
enum PayloadSource {
    /// In memory or mapped: read when the chunk is opened.
    Resident,
    /// Fetched by a task that runs already: the payloads of all chunks, one after the other.
    Task(SpawnedTask<(crate::Result<Payloads>, RequestCounts)>),
}

/// The chunks of a reader that are being fetched.
#[derive(Debug)]
pub(super) struct InFlight {
    array: Arc<GridArray>,
    /// The bytes that a request for a part of a payload must spare.
    least: u64,
    batches: VecDeque<Batch>,
    /// Chunks of the first batch, which has arrived.
    arrived: VecDeque<(Fetch, Payloads)>,
}

impl InFlight {
    /// Makes a reader of payloads that reads at most `gap` bytes that are not selected at once.
    pub(super) fn new(array: Arc<GridArray>, gap: u64) -> Self {
        Self {
            array,
            least: gap.min(FEW_BYTES),
            batches: VecDeque::new(),
            arrived: VecDeque::new(),
        }
    }

    /// The number of batches that have not arrived.
    pub(super) fn batches(&self) -> usize {
        self.batches.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.arrived.is_empty()
    }

    /// Starts to fetch the payloads of some chunks, unless they are in memory or mapped.
    pub(super) fn start(&mut self, mut chunks: Vec<Fetch>) {
        let objects = self.array.objects();
        let payloads = match objects.is_resident() {
            true => PayloadSource::Resident,
            false => {
                let array = Arc::clone(&self.array);
                let requests =
                    chunks.iter_mut().flat_map(|chunk| chunk.requests(self.least, false));
                let requests: Vec<Request> = requests.collect();
                let fetch = async move { array.objects().fetch(&requests).await };
                PayloadSource::Task(SpawnedTask::spawn(counted(fetch)))
            }
        };
        self.batches.push_back(Batch { chunks, payloads });
    }

    /// Waits for the payloads of the next chunk; `None` if nothing is in flight.
    ///
    /// # Errors
    /// If the payloads cannot be read. The error names the chunks.
    pub(super) async fn next(
        &mut self,
        metrics: &RequestMetrics,
    ) -> Result<Option<(Fetch, Payloads)>> {
        if let Some(chunk) = self.arrived.pop_front() {
            return Ok(Some(chunk));
        }
        let Some(Batch { mut chunks, payloads }) = self.batches.pop_front() else {
            return Ok(None);
        };
        let read = match payloads {
            PayloadSource::Resident => {
                let requests = chunks.iter_mut().flat_map(|chunk| chunk.requests(self.least, true));
                self.array.objects().fetch(&requests.collect::<Vec<_>>()).await
            }
            PayloadSource::Task(task) => {
                let joined = task.join().await;
                let (read, counts) =
                    joined.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?;
                metrics.add(&counts);
                read
            }
        };
        let mut payloads = read.map_err(|error| error.about(&name(&chunks)))?.into_iter();
        for mut chunk in chunks {
            let payloads = chunk.take(&mut payloads);
            if !chunk.is_dropped {
                self.arrived.push_back((chunk, payloads));
            }
        }
        Ok(self.arrived.pop_front())
    }

    /// Restricts each chunk to the task that `prune` leaves of it. Cancels batches of which nothing is left.
    /// Returns the memory of the chunks that it drops.
    pub(super) fn prune(
        &mut self,
        mut prune: impl FnMut(Vec<ChunkTask>) -> Result<Vec<Option<ChunkTask>>>,
    ) -> Result<usize> {
        let mut freed = 0;
        let mut restrict = |fetches: Vec<&mut Fetch>| -> Result<()> {
            let tasks = fetches.iter().map(|fetch| fetch.task.clone()).collect();
            for (fetch, left) in fetches.into_iter().zip(prune(tasks)?) {
                match left {
                    Some(task) => fetch.task = task,
                    None => {
                        fetch.is_dropped = true;
                        freed += std::mem::take(&mut fetch.reserved);
                    }
                }
            }
            Ok(())
        };
        restrict(self.arrived.iter_mut().map(|(fetch, _)| fetch).collect())?;
        self.arrived.retain(|(fetch, _)| !fetch.is_dropped);
        for batch in &mut self.batches {
            restrict(batch.chunks.iter_mut().filter(|fetch| !fetch.is_dropped).collect())?;
        }
        // Dropping a batch cancels its requests. The payloads of other batches arrive as they were requested.
        self.batches.retain(|batch| batch.chunks.iter().any(|fetch| !fetch.is_dropped));
        Ok(freed)
    }
}

/// Returns the name of the payloads of some chunks, for errors.
fn name(chunks: &[Fetch]) -> String {
    match chunks {
        [only] => format!("payload of chunk {:?}", only.task.coordinates),
        [first, .., last] => format!(
            "payloads of chunks {:?} to {:?}",
            first.task.coordinates, last.task.coordinates
        ),
        [] => "no chunk".to_owned(),
    }
}
