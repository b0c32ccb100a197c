//! [`Secrets`] of a URL: its query, which may be a signature, and its password. [`Signed`] sends them with each request.
//!
//! `object_store` knows nothing of them, so its messages cannot show them:
//!
//! ```text
//!   object_store ── GET https://host/a.tet ──▶ Signed ── GET https://host/a.tet?X-Amz-Signature=… ──▶ server
//!                ◀── 403, without the secrets ──┘       Authorization: Basic …
//! ```

use std::fmt;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use percent_encoding::percent_decode_str;
use url::Url;

/// Parts of a message that are shorter than this are no secrets, such as the version of a signature.
const SHORTEST_SECRET: usize = 6;

/// The parts of a URL that messages must not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Secrets {
    query: Option<String>,
    /// The value of the header `Authorization`.
    authorization: Option<String>,
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
    pub(super) fn of(url: &Url) -> Self {
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
        Self { query, authorization, texts }
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

/// A client that sends secrets with each request.
#[derive(Debug, Clone)]
pub(super) struct Signed {
    pub(super) client: HttpClient,
    pub(super) secrets: Secrets,
}

impl HttpConnector for Signed {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Signed {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.secrets.sign(&mut request)?;
        let response = self.client.execute(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        // S3 repeats a signature that it refuses.
        let (parts, body) = response.into_parts();
        let text = self.secrets.hide(&String::from_utf8_lossy(&body.bytes().await?));
        Ok(HttpResponse::from_parts(parts, text.into()))
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
        Secrets::of(&Url::parse(url).unwrap())
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
