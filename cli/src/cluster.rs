//! `--workers` and `gridfusion worker`: queries on several processes.
//!
//! ```text
//!   gridfusion --workers URL,URL -c SQL        gridfusion worker --listen ADDRESS
//!     session ──▶ Cluster::coordinate             runtime, stores ──▶ WorkerServer::serve
//! ```

use std::env;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::common::config_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use gridfusion::Formats;
use gridfusion_distributed::{Cluster, Identity, Token, WorkerServer};
use tokio::net::TcpListener;

use crate::memory;
use crate::options::{PathOptions, Setting, parse_setting};
use crate::size::parse_size;
use crate::stdin::Stdin;
use crate::store::Stores;

/// The environment variable of the token, besides `--token-file`.
const TOKEN: &str = "GRIDFUSION_TOKEN";

/// The workers that run a session's queries.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Run queries on these workers, for instance `http://127.0.0.1:7430,http://127.0.0.1:7431`
    ///
    /// Each is a process that `gridfusion worker` started. Workers read the files and object stores themselves, so paths
    /// must be the same there. Workers on other machines need https:// and a token.
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    pub(crate) workers: Vec<String>,

    /// Run a query again, up to N times, if a worker fails before the first row is printed
    #[arg(long, value_name = "N", default_value = "0", requires = "workers")]
    pub(crate) retries: usize,

    /// Decoded bytes that are worth a task of their own; smaller queries do not leave this process
    #[arg(long, value_name = "SIZE", default_value = "16m", value_parser = parse_size, requires = "workers")]
    task_size: usize,

    #[command(flatten)]
    trust: TrustArgs,
}

/// The secrets and certificates by which the processes of a cluster trust each other.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TrustArgs {
    /// File with the secret that all processes of the cluster share; otherwise, GRIDFUSION_TOKEN has it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// File with the certificates (PEM) of authorities to trust, instead of those of the system
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
}

impl TrustArgs {
    fn token(&self) -> Result<Option<Token>> {
        let text = match &self.token_file {
            Some(path) => Some(String::from_utf8_lossy(&read(path)?).into_owned()),
            None => env::var(TOKEN).ok().filter(|token| !token.is_empty()),
        };
        text.map(|text| Token::new(text.trim())).transpose()
    }

    fn authorities(&self) -> Result<Option<Vec<u8>>> {
        self.tls_ca.as_deref().map(read).transpose()
    }
}

impl ClusterArgs {
    /// Adds the workers to a session, if there are any.
    ///
    /// # Errors
    /// If a file cannot be read, a URL is wrong, or a worker on another machine lacks TLS or a token.
    pub(crate) fn coordinate(&self, session: SessionStateBuilder) -> Result<SessionStateBuilder> {
        if self.workers.is_empty() {
            return Ok(session);
        }
        let mut cluster = Cluster::new(&self.workers)?.with_bytes_per_task(self.task_size as u64);
        if let Some(token) = self.trust.token()? {
            cluster = cluster.with_token(token);
        }
        if let Some(pem) = self.trust.authorities()? {
            cluster = cluster.with_authorities(pem);
        }
        cluster.coordinate(session)
    }
}

/// The arguments of `worker`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7430")]
    listen: SocketAddr,

    /// Options for object stores, for instance `aws.region=eu-north-1`; may be repeated
    #[arg(short, long = "option", value_name = "NAME=VALUE", value_parser = parse_setting)]
    options: Vec<Setting>,

    /// Memory limit for all queries together, for instance 500m or 2g [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<usize>,

    /// File with the worker's certificate (PEM), and those that signed it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// File with the private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    #[command(flatten)]
    trust: TrustArgs,
}

/// Runs a worker until Ctrl-C.
///
/// # Errors
/// If the address is taken, files cannot be read, or other machines could connect without TLS or a token.
pub(crate) async fn run(args: &WorkerArgs) -> Result<()> {
    let options = PathOptions::new(&args.options, &Formats::default())?;
    let stores = Arc::new(Stores::new(Stdin::new(true), options.for_stores()));
    let runtime = RuntimeEnvBuilder::new().with_object_store_registry(Arc::clone(&stores) as _);
    let runtime = memory::limited(runtime, args.memory_limit).build_arc()?;
    let memory_limit = args.memory_limit;
    let mut server =
        WorkerServer::default().with_runtime(runtime).with_session(move |mut session| {
            let config = session.config().get_or_insert_default();
            *config = stores.add_to(std::mem::take(config));
            // Never an error: a row group gets at least 1 byte.
            let _ = memory::adapt(config.options_mut(), memory_limit);
            session
        });
    if let Some(token) = args.trust.token()? {
        server = server.with_token(token);
    }
    if let Some(pem) = args.trust.authorities()? {
        server = server.with_authorities(pem);
    }
    let mut scheme = "http";
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        server = server.with_identity(Identity::new(read(certificate)?, read(key)?));
        scheme = "https";
    }
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|error| config_datafusion_err!("cannot listen on {}: {error}", args.listen))?;
    let address = listener.local_addr()?;
    server.check(&listener)?;
    // Scripts wait for this line.
    writeln!(io::stdout(), "listening on {scheme}://{address}")?;
    io::stdout().flush()?;
    server.serve(listener, stopped()).await
}

/// Waits for a signal to stop. Running queries then end first, unless a second signal comes.
async fn stopped() {
    signalled().await;
    tokio::spawn(async {
        signalled().await;
        std::process::exit(130);
    });
}

/// Waits for Ctrl-C, or for the signal that ends services.
async fn signalled() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut ended) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = ended.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| {
        let error = gridfusion::Error::io("cannot read the file", error);
        DataFusionError::from(error.in_file(&path.display().to_string()))
    })
}
