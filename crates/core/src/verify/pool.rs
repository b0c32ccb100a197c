//! A pool of tasks that decode in parallel.
//!
//! Results come in the order in which tasks end, not in that of their start.

use std::future::Future;
use std::thread::available_parallelism;

use tokio::task::JoinSet;

use crate::error::{Error, Result};

/// A pool of as many tasks as the machine has cores. Dropping the pool cancels them.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    tasks: JoinSet<T>,
    most: usize,
}

impl<T: Send + 'static> Pool<T> {
    pub(super) fn new() -> Self {
        let most = available_parallelism().map_or(1, |cores| cores.get());
        Self { tasks: JoinSet::new(), most }
    }

    /// Starts a task. If a task per core is running, first waits for one to end, and returns its
    /// result.
    pub(super) async fn start(
        &mut self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<Option<T>> {
        let ended = match self.tasks.len() < self.most {
            true => None,
            false => self.next().await?,
        };
        self.tasks.spawn(task);
        Ok(ended)
    }

    /// Waits for the next task to end, and returns its result; `None` if all have ended.
    pub(super) async fn next(&mut self) -> Result<Option<T>> {
        let ended = self.tasks.join_next().await.transpose();
        ended.map_err(|error| Error::internal(format!("a verification task failed: {error}")))
    }
}
