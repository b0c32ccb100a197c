//! [`RepeatedCell`]: a layer of one cell, which no object stores.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::codec::{Codec, DecodedPayload, PayloadDecoder, Scratch};
use super::machine::{Location, NOTHING};
use super::storage_order::StorageOrder;
use super::stored::{Layer, Payload, Placement};
use crate::error::Result;

/// One cell in the place of many, such as the fill value of cells that were never written.
#[derive(Debug, Clone)]
pub struct RepeatedCell(Arc<Constant>);

impl RepeatedCell {
    /// Takes the bytes of the cell.
    pub fn new(cell: impl Into<Bytes>) -> Self {
        Self(Arc::new(Constant { cell: cell.into(), has_any_length: false }))
    }

    /// Takes the bytes of a cell of any length, such as text.
    pub fn of_any_length(cell: impl Into<Bytes>) -> Self {
        Self(Arc::new(Constant { cell: cell.into(), has_any_length: true }))
    }

    /// Returns a layer that has the cell at all places of a chunk with these lengths.
    pub fn layer(&self, lens: impl IntoIterator<Item = u64>) -> Layer {
        let region: Vec<_> = lens.into_iter().map(|len| 0..len).collect();
        let rank = region.len();
        let decoder = Arc::clone(&self.0) as Arc<dyn PayloadDecoder>;
        let at = Location::new(NOTHING, 0..0);
        let payload = Payload::new(at, self.0.cell.len() as u64, Codec::Custom(decoder));
        let placement = Placement {
            region,
            tile_shape: vec![1; rank],
            origin: vec![0; rank],
            order: StorageOrder::RowMajor,
        };
        Layer { placement: Some(placement), ..Layer::whole(payload) }
    }
}

/// A decoder that returns a cell without reading anything.
#[derive(Debug)]
struct Constant {
    cell: Bytes,
    has_any_length: bool,
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fill value")
    }
}

impl PayloadDecoder for Constant {
    fn decode(
        &self,
        _: &Bytes,
        _: u64,
        _: u64,
        _: Vec<u8>,
        _: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let offsets = self.has_any_length.then(|| vec![0]);
        Ok(DecodedPayload { bytes: self.cell.clone(), offsets })
    }
}
