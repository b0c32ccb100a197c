//! The threads that run queries, and waiting for them: without the lock of the interpreter, and with an eye on signals.
//!
//! ```text
//!   caller    wait ─── detached ─── 100 ms ─── signals? ─── detached ─── … ──▶ result, or KeyboardInterrupt
//!   runtime       └── task: plan, run ──────────────────────────────────▶ channel
//! ```

use std::future;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use datafusion::error::Result;
use gridfusion::without_panics;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::errors::{fork_error, internal_error, to_python};
use crate::warnings::report;

/// The time between two looks for signals.
const INTERVAL: Duration = Duration::from_millis(100);
/// The time that an interrupted statement has to remove what it wrote.
const FAREWELL: Duration = Duration::from_millis(300);
/// The stack of a thread. Plans of long expressions are deep, and code without optimization needs more.
const STACK: usize = if cfg!(debug_assertions) { 32 << 20 } else { 8 << 20 };

/// The runtime, and the process that made it. It lives until the process ends, so that the exit waits for no query.
static RUNTIME: OnceLock<(u32, Runtime)> = OnceLock::new();

/// Returns the runtime of this process.
///
/// # Errors
/// If the process is a fork of one that has run queries: a fork has none of the threads.
pub(crate) fn runtime(py: Python<'_>) -> PyResult<&'static Runtime> {
    let (process, runtime) = match RUNTIME.get() {
        Some(made) => made,
        None => {
            let made = Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build()?;
            RUNTIME.get_or_init(|| (process::id(), made))
        }
    };
    if *process == process::id() { Ok(runtime) } else { Err(fork_error(py)) }
}

/// Whether the process is a fork of one that has run queries.
pub(crate) fn is_forked() -> bool {
    RUNTIME.get().is_some_and(|(process, _)| *process != process::id())
}

/// Runs a future on the runtime and waits for its result.
///
/// # Errors
/// That of the future as a Python exception, or `KeyboardInterrupt`, which ends the future.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    future: impl Future<Output = Result<T>> + Send + 'static,
) -> PyResult<T> {
    wait_for(py, |_| future)
}

/// Is ready after an interrupt.
pub(crate) struct Interrupted(oneshot::Receiver<()>);

impl Interrupted {
    /// Waits for an interrupt, which may never come.
    pub(crate) async fn wait(self) {
        if self.0.await.is_err() {
            future::pending::<()>().await;
        }
    }
}

/// As [`wait`], and calls `tick` in each interval. An error of it ends the future.
pub(crate) fn wait_with<T: Send + 'static>(
    py: Python<'_>,
    future: impl Future<Output = Result<T>> + Send + 'static,
    tick: &dyn Fn() -> PyResult<()>,
) -> PyResult<T> {
    wait_until(py, |_| future, tick)
}

/// As [`wait`]. The future learns of an interrupt, and has a moment to end in good order then.
pub(crate) fn wait_for<T: Send + 'static, F>(
    py: Python<'_>,
    future: impl FnOnce(Interrupted) -> F,
) -> PyResult<T>
where
    F: Future<Output = Result<T>> + Send + 'static,
{
    wait_until(py, future, &|| Ok(()))
}

fn wait_until<T: Send + 'static, F>(
    py: Python<'_>,
    future: impl FnOnce(Interrupted) -> F,
    tick: &dyn Fn() -> PyResult<()>,
) -> PyResult<T>
where
    F: Future<Output = Result<T>> + Send + 'static,
{
    let (interrupt, interrupted) = oneshot::channel();
    let (sender, receiver) = mpsc::channel();
    let future = future(Interrupted(interrupted));
    let task = runtime(py)?.spawn(async move {
        // There is no receiver after an interrupt.
        let _ = sender.send(Box::pin(without_panics(future)).await);
    });
    let receiver = Mutex::new(receiver);
    let receive = |time| {
        py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time))
    };
    loop {
        match receive(INTERVAL) {
            Ok(outcome) => {
                // The error of a query tells more than a warning that is an exception.
                let outcome = outcome.map_err(|error| to_python(py, &error));
                let reported = report(py);
                return outcome.and_then(|it| reported.map(|()| it));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(internal_error(py, "a query ended without a result"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals().and_then(|()| tick()) {
                    // Futures that only read do not listen.
                    if interrupt.send(()).is_ok() {
                        let _ = receive(FAREWELL);
                    }
                    task.abort();
                    return Err(signal);
                }
            }
        }
    }
}
