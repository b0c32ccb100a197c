//! [`Threads`]: the threads on which a session waits for object stores.
//!
//! ```text
//!   query, which decodes ──spawn──▶ threads of the session: requests, and their connections
//!                        ◀──bytes──
//! ```
//!
//! A connection is served by the runtime that opened it. Were this the runtime of the query, connections would
//! stand still while it decodes, or while a table function waits in the middle of planning.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::counts::inherited;
use crate::error::{Error, Result};

/// The number of threads. One copies about a gigabyte per second, and most links are slower.
const THREADS: usize = 2;

/// The threads of a session, which start with its first request.
#[derive(Debug, Default)]
pub(super) struct Threads(OnceLock<Runtime>);

impl Threads {
    /// Runs `work` on these threads. Dropping the future cancels the work.
    ///
    /// # Errors
    /// `Io` if the system gives no threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let mut task = Cancelled(self.runtime()?.spawn(inherited(work)));
        match (&mut task.0).await {
            Ok(done) => Ok(done),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => Err(Error::io("a request was cancelled", error)),
        }
    }

    fn runtime(&self) -> Result<&Runtime> {
        if let Some(runtime) = self.0.get() {
            return Ok(runtime);
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("gridfusion-io")
            .enable_all()
            .build()
            .map_err(|error| Error::io("cannot start threads for requests", error))?;
        // If another thread was first, this runtime stops again.
        if let Err(second) = self.0.set(runtime) {
            second.shutdown_background();
        }
        self.0.get().ok_or_else(|| Error::internal("threads that were just started are missing"))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The last user may be a task of a runtime, which must not wait for threads.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A task that is cancelled when this is dropped.
struct Cancelled<T>(JoinHandle<T>);

impl<T> Drop for Cancelled<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
