//! Settings of the coordinator's session that change what DataFusion's own operators do, for the session of a task.
//!
//! The nodes of gridfusion hold their settings themselves. Functions and operators of DataFusion look at the session, for
//! instance at its time zone. A worker's session has the defaults, so the coordinator sends what differs from them.

use std::collections::HashMap;
use std::sync::LazyLock;

use datafusion::common::exec_datafusion_err;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header of the settings: `key=value` pairs, as in the query of a URL.
const HEADER: HeaderName = HeaderName::from_static("x-gridfusion-settings");

/// The settings that travel.
const PREFIX: &str = "datafusion.execution.";

/// Settings below the prefix that are a worker's own.
const OWN: [&str; 2] =
    ["datafusion.execution.target_partitions", "datafusion.execution.planning_concurrency"];

/// The values that a worker's session has, by key.
static DEFAULTS: LazyLock<HashMap<String, Option<String>>> = LazyLock::new(|| {
    ConfigOptions::default().entries().into_iter().map(|entry| (entry.key, entry.value)).collect()
});

/// Adds the settings of a session that differ from the defaults.
pub(crate) fn add_to(headers: &mut HeaderMap, config: &ConfigOptions) -> Result<()> {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    for entry in config.entries() {
        let travels = entry.key.starts_with(PREFIX) && !OWN.contains(&entry.key.as_str());
        if let (true, Some(value)) = (travels, &entry.value)
            && DEFAULTS.get(&entry.key).and_then(Option::as_ref) != Some(value)
        {
            text.append_pair(&entry.key, value);
        }
    }
    let value = HeaderValue::try_from(text.finish());
    headers.insert(HEADER, value.map_err(|error| exec_datafusion_err!("settings: {error}"))?);
    Ok(())
}

/// Sets what the coordinator has sent.
///
/// # Errors
/// If a setting is unknown, or has another value than is possible.
pub(crate) fn apply(headers: &HeaderMap, config: &mut SessionConfig) -> Result<()> {
    let Some(text) = headers.get(HEADER) else { return Ok(()) };
    for (key, value) in url::form_urlencoded::parse(text.as_bytes()) {
        if key.starts_with(PREFIX) && !OWN.contains(&key.as_ref()) {
            config.options_mut().set(&key, &value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_arrive() {
        let mut sent = SessionConfig::new().with_batch_size(17).with_target_partitions(99);
        sent.options_mut().set("datafusion.execution.time_zone", "Europe/Zürich & more").unwrap();
        let mut headers = HeaderMap::new();
        add_to(&mut headers, sent.options()).unwrap();
        let mut received = SessionConfig::new().with_target_partitions(3);
        apply(&headers, &mut received).unwrap();
        assert_eq!(received.batch_size(), 17);
        assert_eq!(received.target_partitions(), 3, "its own");
        let zone = received.options().execution.time_zone.clone();
        assert_eq!(zone.as_deref(), Some("Europe/Zürich & more"));
    }
}
