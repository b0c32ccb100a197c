//! The inverses of byteshuffle and bitshuffle.
//!
//! Byteshuffle stores the first bytes of all elements, then the second bytes, and so on; each run
//! of them is a *plane*. Bitshuffle does the same with bits, in blocks. *Weaving* planes, pair by
//! pair, restores the elements; compilers turn it into vector instructions:
//!
//! ```text
//!   a0 a1 a2 …  ┐
//!               ├ a0 b0 a1 b1 a2 b2 …  ┐
//!   b0 b1 b2 …  ┘                      │
//!                                      ├ a0 b0 c0 d0 a1 b1 c1 d1 a2 b2 c2 d2 …
//!   c0 c1 c2 …  ┐                      │
//!               ├ c0 d0 c1 d1 c2 d2 …  ┘
//!   d0 d1 d2 …  ┘
//! ```

use super::word::Width;

/// The number of elements to weave at once: few enough for registers and the nearest cache.
const BLOCK: usize = 64;

/// Bytes of a block of shuffled bits.
const BIT_BLOCK: usize = 8192;

/// Undoes byteshuffle; both slices have the same length.
pub(super) fn unshuffle_bytes(width: Width, shuffled: &[u8], elements: &mut [u8]) {
    match width {
        Width::One => elements.copy_from_slice(shuffled),
        Width::Two => unshuffle(shuffled, elements, weave2),
        Width::Four => unshuffle(shuffled, elements, weave4),
        Width::Eight => unshuffle(shuffled, elements, weave8),
    }
}

/// Weaves `W` planes with `weave`, block by block, and copies the bytes after the last whole element.
fn unshuffle<const W: usize>(
    shuffled: &[u8],
    elements: &mut [u8],
    weave: impl Fn([&[u8; BLOCK]; W], &mut [u8]),
) {
    let count = shuffled.len() / W;
    let planes: [&[u8]; W] = std::array::from_fn(|plane| &shuffled[plane * count..][..count]);
    let (elements, leftover) = elements.split_at_mut(W * count);
    leftover.copy_from_slice(&shuffled[W * count..]);

    let blocks = planes.map(<[u8]>::as_chunks);
    let mut places = elements.chunks_exact_mut(W * BLOCK);
    for (block, place) in places.by_ref().enumerate() {
        weave(blocks.map(|(whole, _)| &whole[block]), place);
    }
    let rest = places.into_remainder();
    if rest.is_empty() {
        return;
    }
    // The last block is filled up with zeros.
    let padded = blocks.map(|(_, rest)| {
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        block
    });
    let mut woven = [0; Width::Eight.bytes() * BLOCK];
    weave(padded.each_ref(), &mut woven[..W * BLOCK]);
    rest.copy_from_slice(&woven[..rest.len()]);
}

fn weave2([a, b]: [&[u8; BLOCK]; 2], elements: &mut [u8]) {
    zip(a, b, elements.as_chunks_mut().0);
}

fn weave4([a, b, c, d]: [&[u8; BLOCK]; 4], elements: &mut [u8]) {
    let (mut ab, mut cd) = ([[0; 2]; BLOCK], [[0; 2]; BLOCK]);
    zip(a, b, &mut ab);
    zip(c, d, &mut cd);
    zip(&ab, &cd, elements.as_chunks_mut().0.as_chunks_mut().0);
}

fn weave8([a, b, c, d, e, f, g, h]: [&[u8; BLOCK]; 8], elements: &mut [u8]) {
    let (mut abcd, mut efgh) = ([0; 4 * BLOCK], [0; 4 * BLOCK]);
    weave4([a, b, c, d], &mut abcd);
    weave4([e, f, g, h], &mut efgh);
    let (abcd, efgh) = (abcd.as_chunks::<4>().0, efgh.as_chunks::<4>().0);
    zip(abcd, efgh, elements.as_chunks_mut().0.as_chunks_mut().0);
}

/// Writes `pairs` of the elements of `left` and `right`.
#[inline(always)]
fn zip<T: Copy>(left: &[T], right: &[T], pairs: &mut [[T; 2]]) {
    for ((pair, left), right) in pairs.iter_mut().zip(left).zip(right) {
        *pair = [*left, *right];
    }
}

/// Undoes bitshuffle; both slices have the same length.
///
/// Writers only copy data that is not a whole number of elements, or not a multiple of 8 bytes.
pub(super) fn unshuffle_bits(width: Width, shuffled: &[u8], elements: &mut [u8]) {
    if !shuffled.len().is_multiple_of(width.bytes()) || !shuffled.len().is_multiple_of(8) {
        return elements.copy_from_slice(shuffled);
    }
    for (block, place) in shuffled.chunks(BIT_BLOCK).zip(elements.chunks_mut(BIT_BLOCK)) {
        // A plane of bits has whole bytes, so writers only copy the elements after the last multiple of 8.
        let (planes, leftover) = block.split_at(block.len() - block.len() % (8 * width.bytes()));
        let (place, after) = place.split_at_mut(planes.len());
        unshuffle_bit_block(width, planes, place);
        after.copy_from_slice(leftover);
    }
}

/// Undoes bitshuffle for one block of a multiple of 8 elements. First merges every 8 planes of bits into a
/// plane of bytes, and then weaves those.
fn unshuffle_bit_block(width: Width, bits: &[u8], elements: &mut [u8]) {
    let mut memory = [0; BIT_BLOCK];
    let bytes = &mut memory[..bits.len()];
    // At least 1, because `chunks_exact` panics on 0 for an empty block.
    let plane = (bits.len() / width.bytes()).max(1);
    for (bits, bytes) in bits.chunks_exact(plane).zip(bytes.chunks_exact_mut(plane)) {
        unshuffle(bits, bytes, |planes, bytes| {
            let rows = transpose_bits(planes);
            weave8(rows.each_ref(), bytes);
        });
    }
    unshuffle_bytes(width, bytes, elements);
}

/// Transposes `BLOCK` matrices of 8 by 8 bits: bit `i` of row `j` becomes bit `j` of row `i`. Byte `k` of
/// plane `j` is row `j` of matrix `k`.
///
/// Exchanges squares of 4, 2 and then 1 bits across the diagonal, in all matrices at once.
#[inline(always)]
fn transpose_bits(planes: [&[u8; BLOCK]; 8]) -> [[u8; BLOCK]; 8] {
    let mut rows = planes.map(|plane| *plane);
    for pair in [0, 1, 2, 3] {
        swap_squares::<4>(&mut rows, pair, 0x0F);
    }
    for pair in [0, 1, 4, 5] {
        swap_squares::<2>(&mut rows, pair, 0x33);
    }
    for pair in [0, 2, 4, 6] {
        swap_squares::<1>(&mut rows, pair, 0x55);
    }
    rows
}

/// Exchanges the bits `low` of row `upper + SIDE` with the bits `low << SIDE` of row `upper`, in all
/// matrices.
#[inline(always)]
fn swap_squares<const SIDE: usize>(rows: &mut [[u8; BLOCK]; 8], upper: usize, low: u8) {
    let (above, below) = rows.split_at_mut(upper + SIDE);
    for (high, row) in above[upper].iter_mut().zip(&mut below[0]) {
        let changed = (*high >> SIDE ^ *row) & low;
        *high ^= changed << SIDE;
        *row ^= changed;
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::super::forward::{shuffle_bits, shuffle_bytes};
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
                unshuffle_bytes(width, &shuffle_bytes(width, &data), &mut elements);
                assert_eq!(elements, data, "bytes, {width:?}");
                elements.fill(0xEE);
                unshuffle_bits(width, &shuffle_bits(width, &data), &mut elements);
                assert_eq!(elements, data, "bits, {width:?}, {len}");
            }
        }
    }
}
