//! The settings `gridfusion.remote_…` of a session.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::io::RemoteLimits;

/// Sets the limit that a setting names.
///
/// # Errors
/// `Usage` for a limit of 0 that would stop all requests.
pub(super) fn set(limits: &mut RemoteLimits, name: &str, number: u64) -> Result<()> {
    let size = usize::try_from(number).unwrap_or(usize::MAX);
    if number == 0
        && ["remote_requests", "remote_bytes", "remote_timeout", "remote_tries", "remote_merge"]
            .contains(&name)
    {
        return Err(Error::usage(format!("'gridfusion.{name}' must be at least 1")));
    }
    match name {
        "remote_requests" => limits.requests = size,
        "remote_bytes" => limits.bytes = size,
        "remote_timeout" => limits.timeout = Duration::from_secs(number.min(MOST_SECONDS)),
        "remote_tries" => limits.tries = size,
        "remote_gap" => limits.gap = number,
        "remote_merge" => limits.merge = number,
        "remote_cache" => limits.cache = size,
        "remote_check" => limits.check = Duration::from_secs(number.min(MOST_SECONDS)),
        _ => return Err(Error::internal(format!("setting '{name}' is not stored"))),
    }
    Ok(())
}

/// Returns the value of a setting; `None` for one of another kind.
pub(super) fn get(limits: &RemoteLimits, name: &str) -> Option<u64> {
    Some(match name {
        "remote_requests" => limits.requests as u64,
        "remote_bytes" => limits.bytes as u64,
        "remote_timeout" => limits.timeout.as_secs(),
        "remote_tries" => limits.tries as u64,
        "remote_gap" => limits.gap,
        "remote_merge" => limits.merge,
        "remote_cache" => limits.cache as u64,
        "remote_check" => limits.check.as_secs(),
        _ => return None,
    })
}

/// A year. Points in time much later cannot be represented everywhere.
const MOST_SECONDS: u64 = 365 * 24 * 60 * 60;
