//! Shuffles bytes and bits. *Unweaving* takes the elements of a block apart, half by half, into planes.

use super::{BLOCK, transpose_bits};

/// Shuffles the bytes of elements of `width` bytes. Copies the bytes after the last whole element.
pub fn shuffle_bytes(width: usize, elements: &[u8]) -> Vec<u8> {
    let mut shuffled = vec![0; elements.len()];
    shuffle_bytes_to(width, elements, &mut shuffled);
    shuffled
}

/// Shuffles the bits of a multiple of 8 elements of `width` bytes.
pub fn shuffle_bits(width: usize, elements: &[u8]) -> Vec<u8> {
    let (mut memory, mut shuffled) = (vec![0; elements.len()], vec![0; elements.len()]);
    shuffle_bits_to(width, elements, &mut memory, &mut shuffled);
    shuffled
}

/// Shuffles the bytes of elements of `width` bytes; both slices have the same length. Copies the bytes after the last
/// whole element.
pub fn shuffle_bytes_to(width: usize, elements: &[u8], shuffled: &mut [u8]) {
    match width {
        0 | 1 => shuffled.copy_from_slice(elements),
        2 => shuffle(elements, shuffled, unweave2),
        4 => shuffle(elements, shuffled, unweave4),
        8 => shuffle(elements, shuffled, unweave8),
        _ => shuffle_any(width, elements, shuffled),
    }
}

/// Shuffles the bits of a multiple of 8 elements of `width` bytes. All slices have the same length; `memory` has
/// arbitrary content, before and after.
pub fn shuffle_bits_to(width: usize, elements: &[u8], memory: &mut [u8], shuffled: &mut [u8]) {
    shuffle_bytes_to(width, elements, memory);
    // At least 1, because `chunks_exact` panics on 0 for an empty block.
    let plane = (elements.len() / width.max(1)).max(1);
    for (bytes, bits) in memory.chunks_exact(plane).zip(shuffled.chunks_exact_mut(plane)) {
        shuffle(bytes, bits, |bytes| transpose_bits(unweave8(bytes).each_ref()));
    }
}

/// Takes elements apart into `W` planes with `unweave`, block by block, and copies the bytes after the last whole element.
fn shuffle<const W: usize>(
    elements: &[u8],
    shuffled: &mut [u8],
    unweave: impl Fn(&[u8]) -> [[u8; BLOCK]; W],
) {
    /// The most bytes of a block.
    const MOST: usize = 8 * BLOCK;
    let count = elements.len() / W;
    let (elements, leftover) = elements.split_at(W * count);
    shuffled[W * count..].copy_from_slice(leftover);

    let blocks = elements.chunks_exact(W * BLOCK);
    let rest = blocks.remainder();
    for (block, elements) in blocks.enumerate() {
        for (plane, bytes) in unweave(elements).iter().enumerate() {
            shuffled[plane * count + block * BLOCK..][..BLOCK].copy_from_slice(bytes);
        }
    }
    if rest.is_empty() {
        return;
    }
    // The last block is filled up with zeros.
    let mut padded = [0; MOST];
    padded[..rest.len()].copy_from_slice(rest);
    let len = rest.len() / W;
    for (plane, bytes) in unweave(&padded[..W * BLOCK]).iter().enumerate() {
        shuffled[(plane + 1) * count - len..][..len].copy_from_slice(&bytes[..len]);
    }
}

fn unweave2(elements: &[u8]) -> [[u8; BLOCK]; 2] {
    let (mut a, mut b) = ([0; BLOCK], [0; BLOCK]);
    unzip(elements.as_chunks().0, &mut a, &mut b);
    [a, b]
}

fn unweave4(elements: &[u8]) -> [[u8; BLOCK]; 4] {
    let (mut ab, mut cd) = ([[0; 2]; BLOCK], [[0; 2]; BLOCK]);
    unzip(elements.as_chunks().0.as_chunks().0, &mut ab, &mut cd);
    let ([a, b], [c, d]) = (unweave2(ab.as_flattened()), unweave2(cd.as_flattened()));
    [a, b, c, d]
}

fn unweave8(elements: &[u8]) -> [[u8; BLOCK]; 8] {
    let (mut abcd, mut efgh) = ([[0; 4]; BLOCK], [[0; 4]; BLOCK]);
    unzip(elements.as_chunks().0.as_chunks().0, &mut abcd, &mut efgh);
    let [a, b, c, d] = unweave4(abcd.as_flattened());
    let [e, f, g, h] = unweave4(efgh.as_flattened());
    [a, b, c, d, e, f, g, h]
}

/// Writes the first of each pair to `left`, and the second to `right`.
#[inline(always)]
fn unzip<T: Copy>(pairs: &[[T; 2]], left: &mut [T], right: &mut [T]) {
    for ((pair, left), right) in pairs.iter().zip(left).zip(right) {
        [*left, *right] = *pair;
    }
}

/// Shuffles elements of an unusual width, byte by byte; a block at a time stays in the cache.
fn shuffle_any(width: usize, elements: &[u8], shuffled: &mut [u8]) {
    let count = elements.len() / width;
    let (elements, leftover) = elements.split_at(width * count);
    shuffled[width * count..].copy_from_slice(leftover);
    for (number, block) in elements.chunks(width * BLOCK).enumerate() {
        for plane in 0..width {
            let bytes = block[plane..].iter().step_by(width);
            let places = &mut shuffled[plane * count + number * BLOCK..];
            places.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        }
    }
}
