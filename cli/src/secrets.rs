//! Texts that neither messages nor the log may show: values of options, passwords and signatures.
//!
//! Names, plans and definitions never have them. This is the last door: a library below may put a value into its message.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gridfusion::provider::secrets_in_sql;
use gridfusion::{is_url, secrets_of};
use url::Url;

/// Texts that are shorter than this are no secrets, such as `true`.
const SHORTEST: usize = 6;
/// The most texts. Each presigned URL has several.
const MOST: usize = 8192;

static SECRETS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn known() -> MutexGuard<'static, Vec<String>> {
    SECRETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a text that must not be shown.
pub(crate) fn learn(text: &str) {
    let mut known = known();
    if text.len() < SHORTEST || known.iter().any(|it| it == text) {
        return;
    }
    if known.len() >= MOST {
        known.remove(0);
    }
    known.push(text.to_owned());
}

/// Notes the secrets of a location: its password and its query.
pub(crate) fn learn_location(location: &str) {
    secrets_of(location).iter().for_each(|text| learn(text));
    // Requests have them with escapes.
    if let Ok(url) = Url::parse(location) {
        let has_password = url.password().is_some();
        [url.password(), url.query()].into_iter().flatten().for_each(learn);
        if !has_password && ["http", "https"].contains(&url.scheme()) {
            learn(url.username());
        }
    }
}

/// Notes the secrets in SQL: values of options, and those of URLs.
pub(crate) fn learn_sql(sql: &str) {
    secrets_in_sql(sql).iter().for_each(|text| learn(text));
}

/// Notes the secrets of the URLs among the arguments of the command line, also in `NAME=URL` and in SQL.
pub(crate) fn learn_arguments(arguments: impl Iterator<Item = OsString>) {
    for argument in arguments {
        let text = argument.to_string_lossy();
        let value = text.split_once('=').map_or("", |(_, value)| value);
        match [&*text, value].into_iter().find(|it| is_url(it)) {
            Some(url) => learn_location(url),
            None => learn_sql(&text),
        }
    }
}

/// Replaces secrets in a text.
pub(crate) fn hide(text: &str) -> Cow<'_, str> {
    let known = known();
    let mut found: Vec<&String> = known.iter().filter(|it| text.contains(it.as_str())).collect();
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    // A text may be part of another one.
    found.sort_by_key(|it| std::cmp::Reverse(it.len()));
    Cow::Owned(found.into_iter().fold(text.to_owned(), |text, it| text.replace(it.as_str(), "…")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced() {
        for text in ["secrets::tests::abc", "secrets::tests::abcdef", "short"] {
            learn(text);
        }
        assert_eq!(hide("a secrets::tests::abcdef, short"), "a …, short");
        assert!(matches!(hide("nothing"), Cow::Borrowed("nothing")));
    }
}
