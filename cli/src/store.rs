//! Object stores for URLs, set up from the environment and from the options of a statement.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::Expr;
use gridfusion::Error;
use gridfusion::exec::to_datafusion;
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore};
use url::{Position, Url};

/// Settings are looked for in environment variables that start so, in capitals.
const ENV_PREFIXES: [&str; 3] = ["aws_", "azure_", "google_"];

/// Registers the store of a URL with the session's runtime, so that `gridfusion::open` finds it.
/// Paths and `file://` URLs need none.
///
/// A store that is there already is replaced: it may have other options, or be another container
/// of the same account.
///
/// # Errors
/// `Usage` if there is no store for such URLs, or its settings are incomplete or wrong.
pub(crate) fn register(
    location: &str,
    options: &HashMap<String, String>,
    runtime: &RuntimeEnv,
) -> gridfusion::Result<()> {
    let Some(url) = remote_url(location) else { return Ok(()) };
    let store = build(&url, options)
        .map_err(|error| Error::usage(format!("no object store for '{location}': {error}")))?;
    runtime.register_object_store(&url, store);
    Ok(())
}

/// The same, but a store that is there already stays.
///
/// # Errors
/// Those of [`register`].
pub(crate) fn register_new(
    location: &str,
    options: &HashMap<String, String>,
    runtime: &RuntimeEnv,
) -> gridfusion::Result<()> {
    let is_known = |url: Url| runtime.object_store_registry.get_store(&url).is_ok();
    match remote_url(location).is_none_or(is_known) {
        true => Ok(()),
        false => register(location, options, runtime),
    }
}

/// A table function of the library over URLs of which nobody has told the session before.
#[derive(Debug)]
pub(crate) struct WithStore<F>(pub(crate) F);

impl<F: TableFunctionImpl> TableFunctionImpl for WithStore<F> {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let runtime = args.session().runtime_env();
        // One location, or a list of them.
        for location in args.exprs().first().map(literals).unwrap_or_default() {
            register_new(location, &HashMap::new(), runtime).map_err(to_datafusion)?;
        }
        self.0.call_with_args(args)
    }
}

/// The constant texts that an expression is, or is a list of.
fn literals(expr: &Expr) -> Vec<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten().into_iter().collect(),
        Expr::ScalarFunction(list) => list.args.iter().flat_map(literals).collect(),
        _ => vec![],
    }
}

fn remote_url(location: &str) -> Option<Url> {
    let url = location.contains("://").then(|| Url::parse(location).ok()).flatten()?;
    (url.scheme() != "file").then_some(url)
}

fn build(
    url: &Url,
    options: &HashMap<String, String>,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    if matches!(url.scheme(), "http" | "https") {
        // `parse_url_opts` would make a store of S3 or Azure out of some hosts, with paths that
        // begin behind the bucket. The library asks for the whole path, and so does plain HTTP.
        let client = ClientOptions::new().with_allow_http(true);
        let server = &url[..Position::BeforePath];
        return Ok(Arc::new(
            HttpBuilder::new().with_url(server).with_client_options(client).build()?,
        ));
    }
    let (store, _path) = object_store::parse_url_opts(url, settings(options))?;
    Ok(Arc::from(store))
}

/// The environment's settings, then those of the statement, which overrule them.
fn settings(options: &HashMap<String, String>) -> Vec<(String, String)> {
    let environment = std::env::vars_os().filter_map(|(key, value)| {
        Some((key.into_string().ok()?.to_ascii_lowercase(), value.into_string().ok()?))
    });
    environment
        .filter(|(key, _)| ENV_PREFIXES.iter().any(|prefix| key.starts_with(prefix)))
        .chain(options.iter().filter_map(|(key, value)| Some((setting(key)?, value.clone()))))
        .collect()
}

/// What `object_store` calls an option of a statement: `aws.region` is its `aws_region`.
fn setting(option: &str) -> Option<String> {
    let (prefix, name) = option.split_once('.')?;
    let prefix = match prefix {
        "aws" | "azure" | "google" => prefix,
        "gcp" => "google", // as datafusion-cli calls it
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
    fn lists_have_several_locations() {
        use datafusion::functions_nested::make_array::make_array;
        use datafusion::logical_expr::lit;

        let list = make_array(vec![lit("s3://a/x.tet"), lit("b.tet")]);
        assert_eq!(literals(&list), ["s3://a/x.tet", "b.tet"]);
        assert_eq!(literals(&lit("c.tet")), ["c.tet"]);
        assert!(literals(&lit(1)).is_empty());
    }

    #[test]
    fn options_become_settings() {
        assert_eq!(setting("aws.region").as_deref(), Some("aws_region"));
        assert_eq!(setting("gcp.service_account").as_deref(), Some("google_service_account"));
        assert_eq!(setting("format.dataset"), None);
        assert_eq!(setting("dataset"), None);
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
