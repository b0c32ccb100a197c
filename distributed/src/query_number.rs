//! [`QueryNumber`]: the query to which a task belongs.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header with the number of the query to which a task belongs.
const HEADER: HeaderName = HeaderName::from_static("x-gridfusion-query");

/// The number of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct QueryNumber(pub(crate) u128);

impl QueryNumber {
    pub(crate) fn add_to(self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::try_from(format!("{:032x}", self.0)) {
            headers.insert(HEADER, value);
        }
    }

    pub(crate) fn try_new(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(HEADER)?.to_str().ok()?;
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}
