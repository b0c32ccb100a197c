//! `--workers`: queries on several processes, and how these trust each other.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use gridfusion_distributed::{Cluster, Token};
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::size::parse_size;

/// The environment variable of the token, besides `--token-file`.
pub(crate) const TOKEN: &str = "GRIDFUSION_TOKEN";

/// The longest wait for tasks that have nothing left to do.
const TASKS_END: Duration = Duration::from_secs(1);

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
    /// Returns the token that the user gave.
    pub(crate) fn token(&self) -> Result<Option<Token>> {
        let text = match &self.token_file {
            Some(path) => Some(String::from_utf8_lossy(&read(path)?).into_owned()),
            None => env::var(TOKEN).ok().filter(|token| !token.is_empty()),
        };
        text.map(|text| Token::new(text.trim())).transpose()
    }

    /// Returns the certificates of authorities that the user gave.
    pub(crate) fn authorities(&self) -> Result<Option<Vec<u8>>> {
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

    /// Waits until the tasks of queries on workers have ended, which takes a moment after an error. Some of them wait for others.
    ///
    /// If the process ended its threads before, one task could see another cancelled, and panic on standard error.
    pub(crate) async fn tasks_ended(&self) {
        if self.workers.is_empty() {
            return;
        }
        let (begin, metrics) = (Instant::now(), Handle::current().metrics());
        while metrics.num_alive_tasks() > 0 && begin.elapsed() < TASKS_END {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Returns the bytes of a file of the command line.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| {
        let error = gridfusion::Error::io("cannot read the file", error);
        DataFusionError::from(error.in_file(&path.display().to_string()))
    })
}
