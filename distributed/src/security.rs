//! Trust between coordinator and workers: a shared token, and TLS.
//!
//! A worker reads what plans tell it, with its own files and credentials. So it must know who sends them: it needs a token, also on
//! the loopback interface, where programs of other users can connect too. Everywhere else, it also needs TLS.

use std::fmt;
use std::net::IpAddr;

use datafusion::common::config_err;
use datafusion::error::Result;
use gridfusion::shown_location;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use tonic::{Request, Status};
use url::{Host, Position, Url};

/// A secret that coordinator and workers share. Debug output does not show it.
///
/// ```
/// use gridfusion_distributed::Token;
///
/// let token = Token::new("a-long-random-text").unwrap();
/// assert_eq!(format!("{token:?}"), "Token(***)");
/// assert!(Token::new("").is_err());
/// ```
#[derive(Clone)]
pub struct Token(HeaderValue);

impl Token {
    /// Makes a token of visible ASCII characters.
    ///
    /// # Errors
    /// If the text is empty or has other characters.
    pub fn new(text: &str) -> Result<Self> {
        let is_visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let header = HeaderValue::try_from(format!("Bearer {text}"));
        match header {
            Ok(mut header) if is_visible => {
                header.set_sensitive(true);
                Ok(Self(header))
            }
            _ => config_err!("a token consists of visible ASCII characters, at least one"),
        }
    }

    /// Adds the token to a request.
    pub(crate) fn add_to(&self, headers: &mut http::HeaderMap) {
        headers.insert(AUTHORIZATION, self.0.clone());
    }

    /// Refuses requests without the token.
    pub(crate) fn check(&self, request: Request<()>) -> Result<Request<()>, Status> {
        let given = request.metadata().get("authorization").map(|it| it.as_encoded_bytes());
        match given {
            Some(given) if is_equal(given, self.0.as_bytes()) => Ok(request),
            _ => Err(Status::unauthenticated("another token, or none")),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// Compares without ending at the first difference, whose position the time would tell.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differ) == 0
}

/// A certificate and its private key, both in PEM. Debug output does not show the key.
///
/// ```
/// use gridfusion_distributed::Identity;
///
/// let identity = Identity::new("-----BEGIN CERTIFICATE-----…", "-----BEGIN PRIVATE KEY-----…");
/// assert!(!format!("{identity:?}").contains("KEY"));
/// ```
#[derive(Clone)]
pub struct Identity {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl Identity {
    /// Makes the identity of a server from a chain of certificates and the key of the first.
    pub fn new(certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self { certificate: certificate.into(), key: key.into() }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(***)")
    }
}

/// Refuses a worker's URL that holds a secret, which messages and plans would show.
///
/// # Errors
/// If the URL has a user, a password or a query. The message does not show them.
pub(crate) fn refuse_secrets(url: &Url) -> Result<()> {
    let has_user = !url.username().is_empty() || url.password().is_some();
    if !has_user && url.query().is_none() && url.fragment().is_none() {
        return Ok(());
    }
    let shown = shown_location(&url[..Position::AfterPath]);
    config_err!(
        "the URL of the worker '{shown}' has a user, a password or a query, which workers do not take: give a token instead"
    )
}

/// Refuses a worker's URL that others could listen to.
///
/// # Errors
/// If the URL is not one of a worker, or is beyond this machine without TLS or without a token.
pub(crate) fn check_url(url: &Url, has_token: bool) -> Result<()> {
    let is_tls = match url.scheme() {
        "http" => false,
        "https" => true,
        _ => {
            return config_err!(
                "'{url}' is no URL of a worker: it begins with http:// or https://"
            );
        }
    };
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match (is_local, is_tls, has_token) {
        (true, _, _) | (false, true, true) => Ok(()),
        (false, false, _) => config_err!(
            "'{url}' is on another machine, so plans and rows would travel unencrypted; start the worker with a \
             certificate, and use https://"
        ),
        (false, true, false) => config_err!(
            "'{url}' is on another machine, which accepts no plans without a token; give coordinator and workers the same"
        ),
    }
}

/// Refuses to listen where others could send plans.
///
/// # Errors
/// If the token is missing, unless the worker `is_open` to programs of this machine; beyond the loopback interface, also if TLS is
/// missing.
pub(crate) fn check_address(
    address: IpAddr,
    is_tls: bool,
    has_token: bool,
    is_open: bool,
) -> Result<()> {
    if address.is_loopback() {
        return match has_token || is_open {
            true => Ok(()),
            false => config_err!(
                "a worker on {address} reads files for every program of this machine: it needs a token, or must be declared to need \
                 none"
            ),
        };
    }
    if is_tls && has_token {
        return Ok(());
    }
    let missing = match (is_tls, has_token) {
        (false, false) => "a certificate and a token",
        (false, true) => "a certificate",
        _ => "a token",
    };
    config_err!(
        "a worker that listens on {address} is open to other machines, and reads files for whoever sends plans: it needs \
         {missing}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_tls_and_a_token() {
        let check = |url: &str, token| check_url(&Url::parse(url).unwrap(), token).is_ok();
        for local in
            ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://127.3.2.1"]
        {
            assert!(check(local, false), "{local}");
        }
        assert!(!check("http://10.0.0.1:1", true) && !check("https://host:1", false));
        assert!(check("https://host:1", true) && !check("s3://bucket", true));
        let any: IpAddr = "0.0.0.0".parse().unwrap();
        for (tls, token) in [(false, false), (true, false), (false, true)] {
            assert!(check_address(any, tls, token, false).is_err());
            assert!(check_address(any, tls, token, true).is_err());
        }
        assert!(check_address(any, true, true, false).is_ok());
        let local: IpAddr = "::1".parse().unwrap();
        assert!(check_address(local, false, false, false).is_err());
        assert!(check_address(local, false, true, false).is_ok());
        assert!(check_address(local, false, false, true).is_ok());
    }

    #[test]
    fn only_the_same_token_is_accepted() {
        let token = Token::new("secret").unwrap();
        let with = |text: Option<&str>| {
            let mut request = Request::new(());
            if let Some(text) = text {
                request.metadata_mut().insert("authorization", text.parse().unwrap());
            }
            token.check(request).is_ok()
        };
        assert!(with(Some("Bearer secret")));
        for wrong in [None, Some(""), Some("Bearer secret2"), Some("Bearer secreT"), Some("secret")]
        {
            assert!(!with(wrong), "{wrong:?}");
        }
    }
}
