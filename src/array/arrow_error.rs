//! Whose fault it is that Arrow refuses something.

use arrow::error::ArrowError;

use crate::error::Error;

/// What Arrow's refusal of `doing` is: `Unsupported` if the data are too many or of a type that Arrow has no
/// code for, else `Internal`, because callers check all else before they ask.
pub(crate) fn arrow_error(doing: &'static str) -> impl Fn(ArrowError) -> Error {
    move |error| match &error {
        ArrowError::MemoryError(_) | ArrowError::OffsetOverflowError(_) => {
            Error::unsupported(format!("{doing}: {error}; set a smaller batch size"))
        }
        ArrowError::NotYetImplemented(_) => Error::unsupported(format!("{doing}: {error}")),
        _ => Error::internal(format!("{doing}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn too_much_data_is_no_bug() {
        let kind = |error| arrow_error("repeating labels")(error).kind();
        assert_eq!(kind(ArrowError::OffsetOverflowError(7)), Kind::Unsupported);
        assert_eq!(kind(ArrowError::NotYetImplemented("unions".into())), Kind::Unsupported);
        assert_eq!(kind(ArrowError::ComputeError("odd".into())), Kind::Internal);
    }
}
