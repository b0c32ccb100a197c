//! [`without_panics`]: a bug that panics ends a query, not the program.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use futures::FutureExt;

/// Runs a future, and returns an error if it panics. DataFusion hands a panic of its tasks on to the future that waits for them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let outcome = gridfusion::without_panics(async { panic!("no rows") }).await;
/// let outcome: datafusion::error::Result<()> = outcome;
/// assert!(outcome.unwrap_err().to_string().contains("no rows"));
/// # }
/// ```
///
/// # Errors
/// If the future fails or panics.
pub async fn without_panics<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(future).catch_unwind().await.unwrap_or_else(|panic| {
        let message = message(panic.as_ref());
        Err(exec_datafusion_err!("the query has no answer, because a bug ended it: {message}"))
    })
}

/// The text of a panic, on one line.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text =
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
