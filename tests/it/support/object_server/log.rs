//! The requests of a server.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::lock;
use super::request::Request;

/// Requests that have not arrived after this time never will.
const NEVER: Duration = Duration::from_secs(120);

/// The requests so far, and how many were in flight at once.
#[derive(Default)]
pub(super) struct Log {
    inner: Mutex<Inner>,
    /// Wakes those who wait for requests.
    arrives: Condvar,
}

#[derive(Default)]
struct Inner {
    /// In the order of their numbers.
    requests: Vec<Request>,
    /// The number of the last request.
    count: u64,
    in_flight: usize,
    most_in_flight: usize,
}

impl Log {
    /// Adds a request, which is in flight until the result is dropped.
    pub(super) fn begin(&self, mut request: Request) -> Exchange<'_> {
        let mut inner = lock(&self.inner);
        inner.count += 1;
        inner.in_flight += 1;
        inner.most_in_flight = inner.most_in_flight.max(inner.in_flight);
        request.number = inner.count;
        inner.requests.push(request);
        self.arrives.notify_all();
        Exchange { log: self, number: inner.count }
    }

    pub(super) fn wait_for(&self, count: usize) {
        let waits = |inner: &mut Inner| inner.requests.len() < count;
        let waited = self.arrives.wait_timeout_while(lock(&self.inner), NEVER, waits);
        assert!(waited.is_ok_and(|(_, wait)| !wait.timed_out()), "fewer than {count} requests");
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        lock(&self.inner).requests.clone()
    }

    pub(super) fn take(&self) -> Vec<Request> {
        std::mem::take(&mut lock(&self.inner).requests)
    }

    pub(super) fn most_in_flight(&self) -> usize {
        lock(&self.inner).most_in_flight
    }

    pub(super) fn reset_most_in_flight(&self) {
        let mut inner = lock(&self.inner);
        inner.most_in_flight = inner.in_flight;
    }
}

/// A request in flight.
pub(super) struct Exchange<'a> {
    log: &'a Log,
    number: u64,
}

impl Exchange<'_> {
    /// Notes the status of the reply.
    pub(super) fn replies(&self, status: u16) {
        self.edit(|request| request.status = status);
    }

    /// Counts bytes of the body that are about to be sent. A client that has received bytes finds them in the log.
    pub(super) fn sends(&self, bytes: usize) {
        self.edit(|request| request.sent += bytes as u64);
    }

    /// Changes the request, unless the log was taken meanwhile.
    fn edit(&self, edit: impl FnOnce(&mut Request)) {
        let requests = &mut lock(&self.log.inner).requests;
        if let Ok(at) = requests.binary_search_by_key(&self.number, |request| request.number) {
            edit(&mut requests[at]);
        }
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        lock(&self.log.inner).in_flight -= 1;
    }
}
