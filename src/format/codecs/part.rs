//! Takes a part of every cell, and scales lengths.

use super::output::{Bound, Fault, Output};
use crate::format::wire::to_usize;

/// Copies `width` bytes from byte `offset` of every `stride` bytes of `stored`.
///
/// For example, the imaginary parts of complex numbers of 16 bytes are 8 bytes from byte 8.
pub(super) fn run(
    offset: usize,
    width: usize,
    stride: usize,
    stored: &[u8],
    output: Output<'_>,
) -> Result<(), Fault> {
    let end = offset.checked_add(width).filter(|end| *end <= stride && width > 0);
    let Some(end) = end else {
        let message = format!("{width} bytes from byte {offset} of cells of {stride} bytes");
        return Err(Fault::Corrupt(message));
    };
    if !stored.len().is_multiple_of(stride) {
        let message = format!("{} bytes, not whole cells of {stride}", stored.len());
        return Err(Fault::Corrupt(message));
    }
    let parts = output.claim(stored.len() / stride * width)?;
    match width {
        4 => copy::<4>(offset, stride, stored, parts),
        8 => copy::<8>(offset, stride, stored, parts),
        _ => {
            for (cell, part) in stored.chunks_exact(stride).zip(parts.chunks_exact_mut(width)) {
                part.copy_from_slice(&cell[offset..end]);
            }
        }
    }
    Ok(())
}

/// Copies parts of a constant width, so that no copy is a call.
fn copy<const WIDTH: usize>(offset: usize, stride: usize, stored: &[u8], parts: &mut [u8]) {
    let parts = parts.as_chunks_mut::<WIDTH>().0;
    for (cell, part) in stored.chunks_exact(stride).zip(parts) {
        part.copy_from_slice(&cell[offset..offset + WIDTH]);
    }
}

/// Returns the length of the input of a step that turns `from` bytes into `to` bytes: the length of the output
/// with words of `to` bytes in place of words of `from` bytes.
pub(super) fn scaled(output: Bound, from: u64, to: u64) -> Bound {
    let len = output.most() as u64;
    let words = len.checked_div(from).unwrap_or(0);
    match output {
        Bound::Exactly(_) if words * from == len => {
            Bound::Exactly(to_usize(words.saturating_mul(to)))
        }
        _ => Bound::AtMost(to_usize(words.saturating_add(1).saturating_mul(to))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_all_places() {
        let stored: Vec<u8> = (0..240).collect();
        for (offset, width, stride) in
            [(0, 4, 8), (4, 4, 8), (8, 8, 16), (1, 3, 5), (0, 1, 1), (2, 8, 12)]
        {
            let cells = stored.chunks(stride);
            let expected: Vec<u8> =
                cells.flat_map(|cell| cell[offset..offset + width].to_vec()).collect();
            let mut memory = vec![];
            let bound = Bound::Exactly(expected.len());
            run(offset, width, stride, &stored, Output { memory: &mut memory, bound }).unwrap();
            assert_eq!(memory, expected);
            assert_eq!(scaled(bound, width as u64, stride as u64), Bound::Exactly(240));
        }
        for (offset, width, stride) in
            [(5, 4, 8), (0, 0, 8), (0, 1, 0), (0, 1, 7), (usize::MAX, 2, 8)]
        {
            let mut memory = vec![];
            let output = Output { memory: &mut memory, bound: Bound::AtMost(1_000) };
            assert!(run(offset, width, stride, &stored, output).is_err());
        }
        assert_eq!(scaled(Bound::Exactly(7), 2, 4), Bound::AtMost(16));
        assert_eq!(scaled(Bound::AtMost(7), 0, 4), Bound::AtMost(4));
    }
}
