//! [`WorkerServer`]: a process that runs parts of plans for coordinators.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedExt, Worker, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse,
    WorkerQueryContext,
};
use gridfusion::codec::GridfusionCodec;
use gridfusion::{GridfusionConfig, GridfusionSessionStateBuilderExt, with_causes};
use tokio::net::TcpListener;
use tonic::Request;
use tonic::service::InterceptorLayer;
use tonic::transport::server::TlsConnectInfo;
use tonic::transport::{Server, ServerTlsConfig};

use crate::allowed::AllowedOperators;
use crate::channel::{Channels, version};
use crate::connections::{Connections, WasUsed};
use crate::counters::{ProgressService, RunningTasks};
use crate::query_number::QueryNumber;
use crate::security::{Identity, Token, check_address};
use crate::settings;
use crate::workers::Workers;

/// A program's own additions to the session of a task.
type Customize = Arc<dyn Fn(SessionStateBuilder) -> SessionStateBuilder + Send + Sync>;

/// A worker: it runs the parts of plans that coordinators send, with its own files, object stores and memory limit.
///
/// It runs scans and reductions of gridfusion, and operators that only compute. It writes no files, and reads files of other formats
/// only after [`WorkerServer::with_files`]. [`GridfusionConfig::root`] limits the local paths of arrays.
///
/// All tasks share a runtime and the settings of gridfusion, so that tables, connections and metadata are kept from query to
/// query.
///
/// ```no_run
/// use gridfusion_distributed::{Identity, Token, WorkerServer};
/// use tokio::net::TcpListener;
///
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let worker = WorkerServer::default()
///     .with_identity(Identity::new(std::fs::read("worker.pem")?, std::fs::read("worker.key")?))
///     .with_token(Token::new("a-long-random-text")?);
/// worker.serve(TcpListener::bind("0.0.0.0:7430").await?, std::future::pending()).await
/// # }
/// ```
#[derive(Clone)]
pub struct WorkerServer {
    runtime: Arc<RuntimeEnv>,
    config: GridfusionConfig,
    customize: Customize,
    token: Option<Token>,
    /// Whether calls need no token.
    is_open: bool,
    allowed: AllowedOperators,
    connections: Connections,
    identity: Option<Identity>,
    authorities: Option<Vec<u8>>,
}

impl Default for WorkerServer {
    fn default() -> Self {
        Self {
            runtime: Arc::default(),
            config: GridfusionConfig::default(),
            customize: Arc::new(|session| session),
            token: None,
            is_open: false,
            allowed: AllowedOperators::default(),
            connections: Connections::default(),
            identity: None,
            authorities: None,
        }
    }
}

impl fmt::Debug for WorkerServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerServer")
            .field("token", &self.token)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl WorkerServer {
    /// Sets the runtime of all tasks: object stores, memory limit, and folder for spilled rows.
    #[must_use = "the worker is not changed in place"]
    pub fn with_runtime(self, runtime: Arc<RuntimeEnv>) -> Self {
        Self { runtime, ..self }
    }

    /// Sets the settings of gridfusion: access to object stores, and the formats that the worker can open.
    #[must_use = "the worker is not changed in place"]
    pub fn with_config(self, config: GridfusionConfig) -> Self {
        Self { config, ..self }
    }

    /// Changes the session of each task, for instance to add functions.
    #[must_use = "the worker is not changed in place"]
    pub fn with_session(
        self,
        customize: impl Fn(SessionStateBuilder) -> SessionStateBuilder + Send + Sync + 'static,
    ) -> Self {
        Self { customize: Arc::new(customize), ..self }
    }

    /// Refuses calls without this token, and shows it to other workers.
    #[must_use = "the worker is not changed in place"]
    pub fn with_token(self, token: Token) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Accepts calls without a token, which is possible on the loopback interface only. Every program of the machine, of any user,
    /// can then read what the worker can read.
    #[must_use = "the worker is not changed in place"]
    pub fn without_token(self) -> Self {
        Self { is_open: true, token: None, ..self }
    }

    /// Lets queries read files of DataFusion's formats, such as CSV and Parquet, at any path that the stores of the runtime have.
    #[must_use = "the worker is not changed in place"]
    pub fn with_files(mut self) -> Self {
        self.allowed.files = true;
        self
    }

    /// Lets queries use nodes of the program's own, which this test accepts. It is asked about each node that the worker would
    /// refuse.
    #[must_use = "the worker is not changed in place"]
    pub fn with_nodes(
        mut self,
        allows: impl Fn(&Arc<dyn ExecutionPlan>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.allowed.others = Some(Arc::new(allows));
        self
    }

    /// Sets the most connections at once, 1024 by default; others are closed. A new connection is also closed if it has no call with
    /// the right token in time, 20 seconds by default.
    #[must_use = "the worker is not changed in place"]
    pub fn with_connections(self, most: usize, first_call: Duration) -> Self {
        Self { connections: Connections { most, first_call }, ..self }
    }

    /// Encrypts connections, by this certificate and key.
    #[must_use = "the worker is not changed in place"]
    pub fn with_identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Trusts other workers whose certificates these authorities have signed, in PEM, instead of those of the system.
    #[must_use = "the worker is not changed in place"]
    pub fn with_authorities(self, pem: impl Into<Vec<u8>>) -> Self {
        Self { authorities: Some(pem.into()), ..self }
    }

    /// Refuses a listener without a token, unless the worker needs none; beyond the loopback interface, also one without a certificate.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn check(&self, listener: &TcpListener) -> Result<()> {
        let address = listener.local_addr()?;
        let has_token = self.token.is_some();
        check_address(address.ip(), self.identity.is_some(), has_token, self.is_open)
    }

    /// Answers calls until `shutdown` is ready and running calls have ended.
    ///
    /// # Errors
    /// As [`WorkerServer::check`]; if the certificate cannot be read, or the connection to the network is lost.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        self.check(&listener)?;
        let address = listener.local_addr()?;
        let failed = |error: tonic::transport::Error| {
            exec_datafusion_err!("the worker on {address}: {}", with_causes(&error))
        };
        // Coordinators that are gone do not hold their tasks.
        let mut server = Server::builder()
            .http2_keepalive_interval(Some(Duration::from_secs(10)))
            .http2_keepalive_timeout(Some(Duration::from_secs(20)))
            .http2_adaptive_window(Some(true));
        if let Some(identity) = &self.identity {
            let pem = tonic::transport::Identity::from_pem(&identity.certificate, &identity.key);
            let tls = ServerTlsConfig::new().identity(pem);
            server = server.tls_config(tls).map_err(failed)?;
        }
        let token = self.token.clone();
        let check = move |request: Request<()>| {
            let request = match &token {
                Some(token) => token.check(request)?,
                None => request,
            };
            if let Some(used) = used(&request) {
                used.note();
            }
            Ok(request)
        };
        let running = RunningTasks::default();
        let incoming = self.connections.of(listener);
        let served = server
            .layer(InterceptorLayer::new(check))
            .add_service(ProgressService(running.clone()))
            .add_service(self.worker(running).into_worker_server())
            .serve_with_incoming_shutdown(incoming, shutdown);
        served.await.map_err(failed)
    }

    /// Returns the service of the worker.
    fn worker(self, running: RunningTasks) -> Worker {
        let runtime = Arc::clone(&self.runtime);
        let channels =
            Channels::new(Workers::new(vec![]), self.token.clone(), self.authorities.clone());
        let session = move |context: WorkerQueryContext| {
            let WorkerQueryContext { mut builder, headers } = context;
            let (config, channels) = (self.config.clone(), channels.clone());
            let (customize, running) = (Arc::clone(&self.customize), running.clone());
            let allowed = self.allowed.clone();
            async move {
                let of_task = builder.config().get_or_insert_default();
                settings::apply(&headers, of_task)?;
                of_task.options_mut().extensions.insert(config);
                let query = QueryNumber::try_new(&headers);
                let remember = move |event: WorkerPlanRewriteEvent<'_>| {
                    allowed.check(&event.plan)?;
                    if let Some(query) = query {
                        running.add(query, &event.plan);
                    }
                    Ok(WorkerPlanRewriteEventResponse::new(event.plan))
                };
                let builder = builder
                    .with_distributed_worker_plan_rewrite_handler(remember)
                    .with_distributed_user_codec(GridfusionCodec)
                    .with_distributed_channel_resolver(channels)
                    .with_gridfusion();
                Ok(customize(builder).build())
            }
        };
        Worker::from_session_builder(session).with_runtime_env(runtime).with_version(version())
    }
}

/// Returns the mark of the connection of a request, which is encrypted or not.
fn used(request: &Request<()>) -> Option<&WasUsed> {
    let extensions = request.extensions();
    let encrypted = || extensions.get::<TlsConnectInfo<WasUsed>>().map(TlsConnectInfo::get_ref);
    extensions.get::<WasUsed>().or_else(encrypted)
}
