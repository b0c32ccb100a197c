//! Opening a file: a machine that reads the header.
//!
//! The length of the header is not known beforehand. The machine reads the first 64 KiB, and four times as much
//! while that is too little; parsing starts over each time, which is cheap. The file is one object, whose name is
//! empty.

use bytes::{Bytes, BytesMut};

use super::file::NetCdf3File;
use super::header::Header;
use super::reader::{MAX_HEADER_LEN, Pause};
use gridfusion_core::Result;
use gridfusion_core::format::{Machine, Replies, Step};

/// The bytes to read first. Most headers are shorter.
const FIRST_LEN: u64 = 64 * 1024;

/// A machine that opens a file of a known length.
///
/// ```
/// use gridfusion_cf::netcdf3::OpenNetCdf3;
/// use gridfusion_core::format::{Machine, Replies, Step};
///
/// // The smallest file: no records, dimensions, attributes or variables.
/// let file = [&b"CDF\x01"[..], &[0; 28]].concat();
/// let mut open = OpenNetCdf3::new(file.len() as u64);
/// assert!(matches!(open.step(Replies::Start)?, Step::Read(_)));
/// let Step::Done(file) = open.step(Replies::Bytes(vec![file.into()]))? else { panic!() };
/// assert_eq!((file.version().to_string(), file.records()), ("CDF-1".to_owned(), 0));
/// # Ok::<(), gridfusion_core::Error>(())
/// ```
#[derive(Debug)]
pub struct OpenNetCdf3 {
    size: u64,
    /// The first bytes of the file.
    known: BytesMut,
}

impl OpenNetCdf3 {
    /// Starts opening a file of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self { size, known: BytesMut::new() }
    }

    /// Requests the bytes up to `end`, which must lie in the file.
    fn read_to(&self, end: u64) -> Step<NetCdf3File> {
        Step::read(std::iter::once(self.known.len() as u64..end))
    }
}

impl Machine for OpenNetCdf3 {
    type Output = NetCdf3File;

    fn subject(&self) -> &'static str {
        "header"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<NetCdf3File>> {
        let is_first = matches!(replies, Replies::Start);
        if is_first && self.size > 0 {
            return Ok(self.read_to(self.size.min(FIRST_LEN)));
        }
        for bytes in replies.into_bytes() {
            append(&mut self.known, bytes);
        }
        match Header::parse(&self.known, self.size) {
            Ok(header) => Ok(Step::Done(NetCdf3File::from_header(header, self.size)?)),
            Err(Pause::Need(end)) => {
                let more = (self.known.len() as u64).saturating_mul(4).min(MAX_HEADER_LEN);
                Ok(self.read_to(more.max(end.saturating_add(FIRST_LEN)).min(self.size)))
            }
            Err(Pause::Fail(error)) => Err(error),
        }
    }
}

/// Appends bytes, without a copy if they are the first and nothing shares their memory.
fn append(known: &mut BytesMut, bytes: Bytes) {
    match bytes.try_into_mut() {
        Ok(own) if known.is_empty() => *known = own,
        Ok(own) => known.extend_from_slice(&own),
        Err(shared) => known.extend_from_slice(&shared),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CHAR, File, INT, open, open_counting};
    use super::*;

    #[test]
    fn a_long_header_is_read_in_few_requests() {
        let mut file = File::new(1, 0).dimension("x", 2);
        for place in 0..10_000 {
            file = file.variable(&format!("v{place}"), INT, &[0]);
        }
        let (opened, requests) = open_counting(&file.bytes().into()).unwrap();
        assert_eq!((opened.hierarchy().variables.len(), requests), (10_000, 3));
        // The length of an attribute is known before its bytes are.
        let long = File::new(2, 0).attribute("history", CHAR, &vec![b'h'; 3_000_000]);
        assert_eq!(open_counting(&long.bytes().into()).unwrap().1, 2);
        let longer = File::new(5, 0).attribute("history", CHAR, &vec![b'h'; 65 << 20]);
        let error = open(&longer.bytes().into()).unwrap_err();
        assert!(error.to_string().contains("a header of"), "{error}");
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b""[..], b"CDF", b"CDF\x01", b"CDF\x03\0\0\0\0", b"\x89HDF\r\n\x1a\n"] {
            let error = open(&Bytes::copy_from_slice(bytes)).unwrap_err();
            assert_eq!(error.kind(), gridfusion_core::ErrorKind::Corrupt, "{error}");
        }
    }
}
