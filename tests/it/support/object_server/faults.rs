//! Faults: which requests go wrong, and how.

use std::time::Duration;

use bytes::Bytes;

use super::request::Request;

/// How a request goes wrong.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The reply has this status and this body.
    Status(u16, String),
    /// The server closes the connection without a reply.
    CloseBeforeReply,
    /// The server closes the connection after so many bytes of the body.
    CloseAfter(usize),
    /// The server sends the head and so many bytes of the body, and then nothing until the client closes the connection.
    Stall(usize),
    /// The server sends nothing until the client closes the connection.
    NeverAnswer,
    /// The reply begins when the test releases it.
    Hold,
    /// The reply begins later, in addition to the latency.
    Delay(Duration),
    /// The body has at most so many bytes. The head agrees with that, and so the client gets less than it asked for.
    ShortBody(usize),
    /// All bits of the body are inverted.
    WrongBytes,
    /// An object is put just before the request is answered. The path and the bytes are those of the object.
    ReplaceObjectBefore(String, Bytes),
}

/// Requests to which a fault applies. They are counted from the moment at which the fault is set.
pub(crate) struct On {
    matches: Box<dyn Fn(&Request) -> bool + Send>,
    /// The number of the first request, from 1 on.
    first: usize,
    /// The number of the last request.
    last: usize,
}

impl On {
    /// Returns one request, given by its number; the next one has number 1.
    pub(crate) fn nth(number: usize) -> Self {
        Self { matches: Box::new(|_| true), first: number, last: number }
    }

    /// Returns all requests from a number on.
    pub(crate) fn from(number: usize) -> Self {
        Self { last: usize::MAX, ..Self::nth(number) }
    }

    /// Returns all requests.
    pub(crate) fn all() -> Self {
        Self::from(1)
    }

    /// Counts only requests for which the predicate is true, and applies only to those.
    pub(crate) fn of(self, matches: impl Fn(&Request) -> bool + Send + 'static) -> Self {
        Self { matches: Box::new(matches), ..self }
    }
}

impl From<usize> for On {
    fn from(number: usize) -> Self {
        Self::nth(number)
    }
}

/// The faults of a server.
#[derive(Default)]
pub(super) struct Faults {
    rules: Vec<Rule>,
}

struct Rule {
    on: On,
    fault: Fault,
    /// The requests so far for which the predicate was true.
    seen: usize,
}

impl Faults {
    pub(super) fn add(&mut self, on: On, fault: Fault) {
        self.rules.push(Rule { on, fault, seen: 0 });
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    /// Counts a request, and returns its fault.
    pub(super) fn of(&mut self, request: &Request) -> Option<Fault> {
        let mut found = None;
        for rule in self.rules.iter_mut().filter(|rule| (rule.on.matches)(request)) {
            rule.seen += 1;
            if found.is_none() && (rule.on.first..=rule.on.last).contains(&rule.seen) {
                found = Some(rule.fault.clone());
            }
        }
        found
    }
}
