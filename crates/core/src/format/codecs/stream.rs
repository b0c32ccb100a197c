//! Streams of general compressors: zstd, gzip, zlib and bzip2.
//!
//! Output of a known length that is in proportion to the input is decoded at once. Other output grows with what is
//! decoded, up to its limit.
//!
//! Sources: RFC 1950 (zlib), RFC 1952 (gzip), RFC 8878 (Zstandard).

use std::io::Read;

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::output::{Fault, Output, OutputLength, broken, may_reserve};
use crate::format::compress::Contexts;

/// Decodes zstd frames, of which there may be any number.
pub(super) fn unzstd(
    stored: &[u8],
    mut output: Output<'_>,
    contexts: &mut Contexts,
) -> Result<(), Fault> {
    let len = match output.bound {
        OutputLength::Exactly(len) => Some(len),
        // The length of the first frame; there is seldom a second one.
        OutputLength::AtMost(most) => {
            let claimed = zstd::zstd_safe::get_frame_content_size(stored).ok().flatten();
            claimed.and_then(|len| usize::try_from(len).ok()).filter(|len| *len <= most)
        }
    };
    if let Some(len) = len.filter(|len| may_reserve(*len, stored.len())) {
        match contexts.decompress_zstd(stored, output.prepare(len)) {
            Ok(len) => return output.finish(len),
            Err(error) if output.bound == OutputLength::Exactly(len) => return Err(broken(error)),
            Err(_) => {}
        }
    }
    output.memory.clear();
    let stream = zstd::stream::Decoder::with_buffer(stored).map_err(broken)?;
    // One byte more than allowed reveals a frame that is too long.
    let limit = (output.bound.most() as u64).saturating_add(1);
    let len = stream.take(limit).read_to_end(output.memory).map_err(broken)?;
    output.finish(len)
}

/// The frame around a deflate stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Gzip,
    Zlib,
}

/// Decodes a zlib stream, or the members of a gzip file.
pub(super) fn inflate(
    container: Container,
    stored: &[u8],
    mut output: Output<'_>,
    contexts: &mut Contexts,
) -> Result<(), Fault> {
    let mut filled = 0;
    if container == Container::Zlib {
        let inflater = contexts.inflater(true);
        pump(inflater, stored, &mut output, &mut filled)?;
        return output.finish(filled);
    }
    let mut rest = stored;
    // Python's gzip, which numcodecs uses, accepts zeros after a member.
    while !rest.iter().all(|byte| *byte == 0) || rest.len() == stored.len() {
        rest = gzip_header(rest).ok_or("a member without a gzip header")?;
        let start = filled;
        let used = pump(contexts.inflater(false), rest, &mut output, &mut filled)?;
        let trailer = rest.get(used..).and_then(|rest| rest.split_first_chunk::<8>());
        let (trailer, after) = trailer.ok_or("a gzip member that is cut off")?;
        let mut crc = Crc::new();
        crc.update(output.memory.get(start..filled).unwrap_or_default());
        // The length is modulo 2^32.
        let len = ((filled - start) as u64 & u64::from(u32::MAX)) as u32;
        if *trailer.as_chunks::<4>().0 != [crc.sum().to_le_bytes(), len.to_le_bytes()] {
            return Err("a gzip member whose checksum differs".into());
        }
        rest = after;
    }
    output.finish(filled)
}

/// Returns the bytes after the header of a gzip member; `None` unless there is a valid one.
fn gzip_header(bytes: &[u8]) -> Option<&[u8]> {
    const CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    let (header, mut rest) = bytes.split_first_chunk::<10>()?;
    let [0x1f, 0x8b, 8, flags, ..] = *header else { return None };
    if flags & EXTRA != 0 {
        let (len, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*len))..)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            rest = rest.get(rest.iter().position(|byte| *byte == 0)? + 1..)?;
        }
    }
    if flags & CHECKSUM != 0 { rest.get(2..) } else { Some(rest) }
}

/// Decodes bzip2 streams, one after another.
pub(super) fn unbzip2(stored: &[u8], mut output: Output<'_>) -> Result<(), Fault> {
    let (mut rest, mut filled) = (stored, 0);
    loop {
        // Its memory cannot be reused.
        let mut stream = bzip2::Decompress::new(false);
        let used = pump(&mut stream, rest, &mut output, &mut filled)?;
        rest = rest.get(used..).unwrap_or_default();
        // Python's bz2, which numcodecs uses, ignores other bytes after a stream.
        if !rest.starts_with(b"BZh") {
            return output.finish(filled);
        }
    }
}

/// A decompressor that works piece by piece.
trait Stream {
    /// Decodes some of `input` to `output`. Returns the number of bytes read and written, and whether the stream has
    /// ended.
    fn advance(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize, bool), Fault>;
}

impl Stream for Decompress {
    fn advance(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize, bool), Fault> {
        let before = (self.total_in(), self.total_out());
        // Without `Finish`, inflating also keeps a copy of the last 32 KiB.
        let status = self.decompress(input, output, FlushDecompress::Finish).map_err(broken)?;
        let passed = |after: u64, before: u64| usize::try_from(after - before).unwrap_or_default();
        let used = passed(self.total_in(), before.0);
        Ok((used, passed(self.total_out(), before.1), status == Status::StreamEnd))
    }
}

impl Stream for bzip2::Decompress {
    fn advance(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize, bool), Fault> {
        let before = (self.total_in(), self.total_out());
        let status = self.decompress(input, output).map_err(broken)?;
        let passed = |after: u64, before: u64| usize::try_from(after - before).unwrap_or_default();
        let used = passed(self.total_in(), before.0);
        Ok((used, passed(self.total_out(), before.1), status == bzip2::Status::StreamEnd))
    }
}

/// Decodes one stream from the beginning of `input` to the end of what `output` has, `filled`. Returns the number
/// of bytes read.
fn pump(
    stream: &mut impl Stream,
    input: &[u8],
    output: &mut Output<'_>,
    filled: &mut usize,
) -> Result<usize, Fault> {
    let bound = output.bound;
    if *filled == 0 {
        let len = bound.most();
        let known = matches!(bound, OutputLength::Exactly(_)) && may_reserve(len, input.len());
        // The length of the last tile is a good guess.
        let guess = output.memory.len().max(input.len().saturating_mul(4)).max(1 << 10);
        output.prepare(if known { len } else { len.min(guess) });
    }
    let mut at = 0;
    loop {
        let place = output.memory.get_mut(*filled..).unwrap_or_default();
        let is_full = place.is_empty();
        let (used, made, has_ended) = if is_full && *filled >= bound.most() {
            // A stream can end without more output; if it makes a byte more, it is too long.
            let (used, made, has_ended) = stream.advance(&input[at..], &mut [0])?;
            if made > 0 {
                return Err(bound.exceeded());
            }
            (used, made, has_ended)
        } else if is_full {
            let len = filled.saturating_mul(2).clamp(1 << 10, bound.most().max(1 << 10));
            output.memory.resize(len.min(bound.most()), 0);
            continue;
        } else {
            stream.advance(&input[at..], place)?
        };
        at += used;
        *filled += made;
        if has_ended {
            return Ok(at);
        }
        if used == 0 && made == 0 {
            return Err("its stream is cut off".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    const CONTAINERS: [Container; 2] = [Container::Gzip, Container::Zlib];

    fn pack(container: Container, data: &[u8]) -> Vec<u8> {
        match container {
            Container::Gzip => {
                let mut stream = GzEncoder::new(vec![], Compression::new(6));
                stream.write_all(data).unwrap();
                stream.finish().unwrap()
            }
            Container::Zlib => {
                let mut stream = ZlibEncoder::new(vec![], Compression::new(6));
                stream.write_all(data).unwrap();
                stream.finish().unwrap()
            }
        }
    }

    fn bzip2(data: &[u8]) -> Vec<u8> {
        let mut stream = bzip2::write::BzEncoder::new(vec![], bzip2::Compression::new(1));
        stream.write_all(data).unwrap();
        stream.finish().unwrap()
    }

    /// Decodes with memory of an earlier tile; the memory that is reserved is limited.
    fn decode(
        bound: OutputLength,
        decode: impl FnOnce(Output<'_>, &mut Contexts) -> Result<(), Fault>,
    ) -> Result<Vec<u8>, Fault> {
        let mut memory = vec![0xEE; 100];
        let output = Output { memory: &mut memory, bound };
        let decoded = decode(output, &mut Contexts::default());
        assert!(memory.capacity() <= bound.most().saturating_mul(2).max(1 << 20));
        decoded.map(|()| memory)
    }

    #[test]
    fn streams_of_any_length_come_back_within_their_bounds() {
        for len in [0, 1, 5, 1_000, 70_000, 3_000_000] {
            let data: Vec<u8> = (0..len).map(|at| (at / 7 % 251) as u8).collect();
            let bounds = [
                OutputLength::Exactly(len),
                OutputLength::AtMost(len),
                OutputLength::AtMost(len + 1),
                OutputLength::AtMost(1 << 40),
            ];
            let too_short = [
                OutputLength::Exactly(len + 1),
                OutputLength::AtMost(len.saturating_sub(1)),
                OutputLength::Exactly(len / 2),
            ];
            let too_short = too_short.into_iter().skip(if len == 0 { 3 } else { 0 });
            let bounds = bounds.map(|bound| (bound, true)).into_iter();
            for (bound, fits) in bounds.chain(too_short.map(|bound| (bound, false))) {
                for container in CONTAINERS {
                    let stored = pack(container, &data);
                    let decoded = decode(bound, |output, contexts| {
                        inflate(container, &stored, output, contexts)
                    });
                    assert_eq!(decoded.ok(), fits.then(|| data.clone()), "{container:?} {bound:?}");
                }
                let stored = bzip2(&data);
                let decoded = decode(bound, |output, _| unbzip2(&stored, output));
                assert_eq!(decoded.ok(), fits.then(|| data.clone()), "bzip2 {bound:?}");
                let stored = zstd::encode_all(&data[..], 1).unwrap();
                let decoded = decode(bound, |output, contexts| unzstd(&stored, output, contexts));
                assert_eq!(decoded.ok(), fits.then(|| data.clone()), "zstd {bound:?}");
            }
        }
    }

    #[test]
    fn streams_one_after_another_are_one() {
        let twice = [[1; 3_000], [2; 3_000]].concat();
        let both =
            |pack: &dyn Fn(&[u8]) -> Vec<u8>| [&twice[..3_000], &twice[3_000..]].map(pack).concat();
        for bound in
            [OutputLength::Exactly(6_000), OutputLength::AtMost(6_000), OutputLength::AtMost(7_000)]
        {
            let stored = both(&|data| pack(Container::Gzip, data));
            let padded = [&stored[..], &[0; 9]].concat();
            for stored in [stored, padded] {
                let decoded = decode(bound, |output, contexts| {
                    inflate(Container::Gzip, &stored, output, contexts)
                });
                assert_eq!(decoded.unwrap(), twice);
            }
            let stored = both(&bzip2);
            assert_eq!(decode(bound, |output, _| unbzip2(&stored, output)).unwrap(), twice);
            let stored = both(&|data| zstd::encode_all(data, 1).unwrap());
            let decoded = decode(bound, |output, contexts| unzstd(&stored, output, contexts));
            assert_eq!(decoded.unwrap(), twice);
        }
    }

    #[test]
    fn headers_of_gzip_have_many_parts() {
        let mut stream = flate2::GzBuilder::new()
            .extra(vec![1, 2, 3])
            .filename("name")
            .comment("comment")
            .write(vec![], Compression::fast());
        stream.write_all(b"data").unwrap();
        let stored = stream.finish().unwrap();
        let inflated = |stored: &[u8]| {
            decode(OutputLength::Exactly(4), |output, contexts| {
                inflate(Container::Gzip, stored, output, contexts)
            })
        };
        assert_eq!(inflated(&stored).unwrap(), b"data");
        for len in 0..stored.len() {
            assert!(inflated(&stored[..len]).is_err());
        }
        for wrong in 0..8 {
            let mut stored = stored.clone();
            let at = stored.len() - 1 - wrong;
            stored[at] ^= 1;
            assert!(inflated(&stored).is_err());
        }
    }

    #[test]
    fn bombs_are_cut_off() {
        let data = vec![0; 20_000_000];
        for container in CONTAINERS {
            let stored = pack(container, &data);
            for bound in [
                OutputLength::Exactly(1_000),
                OutputLength::AtMost(100_000),
                OutputLength::Exactly(1 << 45),
            ] {
                let decoded =
                    decode(bound, |output, contexts| inflate(container, &stored, output, contexts));
                assert!(decoded.is_err());
            }
        }
        let stored = zstd::encode_all(&data[..], 19).unwrap();
        for bound in [
            OutputLength::Exactly(1_000),
            OutputLength::AtMost(100_000),
            OutputLength::Exactly(1 << 45),
        ] {
            assert!(decode(bound, |output, contexts| unzstd(&stored, output, contexts)).is_err());
        }
    }
}
