//! [`Channels`]: connections to workers that notice when a worker is gone.
//!
//! A new connection asks the worker for its version first. After that, pings show within seconds whether the worker still
//! answers, even while it computes for minutes. Errors name the worker.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::config_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest,
    GetWorkerInfoResponse, SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use gridfusion::codec::GridfusionCodec;
use http::HeaderMap;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tower::ServiceExt;
use url::Url;

use crate::failure::{failure, is_worker_failure, of_call};
use crate::queries::{Queries, Query};
use crate::query_number::QueryNumber;
use crate::security::{Token, check_url};
use crate::settings;
use crate::workers::Workers;

/// The time for a connection, and for the first answer on it.
const CONNECT: Duration = Duration::from_secs(5);

/// The time between pings, and the time in which a worker must answer one.
const PING: Duration = Duration::from_secs(5);
const PONG: Duration = Duration::from_secs(10);

/// Returns the version that coordinator and workers must share: the crate's, that of plans as bytes, and DataFusion's.
pub(crate) fn version() -> String {
    format!(
        "gridfusion {} (plans {}, DataFusion {})",
        env!("CARGO_PKG_VERSION"),
        GridfusionCodec::VERSION,
        datafusion::DATAFUSION_VERSION
    )
}

/// A connection that one call makes, while the others wait.
type Connection = Arc<OnceCell<Channel>>;

/// The connections to workers, each made once.
#[derive(Debug, Clone)]
pub(crate) struct Channels {
    workers: Workers,
    token: Option<Token>,
    /// Authorities whose certificates are trusted, in PEM; `None` for those of the system.
    authorities: Option<Vec<u8>>,
    open: Arc<Mutex<HashMap<Url, Connection>>>,
    queries: Queries,
}

impl Channels {
    pub(crate) fn new(
        workers: Workers,
        token: Option<Token>,
        authorities: Option<Vec<u8>>,
    ) -> Self {
        Self { workers, token, authorities, open: Arc::default(), queries: Queries::default() }
    }

    /// Returns a client of a worker, over a connection that is open, or a new one.
    async fn client(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let connection = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(open.entry(url.clone()).or_default())
        };
        let channel = connection.get_or_try_init(|| self.connect(url)).await;
        match channel {
            Ok(channel) => Ok(self.client_over(channel.clone())),
            Err(error) => {
                // A worker that refuses the token or has another version stays a worker of the cluster.
                if is_worker_failure(&error) {
                    self.lost(url);
                }
                Err(error)
            }
        }
    }

    /// Returns the connections that are open, with the URLs of their workers.
    pub(crate) fn opened(&self) -> Vec<(String, BoxCloneSyncChannel)> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = |(url, connection): (&Url, &Connection)| {
            Some((url.to_string(), self.with_token(connection.get()?.clone())))
        };
        open.iter().filter_map(opened).collect()
    }

    fn client_over(&self, channel: Channel) -> Box<dyn WorkerChannel> {
        create_worker_client(self.with_token(channel))
    }

    /// Adds the token to the calls over a connection.
    fn with_token(&self, channel: Channel) -> BoxCloneSyncChannel {
        let token = self.token.clone();
        let with_token = channel.map_request(move |mut request: http::Request<_>| {
            if let Some(token) = &token {
                token.add_to(request.headers_mut());
            }
            request
        });
        BoxCloneSyncChannel::new(with_token)
    }

    /// Connects to a worker, and compares versions.
    async fn connect(&self, url: &Url) -> Result<Channel> {
        // A worker gets the URLs of others from a plan.
        check_url(url, self.token.is_some())?;
        let silent = |_| {
            let reason = format!("does not answer within {} seconds", CONNECT.as_secs());
            failure(url, io::ErrorKind::TimedOut, reason)
        };
        let connected = timeout(CONNECT, self.endpoint(url)?.connect()).await.map_err(silent)?;
        let channel = connected.map_err(|error| {
            let reason = format!("cannot be reached: {}", first_cause(&error));
            failure(url, io::ErrorKind::ConnectionRefused, reason)
        })?;
        let mut client = self.client_over(channel.clone());
        let answer = client.get_worker_info(GetWorkerInfoRequest {});
        let answer = timeout(CONNECT, answer).await.map_err(silent)?;
        let found = answer.map_err(|error| of_call(url, error))?.version;
        if found != version() {
            let found = if found.is_empty() { "another program" } else { &found };
            let reason = format!("is {found}, and this is {}: install the same version", version());
            return Err(failure(url, io::ErrorKind::InvalidData, reason));
        }
        Ok(channel)
    }

    fn endpoint(&self, url: &Url) -> Result<Endpoint> {
        let wrong = |error| config_datafusion_err!("the URL '{url}' of a worker: {error}");
        let endpoint = Endpoint::from_shared(url.to_string()).map_err(wrong)?;
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            .keep_alive_while_idle(true)
            .http2_adaptive_window(true);
        if url.scheme() != "https" {
            return Ok(endpoint);
        }
        let tls = match &self.authorities {
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        endpoint.tls_config(tls).map_err(wrong)
    }

    /// Forgets the connection to a worker, and leaves the worker out for a while.
    fn lost(&self, url: &Url) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(url);
        self.workers.leave_out(url);
    }

    /// Returns an error of a call, with the name of the worker; remembers workers that are gone.
    fn failed(&self, url: &Url, error: DataFusionError) -> DataFusionError {
        let error = of_call(url, error);
        if is_worker_failure(&error) {
            let gone = self.workers.named_in(&error.to_string()).unwrap_or(url).clone();
            self.lost(&gone);
        }
        error
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let client = self.client(url).await?;
        Ok(Box::new(NamedChannel { client, url: url.clone(), channels: self.clone() }))
    }
}

/// Returns the error at the end of the chain of causes: the errors above it repeat its text.
fn first_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut first = error;
    while let Some(cause) = first.source() {
        first = cause;
    }
    first
}

/// A client whose errors name the worker.
struct NamedChannel {
    client: Box<dyn WorkerChannel>,
    url: Url,
    channels: Channels,
}

impl NamedChannel {
    /// Names the worker in the errors of a stream, which end all streams of the query.
    fn named<T: Send + 'static>(
        &self,
        query: &Query,
        stream: BoxStream<'static, Result<T>>,
    ) -> BoxStream<'static, Result<T>> {
        let (url, channels, query) = (self.url.clone(), self.channels.clone(), query.clone());
        let named = move |error| query.fail(channels.failed(&url, error));
        stream.map(move |item| item.map_err(&named)).boxed()
    }

    fn failed(&self, error: DataFusionError) -> DataFusionError {
        self.channels.failed(&self.url, error)
    }
}

#[async_trait]
impl WorkerChannel for NamedChannel {
    async fn coordinator_channel(
        &mut self,
        mut headers: HeaderMap,
        plan: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let number = plan.task_key.query_id.as_u128();
        let query = self.channels.queries.get(number);
        QueryNumber(number).add_to(&mut headers);
        settings::add_to(&mut headers, context.session_config().options())?;
        let opened = self.client.coordinator_channel(headers, plan, messages, metrics, context);
        let answers = opened.await.map_err(|error| query.fail(self.failed(error)))?;
        Ok(self.named(&query, answers))
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let query = self.channels.queries.get(request.task_key.query_id.as_u128());
        let streams = self.client.execute_task(headers, request, metrics, context);
        let streams = query.unless_failed(streams).await;
        let streams = streams.map_err(|error| query.fail(self.failed(error)))?;
        Ok(streams
            .into_iter()
            .map(|stream| query.until_failed(self.named(&query, stream)))
            .collect())
    }

    async fn get_worker_info(
        &mut self,
        request: GetWorkerInfoRequest,
    ) -> Result<GetWorkerInfoResponse> {
        let info = self.client.get_worker_info(request).await;
        info.map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use datafusion_distributed::Worker;
    use tokio::net::TcpListener;
    use tonic::transport::Server;
    use tonic::transport::server::TcpIncoming;

    use super::*;

    #[tokio::test]
    async fn workers_of_other_versions_are_refused_by_name() {
        for (version, expected) in
            [("gridfusion 0.0.9", "gridfusion 0.0.9"), ("", "another program")]
        {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
            let worker = Worker::default().with_version(version).into_worker_server();
            let server = Server::builder().add_service(worker);
            tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
            let workers = Workers::new(vec![url.clone()]);
            let channels = Channels::new(workers, None, None);
            let error = channels.client(&url).await.map(|_| ()).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(&crate::failure::shown(&url)), "{message}");
            assert!(
                message.contains(&format!("is {expected}, and this is {}", super::version())),
                "{message}"
            );
            assert!(!is_worker_failure(&error), "another try would not help");
        }
    }

    #[tokio::test]
    async fn other_machines_are_not_called_without_encryption() {
        let url = Url::parse("http://192.0.2.1:7430").unwrap();
        let channels = Channels::new(Workers::new(vec![]), None, None);
        let error = channels.client(&url).await.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("unencrypted"), "{error}");
    }
}
