//! The threads on which requests to object stores run.
//!
//! ```text
//!   query, which decodes ──spawn──▶ threads of the process: requests, and their connections
//!                        ◀──bytes──
//! ```
//!
//! A connection is served by the runtime that opened it. Were this the runtime of the query, connections would
//! stand still while it decodes, or while a table function waits in the middle of planning.
//!
//! The threads never stop: a store keeps its connections for the next session, which may share it.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::counts::inherited;
use crate::error::{Error, Result};

/// The number of threads. One copies about a gigabyte per second, and most links are slower.
const THREADS: usize = 2;

/// The threads of the process, which start with its first request.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Runs `work` on these threads. Dropping the future cancels the work.
///
/// # Errors
/// `Io` if the system gives no threads.
pub(super) async fn run<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    let mut task = CancelOnDrop(runtime()?.spawn(inherited(work)));
    match (&mut task.0).await {
        Ok(done) => Ok(done),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(Error::io("a request was cancelled", error)),
    }
}

fn runtime() -> Result<&'static Runtime> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("gridfusion-io")
        .enable_all()
        .build()
        .map_err(|error| Error::io("cannot start threads for requests", error))?;
    // If another thread was first, this runtime stops again.
    if let Err(second) = RUNTIME.set(runtime) {
        second.shutdown_background();
    }
    RUNTIME.get().ok_or_else(|| Error::internal("threads that were just started are missing"))
}

/// A task that is cancelled when this is dropped.
struct CancelOnDrop<T>(JoinHandle<T>);

impl<T> Drop for CancelOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
