//! A way to wait for a future in synchronous code, such as a rule.

use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;

/// Waits for `future` on a new thread with a runtime of its own. DataFusion calls table functions and rules
/// synchronously from within a runtime, where blocking on a future panics. The calling thread is blocked
/// meanwhile.
pub(crate) fn wait<T: Send>(future: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(future)
    };
    let panicked = |_| exec_datafusion_err!("reading the array panicked");
    std::thread::scope(|scope| scope.spawn(run).join().map_err(panicked)?)
}
