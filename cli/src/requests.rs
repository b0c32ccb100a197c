//! The requests of a session to object stores, as `--timing`, `info` and the progress line show them.

use std::fmt;

use datafusion::prelude::SessionContext;
use gridfusion::GridfusionConfig;
use gridfusion::io::{Remote, RequestCounts};
use gridfusion::source::{Fact, size_text};

/// Returns the access to object stores of a session, which counts its requests.
pub(crate) fn remote_of(ctx: &SessionContext) -> Remote {
    gridfusion_config(ctx).remote
}

/// Returns gridfusion's settings of a session. Their copies share the counts.
pub(crate) fn gridfusion_config(ctx: &SessionContext) -> GridfusionConfig {
    let config = ctx.copied_config();
    config.options().extensions.get::<GridfusionConfig>().cloned().unwrap_or_default()
}

/// Counts of requests. The text is empty if there were none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Requests(pub(crate) RequestCounts);

impl Requests {
    /// Whether there were no requests, and no bytes that earlier ones had fetched.
    pub(crate) fn is_none(&self) -> bool {
        self.0.requests == 0 && self.0.bytes_cached == 0
    }

    /// Returns the counts for a JSON document.
    pub(crate) fn fact(&self) -> Fact {
        let counts = self.0;
        Fact::Record(vec![
            ("requests", counts.requests.into()),
            ("retries", counts.retries.into()),
            ("bytes_fetched", counts.bytes_fetched.into()),
            ("bytes_wasted", counts.bytes_wasted.into()),
            ("bytes_cached", counts.bytes_cached.into()),
            ("seconds", counts.time.as_secs_f64().into()),
        ])
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0;
        let plural =
            |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        write!(
            f,
            "{}, {}, {} fetched, {} wasted, {} from the cache, {:.3} s waiting",
            plural(counts.requests, "request", "requests"),
            plural(counts.retries, "retry", "retries"),
            size_text(counts.bytes_fetched),
            size_text(counts.bytes_wasted),
            size_text(counts.bytes_cached),
            counts.time.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn texts() {
        let mut counts = RequestCounts::default();
        (counts.requests, counts.retries) = (12, 1);
        (counts.bytes_fetched, counts.bytes_wasted, counts.bytes_cached) = (3 << 20, 2048, 100);
        counts.time = Duration::from_millis(1500);
        let expected = "12 requests, 1 retry, 3.0 MiB fetched, 2.0 KiB wasted, 100 B from the cache, 1.500 s waiting";
        assert_eq!(Requests(counts).to_string(), expected);
        assert!(Requests::default().is_none() && !Requests(counts).is_none());
    }
}
