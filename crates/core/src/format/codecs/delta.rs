//! Running totals: numcodecs `delta`.
//!
//! numpy adds up words in the smallest type that holds both the stored and the decoded type, and casts each total to
//! the decoded type. So integers wrap: with 8-bit words, 100, 2, -5, 127 become 100, 102, 97, -32. Floats are rounded
//! after each sum.
//!
//! In one case this is more precise: numpy adds signed words to unsigned 64-bit totals as doubles.
//!
//! Source: `delta.py` of numcodecs, with the rules of promotion of numpy 2.

use super::output::{Fault, Output};
use super::words::{BLOCK, Word, Words, by_word, nearest_half};
use crate::format::ElementType;

/// Adds up the words of `stored`, of the type `of`, to totals of the type `to`.
pub(super) fn run(to: Words, of: Words, stored: &[u8], output: Output<'_>) -> Result<(), Fault> {
    let totals = output.claim(to.len_after(stored.len(), of)?)?;
    match sum_type(to.element, of.element) {
        None => by_word!(of.element, add_up_integers(of.big, to, stored, totals)),
        Some(Sum::Half) => add_up_floats(to, of, stored, totals, |sum| nearest_half(sum).to_f64()),
        Some(Sum::Single) => add_up_floats(to, of, stored, totals, |sum| f64::from(sum as f32)),
        Some(Sum::Double) => add_up_floats(to, of, stored, totals, |sum| sum),
    }
    Ok(())
}

/// The precision of sums of floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sum {
    Half,
    Single,
    Double,
}

/// Returns the precision of sums; `None` for integers.
fn sum_type(to: ElementType, of: ElementType) -> Option<Sum> {
    // The least precision that holds all integers of a type: halves hold 8 bits, and singles 16.
    let least = |element: ElementType| match (element, element.size()) {
        (ElementType::F16, _) | (_, 1) => Sum::Half,
        (ElementType::F32, _) | (_, 2) => Sum::Single,
        _ => Sum::Double,
    };
    (!to.is_integer() || !of.is_integer()).then(|| least(to).max(least(of)))
}

fn add_up_integers<S: Word>(big: bool, to: Words, stored: &[u8], totals: &mut [u8]) {
    // Totals wrap alike whether signed or not.
    match to.size() {
        1 => add_up::<S, u8>([big, to.big], stored, totals),
        2 => add_up::<S, u16>([big, to.big], stored, totals),
        4 => add_up::<S, u32>([big, to.big], stored, totals),
        _ => add_up::<S, u64>([big, to.big], stored, totals),
    }
}

fn add_up<S: Word, T: Word>([big, total_big]: [bool; 2], stored: &[u8], totals: &mut [u8]) {
    let mut total = 0_u64;
    for (word, place) in stored.chunks_exact(S::SIZE).zip(totals.chunks_exact_mut(T::SIZE)) {
        total = total.wrapping_add(S::load(word, big).extended());
        T::from_low(total).store(place, total_big);
    }
}

fn add_up_floats(
    to: Words,
    of: Words,
    stored: &[u8],
    totals: &mut [u8],
    round: impl Fn(f64) -> f64,
) {
    let mut values = [0.0; BLOCK];
    // The first total is the first word, also if it is -0, which 0 + -0 is not.
    let mut total = -0.0;
    let places = totals.chunks_mut(BLOCK * to.size());
    for (words, places) in stored.chunks(BLOCK * of.size()).zip(places) {
        let values = &mut values[..words.len() / of.size()];
        of.load(words, values);
        for value in &mut *values {
            total = round(total + *value);
            *value = total;
        }
        to.store(values, places);
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::OutputLength;
    use super::*;

    fn decode(elements: [ElementType; 2], big: [bool; 2], stored: &[u8]) -> Option<Vec<u8>> {
        let mut memory = vec![];
        let output = Output { memory: &mut memory, bound: OutputLength::AtMost(1_000) };
        let [to, of] = [0, 1].map(|number| Words { element: elements[number], big: big[number] });
        run(to, of, stored, output).ok().map(|()| memory)
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
        assert_eq!(decode([i16, i16], [false; 2], &[0; 3]), None);
        assert_eq!(decode([i16, i8], [false; 2], &[0; 501]), None);
    }
}
