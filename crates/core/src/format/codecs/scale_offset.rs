//! Words divided by a scale, plus an offset: numcodecs `fixedscaleoffset`.
//!
//! numpy divides integers as doubles, and floats in their own precision, to which it rounds the scale and the
//! offset. Then it casts the result to the decoded type.
//!
//! Source: `fixedscaleoffset.py` of numcodecs, with the rules of promotion of numpy 2.

use half::f16;

use super::output::{Fault, Output};
use super::words::{BLOCK, Words, nearest_half};
use crate::format::ElementType;

/// The map from stored words to decoded ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaling {
    pub(super) offset: f64,
    pub(super) scale: f64,
}

impl Scaling {
    /// Turns the words of `stored`, of the type `of`, into words of the type `to`.
    pub(super) fn run(
        self,
        to: Words,
        of: Words,
        stored: &[u8],
        output: Output<'_>,
    ) -> Result<(), Fault> {
        let decoded = output.claim(to.len_after(stored.len(), of)?)?;
        let places = decoded.chunks_mut(BLOCK * to.size());
        let mut values = [0.0; BLOCK];
        for (words, places) in stored.chunks(BLOCK * of.size()).zip(places) {
            let values = &mut values[..words.len() / of.size()];
            of.load(words, values);
            match of.element {
                ElementType::F16 => self.scale_halves(values),
                ElementType::F32 => self.scale_singles(values),
                _ => values.iter_mut().for_each(|value| *value = *value / self.scale + self.offset),
            }
            to.store(values, places);
        }
        Ok(())
    }

    fn scale_singles(self, values: &mut [f64]) {
        let (scale, offset) = (self.scale as f32, self.offset as f32);
        for value in values {
            *value = f64::from(*value as f32 / scale + offset);
        }
    }

    fn scale_halves(self, values: &mut [f64]) {
        let [scale, offset] = [self.scale, self.offset].map(|it| nearest_half(it).to_f32());
        for value in values {
            let quotient = f16::from_f32(*value as f32 / scale);
            *value = f16::from_f32(quotient.to_f32() + offset).to_f64();
        }
    }
}
