//! The delta filters: differences, and differences of differences, of integers.
//!
//! ```text
//!   delta         u64 count, first value, then each value less the one before
//!   double delta  u8 bits, u64 count, first value, second value, then a stream of u64 words, read
//!                 from their highest bit down: per value a sign and a magnitude of `bits` bits
//! ```
//!
//! Where sign and magnitude would be as wide as the values, double delta stores the values unchanged.
//!
//! ```text
//!   values         10  13  17  16
//!   delta          10   3   4  -1
//!   double delta   10  13  +1  -5    3 bits hold the magnitude 5, so the stream begins 0 001 1 101
//! ```
//!
//! Counts are of values, and all numbers are little-endian, also the words of the stream.

use super::word::{accumulate, load, store};

/// Undoes delta for values of `N` bytes.
pub(super) fn undo_delta<const N: usize>(part: &[u8], values: &mut [u8]) -> Result<(), String> {
    let Some((count, differences)) = part.split_first_chunk() else {
        return Err("it has no count".into());
    };
    check_count::<N>(u64::from_le_bytes(*count), values)?;
    check_whole::<N>(values)?;
    // Some writers added one difference too many; bytes at the end are ignored.
    let Some(differences) = differences.get(..values.len()) else {
        return Err(format!("it has only {} bytes of differences", differences.len()));
    };
    accumulate::<N>(differences, values, 0, u64::wrapping_add);
    Ok(())
}

/// Undoes double delta for values of `N` bytes.
pub(super) fn undo_double_delta<const N: usize>(
    part: &[u8],
    values: &mut [u8],
) -> Result<(), String> {
    let Some(([bits, count @ ..], stored)) = part.split_first_chunk::<9>() else {
        return Err("it has no count".into());
    };
    check_count::<N>(u64::from_le_bytes(*count), values)?;
    let bits = u32::from(*bits);
    // Sign and magnitude would take `bits + 1` bits: as many as a value, so the writer stored the values.
    if u64::from(bits) >= 8 * N as u64 - 1 {
        if stored.len() != values.len() {
            return Err(format!("it has {} bytes of values", stored.len()));
        }
        values.copy_from_slice(stored);
        return Ok(());
    }
    check_whole::<N>(values)?;
    let first_two = values.len().min(2 * N);
    let (first, rest) = values.split_at_mut(first_two);
    let Some((stored_first, packed)) = stored.split_at_checked(first_two) else {
        return Err("it has no first values".into());
    };
    first.copy_from_slice(stored_first);
    // One value or none: nothing follows.
    let [before, last] = match first.as_chunks::<N>().0 {
        [before, last] => [load(*before), load(*last)],
        _ => return Ok(()),
    };
    unpack::<N>(packed, bits, [before, last], rest)
}

/// Unpacks differences of differences to `values`, which follow the values `before` and `last`.
fn unpack<const N: usize>(
    packed: &[u8],
    bits: u32,
    [mut before, mut last]: [u64; 2],
    values: &mut [u8],
) -> Result<(), String> {
    let (words, values) = (packed.as_chunks::<8>().0, values.as_chunks_mut::<N>().0);
    let width = bits + 1; // at most 63
    if (values.len() as u64).saturating_mul(u64::from(width)) > 64 * words.len() as u64 {
        return Err(format!("it has only {} bytes of differences", packed.len()));
    }
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    // The next `filled` bits of the stream are the lowest of `buffer`.
    let (mut buffer, mut filled) = (0_u128, 0);
    for value in values {
        if filled < width {
            buffer = buffer << 64 | u128::from(words.next().unwrap_or_default());
            filled += 64;
        }
        filled -= width;
        let field = low_word(buffer >> filled);
        let magnitude = field & ((1 << bits) - 1);
        let is_negative = field >> bits & 1 == 1;
        let difference = if is_negative { magnitude.wrapping_neg() } else { magnitude };
        // The last step, last - before, changed by `difference`, leads to the next value.
        let next = difference.wrapping_add(last.wrapping_mul(2)).wrapping_sub(before);
        (before, last) = (last, next);
        *value = store(next);
    }
    Ok(())
}

fn low_word(bits: u128) -> u64 {
    const LOW: u128 = u64::MAX as u128;
    (bits & LOW) as u64
}

/// Fails unless the stored count of values is that of the whole values in `values`.
fn check_count<const N: usize>(count: u64, values: &[u8]) -> Result<(), String> {
    if count == (values.len() / N) as u64 {
        return Ok(());
    }
    Err(format!("it has {count} values of {N} bytes"))
}

/// Fails unless `values` takes whole values: writers drop the bytes after the last whole one, except where
/// they store values unchanged.
fn check_whole<const N: usize>(values: &[u8]) -> Result<(), String> {
    if values.len().is_multiple_of(N) {
        return Ok(());
    }
    Err(format!("its values of {N} bytes do not fill that length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up() {
        let part = [3_u64.to_le_bytes().to_vec(), vec![5, 0, 254, 255, 0, 1]].concat();
        let mut values = [0; 6];
        undo_delta::<2>(&part, &mut values).unwrap();
        assert_eq!(values, [5, 0, 3, 0, 3, 1]);
        undo_delta::<2>(&[&part[..], &[7, 7]].concat(), &mut values).unwrap();
        assert_eq!(values, [5, 0, 3, 0, 3, 1]);
        assert!(undo_delta::<2>(&part[..13], &mut values).is_err());
        assert!(undo_delta::<2>(&part, &mut values[..4]).is_err());
        assert!(undo_delta::<2>(&part[..7], &mut values).is_err());
    }

    #[test]
    fn double_differences_add_up() {
        // 10, 13, then +1 (sign 0, 001) and -5 (sign 1, 101): 17, 16.
        let stream = (0b0001_1101_u64 << 56).to_le_bytes();
        let part = [&[3, 4, 0, 0, 0, 0, 0, 0, 0, 10, 13], &stream[..]].concat();
        let mut values = [0; 4];
        undo_double_delta::<1>(&part, &mut values).unwrap();
        assert_eq!(values, [10, 13, 17, 16]);
        for end in 0..part.len() {
            assert!(undo_double_delta::<1>(&part[..end], &mut values).is_err());
        }
        assert!(undo_double_delta::<1>(&part, &mut values[..3]).is_err());
    }

    #[test]
    fn one_value_and_values_that_did_not_shrink() {
        let mut value = [0; 2];
        undo_double_delta::<2>(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 8], &mut value).unwrap();
        assert_eq!(value, [7, 8]);
        let mut values = [0; 3];
        let part = [7, 3, 0, 0, 0, 0, 0, 0, 0, 1, 255, 2];
        undo_double_delta::<1>(&part, &mut values).unwrap();
        assert_eq!(values, [1, 255, 2]);
        assert!(undo_double_delta::<1>(&part[..11], &mut values).is_err());
        let part = [15, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3];
        undo_double_delta::<2>(&part, &mut values).unwrap();
        assert_eq!(values, [1, 2, 3]);
        let part = [14, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3];
        assert!(undo_double_delta::<2>(&part, &mut values).is_err());
    }
}
