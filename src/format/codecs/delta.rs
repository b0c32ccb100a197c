//! Running totals: numcodecs `delta`.
//!
//! Stored words are cast to the decoded type and then added up in it, as `numpy.cumsum` does: integers wrap, and
//! floats are rounded after each sum. With 16-bit totals of 8-bit words, 100, 2, -5 become 100, 102, 97.
//!
//! Source: `delta.py` of numcodecs.

use super::output::{Fault, Output};
use super::words::{Word, by_word};
use crate::format::ElementType;

/// Adds up words of the second type to totals of the first; likewise for their byte orders.
pub(super) fn run(
    [element, of]: [ElementType; 2],
    big: [bool; 2],
    stored: &[u8],
    output: Output<'_>,
) -> Result<(), Fault> {
    if element.is_integer() && !of.is_integer() {
        let message = format!("differences of {of} that add up to {element}");
        return Err(Fault::Unsupported(message));
    }
    by_word!(of, add_up_words(element, big, stored, output))
}

fn add_up_words<S: Word>(
    element: ElementType,
    big: [bool; 2],
    stored: &[u8],
    output: Output<'_>,
) -> Result<(), Fault> {
    let totals = output.claim(decoded_len(stored.len(), S::SIZE, element)?)?;
    // Totals wrap alike whether signed or not.
    match element {
        ElementType::F16 => add_up::<S, half::f16>(big, stored, totals),
        ElementType::F32 => add_up::<S, f32>(big, stored, totals),
        ElementType::F64 => add_up::<S, f64>(big, stored, totals),
        ElementType::I8 | ElementType::U8 => add_up::<S, u8>(big, stored, totals),
        ElementType::I16 | ElementType::U16 => add_up::<S, u16>(big, stored, totals),
        ElementType::I32 | ElementType::U32 => add_up::<S, u32>(big, stored, totals),
        ElementType::I64 | ElementType::U64 => add_up::<S, u64>(big, stored, totals),
    }
    Ok(())
}

fn add_up<S: Word, E: Word>([big, stored_big]: [bool; 2], stored: &[u8], totals: &mut [u8]) {
    // The first total is the first word: even -0, which 0 + -0 would lose.
    let mut total = None;
    for (word, place) in stored.chunks_exact(S::SIZE).zip(totals.chunks_exact_mut(E::SIZE)) {
        let word = E::cast(S::load(word, stored_big));
        let sum = total.map_or(word, |total: E| total.plus(word));
        sum.store(place, big);
        total = Some(sum);
    }
}

/// Returns the length of elements in place of words of `size` bytes.
pub(super) fn decoded_len(len: usize, size: usize, element: ElementType) -> Result<usize, Fault> {
    if !len.is_multiple_of(size) {
        return Err(Fault::Corrupt(format!("{len} bytes, not whole words of {size}")));
    }
    let element = usize::try_from(element.size()).unwrap_or_default();
    Ok((len / size).saturating_mul(element))
}

#[cfg(test)]
mod tests {
    use super::super::output::Bound;
    use super::*;

    fn decode(types: [ElementType; 2], big: [bool; 2], stored: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut memory = vec![];
        let output = Output { memory: &mut memory, bound: Bound::AtMost(1_000) };
        run(types, big, stored, output).map(|()| memory)
    }

    #[test]
    fn words_of_all_types_add_up() {
        let [i8, i16, f32] = [ElementType::I8, ElementType::I16, ElementType::F32];
        let stored = [100_i8, 2, -5, 127].map(|word| word as u8);
        let expected = [100_i16, 102, 97, 224];
        for big in [false, true] {
            let bytes = |word: i16| if big { word.to_be_bytes() } else { word.to_le_bytes() };
            let decoded = decode([i16, i8], [big, big], &stored).unwrap();
            assert_eq!(decoded, expected.map(bytes).concat());
            let decoded = decode([i16, i16], [!big, big], &expected.map(bytes).concat()).unwrap();
            let swapped = |word: i16| if big { word.to_le_bytes() } else { word.to_be_bytes() };
            assert_eq!(decoded, [100_i16, 202, 299, 523].map(swapped).concat());
        }
        let decoded = decode([f32, i8], [false; 2], &stored).unwrap();
        assert_eq!(decoded, [100_f32, 102.0, 97.0, 224.0].map(f32::to_le_bytes).concat());
        assert_eq!(decode([i8, i8], [false; 2], &stored).unwrap(), [100, 102, 97, 224]);
        let zero = (-0.0_f32).to_le_bytes();
        assert_eq!(decode([f32, f32], [false; 2], &zero).unwrap(), zero);
        assert!(decode([i16, i16], [false; 2], &[0; 3]).is_err());
        assert!(decode([i16, f32], [false; 2], &[0; 4]).is_err());
        assert!(decode([i16, i8], [false; 2], &[0; 501]).is_err());
    }
}
