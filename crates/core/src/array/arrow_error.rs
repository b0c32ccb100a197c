//! Conversion of Arrow's errors into this crate's [`Error`].

use arrow::error::ArrowError;

use crate::error::Error;

/// Returns a conversion of Arrow's errors into this crate's, for a failed `action` such as "take
/// labels".
///
/// Errors that data or a lack of memory can cause become [`Error::unsupported`]. All others contradict
/// checks that the caller has made, so they become [`Error::internal`].
pub fn failed_to(action: &'static str) -> impl Fn(ArrowError) -> Error {
    move |cause| {
        let error = if comes_from_data(&cause) {
            Error::unsupported(format!("cannot {action}"))
        } else {
            Error::internal(format!("Arrow failed to {action}"))
        };
        error.caused_by(cause)
    }
}

/// Whether data or a lack of memory can cause this error, although the arguments are correct.
fn comes_from_data(error: &ArrowError) -> bool {
    matches!(
        error,
        ArrowError::NotYetImplemented(_)
            | ArrowError::CastError(_)
            | ArrowError::MemoryError(_)
            | ArrowError::DivideByZero
            | ArrowError::ArithmeticOverflow(_)
            | ArrowError::DictionaryKeyOverflowError
            | ArrowError::RunEndIndexOverflowError
            | ArrowError::OffsetOverflowError(_)
    )
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn what_data_can_cause_is_no_bug_of_ours() {
        for cause in [
            ArrowError::OffsetOverflowError(1 << 31),
            ArrowError::MemoryError("no more".to_owned()),
            ArrowError::CastError("9999-99 is no date".to_owned()),
            ArrowError::ArithmeticOverflow("2 * 2^63".to_owned()),
        ] {
            let expected = format!("cannot take labels: {cause}");
            let error = failed_to("take labels")(cause);
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unsupported, expected));
            assert!(error.source().is_some_and(|cause| cause.is::<ArrowError>()));
        }
    }

    #[test]
    fn what_only_we_can_cause_names_what_was_done() {
        let cause = ArrowError::InvalidArgumentError("3 values, 4 nulls".to_owned());
        let error = failed_to("make lists of cells")(cause);
        assert_eq!(error.kind(), ErrorKind::Internal);
        let text = error.to_string();
        assert!(
            text.contains("bug in gridfusion") && text.contains("make lists of cells: "),
            "{text}"
        );
        assert!(error.source().is_some());
    }
}
