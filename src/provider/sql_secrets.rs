//! SQL text without its secrets: parts of URLs, and the values of options that are keys, tokens or passwords.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};

use crate::error::{is_url, secrets_of, shown_location, without_secrets};
use crate::options::is_of_store;

/// The text in place of a secret.
const HIDDEN: &str = "…";

/// Options of object stores whose values are no secrets. All others are taken for secrets.
const HARMLESS: [&str; 28] = [
    "account_name",
    "allow_http",
    "allow_invalid_certificates",
    "allow_private_references",
    "application_credentials",
    "base_url",
    "client_id",
    "connect_timeout",
    "default_region",
    "endpoint",
    "endpoint_url",
    "endpoint_url_s3",
    "federated_token_file",
    "header_origins",
    "metadata_endpoint",
    "pool_idle_timeout",
    "proxy_excludes",
    "region",
    "request_payer",
    "role_arn",
    "role_session_name",
    "service_account",
    "skip_signature",
    "tenant_id",
    "timeout",
    "user_agent",
    "virtual_hosted_style_request",
    "web_identity_token_file",
];

/// Whether the value of an option is a key, a token or a password.
pub fn is_secret_option(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    last == "encryption_key"
        || (is_of_store(&name) && (name.contains(".header.") || !HARMLESS.contains(&last)))
}

/// Returns SQL without passwords and signatures in URLs, and without the values of secret options. A text that is no
/// SQL loses the secrets of URLs.
pub fn without_secrets_in_sql(sql: &str) -> String {
    let shown = without_secrets_of(sql).0;
    // A URL may also stand in a comment.
    without_secrets(&shown)
}

/// Returns the values of secret options and the secrets of URLs in SQL, also if it ends in the middle of a statement.
pub fn secrets_in_sql(sql: &str) -> Vec<String> {
    without_secrets_of(sql).1
}

/// The position relative to the name of a secret option.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum At {
    #[default]
    Elsewhere,
    /// Behind the name.
    Name,
    /// In the value, within so many parentheses.
    Value(usize),
}

fn without_secrets_of(sql: &str) -> (String, Vec<String>) {
    let mut tokens = vec![];
    let read = Tokenizer::new(&GenericDialect {}, sql)
        .with_unescape(false)
        .tokenize_with_location_into_buf(&mut tokens);
    let mut hider = Hider::default();
    tokens.iter().for_each(|it| hider.add(&it.token));
    match read {
        Ok(()) => (hider.shown, hider.secrets),
        // The rest of an unfinished statement has no tokens.
        Err(_) => (sql.to_owned(), hider.secrets),
    }
}

/// Writes tokens without their secrets, which it collects.
#[derive(Default)]
struct Hider {
    shown: String,
    secrets: Vec<String>,
    at: At,
    /// The parts of a name without quotes, such as `aws.session_token`.
    name: String,
}

impl Hider {
    fn add(&mut self, token: &Token) {
        if matches!(token, Token::Whitespace(_)) || self.is_separator(token) {
            self.shown += &token.to_string();
            return;
        }
        match self.at {
            At::Value(depth) => self.hide(token, depth),
            At::Name | At::Elsewhere => self.show(token),
        }
    }

    /// Moves from a name to its value. Returns whether the token stands between them, and belongs to neither.
    fn is_separator(&mut self, token: &Token) -> bool {
        if self.at != At::Name {
            return false;
        }
        let is_separator =
            matches!(token, Token::Comma | Token::Eq | Token::RArrow | Token::Assignment);
        let goes_on = !self.name.is_empty() && is_joint(token);
        if is_separator || !goes_on {
            self.at = At::Value(0);
        }
        if is_separator {
            self.name.clear();
        }
        is_separator
    }

    /// Hides the text or number of a token in a value.
    fn hide(&mut self, token: &Token, depth: usize) {
        self.at = match token {
            Token::LParen => At::Value(depth + 1),
            Token::RParen | Token::Comma if depth == 0 => At::Elsewhere,
            Token::RParen => At::Value(depth - 1),
            Token::SemiColon => At::Elsewhere,
            _ => self.at,
        };
        match quoted(token) {
            Some(text) => {
                self.secrets.push(text.replace("''", "'"));
                self.shown += &format!("'{HIDDEN}'");
            }
            None if matches!(token, Token::Number(..)) => self.shown += &format!("'{HIDDEN}'"),
            None => self.shown += &token.to_string(),
        }
        self.name.clear();
    }

    /// Writes a token that is in no value, a URL without its secrets. It may be the name of an option.
    fn show(&mut self, token: &Token) {
        match (token, quoted(token)) {
            (_, Some(text)) => {
                self.name.clear();
                self.at = if is_secret_option(text) { At::Name } else { At::Elsewhere };
                let shown = match is_url(text) {
                    true => {
                        let quote = if matches!(token, Token::Word(_)) { "\"" } else { "'" };
                        self.secrets.extend(secrets_of(&text.replace(&quote.repeat(2), quote)));
                        shown_location(text)
                    }
                    false => without_secrets(text),
                };
                self.shown += &in_quotes(token, text, &shown);
                return;
            }
            (Token::Word(word), None) => {
                match self.name.ends_with(['.', '-']) {
                    true => self.name += &word.value,
                    false => self.name.clone_from(&word.value),
                }
                self.at = if is_secret_option(&self.name) { At::Name } else { At::Elsewhere };
            }
            _ => {
                match is_joint(token) {
                    true => self.name += &token.to_string(),
                    false => self.name.clear(),
                }
                self.at = At::Elsewhere;
            }
        }
        self.shown += &token.to_string();
    }
}

/// Whether a token joins two parts of a name without quotes.
fn is_joint(token: &Token) -> bool {
    matches!(token, Token::Period | Token::Minus)
}

/// Returns a token with other text between its quotes.
fn in_quotes(token: &Token, text: &str, shown: &str) -> String {
    match token {
        // Written out, a name doubles the quotes in it once more.
        Token::Word(Word { quote_style: Some(quote), .. }) => {
            let end = if *quote == '[' { ']' } else { *quote };
            format!("{quote}{shown}{end}")
        }
        token => token.to_string().replace(text, shown),
    }
}

/// Returns the text between the quotes of a token.
fn quoted(token: &Token) -> Option<&str> {
    match token {
        Token::SingleQuotedString(text)
        | Token::DoubleQuotedString(text)
        | Token::NationalStringLiteral(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text)
        | Token::HexStringLiteral(text)
        | Token::SingleQuotedRawStringLiteral(text)
        | Token::DoubleQuotedRawStringLiteral(text) => Some(text),
        Token::DollarQuotedString(text) => Some(&text.value),
        Token::Word(word) if word.quote_style.is_some() => Some(&word.value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_options_are_hidden() {
        for (sql, expected) in [
            ("SELECT 1, 'a''b'", "SELECT 1, 'a''b'"),
            (
                "SELECT * FROM read_array('a', 'aws.session_token', 'S', 'io', 'pread')",
                "SELECT * FROM read_array('a', 'aws.session_token', '…', 'io', 'pread')",
            ),
            (
                "SELECT * FROM read_tiledb('a', encryption_key => 'S', x => 'y')",
                "SELECT * FROM read_tiledb('a', encryption_key => '…', x => 'y')",
            ),
            (
                "SELECT * FROM f('a', 'azure.sas_token', concat('S', lower('T')), 'b')",
                "SELECT * FROM f('a', 'azure.sas_token', concat('…', lower('…')), 'b')",
            ),
            (
                "CREATE EXTERNAL TABLE t LOCATION 'http://m:S@h/a' OPTIONS (aws.region 'x', http.header.X-Key 'S', 'tiledb.encryption_key' 7)",
                "CREATE EXTERNAL TABLE t LOCATION 'http://h/a' OPTIONS (aws.region 'x', http.header.X-Key '…', 'tiledb.encryption_key' '…')",
            ),
            (
                "x OPTIONS ('gcp.service_account_key' 'S' 'T')",
                "x OPTIONS ('gcp.service_account_key' '…' '…')",
            ),
            ("SELECT x FROM 'https://h/a?s=S#t'", "SELECT x FROM 'https://h/a#t'"),
            ("SELECT x FROM 'https://h/a?s=\n''S' b", "SELECT x FROM 'https://h/a' b"),
            ("SELECT \"http://m:a S@h?s=\"\"S\".x", "SELECT \"http://h\".x"),
            ("SELECT \"a\"\"b\"", "SELECT \"a\"\"b\""),
            (
                "SELECT 'http.timeout', 'http.header.x' = 'S'",
                "SELECT 'http.timeout', 'http.header.x' = '…'",
            ),
        ] {
            assert_eq!(without_secrets_in_sql(sql), expected);
        }
        let unfinished = "OPTIONS ('aws.secret_access_key' 'it''s', x 'open";
        assert_eq!(secrets_in_sql(unfinished), ["it's"]);
    }
}
