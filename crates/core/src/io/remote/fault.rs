//! [`Fault`]: the reason why a try of a request failed, and whether another try may help.

use std::time::Duration;

use object_store::Error as StoreError;

use super::reason::{Reason, is_lasting};
use crate::error::{Error, with_causes};

/// The failure of one try.
#[derive(Debug)]
pub(super) enum Fault {
    /// The store or the connection failed.
    Store(StoreError),
    /// No bytes, or only so many, came for this long.
    Stalled(Duration, usize),
    /// The threads for requests do not run.
    Threads(Error),
    /// The reply contradicts itself or the request; the text tells how.
    Lie(String),
    /// The bytes of the reply are encoded in this way, which was not asked for.
    Encoded(String),
    /// The object is another one than when it was opened; the text tells what differs.
    Changed(String),
    /// The object has this many bytes, and may have only so many.
    TooLong(u64, u64),
}

/// Beginnings of `object_store`'s texts about replies that do not fit their requests. It has them only as text.
const LIES: [&str; 9] = [
    "Requested ",
    "Content-Range header",
    "Failed to parse value for CONTENT_RANGE",
    "Content-Length",
    "Invalid content length",
    "ETag",
    "Last-Modified",
    "Invalid last modified",
    "Received header",
];

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Precondition { .. } => {
                Self::Changed("the store refuses its former tag".to_owned())
            }
            StoreError::Generic { source, .. }
                if LIES.iter().any(|text| source.to_string().starts_with(text)) =>
            {
                Self::Lie(source.to_string())
            }
            error => Self::Store(error),
        }
    }
}

impl Fault {
    /// Whether the same request may succeed later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Stalled(..) => true,
            Self::Store(error) => match error {
                // `object_store` has no other kind for faults of connections and servers.
                StoreError::Generic { .. } if self.refuses_ranges() || is_lasting(error) => false,
                // S3 answers so in another region, without an address.
                error if with_causes(error).contains("redirect without LOCATION") => false,
                StoreError::Generic { .. } => {
                    status(error).is_none_or(|code| code >= 500 || [408, 425, 429].contains(&code))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the server sends whole objects only.
    pub(super) fn refuses_ranges(&self) -> bool {
        match self {
            Self::Store(StoreError::NotSupported { .. }) => true,
            Self::Store(error) => with_causes(error).contains("non-partial response"),
            _ => false,
        }
    }

    /// Whether a range may lie beyond the end of the object, as any range of an empty object does.
    pub(super) fn may_be_beyond(&self) -> bool {
        match self {
            Self::Store(error @ StoreError::Generic { .. }) if status(error).is_some() => {
                !self.is_transient()
            }
            Self::Store(error) => with_causes(error).contains("range"),
            Self::Lie(text) => text.contains("range"),
            _ => false,
        }
    }

    /// Returns the error of a request that failed, after some tries to do `what`.
    pub(super) fn error(self, what: &str, tries: usize) -> Error {
        let what = match tries {
            0 | 1 => format!("cannot {what}"),
            tries => format!("cannot {what}, after {tries} tries"),
        };
        let other = |text: String| std::io::Error::other(text);
        match self {
            Self::Store(error) => Error::io(what, Reason::new(error)),
            Self::Threads(error) => error,
            Self::Changed(how) => {
                let text =
                    format!("the object was replaced after it was opened; open it again ({what})");
                Error::io(text, other(how))
            }
            Self::Stalled(limit, got) => {
                let sent = match got {
                    0 => "nothing for".to_owned(),
                    got => format!("only {got} bytes in"),
                };
                let text = format!(
                    "the store sent {sent} {} s; 'gridfusion.remote_timeout' sets this limit",
                    limit.as_secs_f32()
                );
                Error::io(what, std::io::Error::new(std::io::ErrorKind::TimedOut, text))
            }
            Self::Lie(how) => Error::io(
                what,
                other(format!("the reply of the store is not what was asked for: {how}")),
            ),
            Self::Encoded(encoding) => Error::unsupported(format!(
                "{what}: the server sends its bytes encoded ({encoding}), which was not asked for; turn this encoding off for arrays, or store the object without 'Content-Encoding'"
            )),
            Self::TooLong(size, most) => Error::unsupported(format!(
                "{what}: the server sends whole objects only, this one has {size} bytes, and at most {most} are read at once; serve it with support for ranges, or set 'gridfusion.remote_cache' to more bytes"
            )),
        }
    }
}

/// Returns the HTTP status of an error. `object_store` shows it only as text.
fn status(error: &StoreError) -> Option<u16> {
    let text = with_causes(error);
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_servers_are_transient() {
        let generic = |text: &str| {
            Fault::from(StoreError::Generic { store: "HTTP", source: text.to_owned().into() })
        };
        let status =
            |code: u16| generic(&format!("Server returned non-2xx status code: {code}: no"));
        for (fault, expected) in [
            (status(500), true),
            (status(503), true),
            (status(429), true),
            (status(400), false),
            (generic("connection reset"), true),
            (generic("Received non-partial response when range requested"), false),
            (
                generic("Received redirect without LOCATION, this normally indicates a region"),
                false,
            ),
            (generic("Requested 0..9, got 0..4"), false),
            (generic("Content-Range header not present in partial response"), false),
            (generic("Content-Length Header missing from response"), false),
            (Fault::Stalled(Duration::from_secs(1), 7), true),
            (Fault::Changed("x".into()), false),
            (Fault::Lie("x".into()), false),
            (Fault::Encoded("gzip".into()), false),
        ] {
            assert_eq!(fault.is_transient(), expected, "{fault:?}");
        }
    }
}
