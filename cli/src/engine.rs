//! Arguments shared by all commands that run queries.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::cluster::ClusterArgs;
use crate::size::parse_size;

/// How queries run, and what is reported about them.
#[derive(Debug, clap::Args)]
pub(crate) struct Engine {
    /// Print results only: no row counts, no times, no warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Report the time of each statement, and the chunks and bytes that it read, on standard error
    ///
    /// Planning looks up names, labels and zone maps. Execution reads chunks; it includes printing, except
    /// for tables. Chunks and bytes are sums over all arrays of the statement. Unlike EXPLAIN ANALYZE,
    /// which reports per operator, --timing prints the result too.
    #[arg(long)]
    pub(crate) timing: bool,

    /// Hide the progress bar, which appears only if standard error is a terminal
    ///
    /// The bar appears after half a second. It shows how many chunks are done, and bytes per second.
    #[arg(long)]
    pub(crate) no_progress: bool,

    /// Rows per batch in the query engine [default: 8192]
    #[arg(long, value_name = "N")]
    pub(crate) batch_size: Option<NonZeroUsize>,

    /// Memory limit for queries, for instance 500m or 2g [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory_limit: Option<usize>,

    /// Read and write local files in this folder only; symbolic links must not lead out of it
    ///
    /// The limit holds for PATHs and for all paths in SQL: quoted paths, functions, patterns, external tables, COPY, and files that
    /// other files name. It does not hold for files of the command line such as -f and --token-file.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}
