//! The bytes of a node: a magic number, a version, and a compressed message with a checksum.
//!
//! ```text
//!   G R I D P L A N   1     zstd frame of a message, with a checksum
//!   8 bytes           1     the rest
//! ```

use datafusion::error::Result;
use prost::Message;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use crate::error::Error;

/// The first bytes of every node.
const MAGIC: &[u8; 8] = b"GRIDPLAN";

/// The version of the messages. Processes of different versions refuse each other's plans.
pub(super) const VERSION: u8 = 1;

/// The most bytes of a message. A plan of a million chunks has a few megabytes before compression at worst.
const MOST: usize = 1 << 28;

/// Appends a message to `bytes`.
///
/// # Errors
/// `Internal` if it cannot be compressed.
pub(super) fn seal(message: &impl Message, bytes: &mut Vec<u8>) -> Result<()> {
    let failed = |error| Error::internal(format!("a plan cannot be compressed: {error}"));
    let mut compressor = Compressor::new(3).map_err(failed)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true)).map_err(failed)?;
    let compressed = compressor.compress(&message.encode_to_vec()).map_err(failed)?;
    bytes.extend_from_slice(MAGIC);
    bytes.push(VERSION);
    bytes.extend(compressed);
    Ok(())
}

/// Whether bytes begin as those of a node do.
pub(super) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns the message in `bytes`.
///
/// # Errors
/// `Unsupported` for another version; `Corrupt` for bytes that were damaged.
pub(super) fn unseal<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    let damaged = |what: String| Error::corrupt_region("plan", what);
    let Some((version, compressed)) = bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first)
    else {
        return Err(damaged("these are not the bytes of a gridfusion plan".to_owned()).into());
    };
    if *version != VERSION {
        let message = format!(
            "the plan is of version {version}, and this process reads version {VERSION}; run the same version of \
             gridfusion on all machines"
        );
        return Err(Error::unsupported(message).into());
    }
    let size = zstd::zstd_safe::get_frame_content_size(compressed).ok().flatten();
    let size = size.filter(|size| *size <= MOST as u64);
    let size = size.ok_or_else(|| damaged("its length is missing or too great".to_owned()))?;
    let message = Decompressor::new()
        .and_then(|mut decompressor| decompressor.decompress(compressed, size as usize))
        .map_err(|error| damaged(format!("it cannot be decompressed: {error}")))?;
    Ok(M::decode(&*message).map_err(|error| damaged(format!("it cannot be read: {error}")))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::messages::Envelope;

    #[test]
    fn damaged_bytes_are_refused() {
        let mut message = Envelope::default();
        message.declared.name = "GridScanExec".repeat(50);
        let mut bytes = vec![];
        seal(&message, &mut bytes).unwrap();
        assert_eq!(unseal::<Envelope>(&bytes).unwrap(), message);
        assert!(is_sealed(&bytes) && !is_sealed(&bytes[1..]));
        for len in 0..bytes.len() {
            assert!(unseal::<Envelope>(&bytes[..len]).is_err(), "{len} bytes");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let read = unseal::<Envelope>(&flipped);
                // A few bits of a frame's header change nothing.
                assert!(read.is_err() || read.unwrap() == message, "bit {bit} of byte {at}");
            }
        }
        bytes[8] = 2;
        let error = unseal::<Envelope>(&bytes).unwrap_err().to_string();
        assert!(error.contains("version 2") && error.contains("version 1"), "{error}");
    }
}
