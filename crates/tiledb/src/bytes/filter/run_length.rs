//! Runs of equal cells of fixed size: the cell, then the length of the run as a big-endian `u16`.
//!
//! ```text
//!   UINT8 cells   7 7 7 9         stored   07 00 03   09 00 01
//! ```
//!
//! So 3 stored bytes can stand for 65 535 decoded ones.

/// Bytes of the length of a run.
const COUNT_LEN: usize = 2;

/// The runs of `part`: each with its cell and its number of cells.
fn runs(part: &[u8], cell: usize) -> impl Iterator<Item = (&[u8], usize)> {
    part.chunks_exact(cell.saturating_add(COUNT_LEN)).filter_map(move |run| {
        let (cell, count) = run.split_last_chunk()?;
        Some((cell, usize::from(u16::from_be_bytes(*count))))
    })
}

/// The number of bytes to which `part` expands.
pub(super) fn expanded_len(part: &[u8], cell: usize) -> u64 {
    runs(part, cell).map(|(cell, count)| cell.len() as u64 * count as u64).sum()
}

/// Expands runs of cells of `cell` bytes.
pub(super) fn expand(part: &[u8], cell: usize, mut output: &mut [u8]) -> Result<(), String> {
    if !part.len().is_multiple_of(cell.saturating_add(COUNT_LEN)) {
        return Err(format!("it is not made of runs of cells of {cell} bytes"));
    }
    for (value, count) in runs(part, cell) {
        let Some(place) = output.split_off_mut(..count.saturating_mul(cell)) else {
            return Err(format!("it has a run of {count} cells beyond the end"));
        };
        // A fixed width lets the compiler fill with vector instructions.
        match cell {
            1 => fill::<1>(value, place),
            2 => fill::<2>(value, place),
            4 => fill::<4>(value, place),
            8 => fill::<8>(value, place),
            _ => place.chunks_exact_mut(cell).for_each(|place| place.copy_from_slice(value)),
        }
    }
    match output.len() {
        0 => Ok(()),
        missing => Err(format!("its runs end {missing} bytes early")),
    }
}

fn fill<const N: usize>(value: &[u8], place: &mut [u8]) {
    let mut cell = [0; N];
    cell.copy_from_slice(value);
    place.as_chunks_mut().0.fill(cell);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_all_widths_expand() {
        for cell in [1, 2, 3, 4, 8, 20] {
            let value: Vec<u8> = (1..=cell as u8).collect();
            let part = [&value[..], &[1, 1], &vec![9; cell], &[0, 2]].concat();
            let expected = [value.repeat(257), vec![9; 2 * cell]].concat();
            assert_eq!(expanded_len(&part, cell), expected.len() as u64);
            let mut output = vec![0; expected.len()];
            expand(&part, cell, &mut output).unwrap();
            assert_eq!(output, expected);
            output.push(0);
            assert!(expand(&part, cell, &mut output).is_err());
            assert!(expand(&part, cell, &mut output[..cell]).is_err());
            assert!(expand(&part[1..], cell, &mut output).is_err());
        }
    }
}
