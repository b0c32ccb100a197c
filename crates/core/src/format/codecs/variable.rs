//! Values of any length, each after its length.
//!
//! ```text
//!   u32 count, then per value: u32 length, bytes      little-endian
//! ```
//!
//! Source: the codecs `vlen-utf8` and `vlen-bytes` of numcodecs and of the registry of Zarr v3 extensions.

use super::output::{Fault, Output};
use crate::format::wire::to_usize;

/// Writes the values of `stored` one after another to `output`, and the start of each to `offsets`.
pub(super) fn run(stored: &[u8], output: Output<'_>, offsets: &mut Vec<u64>) -> Result<(), Fault> {
    let (count, mut rest) = length(stored).ok_or("the number of values is cut off")?;
    let content = count.checked_mul(4).and_then(|lengths| rest.len().checked_sub(lengths));
    let Some(content) = content else {
        return Err(Fault::Corrupt(format!("{count} values in {} bytes", rest.len())));
    };
    offsets.reserve_exact(count);
    // Bytes after the last value, which have no meaning, are the difference to the length of the content.
    let bound = output.bound;
    let Output { memory, .. } = output;
    memory.clear();
    memory.reserve(content.min(bound.most()));
    for value in 0..count {
        let taken = length(rest).and_then(|(len, rest)| rest.split_at_checked(len));
        let Some((bytes, after)) = taken else {
            return Err(Fault::Corrupt(format!("value {value} of {count} is cut off")));
        };
        offsets.push(memory.len() as u64);
        bound.check(memory.len().saturating_add(bytes.len()))?;
        memory.extend_from_slice(bytes);
        rest = after;
    }
    Ok(())
}

/// Reads a length, and returns it with the bytes after it.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    Some((to_usize(u64::from(u32::from_le_bytes(*length))), rest))
}

#[cfg(test)]
mod tests {
    use super::super::output::OutputLength;
    use super::*;

    fn decode(stored: &[u8]) -> Result<(Vec<u8>, Vec<u64>), Fault> {
        let (mut memory, mut offsets) = (vec![7; 3], vec![]);
        let output = Output { memory: &mut memory, bound: OutputLength::AtMost(20) };
        run(stored, output, &mut offsets).map(|()| (memory, offsets))
    }

    #[test]
    fn values_come_back_and_cut_off_ones_do_not() {
        let mut stored = 3_u32.to_le_bytes().to_vec();
        for value in ["ab", "", "cde"] {
            stored.extend((value.len() as u32).to_le_bytes());
            stored.extend(value.as_bytes());
        }
        assert_eq!(decode(&stored).unwrap(), (b"abcde".to_vec(), vec![0, 2, 2]));
        for len in 0..stored.len() {
            assert!(decode(&stored[..len]).is_err(), "{len}");
        }
        assert_eq!(decode(&[0; 4]).unwrap(), (vec![], vec![]));
        assert!(decode(&[255; 4]).is_err() && decode(&[255; 40]).is_err());
        let long = [&[1, 0, 0, 0, 21, 0, 0, 0][..], &[0; 21]].concat();
        assert!(decode(&long).is_err());
    }
}
