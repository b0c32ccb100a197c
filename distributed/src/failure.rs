//! [`WorkerFailure`]: what went wrong with a worker, by name.

use std::fmt;
use std::io;

use datafusion::error::DataFusionError;
use tonic::{Code, Status};
use url::Url;

/// A worker that did not do what it was asked.
///
/// It is the cause of an [`io::Error`], because engines repeat queries after such errors.
#[derive(Debug)]
pub(crate) struct WorkerFailure {
    worker: String,
    reason: String,
}

impl fmt::Display for WorkerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} {}", self.worker, self.reason)
    }
}

impl std::error::Error for WorkerFailure {}

/// Returns an error about a worker: `worker URL REASON`.
pub(crate) fn failure(
    worker: &Url,
    kind: io::ErrorKind,
    reason: impl Into<String>,
) -> DataFusionError {
    let failure = WorkerFailure { worker: shown(worker), reason: reason.into() };
    DataFusionError::IoError(io::Error::new(kind, failure))
}

/// Returns the URL of a worker without the slash that parsing adds.
pub(crate) fn shown(worker: &Url) -> String {
    worker.as_str().trim_end_matches('/').to_owned()
}

/// Whether a query failed because a worker died, does not answer, or cannot be reached. The same query may succeed without
/// this worker.
///
/// ```
/// use datafusion::error::DataFusionError;
///
/// let mistake = DataFusionError::Plan("no such column".to_owned());
/// assert!(!gridfusion_distributed::is_worker_failure(&mistake));
/// ```
pub fn is_worker_failure(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::IoError(error) => is_lost(error.kind()),
        _ => false,
    }
}

fn is_lost(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::TimedOut
    )
}

/// Returns an error of a call to `worker`, with the name of the worker.
pub(crate) fn of_call(worker: &Url, error: DataFusionError) -> DataFusionError {
    if let DataFusionError::External(cause) = &error {
        if let Some(status) = cause.downcast_ref::<Status>() {
            return of_status(worker, status);
        }
        // Bytes of rows that end early have no status.
        if cause.to_string().contains("error reading a body from connection") {
            return failure(worker, io::ErrorKind::ConnectionAborted, "stopped answering");
        }
    }
    if is_worker_failure(&error) {
        return error; // of a worker that this worker has called
    }
    named(worker, error)
}

/// Returns an error of a query with the name of the worker in the message.
fn named(worker: &Url, error: DataFusionError) -> DataFusionError {
    let name = |message: &str| match message.contains("(on worker ") {
        true => message.to_owned(),
        false => format!("{message} (on worker {})", shown(worker)),
    };
    match error.find_root() {
        DataFusionError::External(cause) => {
            DataFusionError::External(name(&cause.to_string()).into())
        }
        DataFusionError::Execution(message) => DataFusionError::Execution(name(message)),
        DataFusionError::Plan(message) => DataFusionError::Plan(name(message)),
        DataFusionError::ResourcesExhausted(message) => {
            DataFusionError::ResourcesExhausted(name(message))
        }
        DataFusionError::IoError(cause) => {
            DataFusionError::IoError(io::Error::new(cause.kind(), name(&cause.to_string())))
        }
        _ => error.context(format!("on worker {}", shown(worker))),
    }
}

/// Returns an error for a status that is not one of a query.
pub(crate) fn of_status(worker: &Url, status: &Status) -> DataFusionError {
    let message = status.message();
    match status.code() {
        Code::Unauthenticated => failure(
            worker,
            io::ErrorKind::PermissionDenied,
            "refused the token: start coordinator and workers with the same one",
        ),
        Code::Unimplemented => failure(
            worker,
            io::ErrorKind::InvalidData,
            "is no worker of gridfusion, or one of another version",
        ),
        Code::InvalidArgument | Code::FailedPrecondition => {
            failure(worker, io::ErrorKind::InvalidData, format!("refused the request: {message}"))
        }
        // The process ended, its connection broke, or it did not answer pings.
        _ => failure(
            worker,
            io::ErrorKind::ConnectionAborted,
            format!("stopped answering: {}", with_causes(status)),
        ),
    }
}

/// Returns an error with its causes as one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
