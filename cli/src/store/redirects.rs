//! Redirects. Only the server that was asked gets passwords, tokens and headers of the user.
//!
//! ```text
//!   GET https://a/x?sig=1   X-Key: 7   Range: bytes=0-9
//!   302 https://a/y         the same request, because it is the same server
//!   302 https://b/z         GET https://b/z   Range: bytes=0-9    and nothing else, also if `b` leads back to `a`
//! ```

use gridfusion::io::{is_private_host, is_public, is_same_origin};
use object_store::client::{HttpError, HttpRequest, HttpRequestBody, HttpResponse, HttpService};
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, StatusCode};
use url::Url;

use super::client::{Clients, lasting, resolved};

/// The most redirects of a request.
const MOST: usize = 10;

/// Headers that other servers get too: they have nothing of the user.
const FOR_ALL: [&str; 9] = [
    "accept",
    "content-length",
    "content-type",
    "depth",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// Sends a request, and follows its redirects. Returns the reply, and the URL that sent it if it is of another server than
/// the first one.
///
/// With `public_only`, no address may be private. Without, a server with a public address cannot lead to a private one, if
/// `guards`.
pub(super) async fn follow(
    clients: &Clients,
    mut request: HttpRequest,
    mut public_only: bool,
    guards: bool,
) -> Result<(HttpResponse, Option<Url>), HttpError> {
    let (mut url, mut has_left) = (url_of(&request)?, false);
    for _ in 0..=MOST {
        let next = request.clone();
        let reply = clients.get(&url, public_only)?.call(request).await?;
        let Some(target) = target(&reply, &url)? else {
            return Ok((reply, has_left.then_some(url)));
        };
        let is_same = is_same_origin(&url, &target);
        let is_read = ["GET", "HEAD", "PROPFIND", "OPTIONS"].contains(&next.method().as_str());
        if !is_same && !is_read {
            // Only this server gets bytes that are written.
            return Ok((reply, has_left.then_some(url)));
        }
        request = redirected(next, reply.status(), &target, is_same)?;
        if !is_same {
            has_left = true;
            public_only |= guards && !is_private(&url).await;
        }
        url = target;
    }
    Err(lasting(format!("more than {MOST} redirects")))
}

fn url_of(request: &HttpRequest) -> Result<Url, HttpError> {
    Url::parse(&request.uri().to_string()).map_err(|error| lasting(format!("no URL: {error}")))
}

/// Returns the URL to which a reply leads; `None` if it is no redirect.
fn target(reply: &HttpResponse, url: &Url) -> Result<Option<Url>, HttpError> {
    if ![301, 302, 303, 307, 308].contains(&reply.status().as_u16()) {
        return Ok(None);
    }
    let Some(location) = reply.headers().get(LOCATION) else { return Ok(None) };
    let target = location.to_str().ok().and_then(|location| url.join(location).ok());
    match target {
        Some(target) if ["http", "https"].contains(&target.scheme()) => Ok(Some(target)),
        _ => Err(lasting("a redirect to a place that is no web server".to_owned())),
    }
}

/// Returns the request to another URL. Another server gets only what the request needs.
fn redirected(
    mut request: HttpRequest,
    status: StatusCode,
    target: &Url,
    is_same: bool,
) -> Result<HttpRequest, HttpError> {
    let wrong = || lasting("a redirect to a wrong URL".to_owned());
    *request.uri_mut() = target.as_str().parse().map_err(|_| wrong())?;
    let becomes_get = match status.as_u16() {
        303 => request.method() != Method::HEAD,
        301 | 302 => request.method() == Method::POST,
        _ => false,
    };
    if becomes_get {
        *request.method_mut() = Method::GET;
        *request.body_mut() = HttpRequestBody::empty();
        request.headers_mut().remove("content-length");
        request.headers_mut().remove("content-type");
    }
    if !is_same {
        let all = std::mem::take(request.headers_mut());
        let kept = all.iter().filter(|(name, _)| FOR_ALL.contains(&name.as_str()));
        *request.headers_mut() =
            kept.map(|(name, value)| (name.clone(), value.clone())).collect::<HeaderMap>();
    }
    Ok(request)
}

/// Whether a URL leads to this machine or to a private network.
async fn is_private(url: &Url) -> bool {
    if is_private_host(url) {
        return true;
    }
    let found = resolved(url.host_str().unwrap_or_default().to_owned()).await;
    found.is_ok_and(|all| all.iter().any(|address| !is_public(address.ip())))
}
