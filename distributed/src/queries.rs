//! [`Queries`]: the first failure of each query, so that all of its streams end at once.
//!
//! A query has a channel per task, and streams of rows from a few of the tasks. If a task cannot begin, or its worker dies, the
//! streams learn of it only when other workers give up waiting. So the partition that sees the first failure tells all others.
//!
//! Failures are I/O errors, which other engines repeat. A query runs again only if nothing was shown, as a new plan:
//! tasks have numbers that workers accept once.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use datafusion::error::{DataFusionError, Result};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::watch;

/// How long failures are remembered for streams that begin later.
const REMEMBERED: Duration = Duration::from_secs(60);

type Failure = Option<Arc<DataFusionError>>;

/// A query, which fails once.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    failure: watch::Sender<Failure>,
}

impl Query {
    /// Ends the streams of the query with this error.
    pub(crate) fn fail(&self, error: DataFusionError) -> DataFusionError {
        let error = Arc::new(error);
        self.failure.send_if_modified(|failure| {
            let is_first = failure.is_none();
            failure.get_or_insert_with(|| Arc::clone(&error));
            is_first
        });
        DataFusionError::Shared(error)
    }

    /// Waits for a failure; never ends without one.
    fn failed(&self) -> impl Future<Output = DataFusionError> + Send + 'static {
        let mut failure = self.failure.subscribe();
        async move {
            match failure.wait_for(Option::is_some).await.map(|it| it.clone()) {
                Ok(Some(error)) => DataFusionError::Shared(error),
                _ => std::future::pending().await,
            }
        }
    }

    /// Waits for a result, unless the query fails first.
    pub(crate) async fn unless_failed<T>(
        &self,
        result: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            result = result => result,
            error = self.failed() => Err(error),
        }
    }

    /// Ends a stream when the query fails.
    pub(crate) fn until_failed<T: Send + 'static>(
        &self,
        items: BoxStream<'static, Result<T>>,
    ) -> BoxStream<'static, Result<T>> {
        let failed = Box::pin(self.failed());
        let state = Some((items, failed));
        stream::unfold(state, |state| async {
            let (mut items, mut failed) = state?;
            tokio::select! {
                // Rows that have arrived come first: a query that is complete has not failed.
                biased;
                item = items.next() => item.map(|item| (item, Some((items, failed)))),
                error = &mut failed => Some((Err(error), None)),
            }
        })
        .boxed()
    }
}

/// The queries of a process, by their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queries {
    known: Arc<Mutex<HashMap<u128, (Query, Instant)>>>,
}

impl Queries {
    /// Returns the query of this number. Queries that had no request for a minute are forgotten.
    pub(crate) fn get(&self, number: u128) -> Query {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (query, asked)| {
            query.failure.receiver_count() > 0 || asked.elapsed() < REMEMBERED
        });
        let new = || (Query { failure: watch::Sender::new(None) }, Instant::now());
        let (query, asked) = known.entry(number).or_insert_with(new);
        *asked = Instant::now();
        query.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(text: &str) -> DataFusionError {
        DataFusionError::Execution(text.to_owned())
    }

    #[tokio::test]
    async fn a_failure_ends_streams_that_wait_and_those_that_begin_later() {
        let queries = Queries::default();
        let endless = || stream::pending::<Result<u8>>().boxed();
        let mut waiting = queries.get(1).until_failed(endless());
        let mut other = queries.get(2).until_failed(stream::iter([Ok(7)]).boxed());
        queries.get(1).fail(lost("first"));
        queries.get(1).fail(lost("second"));
        let error = waiting.next().await.unwrap().unwrap_err().to_string();
        assert!(error.contains("first"), "{error}");
        assert!(waiting.next().await.is_none());
        let later = queries.get(1).until_failed(endless()).next().await.unwrap();
        assert!(later.unwrap_err().to_string().contains("first"));
        let never = std::future::pending::<Result<()>>();
        assert!(queries.get(1).unless_failed(never).await.is_err());
        assert_eq!(other.next().await.unwrap().unwrap(), 7, "another query goes on");
        assert!(other.next().await.is_none());
    }
}
