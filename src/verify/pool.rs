//! A few tasks that decode side by side.

use std::future::Future;
use std::thread::available_parallelism;

use tokio::task::JoinSet;

use crate::error::{Error, Result};

/// As many tasks as the machine has cores; dropping the pool ends them.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    tasks: JoinSet<T>,
    most: usize,
}

impl<T: Send + 'static> Pool<T> {
    pub(crate) fn new() -> Self {
        let most = available_parallelism().map_or(1, |cores| cores.get());
        Self { tasks: JoinSet::new(), most }
    }

    /// Starts a task. If as many run as there are cores, waits for one to end, and gives its result.
    pub(crate) async fn start(
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

    /// The result of the next task that ends; `None` if all have ended.
    pub(crate) async fn next(&mut self) -> Result<Option<T>> {
        let ended = self.tasks.join_next().await.transpose();
        ended.map_err(|error| Error::internal(format!("a task that verifies has died: {error}")))
    }
}
