//! Object stores for URLs. A store is made when a statement first needs it, from environment variables and
//! the statement's options.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::execution::runtime_env::RuntimeEnv;
use gridfusion::Error;
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore};
use url::{Position, Url};

use crate::stdin::Stdin;

/// Prefixes of the environment variables that hold settings, in lower case.
const ENV_PREFIXES: [&str; 3] = ["aws_", "azure_", "google_"];

/// The session's object stores. A store that is not registered is made from environment variables.
#[derive(Debug)]
pub(crate) struct Stores {
    known: DefaultObjectStoreRegistry,
    stdin: Stdin,
}

impl Stores {
    /// Makes a registry with the local file system and standard input.
    pub(crate) fn new(stdin: Stdin) -> Self {
        Self { known: DefaultObjectStoreRegistry::new(), stdin }
    }
}

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.known.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.known.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.known.get_store(url) {
            return Ok(store);
        }
        let store = match url.scheme() {
            Stdin::SCHEME => self.stdin.store()?,
            _ => build(url, &HashMap::new()).map_err(|error| no_store(url.as_str(), &error))?,
        };
        self.known.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}

/// Registers the store of a URL, with settings of a statement or of the command line. Paths and `file://`
/// URLs need no store.
///
/// The new store replaces an old one, which may have other options or belong to another container of the same
/// account.
///
/// # Errors
/// `Usage` if the URL's scheme has no store, or the settings are incomplete or wrong.
pub(crate) fn register(
    location: &str,
    options: &HashMap<String, String>,
    runtime: &RuntimeEnv,
) -> gridfusion::Result<()> {
    let Some(url) = remote_url(location) else { return Ok(()) };
    let store = build(&url, options).map_err(|error| no_store(location, &error))?;
    runtime.register_object_store(&url, store);
    Ok(())
}

/// Removes the settings of object stores, which DataFusion's own formats would refuse.
pub(crate) fn remove_store_settings(options: &mut HashMap<String, String>) {
    options.retain(|option, _| setting(option).is_none());
}

fn no_store(location: &str, error: &object_store::Error) -> Error {
    Error::usage(format!("no object store for '{location}': {error}"))
}

/// Returns the URL of a location that needs a store; `None` for paths, files and standard input.
fn remote_url(location: &str) -> Option<Url> {
    let url = location.contains("://").then(|| Url::parse(location).ok()).flatten()?;
    (!["file", Stdin::SCHEME].contains(&url.scheme())).then_some(url)
}

/// Makes the store of a URL, with these options over those of the environment.
fn build(
    url: &Url,
    options: &HashMap<String, String>,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    if matches!(url.scheme(), "http" | "https") {
        // `parse_url_opts` would make an S3 or Azure store for some hosts, whose paths begin after the
        // bucket. The library passes the whole path, which a plain HTTP store accepts.
        let client = ClientOptions::new().with_allow_http(true);
        let server = &url[..Position::BeforePath];
        return Ok(Arc::new(
            HttpBuilder::new().with_url(server).with_client_options(client).build()?,
        ));
    }
    let (store, _path) = object_store::parse_url_opts(url, settings(options))?;
    Ok(Arc::from(store))
}

/// Returns the settings of the environment, then those of the statement, which override them.
fn settings(options: &HashMap<String, String>) -> Vec<(String, String)> {
    let environment = std::env::vars_os().filter_map(|(key, value)| {
        Some((key.into_string().ok()?.to_ascii_lowercase(), value.into_string().ok()?))
    });
    environment
        .filter(|(key, _)| ENV_PREFIXES.iter().any(|prefix| key.starts_with(prefix)))
        .chain(options.iter().filter_map(|(key, value)| Some((setting(key)?, value.clone()))))
        .collect()
}

/// Returns the name that `object_store` has for an option of a statement, such as `aws_region` for
/// `aws.region`.
fn setting(option: &str) -> Option<String> {
    let (prefix, name) = option.split_once('.')?;
    let prefix = match prefix {
        "aws" | "azure" | "google" => prefix,
        "gcp" => "google", // its other name in SQL
        _ => return None,
    };
    Some(format!("{prefix}_{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_other_machines_need_a_store() {
        for local in ["a.tet", "/data/a.tet", r"C:\data\a.tet", "file:///data/a.tet", "a b://c"] {
            assert_eq!(remote_url(local), None, "{local}");
        }
        assert!(remote_url("s3://bucket/a.tet").is_some());
        assert!(remote_url("https://example.org/a.tet").is_some());
    }

    #[test]
    fn options_become_settings() {
        assert_eq!(setting("aws.region").as_deref(), Some("aws_region"));
        assert_eq!(setting("gcp.service_account").as_deref(), Some("google_service_account"));
        assert_eq!(setting("format.dataset"), None);
        assert_eq!(setting("dataset"), None);
    }

    #[test]
    fn settings_of_stores_are_not_left_to_formats() {
        let pair = |name: &str| (name.to_owned(), "x".to_owned());
        let mut options = HashMap::from([pair("aws.region"), pair("format.has_header")]);
        remove_store_settings(&mut options);
        assert_eq!(options, HashMap::from([pair("format.has_header")]));
    }

    #[test]
    fn stores_are_made_when_they_are_asked_for() {
        let stores = Stores::new(Stdin::new(true));
        let url = |text: &str| Url::parse(text).unwrap();
        let store = stores.get_store(&url("http://localhost:1/a.tet")).unwrap();
        let again = stores.get_store(&url("http://localhost:1/b.tet")).unwrap();
        assert!(Arc::ptr_eq(&store, &again));
        let error = stores.get_store(&url("gopher://host/")).unwrap_err().to_string();
        assert!(error.contains("no object store for 'gopher://host/'"), "{error}");
    }

    #[test]
    fn stores_are_made_without_a_connection() {
        let runtime = RuntimeEnv::default();
        let options = HashMap::from([("aws.region".to_owned(), "eu-central-1".to_owned())]);
        for location in
            ["s3://bucket/a.tet", "http://localhost:1/a.tet", "https://s3.amazonaws.com/b/a"]
        {
            register(location, &options, &runtime).unwrap();
            let url = Url::parse(location).unwrap();
            assert!(runtime.object_store_registry.get_store(&url).is_ok(), "{location}");
        }
        let error = register("gopher://host/a.tet", &options, &runtime).unwrap_err().to_string();
        assert!(error.contains("gopher://host/a.tet"), "{error}");
    }
}
