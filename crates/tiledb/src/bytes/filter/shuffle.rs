//! The inverse of TileDB's bitshuffle, which cuts data into blocks of its own.

use super::word::Width;
use gridfusion_core::format::shuffle::unshuffle_bits;

/// Bytes of a block of shuffled bits.
const BIT_BLOCK: usize = 8192;

/// Undoes bitshuffle; both slices have the same length.
///
/// Writers only copy data that is not a whole number of elements, or not a multiple of 8 bytes.
pub(super) fn unshuffle_bit_blocks(width: Width, shuffled: &[u8], elements: &mut [u8]) {
    if !shuffled.len().is_multiple_of(width.bytes()) || !shuffled.len().is_multiple_of(8) {
        return elements.copy_from_slice(shuffled);
    }
    for (block, place) in shuffled.chunks(BIT_BLOCK).zip(elements.chunks_mut(BIT_BLOCK)) {
        // A plane of bits has whole bytes, so writers only copy the elements after the last multiple of 8.
        let (planes, leftover) = block.split_at(block.len() - block.len() % (8 * width.bytes()));
        let (place, after) = place.split_at_mut(planes.len());
        let mut memory = [0; BIT_BLOCK];
        unshuffle_bits(width.bytes(), planes, &mut memory[..planes.len()], place);
        after.copy_from_slice(leftover);
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::super::encoder::shuffle_blocks;
    use super::*;

    const WIDTHS: [Width; 4] = [Width::One, Width::Two, Width::Four, Width::Eight];

    #[test]
    fn order_comes_back_for_all_widths_and_lengths() {
        let mut rng = SmallRng::seed_from_u64(1);
        let lens = (0..700).chain([8191, 8192, 8193, 8200, 8256, 16384, 16392, 30_001, 65_536]);
        for len in lens {
            let data: Vec<u8> = (0..len).map(|_| rng.random()).collect();
            for width in WIDTHS {
                let mut elements = vec![0xEE; len];
                unshuffle_bit_blocks(width, &shuffle_blocks(width, &data), &mut elements);
                assert_eq!(elements, data, "{width:?}, {len}");
            }
        }
    }
}
