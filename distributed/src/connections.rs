//! [`Connections`]: the connections that a worker accepts, which are bounded in number, and must soon show what they are for.
//!
//! ```text
//!   accept ──▶ less than MOST? ──▶ Connection ──first accepted call──▶ lives until its peer ends it, or answers no pings
//!                  │ no                 └── none within FIRST_CALL ──▶ closed
//!                  └──▶ closed
//! ```

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::{self, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tonic::transport::server::Connected;

/// The connections that a worker accepts, if the program sets nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connections {
    /// The most connections at once; others are closed.
    pub(crate) most: usize,
    /// The time until the first call with the right token.
    pub(crate) first_call: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Self { most: 1024, first_call: Duration::from_secs(20) }
    }
}

impl Connections {
    /// Returns the connections of a listener.
    pub(crate) fn of(self, listener: TcpListener) -> impl Stream<Item = io::Result<Connection>> {
        let places = Arc::new(Semaphore::new(self.most));
        stream::unfold((listener, places), move |(listener, places)| async move {
            loop {
                let accepted = listener.accept().await;
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Too many open files, or a peer that is gone. Waiting leaves others time to close theirs.
                        log::warn!("the worker cannot accept a connection: {error}");
                        sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                };
                // Without a place, the connection is closed by dropping it.
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    log::warn!("the worker has {} connections, and closes another one", self.most);
                    continue;
                };
                // An error only means that small messages travel later.
                let _ = stream.set_nodelay(true);
                let connection = Connection {
                    stream,
                    is_used: WasUsed::default(),
                    deadline: Some(Box::pin(sleep(self.first_call))),
                    _place: place,
                };
                return Some((Ok(connection), (listener, places)));
            }
        })
    }
}

/// Whether a connection had a call that was accepted. Requests have it as an extension.
#[derive(Debug, Clone, Default)]
pub(crate) struct WasUsed(Arc<AtomicBool>);

impl WasUsed {
    /// Notes that a call was accepted.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An accepted connection, which ends if it has no accepted call in time.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    is_used: WasUsed,
    /// The time of the first call; `None` after it.
    deadline: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    /// Fails if the time of the first call is over. Wakes the task at that time.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some(deadline) = &mut self.deadline else { return Ok(()) };
        if self.is_used.0.load(Ordering::Relaxed) {
            self.deadline = None;
            return Ok(());
        }
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = WasUsed;

    fn connect_info(&self) -> WasUsed {
        self.is_used.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use datafusion::arrow::datatypes::Schema;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion_distributed::{ChannelResolver, MaybeEncoded, SetPlanRequest, TaskKey};
    use futures::StreamExt;
    use http::HeaderMap;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::task::AbortHandle;
    use url::Url;

    use super::*;
    use crate::channel::Channels;
    use crate::workers::Workers;
    use crate::{Cluster, Identity, WorkerServer};

    const FIRST_CALL: Duration = Duration::from_millis(300);

    /// Waits until the other side closes a connection.
    async fn closed(mut stream: TcpStream) {
        let mut bytes = vec![];
        let read = tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut bytes));
        // A reset connection is closed, too.
        let _ = read.await.expect("the worker does not close the connection");
    }

    /// Starts a worker with two places, and opens a connection that sends nothing and one that only greets.
    async fn two_connections(first_call: Duration) -> (AbortHandle, SocketAddr, [TcpStream; 2]) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = WorkerServer::default().without_token().with_connections(2, first_call);
        let worker = tokio::spawn(server.serve(listener, std::future::pending()));
        let silent = TcpStream::connect(address).await.unwrap();
        let mut greeting = TcpStream::connect(address).await.unwrap();
        greeting.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        (worker.abort_handle(), address, [silent, greeting])
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn connections_that_say_nothing_end() {
        let (worker, _, connections) = two_connections(FIRST_CALL).await;
        for connection in connections {
            closed(connection).await;
        }
        worker.abort();
    }

    /// Connections are accepted in their order, and the first two would stay for an hour.
    #[tokio::test(flavor = "multi_thread")]
    async fn connections_without_a_place_are_closed() {
        let (worker, address, _two) = two_connections(Duration::from_secs(3600)).await;
        closed(TcpStream::connect(address).await.unwrap()).await;
        worker.abort();
    }

    /// A call that takes long is not cut off, with and without encryption.
    #[tokio::test(flavor = "multi_thread")]
    async fn connections_with_a_call_live_on() {
        let tls = |name: &str| {
            std::fs::read(format!("{}/testdata/tls/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
        };
        for is_tls in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let scheme = if is_tls { "https" } else { "http" };
            let address = listener.local_addr().unwrap();
            let url = format!("{scheme}://{address}");
            let mut server =
                WorkerServer::default().without_token().with_connections(2, FIRST_CALL);
            if is_tls {
                server = server.with_identity(Identity::new(tls("worker.pem"), tls("worker.key")));
            }
            let worker = tokio::spawn(server.serve(listener, std::future::pending()));
            let cluster = Cluster::new([&url]).unwrap();
            let state = SessionStateBuilder::new_with_default_features();
            let context = cluster.coordinate(state).unwrap().build().task_ctx();
            let url = Url::parse(&url).unwrap();
            let workers = Workers::new(vec![url.clone()]);
            let channels = Channels::new(workers, None, is_tls.then(|| tls("ca.pem")));
            let mut client = channels.get_worker_client_for_url(&url).await.unwrap();
            let request = SetPlanRequest {
                task_key: TaskKey { query_id: Default::default(), stage_id: 1, task_number: 0 },
                task_count: 1,
                plan: MaybeEncoded::Decoded(Arc::new(EmptyExec::new(Arc::new(Schema::empty())))),
                work_unit_feed_declarations: vec![],
                target_worker_url: url,
                query_start_time_ns: 0,
            };
            let messages = stream::pending().boxed();
            let (headers, metrics) = (HeaderMap::new(), Default::default());
            let call = client.coordinator_channel(headers, request, messages, metrics, &context);
            let mut answers = call.await.unwrap();
            let all = async { while let Some(Ok(_)) = answers.next().await {} };
            // This connection begins later, and the worker closes it after the same time.
            let silent = TcpStream::connect(address).await.unwrap();
            tokio::select! {
                () = all => panic!("{scheme}: the call was cut off"),
                () = closed(silent) => {}
            }
            worker.abort();
        }
    }
}
