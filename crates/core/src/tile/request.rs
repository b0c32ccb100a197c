//! [`Request`]: bytes of an object that may be absent.

use crate::format::{Layer, Location, Payload, StoredChunk};

/// A request for some bytes of an object.
#[derive(Debug, Clone)]
pub struct Request {
    /// The location of the bytes.
    pub at: Location,
    /// Whether the object may be absent.
    pub may_be_absent: bool,
    /// The number of stored bytes; an estimate where it is not known before reading. Verification
    /// sizes its batches with it; it does not limit the read.
    pub expected: u64,
}

impl Request {
    /// Returns requests for the payloads of `stored` chunks, in order.
    pub fn for_chunks(stored: &[StoredChunk]) -> Vec<Self> {
        let layers = stored.iter().flat_map(|chunk| &chunk.layers);
        let of_layer = |layer: &Layer| -> Vec<Self> {
            let may_be_absent = layer.may_be_absent;
            let request = |payload: &Payload| {
                let (at, expected) = (payload.at.clone(), payload.stored_len());
                Self { at, may_be_absent, expected }
            };
            layer.payloads().map(request).collect()
        };
        layers.flat_map(of_layer).collect()
    }
}
