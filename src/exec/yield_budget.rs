//! [`YieldBudget`]: interrupts long CPU work so that other tasks of the thread run. [`shared`] lets them begin on another thread.
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    /// Each task blocks its thread until the other one has begun, too.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn tasks_begin_on_two_threads() {
        let made = async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        };
        let made = made.boxed().shared();
        let task = |begins: Sender<()>, other: Receiver<()>| {
            let made = made.clone();
            tokio::spawn(async move {
                shared(made).await;
                begins.send(()).unwrap();
                other.recv_timeout(Duration::from_secs(60)).is_ok()
            })
        };
        let ((to_b, of_a), (to_a, of_b)) = (channel(), channel());
        let (a, b) = (task(to_b, of_b), task(to_a, of_a));
        assert!(a.await.unwrap() && b.await.unwrap());
    }
}
