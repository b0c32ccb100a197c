//! Breaks in long work.
//!
//! A stream that always has a next batch ready never gives its thread back, and what it woke up before, say
//! another partition that waited for the same build side of a join, waits on.

/// Lets other tasks of the thread run now and then.
#[derive(Default)]
pub(super) struct Breaks {
    cells: u64,
}

impl Breaks {
    /// To be called after work on this many cells.
    pub(super) async fn after(&mut self, cells: u64) {
        /// About a millisecond of work.
        const CELLS: u64 = 1 << 21;
        self.cells += cells;
        if self.cells >= CELLS {
            self.cells = 0;
            tokio::task::yield_now().await;
        }
    }
}
