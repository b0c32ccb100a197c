//! [`Secrets`] of a URL: its query, which may be a signature, its password, and headers. [`SigningClient`] sends them with each
//! request to the server of the URL, and to no other server.
//!
//! `object_store` knows nothing of them, so its messages cannot show them:
//!
//! ```text
//!   object_store ── GET https://host/a.tet ──▶ Signed ── GET https://host/a.tet?X-Amz-Signature=… ──▶ server
//!                ◀── 403, without the secrets ──┘       Authorization: Basic …
//! ```

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use percent_encoding::percent_decode_str;
use reqwest::Method;
use reqwest::header::HeaderMap;
use url::Url;

use super::client::Clients;
use super::redirects::follow;
use super::replies::{check, text};
use crate::secrets::{hide, learn};

/// Parts of a message that are shorter than this are no secrets, such as the version of a signature.
const SHORTEST_SECRET: usize = 6;
/// The same for messages about other things than the URL.
const SHORTEST_EVERYWHERE: usize = 16;

/// The parts of a URL that messages must not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Secrets {
    query: Option<String>,
    /// The value of the header `Authorization`.
    authorization: Option<String>,
    /// Headers that the user has set.
    headers: HeaderMap,
    /// Texts that an answer may repeat.
    texts: Vec<String>,
}

/// Shows nothing of the secrets.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Returns the secrets of the URL of a web server.
    pub(super) fn new(url: &Url) -> Self {
        let query = url.query().filter(|query| !query.is_empty()).map(str::to_owned);
        let mut texts: Vec<String> = vec![];
        for pair in query.iter().flat_map(|query| query.split('&')) {
            texts.extend(pair.split_once('=').map(|(_, value)| value.to_owned()));
        }
        texts.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
        let decoded = |text| percent_decode_str(text).collect::<Vec<u8>>();
        let (user, password) = (decoded(url.username()), decoded(url.password().unwrap_or("")));
        let has_user = !url.username().is_empty() || url.password().is_some();
        let authorization =
            has_user.then(|| [&user[..], b":", &password].concat()).map(|it| basic(&it));
        texts.extend(
            authorization.as_deref().and_then(|it| it.strip_prefix("Basic ")).map(Into::into),
        );
        texts.push(String::from_utf8_lossy(&password).into_owned());
        texts.retain(|text| text.len() >= SHORTEST_SECRET);
        // A text may be part of another one.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self { query, authorization, headers: HeaderMap::new(), texts }
    }

    /// Adds headers.
    pub(super) fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// Hides the texts in all messages. Short ones may be words, such as the name of a file.
    pub(super) fn learn(&self) {
        let long = self.texts.iter().filter(|text| text.len() >= SHORTEST_EVERYWHERE);
        long.for_each(|text| learn(text));
    }

    /// Adds the secrets to a request.
    fn sign(&self, request: &mut HttpRequest) -> Result<(), HttpError> {
        let unknown = HttpErrorKind::Unknown;
        if let Some(query) = &self.query {
            let uri = request.uri().to_string();
            let joint = if uri.contains('?') { '&' } else { '?' };
            let signed = format!("{uri}{joint}{query}");
            *request.uri_mut() = signed.parse().map_err(|error| HttpError::new(unknown, error))?;
        }
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        if let Some(value) = &self.authorization {
            let value = value.parse().map_err(|error| HttpError::new(unknown, error))?;
            request.headers_mut().insert("authorization", value);
        }
        Ok(())
    }

    /// Replaces secrets that the text of an answer repeats.
    fn hide(&self, text: &str) -> String {
        self.texts.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "…"))
    }
}

/// A client that sends secrets to the server that it was made for.
#[derive(Debug, Clone)]
pub(super) struct SigningClient {
    /// The clients of all stores with the same options; `None` to make them from those of the store.
    pub(super) clients: Option<Arc<Clients>>,
    pub(super) secrets: Secrets,
    /// Whether the store is for a reference of a remote file, which may reach public addresses only.
    pub(super) public_only: bool,
    /// Whether a server with a public address may not lead to private ones.
    pub(super) guards: bool,
}

impl HttpConnector for SigningClient {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let clients = match &self.clients {
            Some(clients) => Arc::clone(clients),
            None => Arc::new(Clients::new(options.clone())?),
        };
        Ok(HttpClient::new(Service { clients, of: self.clone() }))
    }
}

/// The requests of a store.
#[derive(Debug)]
struct Service {
    clients: Arc<Clients>,
    of: SigningClient,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let SigningClient { secrets, public_only, guards, .. } = &self.of;
        secrets.sign(&mut request)?;
        let is_get = request.method() == Method::GET;
        let (reply, elsewhere) = follow(&self.clients, request, *public_only, *guards).await?;
        if reply.status().is_success() {
            if is_get {
                check(&reply)?;
            }
            return Ok(reply);
        }
        let status = reply.status();
        let mut shortened = HttpResponse::new(Vec::<u8>::new().into());
        *shortened.status_mut() = status;
        reply.headers().clone_into(shortened.headers_mut());
        // The text may be shorter than it was.
        shortened.headers_mut().remove("content-length");
        // S3 repeats a signature that it refuses. A worker sends the text to the one who asks.
        let mut text = hide(&secrets.hide(&text(reply).await?)).into_owned();
        if let Some(url) = elsewhere.filter(|_| [401, 403].contains(&status.as_u16())) {
            let other = url.host_str().unwrap_or_default();
            text += &format!(
                " (the request was redirected to {other}, which gets no passwords and headers of the user)"
            );
        }
        *shortened.body_mut() = text.into();
        Ok(shortened)
    }
}

/// Returns the value of the header for a user and a password with a colon between them.
fn basic(user: &[u8]) -> String {
    let mut text = vec![0; user.len().div_ceil(3) * 4];
    // The text has room for all characters.
    let len = BASE64_STANDARD.encode_slice(user, &mut text).unwrap_or(0);
    format!("Basic {}", String::from_utf8_lossy(&text[..len]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(url: &str) -> Secrets {
        Secrets::new(&Url::parse(url).unwrap())
    }

    fn signed(url: &str, request: &str) -> HttpRequest {
        let mut signed = HttpRequest::new(object_store::client::HttpRequestBody::empty());
        *signed.uri_mut() = request.parse().unwrap();
        secrets(url).sign(&mut signed).unwrap();
        signed
    }

    #[test]
    fn requests_have_the_secrets() {
        let request = signed("https://me:p%40ss@h/?a=1&b=%2F", "https://h/x/a.tet");
        assert_eq!(request.uri(), "https://h/x/a.tet?a=1&b=%2F");
        assert_eq!(request.headers()["authorization"], "Basic bWU6cEBzcw==");
        let request = signed("https://h/?a=1", "https://h/x?y=2");
        assert_eq!(request.uri(), "https://h/x?y=2&a=1");
        assert!(request.headers().is_empty());
    }

    #[test]
    fn answers_do_not_repeat_secrets() {
        let secrets = secrets("https://me:password@h/?sig=abc%2Fdef&v=1");
        let text = "<Signature>abc/def</Signature> abc%2Fdef, password, 1";
        assert_eq!(secrets.hide(text), "<Signature>…</Signature> …, …, 1");
        assert_eq!(format!("{secrets:?}"), "Secrets { .. }");
    }
}
