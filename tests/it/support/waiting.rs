//! Waits for what other tasks, threads and processes do.
//!
//! A wait ends with a signal, or when its condition holds. It is never a guess of how long something takes, so that tests
//! also pass on a busy machine. [`HANG`] is far more than any wait takes.

use std::time::Duration;

use datafusion::prelude::SessionContext;

/// An operation that takes longer hangs.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// Waits for an outcome. A hang fails the test.
pub(crate) async fn within_hang<T>(what: &str, outcome: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(HANG, Box::pin(outcome)).await;
    outcome.unwrap_or_else(|_| panic!("{what}: a hang"))
}

/// Waits until a condition holds of which no signal tells.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let asked_again = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within_hang(what, asked_again).await;
}

/// Waits until the memory pool has all its bytes back. Tasks that were cancelled may still run for a moment.
pub(crate) async fn nothing_reserved(ctx: &SessionContext) {
    let pool = &ctx.runtime_env().memory_pool;
    until("bytes are still reserved", || pool.reserved() == 0).await;
}
