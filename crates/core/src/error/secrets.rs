//! Texts without passwords and signatures.
//!
//! ```text
//!   one location, known to be one   ──▶ shown_location: by the parts of a URL, whatever characters they have
//!   messages of other crates, SQL   ──▶ without_secrets: looks for URLs in the text
//! ```
//!
//! Signatures of presigned URLs are in their queries. The command line replaces [`secrets_of`] its URLs in all messages.

/// A location that is a URL, in parts, as it was given.
struct Parts<'a> {
    /// The scheme, with all slashes behind it.
    scheme: &'a str,
    /// The user and the password, without the `@`.
    user: &'a str,
    /// Whether the user must not be shown.
    is_secret: bool,
    /// The host and the path.
    place: &'a str,
    /// The query, and what follows a `?` behind the dataset.
    queries: [&'a str; 2],
    /// The dataset that a quoted path names, with its `#`.
    dataset: &'a str,
}

impl<'a> Parts<'a> {
    fn try_new(location: &'a str) -> Option<Self> {
        let (scheme, rest) = location.split_at(behind_scheme(location)?);
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let (query, fragment) = match rest[end..].find('#') {
            Some(at) => (&rest[end..end + at], &rest[end + at..]),
            None => (&rest[end..], ""),
        };
        let (dataset, late) = fragment.split_at(fragment.find('?').unwrap_or(fragment.len()));
        let queries = [query.trim_start_matches('?'), late.trim_start_matches('?')];
        let parts =
            Self { scheme, user: "", is_secret: false, place: &rest[..end], queries, dataset };
        let ends: &[char] = if ends_with_web(scheme) { &['/', '\\'] } else { &['/'] };
        let host = &parts.place[..parts.place.find(ends).unwrap_or(parts.place.len())];
        Some(match host.rfind('@') {
            Some(at) => parts.with_user(at),
            None if has_port(host) => parts,
            None => parts.malformed(rest),
        })
    }

    /// Sets the user, which ends at `at`. The container in `abfss://container@account.dfs.core.windows.net` is no secret.
    fn with_user(self, at: usize) -> Self {
        let (user, place) = (&self.place[..at], &self.place[at + 1..]);
        let is_secret = ends_with_web(self.scheme) || user.contains(':');
        Self { user, place, is_secret, ..self }
    }

    /// Takes everything up to the last `@` for a password, because it may have characters that end a host.
    fn malformed(self, rest: &'a str) -> Self {
        let Some(at) = rest.rfind('@') else { return self };
        let (user, behind) = (&rest[..at], &rest[at + 1..]);
        // The `@` may be in the password or in the query.
        if user.contains('?') {
            return Self { user: rest, is_secret: true, place: "…", dataset: "", ..self };
        }
        let place = &behind[..behind.find(['?', '#']).unwrap_or(behind.len())];
        let dataset = if user.contains('#') { "" } else { self.dataset };
        Self { user, is_secret: true, place, dataset, ..self }
    }

    fn has_secrets(&self) -> bool {
        self.is_secret || self.queries.iter().any(|it| !it.is_empty())
    }

    fn shown(&self) -> String {
        let (user, at) = match self.is_secret || self.user.is_empty() {
            true => ("", ""),
            false => (self.user, "@"),
        };
        [self.scheme, user, at, self.place, self.dataset].concat()
    }
}

/// Returns a location without its password and its query, for names, plans and messages. A path stays as it is.
pub fn shown_location(location: &str) -> String {
    Parts::try_new(location).map_or_else(|| location.to_owned(), |parts| parts.shown())
}

/// Whether a location has a password or a query.
pub fn has_secrets(location: &str) -> bool {
    Parts::try_new(location).is_some_and(|parts| parts.has_secrets())
}

/// Whether a text is a URL from its beginning to its end.
pub fn is_url(text: &str) -> bool {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-:/\\\t\r\n".contains(c);
    behind_scheme(text).is_some_and(|at| text[..at].trim_start().chars().all(is_of_scheme))
}

/// Returns the texts that a location hides, in each way that a message may write them: as a literal of Rust or SQL, without
/// line breaks, with escapes, or only the part up to a blank or a quote.
pub fn secrets_of(location: &str) -> Vec<String> {
    let Some(parts) = Parts::try_new(location) else { return vec![] };
    let user = if parts.is_secret { parts.user } else { "" };
    let mut secrets: Vec<String> = vec![];
    for secret in parts.queries.into_iter().chain([user]) {
        secrets.extend([
            secret.to_owned(),
            secret.escape_debug().to_string(),
            secret.replace('\'', "''"),
            secret.replace('"', "\"\""),
            secret.replace(['\n', '\r', '\t'], ""),
        ]);
        let is_break = |c: char| c.is_whitespace() || "'\"<>`".contains(c);
        secrets.extend(secret.split(is_break).map(str::to_owned));
    }
    if let Some((_, password)) = user.split_once(':') {
        secrets.push(password.to_owned());
    }
    secrets.retain(|it| !it.is_empty());
    secrets.sort();
    secrets.dedup();
    secrets
}

/// Returns a text without the passwords and queries of the URLs in it.
///
/// It hides rather too much than too little: a URL in quotes ends at the closing quote.
pub fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        let start = rest[..at].trim_end_matches(is_of_scheme).len();
        let quote = rest[..start].chars().next_back().filter(|c| "'\"`".contains(*c));
        let behind = &rest[at + 3..];
        let end =
            at + 3 + quote.map_or_else(|| end_of_bare(behind), |it| end_of_quoted(behind, it));
        shown.push_str(&rest[..start]);
        match Parts::try_new(&rest[start..end]) {
            Some(parts) => {
                shown += &parts.shown();
                if parts.dataset.is_empty() {
                    // Punctuation of the sentence.
                    let query = parts.queries[0];
                    let end = query.trim_end_matches(|c| "):,;.".contains(c)).len();
                    shown.push_str(&query[end..]);
                }
            }
            None => shown.push_str(&rest[start..end]),
        }
        rest = &rest[end..];
    }
    shown + rest
}

/// Returns the length of the rest of a URL without quotes around it.
fn end_of_bare(text: &str) -> usize {
    let goes_on = |at: usize| text[at + 1..].starts_with(char::is_alphanumeric);
    let is_end = |(at, c): (usize, char)| match c {
        '\'' | '"' | '<' | '>' => !goes_on(at),
        c => c.is_whitespace(),
    };
    let end = text.char_indices().find(|it| is_end(*it)).map_or(text.len(), |(at, _)| at);
    // A password may have blanks: `me:a b@host`. A port has digits only.
    let host = text[..end].split(['/', '?', '#']).next().unwrap_or_default();
    let is_password = !host.contains('@') && !has_port(host);
    let line = text.lines().next().unwrap_or_default();
    match line.rfind('@').filter(|_| is_password) {
        Some(at) if at > end => at + 1 + end_of_bare(&text[at + 1..]),
        _ => end,
    }
}

/// Whether a host ends with a port, or has none. Punctuation of a sentence may follow.
fn has_port(host: &str) -> bool {
    let is_of_port = |c: char| c.is_ascii_digit() || "]).,;:'\"".contains(c);
    host.rsplit_once(':').is_none_or(|(_, port)| port.chars().all(is_of_port))
}

/// Returns the length of the rest of a URL in quotes. A quote that is doubled, or within a word, does not close.
fn end_of_quoted(text: &str, quote: char) -> usize {
    let mut at = 0;
    while let Some(found) = text[at..].find(quote) {
        let behind = at + found + 1;
        match text[behind..].chars().next() {
            Some(next) if next == quote => at = behind + 1,
            Some(next) if next.is_alphanumeric() => at = behind,
            _ => return behind - 1,
        }
    }
    text.len()
}

/// Returns where the host of a URL begins, if the text has one.
fn behind_scheme(text: &str) -> Option<usize> {
    let web = ["http:", "https:"].into_iter().find(|it| starts_with(text.trim_start(), it));
    let blanks = text.len() - text.trim_start().len();
    let at = text.find("://").map(|at| at + 3).or_else(|| web.map(|it| blanks + it.len()))?;
    // Parsers of web addresses skip any number of slashes.
    let slashes: &[char] = if ends_with_web(&text[..at]) { &['/', '\\'] } else { &[] };
    Some(text.len() - text[at..].trim_start_matches(slashes).len())
}

fn is_web(scheme: &str) -> bool {
    ["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it))
}

/// Whether the scheme at the end of a text is one of the web.
fn ends_with_web(text: &str) -> bool {
    let text = text.trim_end_matches([':', '/', '\\']);
    let start = text.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
    is_web(&text[start..])
}

/// Whether a text starts with `start`, in any case.
fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn secrets_are_not_shown() {
        for (text, expected) in [
            ("https://h/a.tet?X-Signature=1#t", "https://h/a.tet#t"),
            ("https://me:pass@h:1/a.tet: gone", "https://h:1/a.tet: gone"),
            ("GET 'https://h?x=1' and s3://b/a@b?c", "GET 'https://h' and s3://b/a@b"),
            ("at (https://h/a(1).tet?sig=2): no", "at (https://h/a(1).tet): no"),
            ("'https://h/it's.tet?sig=2'", "'https://h/it's.tet'"),
            ("s3://key:secret@b/a", "s3://b/a"),
            ("https://token@h/a", "https://h/a"),
            ("abfss://c@a.dfs.core.windows.net/x?y", "abfss://c@a.dfs.core.windows.net/x"),
            ("a?b@c.tet", "a?b@c.tet"),
            ("table 'http://h/a?b=1\n&sig=a''S' has", "table 'http://h/a' has"),
            ("\"http://h/a?sig=a\"\"S\".x", "\"http://h/a\".x"),
            ("no http://me:a S@h:1/a?b: gone", "no http://h:1/a: gone"),
            ("http://h:80 and me@x", "http://h:80 and me@x"),
            ("http://h/a?sig=a<S", "http://h/a"),
        ] {
            assert_eq!(without_secrets(text), expected);
        }
        let cause = std::io::Error::other("GET https://me:pass@h/a?sig=1 failed");
        let error = Error::io("cannot read", cause).in_file("https://me:pass@h/a?sig=1");
        assert_eq!(error.to_string(), "https://h/a: cannot read: GET https://h/a failed");
    }

    #[test]
    fn locations_are_shown_by_their_parts() {
        for (location, expected) in [
            ("http://me:a S@h/f", "http://h/f"),
            ("http://h/f?a=1\n&sig=S\t'\"<>`#t", "http://h/f#t"),
            ("http://h/f#t?sig=S", "http://h/f#t"),
            ("http://h/f?a#t?sig=S", "http://h/f#t"),
            ("http://me:a/S@h/f?x", "http://h/f"),
            ("http://me:a?S@h/f", "http://…"),
            ("http://me:a#S@h/f#t", "http://h/f"),
            ("http://me:S@h:99999/f?sig=S@T", "http://h:99999/f"),
            ("http://h:99999/f?sig=S", "http://h:99999/f"),
            (" HTTP:\\\\me:S@h/f", " HTTP:\\\\h/f"),
            ("https:me:S@h/f", "https:h/f"),
            ("http:////me:S@h/a@b", "http:////h/a@b"),
            ("s3://k:S@b/a@b?x", "s3://b/a@b"),
            ("abfss://c@a.net/x", "abfss://c@a.net/x"),
            ("a?b@c#d.tet", "a?b@c#d.tet"),
        ] {
            assert_eq!(shown_location(location), expected);
            assert_eq!(has_secrets(location), is_url(location) && expected != location);
        }
    }

    #[test]
    fn secrets_are_known_as_messages_write_them() {
        let secrets = secrets_of("http://me:a S@h/f?a=1\n&sig=b'c");
        for text in ["me:a S", "a S", "S", "a=1\\n&sig=b\\'c", "a=1\n&sig=b''c", "a=1&sig=b'c"] {
            assert!(secrets.iter().any(|it| it == text), "{text:?}: {secrets:?}");
        }
        assert!(secrets_of("s3://b/a@b").is_empty() && secrets_of("/a?b").is_empty());
    }
}
