//! The rows of a running query, batch by batch.
//!
//! ```text
//!   runtime   query ──▶ pump ──▶ channel of two batches
//!   caller                          └──▶ RowStream
//! ```
//!
//! A query stands still until its rows are taken, and a dropped stream ends it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use gridfusion::without_panics;
use gridfusion_cli::embed::{EmbeddedSession, Run, message};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::errors::{FORKED, to_python};
use crate::query::LastRun;
use crate::rows::Rows;
use crate::runtime::{is_forked, runtime};
use crate::warnings::report;

/// The time between two looks for signals.
const INTERVAL: Duration = Duration::from_millis(100);
/// The number of batches that are ready before they are taken.
const AHEAD: usize = 2;

/// The batches of a running query.
pub(crate) struct Feed {
    schema: SchemaRef,
    batches: Receiver<Result<RecordBatch>>,
    pump: JoinHandle<()>,
    handle: Handle,
}

/// Begins to take the batches of a query. At the end, `last_run` has its figures.
pub(crate) fn open(
    py: Python<'_>,
    session: &Arc<EmbeddedSession>,
    mut stream: SendableRecordBatchStream,
    run: Run,
    last_run: &LastRun,
) -> PyResult<Feed> {
    let handle = runtime(py)?.handle().clone();
    let schema = stream.schema();
    let (sender, batches) = mpsc::channel(AHEAD);
    let (session, last_run) = (Arc::clone(session), Arc::clone(last_run));
    let pump = handle.spawn(async move {
        let mut rows = 0;
        loop {
            let next = without_panics(async { stream.next().await.transpose() }).await;
            let item = next.map_err(|error| session.explain(error)).transpose();
            let Some(item) = item else {
                let figures = run.figures(rows).await;
                *last_run.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
                return;
            };
            let is_last = item.is_err();
            rows += item.as_ref().map_or(0, RecordBatch::num_rows);
            // Without a receiver, no more rows are wanted.
            if sender.send(item).await.is_err() || is_last {
                return;
            }
        }
    });
    Ok(Feed { schema, batches, pump, handle })
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

impl Feed {
    /// Waits for a batch; `None` if there is none within the interval.
    fn poll(&mut self) -> Option<Option<Result<RecordBatch>>> {
        let handle = self.handle.clone();
        let next = async { timeout(INTERVAL, self.batches.recv()).await };
        handle.block_on(next).ok()
    }

    /// The columns of all batches.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the next batch.
    fn wait(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            if let Some(next) = py.detach(|| self.poll()) {
                // The error of a query tells more than a warning that is an exception.
                let next = next.transpose().map_err(|error| to_python(py, &error));
                let reported = report(py);
                return next.and_then(|it| reported.map(|()| it));
            }
            py.check_signals()?;
        }
    }
}

/// The batches for another library, which takes them on any thread, with or without the interpreter.
impl Iterator for Feed {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if is_forked() {
            return Some(Err(ArrowError::ComputeError(FORKED.to_owned())));
        }
        loop {
            if let Some(next) = self.poll() {
                return next.map(|batch| {
                    batch.map_err(|error| ArrowError::from_external_error(message(&error).into()))
                });
            }
            let signal = Python::try_attach(|py| py.check_signals().map_err(|it| again(py, &it)));
            match signal {
                Some(Ok(())) => {}
                Some(Err(text)) => return Some(Err(ArrowError::from_external_error(text.into()))),
                None => return Some(Err(ArrowError::ComputeError("Python ends".to_owned()))),
            }
        }
    }
}

/// Returns the text of the exception of a signal. The library makes an exception of its own of that, so that Ctrl-C
/// is sent to the main thread once more, where nothing hides it.
fn again(py: Python<'_>, signal: &PyErr) -> String {
    let text = signal.to_string();
    if signal.is_instance_of::<PyKeyboardInterrupt>(py) {
        // Last, because the interrupt ends the next step of Python. Without this module, the text is all there is.
        let _ = py.import("_thread").and_then(|it| it.call_method0("interrupt_main"));
    }
    text
}

/// The rows of a running query.
#[pyclass(frozen, module = "gridfusion._internal")]
pub(crate) struct RowStream {
    schema: SchemaRef,
    feed: Mutex<Option<Feed>>,
}

impl RowStream {
    pub(crate) fn new(feed: Feed) -> Self {
        Self { schema: Arc::clone(&feed.schema), feed: Mutex::new(Some(feed)) }
    }

    /// Waits for another thread that takes a batch. That thread needs the interpreter in the end.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Feed>>> {
        loop {
            match self.feed.try_lock() {
                Ok(feed) => return Ok(feed),
                Err(TryLockError::Poisoned(feed)) => return Ok(feed.into_inner()),
                Err(TryLockError::WouldBlock) => {
                    py.check_signals()?;
                    py.detach(|| thread::sleep(Duration::from_millis(1)));
                }
            }
        }
    }
}

#[pymethods]
impl RowStream {
    /// Returns the next batch; `None` behind the last one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Rows>> {
        runtime(py)?;
        let mut feed = self.lock(py)?;
        let Some(open) = feed.as_mut() else { return Ok(None) };
        let next = open.wait(py);
        match next {
            Ok(Some(batch)) => Ok(Some(Rows::new(Arc::clone(&self.schema), vec![batch]))),
            end => {
                *feed = None;
                end.map(|_| None)
            }
        }
    }

    /// Ends the query.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.lock(py)?.take();
        Ok(())
    }
}
