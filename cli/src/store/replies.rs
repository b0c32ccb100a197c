//! Replies that are not what was asked for, and long texts of errors.

use futures::StreamExt;
use object_store::client::{HttpError, HttpResponse};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE};

use super::client::lasting;

/// Encodings that leave the bytes as they are. Some clients of S3 store the name of their way of uploading.
const NO_ENCODINGS: [&str; 3] = ["", "identity", "aws-chunked"];
/// The most bytes of the text of an error.
const MOST_TEXT: usize = 64 << 10;

/// Refuses a reply whose bytes are encoded, or whose head contradicts itself.
///
/// `object_store` does not compare the length of a reply with its range, and reads on behind a part that is too short.
pub(super) fn check(reply: &HttpResponse) -> Result<(), HttpError> {
    let header = |name| reply.headers().get(name).and_then(|value| value.to_str().ok());
    let encoding = header(CONTENT_ENCODING).unwrap_or_default();
    let is_none = |part: &str| NO_ENCODINGS.contains(&part.trim().to_ascii_lowercase().as_str());
    if !encoding.split(',').all(is_none) {
        return Err(lasting(format!(
            "the server sends its bytes encoded ({encoding}), which was not asked for"
        )));
    }
    if reply.status() != StatusCode::PARTIAL_CONTENT {
        return Ok(());
    }
    let lie = |how: String| Err(lasting(format!("the reply is not what was asked for: {how}")));
    let kind = header(CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    if kind.starts_with("multipart/byteranges") {
        return lie("it has several parts, and one was asked for".to_owned());
    }
    let Some(range) = header(CONTENT_RANGE) else { return Ok(()) };
    let Some(in_range) = len_of(range) else { return lie(format!("its range is '{range}'")) };
    match header(CONTENT_LENGTH).and_then(|len| len.trim().parse::<u64>().ok()) {
        Some(len) if len != in_range => {
            lie(format!("its range has {in_range} bytes, and its length is {len}"))
        }
        _ => Ok(()),
    }
}

/// Returns the number of bytes of a range such as `bytes 7-9/10`.
fn len_of(range: &str) -> Option<u64> {
    let (range, _) = range.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    last.checked_sub(first)?.checked_add(1).filter(|_| last < u64::MAX)
}

/// Returns the beginning of the text of a reply. A server may send text without end.
pub(super) async fn text(reply: HttpResponse) -> Result<String, HttpError> {
    let (mut bytes, mut body) = (vec![], reply.into_body().bytes_stream());
    while bytes.len() < MOST_TEXT
        && let Some(part) = body.next().await
    {
        bytes.extend_from_slice(&part?);
    }
    bytes.truncate(MOST_TEXT);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use object_store::client::HttpResponseBody;
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn heads_that_contradict_themselves_are_refused() {
        for (status, headers, is_right) in [
            (206, &[(CONTENT_RANGE, "bytes 7-9/10"), (CONTENT_LENGTH, "3")][..], true),
            (206, &[(CONTENT_RANGE, "bytes 7-9/10"), (CONTENT_LENGTH, "2")], false),
            (206, &[(CONTENT_RANGE, "bytes 9-7/10")], false),
            (206, &[(CONTENT_RANGE, "bytes 0-18446744073709551615/10")], false),
            (206, &[(CONTENT_TYPE, "multipart/byteranges; boundary=x")], false),
            (200, &[(CONTENT_TYPE, "multipart/byteranges"), (CONTENT_LENGTH, "7")], true),
            (200, &[(CONTENT_ENCODING, "gzip")], false),
            (200, &[(CONTENT_ENCODING, "identity, zstd")], false),
            (200, &[(CONTENT_ENCODING, "identity")], true),
            (206, &[(CONTENT_ENCODING, "aws-chunked"), (CONTENT_RANGE, "bytes 0-0/1")], true),
        ] {
            let mut reply = HttpResponse::new(HttpResponseBody::from(vec![]));
            *reply.status_mut() = StatusCode::from_u16(status).unwrap();
            let headers: &[(HeaderName, &str)] = headers;
            for (name, value) in headers {
                reply.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
            }
            assert_eq!(check(&reply).is_ok(), is_right, "{headers:?}");
        }
    }
}
