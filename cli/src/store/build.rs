//! Makes the object store of a URL.

use std::sync::Arc;
use std::time::Duration;

use gridfusion::{Error, Result, shown_location, without_secrets};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::memory::InMemory;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::{Position, Url};

use super::client::Clients;
use super::credentials::{is_anonymous_azure, is_anonymous_google, is_anonymous_s3};
use super::options::StoreOptions;
use super::signed::{Secrets, SigningClient};

/// The time to open a connection, for reads. The library limits all other waiting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The requests that a store is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads. The library repeats those that fail, compares their replies, counts them, and limits the time without progress.
    Reads,
    /// Listings and writes of DataFusion's formats. The store repeats them, and limits their time.
    Rest,
}

impl Purpose {
    fn retry(self) -> RetryConfig {
        match self {
            Self::Reads => RetryConfig { max_retries: 0, ..RetryConfig::default() },
            Self::Rest => RetryConfig::default(),
        }
    }

    fn client(self) -> ClientOptions {
        let options = ClientOptions::new();
        match self {
            Self::Reads => options.with_timeout_disabled().with_connect_timeout(CONNECT_TIMEOUT),
            Self::Rest => options,
        }
    }
}

/// Makes the store of a URL. This needs no connection.
///
/// # Errors
/// `Usage` if the URL's scheme has no store, or the options are incomplete or wrong.
pub(super) fn build(
    url: &Url,
    options: &StoreOptions,
    purpose: Purpose,
) -> Result<Arc<dyn ObjectStore>> {
    let (shown, scheme) = (shown_location(url.as_str()), url.scheme());
    if url.host_str().is_none_or(str::is_empty) && scheme != "memory" {
        let what = if is_web(url) { "host" } else { "bucket or container" };
        return Err(Error::usage(format!("'{shown}' names no {what}; write {scheme}://NAME/PATH")));
    }
    let store: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
        "s3" | "s3a" => s3(url, options, purpose)?.build().map(|it| Arc::new(it) as _),
        "gs" => google(url, options, purpose).build().map(|it| Arc::new(it) as _),
        "az" | "adl" | "azure" | "abfs" | "abfss" => {
            azure(url, options, purpose)?.build().map(|it| Arc::new(it) as _)
        }
        "memory" => Ok(Arc::new(InMemory::new())),
        _ => {
            return Err(Error::usage(format!(
                "no object store for '{shown}'; the schemes are s3, gs, az, abfss, http and https"
            )));
        }
    };
    store.map_err(|error| refused(&shown, &error))
}

fn refused(shown: &str, error: &object_store::Error) -> Error {
    let text = without_secrets(&error.to_string());
    let advice = match () {
        () if text.contains("Account must be specified") => {
            "; set azure.account_name, or AZURE_STORAGE_ACCOUNT_NAME"
        }
        () => "",
    };
    Error::usage(format!("no object store for '{shown}': {text}{advice}"))
}

/// Whether a URL is of a web server.
pub(super) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Whether a URL is of a web server, or of a store in a cloud.
pub(super) fn is_elsewhere(url: &Url) -> bool {
    let clouds = ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"];
    is_web(url) || clouds.contains(&url.scheme())
}

/// Whether requests to the store of a URL have no signature, because no credentials are given.
pub(super) fn is_anonymous(url: &Url, options: &StoreOptions) -> bool {
    match url.scheme() {
        "s3" | "s3a" => is_anonymous_s3(options),
        "gs" => is_anonymous_google(options, dirs::home_dir().as_deref()),
        "http" | "https" => false,
        _ => is_anonymous_azure(options),
    }
}

fn s3(url: &Url, options: &StoreOptions, purpose: Purpose) -> Result<AmazonS3Builder> {
    let builder = AmazonS3Builder::new()
        .with_url(url.as_str())
        .with_http_connector(of_cloud(options))
        .with_client_options(purpose.client())
        .with_retry(purpose.retry());
    let builder = options.aws().fold(builder, |it, (key, value)| it.with_config(key, value));
    let value = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
    let endpoint = value(AmazonS3ConfigKey::S3Endpoint).or(value(AmazonS3ConfigKey::Endpoint));
    let allowed = value(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    check_endpoint("aws", endpoint.as_deref(), allowed.as_deref())?;
    Ok(match is_anonymous(url, options) {
        true => builder.with_skip_signature(true),
        false => builder,
    })
}

fn azure(url: &Url, options: &StoreOptions, purpose: Purpose) -> Result<MicrosoftAzureBuilder> {
    let builder = MicrosoftAzureBuilder::new()
        .with_url(url.as_str())
        .with_http_connector(of_cloud(options))
        .with_client_options(purpose.client())
        .with_retry(purpose.retry());
    let builder = options.azure().fold(builder, |it, (key, value)| it.with_config(key, value));
    let value = |key: AzureConfigKey| builder.get_config_value(&key);
    let allowed = value(AzureConfigKey::Client(ClientConfigKey::AllowHttp));
    let endpoint = value(AzureConfigKey::Endpoint);
    check_endpoint("azure", endpoint.as_deref(), allowed.as_deref())?;
    Ok(match is_anonymous(url, options) {
        true => builder.with_skip_signature(true),
        false => builder,
    })
}

fn google(url: &Url, options: &StoreOptions, purpose: Purpose) -> GoogleCloudStorageBuilder {
    let builder = GoogleCloudStorageBuilder::new()
        .with_url(url.as_str())
        .with_http_connector(of_cloud(options))
        // Only an emulator has a base URL without TLS.
        .with_client_options(purpose.client().with_allow_http(true))
        .with_retry(purpose.retry());
    let builder = options.google().fold(builder, |it, (key, value)| it.with_config(key, value));
    match is_anonymous(url, options) {
        true => builder.with_skip_signature(true),
        false => builder,
    }
}

/// Refuses an endpoint without TLS, unless an option allows it.
fn check_endpoint(prefix: &str, endpoint: Option<&str>, allowed: Option<&str>) -> Result<()> {
    let is_no = |it: &str| ["0", "false", "off", "no", "n"].contains(&&*it.to_ascii_lowercase());
    match endpoint.filter(|it| it.starts_with("http://")) {
        Some(plain) if allowed.is_none_or(is_no) => Err(Error::usage(format!(
            "the endpoint {} is not encrypted; if that is intended, set {prefix}.allow_http=true",
            shown_location(plain)
        ))),
        _ => Ok(()),
    }
}

/// Returns the requests of a store in a cloud. Its host is that of the cloud, or of an endpoint that the user has set.
fn of_cloud(options: &StoreOptions) -> SigningClient {
    let guards = !options.allows_private();
    SigningClient { clients: None, secrets: Secrets::default(), public_only: false, guards }
}

/// Makes the clients of all web servers with the same options.
///
/// # Errors
/// `Usage` if an option has a wrong value.
pub(super) fn clients(options: &StoreOptions, purpose: Purpose) -> Result<Arc<Clients>> {
    let client = purpose.client().with_allow_http(true);
    let client = options.http().fold(client, |it, (key, value)| it.with_config(key, value));
    let clients = Clients::new(client);
    let wrong = |error| Error::usage(format!("an option 'http.…' is wrong: {error}"));
    Ok(Arc::new(clients.map_err(wrong)?))
}

/// Returns the headers for web servers.
///
/// # Errors
/// `Usage` for a header that HTTP cannot send.
fn headers(options: &StoreOptions) -> Result<HeaderMap> {
    let header = |(name, value): (String, &str)| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
    };
    // The value may be a token, so the message does not show it.
    options
        .headers()
        .map(header)
        .collect::<Option<HeaderMap>>()
        .ok_or_else(|| Error::usage("an option 'http.header.NAME' has an invalid name or value"))
}

/// Makes the store of a web server. With `public_only`, its address must be public.
///
/// `object_store::parse_url_opts` would make an S3 or Azure store for some hosts, whose paths begin after the
/// bucket. The library passes the whole path, which a plain HTTP store accepts.
///
/// # Errors
/// `Usage` if the URL or an option is wrong.
pub(super) fn web(
    url: &Url,
    clients: Arc<Clients>,
    options: &StoreOptions,
    purpose: Purpose,
    public_only: bool,
) -> Result<Arc<dyn ObjectStore>> {
    let secrets = Secrets::new(url).with_headers(headers(options)?);
    secrets.learn();
    let mut server = url.clone();
    // Neither fails for a URL with a host.
    _ = server.set_username("");
    _ = server.set_password(None);
    let shown = server[..Position::BeforePath].to_owned();
    let content_type =
        options.http().fold(ClientOptions::new(), |it, (key, value)| it.with_config(key, value));
    let guards = !options.allows_private();
    let signed = SigningClient { clients: Some(clients), secrets, public_only, guards };
    let builder = HttpBuilder::new()
        .with_url(shown.clone())
        .with_client_options(content_type)
        .with_retry(purpose.retry())
        .with_http_connector(signed);
    Ok(Arc::new(builder.build().map_err(|error| refused(&shown, &error))?))
}
