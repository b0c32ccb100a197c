//! [`Containers`]: the places of virtual chunks in the configuration of a repository.
//!
//! ```text
//!   vcc://era5/2020/a.nc   container "era5" of prefix s3://bucket/era5/ ──▶ s3://bucket/era5/2020/a.nc
//! ```
//!
//! The configuration is a FlexBuffer in version 2, and `config.yaml` in version 1, of which only the lines about
//! containers are read.

use serde_json::Value;

use super::flex::flexbuffer;
use gridfusion_core::{Error, Result};

/// The containers of a repository.
#[derive(Debug, Clone, Default)]
pub(super) struct Containers {
    all: Vec<Container>,
    /// Why they could not be read. Only chunks that name a container need them.
    unread: Option<Error>,
}

/// A place with virtual chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Container {
    name: Option<String>,
    prefix: String,
    /// The address of a server other than that of the scheme.
    endpoint: Option<String>,
}

impl Containers {
    /// Takes the containers of the configuration in a repository object.
    pub(super) fn from_flexbuffer(bytes: &[u8]) -> Self {
        Self::new(flexbuffer(bytes).map(|config| containers(&config)))
    }

    /// Takes the containers of `config.yaml`.
    pub(super) fn from_yaml(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Error::corrupt_region("config.yaml", "a text that is not UTF-8"));
        Self::new(text.and_then(of_yaml).map_err(|error| error.in_file("config.yaml")))
    }

    fn new(all: Result<Vec<Container>>) -> Self {
        match all {
            Ok(all) => Self { all, unread: None },
            Err(error) => Self { all: vec![], unread: Some(error) },
        }
    }

    /// Returns the URL that a location stands for.
    ///
    /// # Errors
    /// `Corrupt` for a container that does not exist, and the error of a configuration that cannot be read.
    pub(super) fn url(&self, location: &str) -> Result<String> {
        let Some(rest) = location.strip_prefix("vcc://") else { return Ok(location.to_owned()) };
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        if let Some(container) = self.all.iter().find(|it| it.name.as_deref() == Some(name)) {
            return Ok(format!("{}/{path}", container.prefix.trim_end_matches('/')));
        }
        match &self.unread {
            Some(error) => Err(error.clone().about(&format!("the container \"{name}\""))),
            None => {
                let message =
                    format!("it is in the container \"{name}\", which the configuration lacks");
                Err(Error::corrupt_region("virtual chunk", message))
            }
        }
    }

    /// Whether one of them is in an object store.
    pub(super) fn names_stores(&self) -> bool {
        self.all.iter().any(|it| !it.prefix.starts_with("file:"))
    }

    /// Returns a remark for each container on a server of its own, which the session must know.
    pub(super) fn remarks(&self) -> Vec<String> {
        let remark = |it: &Container| {
            let (prefix, endpoint) = (&it.prefix, it.endpoint.as_ref()?);
            Some(format!(
                "virtual chunks at {prefix} are on the server {endpoint}; the object store of that URL must be this server"
            ))
        };
        self.all.iter().filter_map(remark).collect()
    }
}

fn containers(config: &Value) -> Vec<Container> {
    let all = config.get("virtual_chunk_containers").and_then(Value::as_object);
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    let container = |value: &Value| {
        let stores = value.get("store").and_then(Value::as_object);
        let endpoint = stores.and_then(|it| it.values().find_map(|it| text(it, "endpoint_url")));
        Some(Container { name: text(value, "name"), prefix: text(value, "url_prefix")?, endpoint })
    };
    all.into_iter().flat_map(|it| it.values()).filter_map(container).collect()
}

/// Reads the block of containers:
///
/// ```text
/// virtual_chunk_containers:
///   s3:
///     name: s3
///     url_prefix: s3://bucket
///     store: !s3_compatible
///       endpoint_url: http://localhost:4200
/// ```
fn of_yaml(text: &str) -> Result<Vec<Container>> {
    const BLOCK: &str = "virtual_chunk_containers:";
    let mut lines = text.lines().skip_while(|line| !line.starts_with(BLOCK));
    let Some(first) = lines.next() else { return Ok(vec![]) };
    let unknown =
        |line: &str| Error::unsupported(format!("the line \"{line}\" of a configuration in YAML"));
    match first[BLOCK.len()..].trim() {
        "" => {}
        "null" | "~" | "{}" => return Ok(vec![]),
        _ => return Err(unknown(first)),
    }
    let (mut all, mut outer, mut inner) = (vec![], None, None);
    for line in lines {
        let content = line.trim_start();
        let depth = line.len() - content.len();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if depth == 0 {
            break;
        }
        let (key, value) = content.split_once(':').ok_or_else(|| unknown(line))?;
        let value = scalar(value).ok_or_else(|| unknown(line))?;
        if depth == *outer.get_or_insert(depth) {
            if value.is_some() {
                return Err(unknown(line));
            }
            all.push(Container::default());
            inner = None;
            continue;
        }
        let Some(container) = all.last_mut() else { return Err(unknown(line)) };
        let is_inner = depth == *inner.get_or_insert(depth);
        match key {
            "name" if is_inner => container.name = value,
            "url_prefix" if is_inner => container.prefix = value.ok_or_else(|| unknown(line))?,
            "endpoint_url" if !is_inner => container.endpoint = value,
            _ => {}
        }
    }
    Ok(all)
}

/// Returns the value of a line; the inner `None` for none. `None` for text that only a whole parser of YAML could read.
fn scalar(value: &str) -> Option<Option<String>> {
    let value = value.trim();
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(text) = quoted('\'') {
        return Some(Some(text.replace("''", "'")));
    }
    if let Some(text) = quoted('"') {
        return (!text.contains('\\')).then(|| Some(text.to_owned()));
    }
    match value {
        "" | "null" | "~" => Some(None),
        // Tags of stores, whose fields follow.
        _ if value.starts_with('!') => Some(None),
        _ if value.starts_with(['&', '*', '|', '>', '[', '{', '"', '\'']) => None,
        _ => Some(Some(value.split(" #").next().unwrap_or(value).trim_end().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "inline_chunk_threshold_bytes: 12\nvirtual_chunk_containers:\n  tigris:\n    name: tigris\n    url_prefix: tigris\n    store: !tigris\n      region: null\n      endpoint_url: https://fly.storage.tigris.dev\n  az:\n    name: 'az'\n    url_prefix: az://a/b/\n    store: !azure {}\nmanifest: null\n";

    #[test]
    fn containers_are_found_by_name() {
        let known = Containers::from_yaml(YAML.as_bytes());
        assert_eq!(known.url("vcc://az/x/y.nc").unwrap(), "az://a/b/x/y.nc");
        assert_eq!(known.url("s3://x/y").unwrap(), "s3://x/y");
        assert_eq!(known.remarks().len(), 1);
        let error = known.url("vcc://other/x").unwrap_err().to_string();
        assert!(error.contains("it is in the container \"other\""), "{error}");
        for empty in ["", "virtual_chunk_containers: null\n", "a: 1\nvirtual_chunk_containers: {}"]
        {
            assert!(Containers::from_yaml(empty.as_bytes()).unread.is_none(), "{empty}");
        }
        let flow = Containers::from_yaml(b"virtual_chunk_containers: {a: {}}");
        assert!(flow.url("vcc://a/x").unwrap_err().to_string().contains("{a: {}}"));
        assert!(flow.url("s3://a/x").is_ok());
    }
}
