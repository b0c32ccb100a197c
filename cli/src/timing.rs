//! `--timing`: the time of a statement, and the chunks and bytes that it read.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use crate::reads::Reads;
use crate::requests::Requests;

/// The figures that `--timing` prints for a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// The whole time of a statement such as `SET`, `CREATE` or `SHOW`.
    Whole { time: Duration, requests: Requests },
    /// The figures of a query, or of another statement with a plan.
    Query {
        /// From the text to the physical plan, with lookups of names, labels and zone maps.
        planning: Duration,
        /// From the plan to the last row. Includes printing, except for tables.
        execution: Duration,
        /// Rows of the result.
        rows: usize,
        /// The chunks and bytes read for the rows.
        reads: Reads,
        /// The requests to object stores, also those of the planning.
        requests: Requests,
    },
}

impl Timing {
    /// Prints the figures on standard error. Write errors are ignored.
    pub(crate) fn report(&self) {
        let _ = writeln!(io::stderr(), "{self}");
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { time, requests } => {
                write!(f, "Timing: {:.3} s", time.as_secs_f64())?;
                after_semicolon(f, requests)
            }
            Self::Query { planning, execution, rows, reads, requests } => {
                let (planning, execution) = (planning.as_secs_f64(), execution.as_secs_f64());
                write!(f, "Timing: planning {planning:.3} s, execution {execution:.3} s; ")?;
                write!(f, "{rows} row{}", if *rows == 1 { "" } else { "s" })?;
                if reads.chunks > 0 {
                    write!(f, "; {reads}")?;
                }
                after_semicolon(f, requests)
            }
        }
    }
}

/// Appends requests, if there were any.
fn after_semicolon(f: &mut fmt::Formatter<'_>, requests: &Requests) -> fmt::Result {
    if requests.is_none() { Ok(()) } else { write!(f, "; {requests}") }
}

#[cfg(test)]
mod tests {
    use gridfusion::io::RequestCounts;

    use super::*;

    #[test]
    fn texts() {
        let ms = Duration::from_millis;
        let requests = Requests::default();
        assert_eq!(Timing::Whole { time: ms(1234), requests }.to_string(), "Timing: 1.234 s");
        let (planning, execution, rows) = (ms(2), ms(70_000), 1);
        let reads = Reads::default();
        let timing = Timing::Query { planning, execution, rows, reads, requests };
        assert_eq!(timing.to_string(), "Timing: planning 0.002 s, execution 70.000 s; 1 row");
        let reads = Reads { chunks: 9, pruned: 4, answered: 1, read: 4, bytes: 2048, ..reads };
        let timing = Timing::Query { planning, execution, rows: 0, reads, requests };
        let chunks = "chunks: 4 read, 4 pruned, 1 answered by zone maps, 9 in all; 2.0 KiB read";
        assert!(timing.to_string().ends_with(&format!("; 0 rows; {chunks}")), "{timing}");
        let mut counts = RequestCounts::default();
        counts.requests = 1;
        let requests = Requests(counts);
        let timing = Timing::Whole { time: ms(1), requests };
        assert!(timing.to_string().starts_with("Timing: 0.001 s; 1 request, 0 retries, "));
    }
}
