//! [`YieldBudget`]: long work that lets others run.
//!
//! A stream that always has a next batch ready never gives its thread back, and what it woke up before, say
//! another partition that waited for the same build side of a join, waits on.

/// Lets other tasks of the thread run each time that a budget of work is spent.
#[derive(Default)]
pub(super) struct YieldBudget {
    /// Cells since the last time.
    spent: u64,
}

impl YieldBudget {
    /// To be called after work on this many cells.
    pub(super) async fn spend(&mut self, cells: u64) {
        /// About a millisecond of work.
        const CELLS: u64 = 1 << 21;
        self.spent += cells;
        if self.spent >= CELLS {
            self.spent = 0;
            tokio::task::yield_now().await;
        }
    }
}
