//! Removal of layers whose objects are absent.
//!
//! Where a format allows it, a chunk that was never written has a layer, but no object. After fetching, the
//! scan and the verification remove such layers. Older layers or the fill value then show in their place.

use bytes::Bytes;

use crate::format::StoredChunk;

/// Removes the layers of `stored` that miss a payload, and returns the payloads of the others.
/// `payloads` holds those of all layers, in order; `None` where the object is absent.
///
/// ```text
/// layers     values, validity     values, validity     values, validity
/// payloads   Some    Some         Some    None         Some    Some
/// result     Some    Some         (removed)            Some    Some
/// ```
pub fn leave_out_absent(stored: &mut [StoredChunk], payloads: Vec<Option<Bytes>>) -> Vec<Bytes> {
    let mut present = Vec::with_capacity(payloads.len());
    let mut payloads = payloads.into_iter();
    for chunk in stored {
        chunk.layers.retain(|layer| {
            let before = present.len();
            let mut is_whole = true;
            // Take all payloads of the layer, even after an absent one: the next ones are the next layer's.
            for payload in payloads.by_ref().take(layer.payloads().count()) {
                is_whole &= payload.is_some();
                present.extend(payload);
            }
            if !is_whole {
                present.truncate(before);
            }
            is_whole
        });
    }
    present
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{ByteRange, Codec, Layer, Location, Payload};

    #[test]
    fn a_layer_of_which_a_part_is_absent_is_left_out() {
        let payload = || Payload::new(Location::new("tile", ByteRange::Whole), 4, Codec::Raw);
        let mut layers: Vec<Layer> = (0..3).map(|_| Layer::whole(payload())).collect();
        layers[1].validity = Some(payload());
        let mut stored = [StoredChunk::default(), StoredChunk::new(layers)];
        let replies = [Some(0_u8), Some(1), None, Some(2)];
        let replies = replies.map(|byte| byte.map(|byte| Bytes::from(vec![byte; 4]))).to_vec();
        let present = leave_out_absent(&mut stored, replies);
        assert_eq!(present, [vec![0; 4], vec![2; 4]]);
        assert_eq!(stored[1].layers.len(), 2);
    }
}
