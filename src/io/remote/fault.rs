//! [`Fault`]: the reason why a try of a request failed, and whether another try may help.

use std::time::Duration;

use object_store::Error as StoreError;

use crate::error::{Error, with_causes};

/// The failure of one try.
#[derive(Debug)]
pub(super) enum Fault {
    /// The store or the connection failed.
    Store(StoreError),
    /// No bytes, or hardly any, came for this long.
    Stalled(Duration),
    /// The threads for requests do not run.
    Threads(Error),
    /// The store sent this many bytes of so many.
    Short(u64, u64),
    /// The store sent more bytes than it announced, or others than the requested ones.
    Wrong,
    /// The object is another one than when it was opened.
    Changed,
    /// The object has this many bytes, and may have only so many.
    TooLong(u64, u64),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Precondition { .. } => Self::Changed,
            error => Self::Store(error),
        }
    }
}

impl Fault {
    /// Whether the same request may succeed later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Stalled(_) | Self::Short(..) => true,
            Self::Wrong | Self::Changed | Self::TooLong(..) | Self::Threads(_) => false,
            Self::Store(error) => match error {
                // `object_store` has no other kind for faults of connections and servers.
                StoreError::Generic { .. } if self.refuses_ranges() => false,
                // S3 answers so in another region, without an address.
                error if with_causes(error).contains("redirect without LOCATION") => false,
                StoreError::Generic { .. } => {
                    status(error).is_none_or(|code| code >= 500 || [408, 425, 429].contains(&code))
                }
                _ => false,
            },
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
        matches!(self, Self::Store(StoreError::Generic { .. })) && !self.is_transient()
            || matches!(self, Self::Store(error) if with_causes(error).contains("range"))
    }

    /// Returns the error of a request that failed, after some tries to do `what`.
    pub(super) fn error(self, what: &str, tries: usize) -> Error {
        let what = match tries {
            0 | 1 => format!("cannot {what}"),
            tries => format!("cannot {what}, after {tries} tries"),
        };
        let other = |text: String| std::io::Error::other(text);
        match self {
            Self::Store(error) => Error::io(what, error),
            Self::Threads(error) => error,
            Self::Changed => {
                let text =
                    format!("the object was replaced after it was opened; open it again ({what})");
                Error::io(text, other("its length, tag or time is another one".to_owned()))
            }
            Self::Stalled(limit) => {
                let text = format!(
                    "the store sent nothing for {} s; 'gridfusion.remote_timeout' sets this limit",
                    limit.as_secs_f32()
                );
                Error::io(what, std::io::Error::new(std::io::ErrorKind::TimedOut, text))
            }
            Self::Short(got, wanted) => {
                let text = format!("the store sent fewer bytes than requested: {got} of {wanted}");
                Error::io(what, std::io::Error::new(std::io::ErrorKind::UnexpectedEof, text))
            }
            Self::Wrong => {
                Error::io(what, other("the store sent other bytes than requested".into()))
            }
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
            (Fault::Stalled(Duration::from_secs(1)), true),
            (Fault::Short(1, 2), true),
            (Fault::Changed, false),
            (Fault::Wrong, false),
        ] {
            assert_eq!(fault.is_transient(), expected, "{fault:?}");
        }
    }
}
