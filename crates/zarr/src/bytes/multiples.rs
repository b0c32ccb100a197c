//! Chunks of times that count a multiple of a unit, such as `<M8[10s]`.

use std::fmt;

use bytes::Bytes;

use gridfusion_cf::hierarchy::Multiples;
use gridfusion_core::format::{Codec, DecodedPayload, PayloadDecoder, Scratch};
use gridfusion_core::{Error, Result};

/// Decodes counts, and makes them counts of the unit.
#[derive(Debug)]
pub(super) struct MultipliedTimes {
    pub(super) counts: Codec,
    pub(super) multiples: Multiples,
}

impl PayloadDecoder for MultipliedTimes {
    fn held_bytes(&self) -> Option<u64> {
        self.counts.held_bytes()
    }

    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let counts = self.counts.decode(stored.clone(), raw_len, offset, spare, scratch)?;
        let mut counts = Vec::from(counts.bytes);
        self.multiples.apply(&mut counts).map_err(Error::unsupported)?;
        Ok(DecodedPayload::new(counts.into(), None))
    }
}

impl fmt::Display for MultipliedTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.fmt(f)
    }
}
