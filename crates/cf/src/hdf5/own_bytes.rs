//! Payloads whose bytes are known before they are read.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::stored_variable::location;
use gridfusion_core::Result;
use gridfusion_core::format::{
    Codec, DecodedPayload, Layer, Payload, PayloadDecoder, Placement, Scratch,
};

/// A decoder that returns the bytes that it holds, whatever is stored.
#[derive(Debug)]
struct OwnBytes {
    bytes: Bytes,
    /// The start of each value, if values have any length.
    offsets: Option<Vec<u64>>,
}

impl PayloadDecoder for OwnBytes {
    fn decode(
        &self,
        _stored: &Bytes,
        _raw_len: u64,
        _offset: u64,
        _spare: Vec<u8>,
        _scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        Ok(DecodedPayload::new(self.bytes.clone(), self.offsets.clone()))
    }
}

impl fmt::Display for OwnBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.offsets.is_some() { "global heap" } else { "compact" })
    }
}

/// Returns a payload of these bytes.
pub(super) fn payload(bytes: Bytes, offsets: Option<Vec<u64>>) -> Payload {
    let raw_len = bytes.len() as u64;
    Payload::new(location(0, 0), raw_len, Codec::Custom(Arc::new(OwnBytes { bytes, offsets })))
}

/// Returns a layer of texts, each of which begins at an offset.
pub(super) fn text_layer(bytes: Vec<u8>, offsets: Vec<u64>, placement: Option<Placement>) -> Layer {
    // The offsets come with the content.
    let values = Payload::new(location(0, 0), 0, Codec::Raw);
    let content = Some(payload(bytes.into(), Some(offsets)));
    Layer::whole(values).with_placement(placement).with_content(content)
}
