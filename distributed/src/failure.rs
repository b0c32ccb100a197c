//! Errors of workers, which name the worker.

use std::fmt::Display;
use std::io;

use datafusion::error::DataFusionError;
use tonic::{Code, Status};
use url::Url;

/// Returns an error about a worker: `worker URL REASON`. It is an I/O error, because engines repeat queries after these.
pub(crate) fn failure(worker: &Url, kind: io::ErrorKind, reason: impl Display) -> DataFusionError {
    DataFusionError::IoError(io::Error::new(kind, format!("worker {} {reason}", shown(worker))))
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
fn of_status(worker: &Url, status: &Status) -> DataFusionError {
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
            format!("stopped answering: {message}"),
        ),
    }
}
