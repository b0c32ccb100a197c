//! Heads of HTTP requests.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

/// The most bytes of a head.
const MOST_BYTES: u64 = 1 << 16;

/// A request, and the part of its reply that was sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Request {
    /// The number among all requests of the server, from 1 on.
    pub(crate) number: u64,
    /// The method in capitals.
    pub(crate) method: String,
    /// The decoded path without the slash at its beginning.
    pub(crate) path: String,
    /// The range of bytes that the client asks for.
    pub(crate) range: Option<Span>,
    /// The header `If-Match`.
    pub(crate) if_match: Option<String>,
    /// The header `If-None-Match`.
    pub(crate) if_none_match: Option<String>,
    /// The parameters of an S3 listing, if the request is one.
    pub(crate) listing: Option<Listing>,
    /// The status of the reply; 0 if no reply was begun.
    pub(crate) status: u16,
    /// Bytes of the reply's body that were sent so far.
    pub(crate) sent: u64,
    /// The decoded parameters of the URL.
    pub(super) parameters: Vec<(String, String)>,
    /// Whether the connection ends after the reply: the client wants it, or a body follows, which the server does not read.
    pub(super) is_last: bool,
}

/// A range of bytes as clients ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// `bytes=a-b`: from the first byte to the second, both included.
    Between(u64, u64),
    /// `bytes=a-`: from this byte to the end.
    From(u64),
    /// `bytes=-n`: the last bytes.
    Last(u64),
}

/// The parameters of an S3 listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The beginning of the keys; empty for all keys.
    pub(crate) prefix: String,
    /// The text that ends common prefixes; empty for none.
    pub(crate) delimiter: String,
    /// The token of the page before, for all pages but the first.
    pub(crate) token: Option<String>,
    /// The most entries that the client wants.
    pub(crate) max_keys: Option<usize>,
}

impl Request {
    /// Reads a head; `None` if the connection ends or its bytes are no head.
    pub(super) fn read(stream: &mut BufReader<&TcpStream>) -> Option<Self> {
        let mut head = String::new();
        let mut limited = stream.take(MOST_BYTES);
        while !head.ends_with("\r\n\r\n") {
            if limited.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        Self::parse(&head)
    }

    fn parse(head: &str) -> Option<Self> {
        let mut lines = head.lines();
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?, first.next()?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parameters: Vec<(String, String)> = query
            .split('&')
            .filter_map(|parameter| parameter.split_once('='))
            .map(|(name, value)| (decoded(name), decoded(&value.replace('+', " "))))
            .collect();
        let mut request = Self {
            method: method.to_owned(),
            path: decoded(path.trim_start_matches('/')),
            listing: listing(&parameters),
            parameters,
            ..Self::default()
        };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "range" => request.range = Span::parse(value),
                "if-match" => request.if_match = Some(value.to_owned()),
                "if-none-match" => request.if_none_match = Some(value.to_owned()),
                "connection" => request.is_last |= value.eq_ignore_ascii_case("close"),
                "content-length" => request.is_last |= value != "0",
                "transfer-encoding" => request.is_last = true,
                _ => {}
            }
        }
        Some(request)
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        parameter(&self.parameters, name)
    }
}

fn parameter<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    parameters.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
}

fn listing(parameters: &[(String, String)]) -> Option<Listing> {
    let get = |name: &str| parameter(parameters, name).map(str::to_owned);
    (get("list-type")? == "2").then(|| Listing {
        prefix: get("prefix").unwrap_or_default(),
        delimiter: get("delimiter").unwrap_or_default(),
        token: get("continuation-token"),
        max_keys: get("max-keys").and_then(|number| number.parse().ok()),
    })
}

/// Decodes percent signs.
fn decoded(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        match piece.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&piece.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend(piece.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Span {
    /// Parses the value of the header `Range`; `None` for several ranges, which the server ignores.
    fn parse(value: &str) -> Option<Self> {
        let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
        match (first, last) {
            ("", last) => Some(Self::Last(last.parse().ok()?)),
            (first, "") => Some(Self::From(first.parse().ok()?)),
            (first, last) => Some(Self::Between(first.parse().ok()?, last.parse().ok()?)),
        }
    }

    /// Returns the bytes of an object of this length; `None` if the range cannot be satisfied.
    pub(super) fn of(self, len: u64) -> Option<std::ops::Range<usize>> {
        let (start, end) = match self {
            Self::Between(first, last) => (first, last.saturating_add(1).min(len)),
            Self::From(first) => (first, len),
            Self::Last(count) => (len - count.min(len), len),
        };
        (start < end).then_some(start as usize..end as usize)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Between(first, last) => write!(f, "bytes={first}-{last}"),
            Self::From(first) => write!(f, "bytes={first}-"),
            Self::Last(count) => write!(f, "bytes=-{count}"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} /{}", self.method, self.status, self.sent, self.path)?;
        if let Some(range) = self.range {
            write!(f, " {range}")?;
        }
        if let Some(listing) = &self.listing {
            write!(f, " list prefix={} delimiter={}", listing.prefix, listing.delimiter)?;
        }
        Ok(())
    }
}
