//! `gridfusion worker`: runs parts of queries for other processes.
//!
//! ```text
//!   gridfusion worker --listen ADDRESS --root FOLDER
//!     token, given or made ─┐
//!     runtime, stores ──────┴──▶ WorkerServer::serve
//! ```

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::common::config_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use gridfusion::Root;
use gridfusion_distributed::{Identity, Token, WorkerServer};
use tokio::net::TcpListener;

use crate::cluster::{TOKEN, TrustArgs, read};
use crate::memory;
use crate::options::{PathOptions, Setting, parse_setting};
use crate::size::parse_size;
use crate::stdin::Stdin;
use crate::store::Stores;

/// The arguments of `worker`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7430")]
    listen: SocketAddr,

    /// Read local files in this folder only; symbolic links must not lead out of it
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,

    /// Let queries read CSV, JSON, Parquet and Arrow files too, not only arrays
    #[arg(long)]
    allow_files: bool,

    /// Options for object stores, for instance `aws.region=eu-north-1`; may be repeated
    #[arg(short = 'O', long = "option", value_name = "NAME=VALUE", value_parser = parse_setting)]
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

    /// Accept calls without a token: every program of this machine can then read what the worker can read
    ///
    /// Without this flag and without a token, the worker makes one and prints it.
    #[arg(long, conflicts_with = "token_file")]
    no_token: bool,

    #[command(flatten)]
    trust: TrustArgs,
}

/// Runs a worker until Ctrl-C.
///
/// # Errors
/// If the address is taken, files cannot be read, or other machines could connect without TLS or a token.
pub(crate) async fn run(args: &WorkerArgs) -> Result<()> {
    let (mut server, mut scheme) = (server(args)?, "http");
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        server = server.with_identity(Identity::new(read(certificate)?, read(key)?));
        scheme = "https";
    }
    let mut made = None;
    server = match args.trust.token()? {
        _ if args.no_token => server.without_token(),
        Some(token) => server.with_token(token),
        // Processes of other machines cannot know a token that is made here.
        None if !args.listen.ip().is_loopback() => server,
        None => server.with_token(Token::new(made.insert(new_token()?))?),
    };
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|error| config_datafusion_err!("cannot listen on {}: {error}", args.listen))?;
    let address = listener.local_addr()?;
    server.check(&listener)?;
    // Scripts wait for the first line, and may read no other. So all lines are one write.
    let mut text = format!("listening on {scheme}://{address}\n");
    if let Some(token) = made {
        text += &format!("token {token}: set {TOKEN} to it where queries start\n");
    }
    io::stdout().write_all(text.as_bytes())?;
    io::stdout().flush()?;
    server.serve(listener, stopped()).await
}

/// Returns the worker without its secrets.
fn server(args: &WorkerArgs) -> Result<WorkerServer> {
    let options = PathOptions::new(&args.options, &gridfusion::built_in_formats())?;
    let root = args.root.as_ref().map(Root::new).transpose()?;
    let stores = Stores::new(Stdin::new(true), options.for_stores()).within(root);
    let stores = Arc::new(stores);
    let runtime = RuntimeEnvBuilder::new().with_object_store_registry(Arc::clone(&stores) as _);
    let runtime = memory::limited(runtime, args.memory_limit).build_arc()?;
    let memory_limit = args.memory_limit;
    let mut server = WorkerServer::default().with_runtime(runtime).with_config(stores.settings());
    server = server.with_session(move |mut session| {
        let config = session.config().get_or_insert_default();
        *config = stores.add_to(std::mem::take(config));
        // Never an error: a row group gets at least 1 byte.
        let _ = memory::adapt(config.options_mut(), memory_limit);
        session
    });
    if args.allow_files {
        server = server.with_files();
    }
    match args.trust.authorities()? {
        Some(pem) => Ok(server.with_authorities(pem)),
        None => Ok(server),
    }
}

/// Returns a new random token of 256 bits.
fn new_token() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::getrandom(&mut bytes)
        .map_err(|error| DataFusionError::External(Box::new(std::io::Error::from(error))))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text never fails.
        let _ = write!(text, "{byte:02x}");
        text
    }))
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
