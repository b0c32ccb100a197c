//! Byteshuffle and bitshuffle, and their inverses.
//!
//! Byteshuffle stores the first bytes of all elements, then the second bytes, and so on; each run
//! of them is a *plane*. Bitshuffle does the same with bits. *Weaving* planes, pair by pair,
//! restores the elements; compilers turn it into vector instructions:
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
//!
//! `forward` shuffles: it goes the same way from the right to the left.

mod forward;

pub use forward::{shuffle_bits, shuffle_bits_to, shuffle_bytes, shuffle_bytes_to};

/// The number of elements to weave at once: few enough for registers and the nearest cache.
const BLOCK: usize = 64;

/// The greatest number of planes that are woven.
const MOST_PLANES: usize = 16;

/// Undoes byteshuffle of elements of `width` bytes; both slices have the same length. Copies the bytes after
/// the last whole element.
pub fn unshuffle_bytes(width: usize, shuffled: &[u8], elements: &mut [u8]) {
    match width {
        0 | 1 => elements.copy_from_slice(shuffled),
        2 => unshuffle(shuffled, elements, weave2),
        4 => unshuffle(shuffled, elements, weave4),
        8 => unshuffle(shuffled, elements, weave8),
        16 => unshuffle(shuffled, elements, weave16),
        _ => unshuffle_any(width, shuffled, elements),
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
    let mut woven = [0; MOST_PLANES * BLOCK];
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

fn weave16(planes: [&[u8; BLOCK]; 16], elements: &mut [u8]) {
    let (mut low, mut high) = ([0; 8 * BLOCK], [0; 8 * BLOCK]);
    weave8(std::array::from_fn(|plane| planes[plane]), &mut low);
    weave8(std::array::from_fn(|plane| planes[8 + plane]), &mut high);
    let (low, high) = (low.as_chunks::<8>().0, high.as_chunks::<8>().0);
    zip(low, high, elements.as_chunks_mut().0.as_chunks_mut().0);
}

/// Writes `pairs` of the elements of `left` and `right`.
#[inline(always)]
fn zip<T: Copy>(left: &[T], right: &[T], pairs: &mut [[T; 2]]) {
    for ((pair, left), right) in pairs.iter_mut().zip(left).zip(right) {
        *pair = [*left, *right];
    }
}

/// Undoes byteshuffle of elements of an unusual width, byte by byte; a block at a time stays in the cache.
fn unshuffle_any(width: usize, shuffled: &[u8], elements: &mut [u8]) {
    let count = shuffled.len() / width;
    let (elements, leftover) = elements.split_at_mut(width * count);
    leftover.copy_from_slice(&shuffled[width * count..]);
    for (number, place) in elements.chunks_mut(width * BLOCK).enumerate() {
        for plane in 0..width {
            let bytes = &shuffled[plane * count + number * BLOCK..];
            let places = place[plane..].iter_mut().step_by(width);
            places.zip(bytes).for_each(|(place, byte)| *place = *byte);
        }
    }
}

/// Undoes bitshuffle of a multiple of 8 elements of `width` bytes. All slices have the same length; `memory`
/// has arbitrary content, before and after.
///
/// First merges every 8 planes of bits into a plane of bytes, and then weaves those.
pub fn unshuffle_bits(width: usize, bits: &[u8], memory: &mut [u8], elements: &mut [u8]) {
    // At least 1, because `chunks_exact` panics on 0 for an empty block.
    let plane = (bits.len() / width.max(1)).max(1);
    for (bits, bytes) in bits.chunks_exact(plane).zip(memory.chunks_exact_mut(plane)) {
        unshuffle(bits, bytes, |planes, bytes| {
            let rows = transpose_bits(planes);
            weave8(rows.each_ref(), bytes);
        });
    }
    unshuffle_bytes(width, memory, elements);
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

    use super::*;

    /// Shuffles the bytes of elements, one at a time.
    pub(super) fn plain_bytes(width: usize, part: &[u8]) -> Vec<u8> {
        let count = part.len() / width;
        // Byte `to` of the shuffled data is byte `to / count` of element `to % count`.
        let mut shuffled: Vec<u8> =
            (0..width * count).map(|to| part[to % count * width + to / count]).collect();
        shuffled.extend(&part[width * count..]);
        shuffled
    }

    /// Shuffles the bits of a multiple of 8 elements, one at a time.
    pub(super) fn plain_bits(width: usize, part: &[u8]) -> Vec<u8> {
        let count = part.len() / width;
        let mut shuffled = vec![0; part.len()];
        // Bit `bit` of each element goes to plane `bit`, which has `count / 8` bytes.
        for (element, bit) in (0..count).flat_map(|at| (0..8 * width).map(move |bit| (at, bit))) {
            let is_set = part[element * width + bit / 8] >> (bit % 8) & 1;
            shuffled[bit * (count / 8) + element / 8] |= is_set << (element % 8);
        }
        shuffled
    }

    #[test]
    fn bytes_come_back_for_all_widths_and_lengths() {
        let mut rng = SmallRng::seed_from_u64(1);
        let lens = (0..700).chain([8191, 8192, 8193, 8256, 30_001, 65_536]);
        for len in lens {
            let data: Vec<u8> = (0..len).map(|_| rng.random()).collect();
            for width in [1, 2, 3, 4, 5, 8, 12, 16, 17, 255, 1000] {
                let mut elements = vec![0xEE; len];
                let shuffled = plain_bytes(width, &data);
                assert!(shuffle_bytes(width, &data) == shuffled, "{width}, {len}");
                unshuffle_bytes(width, &shuffled, &mut elements);
                assert_eq!(elements, data, "{width}, {len}");
            }
        }
    }

    #[test]
    fn bits_come_back_for_all_widths_and_counts() {
        let mut rng = SmallRng::seed_from_u64(2);
        for eights in (0..20).chain([63, 64, 65, 130, 257]) {
            for width in [1, 2, 3, 4, 5, 8, 12, 16, 17] {
                let data: Vec<u8> = (0..8 * eights * width).map(|_| rng.random()).collect();
                let (mut elements, mut memory) = (vec![0xEE; data.len()], vec![0xEE; data.len()]);
                let shuffled = plain_bits(width, &data);
                assert!(shuffle_bits(width, &data) == shuffled, "{width}, {eights}");
                unshuffle_bits(width, &shuffled, &mut memory, &mut elements);
                assert_eq!(elements, data, "{width}, {eights}");
            }
        }
    }
}
