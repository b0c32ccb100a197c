//! Texts that neither messages nor the log may show: values of options, passwords and signatures.
//!
//! Names, plans and definitions never have them. This is the last door: a library below may put a value into its message.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Texts that are shorter than this are no secrets, such as `true`.
const SHORTEST: usize = 6;
/// The most texts. Each presigned URL has its own.
const MOST: usize = 1024;

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
