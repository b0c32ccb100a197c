//! Arguments shared by all commands that run queries.

use std::num::NonZeroUsize;

use crate::cluster::ClusterArgs;

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

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

/// Parses bytes from `1048576`, `512k`, `500m`, `2g` or `2GiB`. Units are powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let factor: Option<u64> = match unit {
        "" | "b" => Some(1),
        "k" | "kb" | "kib" => Some(1 << 10),
        "m" | "mb" | "mib" => Some(1 << 20),
        "g" | "gb" | "gib" => Some(1 << 30),
        "t" | "tb" | "tib" => Some(1 << 40),
        _ => None,
    };
    let bytes = factor.and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor));
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected a number with a unit b, k, m, g or t, for instance 2g".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("7", 7), ("7B", 7), ("3k", 3 << 10), ("5MiB", 5 << 20), ("1Gb", 1 << 30)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "g", "-1g", "1.5g", "0", "1x", "99999999999999999999", "99999999999t"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
