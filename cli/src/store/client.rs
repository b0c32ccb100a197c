//! [`Clients`]: HTTP clients that follow no redirects on their own, tell no server where a request comes from, and may be
//! limited to public addresses.
//!
//! Names of servers are checked when they are resolved for a connection.

use std::collections::HashSet;
use std::error::Error;
use std::fmt::Display;
use std::io::{Error as IoError, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gridfusion::io::{is_private_host, is_public};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy};
use url::Url;

/// The option that lets references of remote files reach private addresses.
pub(super) const ALLOW_PRIVATE: &str = "http.allow_private_references";

/// Variables that set proxies.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The clients of stores with the same options. The one for public addresses is made when it is needed, because making one
/// reads all certificates of the system.
#[derive(Debug)]
pub(super) struct Clients {
    options: ClientOptions,
    any: OnceLock<Client>,
    public: OnceLock<Client>,
    proxies: Arc<HashSet<String>>,
}

impl Clients {
    /// Makes the clients for these options.
    ///
    /// # Errors
    /// If an option has a wrong value.
    pub(super) fn new(options: ClientOptions) -> object_store::Result<Self> {
        let proxies = Arc::new(proxies(&options));
        let any = made(&options, None).map_err(|text| generic(&text))?.into();
        Ok(Self { options, any, public: OnceLock::new(), proxies })
    }

    /// Returns the client for requests to this URL; `public_only` refuses addresses that are not public. A name is checked
    /// when it is resolved for a connection.
    pub(super) fn get(&self, url: &Url, public_only: bool) -> Result<Client, HttpError> {
        let cell = if public_only { &self.public } else { &self.any };
        if public_only {
            let host = url.host_str().unwrap_or_default();
            if is_private_host(url) || self.proxies.contains(host) {
                return Err(lasting(refused(host)));
            }
        }
        if let Some(client) = cell.get() {
            return Ok(client.clone());
        }
        let resolver = public_only.then(|| PublicOnly(Arc::clone(&self.proxies)));
        let client = made(&self.options, resolver).map_err(lasting)?;
        Ok(cell.get_or_init(|| client).clone())
    }
}

/// Returns an error of a request that another try does not mend.
pub(super) fn lasting(text: String) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, IoError::new(ErrorKind::InvalidData, text))
}

fn refused(host: &str) -> String {
    format!(
        "{host} is an address of this machine or of a private network, to which remote files may not lead; {ALLOW_PRIVATE}=true allows it"
    )
}

fn generic(text: &str) -> object_store::Error {
    object_store::Error::Generic { store: "HTTP client", source: text.into() }
}

/// Returns the names of proxies, which may have private addresses.
fn proxies(options: &ClientOptions) -> HashSet<String> {
    let variables = PROXIES.into_iter().filter_map(|name| std::env::var(name).ok());
    let all = variables.chain(options.get_config_value(&ClientConfigKey::ProxyUrl));
    let url = |text: String| match text.contains("://") {
        true => Url::parse(&text),
        false => Url::parse(&format!("http://{text}")),
    };
    all.filter_map(|text| Some(url(text).ok()?.host_str()?.to_owned())).collect()
}

/// Makes a client. `object_store` makes its own from the same options, but those follow redirects.
fn made(options: &ClientOptions, resolver: Option<PublicOnly>) -> Result<Client, String> {
    use ClientConfigKey as Key;
    let value = |key: Key| options.get_config_value(&key);
    let time = |key: Key| value(key).map(|text| duration(key, &text)).transpose();
    let is_on = |key: Key| value(key).map_or(Ok(false), |text| flag(key.as_ref(), &text));
    let set = |key: Key, builder: ClientBuilder, set: fn(ClientBuilder) -> ClientBuilder| {
        Ok::<_, String>(if is_on(key)? { set(builder) } else { builder })
    };
    let agent = value(Key::UserAgent);
    let agent = agent.unwrap_or_else(|| concat!("gridfusion/", env!("CARGO_PKG_VERSION")).into());
    let mut builder = Client::builder()
        .user_agent(agent)
        .redirect(Policy::none())
        .referer(false)
        .https_only(!is_on(Key::AllowHttp)?);
    if let Some(proxy) = value(Key::ProxyUrl) {
        // The URL may have a password, so the message does not show it.
        let proxy = Proxy::all(proxy).map_err(|_| "the proxy's URL is wrong".to_owned())?;
        let excludes = value(Key::ProxyExcludes);
        builder = builder.proxy(match excludes {
            Some(excludes) => proxy.no_proxy(NoProxy::from_string(&excludes)),
            None => proxy,
        });
        if let Some(certificate) = value(Key::ProxyCaCertificate) {
            let certificate = reqwest::Certificate::from_pem(certificate.as_bytes());
            builder = builder.add_root_certificate(certificate.map_err(|it| it.to_string())?);
        }
    }
    if let Some(limit) = time(Key::Timeout)? {
        builder = builder.timeout(limit);
    }
    if let Some(limit) = time(Key::ConnectTimeout)? {
        builder = builder.connect_timeout(limit);
    }
    if let Some(limit) = time(Key::PoolIdleTimeout)? {
        builder = builder.pool_idle_timeout(limit);
    }
    if let Some(most) = value(Key::PoolMaxIdlePerHost) {
        builder = builder.pool_max_idle_per_host(number(Key::PoolMaxIdlePerHost, &most)?);
    }
    if let Some(interval) = time(Key::Http2KeepAliveInterval)? {
        builder = builder.http2_keep_alive_interval(interval);
    }
    if let Some(limit) = time(Key::Http2KeepAliveTimeout)? {
        builder = builder.http2_keep_alive_timeout(limit);
    }
    if let Some(size) = value(Key::Http2MaxFrameSize) {
        builder = builder.http2_max_frame_size(Some(number::<u32>(Key::Http2MaxFrameSize, &size)?));
    }
    builder =
        set(Key::Http2KeepAliveWhileIdle, builder, |it| it.http2_keep_alive_while_idle(true))?;
    builder = set(Key::Http1Only, builder, ClientBuilder::http1_only)?;
    builder = set(Key::Http2Only, builder, ClientBuilder::http2_prior_knowledge)?;
    let invalid = |it: ClientBuilder| it.danger_accept_invalid_certs(true);
    builder = set(Key::AllowInvalidCertificates, builder, invalid)?;
    if let Some(resolver) = resolver {
        builder = builder.dns_resolver(Arc::new(resolver));
    }
    builder.build().map_err(|error| gridfusion::with_causes(&error))
}

fn wrong(key: ClientConfigKey, what: &dyn Display) -> String {
    format!("the value of '{}' is no {what}", key.as_ref())
}

fn duration(key: ClientConfigKey, text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| wrong(key, &"time such as '10 s'"))
}

fn number<T: std::str::FromStr>(key: ClientConfigKey, text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| wrong(key, &"number"))
}

/// Reads a value as `object_store` does.
pub(super) fn flag(name: &str, text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" | "y" => Ok(true),
        "0" | "false" | "off" | "no" | "n" => Ok(false),
        _ => Err(format!("the value of '{name}' is neither true nor false")),
    }
}

/// A resolver of names that leaves out addresses that are not public, except those of proxies.
#[derive(Debug)]
struct PublicOnly(Arc<HashSet<String>>);

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let is_proxy = self.0.contains(&host);
        Box::pin(public_addresses(host, is_proxy))
    }
}

/// Returns the public addresses of a name, and all of a proxy.
async fn public_addresses(
    host: String,
    is_proxy: bool,
) -> Result<Addrs, Box<dyn Error + Send + Sync>> {
    let refusal = refused(&host);
    let mut found = resolved(host).await?;
    let is_known = !found.is_empty();
    found.retain(|address| is_proxy || is_public(address.ip()));
    match is_known && found.is_empty() {
        true => Err(IoError::new(ErrorKind::InvalidData, refusal).into()),
        false => Ok(Box::new(found.into_iter())),
    }
}

/// Returns all addresses of a name.
pub(super) async fn resolved(host: String) -> std::io::Result<Vec<SocketAddr>> {
    let all = move || (host.as_str(), 0).to_socket_addrs().map(Iterator::collect);
    tokio::task::spawn_blocking(all).await.map_err(IoError::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of this machine stands for any name that leads to it.
    #[tokio::test]
    async fn names_that_lead_to_this_machine_are_refused() {
        let refused = public_addresses("localhost".to_owned(), false).await.err().unwrap();
        assert!(refused.to_string().contains("http.allow_private_references=true"), "{refused}");
        assert!(public_addresses("localhost".to_owned(), true).await.unwrap().count() > 0);
        let clients = Clients::new(ClientOptions::new().with_allow_http(true)).unwrap();
        for host in ["localhost", "127.0.0.1", "[::ffff:10.0.0.1]", "169.254.169.254"] {
            let url = Url::parse(&format!("http://{host}/")).unwrap();
            assert!(clients.get(&url, true).is_err() && clients.get(&url, false).is_ok(), "{host}");
        }
        assert!(clients.get(&Url::parse("https://example.org/").unwrap(), true).is_ok());
    }

    #[test]
    fn wrong_values_are_not_repeated() {
        let options = ClientOptions::new().with_config(ClientConfigKey::Timeout, "token");
        let error = Clients::new(options).err().unwrap().to_string();
        assert!(error.contains("'timeout'") && !error.contains("token"), "{error}");
    }
}
