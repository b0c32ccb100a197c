//! Work on several chunks at the same time.

use crate::error::{Error, Result};

/// Works on all items, on so many threads, and returns the results in the order of the items.
///
/// ```
/// use gridfusion_core::write::in_threads;
///
/// let squares = in_threads(&[1, 2, 3], 2, |item| Ok(item * item))?;
/// assert_eq!(squares, [1, 4, 9]);
/// # Ok::<(), gridfusion_core::Error>(())
/// ```
///
/// # Errors
/// The first error, once all threads have ended.
pub fn in_threads<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let share = items.len().div_ceil(threads.max(1)).max(1);
    let work = &work;
    let done: Vec<Result<Vec<R>>> = std::thread::scope(|scope| {
        let parts = items.chunks(share).map(|part| scope.spawn(|| part.iter().map(work).collect()));
        let parts: Vec<_> = parts.collect();
        let failed = |_| Err(Error::internal("a thread that encodes chunks has panicked"));
        parts.into_iter().map(|part| part.join().unwrap_or_else(failed)).collect()
    });
    let done = done.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(done.into_iter().flatten().collect())
}
