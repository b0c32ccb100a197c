//! [`ObjectServer`]: objects over HTTP on this machine, as S3 and plain web servers answer them, for tests and benches.
//!
//! ```text
//!   TcpListener ──▶ connection::serve     a thread per connection
//!                     ├─ request          the head of a request
//!                     ├─ faults           which request goes wrong, and how
//!                     ├─ answer, listing  the reply
//!                     ├─ sending          its bytes, at the speed of the link
//!                     └─ log              requests so far
//! ```
//!
//! The server keeps connections alive, and answers `GET` and `HEAD` with ranges, entity tags and conditions. For S3 it lists the
//! keys of a bucket, which is the first part of a path. It has no TLS, no signatures and no writing.
//!
//! The link can be slow: [`ObjectServer::set_latency`], [`ObjectServer::set_bandwidth`]. Opening a connection costs no
//! latency, unlike on a real link.

mod answer;
mod connection;
mod control;
mod faults;
mod listing;
mod log;
mod objects;
mod request;
mod sending;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;

use faults::Faults;
#[allow(unused_imports, reason = "benches need a part of it")]
pub(crate) use faults::{Fault, On};
use log::Log;
use objects::Objects;
#[allow(unused_imports, reason = "benches need a part of it")]
pub(crate) use request::{Listing, Request, Span};

/// How a server differs from S3. Each is off at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// `HEAD` is answered by 405.
    HeadNotAllowed,
    /// Every `GET` is answered by 200 and the whole object.
    IgnoresRanges,
    /// `If-Match` has no effect.
    IgnoresIfMatch,
    /// Entity tags are weak: `W/"7"`. A weak tag never matches in `If-Match`.
    WeakETags,
    /// Replies and listings have no entity tags.
    NoETag,
    /// `/redirect/PATH` is answered by 302 to `/PATH`.
    Redirects,
}

/// Serves objects until it is dropped. Dropping it closes all connections.
pub(crate) struct ObjectServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    accept: Option<JoinHandle<()>>,
}

impl ObjectServer {
    /// Starts a server of objects, given by their paths without a slash at the beginning. In an S3 path such as
    /// `bucket/key`, the first part names the bucket.
    pub(crate) fn start<P, B>(objects: impl IntoIterator<Item = (P, B)>) -> Self
    where
        P: Into<String>,
        B: Into<Bytes>,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        for (path, bytes) in objects {
            shared.objects().put(path.into(), bytes.into());
        }
        let of_thread = Arc::clone(&shared);
        let accept = std::thread::spawn(move || accept(&listener, &of_thread));
        Self { shared, address, accept: Some(accept) }
    }

    /// Returns the URL of the server, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds or replaces an object. It gets a new entity tag and a later time of modification.
    pub(crate) fn put(&self, path: impl Into<String>, bytes: impl Into<Bytes>) {
        self.shared.objects().put(path.into(), bytes.into());
    }

    /// Removes an object, if it exists.
    pub(crate) fn remove(&self, path: &str) {
        self.shared.objects().remove(path);
    }

    /// Sets the time before the first byte of every reply.
    pub(crate) fn set_latency(&self, latency: Duration) {
        self.shared.link.set_latency(latency);
    }

    /// Sets the bytes per second of each connection; `None` for no limit.
    pub(crate) fn set_bandwidth(&self, bytes_per_second: Option<u64>) {
        self.shared.link.set_bandwidth(bytes_per_second);
    }

    /// Turns a behaviour on or off.
    pub(crate) fn behave(&self, behaviour: Behaviour, on: bool) {
        let mut behaviours = lock(&self.shared.behaviours);
        behaviours.retain(|it| *it != behaviour);
        behaviours.extend(on.then_some(behaviour));
    }

    /// Makes requests go wrong. A number stands for that request, once; the next request has number 1.
    ///
    /// If several faults apply to a request, it gets the one that was set first.
    pub(crate) fn fault(&self, on: impl Into<On>, fault: Fault) {
        lock(&self.shared.faults).add(on.into(), fault);
    }

    /// Removes all faults, and sends the replies that are held.
    pub(crate) fn release(&self) {
        self.clear_faults();
        self.shared.stop.release();
    }

    /// Waits until so many requests have arrived since the log began. Fails the test if they do not arrive.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        self.shared.log.wait_for(count);
    }

    /// Removes all faults. Requests that wait for ever keep waiting, and so do those that are held.
    pub(crate) fn clear_faults(&self) {
        lock(&self.shared.faults).clear();
    }

    /// Returns all requests so far, in the order of their arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.log.requests()
    }

    /// Returns all requests since the last call, and forgets them.
    pub(crate) fn take_requests(&self) -> Vec<Request> {
        self.shared.log.take()
    }

    /// Returns the most requests that were in flight at once: they had arrived, and not all of their reply was sent.
    pub(crate) fn most_in_flight(&self) -> usize {
        self.shared.log.most_in_flight()
    }

    /// Begins to count anew with the requests that are in flight now.
    pub(crate) fn reset_most_in_flight(&self) {
        self.shared.log.reset_most_in_flight();
    }

    /// Returns the bytes of the bodies of all replies in the log. Replies that are being sent count in part.
    pub(crate) fn bytes_sent(&self) -> u64 {
        self.shared.log.requests().iter().map(|request| request.sent).sum()
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.shared.stop.set();
        // This connection wakes the thread that accepts connections.
        drop(TcpStream::connect(self.address));
        if let Some(accept) = self.accept.take() {
            drop(accept.join());
        }
    }
}

/// Accepts connections until the server is dropped, and then closes them.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut connections: Vec<(TcpStream, JoinHandle<()>)> = vec![];
    for stream in listener.incoming() {
        if shared.stop.is_set() {
            break;
        }
        connections.retain(|(_, thread)| !thread.is_finished());
        let Ok(stream) = stream else { continue };
        let (kept, of_thread) = (stream.try_clone().unwrap(), Arc::clone(shared));
        let thread = std::thread::spawn(move || connection::serve(&stream, &of_thread));
        connections.push((kept, thread));
    }
    for (stream, _) in &connections {
        drop(stream.shutdown(std::net::Shutdown::Both));
    }
    for (_, thread) in connections {
        drop(thread.join());
    }
}

/// The state that all connections share.
#[derive(Default)]
struct Shared {
    objects: Mutex<Objects>,
    link: Link,
    behaviours: Mutex<Vec<Behaviour>>,
    faults: Mutex<Faults>,
    log: Log,
    stop: Stop,
}

impl Shared {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        lock(&self.objects)
    }

    fn behaves(&self, behaviour: Behaviour) -> bool {
        lock(&self.behaviours).contains(&behaviour)
    }
}

/// Locks a mutex, also after a thread has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The conditions of the link.
#[derive(Default)]
struct Link {
    latency_nanos: AtomicU64,
    /// Bytes per second of a connection; 0 for no limit.
    bandwidth: AtomicU64,
}

impl Link {
    fn latency(&self) -> Duration {
        Duration::from_nanos(self.latency_nanos.load(Ordering::Relaxed))
    }

    fn set_latency(&self, latency: Duration) {
        self.latency_nanos.store(latency.as_nanos() as u64, Ordering::Relaxed);
    }

    fn bandwidth(&self) -> Option<u64> {
        Some(self.bandwidth.load(Ordering::Relaxed)).filter(|rate| *rate > 0)
    }

    fn set_bandwidth(&self, bytes_per_second: Option<u64>) {
        self.bandwidth.store(bytes_per_second.unwrap_or(0), Ordering::Relaxed);
    }
}

/// Ends all waiting when the server is dropped, and the waiting of held replies when they are released.
#[derive(Default)]
struct Stop {
    state: Mutex<StopState>,
    wakes: Condvar,
}

#[derive(Default)]
struct StopState {
    is_set: bool,
    /// How often held replies were released.
    releases: u64,
}

impl Stop {
    fn set(&self) {
        lock(&self.state).is_set = true;
        self.wakes.notify_all();
    }

    fn is_set(&self) -> bool {
        lock(&self.state).is_set
    }

    fn release(&self) {
        lock(&self.state).releases += 1;
        self.wakes.notify_all();
    }

    fn releases(&self) -> u64 {
        lock(&self.state).releases
    }

    /// Waits until there are more releases; `None` if the server is dropped meanwhile.
    fn wait_for_release(&self, before: u64) -> Option<()> {
        let waits = |state: &mut StopState| !state.is_set && state.releases == before;
        let woken = self.wakes.wait_while(lock(&self.state), waits);
        let state = woken.unwrap_or_else(PoisonError::into_inner);
        (!state.is_set).then_some(())
    }

    /// Waits until a time; `None` if the server is dropped meanwhile.
    fn wait_until(&self, due: Instant) -> Option<()> {
        let mut state = lock(&self.state);
        loop {
            if state.is_set {
                return None;
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(());
            }
            let woken = self.wakes.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
