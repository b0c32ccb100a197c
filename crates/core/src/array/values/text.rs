//! Values of any length: text and bytes.
//!
//! ```text
//!   content    O s l o B e r g e n        one block, shared with the tile
//!   spans      0..4       4..10
//!   views      0, 4       4, 6            start and length in the block: no byte is copied
//! ```
//!
//! Arrow's text is UTF-8, so text of other encodings is converted and copied.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewBuilder, StringArray, StringViewArray, StringViewBuilder};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use bytes::Bytes;

use super::encoding::Encoding;
use crate::array::failed_to;
use crate::error::{Error, Result};

/// The longest content that views can refer to; longer content is copied value by value. Views count
/// bytes in 32 bits.
const MAX_BLOCK: usize = i32::MAX as usize;

/// The most bytes of values that a batch copies. In a hostile file, every cell may refer to the same long
/// value.
const MAX_COPIED: usize = i32::MAX as usize;

/// Fails if the values of a batch, which must be copied, are longer than [`MAX_COPIED`].
fn check_copied(spans: &[Range<u64>]) -> Result<()> {
    let bytes = spans.iter().fold(0, |sum: u64, span| sum.saturating_add(span.end - span.start));
    if bytes <= MAX_COPIED as u64 {
        return Ok(());
    }
    let most = MAX_COPIED >> 20;
    Err(Error::unsupported(format!(
        "a batch would copy {bytes} bytes of values, and the limit is {most} MiB; set a smaller batch size"
    )))
}

/// Returns bytes as an array: views of `content`, or copies if it is longer than [`MAX_BLOCK`].
pub(super) fn binary(
    spans: &[Range<u64>],
    content: &Bytes,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    let mut builder = BinaryViewBuilder::with_capacity(spans.len());
    let block =
        (content.len() <= MAX_BLOCK).then(|| builder.append_block(Buffer::from(content.clone())));
    if block.is_none() {
        check_copied(spans)?;
    }
    for (at, span) in spans.iter().enumerate() {
        match block {
            _ if nulls.is_some_and(|nulls| nulls.is_null(at)) => builder.append_null(),
            Some(block) => builder
                .try_append_view(block, span.start as u32, (span.end - span.start) as u32)
                .map_err(failed_to("make views of text"))?,
            None => builder.append_value(&content[span.start as usize..span.end as usize]),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Returns text as an array: views of `content` if it is UTF-8 of at most [`MAX_BLOCK`] bytes, otherwise
/// copies.
pub(super) fn text(
    encoding: Encoding,
    spans: &[Range<u64>],
    content: &Bytes,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    if encoding == Encoding::Utf8
        && let Some(array) = adjacent(spans, content, nulls)
    {
        return Ok(Arc::new(array));
    }
    let mut builder = StringViewBuilder::with_capacity(spans.len());
    let block = (encoding == Encoding::Utf8 && content.len() <= MAX_BLOCK)
        .then(|| builder.append_block(Buffer::from(content.clone())));
    if block.is_none() {
        check_copied(spans)?;
    }
    for (at, span) in spans.iter().enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(at)) {
            builder.append_null();
            continue;
        }
        let bytes = &content[span.start as usize..span.end as usize];
        let invalid = || {
            let start: String = bytes.escape_ascii().take(40).map(char::from).collect();
            Error::usage(format!(
                "text that is not valid {encoding:?}: \"{start}\"; name its character set with the option \
                 text_encoding, such as 'latin1', or read bytes with text_as_binary = 'true'"
            ))
        };
        match (encoding, block) {
            (Encoding::Utf8, Some(block)) => builder
                .try_append_view(block, span.start as u32, (span.end - span.start) as u32)
                .map_err(|_| invalid())?,
            _ => builder.append_value(encoding.decode(bytes).ok_or_else(invalid)?),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Returns text whose values follow one another in `content`; `None` for other text, and for content that is not UTF-8.
///
/// Checking all content at once takes less time than checking value by value.
fn adjacent(
    spans: &[Range<u64>],
    content: &Bytes,
    nulls: Option<&NullBuffer>,
) -> Option<StringViewArray> {
    let first = spans.first()?.start;
    let end = spans.last()?.end;
    let is_adjacent = spans.windows(2).all(|pair| pair[0].end == pair[1].start)
        && spans.iter().all(|span| span.start <= span.end);
    if !is_adjacent || end > content.len() as u64 || content.len() > MAX_BLOCK {
        return None;
    }
    let mut offsets = Vec::with_capacity(spans.len() + 1);
    offsets.push(first as i32);
    offsets.extend(spans.iter().map(|span| span.end as i32));
    let offsets = OffsetBuffer::new(offsets.into());
    let text = StringArray::try_new(offsets, Buffer::from(content.clone()), nulls.cloned());
    text.ok().map(|text| StringViewArray::from(&text))
}

/// Returns the bytes of a buffer, which both share.
pub(super) fn shared(buffer: Buffer) -> Bytes {
    /// A buffer as the owner of bytes.
    struct Owner(Buffer);

    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    Bytes::from_owner(Owner(buffer))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};

    use super::*;

    fn read(encoding: Encoding, values: &[&[u8]]) -> Result<Vec<String>> {
        let content = Bytes::from(values.concat());
        let mut end = 0;
        let mut span = |value: &&[u8]| {
            end += value.len() as u64;
            end - value.len() as u64..end
        };
        let spans: Vec<_> = values.iter().map(&mut span).collect();
        let array = text(encoding, &spans, &content, None)?;
        Ok(array.as_string_view().iter().flatten().map(str::to_owned).collect())
    }

    #[test]
    fn all_encodings() {
        let long = "a text of more than twelve bytes, ж";
        assert_eq!(read(Encoding::Utf8, &[b"a", b"", long.as_bytes()]).unwrap(), ["a", "", long]);
        let wide: Vec<u8> = "ж𝄞".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(Encoding::Utf16, &[&wide]).unwrap(), ["ж𝄞"]);
        let wider: Vec<u8> = "ж𝄞".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        assert_eq!(read(Encoding::Utf32, &[&wider]).unwrap(), ["ж𝄞"]);
        for (encoding, bytes) in [
            (Encoding::Utf8, &b"\xff\xfe"[..]),
            (Encoding::Utf16, b"\x00\xd8"),
            (Encoding::Utf16, b"abc"),
            (Encoding::Utf32, b"\xff\xff\xff\xff"),
        ] {
            let error = read(encoding, &[bytes]).unwrap_err().to_string();
            assert!(error.contains("text_as_binary"), "{error}");
        }
    }

    #[test]
    fn values_may_lie_anywhere_in_their_content() {
        let content = Bytes::from_static("xOsloBergenжy".as_bytes());
        let texts = |spans: &[Range<u64>]| {
            let array = text(Encoding::Utf8, spans, &content, None).unwrap();
            array.as_string_view().iter().flatten().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(texts(&[1..5, 5..11, 11..11, 11..13]), ["Oslo", "Bergen", "", "ж"]);
        assert_eq!(texts(&[5..11, 1..5, 1..5]), ["Bergen", "Oslo", "Oslo"]);
        assert!(texts(&[]).is_empty());
        // Half a character is no text, though all content is.
        let halves = text(Encoding::Utf8, &[11..12, 12..14], &content, None);
        assert!(halves.unwrap_err().to_string().contains("not valid Utf8"));
        assert!(adjacent(&[1..5, 5..11], &content, None).is_some());
        assert!(adjacent(&[1..5, 6..11], &content, None).is_none());
    }

    #[test]
    fn junk_under_a_null_is_no_error() {
        let nulls = NullBuffer::from(vec![false, true]);
        let content = Bytes::from_static(b"\xffok");
        let array = text(Encoding::Utf8, &[0..1, 1..3], &content, Some(&nulls)).unwrap();
        assert_eq!(array.as_string_view().iter().collect::<Vec<_>>(), [None, Some("ok")]);
        let array = binary(&[0..1, 1..3], &content, Some(&nulls)).unwrap();
        assert_eq!((array.null_count(), array.as_binary_view().value(1)), (1, &b"ok"[..]));
    }
}
