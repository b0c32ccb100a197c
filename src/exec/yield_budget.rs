//! [`YieldBudget`]: interrupts long CPU work so that other tasks of the thread run.
//!
//! A stream that always has a batch ready never yields its thread. Tasks that it has woken then keep
//! waiting, such as another partition that needs the same build side of a join.

use std::future::{Future, poll_fn};
use std::task::Poll;

/// Waits for what partitions share, and lets the others that wait for it begin. The task that made it has woken them on its own thread,
/// where they would wait until it yields. So this task is queued again, from where another thread can take it.
pub(super) async fn shared<T>(result: impl Future<Output = T>) -> T {
    let result = result.await;
    let mut was_queued = false;
    poll_fn(|context| {
        if was_queued {
            return Poll::Ready(());
        }
        was_queued = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    result
}

/// A budget of work; other tasks of the thread run each time it is spent.
#[derive(Default)]
pub(super) struct YieldBudget {
    /// Cells processed since the last yield.
    spent: u64,
}

impl YieldBudget {
    /// Counts work on `cells` cells, and yields when the budget is spent.
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
