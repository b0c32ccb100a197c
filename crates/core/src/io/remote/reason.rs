//! [`Reason`]: an error of a store that shows its cause, and the causes that another try does not mend.

use std::error::Error;
use std::fmt;
use std::io::{Error as IoError, ErrorKind};

use object_store::Error as StoreError;

use crate::error::with_causes;

/// The text of an error of the system's resolver.
const LOOKUP: &str = "failed to lookup address information";
/// The text of a name server that cannot answer now.
const TRY_AGAIN: &str = "Temporary failure in name resolution";

/// An error of a store. Its text ends with the deepest cause, which `object_store` leaves out: `error sending
/// request` alone does not tell a wrong certificate from a wrong name.
#[derive(Debug)]
pub(super) struct Reason {
    error: StoreError,
    cause: Option<String>,
}

impl Reason {
    pub(super) fn new(error: StoreError) -> Self {
        let shown = error.to_string();
        let deepest = causes(&error).last().map(ToString::to_string);
        let cause = deepest.filter(|text| !text.is_empty() && !shown.contains(text.as_str()));
        let cause = cause.map(|text| match text.contains(LOOKUP) {
            true => format!("the name of the host is not known ({text})"),
            false => text,
        });
        Self { error, cause }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{}: {cause}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl Error for Reason {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// Whether the cause of an error lasts: a certificate or another answer that is not valid, or a name without a host.
pub(super) fn is_lasting(error: &StoreError) -> bool {
    is_invalid(error) || (is_name(error) && !with_causes(error).contains(TRY_AGAIN))
}

/// Whether a name could not be resolved.
fn is_name(error: &StoreError) -> bool {
    causes(error).any(|cause| cause.to_string() == "dns error")
}

/// Whether bytes of the connection are not valid. The TLS library reports certificates so.
fn is_invalid(error: &StoreError) -> bool {
    causes(error).any(|cause| {
        let mut error = cause.downcast_ref::<IoError>();
        while let Some(found) = error {
            if found.kind() == ErrorKind::InvalidData {
                return true;
            }
            // An error of input and output hides the one that it holds from `source`.
            error = found.get_ref().and_then(|inner| inner.downcast_ref::<IoError>());
        }
        false
    })
}

/// Returns an error and all its causes.
fn causes<'a>(error: &'a StoreError) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let first: &'a (dyn Error + 'static) = error;
    std::iter::successors(Some(first), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        error.source()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(&'static str, IoError);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    fn error(text: &'static str, cause: IoError) -> StoreError {
        StoreError::Generic { store: "HTTP", source: Box::new(Outer(text, cause)) }
    }

    #[test]
    fn lasting_causes_are_named_and_not_tried_again() {
        let certificate = IoError::new(ErrorKind::InvalidData, "invalid peer certificate: Expired");
        let lookup = |text: &str| error("dns error", IoError::other(format!("{LOOKUP}: {text}")));
        for (error, is_final, expected) in [
            (
                error("error sending request", IoError::other(certificate)),
                true,
                ": invalid peer certificate: Expired",
            ),
            (
                lookup("Name or service not known"),
                true,
                "the name of the host is not known (failed to lookup address information: Name ",
            ),
            (lookup(TRY_AGAIN), false, "information: Temporary failure"),
            (
                error("error sending request", ErrorKind::ConnectionReset.into()),
                false,
                "error sending request: connection reset",
            ),
        ] {
            assert_eq!(is_lasting(&error), is_final, "{error:?}");
            let text = Reason::new(error).to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
