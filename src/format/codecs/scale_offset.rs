//! Words divided by a scale, plus an offset: numcodecs `fixedscaleoffset`.
//!
//! numpy divides integers as doubles, and floats in their own precision, to which it rounds the scale and the
//! offset. Then it casts the result to the decoded type.
//!
//! Source: `fixedscaleoffset.py` of numcodecs, with the rules of promotion of numpy 2.

use half::f16;

use super::delta::decoded_len;
use super::output::{Fault, Output};
use super::words::{Word, by_word};
use crate::format::ElementType;

/// Words that are cast at once, by way of doubles.
const BLOCK: usize = 256;

/// What turns stored words into decoded ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaling {
    pub(super) offset: f64,
    pub(super) scale: f64,
}

impl Scaling {
    /// Turns words of the second type into words of the first; likewise for their byte orders.
    pub(super) fn run(
        self,
        [element, of]: [ElementType; 2],
        [big, stored_big]: [bool; 2],
        stored: &[u8],
        output: Output<'_>,
    ) -> Result<(), Fault> {
        let size = usize::try_from(of.size()).unwrap_or(1);
        let decoded = output.claim(decoded_len(stored.len(), size, element)?)?;
        let places = decoded.chunks_mut(BLOCK * usize::try_from(element.size()).unwrap_or(1));
        let mut values = [0.0; BLOCK];
        for (words, places) in stored.chunks(BLOCK * size).zip(places) {
            let values = &mut values[..words.len() / size];
            match of {
                ElementType::F16 => self.scale_halves(words, stored_big, values),
                ElementType::F32 => self.scale_singles(words, stored_big, values),
                _ => {
                    let divide = |word: f64| word / self.scale + self.offset;
                    by_word!(of, scale_words(words, stored_big, divide, values));
                }
            }
            by_word!(element, store(values, big, places));
        }
        Ok(())
    }

    fn scale_singles(self, words: &[u8], big: bool, values: &mut [f64]) {
        let (scale, offset) = (self.scale as f32, self.offset as f32);
        let divide = |word: f64| f64::from(word as f32 / scale + offset);
        scale_words::<f32>(words, big, divide, values);
    }

    fn scale_halves(self, words: &[u8], big: bool, values: &mut [f64]) {
        let [scale, offset] = [self.scale, self.offset].map(|it| f16::from_f64(it).to_f32());
        let divide = |word: f64| {
            let quotient = f16::from_f32(word as f32 / scale);
            f16::from_f32(quotient.to_f32() + offset).to_f64()
        };
        scale_words::<f16>(words, big, divide, values);
    }
}

/// Reads words as doubles, and passes each through `divide`.
fn scale_words<S: Word>(words: &[u8], big: bool, divide: impl Fn(f64) -> f64, values: &mut [f64]) {
    for (word, value) in words.chunks_exact(S::SIZE).zip(values) {
        *value = divide(S::load(word, big).double());
    }
}

/// Casts doubles to words.
fn store<E: Word>(values: &[f64], big: bool, places: &mut [u8]) {
    for (value, place) in values.iter().zip(places.chunks_exact_mut(E::SIZE)) {
        E::from_double(*value).store(place, big);
    }
}
