//! [`Workers`]: the workers of a cluster, and which of them have failed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use datafusion::error::Result;
use datafusion_distributed::WorkerResolver;
use url::Url;

use crate::failure::shown;

/// How long queries leave out a worker that has failed.
const LEFT_OUT: Duration = Duration::from_secs(30);

/// The workers of a cluster. Queries leave out those that have failed, unless all have.
#[derive(Debug, Clone)]
pub(crate) struct Workers {
    urls: Arc<[Url]>,
    failed: Arc<Mutex<HashMap<Url, Instant>>>,
}

impl Workers {
    pub(crate) fn new(urls: Vec<Url>) -> Self {
        Self { urls: urls.into(), failed: Arc::default() }
    }

    /// Returns the workers that have not failed lately, in the order of their URLs.
    pub(crate) fn living(&self) -> Vec<Url> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let has_failed = |url: &&Url| failed.get(*url).is_some_and(|at| at.elapsed() < LEFT_OUT);
        let living: Vec<Url> = self.urls.iter().filter(|url| !has_failed(url)).cloned().collect();
        if living.is_empty() { self.urls.to_vec() } else { living }
    }

    /// Leaves out a worker for a while.
    pub(crate) fn leave_out(&self, worker: &Url) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.insert(worker.clone(), Instant::now());
    }

    /// Returns the worker that an error names.
    pub(crate) fn named_in(&self, message: &str) -> Option<&Url> {
        let is_named = |url: &&Url| {
            let name = format!("worker {} ", shown(url));
            message.contains(&name)
        };
        self.urls.iter().find(is_named)
    }
}

impl WorkerResolver for Workers {
    /// Returns the living workers. The only one is there twice: datafusion-distributed would run stages of one task in the
    /// coordinator, and not on the worker, which may be the machine with the data.
    fn get_urls(&self) -> Result<Vec<Url>> {
        let living = self.living();
        Ok(match living.as_slice() {
            [only] => vec![only.clone(), only.clone()],
            _ => living,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_leave_out_workers_that_failed_unless_all_did() {
        let urls = ["http://127.0.0.1:1", "http://127.0.0.1:2"].map(|url| Url::parse(url).unwrap());
        let workers = Workers::new(urls.to_vec());
        assert_eq!(workers.living(), urls);
        workers.leave_out(&urls[0]);
        assert_eq!(workers.living(), urls[1..]);
        workers.leave_out(&urls[1]);
        assert_eq!(workers.living(), urls);
        assert_eq!(workers.named_in("worker http://127.0.0.1:2 stopped"), Some(&urls[1]));
        assert_eq!(workers.named_in("worker http://127.0.0.1:22 stopped"), None);
    }
}
